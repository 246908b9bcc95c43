"""Every positional encoding x task x protocol, trained by the real binaries and evaluated again by
tests/golden/reevaluate.py: numpy, from the kept weights; and by the model.py of an exported job.
Needs numpy and PyTorch."""

import collections
import json
import math
import os
import pathlib
import re
import sqlite3
import statistics
import subprocess
import sys
import unittest

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the matrix products are tiny
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "golden"))
from exported_models import LOSS, ExportCase, module_of  # noqa: E402
from forked_script import run_script  # noqa: E402
from pelab_harness import BIN, Case, SOURCE, wait_until  # noqa: E402
from preloaded import Preloaded  # noqa: E402
import catalog  # noqa: E402
import numpy  # noqa: E402
import reevaluate  # noqa: E402
from recount import stored  # noqa: E402
from recount.special import erf  # noqa: E402

SCRIPT = SOURCE / "tests" / "golden" / "reevaluate.py"
TRAINER = BIN / "pelab-trainer"

# With each protocol's own switches: every encoding in the catalog except those for causal masks
# only.
CAUSAL_ONLY = [name for name in catalog.encodings()
               if ("published", name, "distance") not in catalog.default_specs()]
FORMS = {"shaw": "{name: shaw, max_distance: 5, values: true}"}
NAMES = [name for name in catalog.encodings() if name not in CAUSAL_ONLY]
PES = "\n" + "".join(f"  - {FORMS.get(name, name)}\n" for name in NAMES)
# The buckets of T5's biases grow from distance 16 on, so the sequences are longer than that.
SIZE = """
model: {d_model: 16, d_ff: 24, heads: 4, layers: 2, max_len: 24, dropout: 0.1}
train: {epochs: 2, batch_size: 8, lr: 4e-2}
"""
TASKS = """
task:
  - {name: distance, length: 24, vocabulary: 40, train_examples: 48, test_examples: 32}
  - {name: counting, length: 24, vocabulary: 40, train_examples: 48, test_examples: 32,
     triggers: 6}
seed: 0
"""
PRODUCT = "name: product\nprotocol: [clean, published]\npe:" + PES + TASKS + SIZE

# The causal-only encodings, under both protocols with a causal mask.
CAUSAL = f"""
name: causal
protocol: [clean, published]
pe: [{", ".join(CAUSAL_ONLY)}]
axes: {{model.mask: [causal]}}
analyses: [{{name: head_ablation, method: mean, hygiene: authors}}]
""" + TASKS + SIZE

# The ways to replace heads and slices: with padding attended (rope) and not attended (mla).
METHODS = """
name: methods
protocol: published
pe:
  - {name: rope, input_sinusoid: false}
  - {name: mla, latent: 12, rotary_query: per_head, rotation: rope, latent_norm: true,
     input_table: false}
task: {name: distance, length: 24, vocabulary: 40, train_examples: 72, test_examples: 56}
seed: 0
analyses:
  - {name: head_ablation, method: mean}
  - {name: head_ablation, method: resample, hygiene: clean}
  - {name: head_ablation, method: resample, target: head, data: test, max_examples: 40}
  - {name: head_ablation, method: mean, target: head, max_examples: 50}
""" + SIZE

# The encodings' other forms, on padded sequences.
SWITCHES = """
name: switches
protocol: clean
pe:
  - {name: absolute, form: learned}
  - {name: partial_rope, select: list, head_list: [0, 2]}
  - {name: relative, form: table}
  - {name: alibi, slopes: exponential}
  - {name: random, trainable: true}
  - {name: shaw, max_distance: 30}
  - {name: mla, latent: 10, rotation: sliced}
task: {name: distance, definition: published, length: 24, vocabulary: 40, train_examples: 80,
       test_examples: 64}
seed: 0
axes: {model.readout: [last]}
""" + SIZE

BOTH_WAYS = """
name: both
protocol: clean
pe: [{name: relative, buckets: 8, max_distance: 12}, {name: mla, rotary_query: shared}]
task: {name: distance, length: 24, vocabulary: 40, train_examples: 72, test_examples: 40,
       split: held_out_cells}
seed: 0
axes: {model.mask: [none], model.kv_source: [input], model.readout: [mean]}
""" + SIZE


def all_scored(job):
    """True if no example is left out because of its class 0, which only counting has."""
    return job["protocol"] == "clean" or job["task"] == "distance" or job["pe"] == "mla"


