"""What a service manager such as systemd hears from the coordinator and the worker: that they
serve, that they are alive, and that they stop."""

import contextlib
import ctypes
import os
import pathlib
import signal
import socket
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pelab_harness import SOURCE, Case, wait_until  # noqa: E402

PATIENCE = 30
DOUBLE = SOURCE / "tests" / "support" / "trainer_double.sh"


PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT = 17, 0x4206, 0x4207
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def ptrace(request, thread):
    if LIBC.ptrace(request, thread, None, None) < 0:
        raise OSError(ctypes.get_errno(), "ptrace")


@contextlib.contextmanager
def frozen(pid, name):
    """Stops one thread of a process, as a debugger does; the others run on."""
    tasks = pathlib.Path(f"/proc/{pid}/task")
    thread, = (int(task.name) for task in tasks.iterdir()
               if (task / "comm").read_text().strip() == name)
    ptrace(PTRACE_SEIZE, thread)
    ptrace(PTRACE_INTERRUPT, thread)
    os.waitpid(thread, 0x40000000)  # __WALL
    try:
        yield
    finally:
        ptrace(PTRACE_DETACH, thread)


class Manager:
    """The manager's socket, with what each program is told in its environment."""

    def __init__(self, path, watchdog_seconds=None):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.settimeout(PATIENCE)
        self.socket.bind(str(path))
        self.environment = {"NOTIFY_SOCKET": str(path)}
        if watchdog_seconds:
            self.environment["WATCHDOG_USEC"] = str(int(watchdog_seconds * 1e6))

    def next(self):
        return self.socket.recv(4096).decode()

    def wait_for(self, beginning):
        """The next message that begins like this; signs of life before it do not matter."""
        while True:
            message = self.next()
            if message.startswith(beginning):
                return message
            if message != "WATCHDOG=1":
                raise AssertionError(f"expected {beginning}, got {message}")

    def count(self, seconds):
        """How many signs of life come in this time."""
        end, seen = time.monotonic() + seconds, 0
        while True:
            self.socket.settimeout(max(0.001, end - time.monotonic()))
            try:
                seen += self.next() == "WATCHDOG=1"
            except TimeoutError:
                self.socket.settimeout(PATIENCE)
                return seen


class Service(Case):
    def manager(self, name="notify", **options):
        manager = Manager(self.folder / name, **options)
        self.addCleanup(manager.socket.close)
        return manager

    def test_the_coordinator_serves_is_alive_and_stops(self):
        manager = self.manager(watchdog_seconds=1.5)
        server = self.server(env=manager.environment)
        self.assertEqual(manager.next(), f"READY=1\nSTATUS=listening on {self.socket}")
        self.assertGreater(manager.count(3), 3)
        server.send_signal(signal.SIGTERM)
        self.assertEqual(manager.wait_for("STOPPING"), "STOPPING=1\nSTATUS=ending: SIGTERM")
        self.assertEqual(server.wait(PATIENCE), 0)

    def test_a_coordinator_with_a_thread_that_hangs_is_not_alive(self):
        manager = self.manager(watchdog_seconds=1.5)
        server = self.server(env=manager.environment)
        manager.wait_for("READY")
        for name in ("writer", "scheduler"):
            with self.subTest(thread=name):
                manager.wait_for("WATCHDOG")
                try:
                    with frozen(server.pid, name):
                        manager.count(1)  # a check may have ended before
                        self.assertEqual(manager.count(3), 0)
                        self.assertIn(f"the {name} thread has done nothing for", self.logs())
                except PermissionError:
                    self.skipTest("this system allows no ptrace")
                self.assertGreater(manager.count(3), 3)

    def test_a_coordinator_that_cannot_start_is_not_ready(self):
        manager = self.manager()
        self.server()
        second = self.spawn("pelab-server", "--db", self.db, "--listen", "127.0.0.1:0",
                            env=manager.environment)
        self.assertEqual(second.wait(PATIENCE), 1)
        manager.socket.setblocking(False)
        self.assertRaises(BlockingIOError, manager.next)

    def test_a_worker_is_alive_while_nobody_answers_it(self):
        manager = self.manager(watchdog_seconds=1.5)
        worker = self.worker("w", 1, "--trainer", DOUBLE, env=manager.environment)
        self.assertEqual(manager.wait_for("READY"), f"READY=1\nSTATUS=working for {self.socket}")
        self.assertGreater(manager.count(8), 8, "also while it waits to connect again")
        self.server()
        wait_until(lambda: self.json("workers"), PATIENCE, "the worker")
        self.assertGreater(manager.count(3), 3)
        worker.send_signal(signal.SIGTERM)
        self.assertEqual(manager.wait_for("STOPPING"), "STOPPING=1\nSTATUS=stopping: SIGTERM")
        self.assertEqual(worker.wait(PATIENCE), 0)

    def test_a_worker_that_ends_by_itself_says_so(self):
        manager = self.manager()
        self.server()
        worker = self.worker("w", 1, "--trainer", DOUBLE, "--idle-exit", "100ms",
                             env=manager.environment)
        manager.wait_for("READY")
        manager.wait_for("STOPPING")
        self.assertEqual(worker.wait(PATIENCE), 0)

    def test_trainers_do_not_speak_for_the_worker(self):
        manager = self.manager(watchdog_seconds=60)
        told = self.folder / "told"
        trainer = self.write("trainer", f"#!/bin/sh\nenv > {told}\nexec {DOUBLE} \"$@\"\n")
        trainer.chmod(0o755)
        self.worker("w", 1, "--trainer", trainer, env=manager.environment)
        manager.wait_for("READY")
        for name in ("NOTIFY_SOCKET", "WATCHDOG_USEC"):
            self.assertNotIn(name, told.read_text())

    def test_a_manager_that_cannot_be_told_does_not_matter(self):
        for path in ("vsock:2:1", str(self.folder / "nobody")):
            with self.subTest(path=path):
                server = self.server(env={"NOTIFY_SOCKET": path})
                self.assertIn(path, self.logs())
                server.terminate()
                self.assertEqual(server.wait(PATIENCE), 0)


if __name__ == "__main__":
    unittest.main()
