# SPDX-License-Identifier: MIT
"""The lines of the hostile driver: those of the benchmark's table, many cheap lines, and malformed lines.

`LINES[name](size)` returns the bytes that a client sends, about this many, with the newline."""
import os
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bench"))

from hostile import TABLE, members  # noqa: E402


def repeated(line):
    """Each has an answer, which this side must read."""
    return lambda size: line * min(size // len(line), 20000)


def inside(before, part, after):
    """One line, filled with parts."""
    return lambda size: before + part * (size // len(part)) + after + b"\n"


LINES = {name: lambda size, make=make: b"".join(make(size)) for name, make in TABLE}
LINES.update({
    "user members": lambda size: b'{"type":"user","message":{"role":"user","content":"x"},"x":' + members(b'"m%d":1', size) + b"}\n",
    "nested arrays": lambda size: b'{"type":"x","x":' + b"[" * (size // 2) + b"]" * (size // 2) + b"}\n",
    "nested objects": lambda size: b'{"type":"x","x":' + b'{"x":' * (size // 6) + b"1" + b"}" * (size // 6) + b"}\n",
    "a long number": inside(b'{"type":"x","x":1', b"0", b"}"),
    "escapes": inside(b'{"type":"x","x":"', b"\\u0000\\ud800", b'"}'),
    "escaped keys": inside(b"{", b'"\\u0074ype":"x",', b'"type":"x"}'),
    "the same key": inside(b"{", b'"x":1,', b'"type":"x"}'),
    "a long id": inside(b'{"type":"control_request","request":{"subtype":"plenum_hello"},"request_id":"', b"x", b'"}'),
    "a long type": inside(b'{"type":"', b"x", b'"}'),
    "a long name": inside(b'{"type":"control_request","request_id":"1","request":{"subtype":"plenum_attach","name":"', b"x", b'"}}'),
    "unknown types": lambda size: b"".join(b'{"type":"x%d"}\n' % i for i in range(size // 16)),
    "blank lines": repeated(b"\n"),
    "bad lines": repeated(b"{}\n"),
    "unknown answers": repeated(b'{"type":"control_response","response":{"subtype":"success","request_id":"x","response":{}}}\n'),
    "unknown withdrawals": repeated(b'{"type":"control_cancel_request","request_id":"x"}\n'),
})
