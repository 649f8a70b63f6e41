# SPDX-License-Identifier: MIT
"""Base of the end-to-end tests: the loopback model, a private daemon with the real CLI, clients in plain Python.

It knows nothing of the daemon's internals: a client writes lines to a socket and reads lines from it.
"""

import contextlib
import itertools
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGES = HERE / "node_modules" / "@anthropic-ai"
CLIS = {
    "2.1.332": PACKAGES / "claude-agent-sdk-linux-x64" / "claude",
    "2.1.197": PACKAGES / "claude-code-linux-x64" / "claude",
}
FLAGS = [
    "-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose",
    "--permission-prompt-tool", "stdio", "--include-partial-messages", "--replay-user-messages",
]
PATH = "/usr/bin:/bin"
# Seconds until an expected state counts as missing; a machine of two cores may be busy, and only a failure waits.
DEADLINE = float(os.environ.get("PLENUM_E2E_DEADLINE", 120))


def wait_until(what, test, timeout=DEADLINE, step=0.02):
    """Poll `test` until its value is true; return the value."""
    end = time.monotonic() + timeout
    while True:
        value = test()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {timeout:.0f} s: {what}")
        time.sleep(step)


def alive(pid):
    """Return true if the process exists and is not a zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def processes_with(mark):
    """Return pids whose environment contains the text: finds leftovers of a test with any parent."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            if mark.encode() in (entry / "environ").read_bytes() and alive(int(entry.name)):
                found.append(int(entry.name))
    return found


def command_of(pid):
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    return ""


