# SPDX-License-Identifier: MIT
"""The manual is the contract: its examples run against a daemon with the scripted agent, its tables have the names of
include/plenum/protocol.h, and the commands in README work with socat and nc."""
import json
import os
import re
import select
import subprocess
import time
import types
import unittest

from harness import Daemon, Timeout, build_file, TIMEOUT

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGE = os.path.join(ROOT, "man", "plenum-protocol.7")


def read(*names):
    with open(os.path.join(ROOT, *names), encoding="utf-8") as f:
        return f.read()


def plain(text):
    """Replace the few escapes in the page's literal blocks."""
    return text.replace("\\e", "\\").replace("\\(dq", '"').replace("\\&", "")


def read_examples(page):
    """Return {name: [(client, "->" or "<-", line)]}; the page explains the marks at its beginning."""
    examples, steps, client = {}, None, "A"
    for line in page.splitlines():
        mark = re.match(r'\.\\" (example|client|end)\b ?(\S*)', line)
        if mark and mark.group(1) == "example":
            steps, client = examples.setdefault(mark.group(2), []), "A"
        elif mark and mark.group(1) == "client":
            client = mark.group(2)
        elif mark and mark.group(1) == "end":
            steps = None
        elif steps is not None and line.startswith(("-> ", "<- ")):
            steps.append((client, line[:2], plain(line[3:])))
        elif steps is not None and line.startswith(" "):
            steps[-1] = steps[-1][:2] + (steps[-1][2] + plain(line.strip()),)
    return examples


JSONRPC = read_examples(read("man", "plenum-jsonrpc.7"))
EXAMPLES = {**read_examples(read("man", "plenum-protocol.7")), **JSONRPC}


def fits(want, found, ids):
    """Members of `found` that are not in the example do not matter. New ids are added to `ids`."""
    if want == "...":
        return True
    if isinstance(want, str) and re.fullmatch(r"ID\d", want):
        return ids.setdefault(want, found) == found
    if isinstance(want, dict):
        return isinstance(found, dict) and all(k in found and fits(v, found[k], ids) for k, v in want.items())
    if isinstance(want, list):
        if not want:
            return found == []
        return isinstance(found, list) and all(any(fits(w, f, ids) for f in found) for w in want)
    return want == found and isinstance(want, bool) == isinstance(found, bool)


class Reader:
    """A client's lines, searched from the last expected line found."""

    def __init__(self, client):
        self.client, self.at = client, 0

    def expect(self, line, ids):
        want, deadline = json.loads(line), time.monotonic() + TIMEOUT
        while True:
            for i in range(self.at, len(self.client.log)):
                bound = dict(ids)
                if fits(want, self.client.log[i].obj, bound):
                    ids.update(bound)
                    self.at = i + 1
                    return
            if not self.client.fill(deadline - time.monotonic()) and (self.client.eof or time.monotonic() > deadline):
                came = "\n  ".join(map(repr, self.client.log[self.at:]))
                raise Timeout("the manual promises\n  %s\nafter the last promised line came only\n  %s" % (line, came))


class FakeAgent(unittest.TestCase):
    """A daemon whose default profile is the built-in `fake`, with plenum-fakeagent from the build directory."""

    @classmethod
    def setUpClass(cls):
        path = os.path.dirname(build_file("plenum-fakeagent")) + ":/usr/local/bin:/usr/bin:/bin"
        cls.daemon = Daemon({"daemon": {"default_profile": "fake"}}, env={"PATH": path})

    @classmethod
    def tearDownClass(cls):
        for client in cls.daemon.clients:
            client.close()
        cls.daemon.stop()
        cls.daemon.destroy()


