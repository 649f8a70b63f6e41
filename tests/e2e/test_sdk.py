# SPDX-License-Identifier: MIT
"""The real TypeScript client: the same program on the real CLI and on plenum-shim must record the same."""

import json
import re
import subprocess

from harness import DEADLINE, HERE, Case, cli_environment, mcp_server

ID = re.compile(r"\b(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|toolu_\d+|msg_\d+|req_\w+|[0-9a-f]{16,})\b")
CHANCE = re.compile(r"(_ms|_usd|timestamp|cost|USD|duration|ttft|pid|messaging_socket_path|_tokens)", re.I)


class Normal:
    """The same record for two runs that differ only in names, times and places."""

    def __init__(self, place):
        self.place, self.names = place, {}

    def text(self, text):
        root = str(self.place.root)
        text = text.replace(root, "ROOT").replace(re.sub(r"[^A-Za-z0-9]", "-", root), "ROOT")
        return ID.sub(lambda match: self.names.setdefault(match.group(), f"id{len(self.names)}"), text)

    def value(self, value):
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(member) for member in value]
        if isinstance(value, dict):
            return {name: "CHANCE" if CHANCE.search(name) else self.value(member)
                    for name, member in sorted(value.items())}
        return value

    def frames(self, frames):
        """The pieces of a text are joined: the CLI splits them depending on time."""
        out = []
        for frame in frames:
            delta = frame.get("event", {}).get("delta", {}) if frame.get("type") == "stream_event" else {}
            if "text" in delta and out and out[-1].get("joined"):
                out[-1]["text"] += delta["text"]
            elif "text" in delta:
                out.append({"joined": True, "text": delta["text"]})
            else:
                out.append(self.value(frame))
        return out

    def record(self, seen):
        return {"frames": self.frames(seen["frames"]), "callbacks": self.value(seen["callbacks"]),
                "calls": self.value(seen["calls"]), "end": self.text(str(seen["end"])),
                "stderr": self.text(seen["stderr"])}


