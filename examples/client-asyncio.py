#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""client-asyncio.py SESSION PROMPT: client.py in asyncio. It goes on reading while a person thinks, closes a question
that another client has answered, and continues after its last line if the connection is lost."""
import asyncio
import json
import os
import sys
import uuid

PATH = os.environ.get("PLENUM_SOCKET") or os.environ.get("XDG_RUNTIME_DIR", "/run") + "/plenum/plenum.sock"


class Client:
    def __init__(self, session, text):
        self.attach = {"subtype": "plenum_attach", "session": session, "name": "example", "tag": True, "partial": False}
        self.prompt = {"type": "user", "uuid": str(uuid.uuid4()), "message": {"role": "user", "content": text}}
        self.questions = {}  # open ones: their tasks, by id
        self.terminal = asyncio.Lock()  # one question at a time

    def send(self, line):
        self.writer.write(json.dumps(line).encode() + b"\n")

    async def ask(self, rid, request):
        async with self.terminal:
            print("%s %s? [y/n] " % (request["tool_name"], json.dumps(request["input"])), end="", flush=True)
            yes = (await self.typed.readline()).strip() == b"y"
        self.send({"type": "control_response", "response": {
            "subtype": "success", "request_id": rid,
            "response": {"behavior": "allow"} if yes else {"behavior": "deny", "message": "the person said no"}}})

    def close(self, rid):
        task = self.questions.pop(rid, None)
        if task:
            task.cancel()

    def take(self, line):
        """Return the turn_ended of the prompt."""
        kind = line["type"]
        if "plenum_seq" in line:
            self.attach["replay"] = {"after": line["plenum_seq"]}
        if kind == "control_response" and line["response"]["subtype"] == "error":
            sys.exit(line["response"]["error"])
        elif kind == "control_response":  # of the attach; after a crash of the daemon the turn does not go on
            now = line["response"]["response"]
            self.cut = now["replay_cut"] and now["state"] not in ("busy", "asking")
        elif line.get("code") == "duplicate_request" and self.cut:
            sys.exit("the turn was cut")
        elif kind == "control_request" and line["request"]["subtype"] == "can_use_tool":
            self.questions[line["request_id"]] = asyncio.create_task(self.ask(line["request_id"], line["request"]))
        elif kind == "control_cancel_request":
            self.close(line["request_id"])
        elif kind == "assistant":
            for block in line["message"]["content"]:
                if block["type"] == "text":
                    print(block["text"])
        elif line.get("event") == "turn_ended" and self.prompt["uuid"] in line["uuids"]:
            return line
        return None

    async def connection(self):
        """One connection, until the turn has ended; None if the daemon closed before."""
        reader, self.writer = await asyncio.open_unix_connection(PATH, limit=1 << 26)  # bytes of the longest line
        try:
            self.send({"type": "control_request", "request_id": "attach", "request": self.attach})
            self.send(self.prompt)
            async for raw in reader:
                ended = self.take(json.loads(raw))
                if ended:
                    return ended
        finally:
            for rid in list(self.questions):
                self.close(rid)
            self.writer.close()
        return None

    async def run(self):
        self.typed = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(self.typed), sys.stdin)
        while True:
            try:
                ended = await self.connection()
                if ended:
                    return 1 if ended["is_error"] else 0
            except OSError as e:
                print("%s: %s" % (PATH, e), file=sys.stderr)
            await asyncio.sleep(1)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(asyncio.run(Client(*sys.argv[1:]).run()))
