"""`pelab run`: one command from a sweep file to stored results, and the effect of a second run."""

import json
import math
import os
import signal
import sqlite3
import sys
import time
import unittest
import pathlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pelab_harness import Case, processes, tiny_sweep, wait_until  # noqa: E402
from trained_case import RunCase  # noqa: E402


class Run(RunCase):
    SWEEP = tiny_sweep(train_examples=128)

    def test_run_again_then_one_more_seed(self):
        began = time.monotonic()
        again = self.ok(self.run_sweep(self.sweep))
        self.assertIn("going on with sweep 1 tiny: 4 succeeded; it has finished", again.stdout)
        self.assertLess(time.monotonic() - began, 10)

        changed = self.write("tiny.yaml", tiny_sweep(train_examples=128, seeds="0..2"))
        refused = self.run_sweep(changed)
        self.assertEqual(refused.returncode, 2, refused.stderr)
        for part in ("sweep 1 (tiny)", "pelab extend 1", "--name NAME", "--new"):
            self.assertIn(part, refused.stderr)
        self.assertEqual(self.query("SELECT count(*) FROM v_sweeps"), [(1,)])
        more = self.ok(self.run_sweep(changed, "--name", "tiny-more"))
        self.assertIn("2 new", more.stdout)
        self.assert_complete(jobs=6, epochs=3)

    def test_more_seeds_and_retries_in_a_file_that_nobody_serves(self):
        changed = self.write("more.yaml", tiny_sweep(train_examples=128, seeds="0..2"))
        told = self.ok(self.run_sweep(changed, "--dry-run"))
        self.assertIn("note: sweep 1 has this name and another document", told.stderr)
        extended = self.ok(self.pelab_db("extend", "tiny", "--seed", "2"))
        self.assertIn("got seeds 2: 2 new", extended.stdout)
        self.assertRegex(extended.stdout, f"nobody serves {self.db}: "
                         rf"pelab run \S+/tiny\.yaml --db {self.db} trains them")
        self.assertEqual(processes(str(self.folder)), [], "its coordinator is left running")
        on = self.ok(self.run_sweep(self.sweep))
        self.assertIn("going on with sweep 1 tiny: 4 succeeded, 2 to go", on.stdout)
        self.assert_complete(jobs=6, epochs=3)
        self.assertIn("0 jobs queued again, 6 need no retry",
                      self.ok(self.pelab_db("retry", "tiny")).stdout)
        self.assertEqual(self.pelab_db("retry", "nosuch").returncode, 2)
        # So are commands that change a sweep.
        self.ok(self.pelab_db("sweeps", "note", "tiny", "try this"))
        self.ok(self.pelab_db("sweeps", "rename", "tiny", "first"))
        self.ok(self.pelab_db("pause", "first"))
        self.ok(self.pelab_db("priority", "first", "3"))
        self.ok(self.pelab_db("resume", "first"))
        self.ok(self.pelab_db("sweeps", "rename", "first", "tiny"))
        self.assertIn("6 jobs would be deleted",
                      self.ok(self.pelab_db("sweeps", "delete", "tiny", "--dry-run")).stdout)
        self.assertIn("cancelled 0 jobs", self.ok(self.pelab_db("cancel", "tiny")).stdout)
        self.assertIn("try this", self.ok(self.pelab_db("sweeps")).stdout)
        watched = self.ok(self.pelab_db("status", "tiny", "--watch"))
        self.assertIn("nobody serves it", watched.stdout)

    def test_same_spec_twice_gives_the_same_bits(self):
        first, self.db = self.db, self.folder / "other.db"
        run = self.ok(self.run_sweep(self.sweep))
        self.assertIn("4 new", run.stdout)
        self.assert_complete(jobs=4, epochs=3)
        self.assertEqual(processes(str(self.folder)), [], "something is left running")
        self.assertEqual(self.curves(first), self.curves(self.db))
        self.assertEqual(self.ablations(first), self.ablations(self.db))
        self.assertEqual(len(self.curves(first)), 12)

    def test_json_carries_the_stored_numbers_with_and_without_a_coordinator(self):
        offline = {name: json.loads(self.ok(self.pelab_db(*command, "--output", "json")).stdout)
                   for name, command in {"results": ["results"], "curves": ["curves", "tiny"],
                                         "ablation": ["ablation", "tiny"],
                                         "jobs": ["jobs", "tiny"]}.items()}
        self.server()
        online = {name: self.json(*command)
                  for name, command in {"results": ["results"], "curves": ["curves", "tiny"],
                                        "ablation": ["ablation", "tiny"],
                                        "jobs": ["jobs", "tiny"]}.items()}
        self.assertEqual(offline, online)
        stored = {row[0]: row[1:] for row in self.query(
            "SELECT key, test_accuracy, test_correct, test_total, best_test_accuracy, wall_seconds "
            "FROM v_jobs")}
        jobs = online["results"]["jobs"]
        self.assertEqual(len(jobs), 4)
        for job in jobs:
            self.assertEqual(stored[job["key"]], tuple(job[name] for name in (
                "test_accuracy", "test_correct", "test_total", "best_test_accuracy",
                "wall_seconds")))
            self.assertEqual(job["test_accuracy"], job["test_correct"] / job["test_total"])

    def test_weights_are_kept_and_are_safetensors(self):
        files = [path for path in pathlib.Path(f"{self.db}.artifacts").rglob("*") if path.is_file()]
        self.assertEqual(len(files), 4)
        for file in files:
            data = file.read_bytes()
            header = json.loads(data[8:8 + int.from_bytes(data[:8], "little")])
            sizes = [
                math.prod(entry["shape"]) * 4 for name, entry in header.items()
                if name != "__metadata__"]
            self.assertEqual(8 + int.from_bytes(data[:8], "little") + sum(sizes), len(data))
        self.assertEqual(sorted(self.query("SELECT sha256, bytes FROM artifacts")),
                         sorted((file.name, file.stat().st_size) for file in files))


