"""Stored figures beside recounted ones: rows that say whether they agree, and how they are
printed."""
import dataclasses
import math
import typing

import numpy as np

# float32 logits are within 1e-5 of float64's, so only examples this close may be counted otherwise
MARGIN = 1e-4
NLL_TOLERANCE = 2e-5  # of a mean, relative where it exceeds 1 nat
EXACT = 1e-9  # of what is computed from stored counts


@dataclasses.dataclass
class Row:
    where: str  # "test set", "intact", "layer 0 head 3", "deposit layer 0"
    figure: str
    stored: typing.Any
    own: typing.Any
    allowed: typing.Optional[float]  # None: equal
    agrees: bool


def near(a, b, allowed):
    if a is None or b is None:
        return a is b
    return math.isfinite(a) and math.isfinite(b) and abs(a - b) <= allowed


def nll_tolerance(value):
    return NLL_TOLERANCE * max(1.0, abs(value))


def close(*conditions):
    """Of how many examples a prediction in any of the conditions hangs on less than MARGIN."""
    return int(np.logical_or.reduce([condition.margin < MARGIN for condition in conditions]).sum())


class Rows(list):
    def count(self, where, figure, stored, own, *conditions):
        allowed = close(*conditions)
        self.append(Row(where, figure, stored, int(own), allowed, near(stored, int(own), allowed)))

    def real(self, where, figure, stored, own, allowed):
        self.append(Row(where, figure, stored, own, allowed, near(stored, own, allowed)))

    def equal(self, where, figure, stored, own):
        self.append(Row(where, figure, stored, own, None, stored == own))

    def intact(self, where, stored_correct, stored_total, stored_nll, scores):
        self.equal(where, "total", stored_total, len(scores.right))
        self.count(where, "correct", stored_correct, scores.right.sum(), scores)
        own = float(scores.nll.mean()) if len(scores.nll) else 0.0
        self.real(where, "nll", stored_nll, own, nll_tolerance(own))

    def entry(self, where, stored, scores, intact):
        self.count(where, "correct", stored["correct"], scores.right.sum(), scores)
        self.count(where, "lost", stored["lost"], (intact.right & ~scores.right).sum(), scores,
                   intact)
        self.count(where, "gained", stored["gained"], (~intact.right & scores.right).sum(), scores,
                   intact)
        own = float(scores.nll.mean())
        self.real(where, "nll", stored["nll"], own, nll_tolerance(own))
        change = scores.nll - intact.nll
        self.real(where, "nll_drop", stored["nll_drop"], float(change.mean()),
                  2 * nll_tolerance(own))
        self.real(where, "nll_drop_standard_error", stored["nll_drop_standard_error"],
                  float(change.std() / math.sqrt(len(change))), nll_tolerance(own))


def text(value):
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.6f}" if abs(value) >= 1e-3 or value == 0 else f"{value:.1e}"
    return str(value)


def table(header, rows):
    """Aligned columns: words to the left, numbers to the right."""
    cells = [header] + [[text(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    words = [all(isinstance(row[i], str) for row in rows) for i in range(len(header))]
    return "\n".join("  ".join(cell.ljust(width) if word else cell.rjust(width)
                               for cell, width, word in zip(row, widths, words)).rstrip()
                     for row in cells)


def verdict(rows):
    wrong = sum(not row.agrees for row in rows)
    return (f"{len(rows)} figures, all agree" if wrong == 0
            else f"{wrong} of {len(rows)} figures DISAGREE")
