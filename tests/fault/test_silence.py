"""Workers that are silent for longer than their lease: frozen by SIGSTOP, or cut off by the network
in one or both directions. The job completes elsewhere or continues where it was. Late messages are
answered as superseded, and nothing is stored twice."""

import contextlib
import os
import pathlib
import random
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from fault_case import LEASE, FaultCase, rounds  # noqa: E402
from pelab_harness import BIN, tiny_sweep, wait_until  # noqa: E402

EPOCHS = 10


def sweep(hits):
    """A sweep with enough jobs for all hits: a job may be lost only five times, and the other
    worker goes on meanwhile. It trains about five jobs during one silence."""
    seeds, examples = (2, 256) if hits < 10 else (4 * hits, 1024)
    return tiny_sweep(epochs=EPOCHS,
                      train_examples=examples,
                      seeds=f"0..{seeds - 1}",
                      pes="[nope, rope]"), 2 * seeds


class Silence(FaultCase):
    def lost(self):
        return self.query("SELECT count(*) FROM v_attempts WHERE outcome = 'lost'")[0][0]

    def holds(self, worker):
        """True if the worker holds a job that may be lost once more. After five losses a job is
        given up, as intended, and a job often comes back to the same worker."""
        return self.query("SELECT count(*) FROM v_attempts AS a JOIN jobs AS j USING (job_id) "
                          "WHERE a.outcome IS NULL AND a.worker = ? AND a.start_epoch IS NOT NULL "
                          "AND j.lost_attempts < 4", worker)[0][0] > 0

    def worker_id(self, name):
        return (self.folder / name / "worker_id").read_text().strip()

    def silence_until_lost(self, identity, begin, end, what):
        """Silences the worker while it holds a job, until that job is given to another worker, then
        a little longer."""
        wait_until(lambda: self.holds(identity) or self._finished(), 60, f"{what} to hold a job")
        if self._finished():
            return False
        before = self.lost()
        begin()
        try:
            wait_until(lambda: self.lost() > before or self._finished(), 6 * LEASE + 10,
                       f"the job of {what} to be given away")
            self.nap(0.0, LEASE / 2)
        finally:
            end()
        return True


class Stopped(Silence):
    def test_sigstop_past_the_lease(self):
        hits = rounds(2, 0.25)
        document, jobs = sweep(hits)
        self.undisturbed(document, jobs)
        self.server()
        agent = self.worker("frozen", 1)
        self.worker("other", 1)
        self.submit(document)
        self.observe()
        identity = wait_until(lambda: self.identity_of("frozen"), 10, "the worker's name")
        hit = sum(self.silence_until_lost(identity, lambda: os.kill(agent.pid, signal.SIGSTOP),
                                          lambda: os.kill(agent.pid, signal.SIGCONT),
                                          "the frozen worker") for _ in range(hits))
        self.assertGreaterEqual(hit, max(1, hits - 1), "hardly anything was hit")
        self.settle(document, jobs)
        self.assertGreaterEqual(self.outcomes().get("lost", 0), hit)

    def test_a_coordinator_that_stood_still_blames_no_worker(self):
        coordinator = self.server()
        self.worker("one", 1)
        self.worker("two", 1)
        self.submit(tiny_sweep(epochs=EPOCHS, train_examples=256, seeds="[0, 1]"))
        wait_until(lambda: self.query("SELECT count(DISTINCT worker) FROM v_attempts WHERE "
                                      "outcome IS NULL AND start_epoch IS NOT NULL")[0][0] == 2,
                   30, "both workers to train")
        os.kill(coordinator.pid, signal.SIGSTOP)
        try:
            self.nap(1.5 * LEASE, 2 * LEASE)
        finally:
            os.kill(coordinator.pid, signal.SIGCONT)
        self.wait_finished(4)
        self.assertEqual(self.outcomes(), {"succeeded": 4})

    def identity_of(self, name):
        with contextlib.suppress(OSError):
            return self.worker_id(name)