class Program(Case):
    """Runs the program on the real CLI or on the shim."""

    def start(self, scenario, executable, **env):
        environment = self.place.environment(**cli_environment(self.api.url), **env)
        del environment["CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS"]
        node = subprocess.run(["which", "node"], capture_output=True, text=True, check=True).stdout.strip()
        return subprocess.Popen([node, str(HERE / "sdk-program.mjs"), scenario, str(executable)], env=environment,
                                cwd=self.work, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def finish(self, process):
        out, err = process.communicate(timeout=3 * DEADLINE)  # it starts the CLI several times
        self.assertEqual(process.returncode, 0, err)
        return json.loads(out.splitlines()[-1])

    def shim(self, scenario, **env):
        return self.start(scenario, next(self.build.rglob("plenum-shim")), PLENUM_SOCKET=self.daemon.socket,
                          PLENUM_CLAUDE=str(self.cli), **dict({"PLENUM_PROFILE": "real"}, **env))


class Sdk(Program):
    def same(self, scenario, made=None):
        direct = self.finish(self.start(scenario, self.cli))
        if made is not None:
            self.assertEqual((self.work / "made").exists(), made)
            (self.work / "made").unlink(missing_ok=True)
        through = self.finish(self.shim(scenario))
        if made is not None:
            self.assertEqual((self.work / "made").exists(), made)
        self.maxDiff = 4000
        one, two = Normal(self.place).record(direct), Normal(self.place).record(through)
        self.assertEqual([kind(frame) for frame in one["frames"]], [kind(frame) for frame in two["frames"]])
        self.assertEqual(one, two)
        return through

    def test_text(self):
        self.assertEqual(self.same("text")["frames"][-1]["result"], "echo: hello")

    def test_partial(self):
        self.same("partial")

    def test_several(self):
        self.same("several")

    def test_allow(self):
        self.assertEqual(len(self.same("allow", made=True)["callbacks"]), 1)

    def test_deny(self):
        self.assertEqual(len(self.same("deny", made=False)["callbacks"]), 1)

    def test_deny_and_interrupt(self):
        self.same("stop", made=False)

    def test_changed_input(self):
        self.same("changed", made=True)

    def test_callback_that_throws(self):
        self.same("throws", made=False)

    def test_nobody_to_ask(self):
        self.same("unasked", made=False)

    def test_hooks(self):
        self.assertEqual({call["name"] for call in self.same("hooks", made=True)["callbacks"]},
                         {"canUseTool", "hook UserPromptSubmit", "hook PreToolUse", "hook PostToolUse", "hook Stop"})

    def test_guard(self):
        self.same("guard", made=False)

    def test_mcp(self):
        self.assertEqual([call["name"] for call in self.same("mcp")["callbacks"]], ["tool add"])

    def test_interrupt(self):
        self.same("interrupt")

    def test_settings(self):
        self.same("settings")

    def test_options(self):
        self.same("options")

    def test_resume(self):
        self.assertIn("quince", self.same("resume")["frames"][-1]["result"])

    def test_failing(self):
        self.same("failing")

    def test_lost(self):
        self.assertIn("No conversation found", json.dumps(self.same("lost")))

    def test_two_programs_on_one_session(self):
        watch = self.shim("watch", PLENUM_SESSION="team", PLENUM_NAME="watch")
        self.assertEqual(watch.stdout.readline(), "ready\n")
        drive = self.finish(self.shim("drive", PLENUM_SESSION="team", PLENUM_NAME="drive"))
        watched = self.finish(watch)
        self.assertFalse((self.work / "made").exists())
        self.assertEqual([call["name"] for call in watched["callbacks"]], ["hook PreToolUse"])
        self.assertIn("guarded", json.dumps(drive["frames"]))
        self.assertEqual(drive["end"], "ok")
        # further lines after a result, before the end of a program that has ended its input, depend on time
        results = [[frame["result"] for frame in seen["frames"] if frame["type"] == "result"] for seen in (watched, drive)]
        self.assertEqual(*results)
        self.assertEqual(len(results[0]), 1)
        self.assertEqual(self.client("team").turn("it stays")["result"], "echo: it stays")


class Refused(Program):
    """A program whose initialize is refused ends with the reason, and runs nothing without its guard."""
    settings = ("approve_uids = 65534",)

    def refused(self, process, reason):
        seen = self.finish(process)
        self.assertIn("exited with code 1", seen["end"])
        self.assertIn(reason, seen["stderr"])
        self.assertEqual([frame for frame in seen["frames"] if frame["type"] in ("assistant", "result")], [])
        self.assertEqual(seen["callbacks"], [])
        self.assertFalse((self.work / "made").exists())
        return seen

    def test_a_guard(self):
        self.refused(self.shim("guard"), "initialize with `hooks`")

    def test_a_guard_in_a_session_of_others(self):
        watcher = self.client("team")
        self.refused(self.shim("guard", PLENUM_SESSION="team"), "this user is not among the approvers")
        self.assertEqual(watcher.turn("it stays")["result"], "echo: it stays")
        self.assertEqual(watcher.seen(lambda line: line.get("isReplay") and "made" in str(line)), [])


class RefusedServer(Refused):
    """The same for a server whose name another client holds."""
    settings = ()
    test_a_guard = test_a_guard_in_a_session_of_others = None

    def test_a_server_whose_name_is_taken(self):
        watcher = self.client("team", {"mcp_message": mcp_server("calc", {})}, mcp_servers=["calc"])
        self.refused(self.shim("mcp", PLENUM_SESSION="team"), "calc\" belongs to another attachment")
        self.assertEqual(watcher.turn("it stays")["result"], "echo: it stays")


def kind(frame):
    if frame.get("joined"):
        return "text"
    parts = (frame["type"], frame.get("subtype"), frame.get("event", {}).get("type"), frame.get("state"),
             frame.get("status"))
    return "/".join(str(part) for part in parts if part)
