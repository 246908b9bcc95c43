"""Runs the real pelab binaries for the end-to-end and fault tests. Standard library only.

Programs run in a temporary folder with Unix sockets or port 0. Every wait is for a condition and
has a time limit. PELAB_BIN names the folder with the four binaries (ctest sets it).
"""

import atexit
import contextlib
import functools
import json
import os
import pathlib
import shutil
import signal
import socket
import sqlite3
import subprocess
import tempfile
import threading
import time
import unittest

from forked_program import ForkedProgram
from preloaded import Preloaded

BIN = pathlib.Path(os.environ["PELAB_BIN"]).resolve()
SOURCE = pathlib.Path(__file__).resolve().parents[2]


@functools.cache
def trainer_environment():
    """The environment variables that the trainer asks for, so that it need not restart itself.
    Workers set them too."""
    trainer = BIN / "pelab-trainer"
    return json.loads(Preloaded.of(trainer).run([trainer, "capabilities"]).stdout)["environment"]


def tiny_sweep(epochs=3, train_examples=512, seeds="[0, 1]", pes="[nope, rope]", name="tiny"):
    """A sweep document of small jobs (a second or two) that still have heads, epochs and both
    splits."""
    return f"""\
name: {name}
protocol: clean
pe: {pes}
task: {{name: distance, length: 16, vocabulary: 40, train_examples: {train_examples},
        test_examples: 128}}
seed: {seeds}
model: {{d_model: 16, d_ff: 32, heads: 2, layers: 2, max_len: 16, dropout: 0.1}}
train: {{epochs: {epochs}, batch_size: 64, lr: 1e-3}}
"""


_waiting = threading.local()


@contextlib.contextmanager
def kept_connections():
    """Within it, Case.query keeps its connections, so that a wait does not read the schema anew
    for each poll. None is kept for longer: a coordinator that starts after a kill must be the
    first to open its database, so that it recovers the log."""
    if getattr(_waiting, "connections", None) is not None:
        yield
        return
    _waiting.connections = {}
    try:
        yield
    finally:
        for _, connection in _waiting.connections.values():
            connection.close()
        _waiting.connections = None


def connect(path):
    return sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10)


@contextlib.contextmanager
def connection_to(path):
    """A connection that only reads."""
    kept = getattr(_waiting, "connections", None)
    if kept is None:
        with contextlib.closing(connect(path)) as connection:
            yield connection
        return
    try:
        inode = os.stat(path).st_ino
    except FileNotFoundError:  # connect() says so
        inode = None
    if path in kept and kept[path][0] != inode:
        kept.pop(path)[1].close()
    if path not in kept:
        kept[path] = inode, connect(path)
    yield kept[path][1]


def wait_until(condition, timeout, what):
    """Polls `condition` until it is true and returns its value. `what` is a text, or a function
    that returns one when the time is over."""
    deadline = time.monotonic() + timeout
    with kept_connections():
        while True:
            value = condition()
            if value:
                return value
            if time.monotonic() > deadline:
                what = what() if callable(what) else what
                raise AssertionError(f"gave up after {timeout} s waiting for {what}")
            time.sleep(0.02)


