"""The columns of every frame, in order, with their types, so that both sources' frames are equal.

"int", "float", "bool" and "text" are the usual types; a missing "float" is NaN, a missing "text" is
None. "Int" and "Bool" may be missing (pandas' nullable types). "time" is a point in time in UTC,
stored as Unix milliseconds.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from pelab import _catalog
from pelab.v1 import claims_pb2, results_pb2

Columns = Mapping[str, str]


def _kind(field: Any) -> str:
    """The type of a message's field."""
    if field.name.endswith("_at_ms"):
        return "time"
    if field.cpp_type in (field.CPPTYPE_INT32, field.CPPTYPE_INT64, field.CPPTYPE_UINT64):
        return "Int" if field.has_presence else "int"
    if field.cpp_type == field.CPPTYPE_BOOL:
        return "Bool" if field.has_presence else "bool"
    return "float" if field.cpp_type == field.CPPTYPE_DOUBLE else "text"


def _of(row: Any, first: Sequence[str] = (), without: Sequence[str] = ()) -> Columns:
    """The columns of a row message: those in `first`, then the others in order."""
    kinds = {field.name.removesuffix("_ms") if field.name.endswith("_at_ms")
             else field.name: _kind(field)
             for field in row.DESCRIPTOR.fields if field.name not in without}
    return {name: kinds[name] for name in (*first, *(name for name in kinds if name not in first))}


_MATRIX = ("job_id", "method", "hygiene", "split", "target", "analysis_id")
JOBS = _of(results_pb2.JobRow, without=["configuration_id"])
CURVES = _of(results_pb2.CurveRow)
ABLATIONS = _of(results_pb2.HeadAblationRow, first=_MATRIX)
DEPOSITS = _of(results_pb2.DepositRow, first=_MATRIX)
ANALYSES = _of(results_pb2.AnalysisRow, first=["job_id", "analysis_id"])
ATTEMPTS = _of(results_pb2.AttemptRow)
WORKERS = {name.removesuffix("_json"): kind
           for name, kind in _of(results_pb2.WorkerRow,
                                 without=["silent_ms", "lease_left_ms", "time_left_ms"]).items()}
ARTIFACTS = _of(results_pb2.ArtifactRow)
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
SHEETS = _of(claims_pb2.SheetRow, without=["document", "sweep_document"])
SHEET_CLAIMS = _of(claims_pb2.SheetClaimRow)  # those of v_sheet_claims
_EXPONENTIALS = ("e_holds", "e_fails", "threshold")  # each of a stored logarithm
CLAIMS: Columns = {**SHEET_CLAIMS, **dict.fromkeys(_EXPONENTIALS, "float")}


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
        return pd.array([None if value is None else bool(value) for value in values],
                        dtype="boolean")
    if kind == "time":
        stamps = ["NaT" if value is None else value for value in values]
        milliseconds = np.array(stamps, dtype="datetime64[ms]").astype("datetime64[ns]")
        return pd.DatetimeIndex(milliseconds, tz="UTC")
    return pd.Series(list(values), dtype=object)


def frame(rows: Sequence[Sequence[Any]], columns: Columns) -> pd.DataFrame:
    """Makes a frame from rows that have the columns in this order."""
    by_column = list(zip(*rows)) if rows else [()] * len(columns)
    return pd.DataFrame({name: column(values, kind)
                         for (name, kind), values in zip(columns.items(), by_column)})


def with_exponentials(rows: Iterable[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """Rows with the columns of CLAIMS, from rows with those of SHEET_CLAIMS."""
    places = [list(SHEET_CLAIMS).index(f"log_{name}") for name in _EXPONENTIALS]
    return [(*row, *(_exp(row[place]) for place in places)) for row in rows]


def _exp(logarithm: float) -> float:
    """As in `pelab claims show`; numpy's exp differs from it in last bits."""
    try:
        return math.exp(logarithm)
    except OverflowError:
        return math.inf


_KINDS = {"bool": "bool", "int": "int", "real": "float"}  # of the catalog; others: "text"


def kind_of(name: str, values: Sequence[Any]) -> str:
    """The type of a column of jobs, or of a spec field, with these values (None: no value)."""
    known = _catalog.field(name)
    there = [value for value in values if value is not None]
    if name in JOBS:
        kind = JOBS[name]
    else:
        kind = _KINDS.get(known.type, "text") if known else _kind_of_unknown(there)
    types: dict[str, type | tuple[type, ...]] = {"int": int, "bool": bool, "float": (int, float)}
    wanted = types.get(kind)
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
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"),
                                                           ensure_ascii=False)