class Network:
    """A network of this host and one namespace, 10.213.N.0/30 to 10.220.N.0/30."""

    def __init__(self):
        self.name = f"pelab{os.getpid()}"
        self.subnet = random.randrange(1 << 14)
        base = f"10.{213 + (self.subnet >> 8) % 8}.{self.subnet & 255}"
        self.here, self.there = f"{base}.1", f"{base}.2"
        self.outside, self.inside = f"pl{os.getpid()}", "pelab0"
        self.ip("netns", "add", self.name)
        try:
            self.ip("link", "add", self.outside, "type", "veth", "peer", "name", self.inside,
                    "netns", self.name)
            self.ip("addr", "add", f"{self.here}/30", "dev", self.outside)
            self.ip("link", "set", self.outside, "up")
            self.within("addr", "add", f"{self.there}/30", "dev", self.inside)
            self.within("link", "set", self.inside, "up")
            self.within("link", "set", "lo", "up")
        except Exception:
            self.close()
            raise

    @staticmethod
    def ip(*arguments, check=True):
        subprocess.run(["ip", *arguments], check=check, capture_output=True, text=True)

    def within(self, *arguments, check=True):
        self.ip("-n", self.name, *arguments, check=check)

    def cut(self, how):
        if how == "both":
            self.within("link", "set", self.inside, "down")
        elif how == "worker to coordinator":
            self.within("route", "add", "blackhole", f"{self.here}/32")
        else:
            self.ip("route", "add", "blackhole", f"{self.there}/32")

    def mend(self, how):
        if how == "both":
            self.within("link", "set", self.inside, "up")
        elif how == "worker to coordinator":
            self.within("route", "del", "blackhole", f"{self.here}/32")
        else:
            self.ip("route", "del", "blackhole", f"{self.there}/32")

    def close(self):
        self.ip("route", "del", "blackhole", f"{self.there}/32", check=False)
        self.ip("link", "del", self.outside, check=False)
        self.ip("netns", "del", self.name, check=False)


class Partitioned(Silence):
    WAYS = ("both", "worker to coordinator", "coordinator to worker")

    def test_partitions_past_the_lease(self):
        try:
            network = Network()
        except (OSError, subprocess.CalledProcessError) as error:
            self.skipTest(f"no network namespaces here: {error}")
        self.addCleanup(network.close)
        hits = rounds(2, 0.25)
        document, jobs = sweep(hits)
        self.undisturbed(document, jobs)
        address = self.serve_both(network.here)
        self.worker("near", 1)
        self.spawn_within(network, address)
        self.submit(document)
        self.observe()
        identity = wait_until(lambda: self.identity_of("far"), 10, "the worker's name")
        hit = 0
        for i in range(hits):
            how = self.WAYS[i % 3] if hits > 2 else (self.WAYS[0],
                                                     self.draw.choice(self.WAYS[1:]))[i % 2]
            hit += self.silence_until_lost(identity, lambda: network.cut(how),
                                           lambda: network.mend(how), "the far worker")
        self.assertGreaterEqual(hit, max(1, hits - 1), "hardly anything was hit")
        self.settle(document, jobs)
        self.assertGreaterEqual(self.outcomes().get("lost", 0), hit)

    identity_of = Stopped.identity_of

    def serve_both(self, host):
        """Starts a coordinator on the Unix socket, for the tests, and on an address that the far
        worker can reach. Returns that address."""
        self.server("--listen", f"{host}:0", "--insecure")
        log = wait_until(lambda: [text for text in map(pathlib.Path.read_text,
                                                       self.folder.glob("pelab-server.*.log"))
                                  if f"{host}:" in text], 10, "the address")[0]
        return next(word.strip(",") for word in log.split() if word.startswith(f"{host}:"))

    def spawn_within(self, network, address):
        with open(self.folder / "far.log", "ab") as sink:
            process = subprocess.Popen(
                ["ip", "netns", "exec", network.name, BIN / "pelab-worker", "--server", address,
                 "--insecure", "--workdir", self.folder / "far", "--cpu-slots", "1",
                 "--threads-per-slot", "1"], cwd=self.folder, stdin=subprocess.DEVNULL,
                stdout=sink, stderr=subprocess.STDOUT, start_new_session=True)
        self.started.append(process)
        return process


if __name__ == "__main__":
    unittest.main(verbosity=2)
