#!/usr/bin/env python3
"""Repeats small jobs from docs/reproducibility.md and docs/formats.md alone, and holds
pelab-trainer to what comes out (numpy).

    repeat.py --trainer build/release/bin/pelab-trainer

For each job below: the data set (its SHA-256), every parameter's initial value, and the losses and
counts of the epochs with dropout. The rate of these jobs is so small that no weight moves, so that
the epochs' figures are those of the initial model: they depend on the order of examples, the masks
of every step, and the loss. One job trains for real, on gradients by finite differences, for the
optimizer and the schedule. One replaces heads by those of other examples, for the donors.

Nothing here or in `repeated/` is shared with the other scripts of this folder, which were written
from the code's headers.
"""
import argparse
import json
import pathlib
import struct
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from preloaded import Preloaded  # noqa: E402

from repeated.initial_values import initial_values  # noqa: E402
from repeated.training import Repeat  # noqa: E402

# ---- Jobs

CLEAN = {"activation": "relu", "attention_bias": True, "dropout": 0.25,
         "dropout_sites": ["attention", "output", "ffn"], "final_norm": True,
         "key_padding": "masked", "kv_source": "self", "layer_norm_eps": 1e-5, "mask": "causal",
         "readout": "masked_mean"}
PUBLISHED = {**CLEAN, "mask": "none", "key_padding": "attended", "kv_source": "input",
             "readout": "mean", "final_norm": False}
STILL = {"beta1": 0.98, "beta2": 0.9, "epsilon": 1e-8, "lr": 1e-30, "schedule": "cosine",
         "warmup_fraction": 0.5, "weight_decay": 1e-5}
DISTANCE = {"name": "distance", "version": 1, "definition": "clean", "label_space": "exact",
            "length": 12, "max_distance": 5,
            "scored_classes": "all", "split": "disjoint", "vocabulary": 20}
PUBLISHED_DISTANCE = {"name": "distance", "version": 1, "definition": "published",
                      "label_space": "vocabulary", "length": 24, "max_segment": 5, "max_gap": 10,
                      "truncate": 20, "scored_classes": "nonzero", "split": "random",
                      "vocabulary": 30}
COUNTING = {"name": "counting", "version": 1, "definition": "clean", "label_space": "exact",
            "length": 10, "max_count": 6,
            "triggers": 4, "scored_classes": "all", "split": "disjoint", "vocabulary": 16}


def spec_of(task, model, train=None, pe=None, seed=3, data_seed=None, examples=(100, 40),
            sizes=(16, 20, 2, 2), batch=32, epochs=2):
    d, f, heads, layers = sizes
    return {"format": 1, "seed": seed, "model": {**model, "d_model": d, "d_ff": f, "heads": heads,
                                                 "layers": layers, "max_len": task["length"]},
            "pe": {"name": "nope", "version": 1, **(pe or {})},
            "task": {**task, "data_seed": seed if data_seed is None else data_seed,
                     "train_examples": examples[0], "test_examples": examples[1]},
            "train": {**STILL, "batch_size": batch, "epochs": epochs, **(train or {})}}


def still_jobs():
    """{name: spec} of jobs whose epochs are repeated."""
    every_site = {"dropout_sites": ["attention", "output", "ffn_inner", "ffn"]}
    held_out = {"split": "held_out_cells", "held_out_fraction": 0.3}
    return {
        "clean distance": spec_of(DISTANCE, {**CLEAN, **every_site}),
        "matched distance: last token": spec_of(DISTANCE, {**CLEAN, "readout": "last"},
                                                seed=2**53 - 1),
        "published distance": spec_of(PUBLISHED_DISTANCE, PUBLISHED),
        "padding that nobody reads": spec_of({**PUBLISHED_DISTANCE, "split": "disjoint"}, CLEAN,
                                             batch=80, examples=(200, 70)),
        "padding, last token": spec_of(PUBLISHED_DISTANCE, {**CLEAN, "readout": "last"}, batch=80,
                                       examples=(200, 70)),
        "held-out cells": spec_of({**DISTANCE, **held_out}, CLEAN, data_seed=8),
        "published held-out cells": spec_of({**PUBLISHED_DISTANCE, **held_out}, PUBLISHED,
                                            data_seed=9),
        "clean counting": spec_of(COUNTING, {**CLEAN, "dropout": 0.1}),
        "published counting": spec_of({**COUNTING, "definition": "published", "content_length": 8,
                                       "split": "random", "scored_classes": "nonzero",
                                       "label_space": "vocabulary"}, PUBLISHED),
    }


def value_jobs():
    """{name: spec} of encodings that have parameters: their initial values."""
    forms = [{"name": "absolute", "form": "learned", "init_std": 1.0},
             {"name": "random", "trainable": True, "init_std": 0.5},
             {"name": "random", "trainable": False, "init_std": 1.0},
             {"name": "relative", "form": "t5", "buckets": 8, "max_distance": 10, "init_std": 0.02},
             {"name": "relative", "form": "table", "init_std": 0.02},
             {"name": "shaw", "max_distance": 4, "values": True, "init_std": 0.02}]
    mla = {"name": "mla", "base": 10000.0, "latent": 6, "rotary": 4, "rotation": "rope"}
    forms += [{**mla, "rotary_query": "per_head", "latent_norm": True, "input_table": False},
              {**mla, "rotary_query": "shared", "latent_norm": False, "input_table": True}]
    return {" ".join(str(value) for value in pe.values()):
            spec_of(DISTANCE, {**CLEAN, "attention_bias": pe["name"] != "mla"}, pe=pe, epochs=1)
            for pe in forms}


