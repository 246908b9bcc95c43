"""The bytes that the CUDA kernels move are those of the floor's passes, and as in the table; bytes
too many and too few are found."""

import contextlib
import copy
import io
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import traffic  # noqa: E402

BUILD = pathlib.Path(os.environ["PELAB_BIN"]).resolve().parent


class Traffic(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.sizes, cls.counted = traffic.count(BUILD)

    def setUp(self):
        self.rows = copy.deepcopy(self.counted)

    def row(self, kernel):
        return next(row for row in self.rows if row["kernel"] == kernel)

    def told(self):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = traffic.report(self.sizes, self.rows)
        return status, out.getvalue(), err.getvalue()

    def test_the_build_is_as_in_the_table(self):
        status, out, err = self.told()
        self.assertEqual((status, err), (0, ""))
        self.assertRegex(out, r"\n\d+ kernels as in the table and the floor\n$")

    def test_a_kernel_that_reads_a_tensor_more_is_found(self):
        self.row("norm backward")["read"] += 131072
        status, _, err = self.told()
        self.assertEqual(status, 1)
        self.assertEqual(err.splitlines(), [
            "traffic: norm backward (float32) moves 795,144 bytes; its pass and what goes with it "
            "are 664,072",
            "traffic: norm backward (float32): read 395,784 in the table, now 526,856"])

    def test_a_floor_that_asks_too_much_is_found(self):
        self.row("mla, tensor cores backward")["written"] -= 4
        self.assertEqual(len(traffic.against_floor(self.rows, self.sizes)), 1)

    def test_kernels_that_come_and_go_are_told(self):
        self.rows[0]["kernel"] = "another"
        self.assertEqual(traffic.against_table(self.rows),
                         ["another (float32) is not in the table",
                          "norm forward (float32) is in the table and not counted"])

    # By hand, for 256 rows of 128 in float32: x, z, y, n of 131,072 bytes each, two statistics of
    # a row, bias, gamma and beta of 512 bytes each, and two keys.
    def test_a_pass_by_hand(self):
        row, sizes = self.row("norm forward"), self.sizes
        self.assertEqual(row["read"], 2 * 131072 + 3 * 512 + 8)
        self.assertEqual(row["written"], 2 * 131072 + 2 * 4 * 256)
        self.assertEqual((sizes["batch"], sizes["positions"], sizes["width"]), (2, 128, 128))


if __name__ == "__main__":
    unittest.main()