def end_process(process, patience=15.0):
    """SIGTERM, then SIGKILL; reaps."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            process.kill()
    return process.wait()


class Api:
    """The loopback model; one serves a whole run."""

    def __init__(self, log=None, script=None):
        words = [str(log or "/dev/null"), str(script)] if script else [str(log)] if log else []
        self.process = subprocess.Popen(
            ["node", str(HERE / "loopback-api.mjs")] + words,
            stdout=subprocess.PIPE, text=True,
        )
        self.url = self.process.stdout.readline().split()[-1]

    def close(self):
        end_process(self.process)
        self.process.stdout.close()


def cli_environment(api_url):
    """The environment of the real CLI without a key, an account or the internet."""
    return {
        "ANTHROPIC_BASE_URL": api_url,
        "ANTHROPIC_API_KEY": "dummy",
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS": "1",
        "NO_PROXY": "127.0.0.1",  # the machine may have one
        "no_proxy": "127.0.0.1",
    }


class Place:
    """A private home, runtime, state and work directory; knows every process started from it."""

    def __init__(self, name):
        self.root = Path(tempfile.mkdtemp(prefix=f"plenum-e2e-{name[:24]}-"))
        self.home, self.run, self.state, self.work, self.temporary = (
            self.root / sub for sub in ("home", "run", "state", "work", "tmp"))
        for folder in (self.home, self.run, self.state, self.work, self.temporary):
            folder.mkdir(mode=0o700)
        self.be_a_repository()
        self.mark = f"PLENUM_E2E_PLACE={self.root}"

    def be_a_repository(self):
        """Agents look for their project from the work directory up: a .git in /tmp would make all tests share rules."""
        for part in ("objects", "refs"):
            (self.root / ".git" / part).mkdir(parents=True)
        (self.root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")

    def of_agent(self):
        """What each agent gets, whatever starts it. Claude and codex keep files of all their processes in /tmp, unless
        they are given another directory."""
        return {
            "HOME": str(self.home), "PATH": PATH, "PLENUM_E2E_PLACE": str(self.root),
            "TMPDIR": str(self.temporary), "CLAUDE_CODE_TMPDIR": str(self.temporary),
        }

    def environment(self, **more):
        return {
            **self.of_agent(), "XDG_RUNTIME_DIR": str(self.run), "XDG_STATE_HOME": str(self.state),
            "XDG_CONFIG_HOME": str(self.home / ".config"), "LANG": "C.UTF-8", **more,
        }

    def leftovers(self):
        return processes_with(self.mark)

    def remove(self):
        def ended():
            left = self.leftovers()
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return not left
        wait_until("no process of the test is left", ended)
        shutil.rmtree(self.root, ignore_errors=True)


class Daemon:
    """A private plenumd whose default profile runs the real CLI."""

    def __init__(self, build, cli, api, place, settings=(), profile=()):
        self.place = place
        self.socket = str(place.run / "plenum" / "plenum.sock")
        self.log = place.root / "plenumd.log"
        self.program = Path(build) / "src" / "plenumd"
        if not self.program.exists():
            self.program = next(Path(build).rglob("plenumd"))
        self.config = place.root / "plenum.conf"
        self.write_config(cli, api, settings, profile)
        self.process = None
        self.start()

    def write_config(self, cli, api, settings, profile):
        self.write_profile("claude", [str(cli), *FLAGS], cli_environment(api.url), settings,
                           ["resume_args = --resume={id}", *profile])

    def write_profile(self, dialect, argv, environment, settings, more):
        child = {**environment, **self.place.of_agent()}
        lines = ["[daemon]", "default_profile = real", "log_level = debug", "memory_pressure = no", *settings, "",
                 "[profile real]", "command = " + shlex.join(argv), f"dialect = {dialect}", f"cwd = {self.place.work}",
                 "env = " + shlex.join(f"{name}={value}" for name, value in child.items()), *more, ""]
        self.config.write_text("\n".join(lines))

    def start(self):
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [str(self.program), "--config", str(self.config)], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=self.place.environment(), cwd=self.place.root,
            )
        wait_until("the daemon takes connections", self.answers)

    def answers(self):
        assert self.process.poll() is None, f"plenumd ended with {self.process.returncode}:\n{self.log_tail()}"
        probe = socket.socket(socket.AF_UNIX)
        with contextlib.closing(probe), contextlib.suppress(OSError):
            probe.connect(self.socket)
            return True
        return False

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        return end_process(self.process, 30)

    def log_tail(self, lines=30):
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:]) if self.log.exists() else ""


class Client:
    """One end of a JSON Lines stream. A thread reads; `wait` searches all received lines."""

    numbers = itertools.count(1)

    def __init__(self, reader, writer, close):
        self.reader, self.writer, self._close = reader, writer, close
        self.process = None
        self.lines, self.raw = [], []
        self.ended = False
        self.handlers = {}  # subtype of a request from the child -> function of the line: the answer, or None
        self.changed = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    # --- connecting ---

    @classmethod
    def connect(cls, path):
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(str(path))
        stream = sock.makefile("rwb", buffering=0)

        def close():
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()

        client = cls(sock.makefile("rb", buffering=1 << 18), stream, close)
        client.sock = sock
        return client

    @classmethod
    def run(cls, argv, **options):
        """A client in a process of its own (so that it can be killed): its stdin and stdout are the stream."""
        process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, **options)

        def close():
            with contextlib.suppress(OSError):
                process.stdin.close()
            if process.poll() is None:
                process.kill()
            process.wait()

        client = cls(open(process.stdout.fileno(), "rb", closefd=False), process.stdin, close)
        client.process = process
        return client

    def _read(self):
        try:
            for raw in self.reader:
                line = json.loads(raw)
                answer = self._answer(line)
                with self.changed:
                    self.raw.append(raw)
                    self.lines.append(line)
                    self.changed.notify_all()
                if answer is not None:
                    self.send(answer)
        except (OSError, ValueError) as problem:
            self.problem = problem
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def _answer(self, line):
        if line.get("type") != "control_request":
            return None
        handler = self.handlers.get(line["request"].get("subtype"))
        body = handler(line) if handler else None
        return None if body is None else success(line["request_id"], body)

    def close(self):
        self._close()

    def kill(self):
        """The process dies without closing properly."""
        self.process.kill()
        self.process.wait()

    # --- writing ---

    def send(self, line):
        data = line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n"
        with contextlib.suppress(BrokenPipeError, ValueError):
            view = memoryview(data)
            while view:
                view = view[self.writer.write(view):]

    def prompt(self, text, uuid=None):
        uuid = uuid or f"e2e-{next(Client.numbers)}-{os.getpid()}"
        self.send({"type": "user", "uuid": uuid, "message": {"role": "user", "content": text}})
        return uuid

    def answer(self, request, body):
        self.send(success(request["request_id"], body))

    # --- reading ---

    def mark(self):
        with self.changed:
            return len(self.lines)

    def wait(self, what, test, since=0, timeout=DEADLINE):
        """Return the first line from `since` on for which the test is true."""
        end = time.monotonic() + timeout
        with self.changed:
            while True:
                for line in self.lines[since:]:
                    if test(line):
                        return line
                since = max(since, len(self.lines))
                left = end - time.monotonic()
                if left <= 0 or self.ended:
                    break
                self.changed.wait(left)
        why = "the stream ended" if self.ended else f"not within {timeout:.0f} s"
        raise AssertionError(f"{why}: {what}\n{self.tail()}")

    def wait_end(self, timeout=DEADLINE):
        wait_until("the stream ends", lambda: self.ended, timeout)

    def seen(self, test, since=0):
        with self.changed:
            return [line for line in self.lines[since:] if test(line)]

    def tail(self, count=25):
        with self.changed:
            shown = [raw.decode(errors="replace").rstrip() for raw, line in zip(self.raw, self.lines)
                     if line.get("type") != "stream_event"][-count:]
        return "\n".join("    " + (text if len(text) < 400 else text[:300] + " ... " + text[-90:]) for text in shown)

    # --- the protocol ---

    def request(self, subtype, timeout=DEADLINE, **members):
        """Send a control request; return the `response` object of its answer."""
        name = f"{subtype}-{next(Client.numbers)}"
        self.send({"type": "control_request", "request_id": name, "request": {"subtype": subtype, **members}})
        line = self.wait(f"the answer to {subtype}", lambda l: l.get("type") == "control_response"
                         and l["response"].get("request_id") == name, timeout=timeout)
        return line["response"]

    def ask(self, subtype, **members):
        """Like request(), for a success: return the payload."""
        response = self.request(subtype, **members)
        assert response["subtype"] == "success", f"{subtype}: {response}\n{self.tail()}"
        return response.get("response") or {}

    def refused(self, subtype, code, **members):
        response = self.request(subtype, **members)
        assert response["subtype"] == "error" and response.get("code") == code, f"{subtype}: not {code}: {response}"
        assert response.get("error"), f"{subtype}: {code} without a sentence"
        return response

    def wait_request(self, subtype, since=0, where=lambda request: True, timeout=DEADLINE):
        return self.wait(f"a {subtype} request", lambda l: l.get("type") == "control_request"
                         and l["request"].get("subtype") == subtype and where(l["request"]), since, timeout)

    def wait_cancel(self, request, since=0):
        return self.wait("the request is withdrawn", lambda l: l.get("type") == "control_cancel_request"
                         and l.get("request_id") == request["request_id"], since)

    def wait_event(self, event, since=0, timeout=DEADLINE, **members):
        def matches(line):
            return is_event(line, event) and all(line.get(name) == value for name, value in members.items())
        return self.wait(f"the event {event} {members or ''}", matches, since, timeout)

    def wait_result(self, uuid=None, since=0, timeout=DEADLINE):
        """Return the result of the prompt's turn: by uuid; 2.1.197 names none: the next after the replay."""
        if uuid is None:
            return self.wait("a result", lambda l: l.get("type") == "result", since, timeout)
        replayed = []

        def matches(line):
            if line.get("type") == "user" and line.get("isReplay") and line.get("uuid") == uuid:
                replayed.append(line)
            if line.get("type") != "result":
                return False
            named = line.get("user_message_uuids") or [line.get("user_message_uuid")]
            return uuid in named if named != [None] else bool(replayed)

        return self.wait(f"the result of {uuid}", matches, since, timeout)

    def turn(self, text):
        since = self.mark()
        return self.wait_result(self.prompt(text), since)

    def allow_everything(self):
        self.handlers["can_use_tool"] = lambda line: allow(line)


