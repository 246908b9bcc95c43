"""Tests and measurements on a real Slurm cluster of two nodes, which deploy/slurm/try.sh starts."""

import os
import shutil
import subprocess
import sys

from pelab_harness import BIN, SOURCE, Case, wait_until

TRY = SOURCE / "deploy" / "slurm" / "try.sh"
SKIPPED = 77

QUEUE = """\
[queue.low]
time_limit = "{time_limit}"
max_allocations = {most}
max_waiting = {waiting}
slots = {slots}
device = "cpu"
idle_exit = "{idle_exit}"
sbatch = ["--partition={partition}", "--cpus-per-task={slots}", "--output={folder}/slurm-%j.out"]
program = "{program}"
workdir = "{folder}/work"
worker = ["--server", "{socket}", "--cpu-slots", "{slots}", "--threads-per-slot", "1",
          "--time-margin", "20s"{worker}]
"""


def slurm(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


class SlurmCase(Case):
    lease_ms = 2000

    def setUp(self):
        super().setUp()
        self.addCleanup(self.empty_cluster)
        self.server(lease_ms=self.lease_ms)

    def empty_cluster(self):
        subprocess.run(["scancel", "--user=root"], timeout=60)
        wait_until(lambda: not slurm("squeue", "-h"), 60, "an empty cluster")

    def queues(self, most=2, partition="low", time_limit="30m", program=BIN / "pelab-worker",
               waiting=2, slots=2, idle_exit="2s", worker=()):
        return self.write("queues.toml", QUEUE.format(
            most=most, partition=partition, time_limit=time_limit, folder=self.folder,
            program=program, socket=self.socket, waiting=waiting, slots=slots, idle_exit=idle_exit,
            worker="".join(f', "{word}"' for word in worker)))

    def scale(self, queues="queues.toml"):
        """Starts pelab-scale with the queues of a file; None: with those of the coordinator."""
        return self.spawn("pelab-scale", *([self.folder / queues] if queues else []), "--server",
                          self.socket, "--interval", "200ms", "--look", "500ms")

    def said(self):
        return "".join(path.read_text() for path in sorted(self.folder.glob("pelab-scale.*.log")))

    def asked(self, *arguments):
        return subprocess.run([BIN / "pelab-scale", self.folder / "queues.toml", "--server",
                               self.socket, *arguments], capture_output=True, text=True, timeout=60)

    def allocations(self, states="PD,R,CG"):
        """(id, state) of the allocations of this test's pelab-scale."""
        listed = slurm("squeue", "-h", "-r", "-t", states, "--name=pelab-low", "-o", "%A|%T|%k")
        found = [line.split("|") for line in listed.splitlines()]
        return [(job, state) for job, state, comment in found if self.socket in comment]

    def await_workers(self, count):
        wait_until(lambda: sum(state == "RUNNING" for _, state in self.allocations()) == count
                   and len(self.query("SELECT 1 FROM v_workers WHERE state = 'online'")) == count,
                   60, f"{count} workers")

    def await_epochs(self, jobs):
        """An attempt that its worker has not begun is not lost, but given back."""
        wait_until(lambda: len(self.query("SELECT 1 FROM v_jobs WHERE epochs_done > 0")) == jobs,
                   60, "the first epoch of each job")

    def await_none(self):
        wait_until(lambda: not self.allocations(), 120, "no allocation: " + self.said())

    def sound(self):
        self.ok(self.pelab_db("db", "check"))

    def check(self, jobs):
        self.wait_finished(jobs, 180)
        self.await_none()
        self.sound()

    def submitted(self):
        return self.said().count("submitted allocation")

    def curves(self):
        return self.query("SELECT j.key, c.epoch, c.train_loss, c.test_loss, c.test_correct FROM "
                          "v_curves AS c JOIN v_jobs AS j USING (job_id) ORDER BY 1, 2")


def on_the_cluster():
    """Runs this program again on a cluster of its own, unless it is on one already. Ends it with
    status 77 where Slurm is not installed or the user is not root."""
    if "SLURM_CONF" in os.environ:
        return
    needed = ("slurmctld", "slurmd", "sbatch", "munged")
    if os.getuid() != 0 or not all(map(shutil.which, needed)):
        print("skipped: needs root and the packages slurmctld, slurmd, slurm-client and munge")
        sys.exit(SKIPPED)
    os.execv(TRY, [str(TRY), sys.executable, *sys.argv])
