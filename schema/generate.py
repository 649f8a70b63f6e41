#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Types for programs, from plenum-protocol.schema.json.

    schema/generate.py           compares plenum-protocol.d.ts and plenum_protocol.py with the schema; exit 1 if they differ
    schema/generate.py --write   writes them
"""

import json
import keyword
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
SCHEMA = HERE / "plenum-protocol.schema.json"
HEAD = "Written by schema/generate.py from plenum-protocol.schema.json; plenum-protocol(7) has the meaning."


def load():
    return json.loads(SCHEMA.read_text(encoding="utf-8"))


def name_of(schema):
    """The definition that a schema refers to, or None."""
    return schema["$ref"].rpartition("/")[2] if "$ref" in schema else None


def bases(schema):
    return [name_of(part) for part in schema.get("allOf", ())]


def flat(defs, name):
    """All members of an object with those of its bases: (properties, required)."""
    schema, properties, required = defs[name], {}, []
    for base in bases(schema):
        more, needed = flat(defs, base)
        properties.update(more)
        required += needed
    properties.update(schema.get("properties", {}))
    return properties, required + schema.get("required", [])


def closed(schema):
    """The same schema, but an object has no members but those that are described. For tests of the daemon only: a client
    ignores unknown members."""
    defs = schema["$defs"]
    return {**schema, "$defs": {name: closed_one(defs, name) for name in defs}}


def closed_one(defs, name):
    one = {key: value for key, value in defs[name].items() if key != "allOf"}
    if "properties" in one:
        properties, required = flat(defs, name)
        one = {"additionalProperties": False, **one, "properties": properties, "required": required}
    return one


def camel(name):
    return "".join(word.capitalize() for word in name.split("_"))


# --- the two languages ------------------------------------------------------------------------------------------------

class TypeScript:
    PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
    ANY = "unknown"

    @staticmethod
    def literal(value):
        return json.dumps(value)

    @staticmethod
    def union(parts):
        return " | ".join(parts)

    @staticmethod
    def array(item):
        return "Array<%s>" % item

    @staticmethod
    def mapping(value):
        return "Record<string, %s>" % value

    @staticmethod
    def comment(text, indent=""):
        return "%s/** %s */\n" % (indent, text) if text else ""

    def alias(self, name, kind, text):
        return "%sexport type %s = %s;\n" % (self.comment(text), name, kind)

    def object(self, name, parents, members, text):
        lines = "".join("%s  %s%s: %s;\n" % (self.comment(d, "  "), m, "" if needed else "?", kind)
                        for m, kind, needed, d in members)
        extends = " extends " + ", ".join(parents) if parents else ""
        return "%sexport interface %s%s {\n%s}\n" % (self.comment(text), name, extends, lines)

    def module(self, parts, verbs):
        rows = "".join("  %s: { request: %s; answer: %s };\n" % (v, camel(v + "_request"), camel(v + "_answer")) for v in verbs)
        return "// SPDX-License-Identifier: MIT\n// %s\n\n%s\n/** Each verb with its request and its answer. */\n" \
            "export interface Verbs {\n%s}\n" % (HEAD, "\n".join(parts), rows)


class Python:
    PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
    ANY = "Any"

    @staticmethod
    def literal(value):
        return "Literal[%r]" % (value,)

    @staticmethod
    def union(parts):
        if all(p.startswith("Literal[") for p in parts):
            return "Literal[%s]" % ", ".join(p[8:-1] for p in parts)
        return parts[0] if len(parts) == 1 else "Union[%s]" % ", ".join(parts)

    @staticmethod
    def array(item):
        return "List[%s]" % item

    @staticmethod
    def mapping(value):
        return "Dict[str, %s]" % value

    def alias(self, name, kind, text):
        return "%s%s: TypeAlias = %r\n" % ("# %s\n" % text if text else "", name, kind)

    def object(self, name, parents, members, text):
        rows = [(m, kind if needed else "NotRequired[%s]" % kind) for m, kind, needed, _ in members]
        if any(keyword.iskeyword(m) for m, _ in rows):
            first = "_" + name
            body = "".join("    %r: %r,\n" % row for row in rows)
            return "%s = TypedDict(%r, {\n%s})\n\n\nclass %s(%s):\n    pass\n" % (
                first, first, body, name, ", ".join([*parents, first]))
        head = '    """%s"""\n' % text if text else ""
        body = "".join("    %s: %s\n" % row for row in rows) or ("" if head else "    pass\n")
        return "class %s(%s):\n%s%s" % (name, ", ".join(parents) or "TypedDict", head, body)

    def module(self, parts, verbs):
        return '# SPDX-License-Identifier: MIT\n"""%s"""\nfrom __future__ import annotations\n\n' \
            "from typing import Any, Dict, List, Literal, NotRequired, TypeAlias, TypedDict, Union\n\n\n%s" % (
                HEAD, "\n\n".join(parts))


def kind_of(lang, schema):
    """A schema as a type of the language."""
    if name_of(schema):
        return camel(name_of(schema))
    if "const" in schema:
        return lang.literal(schema["const"])
    if "enum" in schema:
        return lang.union([lang.literal(v) for v in schema["enum"]])
    if "anyOf" in schema:
        return lang.union([kind_of(lang, part) for part in schema["anyOf"]])
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    return lang.union([plain(lang, schema, t) for t in types]) if types else lang.ANY


def plain(lang, schema, kind):
    if kind == "array":
        return lang.array(kind_of(lang, schema.get("items", {})))
    if kind == "object":
        more = schema.get("additionalProperties", True)
        return lang.mapping(kind_of(lang, more) if isinstance(more, dict) else lang.ANY)
    return lang.PLAIN[kind]


def ordered(defs):
    """The names, each after its bases."""
    done = []

    def add(name):
        for base in bases(defs[name]):
            add(base)
        if name not in done:
            done.append(name)

    for name in defs:
        add(name)
    return done


def written(lang, schema):
    """The module of the language."""
    defs, parts = schema["$defs"], []
    for name in ordered(defs):
        one = defs[name]
        text = one.get("description")
        if "properties" in one:
            members = [(m, kind_of(lang, s), m in one.get("required", []), s.get("description"))
                       for m, s in one["properties"].items()]
            parts.append(lang.object(camel(name), [camel(b) for b in bases(one)], members, text))
        else:
            parts.append(lang.alias(camel(name), kind_of(lang, one), text))
    return lang.module(parts, [name[:-len("_request")] for name in defs if name.startswith("plenum_") and name.endswith("_request")])


OUTPUTS = {"plenum-protocol.d.ts": TypeScript(), "plenum_protocol.py": Python()}


def main(argv):
    schema, bad = load(), 0
    for name, lang in OUTPUTS.items():
        text = written(lang, schema)
        if argv[1:] == ["--write"]:
            (HERE / name).write_text(text, encoding="utf-8")
        elif (HERE / name).read_text(encoding="utf-8") != text:
            print("schema/%s: not that of %s: run schema/generate.py --write" % (name, SCHEMA.name))
            bad = 1
    return bad


if __name__ == "__main__":
    sys.exit(main(sys.argv))
