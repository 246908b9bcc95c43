#!/usr/bin/env python3
"""What can be had at most, and from parts of the input alone, on both tasks at the paper's size.
Needs numpy.

    ceilings.py                            prints the ceilings
    ceilings.py --trainer PELAB-TRAINER    also generates data and holds the same rules' accuracies
                                           against them; exit 1 where one is off by more than 4.5
                                           standard errors

Published definition: L, R uniform in 1 … 25, gap M uniform in 1 … 70, W = 569 words; sequence = L
different words, w1, M different words, w2, R different words, cut to 120. Triggers are words too,
so they recur in the segments.

  length       From the length n = L + M + R + 2 alone: (1/70) sum over n of max over M of P(L + R =
               n - 2 - M). That is a triangle with its top, 25/625, at L + R = 26: 70 lengths have a
               gap at the top, at either end one climbs or descends the side, 1 + … + 24 of 625. (70
               * 25 + 2 * 300) / (70 * 625) = 5.37 %. Cutting merges lengths 120, 121 and 122, whose
               best gap is the same.
  outermost    First w1 to last w2. Right where the left segment lacks w1 and the right one lacks
               w2: a segment of s of W words lacks a word with probability 1 - s/W, so (1 - 13/W)^2.
               (Else the distance found is too large. Cutting drops a last word that could mislead
               in under 0.001 %.)
  next         First w1 to the next w2. Left lacks w1, middle lacks w2: (1 - 13/W)(1 - 35.5/W);
               where w1 recurs on the left another pair may have the same distance by chance, at
               most 13/W * 1/W more.
  first        First w1 to the first w2 anywhere: the left segment lacks both, the middle lacks w2:
               (1 - 35.5/W) E[(W - L)(W - L - 1)] / (W (W - 1)); by chance at most 13/W * 1/W more.
  bayes        Any (p, q) with w1 at p and w2 at q, allowed L = p, M = q - p - 1, R = n - q - 1 and
               no word twice in a segment is possible, with likelihood 1 / ((W)_L (W)_M (W)_R),
               (W)_s = W (W-1) … (W-s+1). The rule takes the gap with the largest sum; its accuracy
               is the mean of the largest posterior, over sequences drawn here.

Clean definition, T = 128, D = 70: start uniform in 0 … 57, distance uniform in 1 … 70, both seen
once.

  second       From the second trigger's place q alone: each of the 58 * 70 cells of start and
               distance is as likely, and each of the 127 places of q is worth one cell: 127/4060 =
               3.13 %. (First place alone: 1/70.)
  pair         From both places: 100 %.

Counting, n = 128 tokens before padding, C = 100: the count uniform in 0 … C, the triggers at places
drawn without replacement. Published: n = 120, and class 0 is not scored, so the count is 1 … C.

  place        Whether one place has a trigger: with one, which has the probability count/n, the
               likeliest count is C; without one it is the smallest count c. (C/n + 1 - c/n) over
               the number of counts.
"""
import argparse
import functools
import math
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from preloaded import Preloaded  # noqa: E402
from recount import stored  # noqa: E402

WORDS, SEGMENT, GAP, CUT = 569, 25, 70, 120
LENGTH, DISTANCE = 128, 70
COUNT, PUBLISHED_CONTENT = 100, 120
SAMPLES, BATCH = 100_000, 5_000
LOG_FALLING = np.concatenate([[0.0], np.cumsum(np.log(WORDS - np.arange(GAP)))])  # [s]: ln (W)_s


@functools.cache
def best_gap_of_length():
    """{n: (the likeliest gap, its probability jointly with n)}."""
    joint = {}
    for left in range(1, SEGMENT + 1):
        for right in range(1, SEGMENT + 1):
            for gap in range(1, GAP + 1):
                gaps = joint.setdefault(min(left + gap + right + 2, CUT), {})
                gaps[gap] = gaps.get(gap, 0) + 1 / (SEGMENT**2 * GAP)
    return {n: max(gaps.items(), key=lambda item: (item[1], -item[0])) for n, gaps in joint.items()}


def best_distance_of_second():
    """{q: a likeliest distance}."""
    return {start + distance: distance for start in range(LENGTH - DISTANCE)
            for distance in range(1, DISTANCE + 1)}


def different(words):
    return len(set(words)) == len(words)


def occurrences(row, word, end):
    """The places before `end` of a word in a row of words."""
    found, at = [], -1
    for _ in range(row[:end].count(word)):
        at = row.index(word, at + 1)
        found.append(at)
    return found


