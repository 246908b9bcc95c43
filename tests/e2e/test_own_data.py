"""Data of one's own as files, from Python to results, on the real binaries. Run by a Python with
numpy and PyTorch, which trains nothing here."""

import csv
import hashlib
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from exported_models import LOSS, module_of  # noqa: E402
import browser  # noqa: E402
from pelab_harness import BIN, Case, SOURCE, trainer_environment, wait_until  # noqa: E402
from report_case import data_of  # noqa: E402
from trained_case import TrainedCase  # noqa: E402
import numpy as np  # noqa: E402
import pelab  # noqa: E402
from pelab import _npz, _task  # noqa: E402
import torch  # noqa: E402

EXAMPLE = SOURCE / "client" / "python" / "examples" / "own_task.py"
TRAINER = BIN / "pelab-trainer"
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


def induction(made=[]):
    """The file that the example writes, made once for all tests."""
    if not made:
        with tempfile.TemporaryDirectory(prefix="pelab-") as folder:
            said = subprocess.run([sys.executable, "-B", EXAMPLE, "--train", "300"], cwd=folder,
                                  check=True, capture_output=True, text=True, timeout=60).stdout
            assert said == "wrote induction.safetensors: 450 examples\n", said
            made.append(pathlib.Path(folder, "induction.safetensors").read_bytes())
    return made[0]


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
    def induction(self):
        (self.folder / "induction.safetensors").write_bytes(induction())

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


class Same(OwnData):
    """The tasks that pelab brings, written as files, give the same numbers: of every epoch and of
    every ablated head."""

    TASKS = """
  - {name: distance, length: 24, vocabulary: 40, train_examples: 160, test_examples: 80}
  - {name: counting, length: 24, vocabulary: 40, train_examples: 160, test_examples: 80,
     triggers: 6}"""
    PES = "[rope, nope, mla]"

    def write_data(self, protocol):
        """Writes the protocol's data sets, and returns the tasks that name them."""
        items = []
        for task, spec in self.query("SELECT task, spec_json FROM v_jobs WHERE protocol = ? AND "
                                     "pe = 'rope' ORDER BY task", protocol):
            file = f"{protocol}_{task}.safetensors"
            spec = self.write(f"{protocol}_{task}.json", spec)
            subprocess.run([TRAINER, "dataset", "--spec", spec, "--out", self.folder / file],
                           check=True, timeout=60)
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
                             + ["head_ablation"] * 3 + ["layer_ablation"])
            for row in analyses:
                self.assertEqual((row["total"], row["intact_correct"]), (total, correct))
            results = {row["name"]: json.loads(row["result_json"]) for row in analyses
                       if row["result_json"]}
            self.check_correctness(results["example_correctness"]["right"], split, correct)
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
        result = self.ok(subprocess.run(self.command(*command), capture_output=True, text=True,
                                        timeout=120))
        return self.events(result.stdout.splitlines())

    def test_killed_it_goes_on_with_the_same_numbers(self):
        spec = {**self.spec, "train": {**self.spec["train"], "epochs": 5}}
        whole = self.run_trainer("whole", [spec])["0"]
        lines = []
        command = self.command("killed", [spec], "--checkpoint-seconds", "0")
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout:
                lines.append(line)
                if '"event":"checkpoint"' in line and '"epoch":2' in line:
                    process.send_signal(signal.SIGKILL)
                    break
        self.assertEqual(process.returncode, -signal.SIGKILL)
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


