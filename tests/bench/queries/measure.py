#!/usr/bin/env python3
"""Measures how long queries take over 10,000 jobs of 150 epochs, each with a head ablation.

It times the whole command line program, from start to end, both asking a coordinator and reading
the file while nobody serves it.

    PELAB_BIN=build/release/bin python3 tests/bench/queries/measure.py

The results are synthetic (pelab-populate). Prints the median and the slowest of seven calls of each
query. Exits 1 if a grouped query through the coordinator takes longer than the limit."""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
from pelab_harness import BIN, Case  # noqa: E402

PES = ("[nope, absolute, random, relative, alibi, rope, mla, rope_abs, {name: partial_rope, heads: "
       "[1, 2]}]")
SWEEP = (f"name: many\nprotocol: clean\npe: {PES}\ntask: [distance, counting]\nseed: 0..499\n"
         "model: {d_model: 16, d_ff: 16, heads: 4, layers: 2}\ntrain: {epochs: 150}\nanalyses: "
         "[head_ablation]\n")
CALLS = 7
MOST = 0.2  # limit of a grouped query, in seconds
METRICS = ("test_accuracy", "best_test_accuracy", "train_accuracy", "generalisation_gap",
           "wall_seconds", "epochs_to(0.5)",
           "max_drop", "top_share", "top_ratio", "gini", "effective_heads", "deposits")
GROUPED = ([["results", "many", "--metric", metric] for metric in METRICS] +
           [["results", "many", "--group-by", "pe"],
            ["results", "many", "--where", "pe in (rope, mla) and epochs_to(0.5) < 100",
             "--metric", "gini"],
            ["results", "many", "--interval", "bootstrap"],
            ["results", "many", "--compare", "pe=rope", "--with", "pe=mla"],
            ["deposits", "many"]])
OTHERS = [["status"], ["status", "many"], ["curves", "1"], ["ablation", "1"], ["diff", "1", "2"],
          ["jobs", "many", "--state", "failed"], ["results", "many", "--seeds", "--output", "csv"]]


class Measure(Case):
    def runTest(self):
        pass

    def seconds(self, arguments):
        times = []
        for _ in range(CALLS):
            began = time.perf_counter()
            subprocess.run([BIN / "pelab", *arguments, "--db", self.db], cwd=self.folder,
                           check=True, stdout=subprocess.DEVNULL)
            times.append(time.perf_counter() - began)
        return times

    def table(self, commands):
        rows = {}
        for arguments in commands:
            times = self.seconds(arguments)
            name = " ".join(f"'{a}'" if " " in a else a for a in arguments)
            rows[name] = {"median_s": statistics.median(times), "slowest_s": max(times)}
            print(f"{1000 * rows[name]['median_s']:7.0f} ms {1000 * rows[name]['slowest_s']:7.0f} "
                  f"ms  pelab {name}", flush=True)
        return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=pathlib.Path, help="write the figures here too")
    arguments = parser.parse_args()
    measure = Measure()
    measure.setUp()
    try:
        sweep = measure.write("many.yaml", SWEEP)
        subprocess.run([BIN.parent / "tests/pelab-populate", sweep, "--db", measure.db,
                        "--fail-every", "997"], check=True)
        print("median  slowest, the file itself")
        figures = {"file": measure.table(GROUPED + OTHERS)}
        measure.server()
        print("median  slowest, through a coordinator")
        figures["coordinator"] = measure.table(GROUPED + OTHERS)
    finally:
        measure.doCleanups()
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1) + "\n")
    slow = [name for name, row in list(figures["coordinator"].items())[:len(GROUPED)]
            if row["median_s"] > MOST]
    print("\n".join(f"longer than {1000 * MOST:.0f} ms: pelab {name}" for name in slow)
          or f"every grouped query: at most {1000 * MOST:.0f} ms")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