def posterior(row, first, second):
    """{gap: probability} of a published sequence, given its two triggers."""
    n = len(row)
    places = [p for p in occurrences(row, first, min(SEGMENT + 1, n)) if p and different(row[:p])]
    ends = [q for q in occurrences(row, second, n)
            if n - q - 1 <= SEGMENT and (q < n - 1 or n == CUT) and different(row[q + 1:])]
    pairs = [(p, q) for p in places for q in ends
             if p + 2 <= q < p + GAP + 2 and different(row[p + 1:q])]
    if len(pairs) == 1:
        return {pairs[0][1] - pairs[0][0] - 1: 1.0}
    logs = []
    for p, q in pairs:
        gap, right = q - p - 1, n - q - 1
        # a cut sequence hides how long the right segment was
        ways = SEGMENT - right + 1 if n == CUT else 1
        logs.append((gap,
                     math.log(ways) - LOG_FALLING[p] - LOG_FALLING[gap] - LOG_FALLING[right]))
    top = max(log for _, log in logs)
    sums = {}
    for gap, log in logs:
        sums[gap] = sums.get(gap, 0) + math.exp(log - top)
    return {gap: value / sum(sums.values()) for gap, value in sums.items()}


def drawn_words(random, count, most):
    """(count, most): in each row different words, drawn as the first steps of a shuffle."""
    words = np.tile(np.arange(WORDS, dtype=np.int16), (count, 1))
    rows = np.arange(count)
    for place in range(most):
        other = random.integers(place, WORDS, count)
        drawn = words[rows, other]
        words[rows, other] = words[:, place]
        words[:, place] = drawn
    return words[:, :most]


def bayes_ceiling():
    """(the ceiling, its standard error), by sequences drawn from the definition."""
    random = np.random.default_rng(20250513)
    found = []
    for _ in range(0, SAMPLES, BATCH):
        sizes = [random.integers(1, most + 1, BATCH) for most in (SEGMENT, GAP, SEGMENT)]
        words = [drawn_words(random, BATCH, most) for most in (SEGMENT, GAP, SEGMENT)]
        shown = [*sizes[:2], np.minimum(sizes[2], CUT - 2 - sizes[0] - sizes[1])]
        recurs = np.zeros(BATCH, bool)
        for segment, size in zip(words, shown):
            recurs |= ((segment <= 1) & (np.arange(segment.shape[1]) < size[:, None])).any(1)
        found.append(np.ones(BATCH))
        for at in np.flatnonzero(recurs):
            left, gap, right = (segment[at, :size[at]] for segment, size in zip(words, shown))
            row = np.concatenate([left, [0], gap, [1], right]).tolist()
            found[-1][at] = max(posterior(row, 0, 1).values())
    found = np.concatenate(found)
    return float(found.mean()), float(found.std() / math.sqrt(SAMPLES))


def ceilings():
    """{name: (accuracy, its uncertainty)}."""
    left, middle = (SEGMENT + 1) / 2, (GAP + 1) / 2
    lacks_both = (sum((WORDS - s) * (WORDS - s - 1)
                      for s in range(1, SEGMENT + 1)) / SEGMENT / (WORDS * (WORDS - 1)))
    chance_pair = left / WORDS / WORDS
    return {"length": (sum(share for _, share in best_gap_of_length().values()), 0.0),
            "outermost": ((1 - left / WORDS) ** 2, 1e-5),
            "next": ((1 - left / WORDS) * (1 - middle / WORDS), chance_pair),
            "first": (lacks_both * (1 - middle / WORDS), chance_pair),
            "bayes": bayes_ceiling(),
            "second": (len(best_distance_of_second()) / (DISTANCE * (LENGTH - DISTANCE)), 0.0),
            "pair": (1.0, 0.0),
            "place": ((COUNT / LENGTH + 1) / (COUNT + 1), 0.0),
            "place, published": ((COUNT / PUBLISHED_CONTENT + 1 - 1 / PUBLISHED_CONTENT) / COUNT,
                                 0.0)}


def generated(trainer, spec):
    """The data of a job. All trainers are forks of one, since loading LibTorch takes long."""
    return stored.make_data(trainer, spec, run=Preloaded.of(trainer).run)


