"""docs/sweeps/verdicts.py: its statistics against values worked out by hand, its verdicts on a
database made here."""

import contextlib
import io
import json
import math
import pathlib
import sqlite3
import sys
import tempfile
import unittest

SWEEPS = pathlib.Path(__file__).resolve().parents[2] / "docs" / "sweeps"
sys.path.insert(0, str(SWEEPS))
import verdicts  # noqa: E402
from verdict import claims, results, statistics as st, tables  # noqa: E402


class Statistics(unittest.TestCase):
    def test_t_quantiles_are_those_of_the_tables(self):
        # Exact: tan(0.475 pi) for one degree of freedom, and 2 a / sqrt(4 p (1-p) 2) with a = p -
        # 1/2 for two.
        self.assertAlmostEqual(st.t_quantile(0.975, 1), math.tan(math.pi * 0.475), places=9)
        self.assertAlmostEqual(st.t_quantile(0.975, 2), 0.95 * math.sqrt(2 / (4 * 0.975 * 0.025)),
                               places=9)
        for degrees, printed in ((3, 3.182), (4, 2.776), (9, 2.262), (30, 2.042), (10 ** 6, 1.960)):
            self.assertAlmostEqual(st.t_quantile(0.975, degrees), printed, delta=0.0005)
        self.assertAlmostEqual(st.t_cdf(-1.3, 5) + st.t_cdf(1.3, 5), 1)

    def test_incomplete_beta_of_whole_parameters_is_a_binomial_tail(self):
        for a, b, x in ((2, 3, 0.3), (5, 1, 0.9), (1, 1, 0.25), (4, 7, 0.62)):
            n = a + b - 1
            tail = sum(math.comb(n, i) * x ** i * (1 - x) ** (n - i) for i in range(a, n + 1))
            self.assertAlmostEqual(st.incomplete_beta(a, b, x), tail, places=12)

    def test_interval_by_hand(self):
        # Mean 0.7, deviations -0.1, 0, 0.1: sd 0.1, half width 4.302653 * 0.1 / sqrt(3).
        found = st.interval([0.6, 0.7, 0.8])
        self.assertAlmostEqual(found.mean, 0.7)
        self.assertAlmostEqual(found.half, 4.302652730 * 0.1 / math.sqrt(3), places=9)
        self.assertEqual(st.interval([0.4]), (0.4, None, 1))
        self.assertIsNone(st.interval([]))

    def test_pairing_takes_the_seeds_that_both_have(self):
        # Differences 0.1 and 0.3: mean 0.2, sd 0.1414, half width 12.7062 * 0.1.
        found = st.paired({0: 0.5, 1: 0.9, 7: 0.1}, {1: 0.6, 0: 0.4, 3: 0.9})
        self.assertEqual(found.n, 2)
        self.assertAlmostEqual(found.mean, 0.2)
        self.assertAlmostEqual(found.half, 1.270620474, places=8)

    def test_share(self):
        # All of n: the lower limit is 0.025^(1/n); none of n: the upper one is its complement.
        self.assertAlmostEqual(st.share_interval(3, 3)[0], 0.025 ** (1 / 3), places=9)
        self.assertEqual(st.share_interval(3, 3)[1], 1)
        self.assertAlmostEqual(st.share_interval(0, 5)[1], 1 - 0.025 ** (1 / 5), places=9)
        low, high = st.share_interval(2, 5)  # printed in tables as 0.0527 to 0.8534
        self.assertAlmostEqual(low, 0.0527, delta=5e-5)
        self.assertAlmostEqual(high, 0.8534, delta=5e-5)

    def test_what_an_interval_says(self):
        of = lambda mean, half: st.Interval(mean, half, 3)  # noqa: E731
        self.assertEqual([st.above(of(2, 1)), st.above(of(-2, 1)), st.above(of(1, 2)),
                          st.above(of(1, None)), st.above(None)],
                         ["holds", "fails", "undecided", "undecided", "undecided"])
        self.assertEqual([st.inside(of(2, 1), 1, 3), st.inside(of(2, 1), 3.5, 9),
                          st.inside(of(2, 1), 2, 3), st.inside(of(2, None), 1, 3)],
                         ["holds", "fails", "undecided", "undecided"])
        self.assertEqual([st.often(4, 5), st.often(1, 5), st.often(3, 5), st.often(2, 2),
                          st.rarely(0, 3), st.rarely(3, 3)],
                         ["holds", "fails", "undecided", "undecided", "holds", "fails"])
        self.assertEqual([st.all_of(["holds", "holds"]), st.all_of(["holds", "undecided"]),
                          st.all_of([]), st.all_of(["undecided", "fails"])],
                         ["holds", "undecided", "undecided", "fails"])


