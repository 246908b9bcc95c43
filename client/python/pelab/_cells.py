"""Jobs put together over seeds into cells, by the rules of `pelab results` (README.md, "Seeds collapsed")."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

import pandas as pd

from pelab import _columns, _statistics
from pelab._jobs import INDICES, SEED_MARK, JobRows
from pelab.errors import InvalidInput

METRICS = ("test_accuracy", "best_test_accuracy", "train_accuracy", "wall_seconds", "generalisation_gap", *INDICES)
_NOT_COLUMNS = {"pe", "pe_label", "task", "pe.name", "task.name"}
_CUSTOM = "custom"
Fields = Mapping[str, str]


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _value_of(fields: Fields, name: str) -> str:
    return fields.get("pe" if name == "pe_label" else name, "-")


def _identity(fields: Fields) -> str:
    return "".join(f"{name}={fields[name]}\n" for name in sorted(fields) if name != "protocol")


class _Kind:
    """Jobs that differ in seed, device and results alone."""

    def __init__(self, jobs: JobRows, index: int) -> None:
        self.stored: dict[str, str] = {name: _text(value) for name, value in jobs.fields(index).items()}
        self.stored["pe"] = jobs.value(index, "pe_label")
        self.stored["task"] = jobs.value(index, "task")
        self.stored["protocol"] = jobs.value(index, "protocol")
        self.stored.pop("seed", None)
        self.rest = _identity({name: value for name, value in self.stored.items() if not name.endswith("_seed")})
        self.some_fixed = False


class FieldTable:
    """The fields of each job as text; seeds of parts of a job that follow its own read "seed"."""

    def __init__(self, jobs: JobRows) -> None:
        self.jobs = jobs
        known: dict[tuple[str, str, str, str], _Kind] = {}
        self.kind: list[_Kind] = []
        for index, template in enumerate(jobs.templates):
            key = (template, jobs.value(index, "pe_label"), jobs.value(index, "task"), jobs.value(index, "protocol"))
            if key not in known:
                known[key] = _Kind(jobs, index)
            self.kind.append(known[key])
        self._find_fixed_seeds(known.values())
        made: dict[tuple[int, str], Fields] = {}
        self.fields: list[Fields] = []
        self.distinct: list[Fields] = []
        for index, kind in enumerate(self.kind):
            seed = str(jobs.value(index, "seed")) if kind.some_fixed else ""
            key2 = (id(kind), seed)
            if key2 not in made:
                made[key2] = self._fields_of(kind, seed)
                self.distinct.append(made[key2])
            self.fields.append(made[key2])

    # A job's part seed is taken to follow the job's own where its value is its own seed and no replicate with another
    # seed has that value.
    def _find_fixed_seeds(self, kinds: Iterable[_Kind]) -> None:
        self.fixed: dict[tuple[str, str], set[str]] = {}
        for kind in kinds:
            for name, value in kind.stored.items():
                if name.endswith("_seed") and value != SEED_MARK:
                    self.fixed.setdefault((kind.rest, name), set()).add(value)
        for kind in kinds:
            kind.some_fixed = any(
                value == SEED_MARK and (not name.endswith("_seed") or (kind.rest, name) in self.fixed)
                for name, value in kind.stored.items())

    def _fields_of(self, kind: _Kind, seed: str) -> Fields:
        def read(name: str, value: str) -> str:
            if value != SEED_MARK:
                return value
            fixed = not name.endswith("_seed") or seed in self.fixed.get((kind.rest, name), ())
            return seed if kind.some_fixed and fixed else "seed"
        return {name: read(name, value) for name, value in kind.stored.items()}

    def stored_value(self, index: int, name: str) -> str:
        if name == "seed":
            return str(self.jobs.value(index, "seed"))
        if name == "device":
            return self.jobs.value(index, "device") or ""
        value = _value_of(self.kind[index].stored, name)
        return str(self.jobs.value(index, "seed")) if value == SEED_MARK else value


def _differing(rows: Sequence[Fields], ignored: set[str]) -> set[str]:
    names = {name for row in rows for name in row} - ignored
    return {name for name in names if any(_value_of(row, name) != _value_of(rows[0], name) for row in rows)}


def _telling_fields(rows: Sequence[Fields], ignored: set[str]) -> set[str]:
    differing = _differing(rows, ignored)
    if "protocol" not in differing:
        return differing
    by_protocol: dict[str, list[Fields]] = {}
    for row in rows:
        by_protocol.setdefault(row.get("protocol", "-"), []).append(row)
    telling = {"protocol"}
    named: list[Fields] = []
    for protocol in sorted(by_protocol):
        if protocol != _CUSTOM:
            telling |= _differing(by_protocol[protocol], ignored)
            named.append(by_protocol[protocol][0])
    for custom in by_protocol.get(_CUSTOM, []):  # how it departs from the named one that is next to it
        departures = [_differing([base, custom], ignored) for base in named]
        telling |= min(departures, key=len, default=set())
    return telling


def telling_columns(distinct: Sequence[Fields]) -> list[str]:
    """What tells cells apart: "pe", "task", then what differs between jobs that agree in these."""
    by_name: dict[tuple[str, str], list[Fields]] = {}
    for fields in distinct:
        by_name.setdefault((fields["pe"], fields["task"]), []).append(fields)
    extra: set[str] = set()
    for rows in by_name.values():
        extra |= _telling_fields(rows, _NOT_COLUMNS)
    first = ["pe", "task"] + (["protocol"] if "protocol" in extra else [])
    return first + sorted(extra - {"protocol"})


class _Cell:
    def __init__(self, values: list[str]) -> None:
        self.values = values
        self.indices: list[int] = []


def _cells(fields: FieldTable, columns: Sequence[str], whole: bool) -> list[_Cell]:
    places: dict[str, _Cell] = {}
    for index, its in enumerate(fields.fields):
        if whole:
            values = [_value_of(its, name) for name in columns]
            identity = _identity(its)
        else:
            values = [fields.stored_value(index, name) for name in columns]
            identity = "\n".join(values)
        if identity not in places:
            places[identity] = _Cell(values)
        places[identity].indices.append(index)
    return list(places.values())


def _metric_of(jobs: JobRows, metric: str) -> Callable[[int], float | None]:
    """The value of the job at a place."""
    reached = re.fullmatch(r"epochs_to\(\s*([0-9.eE+-]+)\s*\)", metric)
    if not reached and metric not in METRICS:
        raise InvalidInput(f'unknown metric "{metric}"; known: {", ".join(METRICS)}, epochs_to(x)')
    accuracy = float(reached.group(1)) if reached else None

    def value_of(index: int) -> float | None:
        values = jobs.indices(index, metric) if metric in INDICES else [
            jobs.value(index, "epochs_to" if reached else metric, accuracy)]
        if len(values) > 1:
            raise InvalidInput(f"job {jobs.value(index, 'job_id')} has {len(values)} head ablations: choose one in `deposits`")
        value: float | None = values[0] if values else None
        return value
    return value_of


def summary(jobs: JobRows, metric: str, by: Sequence[str]) -> pd.DataFrame:
    """A row a cell. Only a trained job counts with its value."""
    metric_of = _metric_of(jobs, metric)
    fields = FieldTable(jobs)
    known = {"pe", "pe_label", "task", "protocol", "seed", "device"} | jobs.field_names()
    for name in by:
        if name not in known and jobs.rows:
            raise InvalidInput(f'unknown field "{name}" to group by; known: {", ".join(sorted(known))}')
    columns = list(by) if by else telling_columns(fields.distinct)
    rows: list[list[object]] = []
    for cell in _cells(fields, columns, whole=not by):
        values: list[float] = []
        missing = failed = cancelled = 0
        for index in cell.indices:
            state, value = jobs.value(index, "state"), metric_of(index)
            if state == "failed":
                failed += 1
            elif state == "cancelled":
                cancelled += 1
            elif value is None or not (state == "succeeded" or jobs.value(index, "trained")):
                missing += 1
            else:
                values.append(value)
        centre = _statistics.mean(values) if values else None
        half = _statistics.half_width(values)
        low = None if centre is None or half is None else centre - half
        high = None if centre is None or half is None else centre + half
        rows.append([*cell.values, metric, len(values), missing, failed,
                     bool(values) and missing + failed + cancelled == 0, centre,
                     _statistics.sample_sd(values), half, low, high,
                     tuple(jobs.value(index, "seed") for index in cell.indices),
                     tuple(jobs.value(index, "job_id") for index in cell.indices), cancelled])
    kinds = {**{name: "text" for name in columns}, "metric": "text", "n": "int", "missing": "int", "failed": "int",
             "complete": "bool", "mean": "float", "sd": "float", "half_width": "float", "low": "float",
             "high": "float", "seeds": "text", "job_ids": "text", "cancelled": "int"}
    return _columns.frame(rows, kinds)
