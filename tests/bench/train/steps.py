#!/usr/bin/env python3
"""A training step at paper size on this machine's CPU, ours against PyTorch eager.

Both sides have the same model, weights, batches, matrix library and number of threads, in float32.

    tests/bench/train/steps.py build/release            every encoding, distance under clean
    tests/bench/train/steps.py build/release --pe rope mla --task counting --protocol published
    --rounds 5

The sides alternate, each in its own process. Each result is the median over all steps. Before the
steps, the peer computes the first batch's logits from our weights, and they must agree with ours. A
step covers the whole batch, even if it goes through the model in parts. Each line also shows the
peak memory of both processes, and the floor: the model's multiplications and additions at the rate
that the matrix library reached in the same run. Exits 1 if a ratio is below its target. Needs
python3-torch (with the LibTorch version that pelab was built with) and python3-numpy."""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from floor import arithmetic

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "support"))
import catalog  # noqa: E402

PES, TASKS, PROTOCOLS = catalog.encodings(), catalog.tasks(), catalog.protocols()
ASKED = {"mla": 1.5}  # times as fast as eager; 2 for every other encoding
PYTHON = os.environ.get("PELAB_TORCH_PYTHON", "/usr/bin/python3")


def said(command, environment):
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stderr.strip()}")
    return json.loads(done.stdout)


def kernels(build):
    """The environment in which the matrix library uses the same kernels for both sides.

    Exits if the build lacks our side.
    """
    for program in ("bin/pelab-trainer", "bench/train_bench"):
        if not (build / program).exists():
            sys.exit(f"{build} has no {program}; cmake --build {build} --target pelab-trainer "
                     "train_bench makes it")
    answer = json.loads(subprocess.run([build / "bin/pelab-trainer", "capabilities"], check=True,
                                       capture_output=True, text=True).stdout)
    return {**os.environ, **answer.get("environment", {})}


def measure(build, arguments, pe, environment):
    how = ["--steps", str(arguments.steps), "--threads", str(arguments.threads)]
    ours = [build / "bench/train_bench", "--protocol", arguments.protocol, "--pe", pe,
            "--task", arguments.task, "--batch", str(arguments.batch), *how]
    seconds, peak = {"ours": [], "eager": []}, {}
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([*ours, "--dump", folder], check=True, env=environment)
        peer = [PYTHON, HERE / "peer.py", folder, *how]
        for _ in range(arguments.rounds):
            mine, theirs = said(ours, environment), said(peer, environment)
            if mine["parameters"] != theirs["parameters"]:
                sys.exit(f"{pe}: we train {mine['parameters']} parameters, the peer "
                         f"{theirs['parameters']}")
            seconds["ours"] += mine["seconds"]
            seconds["eager"] += theirs["seconds"]
            peak = {"ours": mine["peak_bytes"], "eager": theirs["peak_bytes"]}
    floor = arithmetic(theirs["spec"], arguments.batch, theirs["length"]) / theirs["matmul_flops"]
    ours_s, eager_s = (statistics.median(seconds[side]) for side in ("ours", "eager"))
    return {"protocol": arguments.protocol, "pe": pe, "task": arguments.task,
            "precision": "float32", "batch": arguments.batch,
            "threads": arguments.threads, "ours_s": ours_s, "eager_s": eager_s,
            "ratio": eager_s / ours_s, "asked": ASKED.get(pe, 2.0), "floor_s": floor,
            "matmul_gflops": theirs["matmul_flops"] / 1e9, "difference": theirs["difference"],
            "torch": theirs["torch"], "peak_bytes": peak, "seconds": seconds}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--pe", nargs="+", choices=PES, default=PES)
    parser.add_argument("--task", choices=TASKS, default="distance")
    parser.add_argument("--protocol", choices=PROTOCOLS, default="clean")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=pathlib.Path, help="write the figures here too")
    arguments = parser.parse_args()
    environment = kernels(arguments.build)
    print("encoding          ours     eager   ratio  asked    floor  of the floor  memory: ours    "
          "eager  logits differ by")
    rows = []
    for pe in arguments.pe:
        row = measure(arguments.build, arguments, pe, environment)
        rows.append(row)
        print(f"{pe:13} {row['ours_s']:7.2f} s {row['eager_s']:7.2f} s {row['ratio']:7.2f} "
              f"{row['asked']:6.1f} {row['floor_s']:6.2f} s "
              f"{100 * row['floor_s'] / row['ours_s']:11.0f} %  "
              f"{row['peak_bytes']['ours'] / 1e9:9.2f} GB {row['peak_bytes']['eager'] / 1e9:5.2f} "
              f"GB  {row['difference']:.1e}", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")
    slow = [row["pe"] for row in rows if row["ratio"] < row["asked"]]
    print(f"below what is asked: {', '.join(slow)}" if slow
          else "every ratio is at least what is asked")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
