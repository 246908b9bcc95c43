"""Shared parts of the tests that run pelab-trainer as a process: job documents that take about a
second, and functions to run and stop it. Every printed event is checked against its documented
members (docs/formats.md)."""

import atexit
import hashlib
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import tempfile
import unittest

from pelab_harness import trainer_environment
from preloaded import Preloaded

BIN = pathlib.Path(os.environ["PELAB_BIN"]).resolve()
TRAINER = BIN / "pelab-trainer"
SOURCE = pathlib.Path(__file__).resolve().parents[2]

COMMON = ["event", "job"]
EPOCH = ["epoch", "train_loss", "train_correct", "train_total", "test_loss", "test_correct",
         "test_total", "learning_rate", "seconds", "train_eval_correct", "train_eval_total"]
MEMBERS = {
    "hello": ["protocol", "trainer", "libtorch", "device", "device_name", "threads", "micro_batch",
              "packing", "start_epoch",
              "epochs", "parameters", "train_examples", "test_examples", "data_sha256"],
    "epoch": EPOCH,
    "checkpoint": ["epoch", "file", "sha256", "bytes"],
    "head_ablation": ["version", "parameters", "total", "intact_correct", "intact_nll", "chance",
                      "correct", "lost", "gained", "nll", "nll_standard_error", "seconds"],
    "analysis": ["name", "version", "parameters", "file", "seconds"],
    "done": ["weights", "wall_seconds"],
    "error": ["kind", "message"],
}
SOMETIMES = {"hello": ["commit", "dirty", "image", "kernels", "members", "step_seconds"]}
TIMES = {"seconds", "wall_seconds"}


def document(pe="rope", model=None, task=None, train=None, job="j", **analysis):
    """A job that takes about a second: the clean protocol with T 16, width 16, and 2 layers of 2
    heads."""
    pes = {"rope": {"base": 10000, "input_sinusoid": False}, "nope": {},
           "random": {"trainable": False, "init_std": 1},
           "mla": {"base": 10000, "input_table": False, "latent": 8, "latent_norm": True,
                   "rotary": 4, "rotary_query": "per_head", "rotation": "rope"}}
    spec = {
        "format": 1, "seed": 3, "pe": {"name": pe, "version": 1, **pes[pe]},
        "model": {"activation": "relu", "attention_bias": True, "d_ff": 32, "d_model": 16,
                  "dropout": 0.1, "dropout_sites": ["attention", "output", "ffn"],
                  "final_norm": True, "heads": 2, "key_padding": "masked", "kv_source": "self",
                  "layer_norm_eps": 1e-5, "layers": 2, "mask": "causal", "max_len": 16,
                  "readout": "masked_mean", **(model or {})},
        "task": {"name": "distance", "version": 1, "definition": "clean", "data_seed": 3,
                 "label_space": "exact", "length": 16, "max_distance": 8, "scored_classes": "all",
                 "split": "disjoint", "vocabulary": 40,
                 "train_examples": 256, "test_examples": 64, **(task or {})},
        "train": {"batch_size": 64, "beta1": 0.9, "beta2": 0.98, "epochs": 3, "epsilon": 1e-8,
                  "lr": 1e-3, "schedule": "cosine", "warmup_fraction": 0.06, "weight_decay": 1e-5,
                  **(train or {})},
    }
    return {"job": job, "spec": spec, "analyses": [head_ablation(**analysis)]}


def head_ablation(**parameters):
    return {"name": "head_ablation", "version": 2,
            "parameters": {"method": "zero", "target": "head", "hygiene": "clean", "data": "test",
                           "max_examples": 0, **parameters}}


def layer_ablation(**parameters):
    return {"name": "layer_ablation", "version": 1,
            "parameters": {"method": "zero", "data": "test", "max_examples": 0, **parameters}}


def cumulative_ablation(**parameters):
    return {"name": "cumulative_ablation", "version": 1,
            "parameters": {"method": "zero", "steps": 3, "orders": 2, "max_examples": 0,
                           **parameters}}


def long_document():
    """A job with epochs as short as in the other documents, but with 5,000 of them. It runs until
    it is stopped."""
    return document(train={"epochs": 5000})


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def safetensors(path):
    """Returns (metadata, {name: (dtype, shape, values)}), read by the format's own definition."""
    raw = path.read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    header, data = json.loads(raw[8:8 + size]), raw[8 + size:]
    metadata = header.pop("__metadata__", {})
    out = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        code = {"F32": "f", "I32": "i"}[entry["dtype"]]
        out[name] = (entry["dtype"], entry["shape"],
                     struct.unpack(f"<{(end - begin) // 4}{code}", data[begin:end]))
    return metadata, out


