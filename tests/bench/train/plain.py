#!/usr/bin/env python3
"""Final accuracies with our kernels against LibTorch's plain operations, for the same small jobs.

    tests/bench/train/plain.py build/release       five seeds of four encodings on this CPU
    tests/bench/train/plain.py build/gpu-bench --device cuda:0 --precision float32 bf16

For each encoding it prints the mean accuracies, and the mean of the paired differences with its
95 % interval (Student's t over seeds). Exits 1 if an interval does not contain 0."""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

from steps import PES, kernels

# The 97.5 % quantiles of Student's t, by the number of seeds.
STUDENT = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306,
           10: 2.262}


def accuracy(arguments, pe, precision, seed, way, environment):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        spec = folder / "job.json"
        job = [arguments.build / "bench/train_bench", "--small", "--pe", pe,
               "--precision", precision, "--batch", "64", "--steps", "62",
               "--epochs", str(arguments.epochs), "--seed", str(seed), "--print-job"]
        document = json.loads(subprocess.run(job, check=True, capture_output=True, text=True,
                                             env=environment).stdout)
        document["spec"]["task"]["test_examples"] = 1000
        document["spec"]["train"]["lr"] = 1e-3
        spec.write_text(json.dumps(document))
        done = subprocess.run([arguments.build / "bin/pelab-trainer", "run", "--spec", spec,
                               "--workdir", folder / "w", "--device", arguments.device,
                               "--threads", "1", "--kernels", way], check=True, capture_output=True,
                              text=True, env=environment)
    last = [json.loads(line) for line in done.stdout.splitlines() if '"event":"epoch"' in line][-1]
    return last["test_correct"] / last["test_total"]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--pe", nargs="+", choices=PES,
                        default=["rope", "relative", "alibi", "mla"])
    parser.add_argument("--precision", nargs="+", default=["float32"], choices=("float32", "bf16"))
    parser.add_argument("--seeds", type=int, default=5, choices=sorted(STUDENT))
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--json", type=pathlib.Path, help="write the figures here too")
    arguments = parser.parse_args()
    environment = kernels(arguments.build)
    rows = []
    print("encoding      precision   kernels    plain   difference and 95 % interval")
    for pe in arguments.pe:
        for precision in arguments.precision:
            found = {way: [accuracy(arguments, pe, precision, seed, way, environment)
                           for seed in range(arguments.seeds)] for way in ("fused", "plain")}
            differences = [fused - plain for fused, plain in zip(found["fused"], found["plain"])]
            mean = statistics.mean(differences)
            half = STUDENT[arguments.seeds] * statistics.stdev(differences) / arguments.seeds ** 0.5
            rows.append({"pe": pe, "precision": precision, **found, "difference": mean,
                         "half_interval": half})
            print(f"{pe:13} {precision:9} {statistics.mean(found['fused']):9.4f} "
                  f"{statistics.mean(found['plain']):8.4f}   {mean:+.4f} ± {half:.4f}", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")
    apart = [row["pe"] for row in rows if abs(row["difference"]) > row["half_interval"]]
    print(f"not the same: {', '.join(apart)}" if apart else "every interval includes 0")
    return 1 if apart else 0


if __name__ == "__main__":
    sys.exit(main())
