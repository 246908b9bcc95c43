#!/usr/bin/env python3
"""How long a sweep of very short jobs takes with trainers that are forked from one that has loaded
LibTorch, beside trainers that load it themselves (pelab-worker --preload), in turns. Then how long
a trainer loads with and without the libraries that Debian's LibTorch names and does not use."""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
from loaded_libraries import loaded  # noqa: E402
from pelab_harness import BIN, Case, tiny_sweep, wait_until  # noqa: E402

SLOTS = 2


class Measured(Case):
    """One coordinator with an empty database; not a test."""

    def runTest(self):
        pass

    def sweep(self, jobs, mode):
        """Wall and processor seconds from the submission to the end of the worker."""
        self.server()
        worker = self.worker(mode, SLOTS, "--preload", mode)
        wait_until(lambda: self.query("SELECT 1 FROM v_workers WHERE state = 'online'"), 60,
                   "the worker")
        begun, before = time.monotonic(), os.times()
        self.submit(tiny_sweep(epochs=1, train_examples=64, pes="[rope]",
                               seeds=f"0..{jobs - 1}"))
        self.wait_finished(jobs, 1200)
        wall = time.monotonic() - begun
        worker.terminate()
        worker.wait()  # adds its trainers' time to that of this process's children
        after = os.times()
        return wall, (after.children_user + after.children_system - before.children_user -
                      before.children_system)


def measure(jobs, mode):
    case = Measured()
    case.setUp()
    try:
        return case.sweep(jobs, mode)
    finally:
        case.doCleanups()


def start(environment):
    """Wall seconds, processor seconds and MB of a trainer that loads LibTorch and ends."""
    begun = time.monotonic()
    trainer = subprocess.Popen([BIN / "pelab-trainer", "--version"], env=environment,
                               stdout=subprocess.DEVNULL)
    usage = os.wait4(trainer.pid, 0)[2]
    trainer.returncode = 0  # it has been waited for
    return time.monotonic() - begun, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000


def starts(rounds):
    few = dict(os.environ)
    trainer = BIN / "pelab-trainer"
    torch = next(path for name, path in loaded(trainer, few).items() if "libtorch_cpu" in name)
    # The loader looks into this folder first, and finds what the stand-ins stand for.
    every = {**few, "LD_LIBRARY_PATH": os.path.dirname(torch)}
    taken = {len(loaded(trainer, environment)): (environment, []) for environment in (every, few)}
    for _ in range(rounds):
        for environment, times in taken.values():
            times.append(start(environment))
    print(f"pelab-trainer --version, median of {rounds} rounds:")
    for count, (_, times) in taken.items():
        wall, cpu, memory = (statistics.median(part) for part in zip(*times))
        print(f"  {count:3} libraries {wall:6.2f} s  {cpu:6.2f} CPU s  {memory:4.0f} MB")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--starts", type=int, default=20)
    arguments = parser.parse_args()
    starts(arguments.starts)
    taken = {"off": [], "on": []}
    for number in range(arguments.rounds):
        for mode in taken if number % 2 == 0 else reversed(taken):
            taken[mode].append(measure(arguments.jobs, mode))
            print(f"--preload {mode}: {taken[mode][-1][0]:.1f} s, {taken[mode][-1][1]:.1f} CPU s",
                  file=sys.stderr)
    off, on = ([statistics.median(part) for part in zip(*times)] for times in taken.values())
    print(f"{arguments.jobs} jobs of 1 epoch, {SLOTS} slots, median of {arguments.rounds} rounds:")
    for name, (wall, cpu) in (("loaded by each trainer", off), ("loaded once", on)):
        print(f"  LibTorch {name:24} {wall:6.1f} s  {cpu:6.1f} CPU s")
    print(f"  ratio {off[0] / on[0]:34.2f}  {off[1] / on[1]:10.2f}")


if __name__ == "__main__":
    main()
