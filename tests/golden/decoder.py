#!/usr/bin/env python3
"""A whole small decoder, and each positional encoding alone, in plain Python (standard library
only).

    decoder.py --check decoder.json    recompute and compare; exit 1 where something differs
    decoder.py --write decoder.json    recompute and write

Nothing is shared between cases but the weights: every sum is a loop over positions.
Weights come from a formula of their name and index (`weight`), so whoever reads the JSON can make
the same model.
"""
import cmath
import functools
import math
import sys

import golden
from pe_tables import geometric, sinusoid, t5_bucket

FULL = [[5, 9, 6, 10, 7, 8], [9, 5, 8, 6, 10, 5]]
PADDED = [[5, 9, 6, 10, 7, 8], [9, 5, 8, 6, 0, 0]]
PADDED_LENGTHS = [6, 4]

CLEAN = {"mask": "causal", "key_padding": "masked", "kv_source": "self", "readout": "masked_mean",
         "final_norm": True, "activation": "relu", "attention_bias": True}
PUBLISHED = {"mask": "none", "key_padding": "attended", "kv_source": "input", "readout": "mean",
             "final_norm": False, "activation": "relu", "attention_bias": True}
PUBLISHED_MLA = {"mask": "none", "key_padding": "masked", "kv_source": "self",
                 "readout": "masked_mean", "final_norm": True,
                 "activation": "gelu", "attention_bias": False}
SIZE = {"layers": 2, "heads": 3, "d_model": 12, "d_ff": 10, "vocabulary": 12, "max_len": 8,
        "classes": 5, "layer_norm_eps": 1e-3}

PES = [{"name": "nope"}, {"name": "absolute", "form": "sinusoidal"},
       {"name": "absolute", "form": "learned"},
       {"name": "random", "trainable": False}, {"name": "random", "trainable": True},
       {"name": "relative", "form": "t5", "buckets": 8, "max_distance": 6},
       {"name": "relative", "form": "table"},
       {"name": "alibi", "slopes": "geometric"}, {"name": "alibi", "slopes": "exponential"},
       {"name": "rope", "base": 10000.0, "input_sinusoid": False},
       {"name": "rope", "base": 50.0, "input_sinusoid": False},
       {"name": "rope", "base": 10000.0, "input_sinusoid": True},
       {"name": "shaw", "max_distance": 7, "values": False},
       {"name": "shaw", "max_distance": 2, "values": True},
       {"name": "xpos", "base": 10000.0, "scale_base": 512.0},
       {"name": "xpos", "base": 50.0, "scale_base": 3.0},
       {"name": "partial_rope", "base": 10000.0, "select": "first", "heads": 2},
       {"name": "partial_rope", "base": 50.0, "select": "list", "head_list": [0, 2]},
       {"name": "rope_abs", "base": 10000.0}]
MLA = {"name": "mla", "base": 10000.0, "latent": 6, "rotary": 4, "rotary_query": "per_head",
       "rotation": "rope", "latent_norm": True, "input_table": False}
AUTHORS_MLA = {**MLA, "rotary_query": "shared", "rotation": "sliced", "latent_norm": False,
               "input_table": True}
MLAS = [MLA, AUTHORS_MLA, {**MLA, "base": 50.0, "latent": 5, "rotary": 6},
        {**AUTHORS_MLA, "latent": 8, "rotary": 2},
        {**MLA, "rotary_query": "shared"}, {**AUTHORS_MLA, "latent_norm": True, "rotary": 6}]


def weight(name, index):
    value = (((sum((place + 1) * byte for place, byte in enumerate(name.encode())) + 37 * index)
              % 101 - 50) / 100)
    return 1 + value / 2 if name.endswith("norm.weight") else value


@functools.cache  # nobody changes what it returns
def matrix(name, rows, columns):
    return [[weight(name, row * columns + column) for column in range(columns)]
            for row in range(rows)]


