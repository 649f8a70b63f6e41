# SPDX-License-Identifier: MIT
"""The real agents with JSON-RPC: what the dialects acp and codex rely on (protocol-facts 9.5), and the same script
through the daemon."""

import base64
import copy
import json
import pathlib
import re
import subprocess

import agents
from harness import DEADLINE, Case, wait_until


class Steps:
    """What the tests of every agent do."""

    agent = None
    only_cli = "2.1.332"  # once

    def open(self):
        client = self.agent.open(self.place, self.api)
        self.addCleanup(client.close)
        client.hello()
        return client

    def started(self):
        client = self.open()
        client.new(self.work)
        return client

    def leave(self, client):
        """End of stdin: the agent leaves."""
        client.process.stdin.close()
        wait_until("the agent has ended", lambda: client.process.poll() is not None)
        return client.process.returncode

    def ask(self, client, name):
        """A prompt that asks to make a file; return the prompt and the permission."""
        since = client.mark()
        prompt = client.prompt(self.agent.command(f"touch {name}"))
        ask = client.asked(since)
        self.assertEqual(client.title(ask), f"touch {name}")
        return prompt, ask

    def history(self, client):
        since = client.mark()
        self.assertEqual(client.end(client.prompt("@history@"), since), "end_turn")
        return client.said(since)


class Conversation(Steps):
    needs_daemon = False

    def test_a_prompt_and_permissions(self):
        client = self.started()
        since = client.mark()
        self.assertEqual(client.end(client.prompt("hello")), "end_turn")
        self.assertEqual(client.said(since), "echo: hello")
        for name, answer, made in (("yes", client.allow, True), ("no", client.deny, False),
                                   ("nothing", client.invalid, False)):
            prompt, ask = self.ask(client, name)
            client.answer(ask, answer(ask))
            self.assertEqual(client.end(prompt), "end_turn")  # an invalid answer uses the permission up
            self.assertEqual((self.work / name).exists(), made, name)
            client.answer(ask, client.allow(ask))  # too late: ignored
        self.assertIn("touch nothing", self.history(client))
        self.assertEqual([path.name for path in self.work.iterdir()], ["yes"])
        self.assertEqual(self.leave(client), 0)

    def test_cancel_and_leave(self):
        """Neither a cancelled permission nor one that is open at the end of stdin runs the tool."""
        client = self.started()
        since = client.mark()
        prompt = client.prompt(f"@until {self.work}/never@ one two three")
        client.wait("the first piece", lambda line: client.said(since), since)
        client.cancel(prompt)
        self.assertEqual(client.end(prompt), client.stopped)
        prompt, ask = self.ask(client, "no")
        client.cancel(prompt)
        client.withdraw(ask)
        self.assertEqual(client.end(prompt), client.stopped)
        self.assertIn("touch no", self.history(client))
        self.ask(client, "no")
        self.assertEqual(self.leave(client), 0)
        self.assertFalse((self.work / "no").exists())

    def test_load(self):
        """After an orderly end, and after SIGKILL with an open permission: the question does not come again."""
        client = self.started()
        client.end(client.prompt("remember quince"))
        self.leave(client)
        for _ in range(2):
            self.agent.restart(self.place)
            again = self.open()
            again.load(client.conversation, self.work)
            since = again.mark()
            self.assertIn("quince", self.history(again))
            self.ask(again, "no")
            self.assertEqual(len(again.seen(lambda line: "id" in line and "method" in line, since)), 1)
            again.kill()
        self.assertFalse((self.work / "no").exists())


class AcpConversation(Conversation):
    def test_replay_of_load(self):
        """The history is complete before the reply to the next request, not always before the reply of session/load."""
        client = self.started()
        for number in range(10):
            client.end(client.prompt(f"fruit {number}"))
        self.leave(client)
        self.agent.restart(self.place)
        again = self.open()
        again.load(client.conversation, self.work)
        until = again.mark()
        prompts = [text for text in again.prompts() if text.startswith("fruit")]
        self.assertEqual(prompts, [f"fruit {number}" for number in range(10)])
        self.assertIn("echo: fruit 9", again.said())
        self.history(again)
        self.assertEqual(again.prompts(until), [])  # prompts are not echoed
        until = again.lines.index(again.loaded)
        self.assertEqual(any("fruit" in str(line) for line in again.lines[:until]), self.replays_first)


