"""Programs of two releases together, with kill -9 in between: the results are those of one release.
PELAB_OLD_BIN names the folder with the programs of the earlier release (`make releases OLD=…`); the
test is skipped (status 77) without it."""

import os
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import pelab_harness  # noqa: E402
from fault_case import FaultCase  # noqa: E402
from pelab_harness import tiny_sweep, wait_until  # noqa: E402

OLD = os.environ.get("PELAB_OLD_BIN")
NEW = pelab_harness.BIN
SKIPPED = 77
SWEEP = tiny_sweep(epochs=24, train_examples=256, seeds="0..1")
JOBS = 4


class Releases(FaultCase):
    def setUp(self):
        super().setUp()
        self.use(NEW)
        self.addCleanup(self.use, NEW)
        self.old = pathlib.Path(OLD).resolve()

    def use(self, programs):
        """The release of what is started from now on."""
        pelab_harness.BIN = programs

    def start(self, coordinator, worker):
        self.use(worker)
        process = self.worker()
        self.use(coordinator)
        return self.server(), process

    def kills(self, pairs):
        """Trains the sweep under one pair of (coordinator, worker) after another. Each pair but the
        last is killed after some epochs."""
        self.undisturbed(SWEEP, JOBS)
        self.observe()
        for number, (coordinator, worker) in enumerate(pairs):
            running = self.start(coordinator, worker)
            if number == 0:
                self.submit(SWEEP)
            if number + 1 < len(pairs):
                self.wait_epochs(8)
                for process in running:
                    self.kill(process)
        self.use(NEW)
        self.settle(SWEEP, JOBS)
        self.assertGreater(len(self.query("SELECT 1 FROM v_attempts")), JOBS, "nothing was killed")

    def test_an_old_worker_with_a_new_coordinator(self):
        self.kills([(NEW, self.old)] * 3)

    def test_a_new_worker_with_an_old_coordinator(self):
        self.undisturbed(SWEEP, JOBS)  # by this release
        document = self._undisturbed[SWEEP]
        self.start(self.old, NEW)
        self.submit(SWEEP)
        for _ in range(2):
            self.wait_epochs(8)
            for process in list(self.started):
                self.kill(process)
            self.start(self.old, NEW)
        self.wait_finished(JOBS, 240)
        self.assertEqual((self.curves(), self.ablations()), document)
        self.ok(self.pelab_db("db", "check"))

    def test_an_upgrade_of_one_program_after_the_other(self):
        """First the coordinator, while the old worker trains on, then the worker."""
        self.undisturbed(SWEEP, JOBS)
        self.observe()
        server, worker = self.start(self.old, self.old)
        self.submit(SWEEP)
        self.wait_epochs(8)
        self.stop(server)
        self.use(NEW)
        self.server()
        self.wait_epochs(8)
        self.assertIsNone(worker.poll(), "the worker went on")
        self.stop(worker)
        self.worker("new")
        self.settle(SWEEP, JOBS)
        spoken = self.protocols()
        self.assertLessEqual(spoken[0], spoken[-1], "an upgrade speaks no older protocol")
        print("protocols of the workers, in the order of their connections:", spoken)

    def protocols(self):
        """The version of the protocol that each worker spoke to the last coordinator."""
        log = max(self.folder.glob("pelab-server.*.log"), key=lambda path: path.stat().st_mtime)

        def told():
            return dict(re.findall(r"worker \S+ \((\S+)\) on .*; protocol (\d+)$", log.read_text(),
                                   re.MULTILINE))
        wait_until(lambda: len(told()) == 2, 5, "the connections of the old worker and the new one")
        return [int(protocol) for protocol in told().values()]


if __name__ == "__main__":
    if OLD is None:
        print("skipped: PELAB_OLD_BIN is not set")
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