class Identity(OwnData):
    def test_the_same_numbers_give_the_same_bytes(self):
        arguments = toy()
        self.save("numpy.safetensors")
        for name, convert in (("list", lambda array: array.tolist()), ("torch", torch.tensor),
                              ("int16", lambda array: array.astype(np.int16)),
                              ("order", np.asfortranarray)):
            file = self.save(f"{name}.safetensors", tokens=convert(arguments["tokens"]),
                             targets=convert(arguments["targets"]))
            self.assertEqual(file.read_bytes(),
                             (self.folder / "numpy.safetensors").read_bytes(), name)

    def keys(self, path, file):
        sweep = self.folder / path
        sweep.parent.mkdir(exist_ok=True)
        sweep.write_text(document(f"{{name: own, file: {file}}}"))
        return [job["key"] for job in self.dry_run(sweep)]

    def test_keys(self):
        first = self.save("toy.safetensors")
        (self.folder / "elsewhere").mkdir()
        shutil.copy(first, self.folder / "elsewhere" / "renamed.safetensors")
        keys = self.keys("own.yaml", "toy.safetensors")
        self.assertEqual(len(keys), 1)
        for path, file in (("own.yaml", "elsewhere/renamed.safetensors"),
                           ("elsewhere/own.yaml", "renamed.safetensors"),
                           ("sub/own.yaml", "../toy.safetensors"),
                           ("own.yaml", self.folder / "elsewhere" / "renamed.safetensors")):
            self.assertEqual(self.keys(path, file), keys, file)
        tokens = toy()["tokens"]
        tokens[-1, -1] = (tokens[-1, -1] + 1) % 6
        self.save("changed.safetensors", tokens=tokens)
        self.assertNotEqual(self.keys("own.yaml", "changed.safetensors"), keys)
        self.assertFalse(self.db.exists())

    def test_npz(self):
        """Arrays of numpy.savez train, of whatever integers, and give the same numbers."""
        arguments = toy()
        for name, dtype in (("wide", np.int64), ("narrow", np.int16)):
            np.savez(self.folder / f"{name}.npz", name=name, split=arguments["split"],
                     tokens=arguments["tokens"].astype(dtype),
                     targets=arguments["targets"].astype(dtype))
        self.save("saved.safetensors", name="saved")
        tasks = ", ".join(f"{{name: own, file: {file}}}" for file in
                          ("wide.npz", "narrow.npz", "saved.safetensors"))
        self.ok(self.run_sweep(self.write("own.yaml", document(f"[{tasks}]")), *SLOTS))
        found = {}
        for row in self.rows("v_curves", {"job_id", "seconds"}):
            found.setdefault(row.pop("of_task"), []).append(row)
        self.assertEqual(sorted(found), ["own:narrow", "own:saved", "own:wide"])
        self.assertEqual(found["own:narrow"], found["own:saved"])
        self.assertEqual(found["own:wide"], found["own:saved"])


