"""Seeds of a configuration in one trainer, on the real binaries: a sweep gives the same results as
one job at a time, whatever happens to its trainers."""

import json
import os
import pathlib
import signal
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pelab_harness import Case, tiny_sweep, wait_until  # noqa: E402

SEEDS = "[0, 1, 2, 3]"
LONG = 40  # epochs: leaves time to disturb a trainer twice, also on a busy machine


def long_sweep():
    return tiny_sweep(seeds=SEEDS, pes="[rope]", epochs=LONG, train_examples=128)


class Packing(Case):
    alone = {}  # document -> its results with one job at a time

    def specs_of(self, pid):
        """The number of jobs that a trainer was given."""
        try:
            words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError):
            return 0
        return words.count(b"--spec")

    def wait_packed(self, jobs):
        return wait_until(lambda: next((pid for pid in self.trainers()
                                        if self.specs_of(pid) == jobs), None), 30,
                          f"a trainer of {jobs} jobs")

    def wait_epochs(self, epochs):
        """Waits until every job has stored that many epochs."""
        wait_until(lambda: (self.query("SELECT min(epochs_done) FROM v_jobs")[0][0] or 0) >= epochs,
                   60, f"{epochs} epochs of each")

    def one_at_a_time(self, document):
        """The results of the sweep with one job at a time, computed once for all tests."""
        if document not in self.alone:
            self.alone[document] = self.compute_one_at_a_time(document)
        return self.alone[document]

    def compute_one_at_a_time(self, document):
        other = self.folder / "alone.db"
        sweep = self.write("alone.yaml", document)
        db, self.db = self.db, other
        try:
            self.ok(self.run_sweep(sweep, "--cpu-slots", "1"))
        finally:
            self.db = db
        return self.results(other)

    def test_a_sweep_gives_what_it_gives_one_at_a_time(self):
        document = tiny_sweep(train_examples=128)  # two configurations of two seeds
        self.server()
        self.submit(document)
        self.worker("w", 1, "--pack", "4")
        self.wait_packed(2)
        self.wait_finished(4)
        self.assert_complete(4, 3)
        self.assertEqual(self.results(), self.one_at_a_time(document))
        rows = self.query("SELECT environment_json FROM v_attempts")
        self.assertEqual({json.loads(row[0])["packing"] for row in rows}, {1},
                         "on a CPU it changes nothing")
        measured = [json.loads(row[0]).get("step_seconds") for row in rows]
        self.assertTrue(all(seconds["alone"] > 0 and seconds["packed"] > 0 for seconds in measured),
                        measured)
        self.ok(self.pelab_db("db", "check"))

    def test_what_happens_to_one_leaves_the_others(self):
        document = long_sweep()
        self.server()
        self.submit(document)
        self.worker("w", 1, "--pack", "4", "--checkpoint-every", "1epoch")
        pid = self.wait_packed(4)
        busy = self.json("workers")["workers"][0]
        self.assertEqual((busy["busy_slots"], busy["slots"]), (1, 1))
        job = self.query("SELECT job_id FROM v_jobs WHERE seed = 2")[0][0]
        self.ok(self.pelab("cancel", "--job", str(job)))
        wait_until(lambda: self.query("SELECT state FROM v_jobs WHERE job_id = ?",
                                      job) == [("cancelled",)], 30, "its end")
        self.assertIn(pid, self.trainers(), "the others need their trainer")
        wait_until(lambda: self.states() == {"cancelled": 1, "succeeded": 3}, 120,
                   "the other three")
        self.assertEqual(self.query("SELECT count(*) FROM v_attempts"), [(4,)])
        alone = self.one_at_a_time(document)
        keys = {row[0] for row in self.query("SELECT key FROM v_jobs WHERE state = 'succeeded'")}
        expected = {place: figures
                    for place, figures in alone["curves"].items() if place[0] in keys}
        found = {place: figures for place, figures in self.curves().items() if place[0] in keys}
        self.assertEqual(found, expected)

    def test_killed_trainers_and_drained_workers_lose_nothing(self):
        document = long_sweep()
        self.server()
        self.submit(document)
        first = self.worker("w", 1, "--pack", "4", "--checkpoint-every", "1epoch")
        self.wait_packed(4)
        first.send_signal(signal.SIGTERM)
        first.wait(60)
        self.assertEqual({row[0] for row in self.query("SELECT outcome FROM v_attempts")},
                         {"preempted"})
        self.worker("v", 1, "--pack", "4", "--checkpoint-every", "1epoch")
        pid = self.wait_packed(4)
        os.kill(pid, signal.SIGKILL)
        self.wait_finished(4)
        self.assertEqual(self.results(), self.one_at_a_time(document))
        self.ok(self.pelab_db("db", "check"))


if __name__ == "__main__":
    unittest.main()
