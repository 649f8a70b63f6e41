# SPDX-License-Identifier: MIT
"""A process started by an agent acts only in that agent's own session, and as a driver (contract 14)."""
import json
import os
import sys
import unittest

from harness import Case, alive, build_file, until, user

# Sends the lines of a file in which each line is one request; writes each answer to another file.
PEER = r"""
import json, os, socket, sys
path, todo, out, way = sys.argv[1:5]
if way != "child":
    if os.fork(): os._exit(0)
    os.setsid()
    if os.fork(): os._exit(0)
s = socket.socket(socket.AF_UNIX)
s.connect(path)
f = s.makefile("rb")
got = []
for line in open(todo):
    s.sendall(line.encode())
    want = json.loads(line)
    while True:
        answer = f.readline()
        if not answer: break
        m = json.loads(answer)
        if m["type"] == "control_response" and m["response"].get("request_id") == want.get("request_id", "-"): break
        if m.get("event") == "error" and want["type"] != "control_request": break
        if m["type"] == "result" and want["type"] == "user": break
    got.append(json.loads(answer) if answer else None)
with open(out + ".new", "w") as o: json.dump(got, o)
os.rename(out + ".new", out)
"""


class Peers(Case):
    def begin(self, profile=None, **attach):
        self.d = self.start(agents=("agent", "other"), profile=profile)[0]
        self.owner = self.d.attached("s", name="owner", **attach)
        self.child = self.agents[0].child()
        self.d.wait_state("s", "idle")
        self.count = 0

    def tries(self, *lines, way="child"):
        """Return the answers to a program started by the agent of session s: response objects and notices."""
        self.count += 1
        todo, out = (self.d.root + "/%s%d" % (name, self.count) for name in ("todo", "out"))
        with open(todo, "w") as f:
            for i, line in enumerate(lines):
                f.write(json.dumps(dict(line, request_id=str(i)) if line["type"] == "control_request" else line) + "\n")
        self.child.spawn(["/usr/bin/env", "PATH=/tmp/evil", "SSH_ASKPASS=/tmp/evil", sys.executable, "-I", "-S", "-c", PEER, self.d.socket, todo, out, way], setsid=True)
        until(lambda: os.path.exists(out), what="the peer's story")
        with open(out) as f:
            return [m["response"] if m["type"] == "control_response" else m for m in json.load(f)]

    def refused(self, *lines, code="not_allowed", **options):
        for line, got in zip(lines, self.tries(*lines, **options)):
            self.assertEqual(got.get("code"), code, (line, got))
            self.assertTrue(got["error"], line)

    def granted(self, *lines, **options):
        answers = self.tries(*lines, **options)
        for line, got in zip(lines, answers):
            self.assertEqual(got.get("subtype"), "success", (line, got))
        return [got["response"] for got in answers]


def verb(which, **members):
    return {"type": "control_request", "request": dict({"subtype": "plenum_" + which}, **members)}


class VerbsTest(Peers):
    def test_it_stops_and_forgets_nothing(self):
        self.begin()
        self.refused(*(verb("stop", session="s", how=how, forget=forget) for how in ("kill", "graceful")
                       for forget in (True, False)),
                     verb("hibernate", session="s"), verb("reload"), verb("upgrade"), verb("shutdown"),
                     verb("shutdown", how="kill"), verb("subscribe"), verb("metrics"), verb("status"),
                     verb("status", daemon=True))
        self.refused(verb("stop", session="s"), verb("shutdown"), way="orphan")
        self.owner.sync()
        self.d.wait_state("s", "idle")

    def test_nor_by_the_child_s_own_request(self):
        self.begin()
        end = {"type": "control_request", "request": {"subtype": "end_session"}}
        got = self.tries(verb("attach", session="s"), end, verb("stop"))
        self.assertEqual([m.get("code") for m in got], [None, "not_allowed", "not_allowed"], got)
        self.d.wait_state("s", "idle")

    def test_its_own_session_is_all_that_it_sees(self):
        self.begin()
        self.d.attached("t", profile="other")
        self.agents[1].child()
        hello, own, status, queue, logs, pending = self.granted(
            verb("hello"), verb("list"), verb("status", session="s"), verb("queue", session="s"), verb("logs", session="s"),
            verb("pending"))
        self.assertEqual([s["session"] for s in own["sessions"]], ["s"])
        self.assertFalse(hello["peer"]["may_approve"])
        self.refused(*(verb(name, session="t") for name in ("status", "queue", "logs", "pending", "attach")),
                     verb("attach", session="t", role="observer"), verb("attach", session="t", create="new"),
                     way="orphan")

    def test_a_person_s_program_does_all_of_it(self):
        self.begin()
        other = self.d.client()
        for name, members in (("status", {}), ("metrics", {}), ("subscribe", {}), ("reload", {}),
                              ("hibernate", {"session": "s"}), ("stop", {"session": "s", "forget": True})):
            other.request("plenum_" + name, **members)