class Python(OwnData):
    def test_a_file_is_read_and_written_again(self):
        for changes in ({}, {"class_names": ["none", "one", "two", "more"], "classes": 4},
                        {"lengths": np.arange(192) % 10 + 1, "words": {1: "open"},
                         "repeats_allowed": True},
                        {"chance": 0.25, "help": "a toy", "vocabulary": 30}):
            self.save("toy.safetensors", **changes)
            file = self.folder / "toy.safetensors"
            pelab.save_task(self.folder / "again.safetensors", **pelab.load_task(file))
            self.assertEqual((self.folder / "again.safetensors").read_bytes(), file.read_bytes())

    def test_what_is_wrong_is_refused_before_anything_is_sent(self):
        self.save("toy.safetensors")
        arrays = toy()
        np.savez(self.folder / "wrong.npz", tokens=arrays["tokens"], targets=arrays["targets"],
                 split=np.array(arrays["split"]), classes=1)
        self.server()
        with pelab.connect(self.socket) as coordinator:
            with self.assertRaisesRegex(pelab.InvalidInput, "wrong.npz: targets.*allowed: 0 to 0"):
                coordinator.submit(self.write("own.yaml", document("{name: own, file: x.npz}")),
                                   own_files={"x.npz": self.folder / "wrong.npz"})
            with self.assertRaisesRegex(pelab.InvalidInput, "own_files="):
                coordinator.submit(self.write("own.yaml", document(TOY)))
        self.assertEqual(self.query("SELECT 1 FROM v_sweeps"), [])

    def test_python_submits_data(self):
        self.save("toy.safetensors")
        np.savez(self.folder / "mine.npz", name="mine", **{
            name: toy()[name] for name in ("tokens", "targets", "split")})
        self.server()
        self.worker("w", 1)
        sweep = document("[{name: own, file: some/where.safetensors}, {name: own, file: b}]")
        files = {"some/where.safetensors": self.folder / "toy.safetensors",
                 "b": self.folder / "mine.npz"}
        with pelab.connect(self.socket) as coordinator:
            for wrong, kind, said in (
                    ({}, pelab.InvalidInput, "did not come with this document"),
                    ({**files, "b": self.folder / "none"}, pelab.NotFound, "cannot read"),
                    ({**files, "b": EXAMPLE}, pelab.InvalidInput, "is no file of data")):
                with self.assertRaisesRegex(kind, said):
                    coordinator.submit(sweep, own_files=wrong)
            self.assertEqual(self.states(), {})
            made = coordinator.submit(sweep, own_files=files)
            coordinator.wait(made.sweep_id)
            found = coordinator.results("own")["task"].tolist()
        self.assertEqual(sorted(found), ["own:mine", "own:toy"])
        self.assertEqual(self.states(), {"succeeded": 2})

    def files(self):
        """Files of many kinds, which both readers read."""
        self.induction()
        yield "induction.safetensors"
        targets = np.where(toy()["tokens"] == 1, -1, toy()["tokens"])
        letters = "é" * 200
        lengths = np.arange(192) % 10 + 1
        three = ["train"] * 128 + ["zebra"] * 32 + ["alpha"] * 32
        repeated = toy()["tokens"].copy()
        repeated[-5:] = repeated[:5]
        for name, changes in (
                ("sequence", {}), ("position", {"targets": targets}),
                ("padded", {"lengths": lengths, "targets": targets, "repeats_allowed": True}),
                ("splits", {"split": three}), ("chance", {"chance": 1 / 3, "split": three}),
                ("repeats", {"tokens": repeated, "repeats_allowed": True}),
                ("labels", {"first_label": -2, "targets": toy()["targets"] - 1, "classes": 9}),
                ("wide", {"tokens": toy()["tokens"] * 60, "vocabulary": 1000}),
                ("words", {"words": {1: "one", 2: "z\"w\\ei"}, "help": "a" + letters,
                           "class_names": ["none", "é", "two", "more"]})):
            self.save(f"{name}.safetensors", name=name, **changes)
            yield f"{name}.safetensors"
        arrays = {name: np.array(toy()[name]) for name in ("tokens", "targets", "split")}
        for name, changes in (
                ("plain", {}), ("compressed", {"name": "squeezed", "help": letters}),
                ("signed", {"targets": targets.astype(np.int8)}),
                ("bytes", {"split": arrays["split"].astype("S")}),
                ("first", {"split": arrays["split"][::-1]}),
                ("flags", {"targets": toy()["targets"] > 1, "chance": 0.25, "classes": 3}),
                ("numbered", {"split": (arrays["split"] == "test").astype(np.int32),
                              "splits": np.array(["train", "later"]), "vocabulary": 20,
                              "lengths": lengths, "repeats": "allowed"})):
            save = np.savez_compressed if name == "compressed" else np.savez
            save(self.folder / f"{name}.npz", **{**arrays, **changes})
            yield f"{name}.npz"

    def test_both_readers_find_the_same(self):
        for file in self.files():
            with self.subTest(file=file):
                found = self.checked(file)
                self.assertIsInstance(found.pop("warnings"), list)
                for split in found["splits"]:
                    for name in ("shortest", "longest", "labels", "most_frequent",
                                 "unknown_tokens", "unknown_labels"):
                        split.pop(name)
                data = (self.folder / file).read_bytes()
                data = _npz.from_npz(data, file) if file.endswith(".npz") else data
                self.assertEqual((found.pop("sha256"), found.pop("bytes")),
                                 (hashlib.sha256(data).hexdigest(), len(data)))
                self.assertEqual(_task.declared(data, file), found)
                self.assertLessEqual(len(found.get("help", "").encode()), 300)
                sweep = self.write("own.yaml", document(
                    f"{{name: own, file: {file}, test: {found['splits'][1]['name']}}}"))
                task = self.dry_run(sweep)[0]["spec"]["task"]
                for name in ("length", "vocabulary", "classes", "first_label", "targets", "padded"):
                    self.assertEqual(task[name], found[name], name)
                self.assertEqual(task["chance"], found["splits"][1]["chance"])


