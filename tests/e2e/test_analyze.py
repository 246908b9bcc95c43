"""`pelab analyze` and the commands that show analyses: analyses are added to finished jobs without
training again."""

import hashlib
import json
import pathlib
import signal
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pelab_harness import Case, processes, tiny_sweep, wait_until  # noqa: E402
from trained_case import RunCase  # noqa: E402

EPOCHS = 2
LAYERS = HEADS = 2


def document(analyses):
    return (tiny_sweep(epochs=EPOCHS, train_examples=128, pes="rope")
            + f"analyses: {json.dumps(analyses)}\n")


class Analyze(RunCase):
    SWEEP = document([])

    def setUp(self):
        super().setUp()
        self.curves_before = self.curves()
        self.assertEqual(len(self.curves_before), 2 * EPOCHS)
        self.assertEqual(self.query("SELECT count(*) FROM v_analyses"), [(0,)])

    def analyze(self, *arguments, status=0):
        """Runs `analyze` on the file alone. It starts a coordinator and a worker of its own and
        leaves neither running."""
        result = self.ok(self.pelab_db("analyze", *arguments), status)
        self.assertEqual(processes(str(self.folder)), [], "something is left running")
        return result

    def read(self, *command):
        return json.loads(self.ok(self.pelab_db(*command, "--output", "json")).stdout)

    def assert_not_trained_again(self, attempts):
        """Checks that every attempt after a job's first one began where training had ended, and
        that the curves are the first attempt's."""
        self.assertEqual(self.curves(), self.curves_before)
        self.assertEqual(self.states(), {"succeeded": 2})
        later = self.query("SELECT start_epoch, outcome FROM v_attempts WHERE number > 1")
        self.assertEqual(later, [(EPOCHS, "succeeded")] * attempts)

    def stored(self):
        return sorted(
            self.query("SELECT job_id, name, parameters_json ->> '$.method' FROM v_analyses"))

    def test_analyses_are_added_without_training(self):
        first = self.analyze("tiny", "--analysis", "layer_ablation", "--analysis", "head_ablation",
                             "--set", "head_ablation.method=mean")
        self.assertIn("2 queued, 0 already stored", first.stdout)
        self.assertIn("2 of 2 jobs have what was asked for", first.stdout)
        self.assertEqual(self.stored(), [(job, name, method) for job in (1, 2) for name, method in
                                         (("head_ablation", "mean"), ("layer_ablation", "zero"))])
        self.assert_not_trained_again(attempts=2)

        again = self.analyze("tiny", "--analysis", "layer_ablation", "--analysis", "head_ablation",
                             "--set", "head_ablation.method=mean")
        self.assertIn("0 queued, 2 already stored", again.stdout)
        self.assert_not_trained_again(attempts=2)

        one = self.analyze("1", "--analysis", "head_ablation")
        self.assertIn("job 1: 1 queued", one.stdout)
        self.assertEqual(len(self.stored()), 5)
        self.assert_not_trained_again(attempts=3)
        self.ok(self.pelab_db("db", "check"))

    def test_resubmitting_with_more_analyses_does_the_same(self):
        self.sweep.write_text(
            document(["layer_ablation", {"name": "cumulative_ablation", "steps": 3, "orders": 2}]))
        refused = self.ok(self.run_sweep(self.sweep), 2)  # another document is not the stored sweep
        self.assertIn("--new", refused.stderr)
        result = self.ok(self.run_sweep(self.sweep, "--new"))
        self.assertIn("0 new, 2 already stored", result.stdout)
        self.assertIn("2 of the stored get analyses that they lack", result.stdout)
        self.assertEqual(self.stored(), [(job, name, "zero") for job in (1, 2)
                                         for name in ("cumulative_ablation", "layer_ablation")])
        self.assert_not_trained_again(attempts=2)
        again = self.ok(self.run_sweep(self.sweep))
        self.assertIn("going on with sweep 2", again.stdout)
        self.assertNotIn("get analyses", again.stdout)
        self.assert_not_trained_again(attempts=2)

    def test_what_the_commands_show_is_what_is_stored(self):
        self.analyze("tiny", "--analysis", "layer_ablation", "--analysis", "head_ablation",
                     "--analysis", "cumulative_ablation", "--set", "cumulative_ablation.steps=4")
        heads = self.read("ablation", "tiny")["head_ablation"]
        self.assertEqual(len(heads), 2 * LAYERS * HEADS)
        for head in heads:
            self.check_head(head)
        self.check_deposits(heads)
        self.check_layers()
        self.check_removals()
        for command in (["deposits", "tiny", "--by-layer"], ["analyses", "tiny"],
                        ["analyses", "tiny", "--name", "layer_ablation"],
                        ["ablation", "tiny", "--metric", "nll_drop"],
                        ["analyses", "1", "--name", "cumulative_ablation"], ["artifacts", "tiny"]):
            self.assertIn("\n", self.ok(self.pelab_db(*command)).stdout)
            self.assertTrue(self.ok(self.pelab_db(*command, "--output", "csv")).stdout)

    def check_head(self, head):
        """Checks that the figures of a row follow from its counts."""
        total, lost, gained = head["total"], head["lost"], head["gained"]
        self.assertEqual(total, 128)
        self.assertEqual(head["correct"], head["intact_correct"] - lost + gained)
        drop = (lost - gained) / total
        error = (((lost + gained) / total - drop**2) / total) ** 0.5
        self.assertAlmostEqual(head["accuracy_drop"], drop, places=12)
        self.assertAlmostEqual(head["drop_standard_error"], error, places=12)
        self.assertEqual(head["drop_counts"], drop > 3 * error)
        low, high = head["drop_interval"]
        self.assertAlmostEqual((low + high) / 2, drop, places=12)
        # distances 1 to 70 (16 - 1) // 127
        self.assertAlmostEqual(head["chance"], 1 / 8, places=12)

    def check_deposits(self, heads):
        """Checks the indices over all layers, recomputed from the matrix."""
        rows = [row for row in self.read("deposits", "tiny")["deposits"] if row["layer"] is None]
        self.assertEqual([row["job_id"] for row in rows], [1, 2])
        for row in rows:
            mine = [head for head in heads if head["job_id"] == row["job_id"]]
            intact, total, chance = mine[0]["intact_correct"] / 128, 128, mine[0]["chance"]
            drops = [head["accuracy_drop"] if head["drop_counts"] else 0 for head in mine]
            stands_out = intact - chance >= 5 * (intact * (1 - intact) / total) ** 0.5
            if not stands_out or max(drops) == 0:
                self.assertIsNone(row["max_drop"])
                self.assertIsNone(row["gini"])
            else:
                self.assertAlmostEqual(row["max_drop"], max(drops), places=12)
                self.assertAlmostEqual(row["effective_heads"],
                                       sum(drops)**2 / sum(d * d for d in drops), places=9)
        groups = self.read("deposits", "tiny", "--by-layer")["groups"]
        self.assertEqual([group["layer"] for group in groups], [None, 0, 1])
        self.assertEqual([group["n"] for group in groups], [2, 2, 2])

    def check_layers(self):
        rows = self.read("analyses", "tiny", "--name", "layer_ablation")["analyses"]
        self.assertEqual([row["name"] for row in rows], ["layer_ablation"] * 2)
        for row in rows:
            result = row["result"]
            self.assertEqual(result["total"], 128)
            for correct, lost, gained in zip(result["correct"], result["lost"], result["gained"],
                                             strict=True):
                self.assertEqual(correct, result["intact_correct"] - lost + gained)

    def check_removals(self):
        rows = self.read("analyses", "1", "--name", "cumulative_ablation")["analyses"]
        result = rows[0]["result"]
        self.assertEqual(sorted(result["greedy"]["heads"]), [[0, 0], [0, 1], [1, 0], [1, 1]])
        self.assertEqual(len(result["random"]), 5)
        self.assertEqual({order["correct"][-1] for order in result["random"]}
                         | {result["greedy"]["correct"][-1]}, {result["greedy"]["correct"][-1]},
                         "with every head gone the order is the same")

    def test_a_coordinator_answers_and_its_worker_does_the_work(self):
        self.server()
        asked = self.ok(self.pelab("analyze", "tiny", "--analysis", "layer_ablation"))
        self.assertIn("2 queued", asked.stdout)
        self.assertIn("mean", self.read("results", "tiny")["groups"][0],
                      "results stay while analyses wait")
        self.assertEqual(self.read("results", "tiny")["groups"][0]["n"], 2)
        self.worker()
        watched = self.ok(self.pelab("analyze", "tiny", "--analysis", "layer_ablation",
                                     "--watch", timeout=60))
        self.assertIn("2 of 2 jobs have what was asked for", watched.stdout)
        self.assert_not_trained_again(attempts=2)
        for command in (["analyses", "tiny"], ["deposits", "tiny"], ["artifacts", "tiny"]):
            self.assertEqual(self.json(*command), self.read(*command))

    def test_interrupted_it_leaves_nothing_and_goes_on(self):
        long = ["analyze", "tiny", "--analysis", "cumulative_ablation",
                "--set", "cumulative_ablation.orders=40", "--db", self.db]
        process = self.spawn("pelab", *long, log="analyze.log")
        wait_until(lambda: self.trainers() or process.poll() is not None, 30, "a trainer")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(10), 130, self.logs())
        wait_until(lambda: not processes(str(self.folder)), 5, "everything to end")
        self.assertEqual(self.curves(), self.curves_before)
        self.assertEqual(
            self.read("results", "tiny")["groups"][0]["n"], 2, "results stay while analyses wait")
        short = self.analyze("tiny", "--analysis", "cumulative_ablation", "--set",
                             "cumulative_ablation.orders=40")
        self.assertIn("2 of 2 jobs have what was asked for", short.stdout)
        self.assertEqual(self.curves(), self.curves_before)
        self.assertEqual(
            self.query(
                "SELECT DISTINCT start_epoch FROM v_attempts WHERE number > 1 AND outcome = ?",
                "succeeded"), [(EPOCHS,)])

    def test_a_changed_protocol_keeps_the_defaults_of_its_document(self):
        sweep = tiny_sweep(epochs=1, train_examples=128, seeds="[0]", pes="rope", name="changed")
        path = self.write("changed.yaml", sweep.replace("clean", "published") + "analyses: []\n")
        self.ok(self.pelab_db("run", path, "--set", "model.kv_source=self"))
        self.assertEqual(self.query("SELECT protocol FROM v_jobs WHERE job_id = 3"), [("custom",)])
        self.analyze("changed", "--analysis", "head_ablation")
        self.assertEqual(self.query("SELECT parameters_json ->> '$.hygiene' FROM v_analyses"),
                         [("authors",)])

    def test_without_kept_weights_it_says_so(self):
        for path in pathlib.Path(f"{self.db}.artifacts").rglob("*"):
            if path.is_file():
                path.unlink()
        result = self.analyze("tiny", "--analysis", "layer_ablation", status=3)
        self.assertIn("0 of 2 jobs have what was asked for", result.stdout)
        self.assertIn("weights", result.stderr)
        self.assert_not_trained_again(attempts=0)
        self.assertEqual(self.stored(), [])


