"""Compares two methods on the same seeds, with everything else equal.

The rules are those of `pelab results --compare A --with B` (core/results/comparison.h).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from pelab import _cells, _columns, _statistics
from pelab._cells import Fields, FieldTable, Outcome
from pelab._jobs import INDICES, JobRows
from pelab.errors import InvalidInput

_COLUMNS = {"metric": "text", "n": "int", "missing": "int", "failed": "int", "cancelled": "int",
            "complete": "bool", "mean_a": "float", "mean_b": "float", "difference": "float",
            "sd": "float", "half_width": "float", "low": "float", "high": "float", "t": "float",
            "p": "float", "only_a": "text", "only_b": "text", "mcnemar_p": "text", "seeds": "text",
            "jobs_a": "text", "jobs_b": "text", "differences": "text", "not_reached": "int",
            "also_different": "text"}


def compare(a: JobRows, b: JobRows, compared: Sequence[str], metric: str) -> pd.DataFrame:
    """One row per group of pairs that differ only in the seed.

    `compared` are the fields that the two conditions name. InvalidInput if a job is on both sides,
    or has several partners.
    """
    both = set(_ids(a)) & set(_ids(b))
    if both:
        raise InvalidInput(
            f"job {min(both)} is on both sides: the two conditions must exclude each other")
    if metric in INDICES:
        _cells.check_one_kind(metric, a.ablation_kinds() | b.ablation_kinds())
    pairing = _Pairing(_Side(a, metric), _Side(b, metric), compared)
    groups = pairing.groups()
    examples = _Examples(a, b) if pairing.same_examples() else None
    columns = pairing.columns()
    confounders = tuple(pairing.confounders.values())
    rows = [[*group.values(columns), metric, *_row(group, pairing, examples, metric), confounders]
            for group in groups]
    frame = _columns.frame(rows, {**_cells.typed(columns, rows), **_COLUMNS})
    pairs = sum(len(group.pairs) for group in groups)
    frame.attrs.update(also_different=confounders, unpaired_a=len(a.rows) - pairs,
                       unpaired_b=len(b.rows) - pairs)
    return frame


def _ids(jobs: JobRows) -> list[int]:
    return [row[0] for row in jobs.rows]


class _Side:
    """The jobs of one side, with their fields and metric."""

    def __init__(self, jobs: JobRows, metric: str) -> None:
        self.jobs = jobs
        self.fields = FieldTable(jobs)
        self._metric = metric
        self._value = _cells.metric_of(jobs, metric)

    def outcome(self, index: int) -> Outcome:
        return _cells.outcome_of(self.jobs, index, self._metric, self._value)

    def values_by_task(self) -> dict[Any, dict[str, set[Any]]]:
        by_task: dict[Any, dict[str, set[Any]]] = {}
        for fields in self.fields.distinct:
            values = by_task.setdefault(fields.get("task"), {})
            for name, value in fields.items():
                values.setdefault(name, set()).add(value)
        return by_task


@dataclass
class _Group:
    common: Fields
    # Indices of the jobs on side a and side b.
    pairs: list[tuple[int, int]] = field(default_factory=list)

    def values(self, columns: Iterable[str]) -> list[Any]:
        return [_cells.value_of(self.common, name) for name in columns]


class _Pairing:
    def __init__(self, a: _Side, b: _Side, compared: Sequence[str]) -> None:
        self.a, self.b = a, b
        # The label of own data, and much else, follows from its fields.
        known = {"pe_label": "pe", "task.test": "task", "task.data": "task", "task.file": "task"}
        self._compared = [known.get(name, name) for name in compared]
        self.confounders = self._find_confounders()
        self._groups = self._pair()

    def groups(self) -> list[_Group]:
        """The groups, in the order of side a's jobs."""
        return self._groups

    def columns(self) -> list[str]:
        """The columns that identify the groups."""
        distinct = [group.common for group in self._groups]
        return ([name for name in _cells.telling_columns(distinct) if not self._is_compared(name)]
                if distinct else [])

    def same_examples(self) -> bool:
        """Whether both sides use the same examples: the task and its data do not differ."""
        return not any(name.startswith("task") for name in self.confounders)

    def _is_compared(self, name: str) -> bool:
        return any(name == one or name.startswith(one + ".") for one in self._compared)

    # Fields that have one value on each side of every shared task, and differ in at least one task.
    def _find_confounders(self) -> dict[str, str]:
        of_a, of_b = self.a.values_by_task(), self.b.values_by_task()
        found: dict[str, str] = {}
        mixed: set[str] = set()
        for task in sorted(of_a.keys() & of_b.keys()):
            for name in of_a[task].keys() | of_b[task].keys():
                in_a, in_b = (values[task].get(name, {None}) for values in (of_a, of_b))
                if len(in_a) > 1 or len(in_b) > 1:
                    mixed.add(name)
                elif in_a != in_b and not self._is_compared(name):
                    left, right = (_columns.text_of(next(iter(values))) for values in (in_a, in_b))
                    found.setdefault(name, f"{name}: {left} against {right}")
        return {name: found[name] for name in sorted(found.keys() - mixed)}

    def _pair(self) -> list[_Group]:
        partners = dict(self._places(self.b))
        groups: dict[str, _Group] = {}
        for place, index in self._places(self.a):
            if place in partners:
                common = self._common(self.a.fields.fields[index])
                group = groups.setdefault(place[0], _Group(common))
                group.pairs.append((index, partners[place]))
        return list(groups.values())

    def _common(self, fields: Fields) -> Fields:
        """The fields that partners share; the seed is not among them."""
        return {name: value for name, value in fields.items()
                if not self._is_compared(name) and name not in self.confounders}

    def _places(self, side: _Side) -> list[tuple[tuple[str, int], int]]:
        """For each job: the identity and seed that its partner must have, and the job's index."""
        known: dict[int, str] = {}
        seen: dict[tuple[str, int], int] = {}
        for index, fields in enumerate(side.fields.fields):
            if id(fields) not in known:
                known[id(fields)] = _cells.identity_of(self._common(fields))
            place = (known[id(fields)], side.jobs.value(index, "seed"))
            if place in seen:
                raise self._several(side, seen[place], index)
            seen[place] = index
        return list(seen.items())

    @staticmethod
    def _several(side: _Side, one: int, other: int) -> InvalidInput:
        differing = sorted(_cells.mixed_fields([side.fields.fields[one],
                                                side.fields.fields[other]]))
        ids = _ids(side.jobs)
        return InvalidInput(
            f"jobs {ids[one]} and {ids[other]} of one side have the same seed and differ only in "
            f"{', '.join(differing)}: add a condition, so that a job has one partner")


