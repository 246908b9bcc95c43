"""Files of own encodings for tests, made by a Python with PyTorch."""

import hashlib
import json
import pathlib
import sys
import textwrap

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from forked_script import run_script  # noqa: E402
from pelab_harness import BIN, Case, SOURCE  # noqa: E402
from preloaded import Preloaded  # noqa: E402

EXAMPLE = SOURCE / "client" / "python" / "examples" / "own_encodings.py"

# `pelab check` in a third of the time.
SMALL = ("--set", "task.length=8", "--set", "model.d_ff=16", "--set", "model.d_model=16")

SWEEP = """
name: own
protocol: clean
pe: {pes}
task: {{name: distance, length: 24, vocabulary: 40, train_examples: {train}, \
test_examples: {test}}}
seed: {seeds}
model: {{d_model: 16, d_ff: 24, heads: 4, layers: 2, max_len: 24, dropout: 0.1}}
train: {{epochs: {epochs}, batch_size: 32, lr: 1e-2}}
"""
TINY = {"train": 64, "test": 32, "epochs": 1}  # where nothing depends on what the jobs learn

CHECKED = """
name: checked
pe: [{pes}]
task: {{name: distance, length: {length}, vocabulary: 40}}
model: {{d_model: 16, d_ff: 16, heads: 4, layers: 1, max_len: {length}, dropout: 0}}
"""

# What the modules below have in common, before their methods.
HEAD = """
from typing import Dict, List
import torch
import pelab

def save(module, file, **arguments):
    try:
        pelab.save_encoding(module, file, **arguments)
    except pelab.InvalidInput as error:
        print(str(error).replace("\\n", " "))
"""
MODULE = """
class Module{number}(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(4, 1))
        self.step = 0.5
"""


def document(pes, seeds="[0]", train=256, test=96, epochs=2):
    return SWEEP.format(pes=pes, seeds=seeds, train=train, test=test, epochs=epochs)


class OwnEncoding(Case):
    made = {}

    def python(self, script, *arguments):
        """Runs a script that imports pelab."""
        return run_script(script, *arguments, folder=self.folder)

    def examples(self):
        """Puts decay.pt, alibi.pt and rope.pt into the test's folder. They are made once."""
        if not OwnEncoding.made:
            self.ok(self.python(EXAMPLE, self.folder))
            OwnEncoding.made = {path.name: path.read_bytes() for path in self.folder.glob("*.pt")}
        for name, data in OwnEncoding.made.items():
            (self.folder / name).write_bytes(data)

    def save(self, modules):
        """Runs a script that saves a module for each (file, methods, arguments). Returns a line for
        each that cannot be saved."""
        text = HEAD
        for number, (file, methods, arguments) in enumerate(modules):
            text += (MODULE.format(number=number)
                     + textwrap.indent(textwrap.dedent(methods), "    ")
                     + f"\nsave(Module{number}(), {file!r}, {arguments})\n")
        return self.ok(self.python(self.write("module.py", text))).stdout.splitlines()

    def saved(self, modules):
        """Saves modules by the names of their files."""
        self.assertEqual(self.save([(file, methods, "name='mine'")
                                    for file, methods in modules.items()]), [])

    def tried(self, files, length=8):
        """Runs `pelab-trainer check` on each file, as `pelab check` does. Returns (exit status,
        {name of the check: row}) for each. Each trainer is a fork of one that has loaded
        LibTorch, because loading it takes longer than the checks."""
        pes = ", ".join(f"{{name: own, file: {file}}}" for file in files)
        planned = self.ok(self.pelab_db(
            "submit", self.write("checked.yaml", CHECKED.format(pes=pes, length=length)),
            "--dry-run", "--output", "json"))
        folder = self.folder / "checked"
        folder.mkdir()
        for file in files:
            (folder / self.sha256(file)).write_bytes((self.folder / file).read_bytes())
        specs = {job["spec"]["pe"]["file"]: job["spec"]
                 for job in json.loads(planned.stdout)["jobs"]}
        trainer, said = BIN / "pelab-trainer", []
        for file in files:
            job = self.write("checked.json", json.dumps(specs[self.sha256(file)]))
            result = Preloaded.of(trainer).run([trainer, "check", "--spec", job,
                                                "--files", folder])
            self.assertTrue(result.stdout, (file, result))
            found = json.loads(result.stdout)
            said.append((result.returncode, {row["name"]: row for row in found["checks"]}))
        return said

    def sha256(self, name):
        return hashlib.sha256((self.folder / name).read_bytes()).hexdigest()

    def labels(self):
        return [row[0] for row in self.query("SELECT DISTINCT pe_label FROM v_jobs "
                                             "ORDER BY pe_label")]

    def outcome(self, label):
        """Everything that is stored of the job's accuracies and ablations."""
        curves = self.query("SELECT seed, epoch, c.train_correct, c.test_correct FROM v_curves c "
                            "JOIN v_jobs USING (job_id) WHERE pe_label = ? ORDER BY 1, 2",
                            label)
        heads = self.query("SELECT seed, layer, head, lost, gained FROM v_head_ablation JOIN "
                           "v_jobs USING (job_id) WHERE pe_label = ? ORDER BY 1, 2, 3", label)
        self.assertGreater(len(curves), 0, label)
        self.assertGreater(len(heads), 0, label)
        return curves, heads
