# SPDX-License-Identifier: MIT
"""Lines of JSON-RPC as long as the limits allow, with their ids at the end."""
import unittest

from acp import AcpCase
from codex import COMMAND, CodexCase
from harness import dump

LIMIT = 64 << 20


def padded(before, after):
    return before + b"x" * (LIMIT - len(before) - len(after) - 64) + after  # a client's id is longer than the agent's


class LongLines:
    def test_an_ask_and_its_answer(self):
        _, _, child, a, b = self.open(2)
        self.turn(child, a)
        ask = padded(b"{" + self.HEAD + b'"params":{' + self.ASK + b',"pad":"', b'"},"method":"' + self.METHOD + b'","id":')
        child.print(ask + b"71}\n")
        for c in (a, b):
            asked = c.wait(method=self.METHOD.decode())
            self.assertTrue(asked.raw == ask + dump(asked["id"]) + b"}")
        answer = padded(b"{" + self.HEAD + b'"result":{' + self.ANSWER + b',"pad":"', b'"},"id":')
        b.send(answer + dump(asked["id"]) + b"}")
        self.assertTrue(child.wait(id=71).raw == answer + b"71}")

    def test_a_prompt_and_an_update(self):
        _, _, child, a, b = self.open(2)
        prompt = padded(b"{" + self.HEAD + b'"params":{' + self.PROMPT + b',"pad":"', b'"},"method":"' + self.START + b'","id":')
        a.send(prompt + b'"mine"}')
        got = child.wait(method=self.START.decode())
        self.assertTrue(got.raw == prompt + dump(got["id"]) + b"}")
        update = padded(b"{" + self.HEAD + b'"params":{' + self.UPDATE + b',"pad":"', b'"},"method":"' + self.SAYS + b'"}')
        child.print(update + b"\n")
        for c in (a, b):
            self.assertTrue(c.wait(lambda m: len(m.raw) == len(update), method=self.SAYS.decode()).raw == update)

    def test_a_refused_request(self):
        _, _, _, a, _ = self.open(2)
        a.send(b"{" + self.HEAD + b'"x":1,' * 1000000 + b'"method":"x","id":"mine"}')
        self.assertIn("4,096 members", a.wait(id="mine")["error"]["message"])


class Acp(LongLines, AcpCase):
    HEAD = b'"jsonrpc":"2.0",'
    METHOD, START, SAYS = b"session/request_permission", b"session/prompt", b"session/update"
    ASK = (b'"sessionId":"c1","toolCall":{"toolCallId":"t","kind":"execute"},'
           b'"options":[{"optionId":"yes","name":"Yes","kind":"allow_once"}]')
    ANSWER = b'"outcome":{"outcome":"selected","optionId":"yes"}'
    PROMPT = b'"sessionId":"c1","prompt":[{"type":"text","text":"hi"}]'
    UPDATE = b'"sessionId":"c1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x"}}'


class Codex(LongLines, CodexCase):
    HEAD = b""
    METHOD, START, SAYS = COMMAND.encode(), b"turn/start", b"item/agentMessage/delta"
    ASK = b'"threadId":"t1","turnId":"turn1","itemId":"i1","command":"touch x"'
    ANSWER = b'"decision":"accept"'
    PROMPT = b'"threadId":"t1","input":[{"type":"text","text":"hi"}]'
    UPDATE = b'"threadId":"t1","turnId":"turn1","itemId":"i1","delta":"x"'


if __name__ == "__main__":
    unittest.main()
