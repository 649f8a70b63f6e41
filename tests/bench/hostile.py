# SPDX-License-Identifier: MIT
"""The tables of hostile lines of a client and of a child: a name, and a function of the length in bytes. A line must
cost in proportion to its length, with any content. ./run measures each of them."""
import itertools


def request(subtype, body, rid="h"):
    """A control_request of raw JSON members."""
    return b'{"type":"control_request","request_id":"%s","request":{"subtype":"%s"%s}}\n' % (
        rid.encode(), subtype.encode(), b"," + body if body else b"")


def listed(template, size, opening=b"[", closing=b"]"):
    """A list of as many elements as fit; %d in the template counts them."""
    parts, length = [], 0
    for i in itertools.count():
        part = template.replace(b"%d", b"%d" % i)
        length += len(part) + 1
        if length > size and parts:
            break
        parts.append(part)
    return opening + b",".join(parts) + closing


def members(template, size):
    return listed(template, size, b"{", b"}")


def bare(template, size):
    return listed(template, size, b"", b"")


def verb(subtype, body):
    return lambda size: [request(subtype, body(size))]


def twice(make):
    """The second one is compared with the first."""
    return lambda size: [request("initialize", make(size), "h0"), request("initialize", make(size))]


def attach(member, template, how=listed):
    return verb("plenum_attach", lambda size: b'"session":"h","%s":%s' % (member, how(template, size)))


def user(content):
    return lambda size: [b'{"type":"user","message":{"role":"user","content":%s}}\n' % content(size),
                         request("get_session_cost", b"")]


def hooks(body):
    return lambda size: b'"hooks":' + body(size)


