"""The examples of both tasks."""
import hashlib
import math
import struct

import numpy as np

from repeated.random_numbers import Walk


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
        self.tokens = np.array([tokens + [0] * (length - len(tokens)) for tokens, _ in rows],
                               np.int32)
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
        streams = {"held_out_cells": distance, "held_out_starts": 0}
        if self.task["split"] not in streams:
            return first + walk.below(n)
        h = min(max(math.floor(self.task["held_out_fraction"] * n + 0.5), 1), n - 1)
        places = list(range(first, first + n))
        chosen = Walk(self.seed, "distance/held_out", streams[self.task["split"]]).choose(places, h)
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
        return ((first + self.triggers[:1] + middle + self.triggers[1:] + last)[:task["truncate"]],
                gap + 1)

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
