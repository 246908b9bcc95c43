"""A database file, read through its public views. A coordinator may serve it at the same time."""

from __future__ import annotations

import fcntl
import os
import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import quote

from pelab import _catalog, _columns, _schema
from pelab._build import APPLICATION_ID, FIRST_SCHEMA, SCHEMA_VERSION
from pelab._source import Row, Source
from pelab.errors import InvalidInput, NotFound, PelabError, Refused

_BUSY_SECONDS = 5.0
_OF_A_COORDINATOR = ("submit", "cancel", "snapshot", "watch", "wait", "follow")
_OLDEST_SQLITE = (3, 38, 0)  # the views read JSON with ->>

_JOBS = ", ".join(f"j.{name}" for name in _columns.JOBS)
_OF_SWEEP = "j.key IN (SELECT key FROM v_sweep_jobs WHERE sweep_id = ?)"
_TEXTS = ("coalesce(method, '') AS method, coalesce(hygiene, '') AS hygiene, coalesce(split, '') "
          "AS split, target")

# Each query reads the rows of one job, in order.
_ROWS = {
    "curves": f"SELECT {', '.join(_columns.CURVES)} FROM v_curves WHERE job_id = ? ORDER BY epoch",
    "ablations": f"SELECT job_id, {_TEXTS}, {', '.join(list(_columns.ABLATIONS)[5:])} FROM "
                 "v_head_ablation WHERE job_id = ? ORDER BY 2, 3, 4, 5, 6, 7, 8",
    "deposits": f"SELECT job_id, {_TEXTS}, {', '.join(list(_columns.DEPOSITS)[5:])} FROM "
                "v_deposits WHERE job_id = ? ORDER BY 2, 3, 4, 5, 6, coalesce(layer, -1)",
    "analyses": f"SELECT {', '.join(_columns.ANALYSES)} FROM v_analyses WHERE job_id = ? ORDER BY "
                "analysis_id",
    "attempts": f"SELECT {', '.join(_columns.ATTEMPTS)} FROM v_attempts WHERE job_id = ? ORDER BY "
                "number",
    "artifacts": f"SELECT {', '.join(_columns.ARTIFACTS)} FROM v_artifacts WHERE job_id = ? ORDER "
                 "BY name",
}


def open_file(path: str | os.PathLike[str]) -> "File":
    """Opens the database at `path` read-only. A coordinator may be writing to it, but need not run.

    NotFound if there is no file; Refused if it is not a pelab database or has another schema.
    """
    return File(Path(path))