ENTRY = b'{"matcher":"Bash","hookCallbackIds":["c%d"]}'
EVENTS = hooks(lambda size: members(b'"E%d":[{"hookCallbackIds":["c"]}]', size))
ENTRIES = hooks(lambda size: b'{"PreToolUse":' + listed(ENTRY, size) + b"}")
OTHER_WAY = hooks(lambda size: b'{"PreToolUse":[' + b",".join(
    (ENTRY.replace(b"%d", b"%d" % i) for i in reversed(range(size // (len(ENTRY) + 3))))) + b"]}")

# (name, lines for a length). The last line of each is a request under the id "h". The client is attached as a driver
# before, unless its line attaches.
TABLE = [
    ("plenum_hello, empty objects", verb("plenum_hello", lambda n: b'"x":' + listed(b"{}", n))),
    ("plenum_hello, members", verb("plenum_hello", lambda n: bare(b'"m%d":0', n))),
    ("plenum_hello, one string", verb("plenum_hello", lambda n: b'"name":"' + b"x" * n + b'"')),
    ("plenum_reload, arrays", verb("plenum_reload", lambda n: b'"x":' + listed(b"[]", n))),
    ("an unknown verb", verb("plenum_nothing", lambda n: b'"x":' + listed(b"{}", n))),
    ("plenum_register, types", verb("plenum_register", lambda n: b'"types":' + listed(b'"t%d"', n))),
    ("plenum_register, approve", verb("plenum_register", lambda n: b'"approve":{"tools":' + listed(b'"t%d"', n) + b"}")),
    ("plenum_attach, mcp_servers", attach(b"mcp_servers", b'"s%d"')),
    ("plenum_attach, args", attach(b"args", b'"a%d"')),
    ("plenum_attach, argv", attach(b"argv", b'"a%d"')),
    ("plenum_attach, env", attach(b"env", b'"E%d":""', members)),
    ("plenum_attach, types", attach(b"types", b'"t%d"')),
    ("initialize, hook events", lambda n: [request("initialize", EVENTS(n))]),
    ("initialize, hook events twice", twice(EVENTS)),
    ("initialize, hook entries", lambda n: [request("initialize", ENTRIES(n))]),
    ("initialize, entries in another order", lambda n: [request("initialize", ENTRIES(n), "h0"),
                                                        request("initialize", OTHER_WAY(n))]),
    ("initialize, callbacks", lambda n: [request("initialize", b'"hooks":{"PreToolUse":[{"hookCallbackIds":' +
                                                 listed(b'"c%d"', n) + b"}]}")]),
    ("initialize, long matcher", lambda n: [request("initialize", b'"hooks":{"PreToolUse":[{"matcher":"' + b"Bash|" *
                                                    (n // 5) + b'","hookCallbackIds":["c"]}]}')]),
    ("initialize, members twice", twice(lambda n: bare(b'"m%d":1', n))),
    ("initialize, servers twice", twice(lambda n: b'"sdkMcpServers":' + listed(b'"s%d"', n))),
    ("initialize, dialog kinds", lambda n: [request("initialize", b'"supportedDialogKinds":' + listed(b'"k%d"', n))]),
    ("mcp_set_servers", verb("mcp_set_servers", lambda n: b'"servers":' + members(b'"s%d":{"type":"sdk"}', n))),
    ("set_permission_mode, members", verb("set_permission_mode", lambda n: b'"mode":"plan",' + bare(b'"m%d":1', n))),
    ("interrupt, members", verb("interrupt", lambda n: bare(b'"m%d":1', n))),
    ("an unknown request", verb("nothing_known", lambda n: bare(b'"m%d":1', n))),
    ("bash_command", lambda n: [b'{"type":"bash_command","uuid":"u","command":"' + b"a;$(b)|" * (n // 7) + b'"}\n',
                                request("get_session_cost", b"")]),
    ("a prompt of blocks", user(lambda n: listed(b'{"type":"text","text":"%d"}', n))),
    ("a prompt, nested", user(lambda n: b'[{"type":"text","text":"x","y":' + b"[" * 4000 + b"]" * 4000 + b',"z":' +
                              listed(b"[[]]", n) + b"}]")),
    ("a prompt, one string", user(lambda n: b'"' + b"x" * n + b'"')),
    ("no JSON", lambda n: [b"[" * n + b"\n", request("get_session_cost", b"")]),
]

# The same for the first line of a client, which shows its dialect.
FIRST_TABLE = [
    ("a first line, the same key", lambda n: [b"{" + b'"x":1,' * (n // 6) + b'"type":"x"}\n', request("plenum_hello", b"")]),
    ("a first line, escaped keys", lambda n: [b"{" + b'"\\u0074ype":"x",' * (n // 15) + b'"type":"x"}\n',
                                              request("plenum_hello", b"")]),
    ("a first line, members of params", lambda n: [b'{"jsonrpc":"2.0","params":' + members(b'"m%d":0', n) +
                                                   b',"method":"x","id":1}\n', b'{"jsonrpc":"2.0","id":2,"method":'
                                                   b'"_plenum/hello"}\n']),
]


def ask(body):
    return lambda n: (b'{"type":"control_request","request_id":"k","request":{"subtype":"can_use_tool","tool_name":"Bash",'
                      b'"input":%s}}\n' % body(n))


# (name, the line for a length)
CHILD_TABLE = [
    ("members of the line", lambda n: b'{"type":"x",' + bare(b'"m%d":0', n) + b"}\n"),
    ("members of system/init", lambda n: b'{"type":"system","subtype":"init",' + bare(b'"m%d":0', n) + b"}\n"),
    ("the id of its conversation", lambda n: b'{"type":"system","subtype":"init","session_id":"' + b"c" * n + b'"}\n'),
    ("its version", lambda n: b'{"type":"system","subtype":"init","session_id":"c","claude_code_version":"' + b"v" * n + b'"}\n'),
    ("a question, the name of a tool", lambda n: ask(lambda _: b"{}")(n).replace(b'"Bash"', b'"' + b"T" * n + b'"')),
    ("members of a value", lambda n: b'{"type":"x","a":' + members(b'"m%d":0', n) + b"}\n"),
    ("blocks of a message", lambda n: b'{"type":"assistant","message":{"content":' + listed(b"{}", n) + b"}}\n"),
    ("a question, members of its input", ask(lambda n: members(b'"m%d":0', n))),
    ("a question, one string", ask(lambda n: b'{"command":"' + b"x" * n + b'"}')),
]


def allow(body):
    return lambda rid, n: (b'{"type":"control_response","response":{"subtype":"success","request_id":"%s","response":{"behavior":'
                           b'"allow","updatedInput":%s}}}\n' % (rid, body(n)))


# (name, the question of the child for a length, the answer to it under an id for a length)
ANSWER_TABLE = [
    ("one string", ask(lambda n: b'{"command":"' + b"x" * n + b'"}'), allow(lambda n: b'{"command":"' + b"x" * n + b'"}')),
    ("another string", ask(lambda n: b'{"command":"' + b"x" * n + b'"}'), allow(lambda n: b'{"command":"' + b"y" * n + b'"}')),
    ("empty objects", ask(lambda n: b'{"x":' + listed(b"{}", n) + b"}"), allow(lambda n: b'{"x":' + listed(b"{}", n) + b"}")),
    ("empty objects, changed", ask(lambda n: b'{"x":' + listed(b"{}", n) + b"}"),
     allow(lambda n: b'{"x":' + listed(b"[]", n) + b"}")),
]
