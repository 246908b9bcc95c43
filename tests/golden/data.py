#!/usr/bin/env python3
"""Whole small data sets and their fingerprints, generated anew from the definitions (Python's
standard library only).

    data.py --check data.json    recompute and compare; exit 1 where something differs
    data.py --write data.json    recompute and write

The random numbers are Philox4x32-10 (Salmon et al. 2011) at (data_seed, purpose, example), as
core/base/random.h documents.
"""
import hashlib
import struct
import sys

import golden

M64 = (1 << 64) - 1


def mix(value):
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & M64
    value = (value ^ value >> 27) * 0x94D049BB133111EB & M64
    return value ^ value >> 31


def purpose_id(name):
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = (value ^ byte) * 0x100000001B3 & M64
    return value


class Random:
    def __init__(self, seed, purpose, stream=0):
        self.key = mix(mix(seed + 0x9E3779B97F4A7C15 & M64) ^ purpose_id(purpose))
        self.stream, self.index = stream, 0

    def next(self):
        index, self.index = self.index, self.index + 1
        a, b = index >> 1 & 0xFFFFFFFF, index >> 33 & 0xFFFFFFFF
        c, d = self.stream & 0xFFFFFFFF, self.stream >> 32
        k, m = self.key & 0xFFFFFFFF, self.key >> 32
        for _ in range(10):
            p, q = 0xD2511F53 * a, 0xCD9E8D57 * c
            a, b, c, d = (q >> 32) ^ b ^ k, q & 0xFFFFFFFF, (p >> 32) ^ d ^ m, p & 0xFFFFFFFF
            k, m = k + 0x9E3779B9 & 0xFFFFFFFF, m + 0xBB67AE85 & 0xFFFFFFFF
        return (c << 32 | d) if index & 1 else (a << 32 | b)

    def below(self, bound):
        """Lemire 2019: the high half of a product, rejected where the low half would make it
        uneven."""
        while True:
            product = (self.next() >> 32) * bound
            if product & 0xFFFFFFFF >= (1 << 32) % bound:
                return product >> 32


def choose(seed, purpose, vocabulary, count):
    pool, random = list(range(5, vocabulary)), Random(seed, purpose)
    for i in range(count):
        j = i + random.below(len(pool) - i)
        pool[i], pool[j] = pool[j], pool[i]
    return pool[:count]


def start_place(spec, part, distance, first, count, random):
    """Held out: of each distance (cells), or of all together (starts), some places are the test
    set's alone, the others the training set's."""
    if spec["split"] in ("disjoint", "random"):
        return first + random.below(count)
    stream = distance if spec["split"] == "held_out_cells" else 0
    held = min(max(int(spec["held_out_fraction"] * count + 0.5), 1), count - 1)
    places, shuffle = (list(range(first, first + count)),
                       Random(spec["data_seed"], "distance/held_out", stream))
    for i in range(held):
        j = i + shuffle.below(count - i)
        places[i], places[j] = places[j], places[i]
    mine = places[:held] if part == "data/test" else places[held:]
    return mine[random.below(len(mine))]


def distance_clean(spec, part, random, triggers):
    fillers = [word for word in range(5, spec["vocabulary"]) if word not in triggers]
    distance = 1 + random.below(spec["max_distance"])
    start = start_place(spec, part, distance, 0, spec["length"] - spec["max_distance"], random)
    tokens = [fillers[random.below(len(fillers))] for _ in range(spec["length"])]
    tokens[start], tokens[start + distance] = triggers
    return tokens, distance - 1


def distance_published(spec, part, random, triggers):
    gap = 1 + random.below(spec["max_gap"])
    left = start_place(spec, part, gap, 1, spec["max_segment"], random)
    right = 1 + random.below(spec["max_segment"])

    def segment(count):
        pool = list(range(5, spec["vocabulary"]))
        for i in range(count):
            j = i + random.below(len(pool) - i)
            pool[i], pool[j] = pool[j], pool[i]
        return pool[:count]

    first = segment(left)
    middle = segment(gap)
    tokens = first + [triggers[0]] + middle + [triggers[1]] + segment(right)
    return tokens[:spec["truncate"]], gap + 1


