"""kill -9 of the command, the coordinator and the worker in every phase of settling, two people who
settle one sheet, and two sheets that share cells: the rounds, the verdicts and every e-value, to
the last digit, are those of an undisturbed run. With PELAB_FAULT_ROUNDS (`make fault`), also on the
sweep of `make demo`, which takes a quarter of an hour."""

import contextlib
import os
import pathlib
import signal
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from fault_case import FaultCase, rounds  # noqa: E402
from pelab_harness import processes, wait_until  # noqa: E402
from settle_case import CLAIMS, DEMO, DEMO_CLAIMS, SettleCase  # noqa: E402


class Settling(SettleCase, FaultCase):
    _expected = None  # once per process
    share = 0.2  # of PELAB_FAULT_ROUNDS
    naps = ((0.2, 1.2), (0.5, 2.0))  # seconds until a kill, in each of the first two tests
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
        for number in range(rounds(1, self.share)):
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

    def phase(self):
        """The phase that is stored: registered, begun (no job runs), training, trained (the round
        has not ended) or ended (the next one has not begun)."""
        last = self.query("SELECT ended_at IS NULL FROM v_sheet_rounds ORDER BY round DESC LIMIT 1")
        if last != [(1,)]:
            return "ended" if last else "registered"
        if self.query("SELECT 1 FROM v_attempts WHERE outcome IS NULL"):
            return "training"
        open_jobs, = self.query("SELECT count(*) FILTER (WHERE state IN ('queued', 'running')), "
                                "count(*) FROM v_jobs")
        return "begun" if open_jobs[0] or not open_jobs[1] else "trained"

    def hold_a_job(self):
        """Stops the trainer of a job that runs, so that its attempt stays open."""
        def held():
            if self.phase() != "training":
                return None
            trainers = self.trainers()
            for pid in trainers:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
            if trainers and self.phase() == "training" and all(map(self.stands_still, trainers)):
                return trainers
            self.let_go(trainers)
            return None
        return wait_until(held, 60, "a job to run")

    @staticmethod
    def stands_still(pid):
        with contextlib.suppress(OSError):
            status = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
            return status.rpartition(")")[2].split()[0] == "T"
        return False

    @staticmethod
    def let_go(pids):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def test_every_program_in_every_phase(self):
        self.expected()
        sheet = self.sheet()
        running = {}

        def start(name):
            running[name] = {"server": self.server, "worker": lambda: self.worker(slots=1),
                             "settler": lambda: self.begin(sheet, served=True)}[name]()

        def kill(*names, phase):
            """Of these programs, each in turn; those that serve the others are started again."""
            for name in names:
                running[name].kill()
                running.pop(name).wait()
                self.assertEqual(self.phase(), phase, f"after the end of the {name}")
                if name == "server":
                    start(name)
                    self.assertEqual(self.phase(), phase, "a new coordinator waits for a command")

        start("server")
        self.ok(self.settle(sheet, "--budget", 0, served=True))
        kill("server", phase="registered")
        start("settler")  # without a worker
        self.wait_round(1)
        kill("settler", "server", phase="begun")
        for victim in ("worker", "server", "settler"):
            start("settler")
            if "worker" not in running:
                start("worker")
            held = self.hold_a_job()
            # While the command stands still, its round does not end.
            running["settler"].send_signal(signal.SIGSTOP)
            running[victim].kill()
            running.pop(victim).wait()
            self.assertEqual(self.phase(), "training", f"after the end of the {victim}")
            self.let_go(held)
            if victim != "settler":
                running.pop("settler").kill()
            if victim == "server":
                start("server")
            if victim == "worker":
                wait_until(lambda: self.phase() == "begun", 30, "its lease to end")
        start("settler")
        held = self.hold_a_job()
        running["settler"].send_signal(signal.SIGSTOP)
        self.let_go(held)
        wait_until(lambda: self.phase() == "trained", self.patience, "the jobs to end")
        kill("settler", "worker", "server", phase="trained")
        self.ok(self.settle(sheet, "--max-jobs", 0, served=True))
        start("worker")
        kill("worker", "server", phase="ended")
        start("worker")
        self.finish(sheet, served=True)

    def test_two_sheets_that_share_cells(self):
        self.expected()
        few = [claim for claim in CLAIMS if claim["id"] in ("rope-clearly", "near", "deposit")]
        other = self.sheet(few, name="few")
        self.ok(self.settle(other, timeout=self.patience))
        alone = self.rounds_of(1)
        self.forget()
        sheet = self.sheet()
        self.server()
        for one in (sheet, other):  # before anything is stored, so that all seeds are fresh
            self.ok(self.settle(one, "--budget", 0, served=True))
        self.worker()
        settlers = [self.begin(one, served=True) for one in (other, sheet)]
        self.assertEqual([settler.wait(self.patience) for settler in settlers], [0, 0], self.logs())
        self.assertEqual(self.rounds_of(2), alone)
        self.assertEqual(self.rounds_of(1), self.without_sheet(self._expected))
        self.assertEqual(self.query("SELECT count(*) FROM v_attempts"),
                         self.query("SELECT count(*) FROM v_jobs"), "a shared cell is trained once")
        self.recount()
        self.check()

    @staticmethod
    def without_sheet(settled):
        return tuple([row[1:] for row in rows] for rows in settled)

    def rounds_of(self, sheet):
        return self.without_sheet([row for row in rows if row[0] == sheet]
                                  for rows in self.settled())


@unittest.skipUnless(os.environ.get("PELAB_FAULT_ROUNDS"), "takes a quarter of an hour")
class SettlingTheDemo(Settling):
    _expected = None
    share = 0.05
    naps = ((1, 30), (5, 40))
    patience = 1800
    document = DEMO.read_text(encoding="utf-8")
    test_two_sheets_that_share_cells = None  # of small claims

    def sheet(self, *_, **settings):
        return super().sheet(DEMO_CLAIMS, **{"first_seed": 2, "max_seeds": 8, **settings})


if __name__ == "__main__":
    unittest.main(verbosity=2)
