"""The parameters before the first step, of every encoding."""
import math

import numpy as np

from repeated.random_numbers import Walk


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
            put(f"{at}attention.rotary_query.weight", (rows, source), "uniform",
                1 / math.sqrt(source))
        if pe["name"] == "shaw":
            for name in ("key", "value")[:1 + pe["values"]]:
                put(f"{at}pe.{name}", (2 * pe["max_distance"] + 1, d // heads), "normal",
                    pe["init_std"])
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
