#!/usr/bin/env python3
"""Repeats small jobs from docs/reproducibility.md and docs/formats.md alone, and holds pelab-trainer to what comes out (numpy).

    repeat.py --trainer build/release/bin/pelab-trainer

For each job below: the data set (its SHA-256), every parameter's initial value, and the losses and counts of the epochs with dropout.
The rate of these jobs is so small that no weight moves, so that the epochs' figures are those of the initial model: they depend on
the order of examples, the masks of every step, and the loss. One job trains for real, on gradients by finite differences, for
the optimiser and the schedule. One replaces heads by those of other examples, for the donors.

Nothing here is shared with the other scripts of this folder, which were written from the code's headers.
"""
import argparse
import hashlib
import json
import math
import pathlib
import struct
import subprocess
import sys
import tempfile

import numpy as np

MASK = (1 << 64) - 1


# ---- The generator

def mix(v):
    v = (v ^ v >> 30) * 0xBF58476D1CE4E5B9 & MASK
    v = (v ^ v >> 27) * 0x94D049BB133111EB & MASK
    return v ^ v >> 31


def fnv(text):
    h = 0xCBF29CE484222325
    for byte in text.encode():
        h = (h ^ byte) * 0x100000001B3 & MASK
    return h


class Walk:
    def __init__(self, seed, purpose, stream=0):
        self.key, self.stream, self.at = mix(mix(seed + 0x9E3779B97F4A7C15 & MASK) ^ fnv(purpose)), stream, 0

    def bits_at(self, index):
        low = 0xFFFFFFFF
        i = index // 2
        c, k = [i & low, i >> 32, self.stream & low, self.stream >> 32], [self.key & low, self.key >> 32]
        for _ in range(10):
            p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
            c = [p1 >> 32 ^ c[1] ^ k[0], p1 & low, p0 >> 32 ^ c[3] ^ k[1], p0 & low]
            k = [k[0] + 0x9E3779B9 & low, k[1] + 0xBB67AE85 & low]
        return c[2] << 32 | c[3] if index % 2 else c[0] << 32 | c[1]

    def bits(self):
        self.at += 1
        return self.bits_at(self.at - 1)

    def uniform(self):
        return (self.bits() >> 11) * 2.0 ** -53

    def normal(self):
        u1 = self.uniform()
        return math.sqrt(-2 * math.log(1 - u1)) * math.cos(2 * math.pi * self.uniform())

    def below(self, n):
        while True:
            p = (self.bits() >> 32) * n
            if p % 2 ** 32 >= 2 ** 32 % n:
                return p >> 32

    def shuffle(self, values):
        for i in range(len(values), 1, -1):
            j = self.below(i)
            values[i - 1], values[j] = values[j], values[i - 1]
        return values

    def choose(self, values, count):
        """Leaves the chosen first in `values` and gives them."""
        for i in range(count):
            j = i + self.below(len(values) - i)
            values[i], values[j] = values[j], values[i]
        return values[:count]


# ---- Data sets