class Socat:
    """A user who types into socat, with the part of Client that Reader wants."""

    def __init__(self, path):
        self.p = subprocess.Popen(["socat", "-t", "60", "-", "UNIX-CONNECT:" + path], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE)
        self.log, self.rest, self.eof = [], b"", False

    def send(self, line):
        self.p.stdin.write(line + b"\n")
        self.p.stdin.flush()

    def fill(self, timeout):
        """Return true if a line came."""
        while not self.eof and select.select([self.p.stdout], [], [], max(0, timeout))[0]:
            data = os.read(self.p.stdout.fileno(), 65536)
            self.eof = not data
            *lines, self.rest = (self.rest + data).split(b"\n")
            self.log += [types.SimpleNamespace(obj=json.loads(line)) for line in lines]
            if lines:
                return True
        return False

    def close(self):
        self.p.stdin.close()
        self.p.stdout.close()
        self.p.wait(TIMEOUT)


class Played(FakeAgent):
    def connect(self, name):
        return self.daemon.client(name)

    def play(self, steps):
        readers, ids = {}, {}
        for client, direction, line in steps:
            if client not in readers:
                readers[client] = Reader(self.connect(client))
            if direction == "->":
                for name, value in ids.items():
                    line = line.replace('"%s"' % name, json.dumps(value))
                readers[client].client.send(line.encode())
            else:
                readers[client].expect(line, ids)


class Examples(Played):
    """Those of plenum-protocol(7)."""


class ExamplesBySocat(Played):
    """Those of plenum-jsonrpc(7), as its reader tries them."""

    def connect(self, name):
        socat = Socat(self.daemon.socket)
        self.addCleanup(socat.close)
        return socat


def add_example(case, name, steps):
    def test(self):
        self.play(steps)

    setattr(case, "test_" + name.replace("-", "_"), test)


for _name, _steps in JSONRPC.items():
    add_example(ExamplesBySocat, _name, _steps)
for _name, _steps in EXAMPLES.items():
    if _name not in JSONRPC:
        add_example(Examples, _name, _steps)


class Typed(FakeAgent):
    """The commands of a user, with the programs of a user."""

    PROMPT = b'{"type":"user","message":{"role":"user","content":"hello"}}\n'

    def shell(self, *argv):
        p = subprocess.run(argv, input=self.PROMPT, stdout=subprocess.PIPE, timeout=60, check=True)
        return [json.loads(line) for line in p.stdout.splitlines()]

    def assert_answered(self, lines):
        self.assertEqual([line["subtype"] for line in lines if line["type"] == "result"], ["success"])

    def test_socat_waits_for_the_answer_and_ends_with_it(self):
        before = time.monotonic()
        self.assert_answered(self.shell("socat", "-t", "60", "-", "UNIX-CONNECT:" + self.daemon.socket))
        self.assertLess(time.monotonic() - before, 30)

    def test_nc_waits_for_the_answer_and_ends_with_it(self):
        self.assert_answered(self.shell("nc", "-N", "-U", self.daemon.socket))

    def example(self, name, typed=""):
        p = subprocess.run([os.path.join(ROOT, "examples", name), name, '@text hi@ @tool Bash {"command":"echo"}@'],
                           input=typed, capture_output=True, text=True, timeout=60,
                           env={**os.environ, "PLENUM_SOCKET": self.daemon.socket})
        self.assertEqual((p.returncode, p.stderr), (0, ""), p.stdout)
        return p.stdout

    def test_the_client_in_python(self):
        self.assertEqual(self.example("client.py", "y\n"), 'hi\nBash {"command": "echo"}? [y/n] tool done: [false]\n')

    def test_the_client_in_bash(self):
        self.assertEqual(self.example("client.sh"), "hi\ntool done: [true]\n")

    def test_the_client_in_c(self):
        build = os.path.dirname(os.path.dirname(build_file("plenumd")))
        p = subprocess.run([build + "/tests/ctl/example-client", "in-c", "hello"], capture_output=True, text=True, timeout=60,
                           env={**os.environ, "PLENUM_SOCKET": self.daemon.socket})
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        self.assertIn('"type":"result"', p.stdout)

    def test_readme_shows_the_line_that_is_tested(self):
        self.assertIn(self.PROMPT.decode().strip(), read("README.md"))
        self.assertIn("socat -t 60 - UNIX-CONNECT:", read("README.md"))


