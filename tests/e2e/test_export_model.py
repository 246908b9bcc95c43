"""Trained jobs as folders for PyTorch: `pelab export-model`, and the model.py that it writes for
own encodings (e2e.reevaluate has the others). Run by a Python with PyTorch."""

import json
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import sys
import textwrap
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from exported_models import ExportCase, module_of  # noqa: E402
from forked_script import run_script  # noqa: E402
from pelab_harness import BIN, SOURCE, tiny_sweep, wait_until  # noqa: E402
import test_own_encoding as own  # noqa: E402
import torch  # noqa: E402

MODEL = SOURCE / "client" / "export" / "model.py"

# An own encoding with every method, and with all that a module may have: parameters of a
# submodule, a buffer that `reset` draws, options of each type.
EVERY = """
import sys
from typing import Dict
import torch
import pelab

class Every(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(1, 1))
        self.places = torch.nn.Parameter(torch.ones(1, 1))
        self.mix = torch.nn.Linear(4, 4)
        self.register_buffer("drawn", torch.zeros(4))
        self.step = 0.0
        self.sign = 1.0

    def configure(self, sizes: Dict[str, int], options: Dict[str, float]):
        self.scale = torch.ones(sizes["layers"], sizes["heads"])
        self.places = torch.ones(sizes["max_len"], sizes["d_model"])
        self.step = options["step"] * options["times"]
        self.sign = -1.0 if options["backwards"] > 0 else 1.0

    def reset(self, seed: int):
        self.scale = torch.randn(self.scale.size(0), self.scale.size(1))
        self.places = 0.3 * torch.randn(self.places.size(0), self.places.size(1))
        self.drawn = torch.randn(4)

    def input_term(self, length: int):
        return self.places[:length]

    def transform(self, layer: int, side: int, x: torch.Tensor, length: int):
        places = torch.arange(length - x.size(1), length).view(1, -1, 1, 1)
        return self.mix(x) * (1 + 0.2 * (side + 1) * torch.cos(self.step * places + layer))

    def angles(self, length: int):
        places = torch.arange(length).view(-1, 1, 1) / length
        return self.sign * 5 * places * self.scale[0].view(1, -1, 1) * torch.ones(1, 1, 2)

    def distance_bias(self, layer: int, length: int):
        return 0.1 * self.scale[layer].unsqueeze(1) * torch.arange(1 - length, length)

    def pair_bias(self, layer: int, query: torch.Tensor, key: torch.Tensor):
        return query.sum(-1).tanh().unsqueeze(3) * (key @ self.drawn).unsqueeze(2)

    def logits(self, layer: int, query: torch.Tensor, key: torch.Tensor, logits: torch.Tensor):
        return 3 * torch.tanh(logits / 3) + query[:, :, :, :1] * key[:, :, :, 1].unsqueeze(2)

    def distance_factor(self, layer: int, length: int):
        distance = torch.arange(1 - length, length)
        return 1 + 0.5 * torch.sin(self.scale[layer].unsqueeze(1) + distance)

pelab.save_encoding(Every(), "every.pt", name="every", options={
    "step": pelab.real(0.3, 0, 10), "times": pelab.integer(2, 1, 5),
    "backwards": pelab.flag(False)})
"""
OWN = ("[{name: own, file: alibi.pt}, {name: own, file: rope.pt}, {name: own, file: decay.pt, "
       "strength: [1, 4]}, {name: own, file: every.pt, step: 0.25, times: 3, backwards: true}]")


def without_analyses(document):
    """The document, for the time that its analyses take."""
    text = re.sub(r"^analyses:.*(\n .*)*\n", "", document, flags=re.MULTILINE)
    return text.rstrip() + "\nanalyses: []\n"


def run_model(folder, *arguments):
    """What `python3 model.py ARGUMENTS` does in the folder. It gets nothing of pelab's."""
    return run_script("model.py", *arguments, folder=folder, alone=True)


