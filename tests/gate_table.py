#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The tables of the gate (gate.def of each dialect) for the tests and for the manual.

    tests/gate_table.py [ROOT]           compares the manual's sections with the tables; exit 1 if one differs
    tests/gate_table.py --write [ROOT]   writes the sections into the manual
"""

import json
import pathlib
import re
import sys
from collections import namedtuple

ROOT = pathlib.Path(__file__).resolve().parent.parent
MANUALS = {"claude": "man/plenum-protocol.7", "acp": "man/plenum-jsonrpc.7", "codex": "man/plenum-jsonrpc.7"}
BEGIN, END = '.\\" table gate of %s: written by tests/gate_table.py --write\n', '.\\" end table\n'

Row = namedtuple("Row", "kind name least affects act what member show")

TEXT = r'NULL|"(?:[^"\\]|\\.)*"'
ROW = re.compile(rf"^ROW\((\w+), ({TEXT}), (\w+), (\w+), (\w+), ({TEXT}), ({TEXT}), (\w+)\)$", re.MULTILINE)


def table_of(dialect):
    return f"src/dialect/{dialect}/gate.def"


def rows(root=ROOT, dialect="claude"):
    """Every row of the table, in its order."""
    text = (pathlib.Path(root) / table_of(dialect)).read_text(encoding="utf-8")
    found = [Row(*(None if value == "NULL" else json.loads(value) if value.startswith('"') else value
                   for value in match.groups())) for match in ROW.finditer(text)]
    if len(found) != len(re.findall(r"^ROW\(", text, re.MULTILINE)):
        raise ValueError(f"{table_of(dialect)}: a row that cannot be read")
    return found


HEADS = {
    "TYPE": "Lines, by\n.Va type :",
    "REQUEST": "Control requests, by\n.Va subtype :",
    "MEMBER": "Members, as PARENT.MEMBER; one without a parent is of every line and request:",
    "BLOCK": "Blocks of a prompt, by\n.Va type :",
    "COMMAND": "Commands at the beginning of a prompt; @ is a mention of a file, anywhere in it:",
}
HEADS_JSONRPC = {
    "TYPE": "Prompts and notifications, by\n.Va method ;\nrequest and response stand for all other lines with an id:",
    "REQUEST": "Other requests, by\n.Va method :",
    "MEMBER": "Members of a line and of\n.Va params ,\nas METHOD.MEMBER;\none without a method "
              "is of every line, and one of message is of a prompt:",
    "BLOCK": HEADS["BLOCK"],
    "COMMAND": "Words in a prompt; @ is a mention of a file, anywhere in it:",
}
WHO = {"OWN": "own", "DRIVER": "driver", "OBSERVER": "observer"}
AFFECTS = {"NOBODY": "nothing", "SENDER": "the sender", "SESSION": "the session", "USER": "the daemon's user"}
JUDGED = {
    "PLAIN": None, "CHANGE": None, "MCP_SET_SERVERS": "merged with the servers of others",
    "INITIALIZE": "judged by its members", "REQUEST": "judged by its subtype", "PROMPT": "judged by its members and text",
    "INTERRUPT": "spares the queued prompts of others", "CANCEL_PROMPT": "its own prompts alone",
    "KEPT": "answered by the daemon, or by the agent, which is started for it", "END_SESSION": "as plenum_stop",
    "ANSWER": "to what the client was asked alone", "CANCEL": "its own requests alone",
}


def judged(row, dialect):
    if row.kind == "TYPE" and row.act == "KEPT":
        return "a new agent gets it from the daemon"
    if row.act == "REQUEST" and dialect != "claude":
        return "judged by its method"
    if row.act in ("OPENS", "RUNS", "NAMES"):
        return f"{row.member} is a handle of the sender"
    if row.act == "ABOUT":
        return f"{row.member} is the id of a request of the sender"
    if row.act != "EXECUTE":
        return JUDGED[row.act]
    return f"judged as a call of the tool {row.what}" if row.what else f"judged as a call of its {row.member}"


def described(row, dialect):
    """What is said of a row; rows of which the same is said stand together."""
    parts = [WHO[row.least], AFFECTS[row.affects], judged(row, dialect)]
    if row.show != "NOTHING":
        value = f"the names in {row.member}" if row.show == "KEYS" else row.member or "null"
        parts.append(f"announced as {row.what}, with {value}")
    return "; ".join(part for part in parts if part)


def wrapped(words):
    """Lines of at most eight words and 110 bytes."""
    lines = [[]]
    for word in words:
        if len(lines[-1]) == 8 or len(" ".join([*lines[-1], word])) > 110:
            lines.append([])
        lines[-1].append(word)
    return map(" ".join, lines)


def section(dialect, table):
    """mdoc for the manual."""
    out = [BEGIN % dialect]
    for kind, head in (HEADS if dialect == "claude" else HEADS_JSONRPC).items():
        if not any(row.kind == kind for row in table):
            continue
        groups = {}
        for row in table:
            if row.kind == kind:
                groups.setdefault(described(row, dialect), []).append(row.name)
        out.append(f"{head}\n.Bl -tag -width Ds\n")
        for text, names in groups.items():
            out.append(f".It {text[0].upper() + text[1:]}\n")
            out += [f".Sy {line}\n" for line in wrapped([f"{name} ," for name in names[:-1]] + names[-1:])]
        out.append(".El\n.Pp\n")
    out[-1] = ".El\n"
    return "".join(out) + END


def with_section(root, dialect, text):
    """The text of the manual with the present table."""
    begin = BEGIN % dialect
    if begin not in text or END not in text:
        raise ValueError(f"{MANUALS[dialect]}: the marks of the table of {dialect} are missing")
    before, rest = text.split(begin, 1)
    return before + section(dialect, rows(root, dialect)) + rest.split(END, 1)[1]


def main(argv):
    write = argv[1:2] == ["--write"]
    more = argv[2:] if write else argv[1:]
    root = pathlib.Path(more[0]) if more else ROOT
    failed = 0
    for dialect, name in MANUALS.items():
        manual = root / name
        text = manual.read_text(encoding="utf-8")
        wanted = with_section(root, dialect, text)
        if write:
            manual.write_text(wanted, encoding="utf-8")
        elif text != wanted:
            print(f"{name}: its table of the gate is not that of {table_of(dialect)}: run tests/gate_table.py --write")
            failed += 1
    if not write:
        print(f"{len(MANUALS) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
