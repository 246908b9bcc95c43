"""Trainings on data of one's own, on the real binaries: the numbers of tasks that pelab brings,
targets by position, and exports, imports and reports of them. Run by a Python with numpy and
PyTorch, which trains nothing here."""

import csv
import hashlib
import json
import os
import pathlib
import shutil
import signal
import struct
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import browser  # noqa: E402
from exported_models import LOSS, module_of  # noqa: E402
from own_data_case import (  # noqa: E402
    OwnData, SLOTS, TOY, Trained, document, induction, read, targets_of, toy)
from pelab_harness import BIN, trainer_environment  # noqa: E402
from preloaded import Preloaded  # noqa: E402
from report_case import data_of  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
import pelab  # noqa: E402

TRAINER = BIN / "pelab-trainer"


class Same(OwnData):
    """The tasks that pelab brings, written as files, give the same numbers: of every epoch and of
    every ablated head."""

    TASKS = """
  - {name: distance, length: 16, vocabulary: 40, train_examples: 64, test_examples: 32}
  - {name: counting, length: 16, vocabulary: 40, train_examples: 64, test_examples: 32,
     triggers: 6}"""
    PES = "[rope, nope, mla]"

    def write_data(self, protocol):
        """Writes the protocol's data sets, and returns the tasks that name them."""
        items = []
        for task, spec in self.query("SELECT task, spec_json FROM v_jobs WHERE protocol = ? AND "
                                     "pe = 'rope' ORDER BY task", protocol):
            file = f"{protocol}_{task}.safetensors"
            spec = self.write(f"{protocol}_{task}.json", spec)
            self.ok(Preloaded.of(TRAINER).run([TRAINER, "dataset", "--spec", spec, "--out",
                                               self.folder / file], timeout=60))
            self.assertEqual(self.checked(file)["padded"], protocol == "published")
            items.append(f"{{name: own, file: {file}}}")
        return f"[{', '.join(items)}]"

    def numbers(self, view, *leave_out):
        """{(protocol, encoding, task): rows}, of the tasks that pelab brings and of own data."""
        brought, own = {}, {}
        for row in self.rows(view, {"job_id", *leave_out}):
            task = row.pop("of_task")
            key = row.pop("of_protocol"), row.pop("of_pe"), task.removeprefix("own:")
            (own if task.startswith("own:") else brought).setdefault(key, []).append(row)
        self.assertEqual((len(brought), len(own)), (12, 12))
        return brought, own

    def test_tasks_as_files(self):
        self.server()
        self.worker("w", 2)
        for protocol in ("clean", "published"):
            self.submit(document(self.TASKS, self.PES, protocol=protocol, name=protocol))
            tasks = self.write_data(protocol)
            self.submit(document(tasks, self.PES, protocol=protocol, name=f"own-{protocol}"))
        self.wait_finished(24)
        # With mla the authors' counting also scores the class 0, so there guessing gets less than
        # in the jobs that the files come from.
        for view, *leave_out in (("v_curves", "seconds"), ("v_head_ablation", "analysis_id",
                                                           "chance", "normalised_drop")):
            brought, own = self.numbers(view, *leave_out)
            for key, rows in brought.items():
                with self.subTest(view=view, job=key):
                    self.assertGreater(len(rows), 1)
                    self.assertEqual(own[key], rows)


class Chance(OwnData):
    def test_it_is_that_of_the_scored_examples(self):
        self.save("toy.safetensors")
        _, tensors = read(self.folder / "toy.safetensors")
        labels = tensors["targets"][1]
        train, test = [], []
        for label, split in zip(labels, tensors["split"][1]):
            (test if split else train).append(label)
        expected = {}
        for scored, least in (("all", 0), ("nonzero", 1)):
            best = max(range(least, 4), key=train.count)
            expected[scored] = test.count(best) / sum(label >= least for label in test)
        self.assertNotEqual(expected["all"], expected["nonzero"])
        self.ok(self.run_sweep(self.write("own.yaml", document(
            "{name: own, file: toy.safetensors, scored_classes: [all, nonzero]}", epochs=1)),
            *SLOTS))
        found = self.query("SELECT spec_json ->> '$.task.scored_classes', chance FROM "
                           "v_head_ablation JOIN v_jobs USING (job_id) GROUP BY 1, 2")
        self.assertEqual(dict(found), expected)
        said = self.ok(self.pelab_db("results", "own")).stdout
        for chance in expected.values():
            self.assertIn(f"{100 * chance:.1f} % (guessing)", " ".join(said.split()))
        self.assertNotIn("task.chance", said, "it follows from what is scored")
        # Where nothing is left out, the texts by which a sweep is known again have no such chance.
        self.ok(self.run_sweep(self.write("all.yaml", document(TOY, name="all", epochs=1)), *SLOTS))
        (before,), (after,) = self.query("SELECT overrides_json FROM sweeps ORDER BY sweep_id")
        self.assertIn("chance_nonzero", before)
        self.assertNotIn("chance_nonzero", after)
        self.assertEqual(self.query("SELECT count(*) FROM v_jobs"), [(2,)], "trained already")


