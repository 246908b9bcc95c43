"""Runs of pelab-trainer alone, whose lines were kept in files: `pelab import FOLDER` stores them as
if a worker had trained them."""

import fcntl
import json
import os
import pathlib
import shutil
import signal
import sys
import time
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pelab_harness import BIN, tiny_sweep, trainer_environment  # noqa: E402
from preloaded import Preloaded  # noqa: E402
from trained_case import RunCase  # noqa: E402

TRAINER = BIN / "pelab-trainer"
EPOCHS = 12
HOST, TIME = "gpu07", 1_790_000_000_000


class Recorded(RunCase):
    """The folder has the jobs of SWEEP twice: in the database, and as runs below runs/."""

    SWEEP = (tiny_sweep(seeds="0", epochs=EPOCHS, train_examples=128)
             + "analyses: [head_ablation, layer_ablation]\n")
    COPY = "trained.db"
    _runs = None

    @classmethod
    def train(cls, maker):
        maker.ok(maker.run_sweep(maker.write("tiny.yaml", cls.SWEEP), "--cpu-slots", 2,
                                 "--threads-per-slot", 1))

    def setUp(self):
        super().setUp()
        self.runs = self.folder / "runs"
        if Recorded._runs is None:
            Recorded._runs = self.record()
        shutil.copytree(Recorded._runs, self.runs, dirs_exist_ok=True)

    def record(self):
        """Trains the jobs by the trainer alone, one of them in two calls."""
        kept = self.trained() / "runs"
        for pe, spec in self.query("SELECT pe, spec_json FROM v_jobs", db=self.folder / self.COPY):
            analyses = json.loads(self.query(
                "SELECT analyses_json FROM attempts", db=self.folder / self.COPY)[0][0])
            for analysis in analyses:
                analysis["parameters"] = json.loads(analysis.pop("parameters_json"))
            run = kept / "first" / pe
            run.mkdir(parents=True)
            (run / "job.json").write_text(json.dumps({"job": pe, "spec": json.loads(spec),
                                                      "analyses": analyses}))
            if pe == "rope":
                self.call(run, pe, TIME, stop_after=3)
            self.call(run, pe, TIME + 60_000)
        return kept

    def call(self, run, job, unix_ms, stop_after=None):
        environment = trainer_environment()
        events = run / "events.jsonl"

        def note(**members):
            with open(events, "a", encoding="utf-8") as file:
                file.write(json.dumps({**members, "job": job}) + "\n")
        note(event="call", host=HOST, unix_ms=unix_ms)
        command = [TRAINER, "run", "--spec", run / "job.json", "--workdir", run, "--device", "cpu",
                   "--threads", "1", "--resume"]
        # A pipe with room for one line: the trainer cannot run ahead of whoever is to stop it.
        lines, out = os.pipe2(os.O_DIRECT)
        fcntl.fcntl(out, fcntl.F_SETPIPE_SZ, 4096)
        with unittest.mock.patch.dict("os.environ", environment), open(out, "w") as out, \
                open(run / "stderr.txt", "a") as errors:
            child = Preloaded.of(TRAINER).start(command, out, errors)
        epochs = 0
        with open(lines) as lines, open(events, "a") as kept:
            for line in lines:
                kept.write(line)
                if '"event":"epoch"' in line:
                    epochs += 1
                    if epochs == stop_after:
                        child.send_signal(signal.SIGTERM)
        self.assertEqual(child.wait(60), 75 if stop_after else 0, (run / "stderr.txt").read_text())
        note(event="returned", unix_ms=unix_ms + 5000)

    def imported(self, *arguments, status=0, folder=None):
        result = self.ok(self.pelab_db("import", folder or self.runs, *arguments, "--output",
                                       "json"), status)
        return json.loads(result.stdout)

    def refused(self, sentence):
        result = self.ok(self.pelab_db("import", self.runs), 2)
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        self.assertIn(sentence, result.stderr)
        self.assertFalse(pathlib.Path(self.db).exists(), "nothing is begun for wrong runs")

    def edit(self, old, new, pe="nope"):
        path = self.runs / "first" / pe / "events.jsonl"
        text = path.read_text()
        self.assertIn(old, text)
        path.write_text(text.replace(old, new, 1))


