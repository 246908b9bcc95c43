"""Runs pelab-trainer by forking one that has loaded LibTorch (docs/formats.md, "Preloaded
trainers"), as pelab-worker does: a test that starts it dozens of times would do little else than
load LibTorch."""

import atexit
import ctypes
import functools
import os
import socket
import subprocess
import tempfile
import threading

from forked_child import Child

PR_SET_CHILD_SUBREAPER = 36


class Preloaded:
    @staticmethod
    @functools.cache
    def of(trainer):
        """The one of this program."""
        return Preloaded(trainer)

    def __init__(self, trainer):
        if ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
            raise OSError("this process cannot adopt orphans")
        self._asks = threading.Lock()  # one request at a time, by whichever thread
        self._socket, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with there:
            self._process = subprocess.Popen(
                [trainer, "preload", "--control-fd", str(there.fileno()), "--room", "." * 1000],
                pass_fds=[there.fileno()], stdin=subprocess.DEVNULL)
        atexit.register(self.close)

    def close(self):
        self._socket.close()
        self._process.wait(20)

    def run(self, command, timeout=120):
        """As subprocess.run(command, capture_output=True, text=True, timeout=timeout), where the
        command begins with the trainer. Its process group ends with it."""
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            status = self.start(command, out, err).wait(timeout)
            out.seek(0)
            err.seek(0)
            return subprocess.CompletedProcess(command, status, out.read(), err.read())

    def start(self, command, out, err):
        """A trainer with these files as its standard output and standard error."""
        return Child(self._fork([str(word) for word in command[1:]], out, err), command)

    def _fork(self, words, out, err):
        strings = [os.getcwd(), "1", "2", str(len(words)), *words,
                   *(f"{name}={value}" for name, value in os.environ.items())]
        request = os.memfd_create("request")
        go, begin = os.pipe()
        try:
            os.write(request, b"".join(os.fsencode(text) + b"\0" for text in strings))
            with self._asks:
                socket.send_fds(self._socket, [b"f"], [request, go, out.fileno(), err.fileno()])
                answer = self._socket.recv(1024).decode()
            if not answer.isdecimal():
                raise AssertionError(f"the preloaded trainer answered {answer!r}")
            os.write(begin, b"g")
            return int(answer)
        finally:
            for descriptor in (request, go, begin):
                os.close(descriptor)