class OwnSessionTest(Peers):
    def test_it_drives_it(self):
        self.begin()
        attach, register, _, detach = self.granted(
            verb("attach", session="s", replay="all", name="helper"), verb("register", role="driver"),
            verb("queue"), verb("detach"))
        self.assertEqual((attach["role"], attach["approve"], attach["created"]), ("driver", False, False))

    def test_a_prompt(self):
        self.begin()
        self.child.spawn([sys.executable, "-I", "-S", "-c",
                          "import socket,sys\ns=socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\n"
                          "s.sendall(sys.argv[2].encode()+b'\\n')\ns.recv(1)\n", self.d.socket,
                          json.dumps(user("from the inside", session_id="s"))], setsid=True)
        self.child.wait(type="user", message__content="from the inside")

    def test_a_prompt_elsewhere(self):
        """A line without plenum_attach neither enters another session nor makes one."""
        self.begin()
        self.d.attached("t", profile="other")
        other = self.agents[1].child()
        for name in ("t", "new", ""):
            self.refused(user("x", session_id=name))
        self.assertNone(other.seen(type="user"))
        self.assertEqual(sorted(self.d.sessions()), ["s", "t"])

    def test_after_its_own_session_is_gone(self):
        self.begin()
        self.d.attached("t", profile="other")
        out = self.d.root + "/gone"
        script = ("import socket,sys,os,time\nif os.fork(): os._exit(0)\nos.setsid()\nif os.fork(): os._exit(0)\n"
                  "os.environ.clear()\ns=socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\nf=s.makefile('rb')\n"
                  "def ask(l):\n s.sendall(l.encode()+b'\\n')\n return f.readline()\n"
                  "a=ask(sys.argv[2])\nopen(sys.argv[4],'w').close()\n"
                  "while not os.path.exists(sys.argv[4]+'go'): time.sleep(0.01)\n"
                  "b=ask(sys.argv[3])\nopen(sys.argv[4]+'n','wb').write(b)\nos.rename(sys.argv[4]+'n',sys.argv[4]+'x')\n")
        ask = [json.dumps(dict(verb("list"), request_id="1")), json.dumps(dict(verb("attach", session="t"), request_id="2"))]
        self.child.spawn([sys.executable, "-I", "-S", "-c", script, self.d.socket, *ask, out], setsid=True)
        until(lambda: os.path.exists(out), what="the peer")
        self.child.exit(0)
        self.owner.event("child_exited")
        open(out + "go", "w").close()
        until(lambda: os.path.exists(out + "x") or not self.alive_peer(out), what="the answer, or the peer's end")
        if os.path.exists(out + "x"):
            with open(out + "x") as f:
                self.assertIn('"not_allowed"', f.read())

    def alive_peer(self, mark):
        for entry in os.listdir("/proc"):
            try:
                with open("/proc/%s/cmdline" % entry, "rb") as f:
                    if mark.encode() in f.read():
                        return alive(int(entry))
            except (OSError, ValueError):
                pass
        return False


