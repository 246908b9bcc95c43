"""Groups jobs over seeds, by the rules of `pelab results` (README.md, "Seeds collapsed").

A cell in this module is such a group.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from pelab import _catalog, _columns, _scores, _statistics
from pelab._jobs import INDICES, SEED_MARK, JobRows
from pelab.errors import InvalidInput

METRICS = ("test_accuracy", "best_test_accuracy", "train_accuracy", "train_eval_accuracy",
           "wall_seconds", "generalisation_gap", *INDICES)
_NOT_COLUMNS = {"pe", "pe_label", "task", "pe.name", "task.name"}
Fields = Mapping[str, Any]  # "train.lr": 0.0001


def value_of(fields: Fields, name: str) -> Any:
    """The field's value; None if there is no such field."""
    return fields.get("pe" if name == "pe_label" else name)


def identity_of(fields: Fields) -> str:
    """A text that is equal for two jobs if they are replicates of each other.

    It holds every given field except the protocol's name. The given fields must contain neither
    the seed nor the device.
    """
    return "".join(f"{name}={fields[name]}\n" for name in sorted(fields) if name != "protocol")


class _Kind:
    """Jobs that differ only in seed, device and results."""

    def __init__(self, jobs: JobRows, index: int) -> None:
        self.stored: dict[str, Any] = dict(jobs.fields(index))
        self.stored["pe"] = jobs.value(index, "pe_label")
        self.stored["task"] = jobs.value(index, "task")
        self.stored["protocol"] = jobs.value(index, "protocol")
        self.stored.pop("seed", None)
        self.rest = identity_of({name: value for name, value in self.stored.items()
                                 if not name.endswith("_seed")})
        self.some_fixed = False


class FieldTable:
    """The fields of each job.

    A part's seed (such as task.data_seed) that follows the job's own seed has the value "seed".
    """

    def __init__(self, jobs: JobRows) -> None:
        self.jobs = jobs
        known: dict[tuple[str, str, str, str], _Kind] = {}
        self.kind: list[_Kind] = []
        for index, template in enumerate(jobs.templates):
            key = (template, jobs.value(index, "pe_label"), jobs.value(index, "task"),
                   jobs.value(index, "protocol"))
            if key not in known:
                known[key] = _Kind(jobs, index)
            self.kind.append(known[key])
        self._find_fixed_seeds(known.values())
        made: dict[tuple[int, int | None], Fields] = {}
        self.fields: list[Fields] = []
        self.distinct: list[Fields] = []
        for index, kind in enumerate(self.kind):
            seed = jobs.value(index, "seed") if kind.some_fixed else None
            key2 = (id(kind), seed)
            if key2 not in made:
                made[key2] = self._fields_of(kind, seed)
                self.distinct.append(made[key2])
            self.fields.append(made[key2])

    # A part's seed counts as following the job's own seed if the two are equal, and no replicate
    # with another seed has the same part seed.
    def _find_fixed_seeds(self, kinds: Iterable[_Kind]) -> None:
        self.fixed: dict[tuple[str, str], set[Any]] = {}
        for kind in kinds:
            for name, value in kind.stored.items():
                if name.endswith("_seed") and value != SEED_MARK:
                    self.fixed.setdefault((kind.rest, name), set()).add(value)
        for kind in kinds:
            kind.some_fixed = any(
                value == SEED_MARK
                and (not name.endswith("_seed") or (kind.rest, name) in self.fixed)
                for name, value in kind.stored.items())

    def _fields_of(self, kind: _Kind, seed: int | None) -> Fields:
        def read(name: str, value: Any) -> Any:
            if value != SEED_MARK:
                return value
            fixed = not name.endswith("_seed") or seed in self.fixed.get((kind.rest, name), ())
            return seed if kind.some_fixed and fixed else "seed"
        return {name: read(name, value) for name, value in kind.stored.items()}

    def stored_value(self, index: int, name: str) -> Any:
        if name in ("seed", "device"):
            return self.jobs.value(index, name)
        value = value_of(self.kind[index].stored, name)
        return self.jobs.value(index, "seed") if value == SEED_MARK else value


def _differing(rows: Sequence[Fields], ignored: set[str]) -> set[str]:
    names = {name for row in rows for name in row} - ignored
    return {name for name in names
            if any(value_of(row, name) != value_of(rows[0], name) for row in rows)}