class Gemini(AcpConversation, Case):
    agent = agents.GEMINI
    replays_first = False


class ClaudeAgentAcp(AcpConversation, Case):
    agent = agents.CLAUDE_ACP
    replays_first = True


class Codex(Conversation, Case):
    agent = agents.CODEX_SERVER


# --- through the daemon ----------------------------------------------------------------------------------------------

CHANCE = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|toolu_\d+|msg_\d+|PGID: \d+|Chunk ID: \w+|"
                    r"Wall time: [0-9.]+|\b20\d\d-\d\d-\d\dT\d\d.\d\d.\d\d(\.\d+)?Z?-?")
COUNTS = re.compile(r"id|requestId|processId|originator|\w+At|\w+Ms")  # and the daemon's name


def without_counts(value):
    if isinstance(value, dict):
        return {name: without_counts(member) for name, member in value.items()
                if not COUNTS.fullmatch(name) or isinstance(member, str) and "-" in member}
    return [without_counts(member) for member in value] if isinstance(value, list) else value


def update_of(line):
    return line.get("params", {}).get("update", {})


def completes(line, before):
    """Join the input of a tool with its call: claude-agent-acp sends it there, or at once behind it, as it comes."""
    call, more = update_of(before), update_of(line)
    if call.get("sessionUpdate") != "tool_call" or more.get("sessionUpdate") != "tool_call_update" or "status" in more or \
       call["toolCallId"] != more["toolCallId"]:
        return False
    call.update(more, sessionUpdate="tool_call")
    return True


def view(client, since):
    """Return what a client has seen, without the daemon's own lines: names are counted, pieces of a text are joined."""
    seen, names, text = [], {}, None
    for line in client.lines[since:]:
        if line.get("method", "").startswith(("_", "$/")) or client.comes_at_any_time(line):
            continue
        line = copy.deepcopy(line)
        if "stopReason" in line.get("result", {}):
            line["result"] = line["result"]["stopReason"]  # the rest counts tokens
        piece, text = client.piece(line), text if client.piece(line) else None
        if piece and text:
            text[0][text[1]] += piece[0][piece[1]]
            continue
        text = piece
        if not (seen and completes(line, seen[-1])):
            seen.append(line)
    return json.loads(CHANCE.sub(lambda match: names.setdefault(match.group(), f"name {len(names)}"),
                                 json.dumps(without_counts(seen))))