class MakingTest(Peers):
    def test_with_anything_but_its_own_profile(self):
        self.begin()
        for members in ({"profile": "other"}, {"args": ["--dangerously-skip-permissions"]}, {"env": {"A": "b"}},
                        {"argv": ["--dangerously-skip-permissions"]}, {"env_only": True}, {"cwd": "/tmp"},
                        {"resume": "conv-1"}, {"fork": True, "resume": "conv-1"}, {"ephemeral": True}, {"deny_asks": True},
                        {"mcp_servers": ["x"]}, {"session": "default"}, {"session": "u", "create": "new"}):
            with self.subTest(members=members):
                self.refused(verb("attach", **members))
        self.assertEqual(sorted(self.d.sessions()), ["s"])

    def test_a_helper_of_its_own(self):
        """With its own profile, directory and environment, and it may drive it."""
        self.begin()
        (made,) = self.granted(verb("attach"))
        name = made["session"]
        self.assertTrue(made["created"])
        self.assertEqual((made["profile"], made["cwd"]), ("agent", self.owner.attached["cwd"]))
        second = self.agents[0].child()
        self.assertEqual(second.argv[1:], self.child.argv[1:])
        self.assertEqual(second.env.get("PATH"), self.child.env.get("PATH"))
        self.assertNotIn("SSH_ASKPASS", second.env)
        again, _ = self.granted(verb("attach", session=name), verb("queue"), way="orphan")
        self.assertFalse(again["created"])
        self.refused(verb("stop", session=name, forget=True))
        self.owner.request("plenum_upgrade")
        self.granted(verb("attach", session=name))
        self.child, first = second, self.child
        self.refused(verb("attach", session="s"), verb("attach"))

    def has_more(self, **members):
        self.begin(**members)
        self.refused(verb("attach"))
        self.granted(verb("attach", session="s"))

    def test_where_its_own_session_has_more_flags_than_its_profile(self):
        self.has_more(args=["--disallowedTools=Bash"])

    def test_where_its_own_session_has_more_variables_than_its_profile(self):
        self.has_more(env={"RULES": "strict"})

    def test_where_its_own_session_is_guarded(self):
        self.begin()
        self.owner.initialize({"PreToolUse": [{"hookCallbackIds": ["h"]}]})
        self.refused(verb("attach"))

    def test_a_person_makes_it_all_the_same(self):
        self.begin()
        c = self.d.client()
        got = c.attach("u", profile="other", args=["--x"], env={"A": "b"}, cwd="/tmp")
        self.assertTrue(got["created"])


class ShimTest(Peers):
    def test_a_program_with_an_sdk(self):
        """Its session would have an argv chosen by the agent: the shim fails with the reason."""
        self.begin()
        out = self.d.root + "/shim"
        self.child.spawn(["/bin/sh", "-c", '"$0" -p --input-format stream-json --output-format stream-json --verbose '
                          '--dangerously-skip-permissions </dev/null >$1.out 2>$1.err; echo $? >$1.n; mv $1.n $1.status',
                          build_file("src/shim/plenum-shim"), out], setsid=True)
        until(lambda: os.path.exists(out + ".status"), what="the end of the shim")
        with open(out + ".status") as status, open(out + ".err") as text:
            self.assertNotEqual(status.read().strip(), "0")
            self.assertIn("an agent started this program", text.read())
        self.assertEqual(sorted(self.d.sessions()), ["s"])


    def test_plenumctl_names_no_verb_of_the_protocol(self):
        self.begin()
        out = self.d.root + "/ctl"
        self.child.spawn(["/bin/sh", "-c", '"$0" reload 2>$1.err; mv $1.err $1.text', build_file("src/ctl/plenumctl"), out],
                         setsid=True)
        until(lambda: os.path.exists(out + ".text"), what="the end of plenumctl")
        with open(out + ".text") as text:
            self.assertRegex(text.read(), r"^plenumctl: an agent started this program \(")