def _telling_fields(rows: Sequence[Fields], ignored: set[str]) -> set[str]:
    differing = _differing(rows, ignored)
    if "protocol" not in differing:
        return differing
    by_protocol: dict[str, list[Fields]] = {}
    for row in rows:
        by_protocol.setdefault(row["protocol"], []).append(row)
    telling = {"protocol"}
    named: list[Fields] = []
    for protocol in sorted(by_protocol):
        if protocol != _catalog.CUSTOM:
            telling |= _differing(by_protocol[protocol], ignored)
            named.append(by_protocol[protocol][0])
    for custom in by_protocol.get(_catalog.CUSTOM, []):
        # Its departures from the nearest named protocol.
        departures = [_differing([base, custom], ignored) for base in named]
        telling |= min(departures, key=len, default=set())
    return telling


def telling_columns(distinct: Sequence[Fields]) -> list[str]:
    """The columns that identify cells: "pe", "task", and what differs within a pe and task."""
    by_name: dict[tuple[Any, Any], list[Fields]] = {}
    for fields in distinct:
        by_name.setdefault((value_of(fields, "pe"), value_of(fields, "task")), []).append(fields)
    extra: set[str] = set()
    for rows in by_name.values():
        telling = _telling_fields(rows, _NOT_COLUMNS)
        if telling & {"task.file", "task.scored_classes"}:
            telling.discard("task.chance")  # which follows from these
        extra |= telling
    first = ["pe", "task"] + (["protocol"] if "protocol" in extra else [])
    return first + sorted(extra - {"protocol"})


def mixed_fields(rows: Sequence[Fields]) -> set[str]:
    """The fields that differ within these rows, by the rule of telling_columns."""
    return _telling_fields(rows, {"pe.name", "task.name"})


class _Cell:
    def __init__(self, values: list[Any]) -> None:
        self.values = values
        self.indices: list[int] = []


def _cells(fields: FieldTable, columns: Sequence[str], whole: bool) -> list[_Cell]:
    places: dict[object, _Cell] = {}
    for index, its in enumerate(fields.fields):
        identity: object
        if whole:
            values = [value_of(its, name) for name in columns]
            identity = identity_of(its)
        else:
            values = [fields.stored_value(index, name) for name in columns]
            identity = tuple(values)
        if identity not in places:
            places[identity] = _Cell(values)
        places[identity].indices.append(index)
    return list(places.values())


def metric_of(jobs: JobRows, metric: str) -> Callable[[int], float | None]:
    """A function that gives the metric's value for the job at an index."""
    if of_analysis := _scores.metric_of(jobs, metric):
        return of_analysis
    reached = re.fullmatch(r"epochs_to\(\s*([0-9.eE+-]+)\s*\)", metric)
    if not reached and metric not in METRICS:
        raise _catalog.unknown("metric", metric, [*METRICS, "epochs_to(x)", *_scores.NAMES])
    accuracy = float(reached.group(1)) if reached else None
    if metric in INDICES:
        check_one_kind(metric, jobs.ablation_kinds())

    def value(index: int) -> float | None:
        values = jobs.indices(index, metric) if metric in INDICES else [
            jobs.value(index, "epochs_to" if reached else metric, accuracy)]
        if len(values) > 1:
            raise InvalidInput(f"job {jobs.value(index, 'job_id')} has {len(values)} head "
                               "ablations: choose one in `deposits`")
        found: float | None = values[0] if values else None
        return found
    return value


def check_one_kind(metric: str, kinds: set[str]) -> None:
    """InvalidInput if there are several kinds of ablations: their indices cannot be combined."""
    if len(kinds) > 1:
        raise InvalidInput(
            f"metric {metric}: these jobs have head ablations of several kinds "
            f"({'; '.join(sorted(kinds))}); choose one of them in the frame of `deposits`")


class Outcome(NamedTuple):
    """A job's contribution to a metric; it has a value only if its state is done."""

    state: str  # done, missing, failed, cancelled or not_reached
    value: float = 0.0


