# SPDX-License-Identifier: MIT
"""The harness itself: it drives the child over pipes, without a daemon."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

from harness import TIMEOUT, Agent, Case, alive, init, parse, perm, until, user, RESULT


class HarnessTest(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="pl-", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.root)

    def spawn(self, *args, **mode):
        agent = Agent(self.root + "/agent", **mode)
        self.addCleanup(agent.close)
        p = subprocess.Popen(agent.command.split() + list(args), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, start_new_session=True)
        self.addCleanup(p.stderr.close)
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        return p, agent.child()

    def test_lines_both_ways(self):
        p, child = self.spawn()
        p.stdin.write(b'{"type":"user","x":1}\n{"type":"other"}\n')
        p.stdin.flush()
        self.assertEqual(child.wait(type="other").raw, b'{"type":"other"}')
        self.assertEqual(child.wait(type="user")["x"], 1)
        child.print(RESULT, b"raw\n", perm("k-1"))
        self.assertEqual(parse(p.stdout.readline()), RESULT)
        self.assertEqual(p.stdout.readline(), b"raw\n")
        self.assertEqual(parse(p.stdout.readline())["request_id"], "k-1")
        child.flood({"type": "f", "n": "@N@"}, 1000)
        child.written()
        self.assertEqual(parse([p.stdout.readline() for _ in range(1000)][999])["n"], "999")

    def test_initialize_is_answered(self):
        p, child = self.spawn()
        p.stdin.write(b'{"type":"control_request","request_id":"1","request":{"subtype":"initialize","hooks":{}}}\n')
        p.stdin.flush()
        answer = parse(p.stdout.readline())
        self.assertEqual(answer["response"]["request_id"], "1")
        self.assertIs(answer["response"]["response"]["hooks_applied"], True)
        self.assertEqual(child.request("initialize")["request_id"], "1")

    def test_runs_turns_by_itself(self):
        p, child = self.spawn("--resume", "c1", user=True)
        p.stdin.write(b'{"type":"user","uuid":"u1","message":{"role":"user","content":"x"}}\n')
        p.stdin.flush()
        lines = [parse(p.stdout.readline()) for _ in range(4)]
        self.assertEqual([x["type"] for x in lines], ["user", "system", "assistant", "result"])
        self.assertEqual(lines[3]["user_message_uuids"], ["u1"])
        self.assertEqual(lines[1]["session_id"], "c1")

    def test_ends(self):
        for how, status in (("eof", 0), ("term", 143), ("exit", 5), ("kill", -9)):
            with self.subTest(how):
                shutil.rmtree(self.root + "/agent", ignore_errors=True)
                p, child = self.spawn()
                if how == "eof":
                    p.stdin.close()
                elif how == "term":
                    p.terminate()
                elif how == "exit":
                    child.exit(5)
                else:
                    child.kill()
                self.assertEqual(p.wait(TIMEOUT), status)
                child.wait_gone()

    def test_stubborn(self):
        p, child = self.spawn(eof="ignore", term="ignore")
        p.stdin.close()
        child.event("eof")
        os.kill(child.pid, signal.SIGTERM)
        child.event("signal", signal=signal.SIGTERM)
        self.assertIsNone(p.poll())

    def test_stops_reading(self):
        p, child = self.spawn()
        child.pause()
        child.written()
        os.set_blocking(p.stdin.fileno(), False)
        with self.assertRaises(BlockingIOError):
            while True:
                if os.write(p.stdin.fileno(), b"x" * 4095 + b"\n") == 0:
                    break
        child.resume()
        until(lambda: len(child.log) > 10)

    def test_grandchild(self):
        p, child = self.spawn()
        pid = child.spawn([sys.executable, "-c", "import time; time.sleep(60)", self.root], setsid=True)
        self.assertEqual(os.getsid(pid), pid)
        os.kill(pid, signal.SIGKILL)
        self.assertIn(self.root + "/agent", child.argv)
        self.assertEqual(init("1")["request"]["subtype"], "initialize")
        self.assertEqual(user("x")["message"]["role"], "user")


class DestroyTest(Case):
    def test_a_process_that_outlived_a_killed_daemon_is_ended(self):
        d, agent = self.start()
        d.attached("s")
        child = agent.child()
        pid = child.spawn(["sleep", "1000"], setsid=True)  # only its environment names the directory
        d.kill9()
        child.wait_gone()
        self.assertTrue(alive(pid))
        self.daemons.remove(d)
        d.destroy()
        until(lambda: not alive(pid), what="the process to be gone")


if __name__ == "__main__":
    unittest.main()
