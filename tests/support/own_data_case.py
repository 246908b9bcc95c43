"""Own data for tests: two files, sweeps that name them, and jobs that are trained on them."""

import functools
import hashlib
import json
import pathlib
import sqlite3
import struct
import tempfile

import numpy as np
import torch

import pelab
from forked_script import run_script
from pelab_harness import Case, SOURCE
from trained_case import TrainedCase

EXAMPLE = SOURCE / "client" / "python" / "examples" / "own_task.py"
SLOTS = ("--cpu-slots", "2", "--threads-per-slot", "1")

SWEEP = """
name: {name}
protocol: {protocol}
pe: {pes}
task: {tasks}
seed: {seeds}
model: {{d_model: 32, d_ff: 48, heads: 4, layers: 2, max_len: 32, dropout: 0.1}}
train: {{epochs: {epochs}, batch_size: 32, lr: 1e-2}}
"""
INDUCTION = "{name: own, file: induction.safetensors}"
TOY = "{name: own, file: toy.safetensors}"


def document(tasks, pes="rope", seeds="[0]", protocol="clean", name="own", epochs=2):
    return SWEEP.format(tasks=tasks, pes=pes, seeds=seeds, protocol=protocol, name=name,
                        epochs=epochs)


@functools.cache
def induction(train=300):
    """The file that the example writes, made once for all tests."""
    with tempfile.TemporaryDirectory(prefix="pelab-") as folder:
        said = run_script(EXAMPLE, "--train", train, folder=folder)
        examples = train + 2 * (train // 4)
        assert said.stdout == f"wrote induction.safetensors: {examples} examples\n", said
        return pathlib.Path(folder, "induction.safetensors").read_bytes()


def toy(train=128, test=64, length=10, **changes):
    """Arguments of save_task: the label of a sequence is how many of its words are word 1, at most
    3."""
    tokens = np.random.default_rng(7).integers(0, 6, (train + test, length))
    return {"tokens": tokens, "targets": np.minimum((tokens == 1).sum(1), 3), "name": "toy",
            "split": ["train"] * train + ["test"] * test, **changes}


def read(path):
    """(metadata, {name: (shape, numbers)}) of a safetensors file, by the format's definition."""
    raw = path.read_bytes()
    start = 8 + struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:start])
    metadata, tensors = header.pop("__metadata__"), {}
    codes = {"U8": "B", "I8": "b", "U16": "H", "I16": "h", "I32": "i", "I64": "q"}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        code = codes[entry["dtype"]]
        count = (end - begin) // struct.calcsize("<" + code)
        tensors[name] = entry["shape"], struct.unpack(f"<{count}{code}",
                                                      raw[start + begin:start + end])
    return metadata, tensors


def targets_of(path):
    """{split: the targets of its examples by example}, without those that do not count."""
    metadata, tensors = read(path)
    (examples, columns), targets = tensors["targets"]
    lengths, split = tensors["lengths"][1], tensors["split"][1]
    names = json.loads(metadata["splits"])
    found = {name: [] for name in names}
    for i in range(examples):
        row = targets[i * columns:i * columns + lengths[i]]
        found[names[split[i]]].append([target for target in row if target != -1])
    return found


class Sines(torch.nn.Module):
    def input_term(self, length: int):
        return torch.sin(torch.arange(length)).unsqueeze(1).expand(length, 32)


class OwnData(Case):
    def induction(self, train=300):
        (self.folder / "induction.safetensors").write_bytes(induction(train))

    def save(self, file, **changes):
        pelab.save_task(self.folder / file, **toy(**changes))
        return self.folder / file

    def sha256(self, name):
        return hashlib.sha256((self.folder / name).read_bytes()).hexdigest()

    def dry_run(self, path):
        """The jobs of the sweep, which nobody runs."""
        result = self.ok(self.pelab_db("submit", path, "--dry-run", "--output", "json"))
        return json.loads(result.stdout)["jobs"]

    def checked(self, file):
        return json.loads(self.ok(self.pelab_db("check", file, "--output", "json")).stdout)

    def rows(self, view, leave_out, where="1", *parameters):
        """The rows of a view by columns, without those that are left out."""
        connection = sqlite3.connect(f"file:{self.db}?mode=ro", uri=True, timeout=10)
        connection.row_factory = sqlite3.Row
        try:
            found = connection.execute(
                f"SELECT * FROM {view} JOIN (SELECT job_id, pe AS of_pe, protocol AS of_protocol, "
                f"task AS of_task FROM v_jobs) USING (job_id) WHERE {where}", parameters).fetchall()
        finally:
            connection.close()
        return [{name: row[name] for name in row.keys() if name not in leave_out} for row in found]


class Trained(OwnData, TrainedCase):
    """Data with targets by position: two jobs that `pelab run` trained, on the splits test and
    long. Each test gets a copy of the database, the document and the file."""

    SWEEP = document("{name: own, file: data/induction.safetensors, test: [test, long]}") + """
analyses:
  - head_ablation
  - {name: head_ablation, method: mean}
  - {name: head_ablation, method: resample}
  - layer_ablation
  - {name: cumulative_ablation, steps: 8, orders: 2}
  - example_correctness
  - split_accuracy
"""
    SPLITS = {"test": "own:induction", "long": "own:induction(test=long)"}

    @classmethod
    def train(cls, maker):
        (maker.folder / "data").mkdir()
        (maker.folder / "data" / "induction.safetensors").write_bytes(induction())
        maker.ok(maker.run_sweep(maker.write("own.yaml", cls.SWEEP), *SLOTS))

    def setUp(self):
        super().setUp()
        (self.folder / "data").mkdir()
        self.data = self.folder / "data" / "induction.safetensors"
        self.data.write_bytes(induction())
        self.sweep = self.write("own.yaml", self.SWEEP)

    def job(self, split):
        """(number, spec, right test targets, test targets, test loss)."""
        (job, spec, *numbers), = self.query(
            "SELECT job_id, spec_json, test_correct, test_total, test_loss FROM v_jobs WHERE "
            "task = ?", self.SPLITS[split])
        return (job, json.loads(spec), *numbers)
