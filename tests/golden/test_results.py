"""The databases of docs/results: every round of their claim sheets is computed again in numpy, and
docs/reproduction.md has the tables that they give. PELAB_BIN names the folder with the programs."""

import gzip
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/support"))
import sheet_recount  # noqa: E402

RESULTS = sorted((SOURCE / "docs/results").glob("*.db.gz"))


class Results(unittest.TestCase):
    def test_every_round_is_that_of_the_recount(self):
        self.assertTrue(RESULTS)
        for packed in RESULTS:
            self.assertLess(packed.stat().st_size, 1_000_000, packed.name)
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / "results.db"
                path.write_bytes(gzip.decompress(packed.read_bytes()))
                problems, claims = sheet_recount.check(path)
            self.assertEqual(problems, [])
            self.assertGreater(claims, 10)

    def test_the_page_has_their_tables(self):
        subprocess.run([sys.executable, SOURCE / "docs/results/write_tables.py", "--pelab",
                        pathlib.Path(os.environ["PELAB_BIN"]) / "pelab", "--check"], check=True)


if __name__ == "__main__":
    unittest.main(verbosity=2)