class BadRequests(RunCase):
    SWEEP = document([])

    def test_are_answered_before_anything_starts(self):
        for arguments, *expected in (
                (["tiny", "--analysis", "head_ablatoin"], "did you mean head_ablation",
                 "layer_ablation"),
                (["tiny", "--analysis", "head_ablation", "--set", "head_ablation.method=none"],
                 '"none"', "resample"),
                (["tiny", "--analysis", "head_ablation", "--set", "train.lr=1"],
                 "head_ablation.method"),
                (["tiny", "--analysis", "cumulative_ablation",
                  "--set", "cumulative_ablation.steps=0"], "from 1 to"),
                (["tiny"], "--analysis"),
                (["--analysis", "head_ablation"], "name one job or one sweep")):
            result = self.ok(self.pelab_db("analyze", *arguments), 2)
            for text in expected:
                self.assertIn(text, result.stderr)
        result = self.ok(self.pelab_db("analyze", "tinny", "--analysis", "head_ablation"), 2)
        self.assertIn('"tinny"', result.stderr)
        self.assertEqual(processes(str(self.folder)), [])
        self.assertEqual(self.query("SELECT count(*) FROM v_analyses"), [(0,)])
        self.assertEqual(self.query("SELECT count(*) FROM v_attempts"), [(2,)])