def _difference(a: Outcome, b: Outcome) -> Outcome:
    for state in ("failed", "cancelled", "missing", "not_reached"):
        if state in (a.state, b.state):
            return Outcome(state)
    return Outcome("done", a.value - b.value)


def _mean(side: list[Outcome]) -> float | None:
    """The mean over one side's seeds; None if a seed never reached the accuracy."""
    known = [] if any(one.state == "not_reached" for one in side) else side
    return _cells.interval_of([one.value for one in known]).mean


def _row(group: _Group, pairing: _Pairing, examples: "_Examples | None",
         metric: str) -> list[Any]:
    """The values of _COLUMNS from "n" to "not_reached"."""
    sides = [(pairing.a.outcome(i), pairing.b.outcome(j)) for i, j in group.pairs]
    differences = [_difference(a, b) for a, b in sides]
    done = [place for place, one in enumerate(differences) if one.state == "done"]
    not_reached = sum(one.state == "not_reached" for one in differences)
    known = [] if not_reached else done  # the rest would favor the good seeds
    values = [differences[place].value for place in known]
    others = [sum(one.state == state for one in differences)
              for state in ("missing", "failed", "cancelled")]
    mean_a, mean_b = (_mean([sides[place][side] for place, one in enumerate(differences)
                             if one.state in ("done", "not_reached")]) for side in (0, 1))
    ids_a, ids_b = _ids(pairing.a.jobs), _ids(pairing.b.jobs)
    jobs_a, jobs_b = (tuple(ids_a[i] for i, _ in group.pairs),
                      tuple(ids_b[j] for _, j in group.pairs))
    t, p = _statistics.paired_t(values) or (None, None)
    # McNemar's test is about one pair of trained models. The test over seeds is about the methods.
    counts = [examples.count(*pair) if examples is not None else None
              for pair in zip(jobs_a, jobs_b)]
    only_a, only_b = (tuple(one[side] if one else None for one in counts) for side in (0, 1))
    mcnemar = tuple(_statistics.mcnemar_p(*one) if one else None for one in counts)
    return [len(done), *others, len(done) + not_reached > 0 and sum(others) == 0, mean_a, mean_b,
            *_cells.within_bounds(metric, _cells.interval_of(values), least=-1.0), t, p,
            only_a, only_b, mcnemar,
            tuple(pairing.a.jobs.value(i, "seed") for i, _ in group.pairs), jobs_a, jobs_b,
            tuple(one.value if one.state == "done" else None for one in differences), not_reached]


class _Examples:
    """The test examples that each job gets right, from its example_correctness analyses."""

    def __init__(self, a: JobRows, b: JobRows) -> None:
        places = {name: place for place, name in enumerate(_columns.ANALYSES)}
        self._of_jobs: dict[int, dict[tuple[int, str], tuple[int, str]]] = {}
        for row in [*a.rows_of("analyses"), *b.rows_of("analyses")]:
            if row[places["name"]] != "example_correctness":
                continue
            right = _right_of(row[places["result_json"]])
            if right is not None:
                kind = (row[places["version"]], row[places["parameters_json"]])
                self._of_jobs.setdefault(row[0], {})[kind] = (row[places["total"]], right)

    def count(self, a: int, b: int) -> tuple[int, int] | None:
        """The numbers of examples that only job a, and only job b, gets right.

        None unless both were scored on the same examples.
        """
        of_a, of_b = self._of_jobs.get(a, {}), self._of_jobs.get(b, {})
        for kind in sorted(of_a.keys() & of_b.keys()):
            (total_a, right_a), (total_b, right_b) = of_a[kind], of_b[kind]
            if total_a == total_b and len(right_a) == len(right_b):
                bits_a, bits_b = int(right_a or "0", 16), int(right_b or "0", 16)
                return (bits_a & ~bits_b).bit_count(), (bits_b & ~bits_a).bit_count()
        return None


def _right_of(result_json: str | None) -> str | None:
    """The correctness bits as hexadecimal digits, one bit per example; None if they are missing."""
    try:
        result = json.loads(result_json or "null")
    except ValueError:
        return None
    right = result.get("right") if isinstance(result, dict) else None
    return right if isinstance(right, str) else None
