"""What both sources have in common: every frame is made here, from rows that they fetch."""

from __future__ import annotations

import abc
from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd

from pelab import _catalog, _cells, _columns, _compare, _where
from pelab._jobs import STATES, JobRows
from pelab.errors import InvalidInput

Row = tuple[Any, ...]


class Source(abc.ABC):
    """A database, or whoever serves it. For one thread; a context manager.

    Jobs are chosen alike in every method that has these parameters:

    sweep    number or name of a sweep (None: every job of the database)
    where    text such as "pe = rope and train.lr >= 1e-4" (README.md, "Choosing jobs")
    state    one state or several; "open" is queued, assigned and running
    jobs     job numbers, or keys' prefixes of 6 digits or more
    fields   further columns: fields of the jobs' specs ("train.lr") or columns of results ("pe_label")
    FIELD=…  a field that has this value, or one of these: task="distance", seed=range(5), model__layers=2
    """

    # One row a job, or one a group of jobs ---------------------------------------------------------------------------

    def results(self, sweep: str | int | None = None, *, where: str | None = None,
                state: str | Sequence[str] | None = None, jobs: Iterable[int | str] | None = None,
                fields: Sequence[str] = (), **equals: object) -> pd.DataFrame:
        """A row a job, by job_id."""
        chosen = self._choose(sweep, where, state, jobs, equals)
        frame = _columns.frame(chosen.rows, _columns.JOBS)
        return _with_fields(frame, chosen, range(len(chosen.rows)), [name for name in fields if name not in _columns.JOBS])

    def summary(self, sweep: str | int | None = None, *, metric: str = "test_accuracy", by: Sequence[str] = (),
                where: str | None = None, state: str | Sequence[str] | None = None,
                jobs: Iterable[int | str] | None = None, fields: Sequence[str] = (), **equals: object) -> pd.DataFrame:
        """Seeds collapsed: mean, sample sd and 95 % t interval over the n jobs that are trained, how many are missing
        or failed. `by` names what makes a cell; empty: everything but the seed. `metric` is a column of results,
        generalisation_gap, epochs_to(0.9) or a deposit index over all layers. A field of `fields` is missing in cells
        whose jobs differ in it."""
        return _cells.summary(self._choose(sweep, where, state, jobs, equals), metric, by, fields)

    def compare(self, sweep: str | int | None, a: str, b: str, *, metric: str = "test_accuracy", where: str | None = None,
                state: str | Sequence[str] | None = None, jobs: Iterable[int | str] | None = None,
                **equals: object) -> pd.DataFrame:
        """The jobs of condition `a` against those of condition `b` ("pe = rope", "pe = mla"), paired by seed: partners
        differ in nothing but what the conditions name. A row a group of pairs that differ in nothing but the seed:
        the mean difference (a minus b), its sample sd and 95 % t interval, the paired t test, and, where both jobs have the
        analysis example_correctness, McNemar's test. `also_different` names other fields in which the sides differ
        throughout; frame.attrs has it too, and unpaired_a and unpaired_b: jobs without a partner."""
        chosen = self._choose(sweep, where, state, jobs, equals)
        compared = [name for side in (a, b) for name in _where.fields_of(chosen, side)]
        if not compared:
            raise InvalidInput('compare needs a condition for each side, such as "pe = rope" and "pe = mla"')
        return _compare.compare(_where.select(chosen, a, {}), _where.select(chosen, b, {}), compared, metric)

    # Rows that belong to jobs ----------------------------------------------------------------------------------------

    def curves(self, sweep: str | int | None = None, *, where: str | None = None,
               state: str | Sequence[str] | None = None, jobs: Iterable[int | str] | None = None,
               fields: Sequence[str] = (), **equals: object) -> pd.DataFrame:
        """A row an epoch of each job's accepted line, by job_id and epoch."""
        return self._of_jobs("curves", _columns.CURVES, sweep, where, state, jobs, fields, equals)

    def ablations(self, sweep: str | int | None = None, *, where: str | None = None,
                  state: str | Sequence[str] | None = None, jobs: Iterable[int | str] | None = None,
                  fields: Sequence[str] = (), **equals: object) -> pd.DataFrame:
        """A row a head of each head-ablation matrix."""
        return self._of_jobs("ablations", _columns.ABLATIONS, sweep, where, state, jobs, fields, equals)

    def deposits(self, sweep: str | int | None = None, *, where: str | None = None,
                 state: str | Sequence[str] | None = None, jobs: Iterable[int | str] | None = None,
                 fields: Sequence[str] = (), **equals: object) -> pd.DataFrame:
        """Deposit indices of each matrix: a row over all layers (layer missing), then one a layer."""
        return self._of_jobs("deposits", _columns.DEPOSITS, sweep, where, state, jobs, fields, equals)

    def analyses(self, sweep: str | int | None = None, *, name: str | None = None, where: str | None = None,
                 state: str | Sequence[str] | None = None, jobs: Iterable[int | str] | None = None,
                 fields: Sequence[str] = (), **equals: object) -> pd.DataFrame:
        """A row an analysis, its result as JSON (missing for head_ablation, whose rows `ablations` has)."""
        frame = self._of_jobs("analyses", _columns.ANALYSES, sweep, where, state, jobs, fields, equals)
        return frame if name is None else frame[frame["name"] == name].reset_index(drop=True)

    def attempts(self, sweep: str | int | None = None, *, where: str | None = None,
                 state: str | Sequence[str] | None = None, jobs: Iterable[int | str] | None = None,
                 fields: Sequence[str] = (), **equals: object) -> pd.DataFrame:
        """A row an attempt, by job_id and number: where it ran, from when to when, with which versions."""
        return self._of_jobs("attempts", _columns.ATTEMPTS, sweep, where, state, jobs, fields, equals)

    def artifacts(self, sweep: str | int | None = None, *, where: str | None = None,
                  state: str | Sequence[str] | None = None, jobs: Iterable[int | str] | None = None,
                  fields: Sequence[str] = (), **equals: object) -> pd.DataFrame:
        """A row a kept file (weights), by job_id and name."""
        return self._of_jobs("artifacts", _columns.ARTIFACTS, sweep, where, state, jobs, fields, equals)

    # Of the whole database -------------------------------------------------------------------------------------------

    def workers(self) -> pd.DataFrame:
        """A row a worker, by host."""
        return _columns.frame(list(self._worker_rows()), _columns.WORKERS)

    def sweeps(self) -> pd.DataFrame:
        """A row a sweep, newest first, with how its jobs stand."""
        return _columns.frame(list(self._sweep_rows()), _columns.SWEEPS)

    @abc.abstractmethod
    def document(self, sweep: str | int) -> str:
        """The text of a sweep's document, as it was submitted."""

    @abc.abstractmethod
    def log(self, job: str | int, attempt: int = 0) -> str:
        """What is kept of an attempt's log (its last 256 KiB); attempt 0 is the latest."""

    @abc.abstractmethod
    def close(self) -> None:
        """Lets go of the file or the connection."""

    def __enter__(self) -> "Source":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # What a source fetches -------------------------------------------------------------------------------------------

    @abc.abstractmethod
    def _job_rows(self, sweep: str | None, states: Sequence[str], jobs: Sequence[str]) -> Sequence[Row]:
        """With the columns of JOBS, by job_id."""

    @abc.abstractmethod
    def _rows_of_jobs(self, what: str, sweep: str | None, job_ids: Sequence[int] | None) -> Iterable[Row]:
        """Of these jobs, which are ascending, or of all of a sweep (None: of all) where `job_ids` is None."""

    @abc.abstractmethod
    def _worker_rows(self) -> Iterable[Row]: ...

    @abc.abstractmethod
    def _sweep_rows(self) -> Iterable[Row]: ...

    def _choose(self, sweep: str | int | None, where: str | None, state: str | Sequence[str] | None,
                jobs: Iterable[int | str] | None, equals: dict[str, object]) -> JobRows:
        rows = self._job_rows(_name(sweep), _states(state), _job_names(jobs))
        chosen = JobRows(rows, lambda what, job_ids: list(self._rows_of_jobs(what, None, job_ids)))
        return _where.select(chosen, where, equals)

    def _of_jobs(self, what: str, columns: _columns.Columns, sweep: str | int | None, where: str | None,
                 state: str | Sequence[str] | None, jobs: Iterable[int | str] | None, fields: Sequence[str],
                 equals: dict[str, object]) -> pd.DataFrame:
        if not (where or state or jobs is not None or equals or fields):
            return _columns.frame(list(self._rows_of_jobs(what, _name(sweep), None)), columns)
        chosen = self._choose(sweep, where, state, jobs, equals)
        rows = list(self._rows_of_jobs(what, None, [row[0] for row in chosen.rows]))
        for name in fields:
            if name in columns and name != "job_id" and name in _columns.JOBS:
                raise InvalidInput(f'{what} have a column "{name}" of their own; that of the job is in `results`')
        places = {row[0]: index for index, row in enumerate(chosen.rows)}
        job_id = list(columns).index("job_id")
        return _with_fields(_columns.frame(rows, columns), chosen, [places[row[job_id]] for row in rows], fields)


