"""Every command that controls a sweep or a worker, on the real binaries: pause, resume, priority,
retry, extend, cancel, drain."""

import json
import pathlib
import signal
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pelab_harness import Case, tiny_sweep, wait_until  # noqa: E402

LONG = 100_000  # epochs: the job runs until it is stopped


class Control(Case):
    def sweep(self, name):
        return self.json("status", name)["sweep"]

    def attempts(self, name):
        return self.query("SELECT count(*) FROM v_attempts a JOIN v_sweep_jobs s USING (job_id) "
                          "WHERE s.sweep = ?", name)[0][0]

    def outcomes(self, name):
        return [row[0]
                for row in self.query("SELECT a.outcome FROM v_attempts a JOIN v_sweep_jobs s "
                                      "USING (job_id) WHERE s.sweep = ? ORDER BY a.attempt_id",
                                      name)]

    def wait_state(self, name, state):
        wait_until(lambda: self.query("SELECT state FROM sweeps WHERE name = ?",
                                      name) == [(state,)], 60, f"sweep {name} to be {state}")

    def wait_drained(self):
        wait_until(lambda: self.query("SELECT state FROM v_workers") == [("drained",)], 10,
                   "the worker to be drained")

    def test_a_cancelled_sweep_goes_on_and_is_deleted(self):
        coordinator = self.server()
        document = tiny_sweep(name="first", epochs=LONG, train_examples=256, seeds="[0, 1]",
                              pes="[nope]")
        self.submit(document)
        self.submit(tiny_sweep(name="other", epochs=LONG, train_examples=256, seeds="[1]",
                               pes="[nope]"))
        self.worker(slots=1)
        wait_until(lambda: self.query("SELECT count(*) FROM v_curves")[0][0] > 3, 60,
                   "the first epochs")
        refused = self.pelab("sweeps", "delete", "first", "--yes")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("pelab cancel 1", refused.stderr)
        self.ok(self.pelab("cancel", "first"))
        cancelled = self.sweep("first")
        self.assertEqual((cancelled["running"], cancelled["cancelled"]), (0, 2))
        again = self.submit(document)
        self.assertIn("going on with sweep 1 first", again.stdout)
        self.assertIn("what had been cancelled is queued again", again.stdout)
        self.assertEqual(self.query("SELECT count(*) FROM v_sweeps"), [(2,)])
        self.ok(self.pelab("cancel", "first"))

        self.ok(self.pelab("sweeps", "rename", "first", "second"))
        self.ok(self.pelab("sweeps", "note", "second", "useless"))
        self.assertIn("useless", self.ok(self.pelab("sweeps")).stdout)
        self.assertIn("useless", self.ok(self.pelab("status", "second")).stdout)
        unasked = self.pelab("sweeps", "delete", "second")
        self.assertEqual(unasked.returncode, 2)
        self.assertIn("--yes", unasked.stderr)
        would = self.json("sweeps", "delete", "second", "--dry-run")
        self.assertEqual((would["jobs_deleted"], would["jobs_kept"]), (1, 1))
        deleted = self.json("sweeps", "delete", "second", "--yes")
        self.assertEqual((deleted["jobs_deleted"], deleted["jobs_kept"], deleted["more"]),
                         (1, 1, False))
        self.assertEqual(self.pelab("status", "second").returncode, 2)
        self.assertEqual(self.query("SELECT count(*) FROM v_jobs"), [(1,)])
        self.ok(self.pelab("cancel", "other"))
        coordinator.terminate()
        coordinator.wait(20)
        self.ok(self.pelab_db("db", "check"))

    def test_sweeps(self):
        coordinator = self.server()
        self.submit(tiny_sweep(name="held", train_examples=64, seeds="[0]"))
        paused = self.json("pause", "held")
        self.assertEqual((paused["state"], paused["paused"], paused["changed"]),
                         ("active", True, True))
        self.assertFalse(self.json("pause", "held")["changed"])

        # The scheduler skips a paused sweep, also after a restart; another sweep runs.
        coordinator.kill()
        coordinator.wait()
        self.server()
        self.submit(tiny_sweep(name="other", train_examples=64, seeds="[7]", pes="[nope]"))
        self.worker(slots=1)
        self.wait_state("other", "finished")
        self.assertEqual(self.attempts("held"), 0)
        self.assertEqual(self.sweep("held")["waiting_reason"], "paused")
        self.assertIn("active, paused", self.ok(self.pelab("status")).stdout)

        # Both sweeps wait for one slot: the higher priority goes first.
        self.json("pause", "other")  # it has ended: nothing happens
        self.submit(tiny_sweep(name="urgent", train_examples=64, seeds="[8]", pes="[nope]",
                               epochs=2))
        self.wait_state("urgent", "finished")
        self.assertEqual(self.json("priority", "held", "7")["priority"], 7)
        self.ok(self.pelab("priority", "held", "--", "-3"))
        self.assertTrue(self.json("resume", "held")["changed"])
        self.wait_state("held", "finished")

        # Add seeds, one of which is stored already.
        dry = self.json("extend", "held", "--seed", "0..1", "--seed", "7", "--dry-run")
        self.assertEqual((dry["new_seeds"], dry["counts"]["new"], dry["counts"]["stored"]),
                         ("1,7", 3, 1))
        self.assertEqual(self.sweep("held")["state"], "finished")
        text = self.ok(self.pelab("extend", "held", "--seed", "0..1,7")).stdout
        self.assertIn("got seeds 1,7: 3 new, 1 already stored", text)
        self.assertEqual(self.json("extend", "held", "--seed", "1")["new_seeds"], "")
        self.wait_state("held", "finished")
        self.assertEqual(self.query("SELECT count(*) FROM v_sweep_jobs WHERE sweep = 'held'"),
                         [(6,)])
        self.assertEqual(self.query(
            "SELECT count(*) FROM v_attempts a JOIN v_jobs j USING (job_id) WHERE j.seed = 0"),
                         [(2,)], "a stored job was trained again")
        self.ok(self.pelab("results", "held"))
        self.ok(self.pelab_db("db", "check"))

    def test_cancel_and_retry(self):
        self.server()
        self.worker(slots=2)
        self.submit(tiny_sweep(name="lr", seeds="[0]", pes="[nope]"), "--set", "train.lr=1000",
                    "--set", "train.weight_decay=1")  # its weights grow until they are not finite
        self.wait_state("lr", "finished")
        self.assertEqual(self.sweep("lr")["failed"], 1)
        self.assertEqual(self.json("retry", "lr", "--failed"), {"queued": 1, "need_nothing": 0})
        self.wait_state("lr", "finished")
        self.assertEqual(self.outcomes("lr"), ["failed", "failed"])
        self.submit(tiny_sweep(name="long", epochs=LONG, seeds="[0]", pes="[nope]"))
        wait_until(lambda: self.trainers(), 30, "the trainer")
        self.assertIn("0 jobs queued again", self.ok(self.pelab("retry", "long")).stdout)

        job = self.json("jobs", "long")["jobs"][0]["job_id"]
        self.ok(self.pelab("cancel", "--job", job))
        asked = time.monotonic()
        wait_until(lambda: not self.trainers(), 2, "the trainer to end")
        self.assertLess(time.monotonic() - asked, 2)
        self.assertEqual(self.json("retry", "--job", job)["queued"], 1)
        wait_until(lambda: self.trainers(), 30, "the trainer to start again")
        self.assertEqual(self.json("cancel", "long")["jobs_cancelled"], 1)
        refused = self.ok(self.pelab("retry", "long"), 2)
        self.assertIn("submit its document again", refused.stderr)
        refused = json.loads(
            self.ok(self.pelab("extend", "long", "--seed", "5", "--output", "json"), 2).stdout)
        self.assertIn("submit its document again, which reopens it", refused["error"]["message"])
        self.ok(self.pelab("extend", "lr", "--seed", "9..5"), 2)
        self.ok(self.pelab("pause", "nobody"), 2)
        self.ok(self.pelab("priority", "lr", "1001"), 2)
        self.ok(self.pelab_db("pause", "lr", "--server", f"unix:{self.folder}/nobody"), 4)

    def test_workers(self):
        self.server()
        first = self.worker("a", 1)
        self.submit(tiny_sweep(name="s", epochs=LONG, train_examples=256, seeds="[0]",
                               pes="[nope]"))
        wait_until(lambda: self.query("SELECT max(epochs_done) FROM v_jobs")[0][0] >= 2, 30,
                   "some epochs")
        worker = self.json("workers")["workers"][0]["worker_id"]
        drained = self.json("workers", "drain", worker, "--mode", "checkpoint")
        self.assertEqual((drained["drain"], drained["busy_slots"], drained["changed"]),
                         ("checkpoint", 1, True))
        self.wait_drained()
        self.assertEqual(self.outcomes("s"), ["preempted"])

        # The drain survives a restart of the worker's daemon and of the coordinator.
        first.send_signal(signal.SIGTERM)
        first.wait(10)
        self.worker("a", 1)
        self.wait_drained()
        wait_until(lambda: self.sweep("s")["waiting_reason"] == "every connected worker drains", 10,
                   "the reason")
        self.assertEqual(self.attempts("s"), 1)
        self.assertIn("takes jobs again", self.ok(self.pelab("workers", "resume", worker)).stdout)

        # The job continues from its checkpoint. If the daemon is told to end, the checkpoint is
        # kept too.
        wait_until(lambda: self.query("SELECT max(start_epoch) FROM v_attempts")[0][0], 30,
                   "it to go on")
        before = self.query("SELECT epochs_done FROM v_jobs")[0][0]
        wait_until(lambda: self.query("SELECT epochs_done FROM v_jobs")[0][0] > before + 1, 30,
                   "more epochs")
        self.ok(self.pelab("workers", "drain", worker, "--mode", "kill"))
        wait_until(lambda: not self.trainers(), 2, "the trainer to end")
        wait_until(lambda: self.outcomes("s") == ["preempted", "preempted"], 10,
                   "the attempt to end")
        self.ok(self.pelab("workers", "resume", worker))
        wait_until(lambda: len(self.query("SELECT 1 FROM v_attempts WHERE start_epoch > 0")) == 2,
                   30, "it to go on again")

        # A drain that waits: the running job ends on its own (here by a cancel).
        text = self.ok(self.pelab("workers", "drain", worker)).stdout
        self.assertIn("accepts no more jobs; 1 job of it may end", text)
        self.assertEqual(self.json("workers")["workers"][0]["state"], "draining")
        self.ok(self.pelab("cancel", "s"))
        self.wait_drained()
        self.assertEqual(self.query("SELECT failed_attempts FROM jobs"), [(0,)],
                         "a drain spent a failure")
        self.ok(self.pelab("workers", "drain", "nobody"), 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