class Data:
    """tokens (N, T), lengths, labels; training examples first."""

    def __init__(self, task):
        self.task, self.seed = task, task["data_seed"]
        self.words = list(range(5, task["vocabulary"]))
        count = 2 if task["name"] == "distance" else task["triggers"]
        self.triggers = Walk(self.seed, f"{task['name']}/triggers").choose(list(self.words), count)
        self.fillers = [word for word in self.words if word not in self.triggers]
        rows = self._rows()
        length = task["length"]
        self.tokens = np.array([tokens + [0] * (length - len(tokens)) for tokens, _ in rows], np.int32)
        self.lengths = np.array([len(tokens) for tokens, _ in rows], np.int32)
        self.labels = np.array([label for _, label in rows], np.int32)
        self.train = task["train_examples"]
        self.padded = bool((self.lengths < length).any())

    def sha256(self):
        digest = hashlib.sha256(struct.pack("<qq", self.task["length"], self.train))
        for values in (self.tokens, self.lengths, self.labels):
            digest.update(np.ascontiguousarray(values, "<i4").tobytes())
        return digest.hexdigest()

    def _place(self, walk, part, distance, first, n):
        if self.task["split"] != "held_out_cells":
            return first + walk.below(n)
        h = min(max(math.floor(self.task["held_out_fraction"] * n + 0.5), 1), n - 1)
        places = list(range(first, first + n))
        chosen = Walk(self.seed, "distance/held_out", distance).choose(places, h)
        return chosen[walk.below(h)] if part == "data/test" else places[h:][walk.below(n - h)]

    def _distance(self, walk, part):
        task = self.task
        if task["definition"] == "clean":
            delta = 1 + walk.below(task["max_distance"])
            start = self._place(walk, part, delta, 0, task["length"] - task["max_distance"])
            tokens = [self.fillers[walk.below(len(self.fillers))] for _ in range(task["length"])]
            tokens[start], tokens[start + delta] = self.triggers
            return tokens, delta - 1
        gap = 1 + walk.below(task["max_gap"])
        left = self._place(walk, part, gap, 1, task["max_segment"])
        right = 1 + walk.below(task["max_segment"])
        first, middle, last = (walk.choose(list(self.words), count) for count in (left, gap, right))
        return (first + self.triggers[:1] + middle + self.triggers[1:] + last)[:task["truncate"]], gap + 1

    def _counting(self, walk, _):
        task = self.task
        content = task["length"] if task["definition"] == "clean" else task["content_length"]
        c = wanted = walk.below(task["max_count"] + 1)
        tokens = []
        for t in range(content):
            is_trigger = walk.below(content - t) < wanted
            pool = self.triggers if is_trigger else self.fillers
            tokens.append(pool[walk.below(len(pool))])
            wanted -= is_trigger
        return tokens, c

    def _rows(self):
        task = self.task
        draw = self._distance if task["name"] == "distance" else self._counting
        never_twice = task["name"] == "distance" and task["definition"] == "published"
        rows, known = [], set()

        def part(purpose, count, avoid):
            for i in range(count):
                attempt = 0
                while True:
                    tokens, label = draw(Walk(self.seed, purpose, (attempt << 40) + i), purpose)
                    if not avoid or tuple(tokens) not in known:
                        break
                    attempt += 1
                if never_twice or purpose == "data/train":
                    known.add(tuple(tokens))
                rows.append((tokens, label))

        if task["split"] == "random":
            part("data/pool", task["train_examples"] + task["test_examples"], never_twice)
            return [rows[i] for i in Walk(42, "data/split").shuffle(list(range(len(rows))))]
        part("data/train", task["train_examples"], never_twice)
        part("data/test", task["test_examples"], True)
        return rows


# ---- Initial values

def drawn(seed, name, shape, how, size):
    walk, count = Walk(seed, "init/" + name), int(np.prod(shape))
    if how == "constant":
        values = [size] * count
    elif how == "uniform":
        values = [(2 * walk.uniform() - 1) * size for _ in range(count)]
    else:
        values = [walk.normal() * size for _ in range(count)]
    return np.array(values).astype(np.float32).reshape(shape)


