# SPDX-License-Identifier: MIT
"""The real agents with JSON-RPC, without a daemon: what the dialects acp and codex rely on (protocol-facts 9.5)."""

import agents
from harness import Case, wait_until


class Conversation:
    """The script of every agent."""

    agent = None
    only_cli = "2.1.332"  # once
    needs_daemon = False

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
        prompts = [update["content"]["text"] for update in again.updates("user_message_chunk")]
        self.assertEqual([text for text in prompts if text.startswith("fruit")], [f"fruit {n}" for n in range(10)])
        self.assertIn("echo: fruit 9", again.said())
        self.history(again)
        self.assertEqual(again.updates("user_message_chunk", until), [])  # prompts are not echoed
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
