"""kill -9 of the command, the coordinator and the worker in every phase of settling, and two people
who settle one sheet: the rounds, the verdicts and every e-value, to the last digit, are those of an
undisturbed run. With PELAB_FAULT_ROUNDS (`make fault`), also on the sweep of `make demo`, which
takes a quarter of an hour."""

import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from fault_case import FaultCase, rounds  # noqa: E402
from pelab_harness import processes, wait_until  # noqa: E402
from settle_case import DEMO, DEMO_CLAIMS, SettleCase  # noqa: E402


class Settling(SettleCase, FaultCase):
    _expected = None  # once per process
    share = 0.2  # of PELAB_FAULT_ROUNDS
    naps = ((0.2, 1.2), (0.5, 2.0))  # seconds until the kill, in each of the two tests
    patience = 240  # seconds for a sheet

    def expected(self):
        if type(self)._expected is None:
            self.ok(self.settle(self.sheet(), timeout=self.patience))
            self.recount()
            type(self)._expected = self.settled()
            self.forget()
        return self._expected

    def forget(self):
        for path in self.folder.glob("pelab.db*"):
            if path.is_file():
                path.unlink()

    def finish(self, sheet, served=False):
        self.ok(self.settle(sheet, served=served, timeout=self.patience))
        self.assertEqual(self.settled(), self._expected)
        self.recount()
        self.check()

    def of_this_test(self, program):
        return processes(program, str(self.folder))

    def test_the_command_its_coordinator_and_its_worker(self):
        self.expected()
        sheet = self.sheet()
        for number in range(rounds(3, self.share)):
            victim = ("pelab", "pelab-server", "pelab-worker")[number % 3]
            settler = self.begin(sheet)
            if victim != "pelab":  # a busy machine starts it late, and nobody would be killed
                wait_until(lambda: self.of_this_test(victim) or settler.poll() is not None, 30,
                           f"{victim} to start")
            if settler.poll() == 0:  # nothing is left that a kill could disturb
                self.finish(sheet)
                self.forget()
                settler = self.begin(sheet)
                wait_until(lambda: self.of_this_test(victim), 30, f"{victim} to start")
            self.nap(*self.naps[0])
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
        for number in range(rounds(2, self.share)):
            server = self.server()
            worker = self.worker()
            settlers = [self.begin(sheet, served=True) for _ in range(2)]
            self.nap(*self.naps[1])
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
        self.assertEqual([settler.wait(self.patience) for settler in settlers], [0, 0], self.logs())
        self.finish(sheet, served=True)


@unittest.skipUnless(os.environ.get("PELAB_FAULT_ROUNDS"), "takes a quarter of an hour")
class SettlingTheDemo(Settling):
    _expected = None
    share = 0.05
    naps = ((1, 30), (5, 40))
    patience = 1800
    document = DEMO.read_text(encoding="utf-8")

    def sheet(self, *_, **settings):
        return super().sheet(DEMO_CLAIMS, **{"first_seed": 2, "max_seeds": 8, **settings})


if __name__ == "__main__":
    unittest.main(verbosity=2)
