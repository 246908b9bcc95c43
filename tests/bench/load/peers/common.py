"""The parts that the peers' benchmarks share. Standard library only.

A folder, processes that are ended by their pid, and output as one line of JSON.
"""

import contextlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

PYTHON = "/usr/bin/python3"  # Debian's Python, which the packages are installed for


def report(peer, what, value, unit, durability, note=""):
    print(json.dumps({"peer": peer, "what": what, "value": round(value, 1), "unit": unit,
                      "durability": durability, "note": note}), flush=True)


def skip(peer, why):
    print(json.dumps({"peer": peer, "what": "SKIPPED", "note": why}), flush=True)
    sys.exit(0)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_until(condition, timeout, what):
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit(f"gave up after {timeout} s waiting for {what}")
        time.sleep(0.01)


class Bench:
    """A folder on the measured disk, and the processes that run in it."""

    def __init__(self):
        parent = pathlib.Path(os.environ.get("PELAB_LOAD_DIR", "build/load")).resolve()
        parent.mkdir(parents=True, exist_ok=True)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="p", dir=parent))
        self.processes = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            process.terminate()
        for process in reversed(self.processes):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
            if process.poll() is None:
                process.kill()
                process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def spawn(self, *command, **options):
        with open(self.folder / "log", "ab") as log:
            process = subprocess.Popen([str(word) for word in command], cwd=self.folder,
                                       stdin=subprocess.DEVNULL, stdout=log, stderr=log, **options)
        self.processes.append(process)
        return process

    def redis(self, *options):
        """Starts a Redis on a Unix socket and returns the socket's path."""
        path = self.folder / "redis.sock"
        self.spawn("redis-server", "--port", 0, "--unixsocket", path, "--dir", self.folder,
                   *options)
        wait_until(path.exists, 10, "redis-server")
        return path