class ByPosition(Trained):
    def test_an_independent_count_of_the_targets(self):
        targets = targets_of(self.data)
        counts = {name: sum(map(len, rows)) for name, rows in targets.items()}
        of_train = sorted(target for row in targets["train"] for target in row)
        frequent = max(sorted(set(of_train)), key=of_train.count)
        for split in self.SPLITS:
            job, spec, _, total, _ = self.job(split)
            self.assertEqual(total, counts[split])
            found = {name: spec["task"][name] for name in
                     ("train_examples", "test_examples", "train_targets", "test_targets")}
            self.assertEqual(found, {"train_examples": len(targets["train"]),
                                     "test_examples": len(targets[split]),
                                     "train_targets": counts["train"],
                                     "test_targets": counts[split]})
            guessed = sum(row.count(frequent) for row in targets[split])
            self.assertEqual(spec["task"]["chance"], guessed / counts[split])
            self.assertEqual(spec["task"]["targets"], "position")
            self.assertNotIn("readout", spec["model"])
            sampled = sum(map(len, targets["train"][:250]))  # docs/formats.md, v_jobs
            for row in self.rows("v_curves", (), "job_id = ?", job):
                self.assertEqual((row["train_total"], row["test_total"], row["train_eval_total"]),
                                 (counts["train"], counts[split], sampled))

    def test_model_py_finds_the_stored_count(self):
        for split in self.SPLITS:
            job, spec, correct, total, loss = self.job(split)
            folder = self.folder / split
            self.ok(self.pelab_db("export-model", job, "--out", folder, "--data"))
            module = module_of(folder)
            model = module.load(folder)
            found, scored, close = module.score(model, folder / "data.safetensors")
            self.assertEqual(scored, total)
            self.assertEqual(close, 0, "too close for the count to say anything")
            self.assertEqual(found, correct)
            self.assertAlmostEqual(self.loss(module, model, folder), loss, delta=LOSS * loss)
            self.check_data(folder, job)
            self.check_heads(module, model, folder, job)
            # The file is one of own data, too.
            train, test = self.checked(folder / "data.safetensors")["splits"]
            self.assertEqual((train["name"], train["targets"], test["name"], test["targets"]),
                             ("train", spec["task"]["train_targets"], split, total))
            self.assertEqual(test["chance"], spec["task"]["chance"])

    def loss(self, module, model, folder):
        """The mean loss of the test targets, with the logits of `forward`."""
        data, _ = module.read_safetensors(folder / "data.safetensors")
        rows = data["split"] == 1
        with torch.no_grad():
            logits = model(data["tokens"][rows].long(), data["lengths"][rows].long())
        targets = data["targets"][rows].long()
        there = targets != -1
        return torch.nn.functional.cross_entropy(logits[there], targets[there] - 1).item()

    def check_data(self, folder, job):
        """data.safetensors has the file's numbers, and the data_sha256 of docs/formats.md."""
        metadata, written = read(folder / "data.safetensors")
        split = json.loads(metadata["splits"])[1]
        self.assertEqual(targets_of(folder / "data.safetensors")[split],
                         targets_of(self.data)[split])
        digest = hashlib.sha256(struct.pack("<qq", 32, written["split"][1].count(0)))
        for name in ("tokens", "lengths", "targets"):
            digest.update(struct.pack(f"<{len(written[name][1])}i", *written[name][1]))
        self.assertEqual(metadata["data_sha256"], digest.hexdigest())
        (told,), = self.query("SELECT environment_json FROM v_attempts WHERE job_id = ?", job)
        self.assertEqual(json.loads(told)["data_sha256"], digest.hexdigest())

    def check_heads(self, module, model, folder, job):
        """The model without the outputs of a head finds the stored count of its ablation."""
        stored = {(row["layer"], row["head"]): row["correct"] for row in
                  self.rows("v_head_ablation", (), "job_id = ? AND method = 'zero'", job)}
        self.assertEqual(len(stored), 8)
        for (layer, head), correct in stored.items():
            weight = model.layers[layer].attention.output.weight
            with torch.no_grad():
                kept = weight.clone()
                weight[:, 8 * head:8 * head + 8] = 0
                found, _, close = module.score(model, folder / "data.safetensors")
                weight.copy_(kept)
            self.assertLessEqual(abs(found - correct), close, (layer, head))

    def test_analyses_agree_with_the_accuracy(self):
        for split in self.SPLITS:
            job, spec, correct, total, _ = self.job(split)
            analyses = self.rows("v_analyses", (), "job_id = ?", job)
            self.assertEqual(sorted(row["name"] for row in analyses),
                             ["cumulative_ablation", "example_correctness"]
                             + ["head_ablation"] * 3 + ["layer_ablation", "split_accuracy"])
            for row in analyses:
                self.assertEqual((row["total"], row["intact_correct"]), (total, correct))
            results = {row["name"]: json.loads(row["result_json"]) for row in analyses
                       if row["result_json"]}
            self.check_correctness(results["example_correctness"]["right"], split, correct)
            self.check_splits(results["split_accuracy"]["splits"])
            layers = results["layer_ablation"]
            self.assertEqual(layers["correct"],
                             [correct - lost + gained for lost, gained
                              in zip(layers["lost"], layers["gained"])])
            orders = [results["cumulative_ablation"]["greedy"],
                      *results["cumulative_ablation"]["random"]]
            self.assertEqual(len({order["correct"][-1] for order in orders}), 1,
                             "without any head the order says nothing")
            heads = self.rows("v_head_ablation", (), "job_id = ?", job)
            self.assertEqual(len(heads), 3 * 8)
            for row in heads:
                self.assertEqual((row["total"], row["correct"], row["chance"]),
                                 (total, correct - row["lost"] + row["gained"],
                                  spec["task"]["chance"]))

    def check_splits(self, splits):
        """Both jobs have the same weights, so each finds what the other was tested on."""
        self.assertEqual([split["name"] for split in splits], ["train", *self.SPLITS])
        for split in splits[1:]:
            _, spec, correct, total, loss = self.job(split["name"])
            self.assertEqual((split["correct"], split["total"], split["chance"]),
                             (correct, total, spec["task"]["chance"]))
            self.assertAlmostEqual(split["nll"], loss, delta=LOSS * loss)
        _, spec, *_ = self.job("test")
        self.assertEqual(splits[0]["total"], spec["task"]["train_targets"])

    def test_accuracy_on_a_split_is_a_metric(self):
        _, _, correct, total, _ = self.job("long")
        metric = ("--metric", "split_accuracy(long)", "--where", "task=own:induction")
        shown = json.loads(self.ok(self.pelab_db("results", "own", *metric, "--output",
                                                 "json")).stdout)
        (group,) = shown["groups"]
        self.assertEqual(group["mean"], correct / total)
        table = self.ok(self.pelab_db("analyses", "own", "--name", "split_accuracy")).stdout
        rows = [line.split() for line in table.splitlines()[2:]]
        self.assertEqual([row[:3] for row in rows], [
            ["rope", task, split] for task in self.SPLITS.values()
            for split in ("train", *self.SPLITS)])
        self.assertIn(f"{correct / total:.4f}", rows[2])
        wrong = self.pelab_db("results", "own", "--metric", "split_accuracy(lnog)")
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("no such split; their splits: train, test, long", wrong.stderr)
        self.ok(self.pelab_db("report", "own", "--out", "r.html"))
        page = (self.folder / "r.html").read_text()
        data = json.loads(page.split('id="report-data">', 1)[1].split("</script>", 1)[0])
        shown = {(data["cells"][row["cell"]]["values"]["task"], row["split"]): row
                 for row in data["splits"]}
        self.assertEqual(set(shown), {(task, split) for task in self.SPLITS.values()
                                      for split in ("train", *self.SPLITS)})
        row = shown["own:induction", "long"]
        self.assertEqual((row["accuracy"]["mean"], row["accuracy"]["n"], row["accuracy"]["of"]),
                         (correct / total, 1, 1))
        frame = pelab.open(self.db).summary("own", metric="split_accuracy(long)",
                                            where="task = own:induction")
        self.assertEqual(list(frame["mean"]), [correct / total])

    def check_correctness(self, right, split, correct):
        """A bit for each position of each test example; only those with a target are set."""
        metadata, tensors = read(self.data)
        (examples, columns), targets = tensors["targets"]
        place = json.loads(metadata["splits"]).index(split)
        rows = [i for i in range(examples) if tensors["split"][1][i] == place]
        there = [targets[i * columns + t] != -1 for i in rows for t in range(columns)]
        bits = "".join(f"{int(digit, 16):04b}" for digit in right)
        self.assertEqual(len(bits), len(there))
        self.assertEqual(bits.count("1"), correct)
        self.assertFalse([at for at, bit in enumerate(bits) if bit == "1" and not there[at]])


