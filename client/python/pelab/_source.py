"""The interface of both sources. All frames are built here, from rows that the sources fetch."""

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
    """A database file or a coordinator. Use it from one thread; it is a context manager.

    These parameters choose jobs, in the same way in every method that has them:

    sweep    number or name of a sweep (None: every job of the database)
    where    a condition such as "pe = rope and train.lr >= 1e-4" (README.md, "Choosing jobs")
    state    one state or several; "open" means queued, assigned and running
    jobs     job numbers, or prefixes of keys with at least 6 digits
    FIELD=…  a value of a field, or several: task="distance", seed=range(5), model__layers=2

    `fields` adds columns: fields of the jobs' specs ("train.lr") or columns of `results`
    ("pe_label").
    """

    # One row per job, or per group of jobs --------------------------------------------------------

    def results(self, sweep: str | int | None = None, *, where: str | None = None,
                state: str | Sequence[str] | None = None, jobs: Iterable[int | str] | None = None,
                fields: str | Sequence[str] = (), **equals: object) -> pd.DataFrame:
        """One row per job, ordered by job_id."""
        chosen = self._choose(sweep, where, state, jobs, equals)
        frame = _columns.frame(chosen.rows, _columns.JOBS)
        return _with_fields(frame, chosen, range(len(chosen.rows)),
                            [name for name in _names(fields) if name not in _columns.JOBS])

    def summary(self, sweep: str | int | None = None, *, metric: str = "test_accuracy",
                by: str | Sequence[str] = (), where: str | None = None,
                state: str | Sequence[str] | None = None, jobs: Iterable[int | str] | None = None,
                fields: str | Sequence[str] = (), **equals: object) -> pd.DataFrame:
        """One row per group: the jobs of one configuration, over their seeds.

        The mean, sample sd and 95 % t interval are those of the n trained jobs; other columns count
        missing and failed jobs. `by` names the fields that form a group; empty: all fields except
        the seed. `metric` is an accuracy or wall_seconds of `results`, generalisation_gap,
        epochs_to(0.9), split_accuracy(long), layer_drop(0), greedy_accuracy(2) or a deposit index
        over all layers. A column of `fields` has no value in groups whose jobs differ in it.
        """
        return _cells.summary(self._choose(sweep, where, state, jobs, equals), metric, _names(by),
                              _names(fields))

    def compare(self, sweep: str | int | None, a: str, b: str, *, metric: str = "test_accuracy",
                where: str | None = None,
                state: str | Sequence[str] | None = None, jobs: Iterable[int | str] | None = None,
                **equals: object) -> pd.DataFrame:
        """Compares the jobs of two conditions, such as "pe = rope" and "pe = mla", paired by seed.

        The two jobs of a pair differ only in the fields that the conditions name, and in fields
        that have one value throughout side `a` and another throughout side `b`; `also_different`
        names the latter. Each row is a group of pairs that differ only in the seed: the mean
        difference (a minus b), its sample sd and 95 % t interval, and the paired t test. It has
        McNemar's test for pairs whose jobs both have the analysis example_correctness. frame.attrs
        holds also_different, and unpaired_a and unpaired_b: the numbers of jobs without a partner.
        """
        chosen = self._choose(sweep, where, state, jobs, equals)
        compared = [name for side in (a, b) for name in _where.fields_of(chosen, side)]
        if not compared:
            raise InvalidInput(
                'compare needs a condition for each side, such as "pe = rope" and "pe = mla"')
        return _compare.compare(_where.select(chosen, a, {}), _where.select(chosen, b, {}),
                                compared, metric)

    # Rows that belong to jobs ---------------------------------------------------------------------

    def curves(self, sweep: str | int | None = None, *, where: str | None = None,
               state: str | Sequence[str] | None = None, jobs: Iterable[int | str] | None = None,
               fields: str | Sequence[str] = (), **equals: object) -> pd.DataFrame:
        """One row per epoch of each job's accepted curve, ordered by job_id and epoch."""
        return self._of_jobs("curves", _columns.CURVES, sweep, where, state, jobs, fields, equals)

    def ablations(self, sweep: str | int | None = None, *, where: str | None = None,
                  state: str | Sequence[str] | None = None, jobs: Iterable[int | str] | None = None,
                  fields: str | Sequence[str] = (), **equals: object) -> pd.DataFrame:
        """One row per head of each head-ablation matrix."""
        return self._of_jobs("ablations", _columns.ABLATIONS, sweep, where, state, jobs, fields,
                             equals)

    def deposits(self, sweep: str | int | None = None, *, where: str | None = None,
                 state: str | Sequence[str] | None = None, jobs: Iterable[int | str] | None = None,
                 fields: str | Sequence[str] = (), **equals: object) -> pd.DataFrame:
        """Deposit indices of each head-ablation matrix.

        The first row is over all layers (its layer is missing); then one row per layer.
        """
        return self._of_jobs("deposits", _columns.DEPOSITS, sweep, where, state, jobs, fields,
                             equals)

    def analyses(self, sweep: str | int | None = None, *, name: str | None = None,
                 where: str | None = None,
                 state: str | Sequence[str] | None = None, jobs: Iterable[int | str] | None = None,
                 fields: str | Sequence[str] = (), **equals: object) -> pd.DataFrame:
        """One row per analysis, with its result as JSON.

        The result is missing for head_ablation: `ablations` has its rows.
        """
        frame = self._of_jobs("analyses", _columns.ANALYSES, sweep, where, state, jobs, fields,
                              equals)
        return frame if name is None else frame[frame["name"] == name].reset_index(drop=True)

    def attempts(self, sweep: str | int | None = None, *, where: str | None = None,
                 state: str | Sequence[str] | None = None, jobs: Iterable[int | str] | None = None,
                 fields: str | Sequence[str] = (), **equals: object) -> pd.DataFrame:
        """One row per attempt, ordered by job_id and number: worker, device, times and versions."""
        return self._of_jobs("attempts", _columns.ATTEMPTS, sweep, where, state, jobs, fields,
                             equals)

    def artifacts(self, sweep: str | int | None = None, *, where: str | None = None,
                  state: str | Sequence[str] | None = None, jobs: Iterable[int | str] | None = None,
                  fields: str | Sequence[str] = (), **equals: object) -> pd.DataFrame:
        """One row per stored file (weights), ordered by job_id and name."""
        return self._of_jobs("artifacts", _columns.ARTIFACTS, sweep, where, state, jobs, fields,
                             equals)

    # Frames about the whole database --------------------------------------------------------------

    def workers(self) -> pd.DataFrame:
        """One row per worker, ordered by name and id."""
        return _columns.frame(list(self._worker_rows()), _columns.WORKERS)

    def sweeps(self) -> pd.DataFrame:
        """One row per sweep, newest first, with the number of jobs in each state."""
        return _columns.frame(list(self._sweep_rows()), _columns.SWEEPS)

    def sheets(self) -> pd.DataFrame:
        """One row per registered claim sheet, newest first, without its documents."""
        return _columns.frame(list(self._sheet_rows()), _columns.SHEETS)

    def claims(self, sheet: str | int, *, rounds: str = "last") -> pd.DataFrame:
        """One row per claim of a registered sheet, after the last round that has ended.

        `sheet` is a name (the newest sheet of that name), a number, or 6 or more digits of a
        SHA-256. With `rounds="all"` there is one row per claim after every round that has ended,
        ordered by round. The frame is empty before the first round has ended.
        """
        if rounds not in ("last", "all"):
            raise _catalog.unknown("rounds", rounds, ["last", "all"])
        rows = self._sheet_claim_rows(str(sheet), rounds == "last")
        return _columns.frame(_columns.with_exponentials(rows), _columns.CLAIMS)

    @abc.abstractmethod
    def document(self, sweep: str | int) -> str:
        """The text of a sweep's document as submitted."""

    @abc.abstractmethod
    def log(self, job: str | int, attempt: int = 0) -> str:
        """The stored end of an attempt's log (its last 256 KiB); attempt 0 is the latest one."""

    @abc.abstractmethod
    def close(self) -> None:
        """Closes the file or the connection."""

    def __enter__(self) -> "Source":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # The rows that each source fetches ------------------------------------------------------------

    @abc.abstractmethod
    def _job_rows(self, sweep: str | None, states: Sequence[str],
                  jobs: Sequence[str]) -> Sequence[Row]:
        """Rows with the columns of JOBS, ordered by job_id."""

    @abc.abstractmethod
    def _rows_of_jobs(self, what: str, sweep: str | None,
                      job_ids: Sequence[int] | None) -> Iterable[Row]:
        """Rows of these jobs, whose numbers ascend.

        If `job_ids` is None: of all jobs of the sweep, or of all jobs if `sweep` is None too.
        """

    @abc.abstractmethod
    def _worker_rows(self) -> Iterable[Row]: ...

    @abc.abstractmethod
    def _sweep_rows(self) -> Iterable[Row]: ...

    @abc.abstractmethod
    def _sheet_rows(self) -> Iterable[Row]: ...

    @abc.abstractmethod
    def _sheet_claim_rows(self, sheet: str, last_round: bool) -> Iterable[Row]:
        """Rows with the columns of SHEET_CLAIMS, ordered by round and position.

        With `last_round`, only those of the last round that has ended.
        """

    def _choose(self, sweep: str | int | None, where: str | None, state: str | Sequence[str] | None,
                jobs: Iterable[int | str] | None, equals: dict[str, object]) -> JobRows:
        rows = self._job_rows(_name(sweep), _states(state), _job_names(jobs))
        chosen = JobRows(rows, lambda what, job_ids: list(self._rows_of_jobs(what, None, job_ids)))
        return _where.select(chosen, where, equals)

    def _of_jobs(self, what: str, columns: _columns.Columns, sweep: str | int | None, where: str
                 | None, state: str | Sequence[str] | None, jobs: Iterable[int | str] | None,
                 fields: str | Sequence[str], equals: dict[str, object]) -> pd.DataFrame:
        if not (where or state or jobs is not None or equals or fields):
            return _columns.frame(list(self._rows_of_jobs(what, _name(sweep), None)), columns)
        chosen = self._choose(sweep, where, state, jobs, equals)
        rows = list(self._rows_of_jobs(what, None, [row[0] for row in chosen.rows]))
        names = _names(fields)
        for name in names:
            if name in columns and name != "job_id" and name in _columns.JOBS:
                raise InvalidInput(
                    f'{what} have a column "{name}" of their own; that of the job is in `results`')
        places = {row[0]: index for index, row in enumerate(chosen.rows)}
        job_id = list(columns).index("job_id")
        return _with_fields(_columns.frame(rows, columns), chosen,
                            [places[row[job_id]] for row in rows], names)


def _with_fields(frame: pd.DataFrame, jobs: JobRows, places: Sequence[int],
                 fields: Sequence[str]) -> pd.DataFrame:
    """Adds fields of jobs as columns; `places` gives the index of each row's job."""
    _cells.check_fields(jobs, [name for name in fields if name not in _columns.JOBS])
    for name in fields:
        of_jobs = [jobs.value(index, name) for index in range(len(jobs.rows))]
        frame[name] = _columns.column([of_jobs[place] for place in places],
                                      _columns.kind_of(name, of_jobs))
    return frame


def _names(fields: str | Sequence[str]) -> Sequence[str]:
    return [fields] if isinstance(fields, str) else fields


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
