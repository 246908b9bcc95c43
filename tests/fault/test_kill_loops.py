"""kill -9 again and again, at random moments, of the coordinator and of the worker daemons. Nothing
acknowledged is lost, nothing is stored twice, no sweep gets stuck, and the results are bit for bit
those of an undisturbed run."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from fault_case import FaultCase, rounds  # noqa: E402
from pelab_harness import alive, processes, tiny_sweep, wait_until  # noqa: E402

EPOCHS = 10


def sweep(hits):
    """A sweep with enough jobs for so many hits, so that no job is hit too often."""
    seeds = max(2, hits // 3)
    return tiny_sweep(epochs=EPOCHS,
                      train_examples=256,
                      seeds=f"0..{seeds - 1}",
                      pes="[nope, rope]"), 2 * seeds


class KillLoops(FaultCase):
    def test_coordinator(self):
        hits = rounds(5)
        document, jobs = sweep(hits)
        self.undisturbed(document, jobs)
        coordinator = self.server()
        self.worker()
        self.submit(document)
        self.observe(customer=True)
        for hit in range(hits):
            self.nap(0.02, 0.3)
            self.kill(coordinator)
            coordinator = self.server()
        # On a busy machine all of the customer's calls may have met a dead coordinator so far.
        wait_until(lambda: self.customer.submitted, 60, "a sweep of the customer to be stored")
        self.settle(document, jobs)
        self.assertEqual({"succeeded", "cancelled"} | set(self.outcomes()),
                         {"succeeded", "cancelled"}, "a restart of the coordinator cost an attempt")

    def test_workers(self):
        hits = rounds(4)
        document, jobs = sweep(hits)
        self.undisturbed(document, jobs)
        self.server()
        self.submit(document)
        self.observe()
        workers = {name: self.worker(name, 1) for name in ("a", "b")}
        for hit in range(hits):
            # A job that is lost five times without progress is given up; this protects workers from
            # jobs that kill them. So most hits come after some progress.
            if hit % 3:
                self.wait_epochs(self.draw.randint(2, 6))
            self.nap(0.0, 0.3)
            wait_until(lambda: self.most_lost() < 4, 120, "a job that was lost four times to end")
            name = self.draw.choice(sorted(workers))
            trainers = self.trainers_of(name)
            self.kill(workers[name])
            wait_until(lambda: not any(map(alive, trainers)), 5,
                       "the trainers of the dead daemon to end")
            workers[name] = self.worker(name, 1)
        self.settle(document, jobs)
        outcomes = self.outcomes()
        self.assertEqual(outcomes.pop("succeeded"), jobs)
        self.assertNotIn("failed", outcomes, "a dead worker is not a failed job")

    def most_lost(self):
        """The highest number of lost attempts of a running job. At five a job is given up, as
        intended."""
        return self.query("SELECT coalesce(max(lost_attempts), 0) FROM jobs WHERE state IN "
                          "('assigned', 'running')")[0][0]

    def trainers_of(self, name):
        return processes("pelab-trainer", str(self.folder / name) + "/")


if __name__ == "__main__":
    unittest.main(verbosity=2)
