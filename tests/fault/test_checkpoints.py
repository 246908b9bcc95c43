"""If the machine of a job is lost, the job continues elsewhere from the coordinator's checkpoint.
The result is bit for bit that of an uninterrupted job: every epoch's figures, the ablation matrices
and the kept weights. The workers here share nothing: each has a work directory of its own."""

import os
import pathlib
import stat
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pelab_harness import Case, tiny_sweep, wait_until  # noqa: E402

JOBS = 2
EPOCHS = 40  # a second of training: a worker must be able to leave before its jobs have ended
SWEEP = tiny_sweep(epochs=EPOCHS, train_examples=512, seeds="[0]")


class Checkpoints(Case):
    reference = None  # the results of an undisturbed run

    def undisturbed(self):
        """The results of an undisturbed run, made once for all tests."""
        if Checkpoints.reference is None:
            other = self.folder / "undisturbed.db"
            path = self.write("undisturbed.yaml", SWEEP)
            self.ok(self.pelab_db("run", path, "--db", other, "--cpu-slots", 2,
                                  "--threads-per-slot", 1))
            Checkpoints.reference = self.results(db=other)
        return Checkpoints.reference

    def begin(self, *flags, store=()):
        self.coordinator = self.server(*store)
        self.first = self.worker("first", 2, "--checkpoint-every", "1epoch", *flags, *store)
        self.submit(SWEEP)

    def checkpoints(self):
        return dict(self.query("SELECT job_id, epoch FROM v_checkpoints"))

    def await_checkpoints(self, least=2):
        wait_until(lambda: sum(epoch >= least for epoch in self.checkpoints().values()) == JOBS, 60,
                   "a checkpoint of every job")

    def lose_the_first(self):
        self.first.kill()
        self.first.wait()

    def finish(self, *store):
        """Finishes the sweep on a second worker. Returns the epochs at which its attempts started.
        """
        self.worker("second", 2, *store)
        self.wait_finished(JOBS)
        self.assert_complete(JOBS, EPOCHS)
        self.assertEqual(self.results(), self.undisturbed())
        self.assertEqual(self.checkpoints(), {}, "a checkpoint has outlived its job")
        self.ok(self.pelab_db("db", "check"))
        first = self.query("SELECT worker FROM v_attempts ORDER BY attempt_id LIMIT 1")[0][0]
        return [row[0] for row in self.query(
            "SELECT start_epoch FROM v_attempts WHERE worker <> ? AND outcome = 'succeeded'",
            first)]

    def test_a_lost_machine(self):
        self.begin("--checkpoint-upload", "100ms")
        self.await_checkpoints()
        self.lose_the_first()
        stored = min(self.checkpoints().values())
        starts = self.finish()
        self.assertEqual(len(starts), JOBS)
        self.assertGreaterEqual(min(starts), stored)

    def hand_over(self, leave):
        """`leave` ends the first worker in an orderly way: no stored epoch may be computed again.
        """
        self.begin()  # uploads every 5 minutes, so only the last checkpoint is uploaded
        wait_until(lambda: self.query("SELECT count(DISTINCT job_id) FROM v_curves WHERE epoch >= "
                                      "2")[0][0] == JOBS, 60, "epochs of every job")
        leave()
        done = dict(self.query("SELECT job_id, count(*) FROM v_curves GROUP BY job_id"))
        self.assertEqual(self.checkpoints(), done,
                         "something that is stored would be computed again")
        starts = self.finish()
        self.assertEqual(sorted(starts), sorted(done.values()))

    def test_a_worker_that_is_told_to_end(self):
        def leave():
            self.first.terminate()
            self.assertEqual(self.first.wait(10), 0)
            self.assertEqual(self.trainers(), [], "it takes its trainers along")
        self.hand_over(leave)

    def test_a_worker_that_is_drained(self):
        def leave():
            worker = self.query("SELECT worker_id FROM v_workers")[0][0]
            self.ok(self.pelab("workers", "drain", worker, "--mode", "checkpoint"))
            wait_until(lambda: self.query(
                "SELECT count(*) FROM v_attempts WHERE outcome = 'preempted'")[0][0] == JOBS, 60,
                       "every attempt to be given back")
        self.hand_over(leave)

    def test_a_shared_disk(self):
        store = ("--artifact-store", self.folder / "store")
        (self.folder / "store").mkdir()
        self.begin("--checkpoint-upload", "100ms", store=store)
        self.await_checkpoints()
        self.lose_the_first()
        starts = self.finish(*store)
        self.assertGreater(min(starts), 0)
        self.assertNotIn("files go through the coordinator", self.logs())
        # The store has the umask's modes, and the database is its user's alone.
        given = os.umask(0)
        os.umask(given)
        modes = [stat.S_IMODE(path.stat().st_mode) for path in (self.folder / "store/database",
                                                                self.db)]
        self.assertEqual(modes, [0o644 & ~given, 0o600])

    def test_a_damaged_file_costs_time_and_nothing_else(self):
        self.begin("--checkpoint-upload", "100ms")
        self.await_checkpoints()
        self.lose_the_first()
        # While the coordinator is down, no upload can replace the damaged files, so it will hand
        # these out.
        self.coordinator.kill()
        self.coordinator.wait()
        for sha256, in self.query("SELECT sha256 FROM v_checkpoints"):
            path = pathlib.Path(f"{self.db}.artifacts") / sha256[:2] / sha256
            data = bytearray(path.read_bytes())
            data[len(data) // 2] ^= 1
            path.write_bytes(data)
        self.coordinator = self.server()
        self.assertEqual(self.finish(), [0] * JOBS)


if __name__ == "__main__":
    unittest.main(verbosity=2)
