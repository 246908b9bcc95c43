"""The claims of a sheet and what the seeds say about them, for sheet_recount.py."""

import itertools
import math

import numpy as np

from recount_evidence import log_e, log_mean
from recount_results import is_about_ablation, text


def condition(cell):
    return " ".join(f"{field}={text(value)}" for field, value in cell.items()) \
        if isinstance(cell, dict) else cell


class Claim:
    """One claim under one combination of its `each`: statistics (lists of weight and cell) and the
    signs that they must have."""

    def __init__(self, document, results, group, name):
        self.id = document["id"] + (f"[{name}]" if name else "")
        self.kind = next(kind for kind in ("above", "between", "near", "most", "contrast")
                         if kind in document)
        body = document[self.kind]
        self.metric, self.layers = body["metric"], body.get("layers")
        self.results = results
        self.eligible = document.get("eligible", {"above": "shortcut"}
                                     if is_about_ablation(self.metric) else None)
        self.metrics = {self.metric} | ({self.eligible.get("metric", "test_accuracy")}
                                        if self.eligible else set())

        def one(cell):
            found = results.meeting(condition(cell)) & group
            assert len(found) == 1, f"{self.id}: {cell} are {len(found)} cells"
            return found.pop()
        if self.kind == "above":
            if "chain" in body:
                cells = [one(cell) for cell in body["chain"]]
                pairs = list(zip(cells, cells[1:]))
            else:
                sides = [body[side] if isinstance(body[side], list) else [body[side]]
                         for side in ("a", "b")]
                pairs = list(itertools.product(*([one(cell) for cell in side] for side in sides)))
            self.statistics = [[(1, a), (-1, b)] for a, b in pairs]
            self.holds = [(i, 1, body.get("by", 0)) for i in range(len(self.statistics))]
            self.fails = [(i, -1, body.get("by", 0)) for i in range(len(self.statistics))]
        elif self.kind == "contrast":
            self.statistics = [[(term["weight"], one(term["cell"])) for term in body["of"]]]
            self.holds, self.fails = [(0, 1, body.get("by", 0))], [(0, -1, body.get("by", 0))]
        elif self.kind == "most":
            self.statistics = [[(1, one(body["cell"]))]]
            self.holds, self.fails = [(0, 1, 0.5)], [(0, -1, 0.5)]
        else:
            near = self.kind == "near"
            self.statistics = [[(1, one(body["a"])), (-1, one(body["b"]))] if near else
                               [(1, one(body["cell"]))]]
            low, high = (-body["within"], body["within"]) if near else (body["low"], body["high"])
            self.holds, self.fails = [(0, 1, low), (0, -1, high)], [(0, -1, low), (0, 1, high)]
        self.cells = {cell for statistic in self.statistics for _, cell in statistic}

    def is_eligible(self, seed):
        if self.eligible is None:
            return True
        metric = self.eligible.get("metric", "test_accuracy")
        above, by = self.eligible.get("above", "shortcut"), self.eligible.get("by", 0.1)
        for cell in self.cells:
            limit = self.results.limit(cell) if above == "shortcut" else above
            value = self.results.value(cell, seed, metric)
            if not value > limit + by:
                return False
        return True

    def weigh(self, seeds):
        """(seeds, eligible, log e of holds, log e of fails, counts of the sides, figures)."""
        used, count = [], 0
        for seed in seeds:
            if any(self.results.is_open(cell, seed, self.metrics) for cell in self.cells):
                break
            count += 1
            if self.is_eligible(seed):
                used.append([sum(weight * self.results.value(cell, seed, self.metric, self.layers)
                                 for weight, cell in statistic) for statistic in self.statistics])
        values = np.array(used, dtype=float).reshape(len(used), len(self.statistics))
        sides = []
        for side in (self.holds, self.fails):
            # Accuracies are fractions: what is on the limit is rounded to one side of it.
            counts = [sign * (values[:, at] - limit) > 1e-12 * max(1, abs(limit))
                      for at, sign, limit in side]
            sides.append([(int(np.sum(count_of)), len(used)) for count_of in counts])
        holds = min(log_e(*side) for side in sides[0])
        fails = log_mean([log_e(*side) for side in sides[1]])
        return count, len(used), holds, fails, sides, self._figures(values, sides, holds >= fails)

    def _figures(self, values, sides, holds):
        """The figures beside the verdict, which are about the side that the seeds speak for."""
        logs = [[log_e(*side) for side in both] for both in sides]
        weakest, strongest = logs[0].index(min(logs[0])), logs[1].index(max(logs[1]))
        k, n = sides[0][weakest] if holds else sides[1][strongest]
        at = (self.holds[weakest] if holds else self.fails[strongest])[0]
        finite = values[np.isfinite(values[:, at]), at]
        return {"leans_to": "holds" if holds else "fails", "k": k, "n": n,
                "shows": sides[0][weakest][0], "mean": finite.mean() if len(finite) else None}


def same_figures(stored, ours):
    """Whether two claims have the same figures; means may differ in their last bits."""
    means = [figures["mean"] for figures in (stored, ours)]
    if None in means or not math.isclose(*means, rel_tol=1e-9, abs_tol=1e-9):
        return stored == ours
    return {**stored, "mean": None} == {**ours, "mean": None}


def claims_of(sheet, results):
    found = []
    for document in sheet["claims"]:
        group = results.meeting(condition(document.get("where", "")))
        assert group, document["id"]
        each = document.get("each", [])
        each = [each] if isinstance(each, str) else each
        names = []
        for name in results.ordered(group):
            values = ", ".join(str(results.field(name, field)) for field in each)
            if values not in names:
                names.append(values)
        for values in names:
            members = {name for name in group
                       if ", ".join(str(results.field(name, field)) for field in each) == values}
            found.append(Claim(document, results, members, values))
    return found
