"""The columns of every frame, in order, with their types, so that both sources' frames are equal.

"int", "float", "bool" and "text" are the usual types; a missing "float" is NaN, a missing "text" is
None. "Int" and "Bool" may be missing (pandas' nullable types). "time" is a point in time in UTC,
stored as Unix milliseconds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from pelab import _catalog

Columns = Mapping[str, str]

JOBS: Columns = {
    "job_id": "int",
    "key": "text",
    "generation": "int",
    "pe": "text",
    "pe_label": "text",
    "task": "text",
    "protocol": "text",
    "seed": "int",
    "state": "text",
    "attempts": "int",
    "device": "text",
    "epochs": "int",
    "epochs_done": "int",
    "train_accuracy": "float",
    "test_accuracy": "float",
    "best_test_accuracy": "float",
    "wall_seconds": "float",
    "error": "text",
    "train_correct": "Int",
    "train_total": "Int",
    "test_correct": "Int",
    "test_total": "Int",
    "trained": "bool",
    "spec_json": "text",
    "train_loss": "float",
    "test_loss": "float",
    "diverged": "bool",
    "warning": "text",
}
CURVES: Columns = {
    "job_id": "int",
    "epoch": "int",
    "train_loss": "float",
    "train_accuracy": "float",
    "test_loss": "float",
    "test_accuracy": "float",
    "learning_rate": "float",
    "seconds": "float",
    "train_correct": "int",
    "train_total": "int",
    "test_correct": "int",
    "test_total": "int",
}
ABLATIONS: Columns = {
    "job_id": "int",
    "method": "text",
    "hygiene": "text",
    "split": "text",
    "target": "text",
    "analysis_id": "int",
    "layer": "int",
    "head": "int",
    "correct": "Int",
    "total": "int",
    "accuracy": "float",
    "accuracy_drop": "float",
    "intact_correct": "int",
    "lost": "Int",
    "gained": "Int",
    "drop_standard_error": "float",
    "normalised_drop": "float",
    "nll": "float",
    "nll_drop": "float",
    "nll_drop_standard_error": "float",
    "chance": "float",
    "max_examples": "Int",
}
DEPOSITS: Columns = {
    "job_id": "int",
    "method": "text",
    "hygiene": "text",
    "split": "text",
    "target": "text",
    "analysis_id": "int",
    "layer": "Int",
    "max_drop": "float",
    "top_share": "float",
    "top_ratio": "float",
    "gini": "float",
    "effective_heads": "float",
    "top_layer": "Int",
    "top_head": "Int",
    "deposit": "Bool",
    "deposits": "Int",
}
ANALYSES: Columns = {
    "job_id": "int",
    "analysis_id": "int",
    "name": "text",
    "version": "int",
    "parameters_json": "text",
    "total": "Int",
    "intact_correct": "Int",
    "seconds": "float",
    "result_json": "text",
    "created_at": "time",
}
ATTEMPTS: Columns = {
    "attempt_id": "int",
    "job_id": "int",
    "number": "int",
    "worker": "text",
    "device": "text",
    "start_epoch": "Int",
    "outcome": "text",
    "error": "text",
    "started_at": "time",
    "ended_at": "time",
    "environment_json": "text",
}
WORKERS: Columns = {
    "worker_id": "text",
    "host": "text",
    "devices": "text",
    "slots": "int",
    "busy_slots": "int",
    "state": "text",
    "last_seen_at": "time",
    "version": "text",
    "drain": "text",
    "name": "text",
}
ARTIFACTS: Columns = {"job_id": "int", "name": "text", "sha256": "text", "bytes": "int"}
SWEEPS: Columns = {
    "sweep_id": "int",
    "name": "text",
    "protocol": "text",
    "state": "text",
    "priority": "int",
    "file_name": "text",
    "created_at": "time",
    "cells": "int",
    "new_jobs": "int",
    "stored_jobs": "int",
    "in_flight_jobs": "int",
    "failed_earlier_jobs": "int",
    "queued": "int",
    "assigned": "int",
    "running": "int",
    "succeeded": "int",
    "failed": "int",
    "cancelled": "int",
    "epochs": "int",
    "epochs_done": "int",
    "paused": "bool",
    "extensions_json": "text",
    "note": "text",
}


def column(values: Sequence[Any], kind: str) -> Any:
    """Makes a column of this type from the values."""
    if kind == "int":
        return np.array(values, dtype=np.int64)
    if kind == "Int":
        return pd.array(values, dtype="Int64")
    if kind == "float":
        return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    if kind == "bool":
        return np.array(values, dtype=bool)
    if kind == "Bool":
        return pd.array([None if value is None else bool(value) for value in values], dtype="boolean")
    if kind == "time":
        stamps = ["NaT" if value is None else value for value in values]
        milliseconds = np.array(stamps, dtype="datetime64[ms]").astype("datetime64[ns]")
        return pd.DatetimeIndex(milliseconds, tz="UTC")
    return pd.Series(list(values), dtype=object)


def frame(rows: Sequence[Sequence[Any]], columns: Columns) -> pd.DataFrame:
    """Makes a frame from rows that have the columns in this order."""
    by_column = list(zip(*rows)) if rows else [()] * len(columns)
    return pd.DataFrame({name: column(values, kind) for (name, kind), values in zip(columns.items(), by_column)})


_KINDS = {"bool": "bool", "int": "int", "real": "float"}  # of the catalog; others: "text"


def kind_of(name: str, values: Sequence[Any]) -> str:
    """The type of a column of jobs, or of a spec field, with these values (None: no value)."""
    known = _catalog.field(name)
    there = [value for value in values if value is not None]
    if name in JOBS:
        kind = JOBS[name]
    else:
        kind = _KINDS.get(known.type, "text") if known else _kind_of_unknown(there)
    wanted = {"int": int, "bool": bool, "float": (int, float)}.get(kind)
    if wanted is not None and not all(isinstance(value, wanted) for value in there):
        return "text"  # a part's seed that follows the job's seed reads "seed"
    return kind.capitalize() if len(there) < len(values) and kind in ("int", "bool") else kind


def _kind_of_unknown(values: Sequence[Any]) -> str:
    """The type of a field that this catalog does not know; a newer pelab wrote it."""
    kinds = {type(value) for value in values}
    if kinds == {bool}:
        return "bool"
    if kinds == {int}:
        return "int"
    return "float" if kinds and kinds <= {int, float} else "text"


def text_of(value: object) -> str:
    """Writes a field's value as in documents and on the command line."""
    if value is None:
        return "-"
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)
