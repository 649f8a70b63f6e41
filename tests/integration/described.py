# SPDX-License-Identifier: MIT
"""Checks the lines that the daemon itself makes against schema/plenum-protocol.schema.json. Stricter than a client may be:
here a member that the schema does not describe is a fault."""
import functools
import json
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "schema"))
import generate  # noqa: E402

CURE = ("Describe it in schema/plenum-protocol.schema.json (definition %s) and in man/plenum-protocol.7, then run "
        "schema/generate.py --write.")
faults = []  # of this process: a failed check in a thread of a test must not be lost


class Undescribed(AssertionError):
    pass


@functools.lru_cache(None)
def definitions():
    return generate.closed(generate.load())["$defs"]


def without_references(schema, defs):
    """The same schema in one piece, which is checked several times as fast."""
    if isinstance(schema, list):
        return [without_references(one, defs) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return without_references(defs[generate.name_of(schema)], defs)
    return {key: without_references(value, defs) for key, value in schema.items()}


@functools.lru_cache(None)
def validator(name):
    import jsonschema  # takes a moment: only in tests that receive lines

    return jsonschema.Draft202012Validator(without_references(definitions()[name], definitions()))


def best(error):
    """The most telling part of an error: of several alternatives, that of the one that fits best."""
    while error.context:
        groups = {}
        for one in error.context:
            groups.setdefault(one.relative_schema_path[0], []).append(one)
        error = min(groups.values(), key=len)[0]
    return error


def check(name, obj, line):
    if name not in definitions():
        report(name, "it is not described", line)
    error = next(validator(name).iter_errors(obj), None)
    if error is not None:
        error = best(error)
        where = ".".join(map(str, error.absolute_path))
        report(name, "%s%s" % (where + ": " if where else "", error.message[:400]), line)


def report(name, what, line):
    faults.append("the daemon's %s: %s\n  %s\n%s" % (name, what, json.dumps(line)[:600], CURE % name))
    raise Undescribed(faults[-1])


def check_body(line, body, verbs):
    for verb in sorted(verbs)[:-1]:  # the id was used for several verbs: one of them must fit
        if verb + "_answer" in definitions() and validator(verb + "_answer").is_valid(body):
            return
    check(max(verbs) + "_answer", body, line)


def check_response(line, verbs):
    response = line.get("response")
    if not isinstance(response, dict):
        return
    body = response.get("response")
    if response.get("subtype") == "error" and "code" in response:
        check("refusal", line, line)
    elif response.get("subtype") == "success" and verbs and all(v.startswith("plenum_") for v in verbs):
        check("answer", line, line)
        check_body(line, body, verbs)
    elif isinstance(body, dict) and isinstance(body.get("plenum"), dict):
        check("initialize_note", body["plenum"], line)


def check_jsonrpc(line, verbs):
    error = line.get("error")
    data = error.get("data") if isinstance(error, dict) else None
    if line.get("method") == "_plenum/event":
        check("jsonrpc_notice", line, line)
        event = dict(line["params"], type="system", subtype="plenum_event")
        check("%s_event" % event.get("event"), event, line)
    elif isinstance(data, dict) and isinstance(data.get("code"), str):
        check("jsonrpc_error", line, line)
    elif "result" in line and verbs and all(v.startswith("plenum_") for v in verbs):
        check("jsonrpc_result", line, line)
        check_body(line, line["result"], verbs)


def check_line(line, verbs):
    """line: a received line as an object. verbs: what was asked under its id. Lines of the agent are not checked."""
    kind = line.get("type")
    if kind is None and ("method" in line or "id" in line):
        check_jsonrpc(line, verbs)
    if kind == "system" and line.get("subtype") == "plenum_event":
        check("%s_event" % line.get("event"), line, line)
    elif kind == "control_response":
        check_response(line, verbs)
    elif kind == "control_cancel_request":
        check("cancel", line, line)
    elif kind == "control_request" and isinstance(line.get("request"), dict):
        if str(line["request"].get("tool_use_id")).startswith("plenum_"):
            check("call_question", line, line)


def requests_in(data):
    """The (id, subtype) of each request in sent bytes."""
    if b"control_request" not in data and b'"method"' not in data:
        return
    for raw in data.split(b"\n"):
        try:
            line = json.loads(raw) if b"control_request" in raw or b'"method"' in raw else None
        except (ValueError, RecursionError):
            continue
        request = line.get("request") if isinstance(line, dict) else None
        if isinstance(request, dict):
            yield repr(line.get("request_id", request.get("request_id"))), str(request.get("subtype"))
        elif isinstance(line, dict) and "type" not in line and "id" in line:
            yield repr(line["id"]), str(line.get("method")).replace("_plenum/", "plenum_")
