#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""client.py SESSION PROMPT: sends one prompt, asks the agent's questions on the terminal, prints the answer.

It survives a lost connection: it continues after its last line (plenum_seq), and its prompt runs once, because it is
sent again under the same uuid and the same client name."""
import json
import os
import socket
import sys
import time
import uuid

PATH = os.environ.get("PLENUM_SOCKET") or os.environ.get("XDG_RUNTIME_DIR", "/run") + "/plenum/plenum.sock"


def talk(attach, prompt):
    """One connection, until the turn of this prompt has ended: return its turn_ended; None if the daemon closed
    before."""
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(PATH)
        stream = s.makefile("rwb")

        def send(line):
            stream.write(json.dumps(line).encode() + b"\n")
            stream.flush()

        send({"type": "control_request", "request_id": "attach", "request": attach})
        send(prompt)
        cut = False
        for line in map(json.loads, stream):
            if "plenum_seq" in line:
                attach["replay"] = {"after": line["plenum_seq"]}
            kind = line["type"]
            if kind == "control_response" and line["response"]["subtype"] == "error":
                sys.exit(line["response"]["error"])
            elif kind == "control_response":  # of the attach; after a crash of the daemon the turn does not go on
                now = line["response"]["response"]
                cut = now["replay_cut"] and now["state"] not in ("busy", "asking")
            elif line.get("code") == "duplicate_request" and cut:
                sys.exit("the turn was cut")
            elif kind == "control_request" and line["request"]["subtype"] == "can_use_tool":
                ask = line["request"]
                yes = input("%s %s? [y/n] " % (ask["tool_name"], json.dumps(ask["input"]))) == "y"
                send({"type": "control_response", "response": {
                    "subtype": "success", "request_id": line["request_id"],
                    "response": {"behavior": "allow"} if yes else {"behavior": "deny", "message": "the person said no"}}})
            elif kind == "assistant":
                for block in line["message"]["content"]:
                    if block["type"] == "text":
                        print(block["text"])
            elif line.get("event") == "turn_ended" and prompt["uuid"] in line["uuids"]:
                return line
    return None


def main(session, text):
    attach = {"subtype": "plenum_attach", "session": session, "name": "example", "tag": True, "partial": False}
    prompt = {"type": "user", "uuid": str(uuid.uuid4()), "message": {"role": "user", "content": text}}
    while True:
        try:
            ended = talk(attach, prompt)
            if ended:
                return 1 if ended["is_error"] else 0
        except OSError as e:
            print("%s: %s" % (PATH, e), file=sys.stderr)
        time.sleep(1)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
