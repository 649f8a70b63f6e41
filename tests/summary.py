#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Counts what `meson test` ran, case by case, and says so in one last line: N passed, N failed.

    tests/summary.py [--tail LINES] BUILD/meson-logs/testlog.json...
    tests/summary.py --outputs FILE...

With --outputs each file is what one program printed; a line FAILED at its end says that it left with an error.

A meson test is one program with many cases. What the program itself printed about them is counted: the totals of
check ("100%: Checks: 23, Failures: 0, Errors: 0"), of unittest ("Ran 12 tests" with "FAILED (failures=1, skipped=2)"),
TAP lines, or a closing "N passed, N failed". A program that prints none of these counts as one. A program that meson
calls failed never counts as less than one failure, and one that meson skipped counts as skipped, not as passed.
"""

import argparse
import json
import re
import sys
from collections import namedtuple

Count = namedtuple("Count", "passed failed skipped")

CHECK = re.compile(r"^\d+%: Checks: (\d+), Failures: (\d+), Errors: (\d+)$", re.MULTILINE)
UNITTEST = re.compile(r"^Ran (\d+) tests? in .*\n\s*\n?(OK|FAILED)(?: \((.*)\))?$", re.MULTILINE)
CLOSING = re.compile(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", re.MULTILINE)
TAP_PLAN = re.compile(r"^1\.\.\d+", re.MULTILINE)
TAP_LINE = re.compile(r"^(not )?ok\b(.*)$", re.MULTILINE)


def count_unittest(text):
    passed = failed = skipped = 0
    for ran, _, details in UNITTEST.findall(text):
        numbers = {k: int(v) for k, v in re.findall(r"([a-z ]+)=(\d+)", details)}
        numbers = {k.strip(): v for k, v in numbers.items()}
        bad = numbers.get("failures", 0) + numbers.get("errors", 0) + numbers.get("unexpected successes", 0)
        failed += bad
        skipped += numbers.get("skipped", 0)
        passed += max(0, int(ran) - bad - numbers.get("skipped", 0))
    return Count(passed, failed, skipped)


def count_tap(text):
    lines = TAP_LINE.findall(text)
    skipped = sum(1 for bad, rest in lines if not bad and "# SKIP" in rest.upper())
    failed = sum(1 for bad, rest in lines if bad and "# TODO" not in rest.upper())
    return Count(len(lines) - skipped - failed, failed, skipped)


def count_output(text):
    """What the program says about its own cases; None if it says nothing."""
    if CHECK.search(text):
        rows = [tuple(map(int, row)) for row in CHECK.findall(text)]
        return Count(sum(n - f - e for n, f, e in rows), sum(f + e for _, f, e in rows), 0)
    if UNITTEST.search(text):
        return count_unittest(text)
    if CLOSING.search(text):
        return Count(*(int(n or 0) for n in CLOSING.findall(text)[-1]))
    if TAP_PLAN.search(text) and TAP_LINE.search(text):
        return count_tap(text)
    return None


def count_test(test):
    text = test.get("stdout", "") + "\n" + test.get("stderr", "")
    said = count_output(text)
    if test["result"] == "SKIP":
        return Count(0, 0, 1)
    if test["result"] in ("OK", "EXPECTEDFAIL"):
        return said if said and sum(said) else Count(1, 0, 0)
    if said is None or said.failed == 0:
        return Count(said.passed if said else 0, 1, said.skipped if said else 0)
    return said


def show_failure(test, tail):
    print(f"\n--- {test['name']}: {test['result']}, exit status {test.get('returncode')}; its last lines:")
    for stream in ("stdout", "stderr"):
        lines = test.get(stream, "").rstrip().splitlines()
        for line in lines[-tail:]:
            print(f"    {line}")


def read_output(path):
    """A program's output as if meson had run it."""
    with open(path, encoding="utf-8", errors="replace") as f:
        text = f.read()
    failed = text.rstrip().endswith("\nFAILED") or text.strip() in ("FAILED", "")
    return {"name": path, "result": "FAIL" if failed else "OK", "stdout": text.replace("\nFAILED\n", "\n")}


def read_tests(path):
    """testlog.json holds one object a line, one line a test."""
    with open(path, encoding="utf-8", errors="replace") as f:
        return [json.loads(line) for line in f if line.strip()]


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--tail", type=int, default=60, help="lines shown of a failing test's output")
    options.add_argument("--outputs", action="store_true", help="the files are programs' outputs, one program each")
    options.add_argument("files", nargs="+")
    args = options.parse_args()

    tests = [test for path in args.files for test in ([read_output(path)] if args.outputs else read_tests(path))]
    total = Count(0, 0, 0)
    for test in tests:
        count = count_test(test)
        total = Count(*map(sum, zip(total, count)))
        skips = f", {count.skipped} skipped" if count.skipped else ""
        print(f"{'ok  ' if not count.failed else 'FAIL'} {test['name']}: {count.passed} of {sum(count)}{skips}"
              f" ({test.get('duration', 0):.1f} s)")
    for test in tests:
        if count_test(test).failed:
            show_failure(test, args.tail)
    skips = f", {total.skipped} skipped" if total.skipped else ""
    print(f"\n{total.passed} passed, {total.failed} failed{skips}")
    return 1 if total.failed or not total.passed else 0


if __name__ == "__main__":
    sys.exit(main())