SPEC = {"model": {"layers": 2, "heads": 4, "kv_source": "self"}, "task": {"definition": "clean"},
        "train": {"lr": 0.001}}


class Database(unittest.TestCase):
    """The documented views, as tables of a small file."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "pelab.db"
        self.connection = sqlite3.connect(self.path)
        self.addCleanup(self.connection.close)
        self.connection.execute(f"PRAGMA application_id = {results.APPLICATION_ID}")
        self.connection.execute(f"PRAGMA user_version = {results.FIRST_SCHEMA}")
        for view, columns in results.NEEDED.items():
            self.connection.execute(f"CREATE TABLE {view} ({', '.join(columns.split())})")
        self.jobs = self.analyses = 0

    def job(self, pe, task, seed, test, train=0.99, sweep="small-table1", protocol="clean",
            trained=1, deposits=(),
            variant=("zero", "clean", "test", "head"), kv_source="self", max_drop=0.6, **pe_fields):
        """A stored job; `deposits` are the layers that have one."""
        self.jobs += 1
        spec = json.loads(json.dumps(SPEC))
        spec["model"]["kv_source"] = kv_source
        spec["pe"], spec["task"]["name"], spec["seed"] = ({"name": pe, "version": 1, **pe_fields},
                                                          task, seed)
        label = pe + (f"({', '.join(f'{name}={value}' for name, value in pe_fields.items())})"
                      if pe_fields else "")
        insert = self.insert
        insert("v_jobs", self.jobs, pe, label, task, protocol, seed, "cpu", train, test, 10.0,
               json.dumps(spec), trained)
        insert("v_sweep_jobs", sweep, self.jobs)
        for epoch in range(2):
            insert("v_curves", self.jobs, epoch, test * (epoch + 1) / 2)
        insert("v_attempts", self.jobs, 1,
               json.dumps({"device_name": "abacus", "threads": 1, "libtorch": "1.13"}))
        self.analysis(self.jobs, round(test * 1000), 1000, deposits, max_drop if deposits else 0.02,
                      variant)
        self.connection.commit()

    def insert(self, view, *row):
        self.connection.execute(f"INSERT INTO {view} VALUES ({', '.join('?' * len(row))})", row)

    def analysis(self, job, right, total, deposits, drop, variant=("zero", "clean", "test", "head"),
                 chance=1 / 70):
        """A head ablation with its indices."""
        self.analyses += 1
        for _ in range(8):  # one row a head
            self.insert("v_head_ablation", job, *variant, total, right, chance, self.analyses)
        self.insert("v_deposits", None, drop, deposits[0] if deposits else 1, None, self.analyses)
        for layer in range(2):
            self.insert("v_deposits", layer, drop, layer, layer in deposits, self.analyses)

    def load(self, *sweeps):
        connection = results.open_database(self.path)
        self.addCleanup(connection.close)
        return results.load(connection, sweeps or ("small-table1",))

    def judged(self, protocol="clean"):
        return {(claim.figure, claim.text): outcome
                for claim, outcome in claims.judge(self.load(), protocol)}

    def verdict(self, start):
        found = [outcome for (_, text), outcome in self.judged().items() if text.startswith(start)]
        self.assertEqual(len(found), 1, f"{start}: {self.judged()}")
        return found[0]

    def three_seeds(self, pe, task, *accuracies, **more):
        for seed, accuracy in enumerate(accuracies):
            self.job(pe, task, seed, accuracy, **more)


class Verdicts(Database):
    def test_an_order_holds_fails_or_stays_open(self):
        self.three_seeds("rope", "distance", 0.90, 0.92, 0.94)
        self.three_seeds("mla", "distance", 0.80, 0.82, 0.84)
        self.three_seeds("nope", "distance", 0.05, 0.06, 0.07)
        self.assertEqual(self.verdict("distance: RoPE above MLA").verdict, "holds")
        self.assertIn("rope − mla: +10.0 ± 0.0", self.verdict("distance: RoPE above MLA").ours)
        self.three_seeds("rope", "counting", 0.95, 0.96, 0.97)
        self.three_seeds("mla", "counting", 0.90, 0.91, 0.92)
        self.three_seeds("nope", "counting", 0.70, 0.99, 0.85)
        self.assertEqual(self.verdict("counting: MLA above NoPE").verdict, "undecided")
        self.three_seeds("absolute", "counting", 0.99, 0.985, 0.995)
        self.assertEqual(self.verdict("counting: RoPE costs less than Absolute").verdict, "fails")

    def test_a_claim_whose_encodings_are_missing_is_not_judged(self):
        self.three_seeds("rope", "distance", 0.90, 0.92, 0.94)
        self.assertNotIn("MLA", " ".join(text for _, text in self.judged()))

    def test_missing_seeds_are_said_and_failed_jobs_have_no_result(self):
        self.job("rope", "distance", 0, 0.9)
        self.job("rope", "distance", 1, 0.8)
        self.job("rope", "distance", 2, 0.1, trained=0)
        text = tables.document(["small-table1"], self.load())
        self.assertIn(
            "2 of 3 jobs succeeded (2 on cpu, abacus, 1 thread, LibTorch 1.13), seeds 0, 1, 2,",
            text)
        self.assertIn("| clean | distance | rope | 2 of 3 | 85.0 ± 63.5 |", text)

    def test_deposits_are_counted_over_seeds_whose_indices_are_defined(self):
        self.job("rope", "distance", 0, 0.9, deposits=[0])
        self.job("rope", "distance", 1, 0.9, deposits=[1])
        self.job("rope", "distance", 2, 0.9, deposits=[0, 1])
        self.assertEqual(self.verdict("RoPE on distance has a deposit"),
                         ("undecided",
                          "2 of 3 seeds; share 0.09 to 0.99"))  # layer 1 is the second half
        self.job("nope", "distance", 0, 0.02)  # near chance: nothing can drop
        self.job("nope", "distance", 1, 0.5)
        self.job("nope", "distance", 2, 0.5)
        self.job("nope", "distance", 3, 0.5)
        self.assertEqual(self.verdict("NoPE on distance has no deposit").verdict, "holds")
        self.assertIn("0 of 3 seeds (1 undefined)",
                      self.verdict("NoPE on distance has no deposit").ours)
        row = next(line for line in tables.results(self.load()).splitlines() if "| nope |" in line)
        self.assertIn("| 0/3 (1 undefined) |", row)

    def test_partial_rope_is_found_by_its_heads(self):
        self.three_seeds("rope", "distance", 0.90, 0.91, 0.92)
        self.three_seeds("partial_rope", "distance", 0.89, 0.90, 0.91, heads=1, select="first")
        self.three_seeds("partial_rope", "distance", 0.50, 0.51, 0.52, heads=2, select="first")
        self.assertEqual(self.verdict("distance: one rotated head comes within").verdict, "holds")
        self.assertEqual(self.verdict("distance: two rotated heads come within").verdict, "fails")

    def test_speed_is_the_mean_over_the_epochs(self):
        self.three_seeds("rope", "distance", 0.90, 0.92, 0.94)
        for pe in ("absolute", "random", "relative", "alibi", "nope"):
            self.three_seeds(pe, "distance", 0.50, 0.52, 0.54)
        # 0.75 × 0.4
        self.assertIn("rope − absolute: +30.0 ± 0.0",
                      self.verdict("distance: RoPE learns fastest").ours)

    def test_bands_are_only_for_the_papers_size_under_published(self):
        self.three_seeds("rope", "distance", 0.92, 0.93, 0.94)
        self.assertEqual(self.verdict("distance, RoPE in 88.6").verdict, claims.NOT_COMPARABLE)
        cell = self.load()[0]
        for job in cell.jobs:
            job.protocol = "published"
            job.spec.update(claims.PAPER_SIZE)
            job.spec["task.train_examples"] = 70000
        cell.protocol = "published"
        band = {"kind": "band", "of": "test", "pe": "rope"}
        judge = claims.judge_of("distance", {**band, "low": 88.6, "high": 96.6})
        self.assertEqual(judge(claims.View([cell], "published")).verdict, "holds")
        judge = claims.judge_of("distance", {**band, "low": 10, "high": 20})
        self.assertEqual(judge(claims.View([cell], "published")).verdict, "fails")


class Switches(Database):
    def test_a_departure_is_compared_with_the_set_that_it_departs_from(self):
        authors = ("zero", "authors", "all", "head")
        self.three_seeds("rope", "distance", 0.90, 0.92, 0.94, protocol="published",
                         kv_source="input", sweep="other", variant=authors)
        self.three_seeds("rope", "distance", 0.50, 0.52, 0.54, protocol="custom", kv_source="self",
                         sweep="switches")
        cells = self.load("switches")
        self.assertEqual([(cell.name, cell.asked) for cell in cells],
                         [("published + model.kv_source=self", True), ("published", False)])
        row = tables.switches(cells).splitlines()[2]
        self.assertIn(
            "| model.kv_source=self | 3 | 92.0 ± 5.0 | 52.0 ± 5.0 | -40.0 ± 0.0 | lowers |", row)
        # what is compared with is not the sweep's
        self.assertIn("3 of 3 jobs", tables.provenance(["switches"], cells))

    def test_other_settings_are_compared_with_the_first(self):
        self.assertIsNone(tables.settings([]))
        self.three_seeds("mla", "distance", 0.30, 0.32, 0.34)
        self.three_seeds("rope", "distance", 0.30, 0.32, 0.34)
        spec = json.loads(self.connection.execute("SELECT spec_json FROM v_jobs").fetchone()[0])
        for job in range(1, 4):  # three more of mla, with another learning rate
            spec["train"]["lr"], spec["seed"] = 0.01, job - 1
            self.job("mla", "distance", job - 1, 0.5 + job / 10)
            self.connection.execute("UPDATE v_jobs SET spec_json = ? WHERE job_id = ?",
                                    (json.dumps(spec), self.jobs))
        self.connection.commit()
        # Changes .30, .38 and .46: mean 38 points, half width 4.3027 × 8 / sqrt(3) = 19.9.
        self.assertEqual(tables.settings(self.load()).splitlines()[2:], [
            "| clean | distance | mla (train.lr=0.001) | mla (train.lr=0.01) | 3 | +38.0 ± 19.9 | "
            "raises |"])

    def test_mla_and_rope_are_compared_where_all_else_is_equal(self):
        self.three_seeds("rope", "distance", 0.60, 0.62, 0.64)
        self.three_seeds("mla", "distance", 0.90, 0.92, 0.94)
        self.three_seeds("mla", "counting", 0.90, 0.92, 0.94)
        rows = tables.matched(self.load()).splitlines()[2:]
        self.assertEqual(len(rows), 1)
        self.assertIn("| +30.0 ± 0.0 | mla is above |", rows[0])


class LayersAndRemovals(Database):
    def three_seeds_with_layers(self):
        self.three_seeds("rope", "distance", 0.90, 0.90, 0.90, deposits=[1])
        removed = {"total": 10, "intact_correct": 9,
                   "greedy": {"heads": [[1, 2], [0, 0], [0, 1]], "correct": [6, 4, 1]},
                   "random": [{"heads": [[0, 0], [0, 1], [1, 2]], "correct": [9, 8, 1]},
                              {"heads": [[0, 1], [1, 2], [0, 0]], "correct": [8, 4, 1]}]}
        for job, correct in ((1, [8, 4]), (2, [7, 4]), (3, [6, 4])):
            self.analyses += 2
            self.insert("v_analyses", job, "layer_ablation", '{"method": "zero"}', 10,
                        json.dumps({"total": 10, "intact_correct": 9, "correct": correct}),
                        self.analyses - 1)
            self.insert("v_analyses", job, "cumulative_ablation", '{"method": "zero"}', 10,
                        json.dumps(removed), self.analyses)
        self.connection.commit()

    def test_layers_and_their_costliest_heads(self):
        self.three_seeds_with_layers()
        lines = tables.layers(self.load()).splitlines()[2:]
        # Drops of layer 0 are .1, .2 and .3: mean 20 points, half width 4.3027 × 10 / sqrt(3) =
        # 24.8.
        self.assertEqual(lines, [
            "| clean | distance | rope | costliest head: zero, clean hygiene, test data, head | "
            "60.0 ± 0.0 | 60.0 ± 0.0 |",
            "| clean | distance | rope | all heads: zero | 20.0 ± 24.8 | 50.0 ± 0.0 |"])

    def test_heads_gone_when_half_is_lost(self):
        self.three_seeds_with_layers()
        # Of 9 right, fewer than 4.5 are left after two greedy removals, and after three and two
        # random ones.
        self.assertEqual(
            tables.removals(self.load()).splitlines()[2:],
            ["| clean | distance | rope | zero | 3 | 1 (3×) | 2.0 ± 0.0 | 2.5 ± 0.0 |"])

    def test_what_was_not_done_has_no_table(self):
        self.three_seeds("rope", "distance", 0.90, 0.92, 0.94)
        self.assertEqual((tables.layers(self.load()), tables.removals(self.load())), (None, None))
        self.assertNotIn("Layer by layer", tables.document(["small-table1"], self.load()))


class CommandLine(Database):
    def run_it(self, *arguments):
        out, error = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
            status = verdicts.main(list(map(str, arguments)))
        return status, out.getvalue(), error.getvalue()

    def test_writes_between_the_markers_and_again_the_same(self):
        self.three_seeds("rope", "distance", 0.90, 0.92, 0.94)
        document = self.path.parent / "reproduction.md"
        document.write_text("before\n<!-- begin small/table1 -->\nold\n"
                            "<!-- end small/table1 -->\nafter\n")
        for _ in range(2):
            status, _, error = self.run_it("--db", self.path, "small-table1", "--write", document)
            self.assertEqual((status, error), (0, ""))
            text = document.read_text()
            self.assertTrue(text.startswith(
                "before\n<!-- begin small/table1 -->\nSweep `small-table1`: 3 of 3 jobs"))
            self.assertTrue(text.endswith("<!-- end small/table1 -->\nafter\n"))
            self.assertNotIn("old", text)
        self.assertEqual(text.count("| clean | distance | rope | 3 | 92.0 ± 5.0 |"), 1)

    def test_says_what_is_wrong(self):
        self.three_seeds("rope", "distance", 0.90, 0.92, 0.94)
        document = self.path.parent / "reproduction.md"
        document.write_text("no markers\n")
        self.assertIn("<!-- begin small/table1 -->",
                      self.run_it("--db", self.path, "small-table1", "--write", document)[2])
        self.assertEqual(document.read_text(), "no markers\n")
        status, _, error = self.run_it("--db", self.path, "nosuch")
        self.assertEqual(status, 2)
        self.assertIn("'nosuch'", error)
        self.assertIn("small-table1", error)
        self.assertIn("no such file", self.run_it("--db", self.path.parent / "none.db", "x")[2])
        self.assertFalse((self.path.parent / "none.db").exists())
        document.write_text("certainly no database " * 100)
        self.assertIn("not a pelab database", self.run_it("--db", document, "x")[2])

    def test_an_older_file_is_named_as_such(self):
        self.connection.execute("ALTER TABLE v_head_ablation RENAME COLUMN chance TO luck")
        self.connection.commit()
        self.assertIn("v_head_ablation lacks chance", self.run_it("--db", self.path, "x")[2])

    def test_of_two_ablations_the_one_of_more_examples_counts(self):
        self.job("rope", "distance", 0, 0.9)
        self.analysis(1, 1800, 2000, [1], 0.7)
        self.analysis(1, 90, 100, [0], 0.9)
        # stored before there were paired counts
        self.analysis(1, 4500, 5000, [0], 0.9, chance=None)
        self.connection.commit()
        (found,) = self.load()[0].deposits().values()
        self.assertEqual((found.layers, found.max_drop, found.top_layer), ({1}, 0.7, 1))

    def test_the_views_of_the_migrations_have_what_it_reads(self):
        connection = sqlite3.connect(":memory:")
        for path in sorted((SWEEPS.parents[1] / "migrations").glob("[0-9]*.sql")):
            connection.executescript(path.read_text(encoding="utf-8"))
        for view, columns in results.NEEDED.items():
            have = {row[1] for row in connection.execute(f"PRAGMA table_xinfo({view})")}
            self.assertLessEqual(set(columns.split()), have, view)
        connection.close()


if __name__ == "__main__":
    unittest.main(verbosity=2)
