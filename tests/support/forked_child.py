"""A child that was not started by subprocess, with as much of Popen as tests need."""

import contextlib
import os
import select
import signal
import subprocess


class Child:
    """Leads a process group, which ends with it, unless `group_ends` is false."""

    def __init__(self, pid, command, group_ends=True):
        self.pid = pid
        self._group_ends = group_ends
        self.returncode = None
        self._command = command
        self._ended = os.pidfd_open(pid)

    def poll(self):
        """The exit status, or None if it runs; -N if signal N has ended it."""
        return self.returncode if self._has_ended(0) else None

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self):
        self.send_signal(signal.SIGTERM)

    def kill(self):
        self.send_signal(signal.SIGKILL)

    def wait(self, timeout=None):
        """The exit status. After `timeout` seconds the child is killed: TimeoutExpired."""
        if not self._has_ended(timeout):
            os.kill(self.pid, signal.SIGKILL)
            self._reap()
            raise subprocess.TimeoutExpired(self._command, timeout)
        return self.returncode

    def _has_ended(self, timeout):
        if self.returncode is None and select.select([self._ended], [], [], timeout)[0]:
            self._reap()
        return self.returncode is not None

    def _reap(self):
        # No other group can have this number before the leader is waited for.
        if self._group_ends:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
        self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self._ended)
