"""Metrics of a job that come from the result of one of its analyses, by the rules of `pelab
results` (docs/formats.md, "Metrics")."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from pelab import _columns
from pelab._jobs import JobRows
from pelab.errors import InvalidInput

NAMES = ("split_accuracy(name)", "layer_drop(layer)", "greedy_accuracy(heads)")
_ERRORS_ABOVE_CHANCE = 5  # below, a model has nothing to lose


class _Metric(NamedTuple):
    name: str
    analysis: str
    argument: str
    # The examples that a result rests on, and the value; None for the value if it is undefined, and
    # for both if the result does not count. A result is a worker's, so it may have any form:
    # ValueError, TypeError and KeyError also say that it does not count.
    read: Callable[[Mapping[str, Any], str], tuple[int, float | None] | None]


def metric_of(jobs: JobRows, name: str) -> Callable[[int], float | None] | None:
    """A function that gives the metric's value for the job at an index; None if no analysis has
    this metric."""
    metric = _parse(name)
    if metric is None:
        return None
    best = _best_of_jobs(_rows_of(jobs, metric), metric)

    def value(index: int) -> float | None:
        return best.get(jobs.value(index, "job_id"))
    return value


def is_share(name: str) -> bool:
    """Whether the values lie in 0 to 1."""
    metric = _parse(name)
    return metric is not None and metric.analysis != "layer_ablation"


def _parse(name: str) -> _Metric | None:
    number = "0|[1-9][0-9]{0,8}"
    for pattern, analysis, read in (
            (r"split_accuracy\(([a-z][a-z0-9_]*)\)", "split_accuracy", _split),
            (rf"layer_drop\(({number})\)", "layer_ablation", _layer_drop),
            (r"greedy_accuracy\(([1-9][0-9]{0,8})\)", "cumulative_ablation", _greedy)):
        if found := re.fullmatch(pattern, name):
            return _Metric(name, analysis, found.group(1), read)
    return None


class _Row(NamedTuple):
    job_id: int
    kind: str  # "zero test"; empty if the analysis has no method
    result: Mapping[str, Any]


def _rows_of(jobs: JobRows, metric: _Metric) -> list[_Row]:
    """The jobs' analyses, ordered by job and analysis_id. InvalidInput if there is none, or if
    they are of several kinds."""
    columns = list(_columns.ANALYSES)
    name, result, parameters = (columns.index(one) for one in
                                ("name", "result_json", "parameters_json"))
    rows = [_Row(row[0], _kind(_object(row[parameters])), _object(row[result]))
            for row in jobs.rows_of("analyses") if row[name] == metric.analysis]
    if not rows:
        raise InvalidInput(f"metric {metric.name}: these jobs have no analysis {metric.analysis} "
                           "yet; pelab analyze adds it to trained jobs, and a sweep asks for it "
                           f"with analyses: [head_ablation, {metric.analysis}]")
    if len(kinds := {row.kind for row in rows}) > 1:
        raise InvalidInput(f"metric {metric.name}: these jobs have analyses of several kinds "
                           f"({'; '.join(sorted(kinds))}); choose jobs that have one of them")
    if metric.analysis == "split_accuracy":
        _check_split(metric, rows)
    return rows


def _kind(parameters: Mapping[str, Any]) -> str:
    return " ".join(str(parameters[name]) for name in ("method", "data") if name in parameters)


def _check_split(metric: _Metric, rows: Sequence[_Row]) -> None:
    known = {one["name"] for row in rows for one in _splits_of(row.result)}
    if metric.argument not in known:
        raise InvalidInput(f"metric {metric.name}: the data of these jobs have no such split; "
                           f"their splits: {', '.join(sorted(known))}")


def _best_of_jobs(rows: Sequence[_Row], metric: _Metric) -> dict[int, float]:
    """By job. Of several analyses, the one of most examples counts, even if its value is
    undefined; of equals, the newest."""
    best: dict[int, tuple[int, float | None]] = {}
    for row in rows:
        try:
            found = metric.read(row.result, metric.argument)
        except (ValueError, TypeError, KeyError):
            continue
        if found is not None and found[0] >= best.get(row.job_id, (0, None))[0]:
            best[row.job_id] = found
    return {job: value for job, (_, value) in best.items() if value is not None}


def _object(text: str | None) -> Mapping[str, Any]:
    try:
        read = json.loads(text or "")
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}


def _splits_of(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The scores of a result of split_accuracy; empty if it is none."""
    try:
        return [{"name": str(one["name"]), "total": int(one["total"]),
                 "correct": int(one["correct"])} for one in result["splits"]]
    except (ValueError, TypeError, KeyError):
        return []


def _split(result: Mapping[str, Any], split: str) -> tuple[int, float | None] | None:
    for one in _splits_of(result):
        if one["name"] == split and 0 <= one["correct"] <= one["total"] > 0:
            return one["total"], one["correct"] / one["total"]
    return None


def _layer_drop(result: Mapping[str, Any], layer: str) -> tuple[int, float | None]:
    total, intact = _intact(result)
    right = _right_at(result, result["correct"], int(layer))
    return total, None if right is None else (intact - right) / total


def _greedy(result: Mapping[str, Any], heads: str) -> tuple[int, float | None]:
    total, _ = _intact(result)
    right = _right_at(result, result["greedy"]["correct"], int(heads) - 1)
    return total, None if right is None else right / total


def _right_at(result: Mapping[str, Any], counts: Sequence[Any], at: int) -> int | None:
    """None if there is no such layer or step, or if the intact model is near chance."""
    if not isinstance(counts, list) or at >= len(counts) or not _stands_out(result):
        return None
    return _count(counts[at], _intact(result)[0])


def _intact(result: Mapping[str, Any]) -> tuple[int, int]:
    total = int(result["total"])
    if total <= 0:
        raise ValueError("no examples")
    return total, _count(result["intact_correct"], total)


def _count(value: Any, total: int) -> int:
    if isinstance(value, int) and 0 <= value <= total:
        return value
    raise ValueError(f"{value} of {total} examples")


def _stands_out(result: Mapping[str, Any]) -> bool:
    """Whether the intact model is better than chance, as for deposit indices."""
    total, correct = _intact(result)
    accuracy, chance = correct / total, float(result["chance"])
    error = math.sqrt(accuracy * (1 - accuracy) / total)
    return accuracy > chance and accuracy - chance >= _ERRORS_ABOVE_CHANCE * error
