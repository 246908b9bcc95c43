#!/usr/bin/env python3
"""The time of each kernel in a training step at paper size, by Nsight Compute.

    tests/gpu/profile.py build/gpu-day --json profile.json
    tests/gpu/profile.py build/gpu-day --side rope:bf16 mla:bf16

Steps run without CUDA graphs, each kernel alone, so that the sum has no gaps between kernels.
Clocks are left as they are. Needs ncu. Exit status: 0 done, 2 this host lacks something."""

import argparse
import collections
import csv
import json
import pathlib
import re
import shutil
import subprocess
import sys

MILLISECONDS = {"ns": 1e-6, "nsecond": 1e-6, "us": 1e-3, "usecond": 1e-3, "ms": 1, "msecond": 1}
NAMESPACES = re.compile(r"\(anonymous namespace\)::|<unnamed>::|pelab::(trainer::)?|at::native::")
STEPS = 3
SIDES = ("rope:bf16", "rope:bf16:no-attention-dropout", "rope:float32", "mla:bf16", "shaw:bf16")


def kernels(build, side, batch, device):
    """[(kernel, milliseconds a step, launches a step)], the longest first."""
    pe, precision, *options = side.split(":")
    done = subprocess.run(
        ["ncu", "--clock-control", "none", "--metrics", "gpu__time_duration.sum", "--csv",
         str(build / "bench/train_bench"), "--pe", pe, "--precision", precision, "--batch",
         str(batch), "--steps", str(STEPS - 1), "--warm-up", "1", "--device", device,
         "--threads", "1", "--cuda-graphs", "off", *(f"--{option}" for option in options)],
        check=False, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"profile: ncu: {(done.stderr or done.stdout).strip()[-500:]}")
    milliseconds, launches = collections.Counter(), collections.Counter()
    for row in csv.DictReader(line for line in done.stdout.splitlines() if line.startswith('"')):
        name = NAMESPACES.sub("", row["Kernel Name"]).removeprefix("void ").split("(")[0]
        took = float(row["Metric Value"].replace(",", "")) * MILLISECONDS[row["Metric Unit"]]
        milliseconds[name] += took / STEPS
        launches[name] += 1 / STEPS
    return [(name, took, launches[name]) for name, took in milliseconds.most_common()]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--side", nargs="+", default=SIDES,
                        help="ENCODING:PRECISION, and options of train_bench, as "
                             "rope:bf16:no-attention-dropout")
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    if not shutil.which("ncu"):
        print("profile: ncu (Nsight Compute) is not installed", file=sys.stderr)
        return 2
    found = []
    for side in options.side:
        pe, _, precision = side.partition(":")
        listed = kernels(options.build, side, options.batch, options.device)
        found.append({"pe": pe, "precision": precision, "batch": options.batch, "kernels": listed})
        print(f"{side}, batch {options.batch}: {sum(row[1] for row in listed):.2f} ms a step")
        for name, took, count in listed[:20]:
            print(f"  {took:8.3f} ms {count:6.1f} launches  {name[:90]}", flush=True)
        if options.json:
            options.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
