"""Shared parts of the fault tests: a seed that repeats a run, the number of faults, an undisturbed
run for comparison, and independent records of the stored epochs and of the answers to the command
line.

PELAB_FAULT_ROUNDS=N injects N faults instead of a few (`make fault`: 200). PELAB_FAULT_SEED=N
repeats a run.
"""

import contextlib
import json
import os
import random
import shutil
import sqlite3
import threading
import time

from pelab_harness import Case, tiny_sweep, wait_until

SEED = int(os.environ.get("PELAB_FAULT_SEED", random.SystemRandom().randrange(1 << 30)))
LEASE = 2.0  # seconds; the lease of Case.server


def rounds(few, share=1.0):
    """How many faults to inject: `few` in `make test`, or a share of PELAB_FAULT_ROUNDS if it is
    set."""
    wanted = os.environ.get("PELAB_FAULT_ROUNDS")
    return max(1, int(int(wanted) * share)) if wanted else few


class Ledger:
    """Reads the stored epochs again and again, beside the coordinator, and records everything it
    ever saw. Whatever it saw was committed, so it must stay."""

    def __init__(self, case):
        self.case = case
        self.seen = {}
        self.changed = []
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()

    def _watch(self):
        while not self.stopping.wait(0.1):
            with contextlib.suppress(sqlite3.OperationalError):  # the file is just being made
                self.look()

    def look(self):
        for at, figures in self.case.curves().items():
            if self.seen.setdefault(at, figures) != figures:
                self.changed.append(at)

    def stop(self):
        self.stopping.set()
        self.thread.join()


class Customer:
    """Submits sweeps of one job through the command line, cancels some, and records the answers."""

    def __init__(self, case, draw, pause=0.5):
        self.case, self.draw, self.pause = case, draw, pause
        self.submitted, self.cancelled, self.refused = [], [], []
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._trade, daemon=True)
        self.thread.start()

    def _trade(self):
        number = 0
        while not self.stopping.wait(self.pause):
            number += 1
            name = f"small{number}"
            path = self.case.write(f"{name}.yaml",
                                   tiny_sweep(epochs=1, train_examples=64,
                                              seeds=f"[{1000 + number}]", pes="[nope]", name=name))
            if not self._told("submit", path, into=self.submitted, name=name):
                continue
            if self.draw.random() < 0.5:
                self._told("cancel", name, into=self.cancelled, name=name)

    def _told(self, *arguments, into, name):
        result = self.case.pelab(*arguments)
        (into if result.returncode == 0 else self.refused).append(name if result.returncode == 0
                                                                  else result.stderr)
        return result.returncode == 0

    def stop(self):
        self.stopping.set()
        self.thread.join()


class FaultCase(Case):
    _undisturbed = {}  # document -> curves and ablations, once per process

    def setUp(self):
        super().setUp()
        self.draw = random.Random(f"{SEED} {self.id()}")
        self.addCleanup(self._say_seed)
        self.ledger = self.customer = None

    def _say_seed(self):
        outcome = self._outcome.result
        if any(test is self for test, _ in outcome.failures + outcome.errors):
            print(f"\nthis run is repeated by PELAB_FAULT_SEED={SEED}")

    def undisturbed(self, document, jobs, timeout=None):
        """Runs the sweep without faults, once, and keeps its curves and ablations."""
        if document not in self._undisturbed:
            server, worker = self.server(), self.worker("undisturbed")
            self.submit(document)
            # the machine may be busy with other work
            self.wait_finished(jobs, timeout=timeout or 120 + 5 * jobs)
            self._undisturbed[document] = (self.curves(), self.ablations())
            self.stop(worker)
            self.stop(server)
            for path in self.folder.glob("pelab.db*"):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        return self._undisturbed[document]

    def stop(self, process):
        process.terminate()
        process.wait(15)
        self.started.remove(process)

    def kill(self, process):
        process.kill()
        process.wait()
        self.started.remove(process)

    def observe(self, customer=False):
        self.ledger = Ledger(self)
        self.addCleanup(self.ledger.stop)
        if customer:
            self.customer = Customer(self, random.Random(self.draw.random()))
            self.addCleanup(self.customer.stop)

    def settle(self, document, jobs, timeout=None):
        """Waits for the sweep, then compares everything with the recorded epochs, the answers and
        the undisturbed run."""
        if self.customer:
            self.customer.stop()
        curves, ablations = self._undisturbed[document]
        keys = {key for key, _ in curves}
        wait_until(lambda: self._finished(), timeout or 240 + 5 * jobs,
                   lambda: f"every sweep to end; {self.situation()}")
        self.ledger.stop()
        self.ledger.look()
        self.assertEqual(self.ledger.changed, [], "an epoch that was stored has changed")
        now = self.curves()
        self.assertEqual({at: now.get(at) for at in self.ledger.seen}, self.ledger.seen,
                         "a stored epoch is gone")
        failed = self.query("SELECT job_id, state, error FROM v_jobs WHERE state = 'failed'")
        self.assertEqual(failed, [])
        self.assertEqual({at: row for at, row in now.items() if at[0] in keys}, curves,
                         "curves differ from those of the undisturbed run")
        self.assertEqual({at: row for at, row in self.ablations().items() if at[0] in keys},
                         ablations)
        if self.customer:
            self._check_customer()
        self.check()

    def _finished(self):
        return not self.query("SELECT 1 FROM sweeps WHERE state IN ('expanding', 'active') LIMIT "
                              "1") and not self.query(
                                  "SELECT 1 FROM v_attempts WHERE outcome IS NULL LIMIT 1")

    def _check_customer(self):
        stored = dict(self.query("SELECT name, state FROM sweeps"))
        self.assertEqual([name for name in self.customer.submitted if name not in stored], [],
                         "a sweep whose submission was acknowledged is gone")
        # If its job had already succeeded, the sweep is finished, and a cancel finds nothing to do.
        self.assertEqual([name for name in self.customer.cancelled
                          if stored[name] not in ("cancelled", "finished")], [])

    def check(self, status=0):
        result = self.pelab_db("db", "check", "--output", "json")
        report = json.loads(result.stdout)
        broken = [check for check in report["checks"] if not check["ok"]]
        self.assertEqual((result.returncode, broken),
                         (status, []) if status == 0 else (status, broken))
        return broken

    def outcomes(self):
        return dict(self.query("SELECT outcome, count(*) FROM v_attempts GROUP BY outcome"))

    def wait_epochs(self, more, timeout=60):
        """Waits until `more` more epochs are stored, or everything has ended."""
        def count():
            return self.query("SELECT count(*) FROM v_curves")[0][0]

        start = count()
        wait_until(lambda: count() >= start + more or self._finished(), timeout,
                   f"{more} more epochs")

    def nap(self, least, most):
        time.sleep(self.draw.uniform(least, most))
