"""The table of the kernels' registers and spills: the build is as in it, and a spill is found."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import resources  # noqa: E402

BUILD = pathlib.Path(os.environ["PELAB_BIN"]).resolve().parent
NVCC = os.environ.get("PELAB_NVCC", "/usr/local/cuda/bin/nvcc")


class Resources(unittest.TestCase):
    def test_the_build_is_as_in_the_table(self):
        done = subprocess.run([sys.executable, resources.__file__, str(BUILD), "--nvcc", NVCC],
                              check=False, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"^\d+ kernels as in the table")

    def test_a_planted_spill_is_found(self):
        # Twelve blocks of 256 threads at once leave each thread 20 registers.
        header = "worker/trainer/kernels/adamw/adamw_kernels.cuh"
        planted = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / header
        planted.parent.mkdir(parents=True)
        bounds = "__launch_bounds__(kAdamWThreads)"
        text = (resources.SOURCE / header).read_text()
        self.assertIn(bounds, text)
        planted.write_text(text.replace(bounds, "__launch_bounds__(kAdamWThreads, 12)")
                           .replace("kAdamWThreads = 256", "kAdamWThreads = 128"))
        found = resources.named(resources.compiled(
            NVCC, resources.KERNELS / "adamw/adamw.cu", "sm_90", f"-I{planted.parents[4]}"), {})
        _, table = resources.read_table()
        expected = [row for row in table
                    if row["architecture"] == "sm_90" and row["kernel"].startswith("AdamWKernel")]
        self.assertEqual(len(expected), 2)
        for same_compiler in (True, False):
            told = resources.differences(found, expected, same_compiler)
            self.assertIn("AdamWKernel<4> (sm_90): spill_stores 0 in the table, now ",
                          "\n".join(told))

    def test_kernels_that_come_and_go_are_told(self):
        _, table = resources.read_table()
        self.assertEqual(resources.differences(table, table, True), [])
        told = resources.differences(table[1:], table[:-1], True)
        self.assertEqual(len(told), 2, told)
        self.assertIn("is in the table and not compiled", told[0])
        self.assertIn("is not in the table", told[1])

    def test_warps_by_hand(self):
        # 128 registers x 32 threads = 4,096 a warp: 16 warps, or two blocks of 256 threads.
        self.assertEqual(resources.warps_of("sm_90", 128, 256, 0), 16)
        # 161 registers: 5,376 a warp, 12 warps, and only one block of 8 warps.
        self.assertEqual(resources.warps_of("sm_90", 161, 256, 0), 8)
        self.assertEqual(resources.warps_of("sm_90", 32, 1024, 0), 64)
        self.assertEqual(resources.warps_of("sm_90", 20, 32, 0), 32)  # as many blocks as may be
        # 50,000 + 1,024 bytes: four blocks of 8 warps in 233,472 bytes, three in 167,936.
        self.assertEqual(resources.warps_of("sm_90", 32, 256, 50000), 32)
        self.assertEqual(resources.warps_of("sm_80", 32, 256, 50000), 24)

    def test_every_architecture_has_every_kernel(self):
        _, table = resources.read_table()
        of = [{row["kernel"] for row in table if row["architecture"] == architecture}
              for architecture in resources.ARCHITECTURES]
        self.assertEqual(of[0], of[1])
        self.assertEqual(of[1], of[2])


if __name__ == "__main__":
    unittest.main()
