#!/usr/bin/env python3
"""The other side of the training bench: the same decoder as people write it in PyTorch, eager and in float32.

    peer.py FOLDER --steps 3 --threads 2    some steps
    peer.py FOLDER --job --threads 1        the whole job: every epoch and its evaluation

FOLDER has what `train_bench --dump` wrote: starting weights with their spec, examples, and the first batch's logits without
dropout. Writes one line of JSON. With --steps it first computes those logits anew and exits 1 where they differ by more than
1e-3; then seconds of each step (dropout on, AdamW) after the first, how many parameters are trained, the largest difference,
the most memory it had, and how many FLOP/s its matrix products reach. With --job the test accuracy of each epoch. Needs PyTorch and numpy."""

import argparse
import json
import math
import pathlib
import resource
import sys
import time

import torch
from torch import nn
from torch.nn import functional

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "golden"))
from recount.stored import read_safetensors  # noqa: E402

MOST_DIFFERENCE = 1e-3  # of logits, float32 against float32


def sinusoid(length, width, half_split=False):
    angles = torch.arange(length, dtype=torch.float64)[:, None] * 10000.0 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    if half_split:
        return torch.cat([angles.sin(), angles.cos()], 1).float()
    return torch.stack([angles.sin(), angles.cos()], 2).flatten(1).float()


def rotary_table(length, width, base):
    """(cos, sin), each (length, width / 2)."""
    angles = torch.arange(length, dtype=torch.float64)[:, None] * base ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    return angles.cos().float(), angles.sin().float()


def rotate(x, cos, sin):
    """Adjacent pairs of (B, H, T, d) turn by their position's angles."""
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2)


def t5_buckets(length, buckets, max_distance, causal):
    relative = torch.arange(length)[None, :] - torch.arange(length)[:, None]  # key - query
    first = torch.zeros_like(relative)
    if causal:
        distance = (-relative).clamp_min(0)
    else:
        buckets //= 2
        first = (relative > 0).long() * buckets
        distance = relative.abs()
    exact = buckets // 2
    far = exact + (torch.log(distance.clamp_min(1).double() / exact) / math.log(max_distance / exact) * (buckets - exact) + 1e-9).long()
    return first + torch.where(distance < exact, distance, far.clamp_max(buckets - 1))


def alibi_slopes(heads):
    def power_of_two(n):
        return [2 ** (-8 * h / n) for h in range(1, n + 1)]
    below = 2 ** int(math.log2(heads))
    return power_of_two(below) + power_of_two(2 * below)[0::2][:heads - below]


class RootMeanSquareNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * self.weight


