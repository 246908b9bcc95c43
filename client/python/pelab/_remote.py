"""A coordinator over gRPC: the same frames as from the file, and a coordinator's operations."""

from __future__ import annotations

import json
import os
import re
import sys
import uuid
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TextIO

import grpc

from pelab import _catalog, _channel, _columns, _upload
from pelab._jobs import SEED_MARK
from pelab._source import Row, Source
from pelab._trace import Trace
from pelab.errors import (InvalidInput, NoCoordinator, NotFound, PelabError, Refused,
                          Unauthenticated, Violation)
from pelab.v1 import (claims_pb2, claims_pb2_grpc, common_pb2, results_pb2, results_pb2_grpc,
                      sweeps_pb2, sweeps_pb2_grpc)

_DEADLINE = 30.0
_PAGE_ROWS = 5000  # far below the message size limit for every kind of row
_CURVE_ROWS = 10_000  # a row has at most 150 bytes
_JOBS_AT_ONCE = 500
_OF_MILLISECONDS = {"created_at", "started_at", "ended_at", "last_seen_at"}
_STATUS_ERRORS: Mapping[grpc.StatusCode, type[PelabError]] = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidInput,
    grpc.StatusCode.OUT_OF_RANGE: InvalidInput,
    grpc.StatusCode.NOT_FOUND: NotFound,
    grpc.StatusCode.FAILED_PRECONDITION: Refused,
    grpc.StatusCode.ALREADY_EXISTS: Refused,
    grpc.StatusCode.PERMISSION_DENIED: Unauthenticated,
    grpc.StatusCode.UNAUTHENTICATED: Unauthenticated,
}


def connect(address: str, *, tls: bool = False, tls_ca: str | os.PathLike[str] | None = None,
            tls_cert: str | os.PathLike[str] | None = None,
            tls_key: str | os.PathLike[str] | None = None,
            token_file: str | os.PathLike[str] | None = None, insecure: bool = False,
            timeout: float = 5.0) -> "Coordinator":
    """Connects to the coordinator at "HOST:PORT" or "unix:PATH".

    You are the principal of the token in `token_file` or PELAB_TOKEN, or of the certificate in
    `tls_cert` with its key in `tls_key`. A connection to another machine uses TLS; `tls_ca` is a
    file with the authorities to trust instead of the system's; `tls` uses TLS for local addresses
    too; `insecure` uses no TLS. NoCoordinator if the connection is refused or
    nobody answers within `timeout` seconds.
    """
    security = _channel.Security(tls=tls, tls_ca=tls_ca, tls_cert=tls_cert, tls_key=tls_key,
                                 token_file=token_file, insecure=insecure)
    return Coordinator(address, _channel.open_channel(address, security, timeout))


@dataclass(frozen=True)
class JobCounts:
    """The jobs of a submission, counted when it was submitted.

    str() is "N new, M already stored, K in flight, F failed earlier".
    """

    total: int
    new: int
    stored: int
    in_flight: int
    failed_earlier: int
    analysis_jobs: int
    analysis_impossible: int

    def __str__(self) -> str:
        return (f"{self.new} new, {self.stored} already stored, {self.in_flight} in flight, "
                f"{self.failed_earlier} failed earlier")


@dataclass(frozen=True)
class Submission:
    """A sweep that was stored.

    A very large sweep may still be expanding: then `expanded` is false and the counts are 0.
    """

    sweep_id: int
    name: str
    cells: int
    expanded: bool
    counts: JobCounts


@dataclass(frozen=True)
class Cancelled:
    claims_withdrawn: int
    jobs_cancelled: int
    more: bool  # a very large sweep: no job starts any more, but cancelling continues


@dataclass(frozen=True)
class RunningJob:
    job_id: int
    pe_label: str
    task: str
    seed: int
    epochs: int
    epochs_done: int
    test_accuracy: float  # of the last epoch; 0 before the first
    worker: str
    device: str
    analysing: bool  # trained; its analyses are running


