#!/usr/bin/env python3
"""How long a sweep takes with workers that pelab-scale asks Slurm for, beside the same sweep with
as many workers that wait for it already. Both on the cluster of deploy/slurm/try.sh, in turns."""

import argparse
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
from pelab_harness import tiny_sweep, wait_until  # noqa: E402
from slurm_case import SlurmCase, on_the_cluster  # noqa: E402

WORKERS, SLOTS = 2, 1


class Measured(SlurmCase):
    """One coordinator with an empty database; not a test."""

    def runTest(self):
        pass

    def sweep(self, epochs):
        begun = time.monotonic()
        self.submit(tiny_sweep(epochs=epochs, seeds="0..3"))
        self.wait_finished(8, 1200)
        return time.monotonic() - begun

    def waiting_workers(self, epochs):
        for number in range(WORKERS):
            self.worker(f"w{number}", SLOTS)
        wait_until(lambda: len(self.query(
            "SELECT 1 FROM v_workers WHERE state = 'online'")) == WORKERS, 60, "the workers")
        return self.sweep(epochs)

    def on_slurm(self, epochs):
        self.queues(most=WORKERS, slots=SLOTS)
        self.spawn("pelab-scale", self.folder / "queues.toml", "--server", self.socket)
        wait_until(lambda: "queue low" in self.said(), 60, "pelab-scale")
        return self.sweep(epochs)


def measure(name, epochs):
    case = Measured()
    case.setUp()
    try:
        return getattr(case, name)(epochs)
    finally:
        case.doCleanups()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=600, help="of each of the 8 jobs")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    on_the_cluster()
    taken = {"waiting_workers": [], "on_slurm": []}
    for number in range(arguments.rounds):
        for name in taken if number % 2 == 0 else reversed(taken):
            taken[name].append(measure(name, arguments.epochs))
            print(f"{name}: {taken[name][-1]:.1f} s", file=sys.stderr)
    fixed, scaled = (statistics.median(times) for times in taken.values())
    print(f"8 jobs of {arguments.epochs} epochs, {WORKERS} workers of {SLOTS} slot, median of "
          f"{arguments.rounds} rounds:")
    print(f"  workers that wait        {fixed:6.1f} s")
    print(f"  workers asked for        {scaled:6.1f} s  (+{scaled - fixed:.1f} s, "
          f"{scaled / fixed:.2f} times)")


if __name__ == "__main__":
    main()
