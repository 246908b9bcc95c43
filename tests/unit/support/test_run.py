"""The end of what tests/run.py prints when tests fail."""

import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

RUN = pathlib.Path(__file__).resolve().parents[2] / "run.py"

UNITTEST = """
import unittest
class Case(unittest.TestCase):
    def test_of_sums(self):
        print("\\n".join(f"noise {i}" for i in range(500)))
        self.assertEqual(1 + 1, 3, "a sum is wrong")
    def test_that_passes(self):
        print("more noise")
unittest.main()
"""
GOOGLETEST = """
print('''[ RUN      ] SumTest.Passes
[       OK ] SumTest.Passes (0 ms)
[ RUN      ] SumTest.Fails
[info] a line of the log
sum_test.cc:7: Failure
Expected equality of these values:
  1 + 1
    Which is: 2
  3
[  FAILED  ] SumTest.Fails (0 ms)
[ RUN      ] SumTest.AlsoPasses
[       OK ] SumTest.AlsoPasses (0 ms)''')
raise SystemExit(1)
"""


class Run(unittest.TestCase):
    def run_tests(self, seconds=60, **scripts):
        with tempfile.TemporaryDirectory() as folder:
            lines = []
            for name, text in scripts.items():
                path = pathlib.Path(folder) / f"{name}.py"
                path.write_text(textwrap.dedent(text))
                lines.append(f'add_test({name} "{sys.executable}" "{path}")\n'
                             f'set_tests_properties({name} PROPERTIES TIMEOUT {seconds})\n')
            (pathlib.Path(folder) / "CTestTestfile.cmake").write_text("".join(lines))
            result = subprocess.run([RUN, folder, "-j2"], capture_output=True, text=True)
            return result.returncode, result.stdout

    def test_failures_stand_at_the_end_without_the_rest(self):
        status, output = self.run_tests(sums=UNITTEST, passes="print('fine')", cases=GOOGLETEST)
        self.assertNotEqual(status, 0)
        end = output[output.index("The following tests FAILED"):]
        for text in ("sums failed:", "FAIL: test_of_sums", "a sum is wrong", "cases failed:",
                     "sum_test.cc:7: Failure", "    Which is: 2"):
            self.assertIn(text, end)
        for text in ("noise", "a line of the log", "AlsoPasses", "fine"):
            self.assertNotIn(text, end)

    def test_a_failure_of_an_unknown_form_shows_the_last_lines(self):
        script = "print('\\n'.join(f'line {i}.' for i in range(100)))\nraise SystemExit(3)"
        status, output = self.run_tests(odd=script)
        self.assertNotEqual(status, 0)
        end = output[output.index("odd failed:"):]
        self.assertIn("line 99.", end)
        self.assertNotIn("line 9.", end)

    def test_one_that_hangs(self):
        script = "import time\nprint('on', flush=True)\ntime.sleep(60)"
        status, output = self.run_tests(seconds=3, hangs=script)
        self.assertNotEqual(status, 0)
        self.assertIn("  on", output[output.index("hangs failed:"):])

    def test_nothing_follows_when_all_pass(self):
        status, output = self.run_tests(passes="print('fine')")
        self.assertEqual(status, 0)
        self.assertNotIn("failed:", output)


if __name__ == "__main__":
    unittest.main()