class Interrupted(Case):
    def test_it_leaves_nothing_and_goes_on(self):
        sweep = self.write("tiny.yaml", tiny_sweep(epochs=12, train_examples=128))
        process = self.spawn("pelab", "run", sweep, "--db", self.db)
        wait_until(
            lambda: self.db.exists() and self.trainers() and self.query(
                "SELECT count(*) FROM v_curves")[0][0] > 3, 60, "the first epochs")
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        process.wait(10)
        wait_until(lambda: not processes(str(self.folder)), 5, "everything to end")
        self.assertLess(time.monotonic() - began, 5)
        self.assertNotEqual(process.returncode, 0)
        connection = sqlite3.connect(self.db)
        self.assertEqual(connection.execute("PRAGMA integrity_check").fetchone(), ("ok",))
        connection.close()
        self.ok(self.pelab_db("db", "check"))
        before = self.curves()
        self.assertTrue(before)

        again = self.ok(self.run_sweep(sweep))
        self.assertIn("going on with sweep 1 tiny: ", again.stdout)
        self.assert_complete(jobs=4, epochs=12)
        self.assertEqual(self.query("SELECT count(*) FROM v_sweeps"), [(1,)])
        self.assertEqual(self.query("SELECT count(*) FROM v_sweep_jobs WHERE sweep = 'tiny'"),
                         [(4,)])
        after = self.curves()
        self.assertEqual(before, {at: after[at] for at in before},
                         "an epoch that was stored has changed")

    def test_a_coordinator_that_stood_still_is_connected_to_again(self):
        """A laptop slept, or a machine had too much to do: the connection is closed by then."""
        sweep = self.write("tiny.yaml", tiny_sweep(epochs=12, train_examples=128))
        process = self.spawn("pelab", "run", sweep, "--db", self.db)
        wait_until(self.trainers, 60, "a job to run")
        coordinator, = processes(str(self.folder), "/pelab-server ")
        os.kill(coordinator, signal.SIGSTOP)
        try:
            wait_until(lambda: "the coordinator did not answer; connecting to it again"
                       in self.logs(), 60, "the end of the connection")
        finally:
            os.kill(coordinator, signal.SIGCONT)
        self.assertEqual(process.wait(60), 0, self.logs())
        self.assert_complete(jobs=4, epochs=12)


if __name__ == "__main__":
    unittest.main(verbosity=2)
