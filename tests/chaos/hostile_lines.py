# SPDX-License-Identifier: MIT
"""Lines meant to cost the daemon more than their length. Each row of LINES makes one of a given count of things.

Shared by the hostile driver and the benchmark: `LINES[name](count)` is the bytes that a client sends, with the LF. The
requests have the id ID. A row says nothing of the answer: the line may be refused, it must not take long."""
from harness import dump

ID = "hostile"


def request(subtype, **members):
    return dump({"type": "control_request", "request_id": ID, "request": dict({"subtype": subtype}, **members)}) + b"\n"


def numbered(count, text="name-%d"):
    return [text % i for i in range(count)]


def table(count, value=1):
    return dict.fromkeys(numbered(count), value)


def servers(count):
    return table(count, {"type": "sdk", "name": "x"})


def hooks(events, matchers=1, callbacks=1):
    entry = {"matcher": "x", "hookCallbackIds": numbered(callbacks)}
    return {"Event%d" % i: [entry] * matchers for i in range(events)}


def user(**members):
    return dump(dict({"type": "user", "message": {"role": "user", "content": "hello"}}, **members)) + b"\n"


def attach(**members):
    return request("plenum_attach", **dict({"session": "hostile", "create": "never"}, **members))


LINES = {
    "hook events": lambda n: request("initialize", hooks=hooks(n)),
    "hook matchers": lambda n: request("initialize", hooks=hooks(1, n)),
    "hook callbacks": lambda n: request("initialize", hooks=hooks(1, 1, n)),
    "a long matcher": lambda n: request("initialize", hooks={"Stop": [{"matcher": "x|" * n, "hookCallbackIds": ["x"]}]}),
    "initialize members": lambda n: request("initialize", **table(n)),
    "initialize servers": lambda n: request("initialize", sdkMcpServers=numbered(n)),
    "dialog kinds": lambda n: request("initialize", supportedDialogKinds=numbered(n)),
    "mcp_set_servers": lambda n: request("mcp_set_servers", servers=servers(n)),
    "request members": lambda n: request("set_model", model="x", **table(n)),
    "settings members": lambda n: request("apply_flag_settings", settings=table(n)),
    "an unknown request": lambda n: request("nonsense", x="x" * 10 * n),
    "a large plenum_ request": lambda n: request("plenum_hello", x=numbered(n)),
    "a refused plenum_ request": lambda n: request("plenum_nonsense", x=[{"a": [i]} for i in range(n)]),
    "attach mcp_servers": lambda n: attach(mcp_servers=numbered(n)),
    "attach args": lambda n: attach(args=numbered(n)),
    "attach env": lambda n: attach(env=table(n, "x")),
    "attach types": lambda n: attach(types=numbered(n)),
    "attach tools": lambda n: attach(approve={"tools": numbered(n)}),
    "attach members": lambda n: attach(**table(n)),
    "a long name": lambda n: attach(name="x" * 10 * n),
    "registered types": lambda n: request("plenum_register", types=numbered(n)),
    "registered tools": lambda n: request("plenum_register", approve={"tools": numbered(n)}),
    "user members": lambda n: user(**table(n)),
    "user blocks": lambda n: user(message={"role": "user", "content": [{"type": "text", "text": "x"}] * n}),
    "user words": lambda n: user(message={"role": "user", "content": "/x @ " * 2 * n}),
    "a nested array": lambda n: b'{"type":"x","x":' + b"[" * n + b"]" * n + b"}\n",
    "nested objects": lambda n: b'{"type":"x","x":' + b'{"x":' * n + b"1" + b"}" * n + b"}\n",
    "a long number": lambda n: b'{"type":"x","x":1' + b"0" * 10 * n + b"}\n",
    "escapes": lambda n: b'{"type":"x","x":"' + b"\\u0000\\ud800" * n + b'"}\n',
    "escaped keys": lambda n: b"{" + b'"\\u0074ype":"x",' * n + b'"type":"x"}\n',
    "the same key": lambda n: b"{" + b'"x":1,' * n + b'"type":"x"}\n',
    "a long id": lambda n: dump({"type": "control_request", "request_id": "x" * 10 * n,
                                 "request": {"subtype": "plenum_hello"}}) + b"\n",
    "a long type": lambda n: dump({"type": "x" * 10 * n}) + b"\n",
    "unknown types": lambda n: b"".join(b'{"type":"x%d"}\n' % i for i in range(n)),
    "no JSON": lambda n: b"x" * 10 * n + b"\n",
    "blank lines": lambda n: b"\n" * 10 * n,
    "bad lines": lambda n: b"{}\n" * n,
    "unknown answers": lambda n: b'{"type":"control_response","response":{"subtype":"success","request_id":"x","response":{}}}\n' * n,
    "unknown withdrawals": lambda n: b'{"type":"control_cancel_request","request_id":"x"}\n' * n,
    "many plenum_list": lambda n: b"".join(request("plenum_list").replace(b'"hostile"', b'"%d"' % i) for i in range(n // 10)),
    "many plenum_status": lambda n: b"".join(request("plenum_status", daemon=True).replace(b'"hostile"', b'"%d"' % i)
                                             for i in range(n // 10)),
}