def initial_values(spec, classes):
    model, pe, seed = spec["model"], spec["pe"], spec["seed"]
    d, f, heads, bias = model["d_model"], model["d_ff"], model["heads"], model["attention_bias"]
    values = {}

    def put(name, shape, how, size):
        values[name] = drawn(seed, name, shape, how, size)

    def linear(name, out, width, with_bias=True):
        put(f"{name}.weight", (out, width), "uniform", 1 / math.sqrt(width))
        if with_bias:
            put(f"{name}.bias", (out,), "uniform", 1 / math.sqrt(width))

    def norm(name):
        put(f"{name}.weight", (d,), "constant", 1)
        put(f"{name}.bias", (d,), "constant", 0)

    put("embedding.weight", (spec["task"]["vocabulary"], d), "normal", 1)
    for layer in range(model["layers"]):
        at = f"layers.{layer}."
        norm(at + "attention.norm")
        source = pe["latent"] if pe["name"] == "mla" else d
        for name in ("query", "key", "value"):
            linear(f"{at}attention.{name}", d, source, bias)
        linear(at + "attention.output", d, d, bias)
        norm(at + "ffn.norm")
        linear(at + "ffn.in", f, d)
        linear(at + "ffn.out", d, f)
        if pe["name"] == "mla":
            for name in ("latent_query", "latent_kv"):
                put(f"{at}attention.{name}.weight", (source, d), "uniform", 1 / math.sqrt(d))
                if pe["latent_norm"]:
                    put(f"{at}attention.{name}.norm", (source,), "constant", 1)
            put(f"{at}attention.rotary_key.weight", (pe["rotary"], d), "uniform", 1 / math.sqrt(d))
            rows = pe["rotary"] * (heads if pe["rotary_query"] == "per_head" else 1)
            put(f"{at}attention.rotary_query.weight", (rows, source), "uniform", 1 / math.sqrt(source))
        if pe["name"] == "shaw":
            for name in ("key", "value")[:1 + pe["values"]]:
                put(f"{at}pe.{name}", (2 * pe["max_distance"] + 1, d // heads), "normal", pe["init_std"])
        if pe["name"] == "relative" and pe["form"] == "table":
            put(f"{at}pe.bias", (2 * model["max_len"] - 1, heads), "normal", pe["init_std"])
    if pe["name"] == "relative" and pe["form"] == "t5":
        put("pe.bias", (pe["buckets"], heads), "normal", pe["init_std"])
    if pe["name"] == "random" or pe["name"] == "absolute" and pe["form"] == "learned":
        put("pe.table", (model["max_len"], d), "normal", pe["init_std"])
    if pe["name"] == "mla" and pe["input_table"]:
        put("pe.table", (model["max_len"], d), "constant", 0)
    if model["final_norm"]:
        norm("final_norm")
    linear("head", classes, d)
    return values


# ---- Order, masks, model, loss

def batches(spec, data, epoch):
    """Indices of an epoch's batches."""
    size, model = spec["train"]["batch_size"], spec["model"]
    order = Walk(spec["seed"], "train/order", epoch).shuffle(list(range(data.train)))
    made = [order[at:at + size] for at in range(0, data.train, size)]
    if data.padded and model["key_padding"] == "masked" and model["readout"] != "mean":
        made = [sorted(batch, key=lambda i: data.lengths[i]) for batch in made]
    return made


class Masks:
    """A step's masks; all ones where the model has no dropout at a site, or in evaluation (step None)."""
    SITES = ("attention", "output", "ffn_inner", "ffn")

    def __init__(self, spec, step):
        self.model, self.step, self.seed = spec["model"], step, spec["seed"]

    def at(self, layer, site, shape):
        p = self.model["dropout"]
        if self.step is None or p == 0 or site not in self.model["dropout_sites"]:
            return 1.0
        key = Walk(self.seed, "dropout", self.step).bits_at(4 * layer + self.SITES.index(site))
        k0, k1 = np.uint32(key & 0xFFFFFFFF), np.uint32(key >> 32)
        v = np.arange(int(np.prod(shape)), dtype=np.uint32) ^ k0
        for shift, factor in ((16, 0x7FEB352D), (15, None), (None, 0x846CA68B), (16, 0x9E3779B1), (15, None)):
            if shift is not None:
                v ^= v >> np.uint32(shift)
            if factor == 0x846CA68B:
                v += k1
            if factor is not None:
                v *= np.uint32(factor)
        kept = np.float64(np.float32(1 / (1 - p)))
        return np.where(v < np.uint32(math.floor(p * 2 ** 32)), 0.0, kept).reshape(shape)


def normed(x, weights, name, eps):
    centred = x - x.mean(-1, keepdims=True)
    return (centred / np.sqrt((centred ** 2).mean(-1, keepdims=True) + eps) * weights[f"{name}.weight"] +
            weights[f"{name}.bias"])


def logits_of(spec, w, data, indices, step, heads_of=None, taken=None):
    """(B, classes) in float64; nope alone. `heads_of` collects each layer's heads (B, T, H, d); taken = (layer, head, values)
    puts others in the place of one's."""
    model, masks = spec["model"], Masks(spec, step)
    tokens, lengths = data.tokens[indices], data.lengths[indices]
    count, length = tokens.shape
    heads, d = model["heads"], model["d_model"]
    width, eps = d // heads, model["layer_norm_eps"]
    place = np.arange(length)
    x = first = w["embedding.weight"][tokens]
    for layer in range(model["layers"]):
        name = f"layers.{layer}."
        last_only = model["readout"] == "last" and not data.padded and layer == model["layers"] - 1

        def project(part, rows):
            out = rows @ w[f"{name}attention.{part}.weight"].T
            if model["attention_bias"]:
                out = out + w[f"{name}attention.{part}.bias"]
            return out.reshape(count, -1, heads, width)

        y = normed(x, w, name + "attention.norm", eps)
        source = y if model["kv_source"] == "self" else first
        q, k, v = project("query", y[:, -1:] if last_only else y), project("key", source), project("value", source)
        scores = np.einsum("bihc,bjhc->bhij", q, k) / math.sqrt(width)
        rows = place[-1:] if last_only else place
        unseen = np.zeros((count, 1, len(rows), length), bool)
        if model["mask"] == "causal":
            unseen = unseen | (place[None, :] > rows[:, None])
        if model["key_padding"] == "masked":
            unseen = unseen | (place >= lengths[:, None])[:, None, None, :]
        scores = np.where(unseen, -np.inf, scores)
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares = shares / shares.sum(-1, keepdims=True)
        shares = shares * masks.at(layer, "attention", shares.shape)
        o = np.einsum("bhij,bjhc->bihc", shares, v)
        if heads_of is not None:
            heads_of.append(o)
        if taken is not None and taken[0] == layer:
            o = o.copy()
            o[:, :, taken[1]] = taken[2]
        out = o.reshape(count, -1, d) @ w[name + "attention.output.weight"].T
        if model["attention_bias"]:
            out = out + w[name + "attention.output.bias"]
        x = (x[:, -1:] if last_only else x) + out * masks.at(layer, "output", out.shape)
        z = normed(x, w, name + "ffn.norm", eps) @ w[name + "ffn.in.weight"].T + w[name + "ffn.in.bias"]
        inner = np.maximum(z, 0)
        inner = inner * masks.at(layer, "ffn_inner", inner.shape)
        out = inner @ w[name + "ffn.out.weight"].T + w[name + "ffn.out.bias"]
        x = x + out * masks.at(layer, "ffn", out.shape)
    if model["final_norm"]:
        x = normed(x, w, "final_norm", eps)
    if model["readout"] == "last":
        pooled = x[np.arange(count), (lengths if data.padded else np.ones_like(lengths) * x.shape[1]) - 1]
    elif model["readout"] == "mean":
        pooled = x.mean(1)
    else:
        pooled = (x * (place < lengths[:, None])[:, :, None]).sum(1) / lengths[:, None]
    return pooled @ w["head.weight"].T + w["head.bias"]


def label_classes(task):
    """(the smallest label, the number of labels)."""
    if task["name"] == "counting":
        return 0, task["max_count"] + 1
    return (0, task["max_distance"]) if task["definition"] == "clean" else (2, task["max_gap"])


class Repeat:
    def __init__(self, spec):
        self.spec, self.data = spec, Data(spec["task"])
        smallest, count = label_classes(spec["task"])
        exact = spec["task"]["label_space"] == "exact"
        self.classes = count if exact else spec["task"]["vocabulary"]
        self.targets = self.data.labels - (smallest if exact else 0)
        self.weights = initial_values(spec, self.classes)
        self.wide = {name: value.astype(np.float64) for name, value in self.weights.items()}

    def scored(self, indices):
        return (self.targets[indices] != 0) | (self.spec["task"]["scored_classes"] == "all")

    def judged(self, logits, indices):
        """(losses, right) of the scored examples."""
        top = logits.max(-1, keepdims=True)
        nll = top[:, 0] + np.log(np.exp(logits - top).sum(-1)) - logits[np.arange(len(logits)), self.targets[indices]]
        scored = self.scored(indices)
        return nll[scored], (logits.argmax(-1) == self.targets[indices])[scored]

    def epoch(self, epoch):
        """train_loss, train_correct, train_total of an epoch in which no weight moves."""
        made = batches(self.spec, self.data, epoch)
        losses, correct, total = [], 0, 0
        for b, indices in enumerate(made):
            nll, right = self.judged(logits_of(self.spec, self.wide, self.data, indices, epoch * len(made) + b), indices)
            losses.append(nll.mean() if len(nll) else 0.0)
            correct, total = correct + int(right.sum()), total + len(right)
        return sum(losses) / len(losses), correct, total

    def test(self):
        indices = list(range(self.data.train, len(self.data.labels)))
        nll, right = self.judged(logits_of(self.spec, self.wide, self.data, indices, None), indices)
        return nll.mean(), int(right.sum()), len(right)

    def trained(self):
        """The weights after training, on gradients by central differences."""
        train, w = self.spec["train"], {name: value.copy() for name, value in self.wide.items()}
        m, v = ({name: np.zeros_like(value) for name, value in w.items()} for _ in range(2))
        steps = math.ceil(self.data.train / train["batch_size"])
        total, t = steps * train["epochs"], 0
        warmup = int(train["warmup_fraction"] * total)
        for epoch in range(train["epochs"]):
            for indices in batches(self.spec, self.data, epoch):
                def loss():
                    return self.judged(logits_of(self.spec, w, self.data, indices, t), indices)[0].mean()

                gradient = {name: differences(loss, value) for name, value in w.items()}
                rate = train["lr"] * t / warmup if t < warmup else \
                    train["lr"] / 2 * (1 + math.cos(math.pi * (t - warmup) / max(1, total - warmup)))
                for name, g in gradient.items():
                    w[name] *= 1 - rate * train["weight_decay"]
                    m[name] = train["beta1"] * m[name] + (1 - train["beta1"]) * g
                    v[name] = train["beta2"] * v[name] + (1 - train["beta2"]) * g * g
                    root = np.sqrt(v[name]) / math.sqrt(1 - train["beta2"] ** (t + 1)) + train["epsilon"]
                    w[name] -= rate / (1 - train["beta1"] ** (t + 1)) * m[name] / root
                t += 1
        return w

    def resampled(self):
        """{(layer, head): (correct, mean loss)} on the test set with a head's output from the donor's."""
        first, n = self.data.train, len(self.data.labels) - self.data.train
        indices = list(range(first, first + n))
        donors = []
        for i in indices:
            donor = first + Walk(self.data.seed, "ablation/donor", i).below(n - 1)
            donors.append(donor + (donor >= i))
        theirs = []
        logits_of(self.spec, self.wide, self.data, donors, None, heads_of=theirs)
        found = {}
        for layer in range(self.spec["model"]["layers"]):
            for head in range(self.spec["model"]["heads"]):
                nll, right = self.judged(logits_of(self.spec, self.wide, self.data, indices, None,
                                                   taken=(layer, head, theirs[layer][:, :, head])), indices)
                found[layer, head] = int(right.sum()), nll.mean()
        return found


def differences(loss, value, step=1e-5):
    gradient = np.zeros_like(value)
    for at in np.ndindex(value.shape):
        kept = value[at]
        value[at] = kept + step
        up = loss()
        value[at] = kept - step
        gradient[at] = (up - loss()) / (2 * step)
        value[at] = kept
    return gradient


# ---- Jobs

CLEAN = {"activation": "relu", "attention_bias": True, "dropout": 0.25, "dropout_sites": ["attention", "output", "ffn"],
         "final_norm": True, "key_padding": "masked", "kv_source": "self", "layer_norm_eps": 1e-5, "mask": "causal",
         "readout": "masked_mean"}
PUBLISHED = {**CLEAN, "mask": "none", "key_padding": "attended", "kv_source": "input", "readout": "mean", "final_norm": False}
STILL = {"beta1": 0.98, "beta2": 0.9, "epsilon": 1e-8, "lr": 1e-30, "schedule": "cosine", "warmup_fraction": 0.5,
         "weight_decay": 1e-5}
DISTANCE = {"name": "distance", "version": 1, "definition": "clean", "label_space": "exact", "length": 12, "max_distance": 5,
            "scored_classes": "all", "split": "disjoint", "vocabulary": 20}
PUBLISHED_DISTANCE = {"name": "distance", "version": 1, "definition": "published", "label_space": "vocabulary", "length": 24,
                      "max_segment": 5, "max_gap": 10, "truncate": 20, "scored_classes": "nonzero", "split": "random",
                      "vocabulary": 30}
COUNTING = {"name": "counting", "version": 1, "definition": "clean", "label_space": "exact", "length": 10, "max_count": 6,
            "triggers": 4, "scored_classes": "all", "split": "disjoint", "vocabulary": 16}


def spec_of(task, model, train=None, pe=None, seed=3, data_seed=None, examples=(100, 40), sizes=(16, 20, 2, 2), batch=32, epochs=2):
    d, f, heads, layers = sizes
    return {"format": 1, "seed": seed,
            "model": {**model, "d_model": d, "d_ff": f, "heads": heads, "layers": layers, "max_len": task["length"]},
            "pe": {"name": "nope", "version": 1, **(pe or {})},
            "task": {**task, "data_seed": seed if data_seed is None else data_seed, "train_examples": examples[0],
                     "test_examples": examples[1]},
            "train": {**STILL, "batch_size": batch, "epochs": epochs, **(train or {})}}


def still_jobs():
    """{name: spec} of jobs whose epochs are repeated."""
    every_site = {"dropout_sites": ["attention", "output", "ffn_inner", "ffn"]}
    held_out = {"split": "held_out_cells", "held_out_fraction": 0.3}
    return {
        "clean distance": spec_of(DISTANCE, {**CLEAN, **every_site}),
        "matched distance: last token": spec_of(DISTANCE, {**CLEAN, "readout": "last"}, seed=2**53 - 1),
        "published distance": spec_of(PUBLISHED_DISTANCE, PUBLISHED),
        "padding that nobody reads": spec_of({**PUBLISHED_DISTANCE, "split": "disjoint"}, CLEAN, batch=80, examples=(200, 70)),
        "padding, last token": spec_of(PUBLISHED_DISTANCE, {**CLEAN, "readout": "last"}, batch=80, examples=(200, 70)),
        "held-out cells": spec_of({**DISTANCE, **held_out}, CLEAN, data_seed=8),
        "published held-out cells": spec_of({**PUBLISHED_DISTANCE, **held_out}, PUBLISHED, data_seed=9),
        "clean counting": spec_of(COUNTING, {**CLEAN, "dropout": 0.1}),
        "published counting": spec_of({**COUNTING, "definition": "published", "content_length": 8, "split": "random",
                                       "scored_classes": "nonzero", "label_space": "vocabulary"}, PUBLISHED),
    }


def value_jobs():
    """{name: spec} of encodings that have parameters: their initial values."""
    forms = [{"name": "absolute", "form": "learned", "init_std": 1.0}, {"name": "random", "trainable": True, "init_std": 0.5},
             {"name": "random", "trainable": False, "init_std": 1.0},
             {"name": "relative", "form": "t5", "buckets": 8, "max_distance": 10, "init_std": 0.02},
             {"name": "relative", "form": "table", "init_std": 0.02},
             {"name": "shaw", "max_distance": 4, "values": True, "init_std": 0.02}]
    mla = {"name": "mla", "base": 10000.0, "latent": 6, "rotary": 4, "rotation": "rope"}
    forms += [{**mla, "rotary_query": "per_head", "latent_norm": True, "input_table": False},
              {**mla, "rotary_query": "shared", "latent_norm": False, "input_table": True}]
    return {" ".join(str(value) for value in pe.values()):
            spec_of(DISTANCE, {**CLEAN, "attention_bias": pe["name"] != "mla"}, pe=pe, epochs=1) for pe in forms}


def trained_job():
    return spec_of({**DISTANCE, "length": 8, "max_distance": 3, "vocabulary": 14}, {**CLEAN, "dropout_sites": ["output", "ffn_inner"]},
                   {"lr": 0.02, "epsilon": 1e-3, "weight_decay": 0.1, "beta1": 0.9, "beta2": 0.99, "warmup_fraction": 0.4},
                   examples=(14, 8), sizes=(4, 5, 2, 1), batch=6)


# ---- Against the trainer

def read_safetensors(path):
    content = path.read_bytes()
    size = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:8 + size])
    header.pop("__metadata__", None)
    return {name: np.frombuffer(content[8 + size + entry["data_offsets"][0]:8 + size + entry["data_offsets"][1]],
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
            done = subprocess.run([self.trainer, "run", "--spec", job, "--workdir", folder], capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit(f"{done.args}\n{done.stdout}\n{done.stderr}")
            events = [json.loads(line) for line in done.stdout.splitlines()]
            return events, read_safetensors(pathlib.Path(folder, events[-1]["weights"]["file"]))

    def weights(self, name, ours, theirs):
        self.equal(f"{name}: names of parameters", sorted(ours), sorted(theirs))
        for tensor in sorted(ours.keys() & theirs.keys()):
            # The last bit of float32: another C library may round a logarithm or a cosine otherwise.
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
            self.equal(f"{at}: train_correct, train_total", (correct, total), (event["train_correct"], event["train_total"]))
            self.near(f"{at}: test_loss", tested[0], event["test_loss"], 3e-6 * tested[0])
            self.equal(f"{at}: test_correct, test_total", tested[1:], (event["test_correct"], event["test_total"]))

    def trained(self, spec):
        ours = Repeat(spec)
        _, theirs = self.run(spec)
        moved = max(np.abs(theirs[name] - value).max() for name, value in ours.weights.items())
        self.equal("trained: some weight has moved by 0.01", True, bool(moved > 0.01))
        for name, value in ours.trained().items():
            self.near(f"trained: {name}", 0.0, float(np.abs(theirs[name] - value).max()), 2e-5)

    def resampled(self, spec):
        parameters = {"method": "resample", "target": "head", "hygiene": "clean", "data": "test", "max_examples": 0}
        events, _ = self.run(spec, [{"name": "head_ablation", "version": 2, "parameters": parameters}])
        matrix = next(event for event in events if event["event"] == "head_ablation")
        for (layer, head), (correct, nll) in Repeat(spec).resampled().items():
            self.equal(f"resampled: correct of head {layer}.{head}", correct, matrix["correct"][layer][head])
            self.near(f"resampled: loss of head {layer}.{head}", nll, matrix["nll"][layer][head], 3e-6 * nll)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trainer", required=True, help="a pelab-trainer")
    checks = Checks(parser.parse_args().trainer)
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