class NoDatabase(Case):
    def test_it_is_said(self):
        result = self.ok(self.pelab_db("analyze", "tiny", "--analysis", "head_ablation"), 2)
        self.assertIn("no database", result.stderr)
        self.assertFalse(self.db.exists())


class Artifacts(RunCase):
    SWEEP = document([])

    def test_get_checks_and_never_overwrites(self):
        listed = json.loads(self.ok(self.pelab_db("artifacts", "1", "--output",
                                                  "json")).stdout)["artifacts"]
        self.assertEqual([row["name"] for row in listed], ["weights.safetensors"])
        out = self.folder / "mine.safetensors"
        get = ["artifacts", "1", "get", "weights.safetensors", "--out", out]
        self.ok(self.pelab_db(*get))
        data = out.read_bytes()
        self.assertEqual(hashlib.sha256(data).hexdigest(), listed[0]["sha256"])
        self.assertEqual(len(data), listed[0]["bytes"])

        out.write_text("mine")
        self.assertIn("--force", self.ok(self.pelab_db(*get), 2).stderr)
        self.assertEqual(out.read_text(), "mine")
        self.ok(self.pelab_db(*get, "--force"))
        self.assertEqual(out.read_bytes(), data)
        self.assertIn("weights.safetensors",
                      self.ok(self.pelab_db("artifacts", "1", "get", "weights"), 2).stderr)

        self.server()
        remote = self.folder / "remote.safetensors"
        self.ok(self.pelab("artifacts", "1", "get", "weights.safetensors", "--out", remote))
        self.assertEqual(remote.read_bytes(), data)

        stored = next(path
                      for path in pathlib.Path(f"{self.db}.artifacts").rglob(listed[0]["sha256"]))
        stored.chmod(0o644)
        stored.write_bytes(data[:-1] + b"?")
        damaged = self.folder / "damaged.safetensors"
        for run in (self.pelab, self.pelab_db):
            result = self.ok(run("artifacts", "1", "get", "weights.safetensors", "--out", damaged),
                             1)
            self.assertIn("damaged", result.stderr)
            self.assertFalse(damaged.exists())
        self.assertEqual([path.name for path in self.folder.glob("*.safetensors*")
                          if path.name not in (out.name, remote.name)], [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
