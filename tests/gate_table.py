#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The gate's table (src/dialect/claude/gate.def) for the tests and for plenum-protocol(7).

    tests/gate_table.py [ROOT]           compares the manual's section with the table; exit 1 if it differs
    tests/gate_table.py --write [ROOT]   writes the section into the manual
"""

import json
import pathlib
import re
import sys
from collections import namedtuple

TABLE = "src/dialect/claude/gate.def"
MANUAL = "man/plenum-protocol.7"
BEGIN, END = '.\\" table gate: written by tests/gate_table.py --write\n', '.\\" end table\n'

Row = namedtuple("Row", "kind name least affects act what member show")

TEXT = r'NULL|"(?:[^"\\]|\\.)*"'
ROW = re.compile(rf"^ROW\((\w+), ({TEXT}), (\w+), (\w+), (\w+), ({TEXT}), ({TEXT}), (\w+)\)$", re.MULTILINE)


def rows(root=None):
    """Every row of the table, in its order."""
    root = root or pathlib.Path(__file__).resolve().parent.parent
    text = (pathlib.Path(root) / TABLE).read_text(encoding="utf-8")
    found = [Row(*(None if value == "NULL" else json.loads(value) if value.startswith('"') else value
                   for value in match.groups())) for match in ROW.finditer(text)]
    if len(found) != len(re.findall(r"^ROW\(", text, re.MULTILINE)):
        raise ValueError(f"{TABLE}: a row that cannot be read")
    return found


HEADS = {
    "TYPE": "Lines, by\n.Va type :",
    "REQUEST": "Control requests, by\n.Va subtype :",
    "MEMBER": "Members, as PARENT.MEMBER; one without a parent is of every line and request:",
    "BLOCK": "Blocks of a prompt, by\n.Va type :",
    "COMMAND": "Commands at the beginning of a prompt; @ is a mention of a file, anywhere in it:",
}
WHO = {"OWN": "own", "DRIVER": "driver", "OBSERVER": "observer"}
AFFECTS = {"NOBODY": "nothing", "SENDER": "the sender", "SESSION": "the session", "USER": "the daemon's user"}
JUDGED = {
    "PLAIN": None, "CHANGE": None, "MCP_SET_SERVERS": "merged with the servers of others",
    "INITIALIZE": "judged by its members", "REQUEST": "judged by its subtype", "PROMPT": "judged by its members and text",
    "INTERRUPT": "spares the queued prompts of others", "CANCEL_PROMPT": "its own prompts alone",
    "END_SESSION": "as plenum_stop", "ANSWER": "to what the client was asked alone", "CANCEL": "its own requests alone",
}


def judged(row):
    if row.act != "EXECUTE":
        return JUDGED[row.act]
    return f"judged as a call of the tool {row.what}" if row.what else f"judged as a call of its {row.member}"


def described(row):
    """What is said of a row; rows of which the same is said stand together."""
    parts = [WHO[row.least], AFFECTS[row.affects], judged(row)]
    if row.show != "NOTHING":
        value = f"the names in {row.member}" if row.show == "KEYS" else row.member or "null"
        parts.append(f"announced as {row.what}, with {value}")
    return "; ".join(part for part in parts if part)


def section(table):
    """mdoc for the manual."""
    out = [BEGIN]
    for kind, head in HEADS.items():
        groups = {}
        for row in table:
            if row.kind == kind:
                groups.setdefault(described(row), []).append(row.name)
        out.append(f"{head}\n.Bl -tag -width Ds\n")
        for text, names in groups.items():
            out.append(f".It {text[0].upper() + text[1:]}\n")
            words = [f"{name} ," for name in names[:-1]] + names[-1:]
            for at in range(0, len(words), 8):
                out.append(".Sy " + " ".join(words[at:at + 8]) + "\n")
        out.append(".El\n.Pp\n")
    out[-1] = ".El\n"
    return "".join(out) + END


def main(argv):
    write = argv[1:2] == ["--write"]
    more = argv[2:] if write else argv[1:]
    root = pathlib.Path(more[0]) if more else pathlib.Path(__file__).resolve().parent.parent
    manual = root / MANUAL
    text = manual.read_text(encoding="utf-8")
    if BEGIN not in text or END not in text:
        print(f"{MANUAL}: the marks of the table are missing")
        return 1
    before, rest = text.split(BEGIN, 1)
    wanted = before + section(rows(root)) + rest.split(END, 1)[1]
    if write:
        manual.write_text(wanted, encoding="utf-8")
        return 0
    if text != wanted:
        print(f"{MANUAL}: its table of the gate is not that of {TABLE}: run tests/gate_table.py --write")
        return 1
    print("1 passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