def outcome_of(jobs: JobRows, index: int, metric: str,
               value_of: Callable[[int], float | None]) -> Outcome:
    """The job's contribution; only a trained job contributes its value."""
    state, value = jobs.value(index, "state"), value_of(index)
    if state in ("failed", "cancelled"):
        return Outcome(state)
    if not (state == "succeeded" or jobs.value(index, "trained")):
        return Outcome("missing")
    if value is None:
        return Outcome("not_reached" if metric.startswith("epochs_to") else "missing")
    return Outcome("done", value)


class Interval(NamedTuple):
    """The Student's t interval of a mean; None if there are too few values."""

    mean: float | None
    sd: float | None
    half_width: float | None
    low: float | None
    high: float | None


def interval_of(values: Sequence[float]) -> Interval:
    center = _statistics.mean(values) if values else None
    half = _statistics.half_width(values)
    if center is None or half is None:
        return Interval(center, None, None, None, None)
    return Interval(center, _statistics.sample_sd(values), half, center - half, center + half)


def _is_share(metric: str) -> bool:
    return (metric.endswith("_accuracy") or _scores.is_share(metric)
            or metric in ("gini", "top_share"))


def within_bounds(metric: str, interval: Interval, least: float = 0.0) -> Interval:
    """Cuts the interval of a fraction at 0 and 1; `least` is -1 for the difference of two."""
    if interval.low is None or interval.high is None or not _is_share(metric):
        return interval
    return interval._replace(low=max(interval.low, least), high=min(interval.high, 1.0))


def known_fields(jobs: JobRows) -> set[str]:
    """The fields by which jobs can be grouped."""
    return ({"pe", "pe_label", "task", "protocol", "seed", "device"} | _catalog.field_names()
            | jobs.field_names())


def typed(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> dict[str, str]:
    """The types of the leading columns of the rows, which hold fields."""
    return {name: _columns.kind_of(name, [row[place] for row in rows])
            for place, name in enumerate(columns)}


def _shared(fields: FieldTable, cell: _Cell, name: str) -> Any:
    """The value that all jobs of a cell share; None if they differ."""
    values = {fields.stored_value(index, name) if name in ("seed", "device")
              else value_of(fields.fields[index], name) for index in cell.indices}
    return values.pop() if len(values) == 1 else None


def check_fields(jobs: JobRows, names: Iterable[str]) -> None:
    known = known_fields(jobs)
    for name in names:
        if name not in known:
            raise _catalog.unknown("field", name, sorted(known))


def summary(jobs: JobRows, metric: str, by: Sequence[str],
            more: Sequence[str] = ()) -> pd.DataFrame:
    """One row per cell; `more` names fields for additional columns."""
    metric_value = metric_of(jobs, metric)
    check_fields(jobs, [*by, *more])
    fields = FieldTable(jobs)
    columns = list(by) if by else telling_columns(fields.distinct)
    rows: list[list[object]] = []
    for cell in _cells(fields, columns, whole=not by):
        outcomes = [outcome_of(jobs, index, metric, metric_value) for index in cell.indices]
        values = [one.value for one in outcomes if one.state == "done"]
        missing, failed, cancelled, not_reached = (
            sum(one.state == state for one in outcomes)
            for state in ("missing", "failed", "cancelled", "not_reached"))
        # A mean over only the seeds that reached the accuracy would favor the good seeds.
        interval = within_bounds(metric, interval_of([] if not_reached else values))
        rows.append([*cell.values, metric, len(values), missing, failed,
                     bool(outcomes) and len(values) + not_reached == len(outcomes), *interval,
                     tuple(jobs.value(index, "seed") for index in cell.indices),
                     tuple(jobs.value(index, "job_id") for index in cell.indices), cancelled,
                     not_reached])
        rows[-1] += [_shared(fields, cell, name) for name in more if name not in columns]
    kinds = {**typed(columns, rows), "metric": "text", "n": "int", "missing": "int",
             "failed": "int", "complete": "bool", "mean": "float", "sd": "float",
             "half_width": "float", "low": "float", "high": "float", "seeds": "text",
             "job_ids": "text", "cancelled": "int", "not_reached": "int"}
    added = [name for name in more if name not in columns]
    kinds.update({name: _columns.kind_of(name, [row[len(kinds) + place] for row in rows])
                  for place, name in enumerate(added)})
    return _columns.frame(rows, kinds)
