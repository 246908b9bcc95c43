"""The least work of a training step: the arithmetic of its products, and its passes over memory.

The passes assume that all work between two products is fused into one pass, and that attention
stores no scores. A pass reads each of its tensors once and writes each of its tensors once; no data
remain in a cache from one pass to the next.
Letters: R rows (batch times positions), D width, F inner width, T positions, H heads."""

import collections

# Flop and bytes of one pass; `times` per step.
Pass = collections.namedtuple("Pass", "name times flop bytes")


def arithmetic(spec, batch, length):
    """FLOP of a step: only matrix products; the backward pass has twice as many as the forward."""
    model, pe = spec["model"], spec["pe"]
    d, positions = model["d_model"], batch * length
    width = d
    projections = 4 * d * d
    if pe["name"] == "mla":
        latent, rotary, heads = pe["latent"], pe["rotary"], model["heads"]
        queries = 1 if pe["rotary_query"] == "shared" else heads
        projections = (2 * d * latent + 3 * latent * d + rotary * d + queries * rotary * latent
                       + d * d)
        width = d + heads * rotary
    attention = 2 * positions * length * (width + d)
    return 3 * model["layers"] * (2 * positions * (projections + 2 * d * model["d_ff"]) + attention)


def linears(spec):
    """(name, in, out) of a layer's products with weights."""
    model, pe = spec["model"], spec["pe"]
    d = model["d_model"]
    if pe["name"] == "mla":
        latent, rotary = pe["latent"], pe["rotary"]
        queries = 1 if pe["rotary_query"] == "shared" else model["heads"]
        found = [("down, keys and values", d, latent), ("down, queries", d, latent),
                 ("up, keys and values", latent, 2 * d), ("up, queries", latent, d),
                 ("rotary key", d, rotary), ("rotary query", latent, queries * rotary)]
    elif model["kv_source"] == "self":
        found = [("queries, keys, values", d, 3 * d)]
    else:
        found = [("queries", d, d), ("keys, values", d, 2 * d)]
    return found + [("attention's output", d, d), ("feed-forward in", d, model["d_ff"]),
                    ("feed-forward out", model["d_ff"], d)]


def passes(spec, batch, length, element, parameters):
    """The step's passes.

    `element` is the size in bytes of elements stored between passes. Gradients of weights, and
    AdamW's tensors, have four bytes.
    """
    model, pe = spec["model"], spec["pe"]
    layers, d, f, heads, rows = (model["layers"], model["d_model"], model["d_ff"], model["heads"],
                                 batch * length)
    row = rows * element
    found = []
    for name, into, out in linears(spec):
        flop = 2 * rows * into * out
        found += [Pass(f"{name}: product", layers, flop, (into + out) * row + into * out * element),
                  Pass(f"{name}: to its input", layers, flop,
                       (into + out) * row + into * out * element),
                  Pass(f"{name}: to its weight", layers, flop, (into + out) * row + into * out * 4)]
    width, normed = d, 0
    if pe["name"] == "mla":
        width, normed = d + heads * pe["rotary"], 2 * pe["latent"] if pe["latent_norm"] else 0
    attention, statistics = 2 * rows * length * (width + d), 4 * rows * heads
    found += [
        Pass("attention: q, k, v to o", layers, attention, (2 * width + 2 * d) * row + statistics),
        Pass("attention: q, k, v, do to dq, dk, dv", layers, 2 * attention,
             (4 * width + 3 * d) * row + statistics),
        Pass("bias, dropout, residual, norm: x, z to y, n", 2 * layers, 0, 4 * d * row + 8 * rows),
        Pass("… backward: dy, dn, y to dx, dz", 2 * layers, 0, 5 * d * row + 8 * rows),
        Pass("bias, activation: h to a", layers, 0, 2 * f * row),
        Pass("… backward: h, da to dh", layers, 0, 3 * f * row),
        Pass("embedding and its gradient", 1, 0, 2 * d * row + 8 * rows),
        Pass("AdamW: p, g, m, v to p, m, v, and g cleared", 1, 0,
             8 * 4 * parameters + (element if element < 4 else 0) * parameters),
    ]
    if normed:
        found += [Pass("latents' norm", layers, 0, 2 * normed * row),
                  Pass("… backward", layers, 0, 3 * normed * row)]
    return found


def total(listed):
    """(FLOP, bytes) of a step."""
    return sum(p.times * p.flop for p in listed), sum(p.times * p.bytes for p in listed)


def seconds(listed, flops_per_s, bytes_per_s):
    """Two floors of the step, at the device's ceilings.

    In the first, the whole arithmetic and the whole traffic overlap perfectly. In the second they
    overlap only within a pass, and passes follow one another.
    """
    flop, moved = total(listed)
    by_pass = sum(p.times * max(p.flop / flops_per_s, p.bytes / bytes_per_s) for p in listed)
    return {"floor_s": max(flop / flops_per_s, moved / bytes_per_s), "by_pass_s": by_pass,
            "flop": flop, "bytes": moved}


def table(listed):
    lines = [f"  {p.times:3} x {p.flop / 1e9:10.1f} GFLOP {p.bytes / 1e9:8.3f} GB  {p.name}"
             for p in listed]
    flop, moved = total(listed)
    return "\n".join(lines + [f"  a step: {flop / 1e12:.3f} TFLOP, {moved / 1e9:.2f} GB"])
