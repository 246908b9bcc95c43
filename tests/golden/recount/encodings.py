"""What a positional encoding adds to the input, does to queries and keys, and adds to logits and
values. In float64.

B batch, T positions, H heads, d = D/H, i query, j key. Sources: Vaswani et al. 2017 (sinusoid),
Shaw et al. 2018, Raffel et al. 2020 (T5 buckets), Press et al. 2022 (ALiBi), Su et al. 2021 (RoPE),
Sun et al. 2022 (xPos), arXiv 2505.13027.
"""
import math

import numpy as np


def sinusoid(length, width):
    """(length, width): sin(t / 10000^(2c/width)) at place 2c, its cosine at 2c + 1."""
    angles = np.arange(length)[:, None] * 10000.0 ** (-2 * np.arange((width + 1) // 2) / width)
    return np.stack([np.sin(angles), np.cos(angles)], axis=2).reshape(length, -1)[:, :width]


def angles(length, width, base):
    """(length, width/2): what channel pair t turns by at each position."""
    return np.arange(length)[:, None] * base ** (-2.0 * np.arange(width // 2) / width)


def rotated(x, base):
    """(..., T, w), channels 2t and 2t+1 as the parts of a complex number times e^(i p
    base^(-2t/w))."""
    turned = (x[..., 0::2] + 1j * x[..., 1::2]) * np.exp(1j * angles(*x.shape[-2:], base))
    return np.stack([turned.real, turned.imag], axis=-1).reshape(x.shape)


def sliced(x, base):
    """The authors' table for latent attention: its row [sines | cosines] is read at even places as
    sines, odd as cosines."""
    phase = angles(*x.shape[-2:], base)
    row = np.concatenate([np.sin(phase), np.cos(phase)], axis=1)
    sine, cosine, even, odd = row[:, 0::2], row[:, 1::2], x[..., 0::2], x[..., 1::2]
    return np.concatenate([even * cosine - odd * sine, even * sine + odd * cosine], axis=-1)


def geometric_slopes(heads):
    if heads & (heads - 1) == 0:
        return [2.0 ** (-8 * (h + 1) / heads) for h in range(heads)]
    lower = 1 << heads.bit_length() - 1
    return geometric_slopes(lower) + geometric_slopes(2 * lower)[0::2][:heads - lower]


def t5_bucket(offset, causal, buckets, max_distance):
    """The bucket of key minus query. Whole numbers: floor(n ln(a/exact)/ln(max/exact)) >= k as
    (a/exact)^n >= (max/exact)^k."""
    first, distance = 0, max(-offset, 0)
    if not causal:
        buckets //= 2
        first, distance = (buckets if offset > 0 else 0), abs(offset)
    exact = buckets // 2
    if distance < exact:
        return first + distance
    n = buckets - exact
    k = sum(distance ** n * exact ** k >= max_distance ** k * exact ** n for k in range(1, n))
    return first + exact + k


class Encoding:
    """The encoding of one job. `tensors` are the kept weights in float64."""

    def __init__(self, spec, tensors):
        self.pe, self.model, self.tensors = spec["pe"], spec["model"], tensors
        self.name = self.pe["name"]
        if self.name not in ("nope", "absolute", "random", "relative", "shaw", "alibi", "rope",
                             "xpos", "partial_rope", "rope_abs", "mla"):
            raise ValueError(f"pe {self.name!r} is none that this script knows")

    def input_term(self, length):
        """(T, D) or 0."""
        width = self.model["d_model"]
        if "pe.table" in self.tensors:  # random, absolute learned, mla's input table
            return self.tensors["pe.table"][:length]
        if self.name == "rope_abs" or self.name == "absolute":
            return sinusoid(length, width)
        if self.pe.get("input_sinusoid"):  # all sines, then all cosines
            table = sinusoid(length, width)
            return np.concatenate([table[:, 0::2], table[:, 1::2]], axis=1)
        return 0.0

    def turn(self, x, side):
        """Queries (side 1) or keys (side -1), (B, H, T, w), with their positions."""
        if self.name in ("rope", "rope_abs"):
            return rotated(x, self.pe["base"])
        if self.name == "partial_rope":
            chosen = (range(self.pe["heads"]) if self.pe["select"] == "first"
                      else self.pe["head_list"])
            chosen = list(chosen)
            out = x.copy()
            out[:, chosen] = rotated(x[:, chosen], self.pe["base"])
            return out
        if self.name == "xpos":
            length, width = x.shape[-2:]
            pair = np.repeat(np.arange(0, width, 2), 2)
            fade = (pair + 0.4 * width) / (1.4 * width)
            powers = side * np.arange(length)[:, None] / self.pe["scale_base"]
            return rotated(x, self.pe["base"]) * fade ** powers
        if self.name == "mla":
            content = self.model["d_model"] // self.model["heads"]
            turn = rotated if self.pe["rotation"] == "rope" else sliced
            return np.concatenate([x[..., :content], turn(x[..., content:], self.pe["base"])],
                                  axis=-1)
        return x

    def bias(self, layer, length):
        """(H, T, T), added to the logits, or 0."""
        heads, place = self.model["heads"], np.arange(length)
        offset = place[None, :] - place[:, None]  # key minus query
        if self.name == "alibi":
            slopes = (geometric_slopes(heads) if self.pe["slopes"] == "geometric" else
                      [math.exp(-h / heads) for h in range(heads)])
            return -np.array(slopes)[:, None, None] * np.abs(offset)
        if self.name == "relative" and self.pe["form"] == "table":
            rows = offset + self.model["max_len"] - 1
            return self.tensors[f"layers.{layer}.pe.bias"][rows].transpose(2, 0, 1)
        if self.name == "relative":
            causal = self.model["mask"] == "causal"
            buckets = {int(o): t5_bucket(int(o), causal, self.pe["buckets"],
                                         self.pe["max_distance"]) for o in np.unique(offset)}
            return self.tensors["pe.bias"][np.vectorize(buckets.get)(offset)].transpose(2, 0, 1)
        return 0.0

    def added(self, side, layer, length):
        """(T, T, d): what is added to the key or value at j that the query at i sees; None for
        nothing."""
        if self.name != "shaw" or side == "value" and not self.pe["values"]:
            return None
        most, place = self.pe["max_distance"], np.arange(length)
        rows = np.clip(place[None, :] - place[:, None], -most, most) + most
        return self.tensors[f"layers.{layer}.pe.{side}"][rows]
