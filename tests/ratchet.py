# SPDX-License-Identifier: MIT
"""What the checks with a ratchet share: the parts of C source that they count, and the comparison with a table.

The table is the text TABLE of the check itself, a row each: `key number`. A number may only fall: a higher one is an
error, and so is a lower one until the row is lowered, which the option --update does.
"""

import pathlib
import re
import sys

TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'', re.DOTALL)
START = re.compile(r"^[A-Za-z_](?:[^\n;{}=]|\n[ \t])*\) \{$", re.MULTILINE)
NAME = re.compile(r"\b(?!PRINTF_LIKE\b|__attribute__\b)([A-Za-z_]\w*)\(")


def without_comments(text):
    return TOKEN.sub(lambda m: "\n" * m.group().count("\n") if m.group().startswith("/") else m.group(), text)


def literals(text):
    """The contents of the string literals."""
    return [m.group()[1:-1] for m in TOKEN.finditer(text) if m.group().startswith('"')]


def functions(text):
    """(name, number of lines) of each function that is defined in source in the format of clang-format."""
    for m in START.finditer(text):
        end = text.find("\n}\n", m.end() - 1)
        name = NAME.search(m.group())
        if end >= 0 and name:
            yield name.group(1), text.count("\n", m.start(), end + 1) + 1


def prototypes(text):
    """The names of the functions that a header declares; without those that it defines (static inline)."""
    text = re.sub(r"^[ \t]*#(?:.*\\\n)*.*$", "", without_comments(text), flags=re.MULTILINE)
    text = re.sub("'[{}]'", "0", text.replace('extern "C" {', ""))
    while re.search(r"\{[^{}]*\}", text):
        text = re.sub(r"(?:\)\s*)?\{[^{}]*\}", lambda m: ";" if m.group().startswith(")") else "", text)
    for statement in text.split(";"):
        name = NAME.search(statement)
        if name and not re.match(r"\s*(?:static|typedef)\b", statement):
            yield name.group(1)


def sources(root, *suffixes):
    """(path from src/ on, text) of each source file."""
    for path in sorted((root / "src").rglob("*")):
        if path.suffix in suffixes:
            yield path.relative_to(root / "src").as_posix(), path.read_text(encoding="utf-8")


def parse(table):
    return {key: int(number) for key, number in (row.split() for row in table.splitlines())}


def compare(found, allowed):
    errors = []
    for key in sorted(found.keys() | allowed.keys()):
        have, may = found.get(key, 0), allowed.get(key, 0)
        if have > may:
            errors.append(f"{key}: {have}, allowed are {may}")
        if have < may:
            errors.append(f"{key}: {have}, the table has {may} (lower it with --update)")
    return errors


def update(script, found):
    rows = "".join(f"{key} {number}\n" for key, number in sorted(found.items()))
    text = script.read_text(encoding="utf-8")
    text = re.sub(r'(?s)TABLE = """\\\n.*?"""', lambda _: f'TABLE = """\\\n{rows}"""', text)
    script.write_text(text, encoding="utf-8")


def test(cases):
    """Compare (expected, seen) pairs, and the comparison itself."""
    cases = cases + [([], compare({"a": 1}, parse("a 1\n"))), (1, len(compare({"a": 2}, {"a": 1}))),
                     (1, len(compare({"a": 1}, {"a": 2}))), (1, len(compare({}, {"a": 1}))),
                     (1, len(compare({"b": 1}, {})))]
    failed = [f"expected {want}, got {got}" for want, got in cases if want != got]
    print("\n".join(failed + [f"{len(cases) - len(failed)} passed, {len(failed)} failed"]))
    return 1 if failed else 0


def run(argv, table, measure, self_test):
    """The main function of a check. measure(root) returns (numbers by key, summary)."""
    script = pathlib.Path(argv[0]).resolve()
    if argv[1:] == ["--self-test"]:
        return test(self_test())
    words = [word for word in argv[1:] if word != "--update"]
    root = pathlib.Path(words[0] if words else script.parent.parent)
    found, summary = measure(root)
    if words != argv[1:]:
        update(script, found)
        return 0
    errors = compare(found, parse(table))
    print("\n".join(errors + [summary, f"{len(errors)} errors"]))
    return 1 if errors else 0


sys.dont_write_bytecode = True
