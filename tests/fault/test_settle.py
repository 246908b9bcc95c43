"""kill -9 of the command, the coordinator and the worker in every phase of settling, and two people
who settle one sheet: the rounds, the verdicts and every e-value, to the last digit, are those of an
undisturbed run."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from fault_case import FaultCase, rounds  # noqa: E402
from pelab_harness import processes, wait_until  # noqa: E402
from settle_case import SettleCase  # noqa: E402


class Settling(SettleCase, FaultCase):
    _expected = None  # once per process

    def expected(self):
        if Settling._expected is None:
            self.ok(self.settle(self.sheet()))
            self.recount()
            Settling._expected = self.settled()
            for path in self.folder.glob("pelab.db*"):
                if path.is_file():
                    path.unlink()
        return Settling._expected

    def finish(self, sheet, served=False):
        self.ok(self.settle(sheet, served=served))
        self.assertEqual(self.settled(), self._expected)
        self.recount()
        self.check()

    def of_this_test(self, program):
        return processes(program, str(self.folder))

    def test_the_command_its_coordinator_and_its_worker(self):
        self.expected()
        sheet = self.sheet()
        for number in range(rounds(4)):
            settler = self.begin(sheet)
            self.nap(0.2, 1.2)
            victim = ("pelab", "pelab-server", "pelab-worker")[number % 3]
            if victim == "pelab":
                settler.kill()
            else:
                for pid in self.of_this_test(victim):
                    self.kill_one(pid)
            settler.wait(30)
            wait_until(lambda: not self.of_this_test("pelab-"), 20, "everything to end")
        self.finish(sheet)

    def kill_one(self, pid):
        SettleCase.kill(self, pid)

    def test_two_settlers_and_a_coordinator_that_is_killed(self):
        self.expected()
        sheet = self.sheet()
        for number in range(rounds(3)):
            server = self.server()
            worker = self.worker()
            settlers = [self.begin(sheet, served=True) for _ in range(2)]
            self.nap(0.5, 2.0)
            for process in ([server, worker], [settlers[0], server])[number % 2]:
                process.kill()
                process.wait()
            for process in (server, worker, *settlers):
                if process.poll() is None:
                    process.terminate()
                process.wait(20)
        self.server()
        self.worker("last")
        settlers = [self.begin(sheet, served=True) for _ in range(2)]
        self.assertEqual([settler.wait(240) for settler in settlers], [0, 0], self.logs())
        self.finish(sheet, served=True)


if __name__ == "__main__":
    unittest.main(verbosity=2)
