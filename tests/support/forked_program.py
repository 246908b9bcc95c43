"""Runs a program by forking one that has loaded its libraries and stands before main()
(fork_before_main.cc): a test that runs short commands by the hundred would do little else than
load libraries. The program must not need its own command line in /proc. It is one of a build that
has the tests and no sanitizer."""

import atexit
import functools
import os
import socket
import subprocess
import tempfile
import threading

from forked_child import Child


def library_for(program):
    return program.resolve().parents[1] / "tests" / "libfork_before_main.so"


class ForkedProgram:
    @staticmethod
    def can(program):
        """Whether the program is one of a build that has the tests and no sanitizer."""
        return library_for(program).exists()

    @staticmethod
    @functools.cache
    def of(program):
        """The one of this program of a build folder's bin."""
        return ForkedProgram(program)

    def __init__(self, program):
        self._program = program
        library = library_for(program)
        if not library.exists():  # the dynamic linker would only warn
            raise FileNotFoundError(library)
        self._asks = threading.Lock()  # one request at a time, by whichever thread
        self._socket, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with there:
            self._process = subprocess.Popen(
                [program], pass_fds=[there.fileno()], stdin=subprocess.DEVNULL,
                env={**os.environ, "LD_PRELOAD": str(library),
                     "PELAB_FORK_SOCKET": str(there.fileno())})
        atexit.register(self.close)

    def close(self):
        self._socket.close()
        self._process.wait(20)

    def start(self, arguments, files, cwd=None, env=None):
        """A Child with these files as its standard input, output and error. It leads a session of
        its own. Processes that it leaves behind go on, as with subprocess."""
        words = [str(self._program), *map(str, arguments)]
        environment = os.environ if env is None else env
        strings = [str(cwd or os.getcwd()), str(len(words)), *words,
                   *(f"{name}={value}" for name, value in environment.items())]
        request = b"".join(os.fsencode(text) + b"\0" for text in strings)
        with self._asks:
            socket.send_fds(self._socket, [request], [file.fileno() for file in files])
            answer = self._socket.recv(1024)
        if not answer.isdigit():
            raise AssertionError(f"{self._program} was not forked: {answer!r}")
        return Child(int(answer), words, group_ends=False)

    def run(self, arguments, cwd=None, env=None, timeout=120):
        """As subprocess.run([program, *arguments], capture_output=True, text=True), with nothing
        on the standard input."""
        with (open(os.devnull) as nothing, tempfile.TemporaryFile("w+") as out,
              tempfile.TemporaryFile("w+") as errors):
            child = self.start(arguments, (nothing, out, errors), cwd, env)
            status = child.wait(timeout)
            out.seek(0)
            errors.seek(0)
            return subprocess.CompletedProcess([self._program, *arguments], status, out.read(),
                                               errors.read())
