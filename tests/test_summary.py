#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tests/summary.py must neither lose a failure nor call a skipped test passed."""
import unittest

from summary import Count, count_test


def meson(result, stdout="", stderr=""):
    return count_test({"name": "x", "result": result, "stdout": stdout, "stderr": stderr})


class Summary(unittest.TestCase):
    def test_a_silent_program_is_one(self):
        self.assertEqual(meson("OK"), Count(1, 0, 0))
        self.assertEqual(meson("FAIL"), Count(0, 1, 0))
        self.assertEqual(meson("TIMEOUT", "something"), Count(0, 1, 0))

    def test_check(self):
        self.assertEqual(meson("OK", "Running suite(s): scan\n100%: Checks: 23, Failures: 0, Errors: 0\n"), Count(23, 0, 0))
        self.assertEqual(meson("FAIL", "90%: Checks: 10, Failures: 1, Errors: 2\nx.c:1:F:a:b:0: no\n"), Count(7, 3, 0))

    def test_unittest(self):
        self.assertEqual(meson("OK", "", "...\nRan 12 tests in 0.1s\n\nOK\n"), Count(12, 0, 0))
        self.assertEqual(meson("OK", "", "Ran 12 tests in 0.1s\n\nOK (skipped=2)\n"), Count(10, 0, 2))
        text = "Ran 12 tests in 0.1s\n\nFAILED (failures=1, errors=2, skipped=3, expected failures=1)\n"
        self.assertEqual(meson("FAIL", "", text), Count(6, 3, 3))
        self.assertEqual(meson("FAIL", "", "Ran 1 test in 0.1s\n\nFAILED (unexpected successes=1)\n"), Count(0, 1, 0))

    def test_tap(self):
        self.assertEqual(meson("FAIL", "1..4\nok 1 a\nnot ok 2 b\nok 3 # SKIP no root\nnot ok 4 # TODO\n"), Count(2, 1, 1))

    def test_closing_line(self):
        self.assertEqual(meson("OK", "x\n5 passed, 0 failed\n"), Count(5, 0, 0))
        self.assertEqual(meson("FAIL", "1 passed, 0 failed\n5 passed, 2 failed, 1 skipped\n"), Count(5, 2, 1))

    def test_a_crash_after_good_cases_is_a_failure(self):
        self.assertEqual(meson("FAIL", "100%: Checks: 3, Failures: 0, Errors: 0\n"), Count(3, 1, 0))
        self.assertEqual(meson("TIMEOUT", "", "Ran 3 tests in 0.1s\n\nOK\n"), Count(3, 1, 0))

    def test_skipped_is_not_passed(self):
        self.assertEqual(meson("SKIP"), Count(0, 0, 1))


if __name__ == "__main__":
    unittest.main()