@functools.cache
def vector(name, size):
    return [weight(name, i) for i in range(size)]


def linear(x, name, out, bias=True):
    w = matrix(name + ".weight", out, len(x))
    b = vector(name + ".bias", out) if bias else [0.0] * out
    return [sum(w[o][i] * x[i] for i in range(len(x))) + b[o] for o in range(out)]


def layer_norm(x, name, eps):
    mean = sum(x) / len(x)
    variance = sum((value - mean) ** 2 for value in x) / len(x)
    g, b = vector(name + ".weight", len(x)), vector(name + ".bias", len(x))
    return [(value - mean) / math.sqrt(variance + eps) * g[i] + b[i] for i, value in enumerate(x)]


def softmax(logits):
    top = max(logits)
    powers = [math.exp(value - top) for value in logits]
    return [power / sum(powers) for power in powers]


def activation(kind, x):
    return max(x, 0.0) if kind == "relu" else 0.5 * x * (1 + math.erf(x / math.sqrt(2)))


def input_term(pe, position, config):
    """What a PE adds to the embedding at a position."""
    d, length = config["d_model"], config["max_len"]
    if pe["name"] == "rope_abs" or pe["name"] == "absolute" and pe["form"] == "sinusoidal":
        return sinusoid(length, d)[position]
    if pe["name"] == "random" or pe.get("form") == "learned" or pe.get("input_table"):
        return matrix("pe.table", length, d)[position]
    if pe.get("input_sinusoid"):
        row = sinusoid(length, d)[position]
        return row[0::2] + row[1::2]
    return [0.0] * d


def bias(pe, layer, head, i, j, config):
    """What a PE adds to the logit of query i and key j."""
    if pe["name"] == "alibi":
        slope = (geometric(config["heads"]) if pe["slopes"] == "geometric" else
                 [math.exp(-h / config["heads"]) for h in range(config["heads"])])[head]
        return -slope * abs(i - j)
    if pe.get("form") == "t5":
        bucket = t5_bucket(j - i, config["mask"] == "causal", pe["buckets"], pe["max_distance"])
        return matrix("pe.bias", pe["buckets"], config["heads"])[bucket][head]
    if pe.get("form") == "table":
        table = matrix(f"layers.{layer}.pe.bias", 2 * config["max_len"] - 1, config["heads"])
        return table[j - i + config["max_len"] - 1][head]
    return 0.0