class Agreement(ExportCase):
    """Of own encodings; e2e.reevaluate compares those that pelab brings."""

    def test_own_encodings(self):
        for script, *arguments in ((own.EXAMPLE, self.folder),
                                   (self.write("every.py", textwrap.dedent(EVERY)),)):
            self.ok(run_script(script, *arguments, folder=self.folder))
        document = without_analyses(own.document(OWN, "[3]", train=72, test=40, epochs=1))
        self.server()
        self.worker()
        self.submit(document)
        self.submit(document.replace("name: own", "name: padded", 1)
                    .replace("name: distance", "name: distance, definition: published"))
        self.wait_finished(10)
        folders = self.check_exports(10)
        for label, folder in folders.items():
            name = re.search(r"own:(\w+)", label)[1]
            self.assertEqual((folder / "encoding.pt").read_bytes(),
                             (self.folder / f"{name}.pt").read_bytes())


class Trained(ExportCase):
    def train(self):
        """Job 1 succeeds. Job 2 fails, since its weights grow until they are not finite."""
        self.server()
        self.worker()
        self.submit(without_analyses(tiny_sweep(pes="[rope]", seeds="[0]", epochs=1)))
        self.submit(without_analyses(tiny_sweep(name="failing", seeds="[7]", pes="[nope]",
                                                epochs=2)),
                    "--set", "train.lr=1000", "--set", "train.weight_decay=1")
        wait_until(lambda: self.states() == {"succeeded": 1, "failed": 1}, 60, self.situation)
        self.stop_all()