def counting(spec, _, random, triggers):
    fillers = [word for word in range(5, spec["vocabulary"]) if word not in triggers]
    content = spec["length"] if spec["definition"] == "clean" else spec["content_length"]
    count = wanted = random.below(spec["max_count"] + 1)
    tokens = []
    for place in range(content):
        take = random.below(content - place) < wanted
        pool = triggers if take else fillers
        tokens.append(pool[random.below(len(pool))])
        wanted -= take
    return tokens, count


def generate(spec):
    """Rows of (tokens without padding, label), training part first."""
    unique = spec["task"] == "distance" and spec["definition"] == "published"
    draw = (counting if spec["task"] == "counting" else distance_published if unique
            else distance_clean)
    triggers = choose(spec["data_seed"], f"{spec['task']}/triggers", spec["vocabulary"],
                      spec["triggers"] if spec["task"] == "counting" else 2)
    rows, taken = [], set()

    def append(purpose, count, refuse, remember):
        for i in range(count):
            attempt = 0
            while True:
                tokens, label = draw(spec, purpose, Random(spec["data_seed"], purpose,
                                                           (attempt << 40) + i), triggers)
                attempt += 1
                if not refuse or tuple(tokens) not in taken:
                    break
            if remember:
                taken.add(tuple(tokens))
            rows.append((tokens, label))

    if spec["split"] != "random":
        append("data/train", spec["train_examples"], unique, True)
        append("data/test", spec["test_examples"], True, unique)
    else:
        append("data/pool", spec["train_examples"] + spec["test_examples"], unique, unique)
        order, random = list(range(len(rows))), Random(42, "data/split")
        for i in range(len(order), 1, -1):
            j = random.below(i)
            order[i - 1], order[j] = order[j], order[i - 1]
        rows = [rows[i] for i in order]
    return rows, triggers


def fingerprint(spec, rows):
    digest = hashlib.sha256(struct.pack("<qq", spec["length"], spec["train_examples"]))
    for tokens, _ in rows:
        digest.update(struct.pack(f"<{spec['length']}i", *tokens,
                                  *[0] * (spec["length"] - len(tokens))))
    digest.update(struct.pack(f"<{len(rows)}i", *[len(tokens) for tokens, _ in rows]))
    digest.update(struct.pack(f"<{len(rows)}i", *[label for _, label in rows]))
    return digest.hexdigest()


def cases():
    sizes = {"vocabulary": 40, "train_examples": 60, "test_examples": 20}
    clean = {"task": "distance", "definition": "clean", "split": "disjoint", "length": 16,
             "max_distance": 8, **sizes}
    published = {"task": "distance", "definition": "published", "split": "random", "length": 32,
                 "max_segment": 6, "max_gap": 16, "truncate": 30, **sizes}
    count = {"task": "counting", "definition": "clean", "split": "disjoint", "length": 16,
             "triggers": 6, "max_count": 12, **sizes}
    yield {**clean, "data_seed": 0}
    yield {**clean, "data_seed": 2**53 - 1}
    # many draws repeat
    yield {**clean, "data_seed": 5, "length": 4, "max_distance": 2, "vocabulary": 12,
           "test_examples": 40}
    yield {**clean, "data_seed": 1, "split": "random"}
    yield {**published, "data_seed": 0}
    yield {**published, "data_seed": 7, "split": "disjoint"}
    # many draws repeat
    yield {**published, "data_seed": 3, "max_segment": 1, "max_gap": 2, "vocabulary": 11}
    held_out = {"split": "held_out_cells", "held_out_fraction": 0.3}
    yield {**clean, "data_seed": 6, **held_out}
    yield {**published, "data_seed": 6, **held_out}
    yield {**clean, "data_seed": 9, **held_out, "split": "held_out_starts"}
    yield {**published, "data_seed": 9, **held_out, "split": "held_out_starts"}
    # as few as can be
    yield {**published, "data_seed": 8, **held_out, "max_segment": 2, "max_gap": 3,
           "vocabulary": 11}
    yield {**count, "data_seed": 0}
    yield {**count, "data_seed": 4, "split": "random"}
    yield {**count, "data_seed": 2, "definition": "published", "content_length": 14}


def compute():
    out = []
    for spec in cases():
        rows, triggers = generate(spec)
        out.append({"spec": spec, "triggers": triggers, "first": rows[0][0], "label": rows[0][1],
                    "data_sha256": fingerprint(spec, rows)})
    return out


if __name__ == "__main__":
    sys.exit(golden.main(compute, __doc__))