class Attention(nn.Module):
    def __init__(self, model, pe, layer):
        super().__init__()
        self.model, self.pe, self.name = model, pe, pe["name"]
        d, bias = model["d_model"], model["attention_bias"]
        self.heads, self.width = model["heads"], d // model["heads"]
        self.norm = nn.LayerNorm(d, eps=model["layer_norm_eps"])
        source = d
        if self.name == "mla":
            source, rotary = pe["latent"], pe["rotary"]
            self.latent_kv, self.latent_query = nn.Linear(d, source, bias=False), nn.Linear(d, source, bias=False)
            self.kv_norm = RootMeanSquareNorm(source) if pe["latent_norm"] else nn.Identity()
            self.query_norm = RootMeanSquareNorm(source) if pe["latent_norm"] else nn.Identity()
            self.rotary_key = nn.Linear(d, rotary, bias=False)
            self.rotary_query = nn.Linear(source, rotary * (1 if pe["rotary_query"] == "shared" else self.heads), bias=False)
        self.query, self.key, self.value = (nn.Linear(source, d, bias=bias) for _ in range(3))
        self.output = nn.Linear(d, d, bias=bias)
        dropout = model["dropout"]
        self.weight_dropout = nn.Dropout(dropout if "attention" in model["dropout_sites"] else 0)
        self.out_dropout = nn.Dropout(dropout if "output" in model["dropout_sites"] else 0)
        length = model["max_len"]
        if self.name in ("rope", "rope_abs", "partial_rope", "xpos"):
            cos, sin = rotary_table(length, self.width, pe["base"])
            if self.name == "partial_rope":
                chosen = torch.zeros(self.heads, 1, 1)
                chosen[pe["head_list"] if pe["select"] == "list" else list(range(pe["heads"]))] = 1
                cos, sin = chosen * cos + (1 - chosen), chosen * sin
            self.register_buffer("cos", cos, persistent=False)
            self.register_buffer("sin", sin, persistent=False)
        if self.name == "mla":
            cos, sin = rotary_table(length, pe["rotary"], pe["base"])
            if pe["rotation"] == "sliced":
                row = sinusoid(length, pe["rotary"], half_split=True)
                cos, sin = row[:, 1::2], row[:, 0::2]
            self.register_buffer("cos", cos, persistent=False)
            self.register_buffer("sin", sin, persistent=False)
        if self.name == "xpos":
            bases = (torch.arange(0, self.width, 2) / self.width + 0.4) / 1.4
            powers = (torch.arange(length) - length // 2)[:, None] / pe["scale_base"]
            self.register_buffer("scale", bases ** powers, persistent=False)
        if self.name == "alibi":
            distance = (torch.arange(length)[:, None] - torch.arange(length)[None, :]).abs()
            slopes = torch.tensor(alibi_slopes(self.heads)) if pe["slopes"] == "geometric" else \
                torch.exp(-torch.arange(self.heads) / self.heads)
            self.register_buffer("bias", -slopes[:, None, None] * distance, persistent=False)
        if self.name == "relative" and pe["form"] == "table":
            self.table = nn.Embedding(2 * length - 1, self.heads)
            self.register_buffer("rows", torch.arange(length)[None, :] - torch.arange(length)[:, None] + length - 1, persistent=False)
        if self.name == "shaw":
            most = pe["max_distance"]
            self.shaw_key = nn.Embedding(2 * most + 1, self.width)
            self.shaw_value = nn.Embedding(2 * most + 1, self.width) if pe["values"] else None
            rows = (torch.arange(length)[None, :] - torch.arange(length)[:, None]).clamp(-most, most) + most
            self.register_buffer("rows", rows, persistent=False)

    def split(self, x):
        """(B, T, H w) as (B, H, T, w)."""
        return x.unflatten(-1, (-1, self.width if x.shape[-1] == self.heads * self.width else x.shape[-1])).transpose(1, 2)

    def project(self, normed, source):
        if self.name != "mla":
            return self.split(self.query(normed)), self.split(self.key(source)), self.split(self.value(source))
        rotary, length = self.pe["rotary"], normed.shape[1]
        query_latent, kv_latent = self.query_norm(self.latent_query(normed)), self.kv_norm(self.latent_kv(source))
        cos, sin = self.cos[:length], self.sin[:length]
        rotary_query = rotate(self.rotary_query(query_latent).unflatten(-1, (-1, rotary)).transpose(1, 2), cos, sin)
        rotary_key = rotate(self.rotary_key(source).unsqueeze(1), cos, sin)
        query, key = self.split(self.query(query_latent)), self.split(self.key(kv_latent))
        spread = (-1, self.heads, -1, -1)
        return (torch.cat([query, rotary_query.expand(spread)], -1), torch.cat([key, rotary_key.expand(spread)], -1),
                self.split(self.value(kv_latent)))

    def forward(self, x, inputs, mask, shared_bias):
        normed = self.norm(x)
        length = x.shape[1]
        query, key, value = self.project(normed, normed if self.model["kv_source"] == "self" else inputs)
        if self.name in ("rope", "rope_abs", "partial_rope", "xpos"):
            cos, sin = self.cos[..., :length, :], self.sin[..., :length, :]
            if self.name == "xpos":
                scale = self.scale[:length]
                query, key = rotate(query, cos * scale, sin * scale), rotate(key, cos / scale, sin / scale)
            else:
                query, key = rotate(query, cos, sin), rotate(key, cos, sin)
        scale = 1 / math.sqrt(query.shape[-1])
        scores = query @ key.transpose(-2, -1) * scale
        if self.name == "shaw":
            rows = self.rows[:length, :length]
            scores = scores + torch.einsum("bhid,ijd->bhij", query, self.shaw_key(rows)) * scale
        if self.name == "alibi":
            scores = scores + self.bias[:, :length, :length]
        if shared_bias is not None:
            scores = scores + shared_bias
        elif self.name == "relative":
            scores = scores + self.table(self.rows[:length, :length]).permute(2, 0, 1)
        if mask is not None:
            scores = scores.masked_fill(mask, -math.inf)
        weights = self.weight_dropout(functional.softmax(scores, -1))
        heads = weights @ value
        if self.name == "shaw" and self.shaw_value is not None:
            heads = heads + torch.einsum("bhij,ijd->bhid", weights, self.shaw_value(self.rows[:length, :length]))
        return x + self.out_dropout(self.output(heads.transpose(1, 2).flatten(2)))


class FeedForward(nn.Module):
    def __init__(self, model):
        super().__init__()
        sites, dropout = model["dropout_sites"], model["dropout"]
        self.norm = nn.LayerNorm(model["d_model"], eps=model["layer_norm_eps"])
        self.inner, self.outer = nn.Linear(model["d_model"], model["d_ff"]), nn.Linear(model["d_ff"], model["d_model"])
        self.activation = functional.relu if model["activation"] == "relu" else functional.gelu
        self.inner_dropout = nn.Dropout(dropout if "ffn_inner" in sites else 0)
        self.dropout = nn.Dropout(dropout if "ffn" in sites else 0)

    def forward(self, x):
        return x + self.dropout(self.outer(self.inner_dropout(self.activation(self.inner(self.norm(x))))))


class Decoder(nn.Module):
    def __init__(self, spec, vocabulary, classes):
        super().__init__()
        self.model, self.pe = spec["model"], spec["pe"]
        model, pe, d, length = self.model, self.pe, spec["model"]["d_model"], spec["model"]["max_len"]
        self.embedding = nn.Embedding(vocabulary, d)
        name = pe["name"]
        self.table = None
        if name == "random" or (name == "absolute" and pe["form"] == "learned") or (name == "mla" and pe["input_table"]):
            self.table = nn.Parameter(torch.empty(length, d), requires_grad=name != "random" or pe["trainable"])
        elif name in ("absolute", "rope_abs"):
            self.register_buffer("sines", sinusoid(length, d), persistent=False)
        elif name == "rope" and pe["input_sinusoid"]:
            self.register_buffer("sines", sinusoid(length, d, half_split=True), persistent=False)
        self.bias = None
        if name == "relative" and pe["form"] == "t5":
            self.bias = nn.Embedding(pe["buckets"], model["heads"])
            self.register_buffer("buckets", t5_buckets(length, pe["buckets"], pe["max_distance"], model["mask"] == "causal"), persistent=False)
        self.attention = nn.ModuleList(Attention(model, pe, layer) for layer in range(model["layers"]))
        self.ffn = nn.ModuleList(FeedForward(model) for _ in range(model["layers"]))
        self.final_norm = nn.LayerNorm(d, eps=model["layer_norm_eps"]) if model["final_norm"] else nn.Identity()
        self.head = nn.Linear(d, classes)

    def forward(self, tokens, lengths):
        length = tokens.shape[1]
        x = self.embedding(tokens)
        if self.table is not None:
            x = x + self.table[:length]
        elif hasattr(self, "sines"):
            x = x + self.sines[:length]
        mask = None
        if self.model["mask"] == "causal":
            mask = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        present = None if lengths is None else torch.arange(length, device=x.device) < lengths[:, None]
        if present is not None and self.model["key_padding"] == "masked":
            padding = ~present[:, None, None, :]
            mask = padding if mask is None else mask | padding
        bias = None if self.bias is None else self.bias(self.buckets[:length, :length]).permute(2, 0, 1)
        inputs = x
        for attention, ffn in zip(self.attention, self.ffn):
            x = ffn(attention(x, inputs, mask, bias))
        x = self.final_norm(x)
        readout = self.model["readout"]
        if readout == "last":
            pooled = x[:, -1] if lengths is None else x[torch.arange(len(x)), lengths - 1]
        elif readout == "mean" or present is None:
            pooled = x.mean(1)
        else:
            pooled = (x * present[..., None]).sum(1) / lengths[:, None]
        return self.head(pooled)


def renamed(name):
    """A name of the weights file as one of the modules above."""
    name = name.replace(".attention.latent_kv.norm", ".attention.kv_norm.weight")
    name = name.replace(".attention.latent_query.norm", ".attention.query_norm.weight")
    name = name.replace(".ffn.in.", ".ffn.inner.").replace(".ffn.out.", ".ffn.outer.")
    name = {"pe.table": "table", "pe.bias": "bias.weight"}.get(name, name)
    parts = name.split(".")
    if parts[0] != "layers":
        return name
    layer, part, rest = parts[1], parts[2], ".".join(parts[3:])
    if part == "pe":
        return f"attention.{layer}.{ {'bias': 'table', 'key': 'shaw_key', 'value': 'shaw_value'}[rest] }.weight"
    return f"{part}.{layer}.{rest}"


def load(folder):
    weights, metadata = read_safetensors(folder / "weights.safetensors")
    data, about = read_safetensors(folder / "data.safetensors")
    tensors = {renamed(name): torch.from_numpy(array.copy()) for name, array in weights.items()}
    model = Decoder(json.loads(metadata["spec"]), tensors["embedding.weight"].shape[0], tensors["head.weight"].shape[0])
    model.load_state_dict(tensors)
    tensors = {name: torch.from_numpy(array.copy()) for name, array in data.items()}
    return Job(model, json.loads(metadata["spec"]), tensors, int(about["ignored_class"]), int(about["train_examples"]))


class Job:
    def __init__(self, model, spec, data, ignored, train_examples):
        self.model, self.spec, self.ignored, self.train_examples = model, spec, ignored, train_examples
        self.tokens, self.classes, self.lengths = data["tokens"].long(), data["classes"].long(), data.get("lengths")
        self.first_logits = data["logits"]
        train = spec["train"]
        self.optimizer = torch.optim.AdamW(
            [p for p in model.parameters() if p.requires_grad], lr=train["lr"], betas=(train["beta1"], train["beta2"]),
            eps=train["epsilon"], weight_decay=train["weight_decay"])

    def logits(self, chosen):
        return self.model(self.tokens[chosen], None if self.lengths is None else self.lengths[chosen])

    def difference(self):
        self.model.eval()
        with torch.no_grad():
            return (self.logits(slice(0, len(self.first_logits))) - self.first_logits).abs().max().item()

    def step(self, chosen):
        logits = self.logits(chosen)
        loss = functional.cross_entropy(logits, self.classes[chosen], ignore_index=self.ignored)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def time_steps(self, steps):
        batch, seconds = self.spec["train"]["batch_size"], []
        self.model.train()
        for step in range(steps + 1):
            began = time.perf_counter()
            self.step(slice(step * batch, (step + 1) * batch))
            if step > 0:
                seconds.append(time.perf_counter() - began)
        return seconds

    def evaluate(self):
        self.model.eval()
        right = total = 0
        with torch.no_grad():
            for begin in range(self.train_examples, len(self.tokens), 256):
                chosen = slice(begin, begin + 256)
                classes = self.classes[chosen]
                scored = classes != self.ignored
                right += ((self.logits(chosen).argmax(1) == classes) & scored).sum().item()
                total += scored.sum().item()
        return right / total

    def train(self):
        """The test accuracy after each epoch."""
        train = self.spec["train"]
        batch, epochs = train["batch_size"], train["epochs"]
        steps = epochs * math.ceil(self.train_examples / batch)
        warmup = int(train["warmup_fraction"] * steps)

        def rate(step):
            if step < warmup:
                return step / warmup
            return 1 if train["schedule"] != "cosine" else 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(1, steps - warmup)))
        schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, rate)
        accuracies = []
        for _ in range(epochs):
            self.model.train()
            for chosen in torch.randperm(self.train_examples).split(batch):
                self.step(chosen)
                schedule.step()
            accuracies.append(self.evaluate())
        return accuracies


def matmul_ceiling(rows, inner, columns):
    """FLOP/s of the best of some products of these sizes."""
    a, b = torch.randn(rows, inner), torch.randn(inner, columns)
    best = math.inf
    for _ in range(8):
        began = time.perf_counter()
        a @ b
        best = min(best, time.perf_counter() - began)
    return 2 * rows * inner * columns / best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--job", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    job = load(arguments.folder)
    if arguments.job:
        print(json.dumps({"test_accuracy": job.train()}))
        return 0
    differs = job.difference()
    if not differs <= MOST_DIFFERENCE:
        print(f"the logits differ by {differs:.2g}: this is not the same model", file=sys.stderr)
        return 1
    length, sizes = job.tokens.shape[1], job.spec["model"]
    print(json.dumps({"parameters": sum(p.numel() for p in job.model.parameters() if p.requires_grad), "difference": differs,
                      "spec": job.spec, "length": length, "torch": torch.__version__, "seconds": job.time_steps(arguments.steps),
                      "peak_bytes": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
                      "matmul_flops": matmul_ceiling(length * job.spec["train"]["batch_size"], sizes["d_model"], sizes["d_ff"])}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
