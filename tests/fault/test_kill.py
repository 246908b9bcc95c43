"""kill -9 of each program in the middle of a run with a coordinator: the sweep completes, nothing
is lost, and nothing is stored twice."""

import os
import pathlib
import signal
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pelab_harness import Case, alive, processes, tiny_sweep, wait_until  # noqa: E402

JOBS = 4


class Kill(Case):
    def begin(self, epochs=12):
        """Starts a coordinator, a worker and a sweep, and waits until the sweep is in progress."""
        self.epochs = epochs
        self.coordinator = self.server()
        self.agent = self.worker()
        self.submit(tiny_sweep(epochs=epochs, train_examples=1024))
        wait_until(lambda: self.query("SELECT count(*) FROM v_curves")[0][0] >= 10, 60, "the first epochs")

    def finish(self, acknowledged):
        self.wait_finished(JOBS)
        self.assert_complete(JOBS, self.epochs)
        curves = self.curves()
        self.assertEqual(acknowledged, {at: curves[at] for at in acknowledged}, "a stored epoch is gone or has changed")
        self.ok(self.pelab_db("db", "check"))

    def test_trainer(self):
        self.begin()
        acknowledged = self.curves()
        os.kill(self.trainers()[0], signal.SIGKILL)
        self.finish(acknowledged)
        outcomes = dict(self.query("SELECT outcome, count(*) FROM v_attempts GROUP BY outcome"))
        self.assertEqual(outcomes, {"failed": 1, "succeeded": JOBS})
        self.assertIn("signal 9", self.query("SELECT error FROM v_attempts WHERE outcome = 'failed'")[0][0])

    def test_worker(self):
        self.begin()
        acknowledged = self.curves()
        trainers = self.trainers()
        self.assertTrue(trainers)
        self.agent.kill()
        self.agent.wait()
        wait_until(lambda: not any(map(alive, trainers)), 5, "the dead agent's trainers to end")
        self.agent = self.worker()
        self.finish(acknowledged)
        outcomes = dict(self.query("SELECT outcome, count(*) FROM v_attempts GROUP BY outcome"))
        self.assertEqual(outcomes.pop("succeeded"), JOBS)
        self.assertNotIn("failed", outcomes, "a lost worker is not a failed job")

    def test_worker_that_never_comes_back(self):
        self.begin()
        acknowledged = self.curves()
        self.agent.kill()
        self.agent.wait()
        self.worker("second")
        self.finish(acknowledged)

    def test_coordinator(self):
        self.begin(epochs=30)
        acknowledged = self.curves()
        self.coordinator.kill()
        self.coordinator.wait()
        # Stop the trainers, so that none can end before the coordinator is back, however long that
        # takes.
        trainers = self.trainers()
        self.assertTrue(trainers)
        for trainer in trainers:
            os.kill(trainer, signal.SIGSTOP)
        # Workers have one lease to come back. This lease is long enough for slow programs on a busy
        # machine.
        self.coordinator = self.server(lease_ms=20_000)
        self.assertEqual(set(trainers), set(self.trainers()), "a trainer did not survive the coordinator's restart")
        for trainer in trainers:
            os.kill(trainer, signal.SIGCONT)
        self.finish(acknowledged)
        self.assertEqual(dict(self.query("SELECT outcome, count(*) FROM v_attempts GROUP BY outcome")),
                         {"succeeded": JOBS}, "a restart cost an attempt")

    def test_agent_told_to_end_takes_its_trainers_along(self):
        self.begin()
        self.agent.send_signal(signal.SIGTERM)
        self.agent.wait(10)
        self.assertEqual(self.trainers(), [])
        acknowledged = self.curves()
        self.worker()
        self.finish(acknowledged)


class Sharing(Case):
    def test_two_workers_share_and_a_third_joins(self):
        self.server()
        self.worker("a", 1)
        self.worker("b", 1)
        self.submit(tiny_sweep(epochs=10, train_examples=1024, seeds="0..4"))
        wait_until(lambda: self.query("SELECT count(DISTINCT worker) FROM v_attempts WHERE outcome IS NULL")[0][0] == 2, 30,
                   "both workers to have a job")
        self.worker("c", 1)
        wait_until(lambda: self.query("SELECT count(DISTINCT worker) FROM v_attempts")[0][0] == 3, 10,
                   "the third worker to get a job")
        self.wait_finished(10)
        self.assert_complete(10, 10)
        self.assertEqual(dict(self.query("SELECT outcome, count(*) FROM v_attempts GROUP BY outcome")), {"succeeded": 10})

    def test_cancel_stops_trainers_at_once(self):
        self.server()
        self.worker()
        self.submit(tiny_sweep(epochs=2000, train_examples=2048))
        wait_until(self.trainers, 30, "the trainers")
        self.ok(self.pelab("cancel", "tiny"))
        wait_until(lambda: not self.trainers(), 3, "the trainers to end")
        wait_until(lambda: self.states() == {"cancelled": JOBS}, 5, "all jobs to be cancelled")
        self.assertEqual(processes("pelab-trainer", str(self.folder)), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
