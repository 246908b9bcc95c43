#!/usr/bin/env python3
"""The numbers behind the positional encodings, from their papers (Python's standard library only).

    pe_tables.py --check pe_tables.json    recompute and compare; exit 1 where something differs
    pe_tables.py --write pe_tables.json    recompute and write
"""
import cmath
import math
import sys

import golden


def t5_bucket(relative, causal, buckets, max_distance):
    """Raffel et al. 2020: distances below half of the buckets have their own; above, bucket n + k
    holds the distances from exact * (max/exact)^(k/n) on. In whole numbers: (d/exact)^n >=
    (max/exact)^k."""
    side = 0
    if causal:
        distance = -relative if relative < 0 else 0
    else:
        buckets //= 2
        side = buckets if relative > 0 else 0
        distance = abs(relative)
    exact = buckets // 2
    if distance < exact:
        return side + distance
    n = buckets - exact
    k = 0
    while k < n - 1 and distance**n * exact**(k + 1) >= exact**n * max_distance**(k + 1):
        k += 1
    return side + exact + k


def t5_cases():
    for causal, buckets, max_distance in [(True, 32, 128), (False, 32, 128), (True, 16, 32),
                                          (False, 16, 64), (True, 8, 20)]:
        relatives = list(range(-200, 201))
        yield {"causal": causal, "buckets": buckets, "max_distance": max_distance, "first": -200,
               "bucket": [t5_bucket(r, causal, buckets, max_distance) for r in relatives]}


def geometric(heads):
    """Press et al. 2022, section 3: a geometric sequence whose start and ratio are 2^(-8/n); for
    other head counts the sequence of the next lower power of two, filled up with every other slope
    of twice that many heads."""
    lower = 2 ** int(math.log2(heads))
    start = 2 ** (-8 / lower)
    slopes = [start ** (h + 1) for h in range(lower)]
    finer = [2 ** (-8 * (h + 1) / (2 * lower)) for h in range(2 * lower)]
    return slopes + finer[0::2][:heads - lower]


def slope_cases():
    for heads in (1, 2, 3, 4, 6, 8, 12, 16, 20, 32):
        yield {"heads": heads, "geometric": geometric(heads),
               "exponential": [math.exp(-h / heads) for h in range(heads)]}


def sinusoid(length, width):
    """Vaswani et al. 2017, section 3.5, in its own indices: PE(t, 2i) = sin, PE(t, 2i + 1) = cos of
    t / 10000^(2i/width)."""
    rows = []
    for t in range(length):
        rows.append([math.sin(t / 10000 ** (c / width)) if c % 2 == 0
                     else math.cos(t / 10000 ** ((c - 1) / width)) for c in range(width)])
    return rows


def sinusoid_cases():
    for length, width in ((5, 8), (3, 6), (130, 4)):
        rows = sinusoid(length, width)
        yield {"length": length, "width": width, "interleaved": rows,
               "half_split": [row[0::2] + row[1::2] for row in rows]}


def rope_cases():
    """Su et al. 2021, section 3.2: angles, and q.k after both were turned, by complex
    multiplication."""
    for width, base in ((4, 10000.0), (16, 10000.0), (6, 500.0)):
        theta = [base ** (-2 * t / width) for t in range(width // 2)]
        q = [complex(0.3 + 0.1 * t, -0.7 + 0.2 * t) for t in range(width // 2)]
        k = [complex(-0.5 + 0.3 * t, 0.4 - 0.1 * t) for t in range(width // 2)]
        logits = [[sum((a * cmath.exp(1j * i * f) * (b * cmath.exp(1j * j * f)).conjugate()).real
                       for a, b, f in zip(q, k, theta)) for j in range(7)] for i in range(7)]
        yield {"width": width, "base": base, "frequencies": theta,
               "query": [x for z in q for x in (z.real, z.imag)],
               "key": [x for z in k for x in (z.real, z.imag)], "logits": logits}


def table_cases():
    """Row of the published relative table: one for each signed distance j - i, the most negative
    first."""
    for max_len, length in ((6, 6), (9, 5)):
        yield {"max_len": max_len, "length": length,
               "row": [[sorted(range(1 - max_len, max_len)).index(j - i) for j in range(length)]
                       for i in range(length)]}


def turn_cases():
    """Factors of pairs: rotations; the published table for multi-head latent attention, whose rows
    [sin … | cos …] are cut by even and odd places; xPos's bases (Sun et al. 2023, gamma 0.4)."""
    for length, width, base in ((5, 16, 10000.0), (4, 6, 50.0), (3, 2, 10000.0)):
        theta = [base ** (-2 * t / width) for t in range(width // 2)]
        rotary = [[[math.cos(p * f), math.sin(p * f)] for f in theta] for p in range(length)]
        sliced = []
        for p in range(length):
            row = [math.sin(p * f) for f in theta] + [math.cos(p * f) for f in theta]
            sliced.append([[cosine, sine] for sine, cosine in zip(row[0::2], row[1::2])])
        yield {"length": length, "width": width, "base": base, "rotary": rotary, "sliced": sliced,
               "xpos": [(channel + 0.4 * width) / (1.4 * width) for channel in range(0, width, 2)]}


def compute():
    return {"t5": list(t5_cases()), "slopes": list(slope_cases()),
            "sinusoid": list(sinusoid_cases()),
            "rope": list(rope_cases()), "table": list(table_cases()),
            "turns": list(turn_cases())}


if __name__ == "__main__":
    sys.exit(golden.main(compute, __doc__))
