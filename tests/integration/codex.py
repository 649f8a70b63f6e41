# SPDX-License-Identifier: MIT
"""Clients and agents of codex app-server for tests: lines as any program would write them, without a library."""
import itertools

from acp import Editor, PlayedCase

_ids = itertools.count(5000)

COMMAND = "item/commandExecution/requestApproval"
FILE = "item/fileChange/requestApproval"
AMEND = {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["touch", "x"]}}
SETTINGS = {"approvalPolicy": "on-request", "model": "big", "modelProvider": "p", "cwd": "/",
            "sandboxPolicy": {"type": "readOnly"}, "effort": "high"}


def rpc(method, rid=None, **params):
    """A request; without an id a notification."""
    line = {"method": method, "params": params}
    return line if rid is None else dict(line, id=rid)


def result(rid, **body):
    return {"id": rid, "result": body}


def error(rid, code, message):
    return {"error": {"code": code, "message": message}, "id": rid}


def note(method, thread="t1", **params):
    """A notification of the agent."""
    return dict(rpc(method, threadId=thread, **params), emittedAtMs=1)


def delta(text, thread="t1"):
    return note("item/agentMessage/delta", thread, turnId="turn", itemId="m", delta=text)


def started(turn="turn1", thread="t1"):
    return note("turn/started", thread, turn={"id": turn, "items": [], "status": "inProgress", "error": None})


def completed(turn="turn1", status="completed", thread="t1", text="done", fault=None):
    items = [{"type": "agentMessage", "id": "m", "text": text}]
    return note("turn/completed", thread, turn={"id": turn, "items": items, "status": status, "error": fault,
                                                "durationMs": 12})


def approval(rid, command="touch x", method=COMMAND, **more):
    return rpc(method, rid, threadId="t1", turnId="turn1", itemId="i%s" % rid, startedAtMs=1, command=command,
               availableDecisions=["accept", AMEND, "cancel"], **more)


def change(rid):
    return rpc(FILE, rid, threadId="t1", turnId="turn1", itemId="i%s" % rid, startedAtMs=1, reason=None)


def decided(rid, decision):
    return result(rid, decision=decision)


class Program(Editor):
    """A client that speaks the protocol: as socat would."""

    def call(self, method, **params):
        rid = next(_ids)
        self.send(rpc(method, rid, **params))
        return rid

    def prompt(self, text="hi", rid=None, **params):
        rid = next(_ids) if rid is None else rid
        self.send(rpc("turn/start", rid, input=[{"type": "text", "text": text}], **params))
        return rid


class CodexCase(PlayedCase):
    dialect, speaks = "codex", Program

    def initialized(self, child):
        m = child.wait(method="initialize")
        child.print(result(m["id"], userAgent="a/1", codexHome="/x", platformFamily="unix", platformOs="linux"))
        return m

    def ready(self, child, thread="t1"):
        """Play the start of an agent with a new thread; return the params of thread/start."""
        self.initialized(child)
        m = child.wait(method="thread/start")
        child.print(result(m["id"], thread={"id": thread, "turns": []}, model="big"))
        return m["params"]

    def accept(self, child, text="hi", turn="turn1"):
        """The agent takes a prompt."""
        m = child.wait(method="turn/start", params__input=lambda p: p[0]["text"] == text)
        child.print(result(m["id"], turn={"id": turn, "items": [], "status": "inProgress"}))
        return m

    def turn(self, child, client, text="hi", turn="turn1"):
        """Begin a turn; return the client's id, which is answered."""
        mine = client.prompt(text)
        self.accept(child, text, turn)
        child.print(started(turn))
        client.reply(mine)
        client.wait(method="turn/started", params__turn__id=turn)
        return mine

    def offered(self, client, method=COMMAND, **want):
        """Return the id under which this client is asked."""
        return client.wait(method=method, **want)["id"]