class NoneTest(Peers):
    def test_nothing_but_hello(self):
        self.begin(profile={"agent_peers": "none"})
        self.granted(verb("hello"))
        self.refused(*(verb(name, **members) for name, members in (
            ("attach", {"session": "s"}), ("attach", {}), ("list", {}), ("status", {"session": "s"}), ("pending", {}),
            ("logs", {"session": "s"}), ("queue", {"session": "s"}), ("register", {}), ("detach", {}), ("stop", {}))))
        self.refused(user("x", session_id="s"), way="orphan")
        self.assertNone(self.child.seen(type="user"))
        self.d.client().attach("s")


class OtherPeersTest(Peers):
    def test_of_unknown_origin(self):
        """The process that connected is gone, so that nothing can be known about it."""
        self.begin()
        c = self.d.client(uid=0, gid=0)
        c.hello()
        c.helper.kill()
        c.helper.wait()
        for name, members in (("stop", {"session": "s", "forget": True}), ("hibernate", {"session": "s"}), ("reload", {}),
                              ("upgrade", {}), ("shutdown", {}), ("attach", {"session": "x", "args": ["--x"]}),
                              ("attach", {"session": "x", "env": {"A": "b"}})):
            self.assertRefused("not_allowed", c.request, "plenum_" + name, **members)
        c.attach("s")
        self.assertRefused("not_allowed", c.request, "end_session")
        self.d.wait_state("s", "idle")

    def test_another_user_stops_what_it_made(self):
        self.d = self.start(daemon={"allow_uids": "0 12345"})[0]
        self.d.open_to_all()
        c = self.d.client(uid=12345, gid=12345)
        c.attach("mine")
        self.d.attached("s")
        for name in ("reload", "upgrade", "shutdown"):
            self.assertRefused("not_allowed", c.request, "plenum_" + name)
        self.assertRefused("not_allowed", c.request, "plenum_stop", session="s")
        self.assertRefused("not_allowed", c.request, "plenum_rename", session="s", name="mine")
        self.assertRefused("not_allowed", self.d.client(uid=12345, gid=12345).attach, "x", cwd="/tmp")
        c.request("plenum_stop")


class NameTest(Peers):
    def test_the_queued_prompt_of_a_person_of_this_name(self):
        self.begin(profile={"prompts": "queue"})
        b = self.d.attached("s", name="b")
        b.send(user("first", uuid="u-b"))
        self.child.wait(type="user", uuid="u-b")
        self.owner.send(user("mine", uuid="u-owner"))
        self.owner.event("changed", what="prompt_held", value="u-owner")
        cancelled = {"type": "control_request", "request": {"subtype": "cancel_async_message", "message_uuid": "u-owner"}}
        self.assertEqual(self.tries(verb("attach", session="s", name="owner"), cancelled)[-1].get("code"), "not_allowed")
        again = self.d.attached("s", name="owner")
        self.assertEqual(again.request("cancel_async_message", message_uuid="u-owner")["cancelled"], True)


class RoomTest(Peers):
    def test_no_other_session_goes_to_sleep_for_it(self):
        self.d = self.start(agents=("agent", "other"), daemon={"max_children": "2"})[0]
        self.owner = self.d.attached("s", name="owner")
        self.child, self.count = self.agents[0].child(), 0
        self.d.attached("t", profile="other")
        other = self.agents[1].child()
        self.refused(verb("attach"), code="too_many")
        self.assertFalse(other.gone)

    def test_a_few_sessions_and_no_more(self):
        self.begin()
        got = self.tries(*[line for _ in range(5) for line in (verb("attach"), verb("detach"))])
        self.assertEqual([m.get("code") for m in got[::2]], [None] * 4 + ["too_many"])

    def test_none_without_what_an_initialize_forbade(self):
        self.begin()
        self.owner.initialize(disallowedTools=["Bash"])
        self.refused(verb("attach"))

    def test_none_without_settings_of_a_client(self):
        self.begin()
        rid = self.owner.ask("apply_flag_settings", settings={"permissions": {"deny": ["Bash"]}})
        self.child.reply(self.child.request("apply_flag_settings"))
        self.owner.answer(rid)
        self.refused(verb("attach"))


if __name__ == "__main__":
    unittest.main()