def _with_fields(frame: pd.DataFrame, jobs: JobRows, places: Sequence[int], fields: Sequence[str]) -> pd.DataFrame:
    """Fields of jobs as further columns; `places`: the job of each row."""
    _cells.check_fields(jobs, [name for name in fields if name not in _columns.JOBS])
    for name in fields:
        of_jobs = [jobs.value(index, name) for index in range(len(jobs.rows))]
        frame[name] = _columns.column([of_jobs[place] for place in places], _columns.kind_of(name, of_jobs))
    return frame


def _name(sweep: str | int | None) -> str | None:
    return None if sweep is None else str(sweep)


def _states(state: str | Sequence[str] | None) -> list[str]:
    if state is None:
        return []
    states: list[str] = []
    for one in [state] if isinstance(state, str) else state:
        if one == "open":
            states += ["queued", "assigned", "running"]
        elif one in STATES:
            states.append(one)
        else:
            raise _catalog.unknown("state", one, [*STATES, "open"])
    return states


def _job_names(jobs: Iterable[int | str] | None) -> list[str]:
    if jobs is None:
        return []
    names = [str(job) for job in ([jobs] if isinstance(jobs, (int, str)) else jobs)]
    if not names:
        raise InvalidInput("jobs is empty; leave it out for every job")
    return names