@dataclass(frozen=True)
class Snapshot:
    """The state of a sweep at one moment. str() is one line of progress."""

    sweep_id: int
    name: str
    state: str  # expanding, active, finished or cancelled
    paused: bool
    queued: int
    assigned: int
    running: int
    succeeded: int
    failed: int
    cancelled: int
    epochs: int
    epochs_done: int
    waiting_reason: str  # why no queued job starts; empty if jobs do start
    jobs: tuple[RunningJob, ...]  # at most 64

    @property
    def ended(self) -> bool:
        return self.state in ("finished", "cancelled")

    def __str__(self) -> str:
        total = (self.queued + self.assigned + self.running + self.succeeded + self.failed
                 + self.cancelled)
        share = 100 * self.epochs_done / self.epochs if self.epochs else 0
        line = (f"{self.name}: {self.succeeded}/{total} jobs succeeded, {self.running} running, "
                f"{share:.0f} % of epochs")
        if self.failed:
            line += f", {self.failed} failed"
        if self.cancelled:
            line += f", {self.cancelled} cancelled"
        return line + (f"; waiting: {self.waiting_reason}" if self.waiting_reason else "")


class Coordinator(Source):
    """See Source.

    Long answers come in pages. Every call has a deadline of 30 s, except `watch`, `wait` and
    `follow`.
    """

    def __init__(self, address: str, channel: grpc.Channel) -> None:
        self.address = address
        self._channel = channel
        # Some versions of grpcio wait for ever when the interpreter ends with an open channel.
        weakref.finalize(self, channel.close)
        self._sweeps = sweeps_pb2_grpc.SweepsStub(channel)  # type: ignore[no-untyped-call]
        self._results = results_pb2_grpc.ResultsStub(channel)  # type: ignore[no-untyped-call]
        self._claims = claims_pb2_grpc.ClaimsStub(channel)  # type: ignore[no-untyped-call]

    def __repr__(self) -> str:
        return f"pelab.connect({self.address!r})"

    def close(self) -> None:
        self._channel.close()

    # Operations that only a coordinator offers ----------------------------------------------------

    def submit(self, sweep: str | os.PathLike[str] | Mapping[str, Any], *,
               overrides: Mapping[str, object] | None = None,
               own_files: Mapping[str, str | os.PathLike[str]] | None = None,
               priority: int = 0, fresh: bool = False, new: bool = False) -> Submission:
        """Submits a sweep; the workers then train its jobs.

        `sweep` is a path, the text of a document (any text with a line break), or a document as a
        mapping. `overrides` sets fields as --set does: {"model.layers": 4}. `own_files` has the
        files of own encodings and data, by the paths that the document has for them. If a sweep
        with the same name and the same document exists, the submission continues it. A changed
        document needs another name, or `new`, which makes another sweep of that name. The sweep
        belongs to a trace of its own, or to the one that the environment variable TRACEPARENT
        names. InvalidInput carries `violations` with file, line and column.
        """
        text, file_name = _upload.document(sweep)
        request = sweeps_pb2.SubmitRequest(document=text, file_name=file_name,
                                           client_token=str(uuid.uuid4()),
                                           priority=priority, fresh=fresh, new_sweep=new)
        for field, value in (overrides or {}).items():
            request.overrides.add(field=field,
                                  value=value if isinstance(value, str) else json.dumps(value))
        said = [text, *(override.value for override in request.overrides)]
        trace = Trace()
        for name, path in (own_files or {}).items():
            file = _upload.OwnFile(path)
            request.overrides.add(field=f"file:{name}", value=file.declaration(said))
            there = self._call(self._sweeps.PutFile, file.question(), file_name, trace)
            if not there.already_there:
                self._call(self._sweeps.PutFile, file.parts(there.kept), file_name, trace)
        answer = self._call(self._sweeps.Submit, request, file_name, trace)
        counts = answer.counts
        return Submission(answer.sweep_id, answer.name, answer.cells, answer.expanded,
                          JobCounts(counts.total, counts.new_jobs, counts.stored, counts.in_flight,
                                    counts.failed_earlier,
                                    counts.analysis_jobs, counts.analysis_impossible))

    def cancel(self, sweep: str | int | None = None, *, job: str | int | None = None) -> Cancelled:
        """Withdraws a sweep's claims on its jobs, or all claims on one job.

        Jobs without any claim left are stopped.
        """
        if (sweep is None) == (job is None):
            raise InvalidInput("name a sweep or a job to cancel, one of them")
        request = sweeps_pb2.CancelRequest()
        if job is not None:
            request.job = str(job)
        else:
            request.sweep.sweep = str(sweep)
        answer = self._call(self._sweeps.Cancel, request)
        return Cancelled(answer.claims_withdrawn, answer.jobs_cancelled, answer.more)

    def snapshot(self, sweep: str | int) -> Snapshot:
        """The state of the sweep now, without its running jobs."""
        return _snapshot(self._sweep(sweep), ())

    def watch(self, sweep: str | int) -> Iterator[Snapshot]:
        """Yields a snapshot immediately and after changes, until every job has ended.

        There are at most five snapshots per second.
        """
        request = sweeps_pb2.WatchSweepRequest(sweep=sweeps_pb2.SweepRef(sweep=str(sweep)))
        for update in self._stream(self._sweeps.WatchSweep, request, None):
            yield _snapshot(update.sweep, update.running)

    def wait(self, sweep: str | int, *, progress: TextIO | bool = False) -> Snapshot:
        """Waits until every job has ended and returns the last snapshot.

        With `progress`, keeps a progress line up to date there (True: on standard error).
        """
        out = sys.stderr if progress is True else progress or None
        last: Snapshot | None = None
        width = 0
        for last in self.watch(sweep):
            if out is not None:
                line = _printable(str(last))
                out.write("\r" + line.ljust(width))
                out.flush()
                width = len(line)
        if out is not None and last is not None:
            out.write("\n")
        return last if last is not None else self.snapshot(sweep)

    def follow(self, job: str | int, attempt: int = 0) -> Iterator[str]:
        """Yields the stored part of an attempt's log, then new parts until the attempt ends."""
        for part in self._log(job, attempt, follow=True):
            yield part.decode("utf-8", errors="replace")

    # Reading --------------------------------------------------------------------------------------

    def log(self, job: str | int, attempt: int = 0) -> str:
        return b"".join(self._log(job, attempt, follow=False)).decode("utf-8", errors="replace")

    def document(self, sweep: str | int) -> str:
        return str(self._sweep(sweep).document)

    def _sweep(self, sweep: str | int) -> Any:
        return self._call(self._sweeps.GetSweep,
                          sweeps_pb2.GetSweepRequest(sweep=sweeps_pb2.SweepRef(sweep=str(sweep))))

    def _log(self, job: str | int, attempt: int, follow: bool) -> Iterator[bytes]:
        request = results_pb2.ReadLogRequest(job=str(job), attempt=attempt, follow=follow)
        for part in self._stream(self._results.ReadLog, request, None if follow else _DEADLINE):
            yield part.data

    def _job_rows(self, sweep: str | None, states: Sequence[str],
                  jobs: Sequence[str]) -> Sequence[Row]:
        rows: dict[int, Row] = {}
        for some in _slices(jobs) if jobs else [()]:
            filter_ = results_pb2.JobFilter(sweep=sweep or "", jobs=some)
            filter_.states.extend(common_pb2.JobState.Value(f"JOB_STATE_{state.upper()}")
                                  for state in states)
            request = results_pb2.ListJobsRequest(filter=filter_, specs_apart=True)
            templates: dict[int, str] = {}
            for page in self._pages(self._results.ListJobs, request, _PAGE_ROWS):
                templates.update((one.configuration_id, one.spec_template)
                                 for one in page.configurations)
                rows.update((row.job_id, _job_row(row, templates)) for row in page.jobs)
        return [rows[job_id] for job_id in sorted(rows)]

    def _rows_of_jobs(self, what: str, sweep: str | None,
                      job_ids: Sequence[int] | None) -> Iterable[Row]:
        for some in [None] if job_ids is None else _slices(job_ids):
            filter_ = (results_pb2.JobFilter(sweep=sweep or "") if some is None
                       else results_pb2.JobFilter(
                           jobs=[str(job_id) for job_id in some]))
            yield from self._rows_of(what, filter_)

    def _rows_of(self, what: str, filter_: Any) -> Iterable[Row]:
        method, request_type, columns = {
            "curves": (self._results.ListCurves, results_pb2.ListCurvesRequest, _columns.CURVES),
            "ablations": (self._results.ListHeadAblations, results_pb2.ListHeadAblationsRequest,
                          _columns.ABLATIONS),
            "deposits": (self._results.ListDeposits, results_pb2.ListDepositsRequest,
                         _columns.DEPOSITS),
            "analyses": (self._results.ListAnalyses, results_pb2.ListAnalysesRequest,
                         _columns.ANALYSES),
            "attempts": (self._results.ListAttempts, results_pb2.ListAttemptsRequest,
                         _columns.ATTEMPTS),
            "artifacts": (self._results.ListArtifacts, results_pb2.ListArtifactsRequest,
                          _columns.ARTIFACTS),
        }[what]
        read = _reader(columns)
        for page in self._pages(method, request_type(filter=filter_),
                                _CURVE_ROWS if what == "curves" else _PAGE_ROWS):
            yield from map(read, page.rows)

    def _worker_rows(self) -> Iterable[Row]:
        read = _reader(_columns.WORKERS)
        request = results_pb2.ListWorkersRequest()
        for page in self._pages(self._results.ListWorkers, request, _PAGE_ROWS):
            yield from map(read, page.workers)

    def _sweep_rows(self) -> Iterable[Row]:
        request = sweeps_pb2.ListSweepsRequest()
        for page in self._pages(self._sweeps.ListSweeps, request, _PAGE_ROWS):
            yield from map(_sweep_row, page.sweeps)

    def _sheet_rows(self) -> Iterable[Row]:
        read = _reader(_columns.SHEETS)
        request = claims_pb2.ListSheetsRequest()
        for page in self._pages(self._claims.ListSheets, request, _PAGE_ROWS):
            yield from map(read, page.rows)

    def _sheet_claim_rows(self, sheet: str, last_round: bool) -> Iterable[Row]:
        read = _reader(_columns.SHEET_CLAIMS)
        request = claims_pb2.ListSheetClaimsRequest(sheet=claims_pb2.SheetRef(sheet=sheet),
                                                    last_round=last_round)
        try:
            for page in self._pages(self._claims.ListSheetClaims, request, _PAGE_ROWS):
                yield from map(read, page.rows)
        except NotFound:
            name = list(_columns.SHEETS).index("name")
            raise _catalog.no_sheet(sheet, [row[name] for row in self._sheet_rows()]) from None

    # Calls ----------------------------------------------------------------------------------------

    def _pages(self, method: Callable[..., Any], request: Any, limit: int) -> Iterator[Any]:
        request.page.limit = limit
        seen: set[str] = set()
        trace = Trace()
        while True:
            page = self._call(method, request, trace=trace)
            yield page
            if not page.next:
                return
            if page.next in seen:
                raise PelabError(
                    f"the coordinator at {self.address} repeats the pages of its answer")
            seen.add(page.next)
            request.page.after = page.next

    def _call(self, method: Callable[..., Any], request: Any, file_name: str = "",
              trace: Trace | None = None) -> Any:
        """`trace`: of the operation that the call is part of; None: it is all of it."""
        try:
            return method(request, timeout=_DEADLINE, metadata=(trace or Trace()).metadata())
        except grpc.RpcError as error:
            raise self._said(error, file_name) from None
        except ValueError as error:  # raised by a closed channel
            raise NoCoordinator(f"the connection to {self.address} is closed: {error}") from None

    def _stream(self, method: Callable[..., Any], request: Any,
                timeout: float | None) -> Iterator[Any]:
        call = method(request, timeout=timeout, metadata=Trace().metadata())
        try:
            yield from call
        except grpc.RpcError as error:
            if error.code() == grpc.StatusCode.CANCELLED:
                self._why_ended()
            raise self._said(error) from None
        finally:
            call.cancel()

    def _why_ended(self) -> NoReturn:
        """Raises the reason why the coordinator cancelled a call. It does so if the principal may
        not make it any more, which another call is told, or if this client was too slow."""
        request = sweeps_pb2.ListSweepsRequest()
        request.page.limit = 1
        self._call(self._sweeps.ListSweeps, request)
        raise PelabError(f"the coordinator at {self.address} ended this call")

    def _said(self, error: grpc.RpcError, file_name: str = "") -> PelabError:
        """Converts an RPC error to a PelabError with the coordinator's message."""
        code = error.code()
        if code == grpc.StatusCode.UNAVAILABLE:
            return NoCoordinator(f"lost the coordinator at {self.address}")
        if code == grpc.StatusCode.DEADLINE_EXCEEDED:
            return NoCoordinator(
                f"the coordinator at {self.address} did not answer within {_DEADLINE:.0f} s")
        if code == grpc.StatusCode.UNIMPLEMENTED:
            return Refused(f"the coordinator at {self.address} does not know this request: it is "
                           "of an older version")
        message = error.details() or f"the coordinator at {self.address} gave no reason"
        if code == grpc.StatusCode.INVALID_ARGUMENT:
            violations = _violations(error, file_name)
            return InvalidInput("\n".join(map(str, violations)) if violations else message,
                                violations)
        no_sweep = re.match(r'no sweep "(.*?)"', message, re.DOTALL)
        if code == grpc.StatusCode.NOT_FOUND and no_sweep:
            return _catalog.no_sweep(no_sweep.group(1), [row[1] for row in self._sweep_rows()])
        return _STATUS_ERRORS.get(code, PelabError)(message)


