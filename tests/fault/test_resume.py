"""A training that is stopped or killed at random epochs, any number of times, and resumed, gives
the same bits as an uninterrupted one: every epoch's figures, the ablation matrix and the kept
weights. Repeated ten times.

PELAB_RESUME_SEED=N repeats a run; a failure prints it."""

import json
import os
import pathlib
import random
import signal
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pelab_harness import BIN, Case  # noqa: E402
from preloaded import Preloaded  # noqa: E402

TRAINER = BIN / "pelab-trainer"
TRIALS = 10
EPOCHS = 8
INTERRUPTIONS = 3  # at most, per trial
SEED = int(os.environ.get("PELAB_RESUME_SEED", random.SystemRandom().randrange(1 << 30)))

SWEEP = f"""\
name: resume
protocol: [clean, published]
pe: [rope, relative, random, shaw, mla]
task: {{name: distance, length: 16, vocabulary: 40, train_examples: 128, test_examples: 64}}
model: {{d_model: 16, d_ff: 32, heads: 2, layers: 2, max_len: 16, dropout: 0.1}}
train: {{epochs: {EPOCHS}, batch_size: 64, lr: 1e-3}}
"""
TIMES = {"seconds", "wall_seconds"}


def without_times(event):
    return {name: value for name, value in event.items() if name not in TIMES}


class Resume(Case):
    def start(self, job, workdir, *options):
        path = self.folder / "job.json"
        path.write_text(json.dumps(job))
        out, into = os.pipe()
        with open(into, "w", encoding="utf-8") as output, open(os.devnull, "w") as errors:
            trainer = Preloaded.of(TRAINER).start(
                [TRAINER, "run", "--spec", path, "--workdir", self.folder / workdir,
                 "--checkpoint-seconds", "0", *options], output, errors)
        trainer.stdout = open(out, encoding="utf-8")
        return trainer

    def events_until(self, process, epochs, number):
        """The trainer's events. After `epochs` epochs the trainer gets the signal `number`; without
        a signal it runs to its end."""
        events, told = [], 0
        for line in process.stdout:
            events.append(json.loads(line))
            told += events[-1]["event"] == "epoch"
            if number and told == epochs and process.poll() is None:
                process.send_signal(number)
                number = None
        process.stdout.close()
        process.wait(60)
        return events

    def interrupted(self, job, workdir, draw):
        """The accepted epochs, the analyses and the weights of a job over several interrupted
        attempts."""
        line, interruptions = {}, 0
        for attempt in range(INTERRUPTIONS + 1):
            last = attempt == INTERRUPTIONS
            number = None if last else draw.choice([signal.SIGKILL, signal.SIGTERM])
            after = draw.randint(1, EPOCHS - 1)
            events = self.events_until(self.start(job, workdir, "--resume"), after, number)
            start = events[0]["start_epoch"]
            line = {epoch: figures for epoch, figures in line.items() if epoch < start}
            line.update({e["epoch"]: without_times(e) for e in events if e["event"] == "epoch"})
            if events[-1]["event"] == "done":
                return (line, [without_times(e) for e in events
                               if e["event"] in ("head_ablation", "done")], interruptions)
            interruptions += 1
        self.fail(f"no attempt finished: {events[-1]}")

    def test_ten_times(self):
        draw = random.Random(SEED)
        (self.folder / "resume.yaml").write_text(SWEEP)
        sweep = json.loads(
            self.ok(self.pelab_db("submit", "resume.yaml", "--dry-run", "--output", "json")).stdout)
        parameters = {"data": "test", "hygiene": "clean", "max_examples": 0, "method": "zero",
                      "target": "head"}
        interruptions = 0
        for trial in range(TRIALS):
            cell = sweep["jobs"][trial % len(sweep["jobs"])]
            with self.subTest(trial=trial, pe=cell["pe"], protocol=cell["protocol"],
                              PELAB_RESUME_SEED=SEED):
                job = {"job": "j", "spec": cell["spec"],
                       "analyses": [{"name": "head_ablation", "version": 2,
                                     "parameters": parameters}]}
                whole = self.events_until(self.start(job, f"whole{trial}"), None, None)
                line, results, times = self.interrupted(job, f"killed{trial}", draw)
                interruptions += times
                self.assertEqual(line, {e["epoch"]: without_times(e)
                                        for e in whole if e["event"] == "epoch"})
                self.assertEqual(len(line), EPOCHS)
                self.assertEqual(results, [without_times(e) for e in whole
                                           if e["event"] in ("head_ablation", "done")])
        self.assertGreaterEqual(interruptions, TRIALS,
                                f"hardly anything was interrupted; PELAB_RESUME_SEED={SEED}")


if __name__ == "__main__":
    unittest.main()
