"""Clocks that are changed while everything runs. Leases use the monotonic clock and are not
affected. Back-offs use the wall clock and must stay short: nothing may wait until a lost hour has
passed again."""

import glob
import os
import pathlib
import signal
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from fault_case import FaultCase, rounds  # noqa: E402
from pelab_harness import tiny_sweep, wait_until  # noqa: E402

EPOCHS = 20
JOBS = 2
FAKETIME = (glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
            + glob.glob("/usr/lib/faketime/libfaketimeMT.so.1"))
JUMPS = ("-3600", "+3600", "-86400", "+0", "+31536000", "-5")
# If the programs are built with AddressSanitizer, it wants to be loaded first, and it asks for the
# time while it holds its locks.
ASAN = (os.environ.get("ASAN_OPTIONS", "")
        + ":verify_asan_link_order=0:allocator_release_to_os_interval_ms=-1")


@unittest.skipUnless(FAKETIME, "libfaketime is not installed (Debian: faketime)")
class Clock(FaultCase):
    def false_clock(self, name):
        """The environment of a program whose wall clock is off by the offset in a file, and that
        file."""
        path = self.write(f"{name}.clock", "+0")
        return (path, {"LD_PRELOAD": FAKETIME[0], "FAKETIME_TIMESTAMP_FILE": str(path),
                       "FAKETIME_NO_CACHE": "1", "DONT_FAKE_MONOTONIC": "1",
                       "FAKETIME_DONT_FAKE_MONOTONIC": "1", "ASAN_OPTIONS": ASAN})

    def test_jumps(self):
        document = tiny_sweep(epochs=EPOCHS, train_examples=256, seeds="[0]")
        self.undisturbed(document, JOBS)
        clock, env = self.false_clock("coordinator")
        other, agents = self.false_clock("worker")
        self.server(env=env)
        self.worker(env=agents)
        self.submit(document)
        self.observe()
        for number in range(rounds(4, 0.2)):
            self.wait_epochs(3, timeout=20)
            self.set(clock if number % 3 else other, JUMPS[number % len(JUMPS)])
        # A trainer dies just before the clock is set to its earliest time. Its job waits for a
        # back-off of one second.
        trainers = self.trainers()
        if trainers and self.query("SELECT count(*) FROM v_jobs WHERE state = 'running'")[0][0]:
            os.kill(trainers[0], signal.SIGKILL)
            wait_until(lambda: self.outcomes().get("failed") or self._finished(), 20, "the failure")
            self.set(clock, "-172800")
        self.settle(document, JOBS, timeout=60)
        self.assertLessEqual(set(self.outcomes()), {"succeeded", "failed"},
                             "an attempt was lost to a clock")

    @staticmethod
    def set(path, offset):
        temporary = path.with_suffix(".new")
        temporary.write_text(offset)
        temporary.rename(path)


if __name__ == "__main__":
    unittest.main(verbosity=2)