class Carry(Trained):
    def test_export(self):
        self.ok(self.pelab_db("export", "own", "--out", "out"))
        out = self.folder / "out"
        with open(out / "jobs.csv", newline="", encoding="utf-8") as file:
            keys = sorted(row["key"] for row in csv.DictReader(file))
        provenance = json.loads((out / "provenance.json").read_text())
        self.assertFalse([line for line in provenance["commands"] if "file:" in line])
        self.assertIn("| `data/induction.safetensors` |", (out / "README.md").read_text())
        self.assertEqual((out / "data" / "induction.safetensors").read_bytes(), induction())
        # The folder alone is enough to run it elsewhere, and finds the jobs it came from.
        elsewhere = pathlib.Path(shutil.move(out, self.folder / "elsewhere"))
        self.data.unlink()
        found = self.dry_run(elsewhere / "sweep.yaml")
        self.assertEqual(sorted(job["key"] for job in found), keys)
        again = self.ok(self.run_sweep(elsewhere / "sweep.yaml"))
        self.assertIn("going on with sweep 1 own: 2 succeeded", again.stdout)

    def test_import(self):
        other = self.folder / "other.db"
        for _ in range(2):
            self.ok(self.pelab_db("import", self.db, "--db", other))
        sha256 = hashlib.sha256(induction()).hexdigest()
        stored = self.query("SELECT sha256, bytes FROM files", db=other)
        self.assertEqual(stored, [(sha256, len(induction()))])
        kept = self.folder / "other.db.artifacts" / sha256[:2] / sha256
        self.assertEqual(kept.read_bytes(), induction())
        self.assertEqual(self.results(other), self.results())
        self.ok(self.pelab_db("db", "check", "--db", other))
        # The new database lacks nothing to export a model with its data, and to go on.
        self.ok(self.pelab_db("export-model", 1, "--out", "model", "--data", "--db", other))
        self.assertTrue((self.folder / "model" / "data.safetensors").exists())

    def test_conditions(self):
        for where, tasks in (("task=own:induction", {"own:induction"}),
                             ("task=own:induction(test=long)", {"own:induction(test=long)"}),
                             ("task.data=induction", set(self.SPLITS.values())),
                             ("task.data=induction and task.test=long",
                              {"own:induction(test=long)"}),
                             ("task.targets=position", set(self.SPLITS.values())),
                             ("task.data=other", set())):
            result = self.ok(self.pelab_db("results", "--where", where, "--output", "json"))
            found = {row["task"] for row in json.loads(result.stdout)["groups"]}
            self.assertEqual(found, tasks, where)
        said = self.ok(self.pelab_db("results", "own")).stdout
        self.assertRegex(said, r"own:induction clean 2\.1 % \(guessing\)")

    def test_report(self):
        self.ok(self.pelab_db("report", "own", "--out", "report.html"))
        page = self.folder / "report.html"
        self.assertEqual({cell["task"] for cell in data_of(page)["cells"]},
                         set(self.SPLITS.values()))
        if not browser.CHROMIUM:
            self.skipTest(browser.MISSING)
        with browser.Page() as tab:
            tab.open(page)
            tab.wait("typeof pelabReport !== 'undefined'")
            tab.evaluate("pelabReport.drawAll()")
            self.assertEqual(tab.complaints(), [])
            self.assertGreater(tab.evaluate("pelabReport.charts.length"), 3)
            self.assertLessEqual(tab.overflow(), 0)
            self.assertIn("own:induction(test=long)", tab.evaluate("document.body.innerText"))


