"""pelab-scale and workers on a real Slurm cluster of two nodes, which deploy/slurm/try.sh starts.
The test is skipped (status 77) where Slurm is not installed or the user is not root."""

import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pelab_harness import SOURCE, processes, tiny_sweep, wait_until  # noqa: E402
from slurm_case import SlurmCase, on_the_cluster, slurm  # noqa: E402

# Jobs without analyses, which a stand-in for the trainer can do.
STEADY_SWEEP = """\
name: steady{last}
protocol: clean
pe: [nope, rope]
task: {{name: distance, train_examples: 99, test_examples: 97}}
seed: 0..{last}
model: {{d_model: 8, d_ff: 16, heads: 2, layers: 2}}
train: {{epochs: 2}}
analyses: []
"""
STEADY = SOURCE / "tests" / "support" / "steady_trainer.sh"


class Scale(SlurmCase):
    def test_from_none_to_some_to_none(self):
        self.queues()
        self.scale()
        wait_until(lambda: "queue low: 0 allocations" in self.said(), 30, "its first look")
        self.assertIn("wants 0 allocations", self.asked("--dry-run").stdout)
        self.assertEqual(self.allocations(), [], "no job waits")
        self.submit(tiny_sweep(epochs=8, seeds="0..7"))
        self.await_workers(2)
        shown = self.asked("--list").stdout
        self.assertIn("queue low: 2 of 2 allocations", shown)
        self.assertEqual(shown.count("running"), 2, shown)
        self.check(16)
        self.assertEqual(self.said().count("submitted allocation"), 2, self.said())
        # Every worker ended by itself, and Slurm saw it end well.
        for job, state in self.allocations("all"):
            self.assertEqual(state, "COMPLETED", job)
        # One worker alone finds the same, bit for bit.
        found, db = self.curves(), self.db
        self.db = self.folder / "alone.db"
        self.ok(self.run_sweep(self.folder / "sweep.yaml", "--cpu-slots", "2",
                               "--threads-per-slot", "1"))
        self.assertEqual(self.curves(), found)
        self.db = db

    def test_allocations_that_slurm_takes_back_are_replaced(self):
        self.queues()
        self.scale()
        self.submit(tiny_sweep(epochs=700, seeds="0..1"))
        self.await_workers(2)
        # By a person.
        slurm("scancel", self.allocations()[0][0])
        wait_until(lambda: self.said().count("submitted allocation") == 3, 30, "a third one")
        self.await_workers(2)
        # By jobs of another partition, for some seconds.
        for _ in range(2):
            slurm("sbatch", "--partition=high", "--cpus-per-task=2", "--time=1",
                  f"--output={self.folder}/high.out", "--wrap=srun sleep 3")
        wait_until(lambda: self.said().count("submitted allocation") >= 4, 60, "one more")
        self.check(4)
        lost = self.query("SELECT count(*) FROM v_attempts WHERE outcome = 'lost'")[0][0]
        self.assertEqual(lost, 0, "every worker gave its jobs back")
        self.assertGreater(len(self.query("SELECT 1 FROM v_attempts")), 4)

    def test_it_is_killed_and_starts_again(self):
        self.queues()
        first = self.scale()
        self.submit(tiny_sweep(epochs=200, seeds="0..1"))
        self.await_workers(2)
        first.kill()
        first.wait()
        again = self.scale()
        wait_until(lambda: "queue low: 2 allocations" in self.said(), 30, "it finds them")
        self.check(4)
        self.assertEqual(self.said().count("submitted allocation"), 2, self.said())
        again.send_signal(signal.SIGTERM)
        self.assertEqual(again.wait(20), 0)

    def test_slurmctld_is_away(self):
        """For PELAB_SLURM_AWAY seconds; otherwise until pelab-scale has noticed it."""
        controller, = (int(pid) for pid in slurm("pgrep", "-f", "slurmctld -D -i").split())
        self.queues()
        self.scale()
        self.submit(tiny_sweep(epochs=200, seeds="0..1"))
        self.await_workers(2)
        os.kill(controller, signal.SIGSTOP)
        try:
            wait_until(lambda: "looking at the allocations: squeue" in self.said(), 60,
                       "the message")
            time.sleep(float(os.environ.get("PELAB_SLURM_AWAY", 0)))
        finally:
            os.kill(controller, signal.SIGCONT)
        wait_until(lambda: "looking at the allocations: answers again" in self.said(), 60,
                   "that it answers again")
        self.check(4)

    def test_the_time_limit(self):
        self.queues(most=1, time_limit="1m")
        self.scale()
        self.submit(tiny_sweep(epochs=5000, seeds="[0]"))
        self.await_workers(1)
        self.assertIn("s left", self.ok(self.pelab("workers")).stdout)
        wait_until(lambda: self.said().count("submitted allocation") == 2, 90, "a second one")
        (first, state), = [one for one in self.allocations("all") if one[1] != "RUNNING"][:1]
        self.assertEqual(state, "COMPLETED", first)
        reached = {epoch for epoch, in self.query("SELECT epochs_done FROM v_jobs")}
        self.assertGreater(max(reached), 0)
        self.ok(self.pelab("cancel", "tiny"))
        self.await_none()
        self.sound()

    def test_what_slurm_refuses_is_said(self):
        self.queues(partition="nowhere")
        self.scale()
        self.submit(tiny_sweep())
        wait_until(lambda: "invalid partition" in self.said(), 30, "the refusal")
        self.assertEqual(self.allocations(), [])
        shown = self.asked("--dry-run").stdout
        self.assertIn("queue low: 4 jobs wait, 0 slots are free, 0 are coming; wants 2 "
                      "allocations, submits 2 now", shown)
        self.assertIn("invalid partition", shown)
        self.queues(partition="low")
        self.assertIn("Slurm: sbatch: Job", self.asked("--dry-run").stdout)
        self.sound()

    def test_workers_that_never_connect(self):
        self.queues(program="/nowhere/pelab-worker")
        self.scale()
        self.submit(tiny_sweep())
        # The third and the fourth are seen to end together or apart.
        wait_until(lambda: re.search("paused: the workers of [34] allocations", self.said()), 60,
                   "the pause")
        self.await_none()
        self.assertLessEqual(self.submitted(), 4)
        self.sound()

    def test_preemption_without_grace(self):
        self.queues(partition="plain")
        self.scale()
        self.submit(tiny_sweep(epochs=500, seeds="0..1"))
        self.await_workers(2)
        self.await_epochs(4)
        for _ in range(2):
            slurm("sbatch", "--partition=high", "--cpus-per-task=2", "--time=1",
                  f"--output={self.folder}/high.out", "--wrap=srun sleep 3")
        wait_until(lambda: re.search("is over: (PREEMPTED|COMPLETED)", self.said()), 60, "the end")
        wait_until(lambda: self.submitted() >= 3, 60, "another one")
        self.check(4)
        # The moment between the signals sufficed to give everything back.
        self.assertEqual(self.query("SELECT * FROM v_attempts WHERE outcome = 'lost'"), [])

    def test_slurm_forgets_an_allocation(self):
        """One ends and is forgotten while pelab-scale does not look."""
        self.queues()
        scale = self.scale()
        self.submit(tiny_sweep(epochs=700, seeds="0..1"))
        self.await_workers(2)
        with self.short_memory():
            gone = self.allocations()[0][0]
            scale.send_signal(signal.SIGSTOP)
            try:
                slurm("scancel", gone)
                wait_until(lambda: gone not in dict(self.allocations("all")), 150, "forgetting")
            finally:
                scale.send_signal(signal.SIGCONT)
            wait_until(lambda: f"allocation {gone} is over" in self.said(), 30, "that it is over")
        self.check(4)
        self.assertEqual(self.submitted(), 3, self.said())

    @contextlib.contextmanager
    def short_memory(self):
        """Slurm forgets jobs that have ended after two seconds."""
        path = pathlib.Path(os.environ["SLURM_CONF"])
        before = path.read_text()
        path.write_text(re.sub("MinJobAge=.*", "MinJobAge=2", before))
        slurm("scontrol", "reconfigure")
        try:
            yield
        finally:
            path.write_text(before)
            slurm("scontrol", "reconfigure")

    def test_two_hundred_allocations(self):
        """Allocations that come and go. A person cancels those that have trained something."""
        self.queues(most=6, waiting=6, slots=1, idle_exit="1s", worker=("--trainer", STEADY))
        self.scale()
        jobs = 0
        begun = time.monotonic()
        while self.submitted() < 200:
            self.assertLess(time.monotonic() - begun, 240, f"only {self.submitted()} in time")
            if self.states().get("queued", 0) < 8:
                jobs += 24
                self.submit(STEADY_SWEEP.format(last=jobs // 2 - 1))
            useful = {name for name, in self.query(
                "SELECT w.name FROM v_workers AS w JOIN v_attempts AS a ON a.worker = w.worker_id "
                "WHERE w.state = 'online' AND a.outcome = 'succeeded'")}
            for job, state in self.allocations():
                if state == "RUNNING" and f"pelab-low-{job}" in useful:
                    slurm("scancel", job)
            time.sleep(0.1)
        wait_until(lambda: set(self.states()) <= {"succeeded", "failed"}, 120, "the last jobs")
        self.assertEqual(self.states(), {"succeeded": jobs})
        self.await_none()
        self.sound()
        ids = re.findall(r"submitted allocation (\d+)", self.said())
        self.assertEqual(len(ids), len(set(ids)))
        self.assertNotIn("paused", self.said())
        self.assertEqual(self.query("SELECT count(*), count(DISTINCT job_id || ' ' || epoch) "
                                    "FROM v_curves"), [(2 * jobs, 2 * jobs)])


class Gone(SlurmCase):
    """Leases are so long here that only pelab-scale can say in time that a worker is gone."""
    lease_ms = 120_000

    def setUp(self):
        super().setUp()
        self.addCleanup(self.repair)

    def slurmd(self, node):
        return [int(pid) for pid in slurm("pgrep", "-f", f"^slurmd -D -N {node}$").split()]

    def repair(self):
        """Starts a slurmd that a test has killed again, until the tests are over."""
        if not subprocess.run(["pgrep", "-f", "^slurmd -D -N n2$"], capture_output=True).stdout:
            daemon = subprocess.Popen(["slurmd", "-D", "-N", "n2"], stdin=subprocess.DEVNULL,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            unittest.addModuleCleanup(daemon.wait)
            unittest.addModuleCleanup(daemon.terminate)

        def is_up():
            state = slurm("sinfo", "-h", "-n", "n2", "-p", "low", "-o", "%T").strip()
            if state.startswith("down"):
                subprocess.run(["scontrol", "update", "nodename=n2", "state=resume"],
                               capture_output=True)
            return state in ("idle", "mixed", "allocated")
        wait_until(is_up, 60, "node n2")

    def worker_of(self, job):
        """The process of an allocation's worker."""
        found, = [pid for pid in processes(f"pelab-low-{job}")
                  if os.path.basename(os.readlink(f"/proc/{pid}/exe")) == "pelab-worker"]
        return found

    def await_loss(self, job, state):
        why = f"worker pelab-low-{job} is gone: allocation {job} is over: {state}"
        try:
            wait_until(lambda: self.query(
                "SELECT 1 FROM v_attempts WHERE outcome = 'lost' AND error LIKE ?", why), 60,
                "the end of its leases")
        except AssertionError:
            self.fail(f"{self.said()}\n{self.query('SELECT * FROM v_attempts')}")

    def test_a_node_goes_down(self):
        self.queues()
        self.scale()
        self.submit(tiny_sweep(epochs=500, seeds="0..1"))
        self.await_workers(2)
        self.await_epochs(4)
        job, = slurm("squeue", "-h", "-w", "n2", "-o", "%A").split()
        worker = self.worker_of(job)
        # The node is cut off: its worker does not say goodbye, and its connection looks healthy.
        os.kill(worker, signal.SIGSTOP)
        try:
            pid, = self.slurmd("n2")
            os.kill(pid, signal.SIGKILL)
            slurm("scontrol", "update", "nodename=n2", "state=down", "reason=test")
            self.await_loss(job, "NODE_FAIL")
            # The end of its attempts and its own may be in two transactions.
            wait_until(lambda: self.query("SELECT state FROM v_workers WHERE name = ?",
                                          f"pelab-low-{job}") == [("offline",)], 20,
                       "the worker to be offline")
        finally:
            os.kill(worker, signal.SIGCONT)
        # It lives all the same, and says what it has found. Nothing of that counts twice.
        self.wait_finished(4, 180)
        self.await_none()
        self.sound()

    def test_a_worker_that_is_killed_is_gone_at_once(self):
        self.queues(most=1)
        self.scale()
        self.submit(tiny_sweep(epochs=300, seeds="[0]"))
        self.await_workers(1)
        self.await_epochs(2)
        job, = (job for job, _ in self.allocations())
        os.kill(self.worker_of(job), signal.SIGKILL)
        self.await_loss(job, "%")
        self.check(2)


class CoordinatorsQueues(SlurmCase):
    """pelab-scale without a file: `pelab alloc` says what there is."""

    def alloc(self, *arguments):
        return self.ok(self.pelab("alloc", *arguments)).stdout

    def queue(self):
        queue, = self.json("alloc", "list")["queues"]
        return queue

    def test_a_pause_outlives_pelab_scale(self):
        first = self.scale(queues=None)
        self.assertIn("no queues", self.alloc("list"))
        self.alloc("add", self.queues())
        wait_until(lambda: self.queue()["reported_at_ms"], 30, "its first report")
        self.alloc("pause", "low", "--reason", "maintenance")
        wait_until(lambda: "queue low: paused: maintenance" in self.said(), 30, "the pause")
        self.submit(tiny_sweep(epochs=8, seeds="0..1"))
        first.kill()
        first.wait()
        reported = self.queue()["reported_at_ms"]
        self.scale(queues=None)
        wait_until(lambda: self.queue()["reported_at_ms"] > reported + 2000, 30, "its reports")
        self.assertEqual(self.submitted(), 0, self.said())
        wish, = self.json("alloc", "dry-run")["queues"]
        self.assertEqual((wish["waiting_jobs"], wish["wanted"], wish["would_submit"], wish["why"]),
                         (4, 2, 0, "paused: maintenance"))
        self.alloc("resume", "low")
        wait_until(lambda: self.queue()["running"] == 2, 60, "two allocations: " + self.said())
        self.assertIn("running", self.alloc("list", "low"))
        self.check(4)
        wait_until(lambda: self.queue()["allocations"] == [], 30, "their end")

    def test_a_pause_after_failures_lasts_until_it_is_ended(self):
        self.alloc("add", self.queues(program="/nowhere/pelab-worker"))
        first = self.scale(queues=None)
        self.submit(tiny_sweep(epochs=3, seeds="[0]"))
        wait_until(lambda: self.queue()["state"] == "paused", 60, "the pause: " + self.said())
        self.assertRegex(self.queue()["paused_reason"], "the workers of [34] allocations in a row")
        self.await_none()
        first.terminate()
        self.assertEqual(first.wait(20), 0)
        before = self.submitted()
        self.alloc("add", self.queues())
        self.scale(queues=None)
        self.assertEqual(self.queue()["state"], "paused", "new settings end no pause")
        self.alloc("resume", "low")
        self.check(2)
        self.assertGreater(self.submitted(), before)

    def test_a_queue_is_removed(self):
        """Its waiting allocations are cancelled, and its workers go on."""
        self.alloc("add", self.queues(most=4))
        self.scale(queues=None)
        self.submit(tiny_sweep(epochs=200, seeds="0..3"))
        wait_until(lambda: (self.queue()["running"], self.queue()["waiting"]) == (2, 2), 60,
                   "two that run and two that wait: " + self.said())
        self.alloc("remove", "low", "--cancel-waiting")
        wait_until(lambda: self.json("alloc", "list")["queues"] == [], 30, "that it is gone")
        self.assertEqual([state for _, state in self.allocations()], ["RUNNING", "RUNNING"])
        self.check(8)
        self.assertEqual(self.submitted(), 4)


if __name__ == "__main__":
    on_the_cluster()
    unittest.main()