def success(request_id, body):
    return {"type": "control_response", "response": {"subtype": "success", "request_id": request_id, "response": body}}


def allow(request):
    return {"behavior": "allow", "updatedInput": request["request"]["input"]}


def deny(reason="not today"):
    return {"behavior": "deny", "message": reason}


def is_event(line, event):
    return line.get("type") == "system" and line.get("subtype") == "plenum_event" and line.get("event") == event


def is_ask(line):
    return line.get("type") == "control_request" and line["request"].get("subtype") == "can_use_tool"


def for_command(command):
    """Return a test for can_use_tool requests."""
    return lambda request: request["input"].get("command") == command


def tool_results(client, since=0):
    """Return the tool results printed by the CLI, in order."""
    found = []
    for line in client.seen(lambda l: l.get("type") == "user" and not l.get("isReplay"), since):
        content = line["message"]["content"]
        found += [block for block in content if isinstance(block, dict) and block.get("type") == "tool_result"] \
            if isinstance(content, list) else []
    return found


def text_of(block):
    content = block.get("content")
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content or [])


def bash(command, **more):
    return "@tool Bash " + json.dumps({"command": command, **more}) + "@"


def mcp_server(name, tools):
    """Return a handler of `mcp_message`: an in-process MCP server like an SDK's. `tools`: name -> function of
    arguments."""

    def reply(message):
        method = message.get("method")
        if method == "initialize":
            return {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
                    "serverInfo": {"name": name, "version": "1"}}
        if method == "tools/list":
            return {"tools": [{"name": tool, "description": tool, "inputSchema": {"type": "object"}} for tool in tools]}
        if method == "tools/call":
            text = tools[message["params"]["name"]](message["params"].get("arguments", {}))
            return None if text is None else {"content": [{"type": "text", "text": text}]}
        return {}

    def handle(line):
        message = line["request"]["message"]
        result = reply(message)
        if result is None:
            return None
        return {"mcp_response": {"jsonrpc": "2.0", "id": message.get("id", 0), "result": result}}

    return handle