def trained_job():
    return spec_of({**DISTANCE, "length": 8, "max_distance": 3, "vocabulary": 14},
                   {**CLEAN, "dropout_sites": ["output", "ffn_inner"]},
                   {"lr": 0.02, "epsilon": 1e-3, "weight_decay": 0.1, "beta1": 0.9, "beta2": 0.99,
                    "warmup_fraction": 0.4}, examples=(14, 8), sizes=(4, 5, 2, 1), batch=6)


# ---- Against the trainer

def read_safetensors(path):
    content = path.read_bytes()
    size = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:8 + size])
    header.pop("__metadata__", None)
    return {name: np.frombuffer(
        content[8 + size + entry["data_offsets"][0]:8 + size + entry["data_offsets"][1]],
        {"F32": "<f4", "I32": "<i4"}[entry["dtype"]]).reshape(entry["shape"])
            for name, entry in header.items()}


class Checks:
    def __init__(self, trainer):
        self.trainer, self.wrong, self.made = trainer, [], 0

    def equal(self, what, ours, theirs):
        self.made += 1
        if ours != theirs:
            self.wrong.append(f"{what}: repeated {ours}, the trainer {theirs}")

    def near(self, what, ours, theirs, allowed):
        self.made += 1
        if not abs(ours - theirs) <= allowed:
            self.wrong.append(f"{what}: repeated {ours!r}, the trainer {theirs!r}")

    def run(self, spec, analyses=()):
        """The trainer's events and its kept weights."""
        with tempfile.TemporaryDirectory() as folder:
            job = pathlib.Path(folder, "job.json")
            job.write_text(json.dumps({"job": "repeat", "spec": spec, "analyses": list(analyses)}))
            done = self.trainer.run(["pelab-trainer", "run", "--spec", job, "--workdir", folder])
            if done.returncode != 0:
                sys.exit(f"{done.args}\n{done.stdout}\n{done.stderr}")
            events = [json.loads(line) for line in done.stdout.splitlines()]
            return events, read_safetensors(pathlib.Path(folder, events[-1]["weights"]["file"]))

    def weights(self, name, ours, theirs):
        self.equal(f"{name}: names of parameters", sorted(ours), sorted(theirs))
        for tensor in sorted(ours.keys() & theirs.keys()):
            # The last bit of float32: another C library may round a logarithm or a cosine
            # otherwise.
            close = np.allclose(ours[tensor], theirs[tensor], rtol=1.2e-7, atol=1e-12)
            self.equal(f"{name}: {tensor}", True, bool(close))

    def still(self, name, spec):
        ours = Repeat(spec)
        events, weights = self.run(spec)
        self.equal(f"{name}: data_sha256", ours.data.sha256(), events[0]["data_sha256"])
        self.weights(name, ours.weights, weights)
        tested = ours.test()
        for event in (event for event in events if event["event"] == "epoch"):
            at = f"{name}: epoch {event['epoch']}"
            loss, correct, total = ours.epoch(event["epoch"])
            self.near(f"{at}: train_loss", loss, event["train_loss"], 3e-6 * loss)
            self.equal(f"{at}: train_correct, train_total", (correct, total),
                       (event["train_correct"], event["train_total"]))
            self.near(f"{at}: test_loss", tested[0], event["test_loss"], 3e-6 * tested[0])
            self.equal(f"{at}: test_correct, test_total", tested[1:],
                       (event["test_correct"], event["test_total"]))

    def trained(self, spec):
        ours = Repeat(spec)
        _, theirs = self.run(spec)
        moved = max(np.abs(theirs[name] - value).max() for name, value in ours.weights.items())
        self.equal("trained: some weight has moved by 0.01", True, bool(moved > 0.01))
        for name, value in ours.trained().items():
            self.near(f"trained: {name}", 0.0, float(np.abs(theirs[name] - value).max()), 2e-5)

    def resampled(self, spec):
        parameters = {"method": "resample", "target": "head", "hygiene": "clean", "data": "test",
                      "max_examples": 0}
        events, _ = self.run(spec,
                             [{"name": "head_ablation", "version": 2, "parameters": parameters}])
        matrix = next(event for event in events if event["event"] == "head_ablation")
        for (layer, head), (correct, nll) in Repeat(spec).resampled().items():
            self.equal(f"resampled: correct of head {layer}.{head}", correct,
                       matrix["correct"][layer][head])
            self.near(f"resampled: loss of head {layer}.{head}", nll, matrix["nll"][layer][head],
                      3e-6 * nll)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trainer", required=True, help="a pelab-trainer")
    checks = Checks(Preloaded(parser.parse_args().trainer))
    for name, spec in still_jobs().items():
        checks.still(name, spec)
    for name, spec in value_jobs().items():
        _, weights = checks.run(spec)
        checks.weights(name, initial_values(spec, spec["task"]["max_distance"]), weights)
    checks.trained(trained_job())
    checks.resampled(spec_of(DISTANCE, CLEAN, epochs=1, examples=(64, 50)))
    for line in checks.wrong:
        print(line)
    print(f"{checks.made} comparisons, {len(checks.wrong)} wrong")
    return 1 if checks.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
