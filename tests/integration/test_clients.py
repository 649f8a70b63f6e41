# SPDX-License-Identifier: MIT
"""Clients as their authors write them: the programs of plenum-client(3), those in examples/, and the commands of the README
and of plenum(7), each run against a daemon with the scripted agent."""
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import unittest

from harness import TIMEOUT, Daemon, build_file, until
from test_manual import FakeAgent, plain, read, ROOT

BUILD = os.path.dirname(os.path.dirname(build_file("plenumd")))
TOOL = '@text hi@ @tool Bash {"command":"echo"}@'


def marked(page, mark):
    """{name: text} of the literal blocks of a page from `.\\" MARK NAME` to `.\\" end`, without the prose between them."""
    parts = re.findall(r'^\.\\" %s (\S+)\n(.*?)^\.\\" end$' % mark, read("man", page), re.MULTILINE | re.DOTALL)
    return {name: plain(re.sub(r"^\.Ed\n.*?^\.Bd .*?\n", "", text, flags=re.MULTILINE | re.DOTALL)) for name, text in parts}


def sanitizers():
    """The options of the compiler that a program needs if the library was built with sanitizers."""
    with open(build_file("plenumd"), "rb") as f:
        return ["-fsanitize=address,undefined"] if b"__asan_init" in f.read() else []


def compile_c(folder, name, source, *libraries):
    """Compile a program against the library in the build directory; return its path."""
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", *libraries], capture_output=True, text=True,
                           check=True).stdout.split() if libraries else []
    lib, program = os.path.join(BUILD, "src", "lib"), os.path.join(folder, name)
    subprocess.run([os.environ.get("CC", "cc"), "-Wall", "-Wextra", "-Werror", *sanitizers(), "-I", os.path.join(ROOT, "include"),
                    "-x", "c", "-", "-x", "none", "-L", lib, "-Wl,-rpath," + lib, "-lplenum", *flags, "-o", program],
                   input=source, text=True, check=True)
    return program


class Relay:
    """A socket whose connections go to another one until they are cut; then it is not there until accept()."""

    def __init__(self, to, path):
        self.to, self.path, self.ends, self.listener = to, path, [], None
        self.accept()

    def accept(self):
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen()
        threading.Thread(target=self.serve, args=(self.listener,), daemon=True).start()

    def serve(self, listener):
        while True:
            try:
                here, _ = listener.accept()
            except OSError:
                return
            there = socket.socket(socket.AF_UNIX)
            there.connect(self.to)
            self.ends += [here, there]
            for pair in ((here, there), (there, here)):
                threading.Thread(target=self.copy, args=pair, daemon=True).start()

    def copy(self, source, sink):
        try:
            for data in iter(lambda: source.recv(65536), b""):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def cut(self):
        os.unlink(self.path)
        self.close()

    def close(self):
        for end in [self.listener, *self.ends]:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            end.close()
        self.ends = []


class Clients(FakeAgent):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = tempfile.mkdtemp(prefix="plenum-clients-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)

    def run_client(self, argv, typed="", status=0):
        p = subprocess.run(argv, input=typed, capture_output=True, text=True, timeout=60, cwd=self.folder,
                           env={**os.environ, "PLENUM_SOCKET": self.daemon.socket})
        self.assertEqual((p.returncode, p.stderr), (status, ""), p.stdout)
        return p.stdout

    def spawn(self, argv, path=None):
        p = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True, bufsize=1, env={**os.environ, "PLENUM_SOCKET": path or self.daemon.socket})
        watch = threading.Timer(6 * TIMEOUT, p.kill)
        watch.start()
        self.addCleanup(p.stderr.close)
        self.addCleanup(p.wait)
        self.addCleanup(watch.cancel)
        self.addCleanup(p.kill)
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.stdin.close)
        return p

    def results(self, text):
        return [line["subtype"] for line in map(json.loads, text.splitlines()) if line["type"] == "result"]


