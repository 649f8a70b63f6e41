# SPDX-License-Identifier: MIT
"""Clients and agents of the Agent Client Protocol for tests: lines as any program would write them, without a library."""
import itertools

from harness import Case, Client, PlenumError

_ids = itertools.count(1000)

TEXT = {"type": "text", "text": "hi"}
OPTIONS = [{"optionId": "yes", "name": "Allow", "kind": "allow_once"},
           {"optionId": "always", "name": "Always allow", "kind": "allow_always"},
           {"optionId": "no", "name": "Reject", "kind": "reject_once"}]
MODES = {"currentModeId": "default", "availableModes": [{"id": "default", "name": "Default"}, {"id": "plan", "name": "Plan"}]}


def rpc(method, rid=None, **params):
    """A request; without an id a notification."""
    line = {"jsonrpc": "2.0", "method": method, "params": params}
    return line if rid is None else dict(line, id=rid)


def result(rid, **body):
    return {"jsonrpc": "2.0", "id": rid, "result": body}


def error(rid, code, message):
    return {"jsonrpc": "2.0", "id": rid, "error": {"code": code, "message": message}}


def update(kind, conversation="c1", **body):
    return rpc("session/update", sessionId=conversation, update=dict({"sessionUpdate": kind}, **body))


def chunk(text, conversation="c1"):
    return update("agent_message_chunk", conversation, content={"type": "text", "text": text})


def permission(rid, title="ls", kind="execute", conversation="c1", options=None):
    return rpc("session/request_permission", rid, sessionId=conversation, options=options or OPTIONS,
               toolCall={"toolCallId": "t%s" % rid, "title": title, "kind": kind, "rawInput": {"command": title}})


def selected(rid, option):
    return result(rid, outcome={"outcome": "selected", "optionId": option})


def is_update(kind, **want):
    return dict({"method": "session/update", "params__update__sessionUpdate": kind}, **want)


class Editor(Client):
    """A client that speaks the protocol: as socat would."""

    checked = False

    def call(self, method, **params):
        """Send a request under a fresh id, and return the id."""
        rid = next(_ids)
        self.send(rpc(method, rid, **params))
        return rid

    def reply(self, rid, timeout=None):
        """Return the answer to a request of this client: the id has its type, too."""
        return self.wait(lambda m: isinstance(m.obj, dict) and "method" not in m.obj and m.obj.get("id") == rid
                         and type(m.obj["id"]) is type(rid), timeout, title="answer to %r" % (rid,))

    def ok(self, method, **params):
        m = self.reply(self.call(method, **params))
        assert "result" in m.obj, m
        return m["result"]

    def fails(self, method, **params):
        m = self.reply(self.call(method, **params))
        assert "error" in m.obj, m
        return m["error"]

    # as the other clients of the harness

    def attach(self, session=None, _timeout=None, **members):
        if session is not None:
            members["session"] = session
        m = self.reply(self.call("_plenum/attach", **members), _timeout)
        if "error" in m.obj:
            raise PlenumError({"response": {"code": m["error.data.code"], "error": m["error.message"]}})
        return m["result"]

    def sync(self):
        self.ok("_plenum/hello")

    def event(self, event, timeout=None, **want):
        return self.wait(timeout=timeout, method="_plenum/event", params__event=event,
                         **{"params__" + key: value for key, value in want.items()})

    def prompt(self, text="hi", rid=None, **params):
        rid = next(_ids) if rid is None else rid
        self.send(rpc("session/prompt", rid, prompt=[{"type": "text", "text": text}], **params))
        return rid


class PlayedCase(Case):
    """The test plays the agent, and its clients: in `dialect`, with clients of the class `speaks`."""

    def begin(self, **options):
        """A daemon whose profile speaks the protocol."""
        profile = dict({"dialect": self.dialect, "resume_args": ""}, **options.pop("profile", {}))
        return self.start(mode={"init": "manual"}, profile=profile, **options)

    def editor(self, d, label=None, **options):
        c = self.speaks(d.socket, label or "%s%d" % (self.speaks.__name__.lower(), len(d.clients) + 1), **options)
        d.clients.append(c)
        return c

    def attached(self, d, session="s", label=None, **members):
        c = self.editor(d, label)
        c.attached = c.attach(session, **members)
        return c

    def open(self, n=1, **options):
        """A session with n drivers, ready for prompts: (daemon, agent, child, client, ...)."""
        d, agent = self.begin(**options)
        first = self.attached(d)
        child = agent.child()
        self.ready(child)
        d.wait_state("s", "idle")
        return (d, agent, child, first, *[self.attached(d) for _ in range(n - 1)])