class Import(Recorded):
    def test_they_are_what_a_worker_would_have_trained(self):
        report = self.imported("--dry-run")
        self.assertEqual((report["imported"], report["files"]), (2, 2))
        report = self.imported()
        self.assertEqual((report["imported"], report["files"], report["missing_files"]), (2, 2, []))
        self.ok(self.pelab_db("db", "check"))
        self.assertEqual(self.results(), self.results(self.folder / self.COPY))
        columns = ("key, spec_json, pe_label, protocol, task, seed, state, epochs, device, "
                   "test_accuracy, best_test_accuracy")
        for db in (self.db, self.folder / self.COPY):
            self.assertEqual(self.query(f"SELECT {columns} FROM v_jobs ORDER BY key"),
                             self.query(f"SELECT {columns} FROM v_jobs ORDER BY key", db=db))
        again = self.imported()
        self.assertEqual((again["imported"], again["present"]), (0, 2))
        # The sweep finds them, so nothing is left to train.
        told = self.ok(self.run_sweep(self.sweep))
        self.assertIn("0 new, 2 already stored", told.stdout + told.stderr)
        self.assertEqual(self.query("SELECT count(*) FROM v_attempts"), [(3,)])

    def test_what_is_stored_already_has_the_same_curve(self):
        self.db = self.folder / self.COPY
        report = self.imported()
        self.assertEqual((report["imported"], report["present"], report["different"]), (0, 2, []))

    def test_each_call_is_an_attempt(self):
        self.imported()
        attempts = self.query(
            "SELECT j.pe, a.number, a.outcome, a.device, a.start_epoch FROM attempts AS a JOIN "
            "v_jobs AS j USING (job_id) JOIN workers AS w USING (worker_id) WHERE w.host = ? "
            "ORDER BY j.pe, a.number", HOST)
        self.assertEqual([row[:3] for row in attempts], [("nope", 1, "succeeded"),
                                                         ("rope", 1, "preempted"),
                                                         ("rope", 2, "succeeded")])
        self.assertEqual({row[3] for row in attempts}, {"cpu"})
        start = {(row[0], row[1]): row[4] for row in attempts}
        self.assertEqual((start["nope", 1], start["rope", 1]), (0, 0))
        self.assertTrue(3 <= start["rope", 2] < EPOCHS, start)
        begun, ended = self.query("SELECT min(started_at), max(ended_at) FROM attempts")[0]
        self.assertEqual((begun, ended), (TIME, TIME + 65_000))

    def test_without_times_and_with_a_line_that_was_cut_off(self):
        for pe in ("nope", "rope"):
            path = self.runs / "first" / pe / "events.jsonl"
            lines = [line for line in path.read_text().splitlines(True)
                     if json.loads(line)["event"] not in ("call", "returned")]
            second = [i for i, line in enumerate(lines) if '"hello"' in line][1:]
            if second:  # the first trainer was killed within a line
                lines.insert(second[0], '{"event":"epoch","job":"rope","ep\n')
            path.write_text("".join(lines))
        self.assertEqual(self.imported()["imported"], 2)
        self.assertEqual(self.results(), self.results(self.folder / self.COPY))
        now = 1000 * time.time()
        for started, ended in self.query("SELECT started_at, ended_at FROM attempts"):
            self.assertTrue(now - 3_600_000 < started <= ended <= now)
        self.assertEqual(self.query("SELECT DISTINCT host FROM v_workers"), [("unknown",)])

    def test_a_trainer_that_was_killed_within_a_line(self):
        """As tests/gpu/table1.py keeps it: the end of the call follows the line that is cut off."""
        path = self.runs / "first/rope/events.jsonl"
        first, *rest = path.read_text().split('{"event": "returned"')
        cut = first.rstrip("\n") + '\n{"event":"checkpoint","job":"rope","a":{}\n'
        path.write_text('{"event": "returned"'.join([cut, *rest]))
        last = self.runs / "first/nope/events.jsonl"
        last.write_text(last.read_text() + '{"event":"hel')
        self.assertEqual(self.imported()["imported"], 2)
        self.assertEqual(self.results(), self.results(self.folder / self.COPY))

    def test_what_is_not_finished_is_counted(self):
        path = self.runs / "first/nope/events.jsonl"
        path.write_text("".join(path.read_text().splitlines(True)[:10]))
        other = self.runs / "second" / "failed"
        shutil.copytree(self.runs / "first/rope", other)
        (other / "events.jsonl").write_text(
            (other / "events.jsonl").read_text().split('{"event": "returned"')[0]
            + '{"event":"error","job":"rope","kind":"out_of_memory","message":"too large"}\n')
        report = self.imported()
        self.assertEqual((report["imported"], report["unfinished"]), (1, 2))

    def test_weights_that_are_missing_or_damaged_are_named(self):
        (self.runs / "first/nope/weights.safetensors").unlink()
        with open(self.runs / "first/rope/weights.safetensors", "ab") as file:
            file.write(b"x")
        report = self.imported(status=1)
        self.assertEqual((report["imported"], report["files"]), (2, 0))
        self.assertEqual({pathlib.Path(path).parent.name for path in report["missing_files"]},
                         {"nope", "rope"})
        self.ok(self.pelab_db("db", "check"))


class BadInput(Recorded):
    def test_a_folder_without_runs(self):
        shutil.rmtree(self.runs / "first")
        self.refused("no folder in")
        self.refused("has the files job.json and events.jsonl of a trainer's run")

    def test_a_job_that_cannot_be(self):
        job = self.runs / "first/nope/job.json"
        job.write_text(job.read_text().replace('"heads": 2', '"heads": 3'))
        self.refused("first/nope/job.json: ")

    def test_lines_that_cannot_be(self):
        for old, new, sentence in (
                ('"epoch":1,', '"epoch":2,', ":4: epoch 2 comes where epoch 1 is due"),
                ('"train_correct":', '"train_correct":9', ":3: "),
                ('"test_total":128', '"test_total":127', '"test_total" is 127; allowed: 128'),
                ('"job":"nope"', '"job":"rope"', ':2: the trainer printed a malformed line: event '
                 'hello is of job "rope"; this trainer was given "nope"'),
                ('"event":"hello"', '"event":"goodbye"', ":3: a result comes before a hello"),
                ('"start_epoch":0', '"start_epoch":7', ":2: the trainer starts at epoch 7, but "
                                                       "epoch 0 is not there"),
                (f'"epochs":{EPOCHS}', '"epochs":9',
                 f":2: it is of 9 epochs; the job has {EPOCHS}"),
                ('"unix_ms": ', '"unix_ms": 0.5, "was": ',
                 ':1: call has no "unix_ms", an integer'),
                ('{"event":"epoch"', '["event":"epoch"', ":3: the trainer printed a line that")):
            with self.subTest(sentence):
                shutil.copytree(Recorded._runs, self.runs, dirs_exist_ok=True)
                self.edit(old, new)
                self.refused(sentence)


if __name__ == "__main__":
    unittest.main()