def published_rules(tokens, lengths, triggers, of_length):
    """{name: the gaps that a rule says, one of each row}."""
    place = np.arange(tokens.shape[1])
    one, two = ((tokens == trigger) & (place < lengths[:, None]) for trigger in triggers)
    first_one, first_two = one.argmax(1), two.argmax(1)
    next_two = (two & (place > first_one[:, None])).argmax(1)
    last_two = place[-1] - two[:, ::-1].argmax(1)
    bayes = first_two - first_one - 1
    for row in np.flatnonzero((one.sum(1) > 1) | (two.sum(1) > 1)):
        gaps = posterior(tokens[row, :lengths[row]].tolist(), *triggers)
        bayes[row] = max(gaps.items(), key=lambda item: item[1])[0]
    return {"length": np.array([of_length[length][0] for length in lengths.tolist()]),
            "outermost": last_two - first_one - 1, "next": next_two - first_one - 1,
            "first": first_two - first_one - 1, "bayes": bayes}


def clean_rules(tokens, lengths, triggers, of_second):
    """As published_rules, for distances; every row is full."""
    first, second = ((tokens == trigger).argmax(1) for trigger in triggers)
    return {"second": np.array([of_second[place] for place in second.tolist()]),
            "pair": second - first}


def counting_accuracy(trainer, definition):
    """(accuracy of the rule from one place on generated data, scored examples)."""
    own = {} if definition == "clean" else {"content_length": PUBLISHED_CONTENT}
    least = 0 if definition == "clean" else 1
    spec = job(definition)
    spec["task"] = {"name": "counting", "version": 1, "definition": definition, "data_seed": 11,
                    "label_space": "exact", "length": LENGTH, "max_count": COUNT, "triggers": 30,
                    "scored_classes": "all" if least == 0 else "nonzero", "split": "disjoint",
                    "vocabulary": WORDS + 5, "train_examples": 35000, "test_examples": 15000, **own}
    data, _ = generated(trainer, spec)
    said = np.where(np.isin(data.tokens[:, 0], data.triggers), COUNT, least)
    right = said == data.classes  # exact label space: a class is a count
    return float(right[data.scored].mean()), int(data.scored.sum())


def task(definition):
    common = {"name": "distance", "version": 1, "definition": definition, "data_seed": 11,
              "label_space": "exact", "length": LENGTH, "scored_classes": "all",
              "split": "disjoint", "vocabulary": WORDS + 5, "train_examples": 70000,
              "test_examples": 30000}
    own = {"max_distance": DISTANCE} if definition == "clean" else {"max_segment": SEGMENT,
                                                                    "max_gap": GAP, "truncate": CUT}
    return {**common, **own}


def job(definition):
    """A whole job, since a data set is a job's; only its task counts here."""
    return {"format": 1, "seed": 11, "pe": {"name": "nope", "version": 1}, "task": task(definition),
            "model": {"activation": "relu", "attention_bias": True, "d_ff": 512, "d_model": 256,
                      "dropout": 0.1, "dropout_sites": ["attention", "output", "ffn"],
                      "final_norm": True, "heads": 16, "key_padding": "masked", "kv_source": "self",
                      "layer_norm_eps": 1e-5, "layers": 6, "mask": "causal",
                      "max_len": LENGTH, "readout": "masked_mean"},
            "train": {"batch_size": 512, "beta1": 0.98, "beta2": 0.9, "epochs": 1, "epsilon": 1e-8,
                      "lr": 1e-4,
                      "schedule": "cosine", "warmup_fraction": 0.06, "weight_decay": 1e-5}}


def measure(trainer):
    """{name: (accuracy on generated data, examples)}."""
    found = {}
    for definition, rules, table in (("published", published_rules, best_gap_of_length()),
                                     ("clean", clean_rules, best_distance_of_second())):
        data, _ = generated(trainer, job(definition))
        for name, said in rules(data.tokens, data.lengths, data.triggers, table).items():
            # Exact label space: class 0 is the smallest gap or distance, 1.
            found[name] = float((said == data.classes + 1).mean()), len(said)
    found["place"] = counting_accuracy(trainer, "clean")
    found["place, published"] = counting_accuracy(trainer, "published")
    return found


def main(words):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trainer", help="pelab-trainer, to generate data with")
    arguments = parser.parse_args(words)
    expected = ceilings()
    measured = measure(arguments.trainer) if arguments.trainer else {}
    off = 0
    for name, (value, uncertainty) in expected.items():
        line = f"{name:16} {100 * value:7.3f} % +- {100 * uncertainty:.3f}"
        if measured:
            found, count = measured[name]
            allowed = 4.5 * math.hypot(math.sqrt(value * (1 - value) / count), uncertainty)
            agrees = abs(found - value) <= allowed
            off += not agrees
            line += (f"   generated {100 * found:7.3f} %, allowed +- "
                     f"{100 * allowed:.3f}{'' if agrees else '   OFF'}")
        print(line)
    return 1 if off else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
