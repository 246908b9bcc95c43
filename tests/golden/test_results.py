"""The databases of docs/results: every round of their claim sheets is computed again in numpy, and
docs/reproduction.md has the tables that they give. PELAB_BIN names the folder with the programs."""

import lzma
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/support"))
import sheet_recount  # noqa: E402

sys.path.insert(0, str(SOURCE / "docs/results"))
import write_tables  # noqa: E402

RESULTS = sorted((SOURCE / "docs/results").glob("*.db.xz"))


class Results(unittest.TestCase):
    def test_every_round_is_that_of_the_recount(self):
        self.assertTrue(RESULTS)
        for packed in RESULTS:
            self.assertLess(packed.stat().st_size, 1_000_000, packed.name)
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / "results.db"
                path.write_bytes(lzma.decompress(packed.read_bytes()))
                problems, claims = sheet_recount.check(path)
            self.assertEqual(problems, [])
            self.assertGreater(claims, 10)

    def test_the_page_has_their_tables(self):
        subprocess.run([sys.executable, SOURCE / "docs/results/write_tables.py", "--pelab",
                        pathlib.Path(os.environ["PELAB_BIN"]) / "pelab", "--check"], check=True)

    def test_a_line_of_the_answers_is_about_one_claim_under_both_protocols(self):
        def claim(verdict, shows, **each):
            return {"claim": "deposit", "id": f"deposit[{', '.join(each.values())}]", "n": 9,
                    "says": "RoPE has a deposit", "source": "Figure 4", "verdict": verdict,
                    "standing": "decided", "shows": shows, "each": each}
        text = write_tables.answers([
            ("small-ladder", claim("holds", 9, **{"protocol": "clean", "model.layers": "2"})),
            ("small-ladder", claim("fails", 1, **{"protocol": "clean", "model.layers": "6"})),
            ("small-ladder", claim("fails", 0, **{"protocol": "published", "model.layers": "2"})),
            ("small-task-clean", claim("holds", 8)), ("small-task-published", claim("holds", 7))])
        self.assertEqual(text.splitlines()[2:], [
            "| ladder: RoPE has a deposit (layers 2) | Figure 4 | fails, 0 of 9 | holds, 9 of 9 | "
            "depends on the protocol |",
            "| ladder: RoPE has a deposit (layers 6) | Figure 4 | – | fails, 1 of 9 | fails "
            "(clean) |",
            "| task: RoPE has a deposit | Figure 4 | holds, 7 of 9 | holds, 8 of 9 | holds |"])

    def test_a_claim_is_decided_if_some_size_decides_it(self):
        def claim(verdict, name, **each):
            return {"claim": name, "verdict": verdict, "standing": "decided", "each": each,
                    "says": name, "source": "Table 1"}
        text = write_tables.decided([
            ("small-distance-clean", claim("undecided", "a")),
            ("tiny-distance-clean", claim("fails", "a")),
            ("tiny-distance-published", claim("undecided", "a")),
            ("small-distance-published", claim("not eligible", "b")),
            ("tiny-distance-published", claim("not eligible", "b")),
            ("small-counting", claim("holds", "c", protocol="clean")),
            ("small-distance-clean", claim("holds", "d")),
            ("tiny-distance-clean", claim("fails", "d")),
            ("small-ladder-arms", claim("fails", "e", protocol="clean"))])
        text = " ".join(text.split())
        self.assertIn("4 claims are about distance or counting", text)
        self.assertIn("3 of them are decided (75 %): 1 hold, 1 fail, and 1 depend on the size",
                      text)

    def test_an_answer_puts_the_sizes_of_a_claim_together(self):
        def of(*verdicts):
            places = [("small", "published"), ("tiny", "published"), ("small", "clean")]
            return write_tables.answer({
                place: {"verdict": verdict, "standing": "decided"}
                for place, verdict in zip(places, verdicts, strict=True)})
        self.assertEqual(of("undecided", "holds", "holds"), "holds")
        self.assertEqual(of("not eligible", "fails", "holds"), "depends on the protocol")
        self.assertEqual(of("holds", "fails", "holds"),
                         "depends on the size (published); holds (clean)")
        self.assertEqual(of("undecided", "not eligible", "fails"),
                         "not decided (published); fails (clean)")


if __name__ == "__main__":
    unittest.main(verbosity=2)