class Case(unittest.TestCase):
    """A test with a daemon of its own. The runner sets the class members before it starts."""

    build = cli = cli_version = api = None
    settings, profile = (), ()
    needs_daemon = True
    only_cli = None

    def setUp(self):
        self.place = Place(self._testMethodName)
        self.addCleanup(self.place.remove)
        self.daemon = None
        self.evidence = ""  # printed by the runner for a failed test
        if self.needs_daemon:
            self.addCleanup(self._keep_evidence)
            self.daemon = self.make_daemon()
            self.addCleanup(self.daemon.stop)

    def make_daemon(self):
        return Daemon(self.build, self.cli, self.api, self.place, self.settings, self.profile)

    def _keep_evidence(self):
        log = self.place.root / "plenumd.log"
        self.evidence = "\n".join(log.read_text(errors="replace").splitlines()[-40:]) if log.exists() else ""

    @property
    def work(self):
        return self.place.work

    def client(self, session=None, handlers=None, **attach):
        """A client in this process, attached if a session is given; its attach answer is in `.attached`.

        `handlers`: for requests right after the attach."""
        client = Client.connect(self.daemon.socket)
        client.handlers.update(handlers or {})
        return self._attach(client, session, attach)

    def process_client(self, session=None, **attach):
        """A client in a process of its own, for kill()."""
        argv = ["socat", "-b", "262144", "-t", "60", "-", f"UNIX-CONNECT:{self.daemon.socket}"]
        return self._attach(Client.run(argv, env=self.place.environment()), session, attach)

    def _attach(self, client, session, members):
        self.addCleanup(client.close)
        if session:
            client.attached = client.ask("plenum_attach", session=session, cwd=str(self.work), **members)
        return client

    def state(self, session):
        client = Client.connect(self.daemon.socket)
        try:
            return client.ask("plenum_status", session=session)
        finally:
            client.close()

    def wait_state(self, session, *states):
        def there():
            status = self.state(session)
            return status if status["state"] in states else None
        return wait_until(f"{session} is {' or '.join(states)}", there, step=0.05)

    def wait_written(self, conversation, text):
        """Wait until the CLI has the text in its transcript: it writes a little after it answers, and SIGKILL loses
        that."""
        def written():
            for folder, _, names in os.walk(self.place.home):  # the CLI makes and removes others meanwhile
                for name in names:
                    if conversation[:8] in name and name.endswith(".jsonl") \
                            and text in Path(folder, name).read_text(errors="replace"):
                        return True
            return False
        wait_until(f"the transcript of {conversation} holds {text!r}", written)

    def direct(self, *args, **env):
        """The real CLI itself as the other end, without a daemon."""
        environment = self.place.environment(**cli_environment(self.api.url), **env)
        client = Client.run([str(self.cli), *FLAGS, *args], env=environment, cwd=self.work)
        self.addCleanup(client.close)
        return client
