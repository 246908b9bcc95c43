#!/usr/bin/env python3
"""Runs ctest, and at the end tells in short what failed. ctest itself then gives only names, and
what a test has printed may be thousands of lines above.

    tests/run.py BUILD_FOLDER [CTEST_ARGUMENT...]
"""

import pathlib
import re
import subprocess
import sys

LINES = 40  # of each test that failed
BEGINNING = re.compile(r"^\d+/\d+ Testing: (.*)$", re.MULTILINE)
FAILED = re.compile(r"^Test Failed", re.MULTILINE)
# What GoogleTest, unittest and the sanitizers print first of a failure, and what comes after it.
FIRST = re.compile(r": Failure$|^(FAIL|ERROR): |^\[  FAILED  \]|Sanitizer: |: runtime error: ")
LAST = re.compile(r"^\[ +(OK|RUN|FAILED) +\]|^-+ *$|^=+ *$|^$")


def told(output):
    """The lines of a test's output that tell of its failures, at most LINES of them."""
    lines = []
    telling = False
    rule = False  # unittest draws one below its first line
    for line in output.splitlines():
        if FIRST.search(line):
            telling = rule = True
        elif telling and LAST.search(line):
            telling = rule and line.startswith("-")
            rule = False
            continue
        if telling:
            lines.append(line)
    return lines[:LINES] or output.splitlines()[-LINES:]


def failures(log):
    """Names and outputs of the tests that failed, from ctest's log."""
    parts = BEGINNING.split(log)
    return [(name, output) for name, output in zip(parts[1::2], parts[2::2])
            if FAILED.search(output)]


def main(build, *arguments):
    status = subprocess.run(["ctest", "--test-dir", build, "--output-on-failure",
                             *arguments]).returncode
    if status == 0:
        return 0
    log = pathlib.Path(build) / "Testing" / "Temporary" / "LastTest.log"
    for name, output in failures(log.read_text(errors="replace")) if log.exists() else ():
        print(f"\n{name} failed:")
        for line in told(output):
            print(f"  {line}")
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