def rotated(x, position, base):
    out = []
    for pair in range(len(x) // 2):
        angle = position * base ** (-2 * pair / len(x))
        z = complex(x[2 * pair], x[2 * pair + 1]) * cmath.exp(1j * angle)
        out += [z.real, z.imag]
    return out


def sliced(x, position, base):
    """The published table of multi-head latent attention, in the order in which that code
    computes."""
    angles = [position * base ** (-2 * t / len(x)) for t in range(len(x) // 2)]
    row = [math.sin(angle) for angle in angles] + [math.cos(angle) for angle in angles]
    sine, cosine = row[0::2], row[1::2]
    even, odd = x[0::2], x[1::2]
    return ([e * c - o * s for e, o, s, c in zip(even, odd, sine, cosine)] +
            [e * s + o * c for e, o, s, c in zip(even, odd, sine, cosine)])


def turned(pe, x, position, head, sign, content):
    """A query (sign 1) or key (sign -1) after the PE's rotation, which leaves latent attention's
    first `content` channels."""
    if pe["name"] == "mla":
        turn = rotated if pe["rotation"] == "rope" else sliced
        return x[:content] + turn(x[content:], position, pe["base"])
    if pe["name"] == "partial_rope":
        chosen = pe["head_list"] if pe["select"] == "list" else range(pe["heads"])
        return rotated(x, position, pe["base"]) if head in chosen else x
    if pe["name"] == "xpos":
        fade = [(2 * (c // 2) + 0.4 * len(x)) / (1.4 * len(x)) for c in range(len(x))]
        return [value * base ** (sign * position / pe["scale_base"])
                for value, base in zip(rotated(x, position, pe["base"]), fade)]
    return rotated(x, position, pe["base"]) if pe["name"] in ("rope", "rope_abs") else x


def shaw(pe, side, layer, i, j, width):
    """The vector that Shaw's PE adds to the key or value at j that the query at i sees."""
    if pe["name"] != "shaw" or side == "value" and not pe["values"]:
        return [0.0] * width
    most = pe["max_distance"]
    return matrix(f"layers.{layer}.pe.{side}", 2 * most + 1,
                  width)[max(-most, min(most, j - i)) + most]


def logit(pe, layer, head, i, j, q, k, config):
    content = config["d_model"] // config["heads"]
    q, k = turned(pe, q, i, head, 1, content), turned(pe, k, j, head, -1, content)
    k = [value + added for value, added in zip(k, shaw(pe, "key", layer, i, j, len(k)))]
    return sum(a * b for a, b in zip(q, k)) / math.sqrt(len(q)) + bias(pe, layer, head, i, j,
                                                                       config)


def rms_norm(x, name):
    size = math.sqrt(sum(value * value for value in x) / len(x) + 1e-6)
    return [value / size * g for value, g in zip(x, vector(name, len(x)))]


def by_head(x, heads):
    width = len(x) // heads
    return [x[head * width:(head + 1) * width] for head in range(heads)]


def projected(pe, name, query_row, source_row, config):
    """Queries, keys and values of one position, by head, before any rotation."""
    d, heads, with_bias = config["d_model"], config["heads"], config["attention_bias"]
    if pe["name"] != "mla":
        return [by_head(linear(row, name + part, d, with_bias), heads)
                for part, row in (("query", query_row), ("key", source_row), ("value", source_row))]
    latent_q = linear(query_row, name + "latent_query", pe["latent"], False)
    latent_kv = linear(source_row, name + "latent_kv", pe["latent"], False)
    if pe["latent_norm"]:
        latent_q, latent_kv = (rms_norm(latent_q, name + "latent_query.norm"),
                               rms_norm(latent_kv, name + "latent_kv.norm"))
    own = heads if pe["rotary_query"] == "per_head" else 1
    rotary_q = by_head(linear(latent_q, name + "rotary_query", own * pe["rotary"], False), own)
    rotary_k = linear(source_row, name + "rotary_key", pe["rotary"], False)
    query = by_head(linear(latent_q, name + "query", d, with_bias), heads)
    key = by_head(linear(latent_kv, name + "key", d, with_bias), heads)
    value = by_head(linear(latent_kv, name + "value", d, with_bias), heads)
    return ([content + rotary_q[head if own > 1 else 0] for head, content in enumerate(query)],
            [content + rotary_k for content in key], value)


def forward(tokens, count, pe, config):
    """The class logits of one sequence with `count` tokens before the padding."""
    d, heads, eps = config["d_model"], config["heads"], config["layer_norm_eps"]
    width, length = d // heads, len(tokens)
    embedding = matrix("embedding.weight", config["vocabulary"], d)
    first = [[e + t for e, t in zip(embedding[token], input_term(pe, place, config))]
             for place, token in enumerate(tokens)]
    x = first
    for layer in range(config["layers"]):
        name = f"layers.{layer}."
        normed = [layer_norm(row, name + "attention.norm", eps) for row in x]
        source = normed if config["kv_source"] == "self" else first
        with_bias = config["attention_bias"]
        q, k, v = zip(*(projected(pe, name + "attention.", *rows, config)
                        for rows in zip(normed, source)))
        middle = []
        for i in range(length):
            keys = [j for j in range(length) if (j <= i or config["mask"] == "none") and
                    (j < count or config["key_padding"] == "attended")]
            joined = []
            for head in range(heads):
                shares = softmax([logit(pe, layer, head, i, j, q[i][head], k[j][head], config)
                                  for j in keys])
                seen = [[a + b for a, b in zip(v[j][head], shaw(pe, "value", layer, i, j, width))]
                        for j in keys]
                joined += [sum(share * value[c] for share, value in zip(shares, seen))
                           for c in range(width)]
            out = linear(joined, name + "attention.output", d, with_bias)
            middle.append([a + b for a, b in zip(x[i], out)])
        x = []
        for row in middle:
            inner = linear(layer_norm(row, name + "ffn.norm", eps), name + "ffn.in", config["d_ff"])
            out = linear([activation(config["activation"], value) for value in inner],
                         name + "ffn.out", d)
            x.append([a + b for a, b in zip(row, out)])
    if config["final_norm"]:
        x = [layer_norm(row, "final_norm", eps) for row in x]
    if config["readout"] == "last":
        pooled = x[count - 1]
    else:
        over = x if config["readout"] == "mean" else x[:count]
        pooled = [sum(row[c] for row in over) / len(over) for c in range(d)]
    return linear(pooled, "head", config["classes"])


def forward_case(pe, config, padded):
    tokens = PADDED if padded else FULL
    lengths = PADDED_LENGTHS if padded else [len(row) for row in tokens]
    return {"pe": pe, "config": config, "tokens": tokens, "lengths": lengths, "padded": padded,
            "logits": [forward(row, count, pe, config) for row, count in zip(tokens, lengths)]}


CAUSAL_ONLY = {"xpos"}  # encodings without a bidirectional form


def forward_cases():
    for pe in PES + MLAS:
        causal_only = {"mask": "causal"} if pe["name"] in CAUSAL_ONLY else {}
        yield forward_case(pe, {**SIZE, **CLEAN}, True)
        yield forward_case(pe, {**SIZE, **PUBLISHED, **causal_only}, True)
        yield forward_case(pe, {**SIZE, **CLEAN, "readout": "last"}, False)
    yield forward_case(AUTHORS_MLA, {**SIZE, **PUBLISHED_MLA}, True)
    yield forward_case(MLA, {**SIZE, **CLEAN, "readout": "last", "kv_source": "input"}, False)
    yield forward_case(MLA, {**SIZE, **CLEAN, "heads": 6}, True)
    rope = next(pe for pe in PES if pe["name"] == "rope")
    for change in ({"readout": "last"}, {"readout": "mean"}, {"mask": "none"},
                   {"key_padding": "attended"}, {"kv_source": "input"}, {"final_norm": False},
                   {"activation": "gelu"}, {"attention_bias": False},
                   {"layers": 1, "heads": 1}, {"heads": 6}):
        yield forward_case(rope, {**SIZE, **CLEAN, **change}, True)
    for change in ({"kv_source": "input"}, {"mask": "none"}, {"final_norm": False}, {"layers": 1}):
        yield forward_case(rope, {**SIZE, **CLEAN, "readout": "last", **change}, False)


def pe_case(pe, mask):
    config = {**SIZE, **CLEAN, "mask": mask}
    length, heads, width = 6, config["heads"], config["d_model"] // config["heads"]

    def piece(name, place, head):
        return [weight(name, (place * heads + head) * width + c) for c in range(width)]
    return {"pe": pe, "config": config, "length": length,
            "input_term": [input_term(pe, t, config) for t in range(length)],
            "logits": [[[[logit(pe, layer, head, i, j, piece("query", i, head),
                                piece("key", j, head), config)
                          for j in range(length)] for i in range(length)] for head in range(heads)]
                       for layer in range(config["layers"])]}


def compute():
    return {"pe": [pe_case(pe, mask) for pe in PES for mask in ("causal", "none")
                   if pe["name"] not in CAUSAL_ONLY or mask == "causal"],
            "forward": list(forward_cases())}


if __name__ == "__main__":
    sys.exit(golden.main(compute, __doc__))