class Wrong(OwnData):
    def refused(self, text, said, *more):
        """Submits a document that is wrong. `said` is what stands after the file's name."""
        path = self.write("own.yaml", text)
        for command in (self.pelab_db("submit", path, "--dry-run"), self.run_sweep(path)):
            self.assertEqual(command.returncode, 2, command.stdout + command.stderr)
            self.assertIn(f"own.yaml:{said}", command.stderr)
            for words in more:
                self.assertIn(words, command.stderr)
            for words in ("Traceback", "terminate", "what()"):
                self.assertNotIn(words, command.stderr)
        self.assertFalse(self.db.exists(), "nothing is begun for a wrong document")

    def test_documents(self):
        self.save("toy.safetensors")
        self.save("later.safetensors", split=["train"] * 128 + ["later"] * 64)
        file = "{name: own, file: toy.safetensors"
        for task, said, *more in (
                ("{name: own, file: none.safetensors}", "5:25: cannot open"),
                ("{name: own, file: .}", "5:25: ", "is a directory"),
                ("{name: own, file: [a, b]}", "5:25: task.file must be the path of a file"),
                ("own", "5:7: own data needs a file", "write {name: own, file:"),
                ("{name: own}", "5:7: own data needs a file"),
                (file + ", test: long}", "5:48: task.test must be one of test", '"long"'),
                (file + ", test: train}", "5:48: task.test must be one of test", '"train"'),
                (file + ", test: []}", "5:48: task.test is an empty list"),
                (file + ", length: 5}", "5:42: task.length cannot be set", "allowed here: file, "
                 "label_space, scored_classes, test"),
                (file + ", data_seed: 5}", "5:42: task.data_seed is for data that pelab generates"),
                (file + ", label_space: words}", "5:55: task.label_space must be one of exact"),
                (file + ", train_examples: 5}", "5:42: task.train_examples cannot be set"),
                (file + ", tset: test}", '5:42: unknown key of own data "tset"',
                 "did you mean test?"),
                (file + ", strength: 2}", '5:42: unknown key of own data "strength"',
                 "known: file, label_space, scored_classes, test"),
                ("{name: own, file: later.safetensors}", "5:7: ", "has no split named test",
                 "test: later")):
            with self.subTest(task=task):
                self.refused(document(task), said, *more)
        text = document(TOY)
        self.refused(text.replace("max_len: 32", "max_len: 8"), "5:7: task.length is 10",
                     "at most model.max_len (8)")
        result = self.run_sweep(self.write("own.yaml", text), "--set", "task.length=5")
        self.assertEqual(result.returncode, 2)
        self.assertIn("task.length cannot be set for task: it is what the file holds",
                      result.stderr)
        self.assertFalse(self.db.exists())

    def test_files(self):
        good = toy()
        arrays = {name: np.array(good[name]) for name in ("tokens", "targets")}
        arrays["split"] = np.array(good["split"])
        tokens = good["tokens"].copy()
        tokens[-1] = tokens[0]
        for name, changes, said in (
                ("floats", {"tokens": arrays["tokens"] / 1}, "tokens has the type F64; allowed: "
                 "integers"),
                ("repeats", {"tokens": tokens}, "row 191 of the file, of test, has the "
                 "tokens of row 0, of train"),
                ("negative", {"tokens": arrays["tokens"] - 1}, "is -1; allowed: 0 to"),
                ("shape", {"targets": arrays["targets"][1:]}, "targets has the shape (191); "
                 "allowed: (192), a target for each example"),
                ("alone", {"split": np.array(["train"] * 192)}, "it has 2 to 32 names"),
                ("trian", {"split": np.array(["trian"] * 100 + ["test"] * 92)}, "the splits are "
                 "trian, test; allowed: train and at least one more; did you mean train with "
                 "trian?"),
                ("classes", {"classes": 2}, "is 2; allowed: 0 to 1 (metadata classes)"),
                ("chance", {"chance": 1.5}, "chance must be a number from 0 to 1"),
                ("slip", {"vocabulery": 20}, "did you mean vocabulary?"),
                ("name", {"name": "My Data"}, "a lower-case letter, then up to 39"),
                ("complex", {"tokens": arrays["tokens"] * 1j}, "allowed: integers and texts")):
            with self.subTest(file=name):
                np.savez(self.folder / f"{name}.npz", **{**arrays, **changes})
                check = self.pelab_db("check", f"{name}.npz")
                self.assertEqual(check.returncode, 2, check.stdout)
                self.assertIn(said, check.stderr)
                self.refused(document(f"{{name: own, file: {name}.npz}}"), "5:25: ", said)

    def test_other_kinds_of_files(self):
        pelab.save_encoding(Sines(), self.folder / "sines.pt", name="sines")
        self.save("toy.safetensors")
        good = (self.folder / "toy.safetensors").read_bytes()
        self.write("text.safetensors", "tokens\n1 2 3\n")
        (self.folder / "cut.safetensors").write_bytes(good[:-1])
        (self.folder / "empty.safetensors").write_bytes(b"")
        (self.folder / "cut.npz").write_bytes(b"PK\3\4" + good)
        np.save(self.folder / "one.npy", toy()["tokens"])
        for file, said in (("sines.pt", "an encoding stands under pe"),
                           ("text.safetensors", "this is no safetensors file"),
                           ("cut.safetensors", "this is no safetensors file"),
                           ("empty.safetensors", "this is no safetensors file"),
                           ("cut.npz", "cut.npz"),
                           ("one.npy", "this is a single NumPy array; numpy.savez")):
            with self.subTest(file=file):
                self.refused(document(f"{{name: own, file: {file}}}"), "5:25: ", said)
        self.refused(document(TOY, pes="{name: own, file: toy.safetensors}"), "4:23: ")

    def test_save_task_says_what_is_wrong(self):
        tokens = toy()["tokens"].copy()
        tokens[-1] = tokens[0]
        ragged = [[1] * 10] * 191 + [[1] * 9]
        negative = toy()["tokens"].copy()
        negative[0, 8:] = -1
        positions = np.full((192, 10), -1)
        for changes, said in (
                ({"tokens": toy()["tokens"] / 2}, "tokens has the type float64; allowed: integers"),
                ({"tokens": toy()["tokens"][0]}, r"allowed: \(N, T\), a row for each example"),
                ({"tokens": tokens}, "1 of 64 examples of test are in train, too .row 191 of the "
                 "file"),
                ({"tokens": ragged}, "the rows of tokens have different lengths"),
                ({"tokens": negative}, r"tokens\[0, 8\] is -1; allowed: 0 to "),
                ({"tokens": toy()["tokens"].astype(np.uint64) + 2**63}, "less than 2.63"),
                ({"vocabulary": 2}, r"; allowed: 0 to 1 \(metadata vocabulary\)"),
                ({"classes": 1}, r"targets\[\d+\] is \d; allowed: 0 to 0 \(metadata classes\)"),
                ({"first_label": 1}, r"targets\[\d+\] is 0; allowed: 1 to "),
                ({"targets": np.where(np.arange(192) == 7, -1, toy()["targets"])},
                 r"targets\[7\] is -1; allowed: 0 to "),
                ({"chance": 33.3}, "chance must be a number from 0 to 1"),
                ({"class_names": ["one"]}, "class_names must be a JSON list of"),
                ({"class_names": "one"}, "class_names is 'one'; allowed: a list of texts"),
                ({"words": ["a"]}, "words is .'a'.; allowed: a mapping"),
                ({"split": None}, "split is None; allowed: a name for each example"),
                ({"split": np.arange(192) < 128}, "split has (np.)?True"),
                ({"split": ["train"] * 3}, "split has 3 names; allowed: 192"),
                ({"split": ["train"] * 192}, "allowed: train and at least one more"),
                ({"split": ["train"] * 128 + ["My Test"] * 64}, "the split 'My Test' must be a "
                 "lower-case letter"),
                ({"targets": toy()["targets"][1:]}, r"targets has the shape \(191,\)"),
                ({"targets": positions}, "no position of the split train has a target"),
                ({"name": "My Data"}, "the name 'My Data' must be a lower-case letter"),
                ({"lengths": np.zeros(192, int)}, r"lengths\[0\] is 0; allowed: 1 to 10"),
                ({"lengths": np.full(192, 11)}, r"lengths\[0\] is 11; allowed: 1 to 10")):
            with self.subTest(said=said), self.assertRaisesRegex(pelab.InvalidInput, said):
                self.save("toy.safetensors", **changes)
        with self.assertRaisesRegex(pelab.InvalidInput, "such as mine.safetensors"):
            self.save("toy.npz")
        with self.assertRaisesRegex(pelab.NotFound, "cannot write .*No such file"):
            self.save("none/toy.safetensors")
        self.assertEqual(list(self.folder.iterdir()), [])