def alive(pid):
    """True if the process exists and is not a zombie."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def processes(*needles):
    """The PIDs of live processes whose command line contains every needle."""
    needles = [os.fsencode(needle) for needle in needles]
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        with contextlib.suppress(OSError), open(f"/proc/{name}/cmdline", "rb", 0) as file:
            command = file.read().replace(b"\0", b" ")
            if all(needle in command for needle in needles) and alive(int(name)):
                found.append(int(name))
    return found


def listens(address):
    """True if a program listens on this `unix:PATH`. Of other addresses it says nothing."""
    if not address.startswith("unix:"):
        return True
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(address.removeprefix("unix:")) == 0


class Case(unittest.TestCase):
    """A test with a folder, a database and programs. The programs are ended in any case."""

    def setUp(self):
        # A short name, because a Unix socket's path has at most 107 bytes.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="pelab-"))
        self.db = self.folder / "pelab.db"
        self.socket = f"unix:{self.folder}/s"
        self.started = []
        self.addCleanup(self._clean_up)
        atexit.register(self.doCleanups)  # an interrupt ends unittest before the clean-up

    def _clean_up(self):
        for process in reversed(self.started):
            if process.poll() is None:
                process.terminate()
        for process in reversed(self.started):
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for pid in processes(str(self.folder)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)

    def stop_all(self):
        """Ends the programs, the one that was started last first."""
        for process in reversed(self.started):
            process.terminate()
            process.wait(10)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def spawn(self, program, *arguments, log=None, env=None):
        log = log or f"{program}.{len(self.started)}.log"
        with open(self.folder / log, "ab") as sink:
            process = subprocess.Popen([BIN / program, *map(str, arguments)], cwd=self.folder,
                                       stdin=subprocess.DEVNULL, stdout=sink,
                                       stderr=subprocess.STDOUT, start_new_session=True,
                                       env={**os.environ, **(env or {})})
        self.started.append(process)
        return process

    def server(self, *arguments, lease_ms=2000, env=None):
        """Starts a coordinator on this test's database and socket, and waits until it answers."""
        process = self.spawn("pelab-server", "--db", self.db, "--listen", self.socket,
                             "--heartbeat", f"{lease_ms // 10}ms",
                             "--lease", f"{lease_ms}ms", *arguments, env=env)
        # A call of the command line costs more than many tries to connect, so it comes last.
        wait_until(lambda: process.poll() is not None or listens(self.socket), 20, "a listener")
        wait_until(lambda: process.poll() is not None or self.pelab("status").returncode == 0, 20,
                   "the coordinator")
        self.assertIsNone(process.poll(), "the coordinator ended: " + self.logs())
        return process

    def worker(self, name="w", slots=2, *arguments, env=None):
        return self.spawn("pelab-worker", "--server", self.socket, "--workdir", self.folder / name,
                          "--cpu-slots", slots, "--threads-per-slot", 1, *arguments, env=env)

    def pelab(self, *arguments, timeout=120, env=None):
        return self._command_line("--server", self.socket, *arguments, timeout=timeout, env=env)

    def pelab_db(self, *arguments, timeout=120):
        """Runs the CLI on the database file, without a coordinator."""
        return self._command_line("--db", self.db, *arguments, timeout=timeout)

    def _command_line(self, *arguments, timeout, env=None):
        """Forked where that can be: a command takes less time than to load its libraries."""
        words, env = list(map(str, arguments)), {**os.environ, **(env or {})}
        program = BIN / "pelab"
        if ForkedProgram.can(program):
            return ForkedProgram.of(program).run(words, self.folder, env, timeout)
        return subprocess.run([program, *words], cwd=self.folder, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=timeout, env=env)

    def run_sweep(self, sweep, *arguments, timeout=180, env=None):
        return subprocess.run([BIN / "pelab", "run", sweep, "--db", self.db, *map(str, arguments)],
                              cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=timeout, env={**os.environ, **(env or {})})

    def ok(self, result, status=0):
        self.assertEqual(result.returncode, status,
                         f"{result.args}\n{result.stdout}\n{result.stderr}\n{self.logs()}")
        return result

    def json(self, *arguments):
        return json.loads(self.ok(self.pelab(*arguments, "--output", "json")).stdout)

    def submit(self, document, *arguments):
        path = self.write("sweep.yaml", document)
        return self.ok(self.pelab("submit", path, *arguments))

    def query(self, sql, *parameters, db=None):
        with connection_to(pathlib.Path(db or self.db)) as connection:
            return connection.execute(sql, parameters).fetchall()

    def states(self):
        return dict(self.query("SELECT state, count(*) FROM v_jobs GROUP BY state"))

    def wait_finished(self, jobs, timeout=120):
        wait_until(lambda: self.states().get("succeeded", 0) == jobs, timeout,
                   lambda: f"{jobs} jobs to succeed; {self.situation()}")

    def wait_online(self, workers, timeout=60):
        """Waits until so many workers are online."""
        wait_until(lambda: self.query("SELECT count(*) FROM v_workers WHERE state = 'online'")
                   == [(workers,)], timeout, lambda: f"{workers} workers; {self.logs()}")

    def situation(self):
        """The jobs' states, their attempts and all logs: what a wait that ended without success
        has to say."""
        return (f"states {self.states()}, attempts {self.query('SELECT * FROM v_attempts')}\n"
                f"{self.logs()}")

    def same_after_kills(self, sweep, jobs):
        """Trains the sweep undisturbed. Then trains it again on two workers, where the coordinator
        and both workers are killed twice in the middle. They come back the first time. The second
        time, one of the workers does not. The results must be the same."""
        self.ok(self.run_sweep(sweep, "--cpu-slots", "2", "--threads-per-slot", "1"))
        undisturbed = self.results()
        self.db = self.folder / "killed.db"

        def epochs():
            return self.query("SELECT count(*) FROM v_curves")[0][0]
        for round_number in range(3):
            programs = [self.server(), self.worker("a", 1)]
            if round_number < 2:
                programs.append(self.worker("b", 1))
            if round_number == 0:  # one alone could get far before the other is there
                self.wait_online(2)
            self.ok(self.pelab("submit", sweep))
            if round_number < 2:
                seen = epochs()
                wait_until(lambda: epochs() > seen + 3, 60, "some epochs")
                for process in programs:
                    process.kill()
                    process.wait()
        self.wait_finished(jobs)
        self.assertGreater(len(self.query("SELECT 1 FROM v_attempts")), jobs, "nothing was killed")
        self.assertEqual(self.results(), undisturbed)

    def curves(self, db=None):
        """The curves in the views, without times: {(key, epoch): figures}."""
        rows = self.query("SELECT j.key, c.epoch, c.train_loss, c.train_correct, c.train_total, "
                          "c.test_loss, c.test_correct, c.test_total, c.learning_rate FROM "
                          "v_curves c JOIN v_jobs j USING (job_id)",
                          db=db)
        curves = {(row[0], row[1]): row[2:] for row in rows}
        self.assertEqual(len(curves), len(rows), "an epoch is in the view twice")
        return curves

    def ablations(self, db=None):
        return dict((row[:6], row[6:]) for row in self.query(
            "SELECT j.key, a.method, a.hygiene, a.split, a.layer, a.head, a.correct, a.total, "
            "a.intact_correct FROM v_head_ablation a JOIN v_jobs j USING (job_id)", db=db))

    def results(self, db=None):
        """All results of a sweep by key, without times and hosts: two runs of it must agree on
        them."""
        ablations = self.query(
            "SELECT j.key, a.method, a.hygiene, a.split, a.target, a.layer, a.head, a.correct, "
            "a.total, a.lost, a.gained, a.nll, a.nll_drop, a.nll_drop_standard_error, "
            "a.drop_standard_error FROM v_head_ablation a JOIN v_jobs j USING (job_id)", db=db)
        deposits = self.query(
            "SELECT j.key, d.layer, d.max_drop, d.gini, d.effective_heads, d.top_head, d.deposits "
            "FROM v_deposits d JOIN v_jobs j USING (job_id)", db=db)
        weights = self.query("SELECT j.key, a.name, a.sha256, a.bytes FROM v_artifacts a JOIN "
                             "v_jobs j USING (job_id)", db=db)
        key = repr  # NULLs cannot be compared
        return {"curves": self.curves(db), "ablations": sorted(ablations, key=key),
                "deposits": sorted(deposits, key=key), "weights": sorted(weights)}

    def assert_complete(self, jobs, epochs, layers=2, heads=2):
        """Checks that every job succeeded and has each epoch once and a complete ablation matrix.
        """
        self.assertEqual(self.states(), {"succeeded": jobs})
        per_job = self.query("SELECT job_id, count(*), count(DISTINCT epoch), min(epoch), "
                             "max(epoch) FROM v_curves GROUP BY job_id")
        self.assertEqual([row[1:] for row in per_job], [(epochs, epochs, 0, epochs - 1)] * jobs)
        heads_rows = self.query("SELECT job_id, count(*) FROM v_head_ablation GROUP BY job_id")
        self.assertEqual([row[1] for row in heads_rows], [layers * heads] * jobs)

    def trainers(self):
        return processes("pelab-trainer", str(self.folder))

    def logs(self):
        return "\n".join(f"--- {path.name}\n{path.read_text(errors='replace')[-3000:]}"
                         for path in sorted(self.folder.glob("*.log")))