class TrainerCase(unittest.TestCase):
    _plain = None  # (the events of the run of document(), its work directory)

    @classmethod
    def setUpClass(cls):
        os.environ.update(trainer_environment())

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="pelab-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    @staticmethod
    def preloaded():
        return Preloaded.of(TRAINER)

    def plain_run(self, workdir="w"):
        """The events of the run of document(), with a checkpoint after every epoch. It is run once
        for all tests; its work directory is copied to `workdir`."""
        if TrainerCase._plain is None:
            kept = pathlib.Path(tempfile.mkdtemp(prefix="pelab-"))
            atexit.register(shutil.rmtree, kept, ignore_errors=True)
            events = self.run_job(document(), workdir, "--checkpoint-seconds", 0)
            shutil.copytree(self.folder / workdir, kept, dirs_exist_ok=True)
            TrainerCase._plain = events, kept
        events, kept = TrainerCase._plain
        shutil.copytree(kept, self.folder / workdir, dirs_exist_ok=True)
        return events

    def write(self, job, name="job.json"):
        path = self.folder / name
        path.write_text(job if isinstance(job, str) else json.dumps(job))
        return path

    def command(self, job, workdir="w", *options):
        return [TRAINER, "run", "--spec", self.write(job, f"{workdir}.json"),
                "--workdir", self.folder / workdir, *map(str, options)]

    def run_job(self, job, workdir="w", *options, status=0, **kwargs):
        return self.run_command(self.command(job, workdir, *options), status, **kwargs)

    def run_command(self, command, status=0, **kwargs):
        """Runs the trainer as pelab-worker does; with keywords of subprocess.run, as a shell
        does."""
        if kwargs:
            result = subprocess.run([*map(str, command)], capture_output=True, text=True,
                                    timeout=120, stdin=subprocess.DEVNULL, **kwargs)
        else:
            result = self.preloaded().run(command)
        self.assertEqual(result.returncode, status, result.stdout + result.stderr)
        self.stderr = result.stderr
        return self.events(result.stdout)

    def stop_command(self, command, epochs, number=signal.SIGTERM):
        """Runs the trainer as pelab-worker does until it has reported `epochs` epochs, sends the
        signal, and returns all its events. The trainer must exit as stopped (status 75)."""
        lines = []
        reading, writing = os.pipe()
        with tempfile.TemporaryFile("w+") as errors, open(reading) as told:
            with open(writing, "w") as output:
                process = self.preloaded().start(command, output, errors)
            # To the end: several lines may come at once, and some are behind the one that counts.
            for line in told:
                lines.append(line)
                if '"event":"epoch"' in line:
                    epochs -= 1
                    if epochs == 0:
                        process.send_signal(number)
            process.wait(60)
            errors.seek(0)
            self.stderr = errors.read()
        self.assertEqual(process.returncode, 75, self.stderr)
        return self.events("".join(lines))

    def events(self, text):
        """Parses the lines. Every line must be a documented event with exactly its members."""
        self.assertTrue(not text or text.endswith("\n"))
        events = []
        for line in text.splitlines():
            self.assertLessEqual(len(line.encode()), 1 << 20)
            event = json.loads(line, parse_constant=lambda name: self.fail(f"{name} in {line}"))
            self.assertEqual(list(event), COMMON + self.members(event), line)
            events.append(event)
        return events

    @staticmethod
    def members(event):
        """The members of an event. A `done` without training has no weights."""
        members = MEMBERS[event["event"]]
        members = members + [name for name in SOMETIMES.get(event["event"], []) if name in event]
        return members if event["event"] != "done" or "weights" in event else ["wall_seconds"]

    def one_error(self, events, kind):
        self.assertEqual([event["event"] for event in events if event["event"] == "error"],
                         ["error"], self.stderr)
        self.assertEqual(events[-1]["event"], "error")
        self.assertEqual(events[-1]["kind"], kind, events[-1]["message"])
        message = events[-1]["message"]
        self.assertNotIn("\n", message)
        self.assertNotRegex(message, r"0x[0-9a-f]{6}|frame #|terminate called|enforce fail|\.cpp")
        return message


def facts(events, *names):
    """The parts that must repeat bit for bit: the events without times."""
    return [{key: value for key, value in event.items() if key not in TIMES}
            for event in events if event["event"] in names]


RESULTS = ("epoch", "head_ablation", "done")
