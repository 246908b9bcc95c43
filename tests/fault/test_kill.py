"""kill -9 of a trainer, or of a worker that never comes back: the sweep completes, nothing is lost,
and nothing is stored twice. test_kill_loops.py kills coordinators, and workers that come back."""

import os
import pathlib
import signal
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pelab_harness import Case, processes, tiny_sweep, wait_until  # noqa: E402

JOBS = 3
EPOCHS = 24


class Kill(Case):
    def begin(self):
        """Starts a coordinator, a worker and a sweep, and waits until two jobs train and one waits.
        """
        self.server()
        self.agent = self.worker()
        self.submit(tiny_sweep(epochs=EPOCHS, train_examples=256, pes="[rope]", seeds="0..2"))
        wait_until(lambda: self.query("SELECT count(*) FROM v_curves")[0][0] >= 4, 60,
                   "the first epochs")

    def finish(self, acknowledged):
        self.wait_finished(JOBS)
        self.assert_complete(JOBS, EPOCHS)
        curves = self.curves()
        self.assertEqual(acknowledged, {at: curves[at] for at in acknowledged},
                         "a stored epoch is gone or has changed")
        self.ok(self.pelab_db("db", "check"))

    def test_trainer(self):
        self.begin()
        acknowledged = self.curves()
        # On a busy host the first two jobs may just have ended, and the third begins.
        os.kill(wait_until(self.trainers, 30, "a trainer")[0], signal.SIGKILL)
        self.finish(acknowledged)
        outcomes = dict(self.query("SELECT outcome, count(*) FROM v_attempts GROUP BY outcome"))
        self.assertEqual(outcomes, {"failed": 1, "succeeded": JOBS})
        self.assertIn("signal 9",
                      self.query("SELECT error FROM v_attempts WHERE outcome = 'failed'")[0][0])

    def test_worker_that_never_comes_back(self):
        self.begin()
        acknowledged = self.curves()
        self.agent.kill()
        self.agent.wait()
        self.worker("second")
        self.finish(acknowledged)


class Sharing(Case):
    def test_two_workers_share_and_a_third_joins(self):
        self.server()
        self.worker("a", 1)
        self.worker("b", 1)
        self.submit(tiny_sweep(epochs=8, train_examples=128, seeds="0..2"))
        wait_until(lambda: self.query("SELECT count(DISTINCT worker) FROM v_attempts WHERE outcome "
                                      "IS NULL")[0][0] == 2, 30, "both workers to have a job")
        self.worker("c", 1)
        wait_until(lambda: self.query("SELECT count(*) FROM v_workers")[0][0] == 3, 30,
                   "the third worker")
        # The first sweep may have ended while the third worker started.
        self.submit(tiny_sweep(epochs=8, train_examples=128, seeds="3..5", name="more"))
        wait_until(lambda: self.query("SELECT count(DISTINCT worker) FROM v_attempts")[0][0] == 3,
                   10, "the third worker to get a job")
        self.wait_finished(12)
        self.assert_complete(12, 8)
        self.assertEqual(
            dict(self.query("SELECT outcome, count(*) FROM v_attempts GROUP BY outcome")),
            {"succeeded": 12})

    def test_cancel_stops_trainers_at_once(self):
        self.server()
        self.worker()
        self.submit(tiny_sweep(epochs=2000, train_examples=2048))
        # Both slots: a trainer that still loads LibTorch at the cancellation begins later, and is
        # ended then.
        wait_until(lambda: len(self.trainers()) == 2, 30, "both trainers")
        self.ok(self.pelab("cancel", "tiny"))
        wait_until(lambda: not self.trainers(), 3, "the trainers to end")
        wait_until(lambda: self.states() == {"cancelled": 4}, 5, "all jobs to be cancelled")
        self.assertEqual(processes("pelab-trainer", str(self.folder)), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