class Shared(Steps):
    """The same agent as the child of a daemon."""

    forks = True

    def make_daemon(self):
        return agents.AgentDaemon(self.build, self.agent, self.api, self.place, self.settings, self.profile)

    def connect(self, session=None):
        client = self.agent.protocol.run(  # a process, because its working directory is that of the agent
            ["socat", "-b", "262144", "-t", "60", "-", f"UNIX-CONNECT:{self.daemon.socket}"],
            env=self.place.environment(), cwd=self.work)
        self.addCleanup(client.close)
        if session:
            client.attached = client.call("_plenum/attach", session=session)
        client.hello()
        return client

    def first(self):
        """An editor that knows nothing of the daemon; return it and its session's name."""
        client = self.connect()
        client.new(self.work)
        session, = self.client().ask("plenum_list")["sessions"]
        return client, session["session"]

    def second(self, session, conversation):
        client = self.connect(session)
        client.conversation = conversation
        return client

    def remember(self, client):
        self.assertEqual(client.end(client.prompt("remember quince")), "end_turn")
        self.wait_written(client.conversation, "echo: remember quince")

    def script(self, client):
        since = client.mark()
        client.new(self.work)
        self.assertEqual(client.end(client.prompt("hello")), "end_turn")
        for name, answer in (("yes", client.allow), ("no", client.deny)):
            prompt, ask = self.ask(client, name)
            client.answer(ask, answer(ask))
            self.assertEqual(client.end(prompt), "end_turn")
        seen = view(client, since)
        prompt, ask = self.ask(client, "no")  # the agent's cancel and the client's may come in any order
        client.cancel(prompt)
        client.withdraw(ask)
        self.assertEqual(client.end(prompt), client.stopped)
        (self.work / "yes").unlink()
        self.assertEqual(list(self.work.iterdir()), [])
        return seen

    def test_the_same_view(self):
        direct, through = self.script(self.open()), self.script(self.connect())
        self.maxDiff = None
        self.assertEqual(direct, through)

    def test_two_clients(self):
        first, session = self.first()
        second = self.second(session, first.conversation)
        for asker, answerer in ((first, second), (second, first)):
            since, other = asker.mark(), answerer.mark()
            prompt, ask = self.ask(asker, "yes")
            offered = answerer.asked(other)
            self.assertEqual(offered["params"], ask["params"])
            answerer.answer(offered, answerer.allow(offered))
            asker.wait_withdrawal(ask, since)
            self.assertEqual(asker.end(prompt, since), "end_turn")
            (self.work / "yes").unlink()
            answerer.wait_message("_plenum/event", other, lambda event: event["event"] == "turn_ended")
            self.assertEqual(answerer.prompts(other), [self.agent.command("touch yes")])
            self.assertEqual(asker.prompts(since), answerer.prompts(other) if asker.echoes else [])
            self.assertEqual(answerer.said(other), asker.said(since))

    def test_sleep(self):
        """The agent's own replay reaches no client."""
        client, session = self.first()
        second = self.second(session, client.conversation)
        self.remember(client)
        self.client().ask("plenum_hibernate", session=session)
        self.wait_state(session, "asleep")
        self.agent.restart(self.place)
        since, other = client.mark(), second.mark()
        self.assertIn("quince", self.history(client))
        self.assertEqual(client.prompts(since), ["@history@"] if client.echoes else [])
        second.wait_message("_plenum/event", other, lambda event: event["event"] == "turn_ended")
        self.assertEqual(second.prompts(other), ["@history@"])

    def test_sleep_before_the_first_prompt(self):
        """The agent may not have the conversation any more: then it begins a new one, and clients may use the old id."""
        client, session = self.first()
        self.client().ask("plenum_hibernate", session=session)
        self.wait_state(session, "asleep")
        self.agent.restart(self.place)
        self.assertEqual(client.end(client.prompt("remember quince")), "end_turn")
        self.assertIn("quince", self.history(client))

    def test_the_end_of_the_daemon_with_an_open_permission(self):
        client, session = self.first()
        self.remember(client)
        self.ask(client, "no")
        self.daemon.kill()
        self.agent.restart(self.place)
        self.daemon.start()
        again = self.second(session, client.conversation)
        self.assertIn("quince", self.history(again))
        self.assertFalse((self.work / "no").exists())

    def shim(self):
        shim = self.agent.protocol.run(
            [str(next(self.build.rglob("plenum-shim"))), self.agent.protocol.word], cwd=self.work, stderr=subprocess.DEVNULL,
            env=self.place.environment(PLENUM_SOCKET=self.daemon.socket, PLENUM_PROFILE="real"))
        self.addCleanup(shim.close)
        shim.hello()
        return shim

    def test_sessions_of_one_shim(self):
        shim = self.shim()
        asked = {}
        for name in ("one", "two"):
            conversation = shim.new(self.work)
            self.remember(shim)
            asked[conversation] = (name, *self.ask(shim, name))
        self.assertEqual(sorted(s["conversation_id"] for s in self.client().ask("plenum_list")["sessions"]), sorted(asked))
        for conversation, (name, prompt, ask) in asked.items():
            shim.conversation = conversation
            shim.answer(ask, shim.allow(ask) if name == "two" else shim.deny(ask))
            self.assertEqual(shim.end(prompt), "end_turn")
            self.assertEqual((self.work / name).exists(), name == "two")
        for conversation, (name, *_) in asked.items():
            shim.conversation = conversation
            history = self.history(shim)
            self.assertIn("touch " + name, history)
            self.assertNotIn("touch " + ("one" if name == "two" else "two"), history)
        self.assertEqual(self.leave(shim), 0)
        wait_until("its sessions have ended with it", lambda: not self.client().ask("plenum_list")["sessions"])
        self.agent.restart(self.place)
        again = self.shim()
        again.new(self.work)
        for conversation in asked:
            again.load(conversation, self.work)
            self.assertIn("quince", self.history(again))
        self.assertEqual(len(self.client().ask("plenum_list")["sessions"]), 3)

    def test_a_fork(self):
        client = self.connect()
        client.new(self.work)
        self.remember(client)
        first, second = client.conversation, client.fork(self.work)
        self.assertEqual(second is not None, self.forks)
        if not self.forks:
            return
        self.assertNotEqual(first, second)
        self.assertIn("quince", self.history(client))
        self.assertEqual(client.end(client.prompt("remember medlar")), "end_turn")
        client.conversation = first
        self.assertNotIn("medlar", self.history(client))
        self.assertEqual(len(self.client().ask("plenum_list")["sessions"]), 2)

    def test_the_shim(self):
        """plenum-shim where a program starts the agent: the agent's lines, and a session that ends with it."""
        shim = self.shim()
        shim.new(self.work)
        session, = self.client().ask("plenum_list")["sessions"]
        other = self.second(session["session"], shim.conversation)
        prompt, ask = self.ask(shim, "yes")
        offered = other.asked()
        other.answer(offered, other.allow(offered))
        shim.wait_withdrawal(ask)
        self.assertEqual(shim.end(prompt), "end_turn")
        other.close()
        self.assertTrue((self.work / "yes").exists())
        self.assertEqual(self.leave(shim), 0)
        self.assertEqual(shim.seen(lambda line: line.get("method", "").startswith("_plenum")), [])
        wait_until("its session has ended with it", lambda: not self.client().ask("plenum_list")["sessions"])

    # --- plenumctl ---

    def run_plenumctl(self, *words):
        return subprocess.Popen([str(self.build / "src/ctl/plenumctl"), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                stdin=subprocess.DEVNULL, text=True, cwd=self.work,
                                env=self.place.environment(PLENUM_SOCKET=self.daemon.socket))

    def plenumctl(self, *words):
        process = self.run_plenumctl(*words)
        out, err = process.communicate(timeout=DEADLINE)
        self.assertEqual(process.returncode, 0, out + err)
        return out

    def test_plenumctl(self):
        """send, pending, allow, deny, tail and interrupt, beside the editor."""
        client, session = self.first()
        self.assertEqual(self.plenumctl("send", session, "hello"), "echo: hello\n")
        for name, verb in (("yes", "allow"), ("no", "deny")):
            sender = self.run_plenumctl("send", session, self.agent.command("touch " + name))
            self.wait_state(session, "asking")
            self.assertIn("touch " + name, self.plenumctl("pending", session))
            self.assertIn("touch " + name, self.plenumctl(verb, session))
            out, err = sender.communicate(timeout=DEADLINE)
            self.assertEqual((self.work / name).exists(), verb == "allow", out + err)
        seen = self.plenumctl("tail", "-n", "all", "--no-follow", session)
        self.assertIn("\n> hello\necho: hello\n-- success, ", seen)
        self.assertRegex(seen, r"\n(\*|  =) .*touch yes")
        sender = self.run_plenumctl("send", session, self.agent.command("touch never"))
        self.wait_state(session, "asking")
        self.assertIn("interrupted", self.plenumctl("interrupt", session))
        self.assertIn("interrupted", sender.communicate(timeout=DEADLINE)[1])
        self.wait_state(session, "idle")
        self.assertFalse((self.work / "never").exists())


class SharedAcp(Shared):
    def test_load_from_the_tape(self):
        """A client that loads a running conversation joins it, and it alone has the lines again."""
        client, _ = self.first()
        self.remember(client)
        since, second = client.mark(), self.connect()
        second.load(client.conversation, self.work)
        self.assertEqual(second.prompts(), ["remember quince"])
        self.assertEqual(second.said(), "echo: remember quince")
        prompt, ask = self.ask(client, "yes")
        offered = second.asked()
        second.answer(offered, second.allow(offered))
        self.assertEqual(client.end(prompt), "end_turn")
        self.assertNotIn("quince", client.said(since))
        self.assertTrue((self.work / "yes").exists())
        self.assertEqual(len(self.client().ask("plenum_list")["sessions"]), 1)


class SharedGemini(SharedAcp, Case):
    agent = agents.GEMINI
    forks = False


class SharedClaudeAgentAcp(SharedAcp, Case):
    agent = agents.CLAUDE_ACP


class SharedCodex(Shared, Case):
    agent = agents.CODEX_SERVER

    def test_handles(self):
        """Both clients run a command and watch a path under the same handles; each sees its own."""
        first, session = self.first()
        second = self.second(session, first.conversation)
        clients = {"one": first, "two": second}
        for word, client in clients.items():
            (self.work / word).mkdir()
            client.call("fs/watch", watchId="w", path=str(self.work / word))
            client.call("process/spawn", processHandle="p", command=["cat"], cwd=str(self.work), streamStdin=True,
                        streamStdoutStderr=True, timeoutMs=None)
        runs = {word: client.begin("command/exec", processId="c", command=["sh", "-c", f"read x; echo {word} $x"],
                                   streamStdin=True, streamStdoutStderr=True, disableTimeout=True)
                for word, client in clients.items()}
        for word, client in clients.items():
            client.call("command/exec/write", processId="c", deltaBase64=base64.b64encode(b"go\n").decode())
            self.assertEqual(client.reply(runs[word])["result"]["exitCode"], 0)
            output = client.wait_message("command/exec/outputDelta")
            self.assertEqual(output["params"]["processId"], "c")
            self.assertEqual(base64.b64decode(output["params"]["deltaBase64"]).decode(), f"{word} go\n")
            (self.work / word / "file").touch()
            changed = client.wait_message("fs/changed")
            self.assertEqual((changed["params"]["watchId"], changed["params"]["changedPaths"]), ("w", [str(self.work / word / "file")]))
        first.close()  # its process ends with it, that of the other does not
        wait_until("one of the processes has ended", lambda: len(self.cats()) == 1)
        second.call("process/kill", processHandle="p")
        self.assertEqual(second.wait_message("process/exited")["params"]["processHandle"], "p")

    def test_requests_while_the_agent_sleeps(self):
        """Also before the first prompt, when the agent has lost the thread and begins another."""
        client, session = self.first()
        for prompts in range(2):
            if prompts:
                self.assertEqual(client.end(client.prompt("hello")), "end_turn")
            for method, member, params in (("model/list", "data", {}), ("config/read", "config", {}), ("skills/list", "data", {}),
                                           ("account/read", "requiresOpenaiAuth", {}), ("mcpServerStatus/list", "data", {}),
                                           ("thread/settings/update", None, {"threadId": client.conversation, "effort": "low"})):
                self.client().ask("plenum_hibernate", session=session)
                self.wait_state(session, "asleep")
                self.agent.restart(self.place)
                got = client.call(method, **params)
                self.assertTrue(member is None or member in got, (method, got))

    def cats(self):
        """The processes of `cat` in the working directory."""
        return [link for link in pathlib.Path("/proc").glob("[0-9]*/cwd") if self.is_cat(link)]

    def is_cat(self, link):
        try:
            return link.readlink() == self.work and (link.parent / "comm").read_text() == "cat\n"
        except OSError:
            return False

    def test_notifications_of_a_late_client(self):
        first, session = self.first()
        said = first.wait_message("remoteControl/status/changed")["params"]
        late = self.connect(session)
        self.assertEqual(late.wait_message("remoteControl/status/changed")["params"], said)
        late.call("initialize", clientInfo={"name": "e2e", "title": "e2e", "version": "1"},
                  capabilities={"experimentalApi": True, "optOutNotificationMethods": ["item/agentMessage/delta"]})
        since = first.mark()
        self.assertEqual(first.end(first.prompt("hello"), since), "end_turn")
        late.wait_message("turn/completed")
        self.assertEqual(first.said(since), "echo: hello")
        self.assertEqual(late.said(), "")