class Manual(Clients):
    PROGRAMS = marked("plenum-client.3", "example")

    def compile(self, name):
        return compile_c(self.folder, name, self.PROGRAMS[name])

    def test_every_program_has_its_test(self):
        self.assertEqual({"turn", "loop", "guard"}, set(self.PROGRAMS))

    def test_turn(self):
        self.assertEqual(["success"], self.results(self.run_client([self.compile("turn"), "hello"])))

    def test_loop(self):
        text = self.run_client([self.compile("loop")], "hello")
        self.assertEqual(["success"], self.results(text))
        self.assertIn('"session":"loop"', text.splitlines()[0])

    def test_guard(self):
        p = self.spawn([self.compile("guard")])
        self.assertEqual("attached\n", p.stdout.readline())
        a = self.daemon.attached("guarded", approve=False)
        for _ in range(2):
            a.send({"type": "user", "message": {"role": "user", "content": '@tool Bash {"command":"true"}@'}})
            a.event("settled", decision="allow", by__name="guard")
            self.assertEqual('Bash {"command":"true"}\n', p.stdout.readline())
            a.wait(type="result")
            a.send({"type": "user", "message": {"role": "user", "content": '@tool Bash {"command":"false"}@'}})
            a.event("settled", decision="deny", by__name="guard")
            self.assertEqual('Bash {"command":"false"}\n', p.stdout.readline())
            a.wait(type="result")
            self.daemon.stop()
            self.daemon.start()
            self.assertEqual("attached\n", p.stdout.readline())
            a = self.daemon.attached("guarded", approve=False)

    def test_every_function_is_in_the_manual(self):
        header, page = read("include", "plenum", "client.h"), read("man", "plenum-client.3")
        functions = set(re.findall(r"PLENUM_API [^;]*?\b(plenum_\w+)\(", header))
        exported = set(re.findall(r"^\t(plenum_\w+);$", read("src", "lib", "libplenum.map"), re.MULTILINE))
        self.assertEqual(functions, exported)
        self.assertEqual(set(), {f for f in functions if not re.search(r"\b%s\b" % f, page)})
        self.assertEqual(set(), set(re.findall(r"\bplenum_\w+", re.sub(r'^\.\\".*$', "", page, flags=re.MULTILINE)))
                         - functions - set(re.findall(r"\b(plenum_\w+)\b", header)) - {"plenum_attach"})
        for name in re.findall(r"^\t(PLENUM_\w+) = ", header, re.MULTILINE):
            self.assertIn(".It Dv %s\n" % name, page)


class Examples(Clients):
    def example(self, name):
        return os.path.join(ROOT, "examples", name)

    def test_asyncio_asks_on_the_terminal(self):
        text = self.run_client([self.example("client-asyncio.py"), "asyncio", TOOL], "y\n")
        self.assertEqual('hi\nBash {"command": "echo"}? [y/n] tool done: [false]\n', text)

    def test_node_asks_on_the_terminal(self):
        text = self.run_client([self.example("client.mjs"), "node", TOOL], "y\n")
        self.assertEqual('hi\nBash {"command":"echo"}? [y/n] tool done: [false]\n', text)

    def answered_elsewhere(self, name, session):
        """The question is open, without an answer; another client denies it, and then the turn ends."""
        p = self.spawn([self.example(name), session, TOOL])
        other = self.daemon.attached(session, role="observer", approve=True)
        ask = other.wait(type="control_request")
        until(lambda: other.request("plenum_pending", session=session)["pending"][0]["asked"][1:], what="both to be asked")
        other.send({"type": "control_response", "response": {"subtype": "success", "request_id": ask["request_id"],
                                                             "response": {"behavior": "deny", "message": "no"}}})
        self.assertIn("tool done: [true]", p.stdout.read())
        self.assertEqual(0, p.wait(TIMEOUT))

    def test_asyncio_reads_on_while_a_question_is_open(self):
        self.answered_elsewhere("client-asyncio.py", "elsewhere-asyncio")

    def test_node_reads_on_while_a_question_is_open(self):
        self.answered_elsewhere("client.mjs", "elsewhere-node")

    def comes_back(self, name, session):
        """The connection is lost during the turn, which goes on: the client sees its end, and the prompt runs once."""
        relay = Relay(self.daemon.socket, os.path.join(self.folder, session))
        self.addCleanup(relay.close)
        p = self.spawn([self.example(name), session, TOOL], relay.path)
        self.assertEqual("hi\n", p.stdout.readline())
        other = self.daemon.attached(session, role="observer", approve=True)
        ask = other.wait(type="control_request")
        relay.cut()
        other.event("detached", client__name="example")
        other.send({"type": "control_response", "response": {"subtype": "success", "request_id": ask["request_id"],
                                                             "response": {"behavior": "deny", "message": "no"}}})
        other.wait(type="result")
        relay.accept()
        if name == "client.py":  # which does not read while it asks
            p.stdin.write("y\n")
        self.assertIn("tool done: [true]", p.stdout.read())
        self.assertEqual(0, p.wait(TIMEOUT))
        self.assertEqual(1, self.daemon.call("plenum_status", session=session)["turns"])

    def test_python_comes_back(self):
        self.comes_back("client.py", "back-python")

    def test_asyncio_comes_back(self):
        self.comes_back("client-asyncio.py", "back-asyncio")

    def test_node_comes_back(self):
        self.comes_back("client.mjs", "back-node")

    def sees_a_crash(self, name, session):
        """The daemon is killed while the question is open; the client comes back, and learns that its turn is lost."""
        p = self.spawn([self.example(name), session, TOOL])
        self.assertEqual("hi\n", p.stdout.readline())
        self.daemon.wait_state(session, "asking")  # by now the agent has its prompt on record, too
        until(lambda: any(s["name"] == session and s["conversation_id"] for s in self.daemon.table()), what="its record on disk")
        self.daemon.kill9()
        self.daemon.start()
        if name == "client.py":
            p.stdin.write("y\n")
        self.assertNotIn("tool done", p.stdout.read())
        self.assertEqual(1, p.wait(TIMEOUT))

    def test_python_sees_a_crash(self):
        self.sees_a_crash("client.py", "crash-python")

    def test_asyncio_sees_a_crash(self):
        self.sees_a_crash("client-asyncio.py", "crash-asyncio")

    def test_node_sees_a_crash(self):
        self.sees_a_crash("client.mjs", "crash-node")

    def glib(self):
        return compile_c(self.folder, "client-glib", read("examples", "client-glib.c"), "glib-2.0")

    def test_glib(self):
        p = self.spawn([self.glib(), "glib"])
        p.stdin.write(TOOL + "\nhello\n")
        lines = []
        while [line["type"] for line in lines].count("result") < 2:
            lines.append(json.loads(p.stdout.readline()))
        self.assertEqual(["deny"], [line["decision"] for line in lines if line.get("event") == "settled"])
        p.stdin.close()
        p.stdout.read()
        self.assertEqual(0, p.wait(TIMEOUT))

    def test_glib_comes_back(self):
        p = self.spawn([self.glib(), "glib-back"])
        p.stdin.write("one\n")
        seqs = []
        for number in range(2):
            while True:
                line = json.loads(p.stdout.readline())
                seqs += [line["plenum_seq"]] if "plenum_seq" in line else []
                if line["type"] == "result":
                    break
            if number == 0:
                other = self.daemon.attached("glib-back", approve=False)
                other.request("plenum_stop", how="graceful")
                other.event("child_exited")
                self.daemon.stop()
                self.daemon.start()
                other = self.daemon.attached("glib-back", approve=False)
                until(lambda: other.request("plenum_status")["clients"][1:], what="it to come back")
                p.stdin.write("two\n")
        self.assertEqual(sorted(set(seqs)), seqs)


