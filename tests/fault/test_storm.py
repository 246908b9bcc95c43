"""A sweep over four CPU workers, one of which is killed with -9 every few seconds, gives the same
bits as an undisturbed run. Some killed workers come back with their work directory. Others never
come back, like a lost machine, and a new worker replaces them. Half of the workers take several
seeds at a time.

PELAB_STORM_SEED=N repeats a storm; a failure prints it. A longer storm, of half an hour:
  export PELAB_STORM_KILLS=300 PELAB_STORM_SECONDS=5 PELAB_STORM_JOBS=240
  PELAB_BIN=build/release/bin tests/fault/test_storm.py"""

import os
import pathlib
import random
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pelab_harness import Case, tiny_sweep, wait_until  # noqa: E402

SEED = int(os.environ.get("PELAB_STORM_SEED", random.SystemRandom().randrange(1 << 30)))
KILLS = int(os.environ.get("PELAB_STORM_KILLS", 5))  # at most; the storm ends with the sweep
SECONDS = float(os.environ.get("PELAB_STORM_SECONDS", 0.5))  # between two kills
JOBS = int(os.environ.get("PELAB_STORM_JOBS", 8))
EPOCHS = 12
WORKERS = 4
NEVER_BACK = 0.3  # share of the killed workers
SWEEP = tiny_sweep(name="storm", epochs=EPOCHS, train_examples=256, seeds=f"0..{JOBS // 2 - 1}")


class Storm(Case):
    def start_worker(self, name):
        pack = 3 if int(name[1:]) % 2 == 0 else 1
        return self.worker(name, 1, "--checkpoint-every", "1epoch", "--checkpoint-upload", "300ms",
                           "--pack", pack)

    def finished(self):
        return self.states().get("succeeded", 0) == JOBS

    def storm(self, draw):
        """Kills workers until the sweep or the storm ends. Returns how many it killed."""
        names = [f"w{i}" for i in range(WORKERS)]
        workers = {name: self.start_worker(name) for name in names}
        wait_until(lambda: self.query("SELECT count(*) FROM v_curves")[0][0] >= WORKERS, 60,
                   "the first epochs")
        killed = 0
        while killed < KILLS and not self.finished():
            name = draw.choice(sorted(workers))
            back = name if draw.random() >= NEVER_BACK else f"w{WORKERS + killed}"
            away = draw.uniform(0, SECONDS / 2)
            worker = workers.pop(name)
            worker.kill()
            worker.wait()
            killed += 1
            time.sleep(away)  # a random outage, not a wait for a condition
            workers[back] = self.start_worker(back)
            time.sleep(SECONDS - away)
        return killed

    def test_same_results_as_in_a_calm(self):
        print(f"PELAB_STORM_SEED={SEED}", file=sys.stderr, flush=True)
        calm = self.folder / "calm.db"
        path = self.write("calm.yaml", SWEEP)
        self.ok(self.pelab_db("run", path, "--db", calm, "--cpu-slots", 2, "--threads-per-slot", 1,
                              timeout=3600))
        self.server()
        self.submit(SWEEP)
        killed = self.storm(random.Random(SEED))
        self.wait_finished(JOBS, timeout=120 + JOBS * 5)
        self.assert_complete(JOBS, EPOCHS)
        self.assertEqual(self.results(), self.results(db=calm), f"PELAB_STORM_SEED={SEED}")
        self.ok(self.pelab_db("db", "check"))
        interrupted = self.query(
            "SELECT count(*) FROM v_attempts WHERE outcome <> 'succeeded'")[0][0]
        resumed = self.query("SELECT count(*) FROM v_attempts WHERE start_epoch > 0")[0][0]
        self.assertGreaterEqual(killed, min(KILLS, 3), "the sweep was over before the storm")
        together = self.query("SELECT max(n) FROM (SELECT count(*) AS n FROM attempts GROUP BY "
                              "worker_id, slot, started_at)")[0][0]
        self.assertGreater(interrupted, 0, f"nobody was hit; PELAB_STORM_SEED={SEED}")
        self.assertGreater(together, 1, "nobody took several")
        print(f"{killed} workers killed, {interrupted} attempts interrupted, {resumed} resumed",
              file=sys.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
