"""A disk fills up under the database and under a worker. Only stored data is acknowledged, no
attempt is lost and no job fails because of it, and refusals come with a message. Once there is
room, everything completes without help."""

import pathlib
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from fault_case import LEASE, FaultCase, rounds  # noqa: E402
from own_mounts import mount_tmpfs, own_mounts, unmount  # noqa: E402
from pelab_harness import tiny_sweep, wait_until  # noqa: E402

FILLINGS = rounds(1, 0.05)
# The jobs must not end before the disk is full for the last time, also on a busy machine. They are
# trained while it is full, which lasts for one and a half leases.
EPOCHS = 80 if FILLINGS == 1 else 60 * FILLINGS
EXAMPLES = 256 if FILLINGS == 1 else 4096
JOBS = 2

REFUSED = own_mounts()


@unittest.skipIf(REFUSED, REFUSED)
class FullDisk(FaultCase):
    def setUp(self):
        super().setUp()
        self.disk = self.folder / "disk"
        self.disk.mkdir()
        if refused := mount_tmpfs(self.disk, "size=24m"):
            self.skipTest(refused)
        self.addCleanup(unmount, self.disk)

    def fill(self):
        try:
            with open(self.disk / "filler", "ab", buffering=0) as filler:
                while filler.write(bytes(4096)):
                    pass
        except OSError:
            pass

    def free(self):
        (self.disk / "filler").unlink()

    def prepare(self):
        self.document = tiny_sweep(epochs=EPOCHS, train_examples=EXAMPLES, seeds="[0]")
        self.undisturbed(self.document, JOBS, timeout=120 + 60 * FILLINGS)

    def test_under_the_database(self):
        self.prepare()
        self.db = self.disk / "pelab.db"
        server = self.server()
        self.worker()
        self.submit(self.document)
        self.observe()
        for number in range(FILLINGS):
            self.wait_epochs(2)
            self.fill()
            self.assertFalse(self._finished(), "the disk was full too late")
            refused = wait_until(lambda: self.refusal(number), 30, "a submission to be refused")
            self.assertIn("disk is full", refused)
            self.assertNotIn("RESOURCE_EXHAUSTED", refused)
            log_before = len(self.logs())
            time.sleep(1.5 * LEASE)  # longer than a lease: silent workers would be lost
            self.assertIsNone(server.poll(), "the coordinator ended")
            self.assertEqual(self.pelab("status").returncode, 0, "reading needs no room")
            self.assertLess(len(self.logs()) - log_before, 5000, "the logs fill up as well")
            self.free()
            self.wait_epochs(1)
        self.settle(self.document, JOBS, timeout=240 + 60 * FILLINGS)
        self.assertEqual(self.outcomes(), {"succeeded": JOBS}, "an attempt was lost to a full disk")

    def refusal(self, number):
        """Submits sweeps until the disk is really full, and returns the message of the refusal.
        Earlier submissions that still fit into the log are cancelled."""
        path = self.write("large.yaml", tiny_sweep(seeds="[77]", name=f"large{number}") + "#"
                          + "x" * 200_000 + "\n")
        result = self.pelab("submit", path)
        if result.returncode == 0:
            self.pelab("cancel", f"large{number}")
            self.fill()
        return result.stderr if result.returncode else None

    def test_under_a_worker(self):
        self.prepare()
        self.server()
        self.worker("disk/w", 2)
        self.submit(self.document)
        self.observe()
        for _ in range(FILLINGS):
            self.wait_epochs(2)
            self.fill()
            self.assertFalse(self._finished(), "the disk was full too late")
            time.sleep(1.5 * LEASE)
            self.assertEqual(self.query(
                "SELECT count(*) FROM v_attempts WHERE outcome IN ('lost', 'failed')")[0][0], 0)
            self.free()
            self.wait_epochs(1)
        self.settle(self.document, JOBS, timeout=240 + 60 * FILLINGS)
        self.assertEqual(self.outcomes(), {"succeeded": JOBS}, "an attempt was lost to a full disk")

    def test_an_assignment_to_a_full_worker_waits(self):
        self.prepare()
        lease = 0.5
        self.server(lease_ms=int(1000 * lease))
        self.worker("disk/w", 2)
        wait_until(
            lambda: self.query("SELECT count(*) FROM v_workers WHERE state = 'online'")[0][0], 20,
            "the worker")
        self.observe()
        self.fill()
        self.submit(self.document)
        time.sleep(7 * lease)  # a job may be lost five times
        self.free()
        self.settle(self.document, JOBS, timeout=240 + 60 * FILLINGS)
        self.assertEqual(self.outcomes(), {"succeeded": JOBS})


if __name__ == "__main__":
    unittest.main(verbosity=2)