class Installed(Clients):
    """The README's commands for C, with an installation in a directory of its own."""

    def test_the_commands_of_the_readme(self):
        subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", self.folder], check=True,
                       stdout=subprocess.DEVNULL)
        pc = next(os.path.join(d, "plenum.pc") for d, _, files in os.walk(self.folder) if "plenum.pc" in files)
        prefix = os.path.normpath(os.path.join(os.path.dirname(pc), *[".."] * (3 if "gnu" in pc else 2)))
        block = re.search(r"^    \$ (export PKG_CONFIG_PATH=.*?)\n\n", read("README.md"), re.MULTILINE | re.DOTALL).group(1)
        script = "\n".join(line.strip().removeprefix("$ ") for line in block.splitlines()).replace("~/.local", shlex.quote(prefix))
        os.symlink(os.path.join(ROOT, "examples"), os.path.join(self.folder, "examples"))
        with open(os.path.join(self.folder, "cc"), "w") as f:
            f.write('#!/bin/sh\nexec %s "$@" %s\n' % (shutil.which("cc"), " ".join(sanitizers())))
        os.chmod(f.name, 0o755)
        p = subprocess.run(["sh", "-euc", script], cwd=self.folder, capture_output=True, text=True, timeout=60,
                           env={**os.environ, "PLENUM_SOCKET": self.daemon.socket, "PATH": self.folder + ":" + os.environ["PATH"]})
        self.assertEqual((p.returncode, p.stderr), (0, ""), p.stdout)
        self.assertEqual(["success"], self.results(p.stdout))
        for name in ("plenum-protocol.schema.json", "plenum-protocol.d.ts", "plenum_protocol.py"):
            self.assertTrue(os.path.exists(os.path.join(prefix, "share", "plenum", name)), name)


class Stories(unittest.TestCase):
    """The commands of plenum(7), in their order: "$ " begins one, the lines after it are what it prints, "..." is any text."""

    STORIES = marked("plenum.7", "story")

    def play(self, text):
        env = {"PATH": ":".join([os.path.dirname(build_file(n)) for n in ("plenumctl", "plenum-fakeagent")] + ["/usr/bin", "/bin"])}
        d = Daemon({"daemon": {"default_profile": "fake"}}, env=env)
        self.addCleanup(d.destroy)
        self.addCleanup(d.stop)
        shell = subprocess.Popen(["bash", "--norc"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                 text=True, bufsize=1, env=d.env, cwd=d.home, start_new_session=True)
        self.addCleanup(shell.wait)
        self.addCleanup(os.killpg, shell.pid, signal.SIGKILL)
        self.addCleanup(shell.stdout.close)
        self.addCleanup(shell.stdin.close)
        for command, output in re.findall(r"^\$ (.*<<'END'.*\n(?:.*\n)*?END|.*)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE):
            shell.stdin.write("{ %s\n} </dev/null\necho; echo end of it\n" % command)
            got = "".join(iter(shell.stdout.readline, "end of it\n"))
            want = re.escape(output.rstrip()).replace(r"\.\.\.", ".*").replace(r"\ ", " ")
            self.assertRegex(re.sub(r"[ \t]+", " ", got).strip(), "(?s)^%s$" % re.sub(r" +", " ", want), command)

    def test_there_are_three(self):
        self.assertEqual(3, len(self.STORIES))


def add_story(name, text):
    def test(self):
        self.play(text)

    setattr(Stories, "test_" + name.replace("-", "_"), test)


for _name, _text in Stories.STORIES.items():
    add_story(_name, _text)


if __name__ == "__main__":
    unittest.main()