class AcpCase(PlayedCase):
    dialect, speaks = "acp", Editor

    def initialized(self, child, resume=False, load=True):
        m = child.wait(method="initialize")
        capabilities = {"loadSession": load, "sessionCapabilities": {"resume": {}} if resume else {}}
        child.print(result(m["id"], protocolVersion=1, agentCapabilities=capabilities, authMethods=[]))
        return m

    def ready(self, child, conversation="c1", **more):
        """Play the start of an agent with a new conversation; return the params of session/new."""
        self.initialized(child, **more)
        m = child.wait(method="session/new")
        child.print(result(m["id"], sessionId=conversation, modes=MODES))
        return m["params"]

    def turn(self, child, client, text="hi"):
        """Begin a turn: (the client's id, the child's id)."""
        mine = client.prompt(text)
        m = child.wait(method="session/prompt", params__prompt=lambda p: p[0]["text"] == text)
        return mine, m["id"]

    def offered(self, client, **want):
        """Return the id under which this client is asked."""
        return client.wait(method="session/request_permission", **want)["id"]


class Game:
    """A random session of several clients, with the test as the agent and the judge. Ids: the agent's asks are numbers
    from 500, a client's requests begin with its name.

    A protocol has look() (take what has come), moves(), refusal() (a line that answers an open ask, from its id and its line), finished() (true if
    no turn runs; ends one that does) and judge()."""

    def __init__(self, case, rng, queue):
        self.case, self.rng = case, rng
        self.d, self.agent, self.child, first = case.open(profile={"prompts": "queue" if queue else "pass"})
        first.label, first.mine = "p0", []
        self.clients, self.gone = [first], []
        self.made = 1

    def join(self):
        """A new client, or one that left."""
        if len(self.clients) < 4:
            back = [c.label for c in self.gone if c.label not in [other.label for other in self.clients]]
            self.add(self.rng.choice(back) if back and self.rng.randrange(2) else "p%d" % self.made)
            self.made += 1

    def add(self, label):
        c = self.case.attached(self.d, label=label)
        c.mine = []
        self.clients.append(c)
        return c

    def leave(self):
        if len(self.clients) > 1:
            c = self.clients.pop(self.rng.randrange(len(self.clients)))
            self.gone.append(c)
            c.drain()
            c.close()

    def fresh(self, c):
        c.mine.append("%s-%d" % (c.label, len(c.mine)))
        return c.mine[-1]

    def play(self, steps):
        moves = self.moves()
        for _ in range(steps):
            self.rng.choice(moves)()
            self.look()
        self.settle()
        self.judge()

    def settle(self):
        """Let every turn end, and answer the open asks."""
        last = self.add("last")
        for _ in range(1000):
            for c in self.clients:
                c.sync()
            self.look()
            waiting = [rid for c in self.clients for rid in c.mine if not self.replies(c, rid)]
            open_asks = last.ok("_plenum/pending", session="s")["pending"]
            for one in open_asks:
                last.send(self.refusal(one["request_id"], last.wait(id=one["request_id"])))
            if self.finished() and not waiting and not open_asks:
                return
        raise AssertionError("still open: %s" % waiting)

    @staticmethod
    def replies(c, rid):
        return c.seen(lambda m: "method" not in m.obj and m.obj.get("id") == rid)

    def judge_replies(self):
        """Each request of a client has one answer, or at most one if it left; none gets the answer to another."""
        for c in self.clients + self.gone:
            for rid in c.mine:
                check = self.case.assertEqual if c in self.clients else self.case.assertLessEqual
                check(len(self.replies(c, rid)), 1, rid)
            for m in c.seen(lambda m: "method" not in m.obj and isinstance(m["id"], str)):
                self.case.assertIn(m["id"], c.mine, c.label)