class Agreement(ExportCase):
    """Each test trains a sweep of its own, on a coordinator and a worker for all tests."""

    data = {}  # task -> data set

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.service = Case("server")
        cls.service.setUp()
        cls.addClassCleanup(cls.service.doCleanups)
        cls.service.server()
        cls.service.worker()

    def setUp(self):
        super().setUp()
        self.db, self.socket = self.service.db, self.service.socket

    def data_of(self, spec):
        """Makes a data set with the trainer, once for all jobs that use it."""
        key = json.dumps(spec["task"], sort_keys=True)
        if key not in self.data:
            self.data[key] = stored.make_data(TRAINER, spec, run=Preloaded.of(TRAINER).run)
        return self.data[key]

    def check(self, document, jobs):
        sweep = re.search("name: (.*)", document)[1]
        self.submit(document)
        wait_until(lambda: self.query("SELECT state FROM v_sweeps WHERE name = ?", sweep)
                   == [("finished",)], 180, lambda: f"the jobs; {self.service.situation()}")
        states = self.query("SELECT state, count(*) FROM v_jobs JOIN v_sweep_jobs USING (job_id) "
                            "WHERE sweep = ? GROUP BY state", sweep)
        self.assertEqual(states, [("succeeded", jobs)], self.service.logs())
        store = stored.Store(self.db)
        checked = [reevaluate.check_job(store, job_id, self.data_of) for job_id, in self.query(
            "SELECT job_id FROM v_sweep_jobs WHERE sweep = ? ORDER BY job_id", sweep)]
        self.assertEqual(len(checked), jobs)
        for job, rows in checked:
            with self.subTest(job=reevaluate.label(job)):
                self.assertEqual([row for row in rows if not row.agrees], [])
        self.folders = self.check_exports(jobs, sweep)
        return checked

    def test_every_encoding_task_and_protocol(self):
        checked = self.check(PRODUCT, len(NAMES) * 2 * 2)
        cells = {(job["pe"], job["task"], job["protocol"]) for job, _ in checked}
        self.assertEqual(len(cells), len(NAMES) * 2 * 2)
        for job, rows in checked:
            # Each job is ablated as in both protocols: the test set's heads one by one, and the
            # authors' entries on both sets. An mla job with a latent of 8 has 2 authors' entries
            # per layer, any other job 4.
            entries = collections.Counter(row.where.split(":")[0]
                                          for row in rows if row.figure == "lost")
            self.assertEqual(entries, {"zero head clean test": 8,
                                       "zero authors authors all": 4 if job["pe"] == "mla" else 8},
                             reevaluate.label(job))
            self.assertEqual(sum(row.figure == "null" for row in rows),
                             4 if job["pe"] == "mla" else 0)
            self.assertEqual(sum(row.figure == "gini" for row in rows), 6)
            totals = {row.where.split(":")[0]: row.own for row in rows if row.figure == "total"}
            if all_scored(job):
                self.assertEqual(totals, {"test set": 32, "training sample": 48,
                                          "zero head clean test": 32,
                                          "zero authors authors all": 80})
            else:
                self.assertLess(totals["zero authors authors all"], 80)
        self.assertTrue(any(row.own for _, rows in checked for row in rows if row.figure == "lost"),
                        "nothing ever changes")
        self.assertLess(statistics.mean(row.allowed for _, rows in checked
                                        for row in rows if row.figure == "correct"), 0.1,
                        "the predictions are too close for this to say anything")
        self.exports_see_positions()

    def exports_see_positions(self):
        """The comparison of exported models is not blind to the encoding."""
        module = module_of(self.folders["rope distance clean"])
        model = module.load()
        file = next(file for task, file in self.files.items() if '"distance"' in task)
        loss = self.loss(module, model, file)
        model.pe = module.Encoding(model.spec, None)
        self.assertGreater(abs(self.loss(module, model, file) - loss), 10 * LOSS)

    def test_causal_only(self):
        self.check(CAUSAL, len(CAUSAL_ONLY) * 2 * 2)

    def test_methods(self):
        checked = self.check(METHODS, 2)
        for job, rows in checked:
            names = {row.where.split(":")[0] for row in rows if row.figure == "lost"}
            self.assertEqual(len(names), 4, reevaluate.label(job))

    def test_switches(self):
        self.check(SWITCHES, 7)

    def test_both_ways_and_held_out_cells(self):
        self.check(BOTH_WAYS, 2)


