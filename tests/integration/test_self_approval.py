# SPDX-License-Identifier: MIT
"""An agent must not approve itself (contract 5). The attacker is a program started by the child, in several disguises."""
import json
import os
import sys
import unittest

from harness import Case, alive, allow, perm, until, user

# Attaches, tries everything, and writes the answers to a file.
ATTACKER = r"""
import json, os, socket, sys, time
path, out, session, fork, scrub = sys.argv[1:6]
if scrub == "scrub" and "PLENUM_CHILD" in os.environ:
    env = {k: v for k, v in os.environ.items() if not k.startswith("PLENUM")}
    os.execve(sys.executable, [sys.executable, "-I", "-S", "-c", sys.argv[6]] + sys.argv[1:], env)
if fork == "fork":
    if os.fork(): os._exit(0)
    os.setsid()
    if os.fork(): os._exit(0)
    while os.getppid() not in (1, int(sys.argv[7])): time.sleep(0.005)
s = socket.socket(socket.AF_UNIX)
s.connect(path)
f = s.makefile("rb")
got = []
def ask(rid, **request):
    s.sendall(json.dumps({"type": "control_request", "request_id": rid, "request": request}).encode() + b"\n")
    while True:
        line = f.readline()
        if not line: return None
        m = json.loads(line)
        got.append(m)
        if m["type"] == "control_response" and m["response"].get("request_id") == rid: return m["response"]
result = {"ppid": os.getppid(), "pid": os.getpid(), "env": "PLENUM_CHILD" in os.environ}
result["approve"] = ask("1", subtype="plenum_attach", session=session, approve=True)
result["attach"] = ask("2", subtype="plenum_attach", session=session)
result["register"] = ask("3", subtype="plenum_register", approve=True)
result["hooks"] = ask("4", subtype="initialize", hooks={"PreToolUse": [{"hookCallbackIds": ["h"]}]})
result["mode"] = ask("5", subtype="set_permission_mode", mode="bypassPermissions")
s.sendall(b'{"type":"control_response","response":{"subtype":"success","request_id":"k-1","response":{"behavior":"allow"}}}\n')
ask("6", subtype="plenum_pending", session=session)
for m in list(got):
    if m["type"] == "control_request":
        s.sendall(json.dumps({"type": "control_response", "response": {"subtype": "success", "request_id": m["request_id"],
                  "response": {"behavior": "allow"}}}).encode() + b"\n")
ask("7", subtype="plenum_hello")
result["asked"] = [m for m in got if m["type"] == "control_request"]
with open(out + ".new", "w") as o: json.dump(result, o)
os.rename(out + ".new", out)
"""