def _violations(error: grpc.RpcError, file_name: str) -> list[Violation]:
    details = dict(error.trailing_metadata() or ()).get("grpc-status-details-bin")
    if not details:
        return []
    found = common_pb2.Violations()
    try:
        found.ParseFromString(details)
    except Exception:  # noqa: BLE001 - another program's bytes
        return []
    return [Violation(file_name, one.line, one.column, one.path, one.value, one.allowed,
                      one.message) for one in found.violations]


def _slices(values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for start in range(0, len(values), _JOBS_AT_ONCE):
        yield values[start:start + _JOBS_AT_ONCE]


def _printable(line: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in line)


def _lower(prefix: str, name: str) -> str:
    return name[len(prefix):].lower()


def _reader(columns: _columns.Columns) -> Callable[[Any], Row]:
    """Reads a message as a row. Absent members become None; enumerations become words."""
    getters: list[Callable[[Any], Any]] = []
    for name, kind in columns.items():
        member = {"devices": "devices_json"}.get(name,
                                                 f"{name}_ms" if name in _OF_MILLISECONDS else name)
        getters.append(_getter(member, kind))
    return lambda message: tuple(get(message) for get in getters)


def _getter(member: str, kind: str) -> Callable[[Any], Any]:
    if member == "outcome":
        return lambda message: None if message.outcome == 0 else _lower(
            "ATTEMPT_OUTCOME_", common_pb2.AttemptOutcome.Name(message.outcome))
    if member == "state" and kind == "text":
        return lambda message: message.state

    def get(message: Any) -> Any:
        value = getattr(message, member)
        if (not value and message.DESCRIPTOR.fields_by_name[member].has_presence
            and not message.HasField(member)):
            return None
        return value
    return get


_job_columns = _reader({name: kind for name, kind in _columns.JOBS.items()
                        if name not in ("state", "spec_json")})


def _job_row(message: Any, templates: Mapping[int, str]) -> Row:
    values = list(_job_columns(message))
    places = list(_columns.JOBS)
    values.insert(places.index("state"),
                  _lower("JOB_STATE_", common_pb2.JobState.Name(message.state)))
    template = templates.get(message.configuration_id, "")
    values.insert(places.index("spec_json"),
                  message.spec_json or template.replace(SEED_MARK, str(message.seed)))
    return tuple(values)


def _sweep_row(sweep: Any) -> Row:
    jobs, counts = sweep.jobs, sweep.counts
    return (sweep.sweep_id, sweep.name, sweep.protocol,
            _lower("SWEEP_STATE_", sweeps_pb2.SweepState.Name(sweep.state)), sweep.priority,
            sweep.file_name, sweep.created_at_ms, sweep.cells, counts.new_jobs, counts.stored,
            counts.in_flight, counts.failed_earlier, jobs.queued, jobs.assigned, jobs.running,
            jobs.succeeded, jobs.failed, jobs.cancelled, sweep.epochs_total, sweep.epochs_done,
            sweep.paused, json.dumps(list(sweep.extensions), separators=(",", ":")), sweep.note)


def _snapshot(sweep: Any, running: Iterable[Any]) -> Snapshot:
    jobs = sweep.jobs
    return Snapshot(
        sweep.sweep_id, sweep.name, _lower("SWEEP_STATE_", sweeps_pb2.SweepState.Name(sweep.state)),
        sweep.paused, jobs.queued, jobs.assigned, jobs.running, jobs.succeeded, jobs.failed,
        jobs.cancelled, sweep.epochs_total, sweep.epochs_done, sweep.waiting_reason,
        tuple(RunningJob(one.job_id, one.pe_label, one.task, one.seed, one.epochs, one.epochs_done,
                         one.test_accuracy,
                         one.worker, one.device, one.analysing) for one in running))