class Script(Case):
    """Tests the command, and that it finds errors."""

    @classmethod
    def setUpClass(cls):
        cls.trained = Case("run_sweep")  # two jobs for all tests
        cls.trained.setUp()
        cls.addClassCleanup(cls.trained.doCleanups)
        document = PRODUCT.replace(PES, " rope").replace("[clean, published]", "clean")
        cls.trained.ok(cls.trained.run_sweep(cls.trained.write("product.yaml", document)))

    def setUp(self):
        super().setUp()
        self.db = self.trained.db

    def reevaluate(self, *words):
        return run_script(SCRIPT, *words, folder=self.folder)

    def trainer(self, *words):
        return self.ok(Preloaded.of(TRAINER).run([TRAINER, *words]))

    def data_of(self, job):
        """A new file with the data of this job document."""
        made = self.folder / f"data{len(list(self.folder.glob('data*')))}"
        self.trainer("dataset", "--spec", self.write("job.json", job), "--out", made)
        return made

    def change(self, sql):
        """Writes to a copy of the database, bypassing its rules."""
        copy = self.folder / "changed.db"
        copy.unlink(missing_ok=True)
        with sqlite3.connect(self.db) as source, sqlite3.connect(copy) as target:
            source.backup(target)
            triggers = [name for name, in target.execute(
                "SELECT name FROM sqlite_master WHERE type = 'trigger'")]
            for name in triggers:
                target.execute(f"DROP TRIGGER {name}")
            self.assertGreater(target.execute(sql).rowcount, 0, sql)
        target.close()
        source.close()
        artifacts = self.folder / "changed.db.artifacts"
        if not artifacts.exists():
            artifacts.symlink_to(f"{self.db}.artifacts")
        return copy

    def test_says_that_all_agrees(self):
        every = self.ok(subprocess.run(  # as a user does
            [sys.executable, SCRIPT, "--db", self.db, "--trainer", TRAINER], cwd=self.folder,
            capture_output=True, text=True, timeout=60))
        self.assertIn("figures, all agree", every.stdout.splitlines()[-1])
        data = [self.data_of(stored.Store(self.db).job(job)["spec_json"]) for job in (1, 2)]
        one = self.ok(self.reevaluate("--db", self.db, "--job", 1, "--data", data[0]))
        self.assertIn("layer 1 head 3", one.stdout)
        found = json.loads(self.ok(self.reevaluate("--db", self.db, "--job", 2, "--data", data[1],
                                                   "--output", "json")).stdout)
        self.assertTrue(found[0]["agrees"])
        self.assertGreater(len(found[0]["figures"]), 80)

    def test_finds_a_count_that_is_off(self):
        data = self.data_of(stored.Store(self.db).job(1)["spec_json"])
        for sql, where in (("UPDATE head_ablation SET lost = lost + 20, correct = correct - 20 "
                            "WHERE layer = 1 AND head = 2 AND analysis_id IN (SELECT analysis_id "
                            "FROM v_head_ablation WHERE job_id = 1)", "layer 1 head 2"),
                           ("UPDATE head_ablation SET nll = nll + 0.001 WHERE layer = 0 AND head = "
                            "1", "layer 0 head 1"),
                           ("UPDATE analyses SET chance = 0.5", "chance"),
                           ("UPDATE deposit_indices SET deposit = 1 - coalesce(deposit, 0) WHERE "
                            "layer = 0", "deposit")):
            with self.subTest(sql=sql):
                result = self.reevaluate("--db", self.change(sql), "--job", 1, "--data", data)
                self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
                self.assertIn("DISAGREE", result.stdout.splitlines()[-1])
                self.assertTrue(any(where in line and "DISAGREES" in line
                                    for line in result.stdout.splitlines()), result.stdout)

    def test_two_files_alone(self):
        store = stored.Store(self.db)
        data = self.data_of(store.job(1)["spec_json"])
        files = ["--weights", store.weights(1), "--data", data, "--output", "json"]
        rows = json.loads(self.ok(self.reevaluate(*files)).stdout)
        matrix = store.ablations(1)[0]["matrix"]
        self.assertEqual(len(rows), 2 + len(matrix))
        for row in rows[2:]:
            layer, head = (int(word) for word in row["where"].split()[1::2])
            self.assertLessEqual(abs(row["correct"] - matrix[layer, head]["correct"]), row["close"])
        self.assertNotEqual(self.ok(self.reevaluate(*files, "--method", "mean")).stdout,
                            json.dumps(rows) + "\n")

    def test_data_are_the_same_for_one_and_two_threads(self):
        job = self.write("job.json", stored.Store(self.db).job(1)["spec_json"])
        said = []
        for threads in (1, 2):
            result = self.trainer("run", "--spec", job, "--workdir", self.folder / f"w{threads}",
                                  "--threads", threads)
            hello = json.loads(result.stdout.splitlines()[0])
            self.assertEqual((hello["event"], hello["threads"]), ("hello", threads))
            said.append(hello["data_sha256"])
        _, sha256 = stored.make_data(TRAINER, json.loads(job.read_text()),
                                     run=Preloaded.of(TRAINER).run)
        self.assertEqual(said, [sha256] * 2)

    def test_bad_requests(self):
        job = json.loads(stored.Store(self.db).job(1)["spec_json"])
        job["task"]["data_seed"] = 5
        other = self.data_of(json.dumps(job))
        for words, *said in ((["--db", "no.db", "--trainer", TRAINER], "no.db", "no such file"),
                             (["--db", self.db, "--job", 99, "--trainer", TRAINER], "no job 99"),
                             (["--db", self.db], "--data", "--trainer"),
                             (["--db", self.db, "--job", 1, "--data", other], "data_seed"),
                             (["--db", self.db, "--job", 1, "--data", self.db], "JSON"),
                             (["--db", self.db, "--job", 1, "--trainer", "/bin/false"],
                              "ended with 1"),
                             ([], "--db or --weights"), (["--weights", "w"], "--data")):
            result = self.reevaluate(*words)
            self.assertEqual(result.returncode, 2, f"{words}: {result.stdout}")
            for text in said:
                self.assertIn(text, result.stderr)


class ErrorFunction(unittest.TestCase):
    def test_is_that_of_the_c_library(self):
        points = numpy.concatenate([numpy.linspace(-7, 7, 20001),
                                    [0.0, 1e-300, -1e-9, 40.0, -40.0]])
        self.assertLess(abs(erf(points) - [math.erf(x) for x in points]).max(), 1e-15)


if __name__ == "__main__":
    unittest.main(verbosity=2)