class Faults(OwnData):
    def epochs(self):
        return self.query("SELECT count(*) FROM v_curves")[0][0]

    def test_killed_in_the_middle_it_gives_the_same(self):
        """With an encoding of one's own as well, so that each job needs two files."""
        self.induction()
        self.save("toy.safetensors")
        pelab.save_encoding(Sines(), self.folder / "sines.pt", name="sines")
        text = document(f"[{INDUCTION}, {TOY}]", "{name: own, file: sines.pt}", "[0, 1]", epochs=6)
        self.ok(self.run_sweep(self.write("own.yaml", text), *SLOTS))
        undisturbed = self.results()
        self.db = self.folder / "killed.db"
        for round_number in range(3):
            programs = [self.server(), self.worker("a", 1), self.worker("b", 1)]
            self.ok(self.pelab("submit", self.folder / "own.yaml"))
            if round_number < 2:
                seen = self.epochs()
                wait_until(lambda: self.epochs() > seen + 3, 60, "some epochs")
                for process in programs:
                    process.kill()
                    process.wait()
        self.wait_finished(4)
        self.assertGreater(len(self.query("SELECT 1 FROM v_attempts")), 4, "nothing was killed")
        self.assertEqual(self.results(), undisturbed)
        self.assertEqual(self.query("SELECT count(DISTINCT worker) FROM v_attempts"), [(2,)])
        self.ok(self.pelab_db("db", "check"))

    def test_a_file_that_the_coordinator_lost_is_sent_again(self):
        self.save("toy.safetensors")
        self.server()
        self.ok(self.pelab("submit", self.write("own.yaml", document(TOY))))
        sha256 = self.sha256("toy.safetensors")
        self.folder.joinpath("pelab.db.artifacts", sha256[:2], sha256).unlink()
        self.worker("w", 1)
        wait_until(lambda: self.states() == {"failed": 1}, 120, "the job to fail")
        (error,), = self.query("SELECT error FROM v_jobs")
        self.assertIn("submit the sweep again", error)
        self.ok(self.pelab("submit", "own.yaml"))
        self.ok(self.pelab("retry", "own"))
        self.wait_finished(1)

    def old_trainer(self):
        """A trainer of before, which has no task own."""
        told = json.loads(subprocess.run([TRAINER, "capabilities"], check=True,
                                         capture_output=True, timeout=60).stdout)
        told["tasks"] = [task for task in told["tasks"] if task["name"] != "own"]
        self.write("capabilities.json", json.dumps(told) + "\n")
        path = self.write("old-trainer", f"""#!/bin/sh
if [ "$1" = capabilities ]; then exec cat {self.folder}/capabilities.json; fi
exec {TRAINER} "$@"
""")
        path.chmod(0o755)
        return path

    def test_a_worker_of_before_is_not_given_them(self):
        self.save("toy.safetensors")
        self.server()
        self.worker("old", 1, "--trainer", self.old_trainer())
        brought = "{name: counting, length: 12, vocabulary: 40, triggers: 6, train_examples: 64, "
        text = document(f"[{brought}test_examples: 32}}, {TOY}]")
        self.ok(self.pelab("submit", self.write("own.yaml", text)))
        wait_until(lambda: self.states() == {"queued": 1, "succeeded": 1}, 60,
                   "the job of counting alone")
        self.assertRegex(self.ok(self.pelab("status", "own")).stdout, "its trainer has no task own")
        # Data is no code: a worker that takes no own encodings takes it.
        self.worker("new", 1, "--own-encodings", "off")
        self.wait_finished(2)
        self.ok(self.pelab("extend", "own", "--seed", "1"))
        self.wait_finished(4)


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
        self.assertEqual(sorted(job["key"] for job in self.dry_run(elsewhere / "sweep.yaml")), keys)
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


class Claims(OwnData):
    def test_claims_about_own_data_are_settled(self):
        self.save("toy.safetensors")
        self.write("own.yaml", document(TOY))
        sheet = self.write("claims.yaml", """
name: own-claims
sweep: own.yaml
claims:
  - id: learns-something
    where: task=own:toy
    between: {metric: test_accuracy, cell: pe=rope, low: 0, high: 1.01}
  - id: trains
    where: task.data=toy
    between: {metric: train_accuracy, cell: pe=rope, low: 0, high: 1.01}
""")
        settled = self.ok(self.pelab_db("settle", sheet, "--budget", "30m", "--slots", "4", *SLOTS,
                                        timeout=240))
        self.assertIn("2 hold", settled.stdout)
        (stored,), = self.query("SELECT sweep_document FROM sheets")
        self.assertIn(self.sha256("toy.safetensors"), stored)
        self.assertIn("2 hold", self.ok(self.pelab_db("claims", "show", sheet)).stdout)
        self.save("toy.safetensors", test=48)
        other = self.pelab_db("claims", "show", sheet)
        self.assertNotIn("2 hold", other.stdout, "with another file it is another sheet")
        self.ok(self.pelab_db("db", "check"))


if __name__ == "__main__":
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    unittest.main()
