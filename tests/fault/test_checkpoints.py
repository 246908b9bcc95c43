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
EPOCHS = 45  # most of a second: two workers must be able to leave before their jobs have ended
SWEEP = tiny_sweep(epochs=EPOCHS, train_examples=192, seeds="[0]")


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
        first = self.trains("first", *flags, *store)
        self.submit(SWEEP)
        return first

    def trains(self, name, *flags):
        return self.worker(name, 2, "--checkpoint-every", "1epoch", *flags)

    def identity(self, name):
        return (self.folder / name / "worker_id").read_text().strip()

    def starts(self, name):
        """The epochs at which the worker's attempts started, by job; once all have."""
        def told():
            return dict(self.query("SELECT job_id, start_epoch FROM v_attempts WHERE worker = ? "
                                   "AND start_epoch IS NOT NULL", self.identity(name)))
        file = self.folder / name / "worker_id"
        wait_until(lambda: file.exists() and len(told()) == JOBS, 60, f"attempts of {name}")
        return told()

    def checkpoints(self):
        return dict(self.query("SELECT job_id, epoch FROM v_checkpoints"))

    def files(self):
        return {row[0] for row in self.query("SELECT sha256 FROM v_checkpoints")}

    def await_checkpoints(self, least=2, besides=frozenset()):
        """Waits for a checkpoint of every job, whose file is none of `besides`."""
        wait_until(lambda: sum(epoch >= least for epoch in self.checkpoints().values()) == JOBS
                   and not self.files() & besides, 60, "a checkpoint of every job")

    def lose(self, worker):
        worker.kill()
        worker.wait()

    def finish(self, name, *store):
        """Finishes the sweep on one more worker. Returns the epochs at which its attempts
        started, by job."""
        self.worker(name, 2, *store)
        self.wait_finished(JOBS)
        self.assert_complete(JOBS, EPOCHS)
        self.assertEqual(self.results(), self.undisturbed())
        self.assertEqual(self.checkpoints(), {}, "a checkpoint has outlived its job")
        self.ok(self.pelab_db("db", "check"))
        starts = dict(self.query("SELECT job_id, start_epoch FROM v_attempts WHERE worker = ? "
                                 "AND outcome = 'succeeded'", self.identity(name)))
        self.assertEqual(len(starts), JOBS)
        return starts

    def epochs(self):
        return dict(self.query("SELECT job_id, count(*) FROM v_curves GROUP BY job_id"))

    def hand_over(self, leave):
        """`leave` ends a worker in an orderly way: no stored epoch may be computed again. Returns
        the number of stored epochs by job."""
        before = self.epochs()
        wait_until(lambda: sum(epochs >= before.get(job, 0) + 3
                               for job, epochs in self.epochs().items()) == JOBS, 60,
                   "epochs of every job")
        leave()
        done = self.epochs()
        self.assertLess(max(done.values()), EPOCHS, "nothing is left to be handed over")
        self.assertEqual(self.checkpoints(), done,
                         "something that is stored would be computed again")
        return done

    def test_a_worker_that_is_told_to_end_and_one_that_is_drained(self):
        def preempted():
            return self.query("SELECT count(*) FROM v_attempts WHERE outcome = 'preempted'")[0][0]

        def end():
            first.terminate()
            self.assertEqual(first.wait(10), 0)
            self.assertEqual(self.trainers(), [], "it takes its trainers along")

        def drain():
            before = preempted()
            self.ok(self.pelab("workers", "drain", self.identity("second"),
                               "--mode", "checkpoint"))
            wait_until(lambda: preempted() == before + JOBS, 60, "every attempt to be given back")
        first = self.begin()  # uploads every 5 minutes, so only the last checkpoint is uploaded
        done = self.hand_over(end)
        self.trains("second")
        self.assertEqual(self.starts("second"), done)
        done = self.hand_over(drain)
        self.assertEqual(self.finish("third"), done)

    def test_a_shared_disk(self):
        store = ("--artifact-store", self.folder / "store")
        (self.folder / "store").mkdir()
        first = self.begin("--checkpoint-upload", "100ms", store=store)
        self.await_checkpoints()
        self.lose(first)
        starts = self.finish("second", *store)
        self.assertGreater(min(starts.values()), 0)
        self.assertNotIn("files go through the coordinator", self.logs())
        # The store has the umask's modes, and the database is its user's alone.
        given = os.umask(0)
        os.umask(given)
        modes = [stat.S_IMODE(path.stat().st_mode) for path in (self.folder / "store/database",
                                                                self.db)]
        self.assertEqual(modes, [0o644 & ~given, 0o600])

    def test_a_damaged_file_costs_time_and_a_lost_machine_only_what_was_not_uploaded(self):
        upload = ("--checkpoint-upload", "100ms")
        first = self.begin(*upload)
        self.await_checkpoints()
        self.lose(first)
        # While the coordinator is down, no upload can replace the damaged files, so it will hand
        # these out.
        self.coordinator.kill()
        self.coordinator.wait()
        damaged = self.files()
        for sha256 in damaged:
            path = pathlib.Path(f"{self.db}.artifacts") / sha256[:2] / sha256
            data = bytearray(path.read_bytes())
            data[len(data) // 2] ^= 1
            path.write_bytes(data)
        self.coordinator = self.server()
        second = self.trains("second", *upload)
        self.assertEqual(list(self.starts("second").values()), [0] * JOBS)
        self.await_checkpoints(besides=damaged)
        self.lose(second)
        stored = self.checkpoints()
        starts = self.finish("third")
        for job, epoch in stored.items():
            self.assertGreaterEqual(starts[job], epoch)


if __name__ == "__main__":
    unittest.main(verbosity=2)
