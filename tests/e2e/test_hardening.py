"""The installed programs are built so that a mistake in them is harder to exploit."""

import pathlib
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from loaded_libraries import ldd, loaded  # noqa: E402
from pelab_harness import BIN  # noqa: E402

STAND_INS = BIN.parent / "lib" / "pelab-trainer" / "empty"
PROGRAMS = ["pelab", "pelab-server", "pelab-worker", "pelab-trainer"]


def readelf(option, program):
    return subprocess.run(["readelf", "-W", option, BIN / program], check=True,
                          capture_output=True, text=True).stdout


@unittest.skipUnless(shutil.which("readelf"), "needs readelf")
class Hardening(unittest.TestCase):
    def test_programs(self):
        programs = [name for name in PROGRAMS if (BIN / name).exists()]
        self.assertIn("pelab-server", programs)
        for name in programs:
            with self.subTest(program=name):
                dynamic = readelf("--dynamic", name)
                segments = readelf("--segments", name)
                symbols = readelf("--dyn-syms", name)
                self.assertIn("PIE", dynamic, "its addresses differ in each run")
                self.assertIn("NOW", dynamic, "its table of functions cannot be written")
                self.assertIn("GNU_RELRO", segments)
                stack = [line for line in segments.splitlines() if "GNU_STACK" in line]
                self.assertEqual(len(stack), 1)
                self.assertNotIn("RWE", stack[0], "its stack is not executable")
                self.assertIn("__stack_chk_fail", symbols, "a broken stack is noticed")
        # FORTIFY replaces some calls of the C library by checked ones.
        self.assertTrue(any("_chk@" in readelf("--dyn-syms", name).replace("__stack_chk", "")
                            for name in programs))

    def test_the_trainer_loads_no_library_that_debians_libtorch_names_and_does_not_use(self):
        said = ldd(BIN / "pelab-trainer", "-r")
        found = loaded(BIN / "pelab-trainer")
        for trouble in ("undefined symbol", "no version", "not found"):
            self.assertNotIn(trouble, said)
        torch = next(path for name, path in found.items() if name.startswith("libtorch_cpu"))
        named = re.findall(r"NEEDED.*\[(.+)\]", readelf("--dynamic", "pelab-trainer"))
        unused = {pathlib.Path(line).name for line in ldd(torch, "-u").split()} & set(named)
        self.assertEqual(bool(unused), STAND_INS.exists())
        for name in unused:
            self.assertEqual(pathlib.Path(found[name]).resolve().parent, STAND_INS)


if __name__ == "__main__":
    unittest.main()