class File(Source):
    """See Source. Each query runs in one read transaction.

    A frame for chosen jobs, or with `fields`, takes several queries: first the jobs, then their
    rows.
    """

    def __init__(self, path: Path) -> None:
        # A coordinator locks the file that a symbolic link leads to.
        self.path = path.resolve() if path.is_symlink() else path
        if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
            raise Refused(
                f"this Python has SQLite {sqlite3.sqlite_version}; pelab's views need 3.38 or "
                "newer")
        if not path.exists():
            raise NotFound(f"no database at {path}")
        if path.is_dir():
            raise Refused(f"{path} is a directory, not a pelab database")
        # SQLite would wait for the other end of a pipe.
        for file in path, Path(f"{self.path}-journal"):
            if file.exists() and not file.is_file():
                raise Refused(f"{file} is not a regular file: it is no pelab database")
        self._db = self._connect()
        try:
            self._check()
        except BaseException:
            self._db.close()
            raise

    def __repr__(self) -> str:
        return f"pelab.open({str(self.path)!r})"

    def __getattr__(self, name: str) -> NoReturn:
        hint = ": a coordinator has it, see pelab.connect" if name in _OF_A_COORDINATOR else ""
        raise AttributeError(f"a database file has no {name}{hint}", name=name, obj=self)

    def close(self) -> None:
        self._db.close()

    # A read-only connection to a database in WAL mode creates the -shm file if it is missing. That
    # fails in a folder that is not writable. If there is no -wal file (or an empty one), nobody is
    # writing, so the file can be read as immutable.
    def _connect(self) -> sqlite3.Connection:
        uri = "file:" + quote(str(self.path.absolute()))
        db = sqlite3.connect(uri + "?mode=ro", uri=True, timeout=_BUSY_SECONDS,
                             isolation_level=None)
        try:
            db.execute("PRAGMA schema_version").fetchone()
            return db
        except sqlite3.DatabaseError as error:
            db.close()
            wal = Path(f"{self.path}-wal")
            if "unable to open" not in str(error) or (wal.exists() and wal.stat().st_size > 0):
                raise self._said(error) from None
        return sqlite3.connect(uri + "?immutable=1", uri=True, timeout=_BUSY_SECONDS,
                               isolation_level=None)

    def _said(self, error: sqlite3.Error) -> PelabError:
        if "not a database" in str(error):
            return Refused(f"{self.path} is not a pelab database: it is not an SQLite file")
        if "malformed" in str(error):
            return PelabError(
                f"{self.path} is damaged ({error}): pelab db check says where; restore a backup")
        return PelabError(f"cannot read {self.path}: {error}")

    def _check(self) -> None:
        with self._snapshot():
            application = self._db.execute("PRAGMA application_id").fetchone()[0]
            schema = self._db.execute("PRAGMA user_version").fetchone()[0]
        if application != APPLICATION_ID:
            raise Refused(f"{self.path} is not a pelab database: its application id is "
                          f"{application}, that of pelab is {APPLICATION_ID}")
        if schema > SCHEMA_VERSION:
            raise Refused(f"{self.path} is from a newer pelab: its schema is version {schema}, "
                          f"this package knows up to {SCHEMA_VERSION}")
        if schema < FIRST_SCHEMA:
            raise Refused(
                f"{self.path} has schema version {schema}, from before the first release, which "
                "commit 36de102 (2026-11-23) was the last to read: use a pelab of that commit, or "
                "convert the file as docs/operations.md describes")
        if schema < SCHEMA_VERSION:
            raise Refused(
                f"{self.path} has schema version {schema} and this package reads {SCHEMA_VERSION}; "
                "pelab db migrate migrates it, and so does a pelab-server that starts on it")
        with self._snapshot() as db:
            # A view that somebody else made could run without end.
            wrong = _schema.difference(db)
        if wrong is not None:
            raise Refused(f"{self.path} is not as pelab made it: {wrong}")

    @contextmanager
    def _snapshot(self) -> Iterator[sqlite3.Connection]:
        """One read transaction; converts SQLite's errors to PelabErrors."""
        try:
            self._db.execute("BEGIN")
            try:
                yield self._db
            finally:
                self._db.execute("ROLLBACK")
        except sqlite3.Error as error:
            raise self._said(error) from None

    # Rows -----------------------------------------------------------------------------------------

    def _job_rows(self, sweep: str | None, states: Sequence[str],
                  jobs: Sequence[str]) -> Sequence[Row]:
        with self._snapshot() as db:
            return list(self._select_jobs(db, _JOBS, sweep, states, jobs))

    def _select_jobs(self, db: sqlite3.Connection, columns: str, sweep: str | None,
                     states: Sequence[str], jobs: Sequence[str]) -> Iterable[Row]:
        conditions, binds = ["1"], list[Any]()
        if sweep is not None:
            conditions.append(_OF_SWEEP)
            binds.append(self._sweep_id(db, sweep))
        if states:
            conditions.append(f"j.state IN ({', '.join('?' * len(states))})")
            binds += states
        if jobs:
            ids = sorted({self._job_id(db, job) for job in jobs})
            conditions.append("j.job_id IN (SELECT value FROM json_each(?))")
            binds.append(str(ids))
        return db.execute(
            f"SELECT {columns} FROM v_jobs AS j WHERE {' AND '.join(conditions)} ORDER BY j.job_id",
            binds)

    @staticmethod
    def _sweep_id(db: sqlite3.Connection, sweep: str) -> int:
        if re.fullmatch(r"\d{1,18}", sweep):
            by_number = db.execute("SELECT sweep_id FROM v_sweeps WHERE sweep_id = ?",
                                   (int(sweep),)).fetchone()
            if by_number is not None:
                return int(by_number[0])
        by_name = db.execute("SELECT max(sweep_id) FROM v_sweeps WHERE name = ?",
                             (sweep,)).fetchone()[0]
        if by_name is None:
            names = db.execute("SELECT name FROM v_sweeps ORDER BY sweep_id DESC").fetchall()
            raise _catalog.no_sweep(sweep, [name for name, in names])
        return int(by_name)

    @staticmethod
    def _job_id(db: sqlite3.Connection, job: str) -> int:
        if re.fullmatch(r"\d{1,18}", job):
            if db.execute("SELECT 1 FROM v_jobs WHERE job_id = ?",
                          (int(job),)).fetchone() is not None:
                return int(job)
            if len(job) < 6:
                raise NotFound(f"no job {job}")
        if not re.fullmatch(r"[0-9a-fA-F]{6,64}", job):
            raise InvalidInput(f'"{job}" names no job: give its number, or 6 or more hexadecimal '
                               'digits of its key')
        prefix = job.lower()
        found = db.execute(
            "SELECT job_id FROM v_jobs WHERE key >= ? AND key < ? || 'g' ORDER BY key LIMIT 2",
            (prefix, prefix)).fetchall()
        if not found:
            raise NotFound(f"no job {job}")
        if len(found) > 1:
            raise InvalidInput(f"key prefix {job} fits more than one job; give more of its digits")
        return int(found[0][0])

    def _rows_of_jobs(self, what: str, sweep: str | None,
                      job_ids: Sequence[int] | None) -> Iterable[Row]:
        rows: list[Row] = []
        with self._snapshot() as db:
            if job_ids is None:
                job_ids = [row[0] for row in self._select_jobs(db, "j.job_id", sweep, (), ())]
            for job_id in job_ids:
                rows += db.execute(_ROWS[what], (job_id,))
        return rows

    def _worker_rows(self) -> Iterable[Row]:
        state = "state" if self._is_served() else "'offline' AS state"
        columns = ", ".join(state if name == "state" else name for name in _columns.WORKERS)
        with self._snapshot() as db:
            return db.execute(
                f"SELECT {columns} FROM v_workers ORDER BY name, worker_id").fetchall()

    def _is_served(self) -> bool:
        """Whether a coordinator holds FILE.lock.

        If none does, no worker can be connected, whatever the file says.
        """
        try:
            # O_NONBLOCK: a pipe of that name must not make this wait.
            lock = os.open(f"{self.path}.lock", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return False
        except BlockingIOError:
            return True
        except OSError:
            return False
        finally:
            os.close(lock)

    def _sweep_rows(self) -> Iterable[Row]:
        with self._snapshot() as db:
            return db.execute(f"SELECT {', '.join(_columns.SWEEPS)} FROM v_sweeps ORDER BY "
                              "sweep_id DESC").fetchall()

    def _sheet_rows(self) -> Iterable[Row]:
        with self._snapshot() as db:
            return db.execute(f"SELECT {', '.join(_columns.SHEETS)} FROM v_sheets ORDER BY "
                              "sheet_id DESC").fetchall()

    def _sheet_claim_rows(self, sheet: str, last_round: bool) -> Iterable[Row]:
        with self._snapshot() as db:
            return db.execute(
                f"SELECT {', '.join(_columns.SHEET_CLAIMS)} FROM v_sheet_claims WHERE sheet_id = "
                "?1 AND (NOT ?2 OR round = (SELECT max(round) FROM v_sheet_claims WHERE sheet_id = "
                "?1)) ORDER BY round, position",
                (self._sheet_id(db, sheet), last_round)).fetchall()

    @staticmethod
    def _sheet_id(db: sqlite3.Connection, sheet: str) -> int:
        """The sheet of this number; else the newest of this name; else of this SHA-256."""
        ways: list[tuple[str, str | int]] = [("name = ?", sheet)]
        if re.fullmatch(r"[0-9]{1,18}", sheet):
            ways.insert(0, ("sheet_id = ?", int(sheet)))
        if re.fullmatch(r"[0-9a-f]{6,64}", sheet):
            ways.append(("substr(sha256, 1, length(?1)) = ?1", sheet))
        for condition, value in ways:
            found = db.execute(f"SELECT max(sheet_id) FROM v_sheets WHERE {condition}",
                               (value,)).fetchone()[0]
            if found is not None:
                return int(found)
        names = db.execute("SELECT name FROM v_sheets ORDER BY sheet_id DESC").fetchall()
        raise _catalog.no_sheet(sheet, [name for name, in names])

    def document(self, sweep: str | int) -> str:
        with self._snapshot() as db:
            sweep_id = self._sweep_id(db, str(sweep))
            return str(db.execute("SELECT document FROM v_sweeps WHERE sweep_id = ?",
                                  (sweep_id,)).fetchone()[0])

    def log(self, job: str | int, attempt: int = 0) -> str:
        with self._snapshot() as db:
            job_id = self._job_id(db, str(job))
            found = db.execute("SELECT attempt_id FROM v_attempts WHERE job_id = ?1 AND (?2 = 0 OR "
                               "number = ?2) ORDER BY number DESC LIMIT 1",
                               (job_id, attempt)).fetchone()
            if found is None:
                raise NotFound(f"job {job_id} has not been tried yet" if attempt == 0
                               else f"job {job_id} has no attempt {attempt}")
            pieces = db.execute("SELECT data FROM v_logs WHERE attempt_id = ? ORDER BY byte_offset",
                                found).fetchall()
        return b"".join(bytes(piece[0]) for piece in pieces).decode("utf-8", errors="replace")