class AsATrainerProcess(Trained):
    """The trainer alone, on data with targets by position."""

    def setUp(self):
        super().setUp()
        os.environ.update(trainer_environment())
        _, self.spec, *_ = self.job("test")
        (self.folder / "files").mkdir()
        shutil.copy(self.data, self.folder / "files" / self.spec["task"]["file"])

    def command(self, name, specs, *options):
        words = [TRAINER, "run", "--files", self.folder / "files"]
        for spec in specs:
            heads = {"data": "test", "hygiene": "clean", "max_examples": 0, "method": "mean",
                     "target": "head"}
            job = {"job": str(spec["seed"]), "spec": spec,
                   "analyses": [{"name": "head_ablation", "version": 2, "parameters": heads}]}
            path = self.write(f"{name}{spec['seed']}.json", json.dumps(job))
            words += ["--spec", path, "--workdir", path.with_suffix("")]
        return [*map(str, words), *options]

    def events(self, lines):
        """{job: its events that must repeat, without times}."""
        found = {}
        for event in map(json.loads, lines):
            if event["event"] in ("epoch", "head_ablation", "done"):
                for name in ("seconds", "wall_seconds"):
                    event.pop(name, None)
                found.setdefault(event["job"], []).append(event)
        return found

    def run_trainer(self, *command):
        result = self.ok(Preloaded.of(TRAINER).run(self.command(*command)))
        return self.events(result.stdout.splitlines())

    def test_killed_it_goes_on_with_the_same_numbers(self):
        spec = {**self.spec, "train": {**self.spec["train"], "epochs": 5}}
        whole = self.run_trainer("whole", [spec])["0"]
        lines = []
        command = self.command("killed", [spec], "--checkpoint-seconds", "0")
        printed, out = os.pipe()
        with open(out, "w") as out:
            child = Preloaded.of(TRAINER).start(command, out, sys.stderr)
        with open(printed) as printed:
            for line in printed:
                lines.append(line)
                if '"event":"checkpoint"' in line and '"epoch":2' in line:
                    child.send_signal(signal.SIGKILL)
                    break
        self.assertEqual(child.wait(60), -signal.SIGKILL)
        rest = self.run_trainer("killed", [spec], "--resume")["0"]
        start = rest[0]["epoch"]
        self.assertGreaterEqual(start, 1)
        begun = [event for event in self.events(lines)["0"] if event["epoch"] < start]
        self.assertEqual(begun + rest, whole)

    def test_seeds_in_one_trainer_give_what_each_gives_alone(self):
        self.save("toy.safetensors", targets=np.where(toy()["tokens"] > 2, toy()["tokens"], -1))
        shutil.copy(self.folder / "toy.safetensors",
                    self.folder / "files" / self.sha256("toy.safetensors"))
        jobs = self.dry_run(self.write("toy.yaml", document(TOY, seeds="0..3")))
        packed = self.run_trainer("packed", [job["spec"] for job in jobs], "--packing", "on")
        for seed in ("0", "3"):
            alone = self.run_trainer("alone", [jobs[int(seed)]["spec"]])
            self.assertEqual(packed[seed], alone[seed])
        self.assertNotEqual(packed["0"], packed["1"])

    def test_padded_seeds_in_one_trainer_agree_within_rounding(self):
        """Alone, padding that the model does not read is left out (train/sections.h)."""
        specs = [{**self.spec, "seed": seed} for seed in range(2)]
        packed = self.run_trainer("packed", specs, "--packing", "on")["0"]
        stored = self.rows("v_curves", (), "of_task = 'own:induction'")
        self.assertEqual(len(stored), 2)
        for event, row in zip(packed, stored):
            for name in ("train_loss", "test_loss"):
                self.assertAlmostEqual(event[name], row[name], delta=1e-4)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    unittest.main()