class SelfApprovalTest(Case):
    def attack(self, fork, scrub, session="s", where=None):
        """Run the attacker below the child of `where`; return its answers."""
        d, agent = self.start(agents=("agent", "other"))[:2]
        self.d = d
        self.guard = d.attached("s", name="guard")
        self.child = agent.child()
        attacker = self.child
        if where == "other":
            d.attached("t", profile="other")
            attacker = self.agents[1].child()
        self.child.print(perm("k-1"))
        self.rid = self.guard.wait(type="control_request")["request_id"]
        out = d.root + "/attack"
        attacker.spawn([sys.executable, "-I", "-S", "-c", ATTACKER, d.socket, out, session, fork, scrub, ATTACKER, str(d.pid)], setsid=True)
        until(lambda: os.path.exists(out), what="the attacker's story")
        with open(out) as f:
            got = json.load(f)
        until(lambda: not alive(got["pid"]), what="the attacker to end")  # without its mark it would not be ended later
        return got

    def refused(self, got, attaches=None):
        """attaches: whether it may read and send prompts there; None: depends on the knowledge about an orphan's
        origin."""
        self.assertEqual(got["approve"]["code"], "not_allowed", got["approve"])
        if attaches is not None:
            self.assertEqual(got["attach"]["subtype"], "success" if attaches else "error", got["attach"])
        for what in ("register", "hooks", "mode"):
            self.assertIn(got[what]["code"], ("not_allowed", "not_attached"))
        self.assertEqual(got["asked"], [])
        self.assertNone(self.child.answers("k-1"))
        self.assertNone(self.child.seen(request__subtype="set_permission_mode"))
        self.assertNone(self.child.seen(lambda m: b"PreToolUse" in m.raw))
        self.guard.send(allow(self.rid))
        self.assertEqual(self.child.answer("k-1")["response.response.behavior"], "allow")

    def test_a_direct_child(self):
        got = self.attack("no", "no")
        self.assertTrue(got["env"])
        self.refused(got, attaches=True)

    def test_without_the_mark_in_its_environment(self):
        got = self.attack("no", "scrub")
        self.assertFalse(got["env"])
        self.refused(got, attaches=True)

    def test_forked_away_in_a_session_of_its_own(self):
        got = self.attack("fork", "scrub")
        self.assertFalse(got["env"])
        self.assertIn(got["ppid"], (self.d.pid, 1))
        self.refused(got)

    def test_from_another_session(self):
        self.refused(self.attack("no", "scrub", where="other"), attaches=False)

    def test_from_another_session_forked_away(self):
        self.refused(self.attack("fork", "scrub", where="other"), attaches=False)

    def test_after_its_own_agent_ended(self):
        """Adopted by the daemon when the child is gone: ended, or recognised."""
        d, agent = self.start(agents=("agent", "other"))[:2]
        guard = d.attached("s")
        child = agent.child()
        b = d.attached("t", profile="other")
        second = self.agents[1].child()
        script = ("import os,socket,sys,time\nif os.fork(): os._exit(0)\nos.setsid()\n"
                  "if os.fork(): os._exit(0)\nopen(sys.argv[1],'w').close()\ntime.sleep(60)\n")
        second.spawn([sys.executable, "-I", "-S", "-c", script, d.root + "/lives"], setsid=True)
        until(lambda: os.path.exists(d.root + "/lives"))
        second.exit(0)
        b.event("child_exited")
        child.mark(guard)

    def test_another_session_is_not_woken(self):
        d, agent = self.start(agents=("agent", "other"))[:2]
        d.attached("s")
        agent.child()
        d.attached("t", profile="other")
        self.agents[1].child()
        d.kill9()
        d.start()
        d.attached("t", wake=True)
        second = self.agents[1].child()
        out = d.root + "/told"
        script = ("import socket,sys\ns=socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\ns.sendall(b'%s\\n')\n"
                  "open(sys.argv[2],'wb').write(s.makefile('rb').readline())\n" % json.dumps(user("go on", session_id="s")))
        second.spawn([sys.executable, "-I", "-S", "-c", script, d.socket, out], setsid=True)
        until(lambda: os.path.exists(out) and os.path.getsize(out), what="a refusal")
        with open(out) as f:
            self.assertEqual(json.loads(f.readline())["code"], "not_allowed")
        self.assertEqual(d.state_of("s"), "asleep")

    def test_a_program_of_the_user_is_not_an_agent(self):
        d, agent = self.start()
        a = d.attached("s", approve=True)
        child = agent.child()
        child.print(perm("k-1"))
        a.send(allow(a.wait(type="control_request")["request_id"]))
        child.answer("k-1")

    def test_a_daemon_started_by_an_agent_still_works(self):
        """PLENUM_CHILD of another daemon in the environment of plenumd does not make every client an agent."""
        d, agent = self.start(env={"PLENUM_CHILD": "outer"})
        a = d.attached("s", approve=True)
        child = agent.child()
        child.print(perm("k-1"))
        a.send(allow(a.wait(type="control_request")["request_id"]))
        child.answer("k-1")
        self.assertEqual(child.env["PLENUM_CHILD"], "s")


if __name__ == "__main__":
    unittest.main()