class Command(ExportCase):
    """Two trained jobs for all tests, which may change the database and its files."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.trained = Trained("train")
        cls.trained.setUp()
        cls.addClassCleanup(cls.trained.doCleanups)
        cls.trained.train()
        cls.trained.export(1, cls.trained.folder / "out", "--data")

    def setUp(self):
        super().setUp()
        shutil.copy(self.trained.db, self.db)
        shutil.copytree(f"{self.trained.db}.artifacts", f"{self.db}.artifacts")

    def copied(self):
        """A folder that was exported with its data, as test_the_folder does."""
        return shutil.copytree(self.trained.folder / "out", self.folder / "out")

    def refused(self, *arguments, status=2, program=None, path=None):
        """The message of an export that fails."""
        environment = dict(os.environ, **({"PATH": str(path)} if path else {}))
        result = subprocess.run([program or BIN / "pelab", "export-model", *map(str, arguments),
                                 "--db", self.db], cwd=self.folder, capture_output=True, text=True,
                                timeout=60, env=environment)
        self.assertEqual(result.returncode, status, result.stdout + result.stderr)
        self.assertEqual(list(self.folder.glob("*.partial-*")), [])
        return result.stderr

    def weights(self):
        (sha256,), = self.query("SELECT sha256 FROM v_artifacts WHERE name = "
                                "'weights.safetensors'")
        return pathlib.Path(f"{self.db}.artifacts", sha256[:2], sha256)

    def test_the_folder(self):
        value = self.export(1, "out/", "--data")
        out = self.folder / "out"
        names = ["README.md", "data.safetensors", "model.py", "spec.json", "weights.safetensors"]
        self.assertEqual([file["file"] for file in value["files"]], names)
        self.assertEqual(sorted(path.name for path in out.iterdir()), names)
        self.assertEqual((out / "model.py").read_bytes(), MODEL.read_bytes())
        self.assertEqual((out / "weights.safetensors").read_bytes(), self.weights().read_bytes())
        stored = f"{value['test_correct']}/{value['test_total']}"
        readme = (out / "README.md").read_text()
        for text in (value["key"], f"stored test accuracy | {stored}", "`rope`",
                     "python3 model.py data.safetensors"):
            self.assertIn(text, readme)
        printed = self.ok(run_model(out, "data.safetensors")).stdout
        self.assertRegex(printed, rf"^{stored} = 0\.\d+\n\d+ of {value['test_total']} ")
        text = self.ok(self.pelab_db("export-model", value["key"][:8], "--out", "again")).stdout
        self.assertIn(f"4 files, stored test accuracy {stored}", text)
        exported = (out / "data.safetensors").read_bytes()
        (out / "data.safetensors").unlink()
        self.write_data(out)
        self.assertEqual((out / "data.safetensors").read_bytes(), exported)

    def test_the_module_without_lengths(self):
        out = self.copied()
        module = module_of(out)
        model = module.load()
        data, _ = module.read_safetensors(out / "data.safetensors")
        tokens = data["tokens"][:5]
        self.assertTrue(torch.equal(model(tokens), model(tokens, data["lengths"][:5])))
        self.assertFalse(model.training)
        model(tokens).sum().backward()
        self.assertTrue(all(parameter.grad is not None for parameter in model.parameters()))

    def test_model_py_says_what_is_wrong(self):
        out = self.copied()
        for arguments, said in (((), "usage: python3 model.py data.safetensors"),
                                (("none",), "No such file"),
                                (("weights.safetensors",), "targets"),
                                (("README.md",), "model.py: ")):
            result = run_model(out, *arguments)
            self.assertEqual(result.returncode, 1, arguments)
            self.assertIn(said, result.stderr)
            self.assertNotIn("Traceback", result.stderr)
        spec = json.loads((out / "spec.json").read_text())
        for part, name, value, said in (("task", "data_seed", 5, "not this job's data set"),
                                        ("model", "attention_bias", False, "weights.safetensors"),
                                        ("model", "d_ff", 33, "size mismatch"),
                                        ("pe", "name", "new", "has no encoding new")):
            changed = json.loads(json.dumps(spec))
            changed[part][name] = value
            (out / "spec.json").write_text(json.dumps(changed))
            result = run_model(out, "data.safetensors")
            self.assertEqual(result.returncode, 1, name)
            self.assertIn(said, result.stderr)
            self.assertNotIn("Traceback", result.stderr)

    def test_a_folder_that_is_there(self):
        (self.folder / "empty").mkdir()
        self.export(1, "empty")
        self.assertEqual(len(list((self.folder / "empty").iterdir())), 4)
        (self.folder / "empty" / "mine.txt").write_text("mine")
        (self.folder / "empty" / "model.py").write_text("changed")
        self.assertIn("or replace the files of an earlier export (--force)",
                      self.refused(1, "--out", "empty"))
        self.assertEqual((self.folder / "empty" / "model.py").read_text(), "changed")
        self.export(1, "empty", "--force")
        self.assertEqual((self.folder / "empty" / "model.py").read_bytes(), MODEL.read_bytes())
        self.assertEqual((self.folder / "empty" / "mine.txt").read_text(), "mine")
        self.write("file", "")
        self.assertIn("file is there already", self.refused(1, "--out", "file", "--force"))
        self.assertIn("there is no directory no", self.refused(1, "--out", "no/where"))

    def test_jobs_without_a_model(self):
        self.assertIn("no job 9", self.refused(9, "--out", "out"))
        self.assertIn("job 2 is failed; only a job whose training has succeeded",
                      self.refused(2, "--out", "out"))
        self.assertFalse((self.folder / "out").exists())

    def test_weights_that_were_not_kept(self):
        with sqlite3.connect(self.db) as database:
            for name, in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'"
                                          ).fetchall():
                database.execute(f"DROP TRIGGER {name}")
            database.execute("DELETE FROM artifacts")
        database.close()
        self.assertIn("the weights of job 1 were not kept", self.refused(1, "--out", "out"))

    def test_files_that_are_lost_or_damaged(self):
        file = self.weights()
        content = file.read_bytes()
        file.chmod(0o644)
        file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        self.assertIn("is damaged", self.refused(1, "--out", "out", status=1))
        file.unlink()
        self.assertIn("has lost the weights of job 1", self.refused(1, "--out", "out"))
        self.assertFalse((self.folder / "out").exists())

    def test_no_trainer(self):
        program = shutil.copy(BIN / "pelab", self.folder)
        (self.folder / "bin").mkdir()
        said = self.refused(1, "--out", "out", "--data", program=program, path=self.folder / "bin")
        self.assertIn("--data needs pelab-trainer to make the data set", said)
        self.write("bin/pelab-trainer", "#!/bin/sh\nexit 3\n").chmod(0o755)
        said = self.refused(1, "--out", "out", "--data", program=program, path=self.folder / "bin",
                            status=1)
        self.assertIn("dataset exited with status 3 and wrote no data set", said)
        self.assertFalse((self.folder / "out").exists())

    def test_from_a_coordinator(self):
        self.export(1, "file")
        self.server()
        self.ok(self.pelab("export-model", 1, "--out", "served"))
        for path in (self.folder / "file").iterdir():
            self.assertEqual((self.folder / "served" / path.name).read_bytes(), path.read_bytes())


if __name__ == "__main__":
    unittest.main(verbosity=2)