class Answers(FakeAgent):
    """Members of a verb's answer are in that verb's paragraphs."""

    def test_every_member_is_named(self):
        page = read("man", "plenum-protocol.7")
        client = self.daemon.client()
        for verb, asked in (("hello", {}), ("attach", {"session": "members"}), ("register", {}), ("list", {}), ("status", {}),
                            ("status", {"daemon": True}), ("pending", {}), ("queue", {}), ("logs", {}), ("subscribe", {}),
                            ("metrics", {}), ("reload", {}), ("hibernate", {}), ("detach", {}),
                            ("stop", {"session": "members", "forget": True})):
            text = re.search(r"^\.Ss plenum_%s$(.*?)(?=^\.S[sh] )" % verb, page, re.MULTILINE | re.DOTALL).group(1)
            if verb in ("status", "subscribe"):
                text += re.search(r"^\.Ss plenum_list$(.*?)(?=^\.Ss )", page, re.MULTILINE | re.DOTALL).group(1)
            named = set(re.findall(r"\w+", text))
            answer = client.request("plenum_" + verb, **asked)
            self.assertEqual(set(answer) - named, set(), verb)


class Capabilities(FakeAgent):
    """`capabilities` of plenum_hello: the table of verbs, the events of protocol.h, and the features of the manual."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.named = cls.daemon.client().hello()["capabilities"]
        cls.defined = dict(re.findall(r'#define (PLENUM_\w+) "([^"]+)"', read("include", "plenum", "protocol.h")))

    def test_each_is_named_once(self):
        self.assertEqual(len(set(self.named)), len(self.named))

    def test_every_verb_and_its_members_are_named(self):
        table = re.search(r"^\} verbs\[\] = \{(.*?)^\};", read("src", "verbs", "verbs.c"), re.MULTILINE | re.DOTALL).group(1)
        wanted, verb = set(), None
        for name, member in re.findall(r'^\t\{(PLENUM_\w+),|\{"(\w+)", "[a-z]+"', table, re.MULTILINE):
            verb = self.defined[name] if name else verb
            wanted.add(verb + ("." + member if member else ""))
        self.assertIn("plenum_attach.on_lag", wanted)
        self.assertEqual(wanted, {n for n in self.named if n.startswith("plenum_") and not n.startswith("plenum_event.")})

    def test_every_event_is_named(self):
        wanted = {"plenum_event." + v for k, v in self.defined.items() if k.startswith("PLENUM_EV_")}
        self.assertEqual(wanted, {n for n in self.named if n.startswith("plenum_event.")},
                         "the list `events` in src/verbs/verbs.c is not that of plenum/protocol.h")

    def test_every_feature_is_in_the_manual(self):
        text = re.search(r"and these features:\n(.*?)^\.Pp", read("man", "plenum-protocol.7"), re.MULTILINE | re.DOTALL).group(1)
        words = set(re.findall(r"\w+", re.sub(r"^\.Cm|^and$", "", text, flags=re.MULTILINE)))
        self.assertEqual(words, {n for n in self.named if not n.startswith("plenum_")})


class Configuration(FakeAgent):
    """plenum.conf(5) has the keys, the built-in profiles and the dialects of the daemon."""

    def test_every_key_has_its_entry(self):
        keys = re.findall(r'^\t\{"(\w+)", KIND_', read("src", "config", "keys.c"), re.MULTILINE)
        entries = re.findall(r"^\.It Ic (\w+) No = ", read("man", "plenum.conf.5"), re.MULTILINE)
        self.assertIn("dialect", keys)
        self.assertEqual(sorted(keys), sorted(entries))

    def test_every_profile_and_dialect_is_named(self):
        profiles = self.daemon.client().request("plenum_status", daemon=True)["profiles"]
        section = re.search(r"^\.Sh SECTION \[profile NAME\]$(.*?)^\.Sh ", read("man", "plenum.conf.5"), re.MULTILINE | re.DOTALL).group(1)
        head, keys = section.split(".Bl ", 1)
        dialects = re.search(r"^\.It Ic dialect No = Cm (.*)$", keys, re.MULTILINE).group(1)
        self.assertEqual({p["dialect"] for p in profiles}, set(dialects.split(" | ")))
        self.assertEqual({p["name"] for p in profiles} - set(re.findall(r"[\w-]+", head)), set())


class Names(unittest.TestCase):
    """Each name of protocol.h has its entry, and the page has no others."""

    @classmethod
    def setUpClass(cls):
        header = read("include", "plenum", "protocol.h")
        cls.defined = dict(re.findall(r'#define PLENUM_(\w+) "([^"]+)"', header))
        cls.page = read("man", "plenum-protocol.7")

    def values(self, prefix):
        return {v for k, v in self.defined.items() if k.startswith(prefix)}

    def section(self, title):
        return re.search(r"^\.Sh %s$(.*?)(?=^\.Sh |\Z)" % title, self.page, re.MULTILINE | re.DOTALL).group(1)

    def tagged(self, title):
        items = re.findall(r"^\.It Cm (.*)$", self.section(title), re.MULTILINE)
        return {word for item in items for word in item.split(" , ")}

    def test_every_verb_has_its_paragraph(self):
        verbs = {v for k, v in self.defined.items() if v.startswith("plenum_") and not k.endswith(("PREFIX", "SUBTYPE"))}
        self.assertEqual(verbs, set(re.findall(r"^\.Ss (plenum_\w+)$", self.page, re.MULTILINE)))

    def test_every_error_code_is_in_the_table(self):
        self.assertEqual(self.values("E_"), self.tagged("ERROR CODES"))

    def test_every_event_is_in_the_table(self):
        self.assertEqual(self.values("EV_") - {"plenum_event"}, self.tagged("EVENTS"))

    def test_every_change_is_in_the_table(self):
        sources = [os.path.join(d, f) for d, _, files in os.walk(os.path.join(ROOT, "src", "core")) for f in files]
        changes = {w for s in sources for w in re.findall(r'(?:"what", |notify_changed(?:_text)?\(s, )"(\w+)"', read(s))}
        entry = re.search(r"^\.It Cm changed$(.*?)^\.It ", self.section("EVENTS"), re.MULTILINE | re.DOTALL).group(1)
        self.assertIn("prompt_held", changes)
        self.assertEqual(changes - set(re.findall(r"^\.(?:Pf \( )?Cm (\w+)", entry, re.MULTILINE)), set())

    def test_every_state_is_in_the_table(self):
        self.assertEqual(self.values("ST_"), self.tagged("THE LIFE OF A SESSION"))

    def test_every_member_that_a_verb_takes_is_described(self):
        table = re.search(r"^\} verbs\[\] = \{(.*?)^\};", read("src", "verbs", "verbs.c"), re.MULTILINE | re.DOTALL).group(1)
        members = set(re.findall(r'\{"(\w+)", "[a-z]+"\}', table))
        self.assertIn("session", members)
        verbs = plain(self.section("VERBS"))
        self.assertEqual([], sorted(m for m in members if not re.search(r"\b%s\b" % m, verbs)))

    def test_the_variables_that_no_child_gets(self):
        table = "".join(re.search(r"stripped\[\] = \{(.*?)\};", read("src", *path), re.DOTALL).group(1)
                        for path in (("core", "launch.c"), ("dialect", "claude", "claude.c")))
        listed = re.search(r'^\.\\" stripped$(.*?)^\.\\" end$', read("man", "plenumd.8"), re.MULTILINE | re.DOTALL).group(1)
        self.assertEqual(sorted(re.findall(r'"([^"]+)"', table)), sorted(re.findall(r"^\.Ev (\S+)$", listed, re.MULTILINE)))

    def test_the_page_has_examples(self):
        self.assertGreaterEqual(len(EXAMPLES), 8)
        for name, steps in EXAMPLES.items():
            self.assertIn("<-", [direction for _, direction, _ in steps], name)


if __name__ == "__main__":
    unittest.main()
