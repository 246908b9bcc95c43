"""Trained jobs as folders for PyTorch: each model.py must find the stored results of its job. For
tests that are run by a Python with PyTorch."""

import hashlib
import importlib.util
import json
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # the matrix products are tiny
import torch  # noqa: E402
from pelab_harness import BIN, Case, trainer_environment  # noqa: E402
from preloaded import Preloaded  # noqa: E402

LOSS = 2e-5  # float32 against float32 in another order (docs/formats.md, tolerances of a recount)


def module_of(folder):
    """The folder's model.py as a module."""
    spec = importlib.util.spec_from_file_location("exported_model", folder / "model.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class ExportCase(Case):
    @classmethod
    def setUpClass(cls):
        os.environ.update(trainer_environment())
        torch.set_num_threads(1)

    def setUp(self):
        super().setUp()
        self.files = {}  # task -> file with its data set

    def export(self, job, out, *arguments):
        result = self.ok(self.pelab_db("export-model", job, "--out", out, "--output", "json",
                                       *arguments))
        return json.loads(result.stdout)

    def exported(self, job_id, spec):
        """The job's folder, and a file with its data set: made once for all jobs of a task."""
        folder, task = self.folder / f"job{job_id}", json.dumps(spec["task"], sort_keys=True)
        self.export(job_id, folder)
        if task not in self.files:
            self.files[task] = folder / "data.safetensors"
            self.write_data(folder)
        return folder, self.files[task]

    def write_data(self, folder):
        """Writes the same file as `export-model --data`. A forked trainer writes it, since
        starting one takes longer."""
        trainer = BIN / "pelab-trainer"
        self.ok(Preloaded.of(trainer).run(
            [trainer, "dataset", "--spec", folder / "spec.json",
             "--out", folder / "data.safetensors"]))

    def loss(self, module, model, file):
        """The mean loss of the scored test examples, with the logits of `forward`."""
        data, _ = module.read_safetensors(file)
        task = model.spec["task"]
        shift = 2 if (task["label_space"], task.get("definition")) == ("exact", "published") else 0
        classes = data["targets"].long() - shift
        scored = data["split"] == 1
        if task["scored_classes"] == "nonzero":
            scored &= classes != 0
        with torch.no_grad():
            logits = model(data["tokens"][scored], data["lengths"][scored])
        return torch.nn.functional.cross_entropy(logits, classes[scored]).item()

    def check_exports(self, jobs, sweep="%"):
        """Compares all jobs of the database, or of one of its sweeps, with their folders. Returns
        {label: folder}."""
        modules = {}  # text of a model.py -> module, for the time that compiling takes
        rows = self.query("SELECT job_id, key, pe_label || ' ' || task || ' ' || protocol, "
                          "spec_json, test_correct, test_total, test_loss FROM v_jobs "
                          "WHERE state = 'succeeded' AND job_id IN (SELECT job_id FROM "
                          "v_sweep_jobs WHERE sweep LIKE ?) ORDER BY job_id", sweep)
        self.assertEqual(len(rows), jobs)
        folders, all_close = {}, 0
        for job_id, key, label, spec, correct, total, loss in rows:
            with self.subTest(job=label):
                folder, data = self.exported(job_id, json.loads(spec))
                self.assertEqual(hashlib.sha256((folder / "spec.json").read_bytes()).hexdigest(),
                                 key)
                text = (folder / "model.py").read_bytes()
                module = modules[text] = modules.get(text) or module_of(folder)
                model = module.load(folder)
                found, scored, close = module.score(model, data)
                self.assertEqual(scored, total)
                self.assertLessEqual(abs(found - correct), close)
                self.assertAlmostEqual(self.loss(module, model, data), loss,
                                       delta=LOSS * max(1, loss))
                folders[label], all_close = folder, all_close + close
        self.assertLess(all_close / jobs, 0.5, "too close for the counts to say anything")
        return folders
