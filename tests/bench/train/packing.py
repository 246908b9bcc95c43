#!/usr/bin/env python3
"""Steps of K seeds of one configuration: as one batch, against one seed after another.

    tests/bench/train/packing.py build/release                       small batches on this CPU
    tests/bench/train/packing.py build/gpu-bench --device cuda:0     on a GPU, paper size too

The sides alternate, each in its own process. Each result is the median time of a step per seed. On
a GPU, seeds one after another are measured with and without step graphs. The targets on a GPU are 3
times as fast without graphs and 1.5 times with them. On a CPU one batch must be at least as fast,
or `--packing auto`, which measures for itself, must train the seeds one after another; in that case
the trainer's own measurements are printed below. Exits 1 if no target is met."""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

from steps import PES, kernels, said

ASKED = {"cpu": {"alone": 1.0}, "gpu": {"alone, no graphs": 3.0, "alone": 1.5}}
SMALL = ["--small"]


def ways(device, seeds):
    """The options of each side."""
    found = {"packed": ["--seeds", str(seeds)], "alone": []}
    if device != "cpu":
        found["alone, no graphs"] = ["--cuda-graphs", "off"]
    return found


def measure(arguments, size, environment):
    how = ["--pe", arguments.pe, "--batch", str(arguments.batch), "--steps", str(arguments.steps),
           "--warm-up", "6", "--threads", str(arguments.threads), "--device", arguments.device,
           "--precision", arguments.precision, *size]
    seconds = {}
    for _ in range(arguments.rounds):
        for way, options in ways(arguments.device, arguments.seeds).items():
            answer = said([arguments.build / "bench/train_bench", *how, *options], environment)
            share = arguments.seeds if way == "packed" else 1
            seconds.setdefault(way, []).extend(step / share for step in answer["seconds"])
    medians = {way: statistics.median(of) for way, of in seconds.items()}
    return {"size": "small" if size else "paper", "pe": arguments.pe,
            "precision": arguments.precision, "batch": arguments.batch, "seeds": arguments.seeds,
            "threads": arguments.threads, "device": arguments.device, "step_s": medians,
            "ratio": {way: medians[way] / medians["packed"] for way in medians if way != "packed"},
            "seconds": seconds}


def chosen(arguments, environment):
    """The measurements and the choice of `--packing auto` for the small job."""
    with tempfile.TemporaryDirectory() as name:
        folder, options = pathlib.Path(name), []
        bench = [arguments.build / "bench/train_bench", "--small", "--pe", arguments.pe,
                 "--batch", str(arguments.batch)]
        for seed in range(arguments.seeds):
            spec = folder / f"{seed}.json"
            spec.write_text(subprocess.run([*bench, "--seed", str(seed), "--print-job"], check=True,
                                           capture_output=True, text=True, env=environment).stdout)
            options += ["--spec", spec, "--workdir", folder / str(seed)]
        done = subprocess.run([arguments.build / "bin/pelab-trainer", "run", *options,
                               "--packing", "auto", "--device", arguments.device,
                               "--threads", str(arguments.threads)], check=True,
                              capture_output=True, text=True, env=environment)
    hello = json.loads(done.stdout.splitlines()[0])
    return {"members": hello.get("members", 1), "step_seconds": hello.get("step_seconds")}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--pe", choices=PES, default="rope")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", default="float32", choices=("float32", "bf16"))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=pathlib.Path, help="write the figures here too")
    arguments = parser.parse_args()
    environment = kernels(arguments.build)
    asked = ASKED["cpu" if arguments.device == "cpu" else "gpu"]
    rows, short = [], []
    print(f"{arguments.seeds} seeds of {arguments.pe}, batch {arguments.batch}, "
          f"{arguments.precision}, {arguments.device}")
    for size in (SMALL,) if arguments.device == "cpu" else (SMALL, []):
        row = measure(arguments, size, environment)
        rows.append(row)
        print(f"{row['size']:6} packed {1e3 * row['step_s']['packed']:8.3f} ms a seed's step")
        for way, ratio in row["ratio"].items():
            print(f"       {way:17} {1e3 * row['step_s'][way]:8.3f} ms, ratio {ratio:.2f} (asked "
                  f"{asked[way]})")
            short += [way] if ratio < asked[way] else []
    choice = chosen(arguments, environment)
    measured = choice["step_seconds"] or {}
    print("--packing auto trains "
          f"{'one after another' if choice['members'] == 1 else 'as one batch'}; it measured "
          + ", ".join(f"{way} {1e3 * seconds:.3f} ms"
                      for way, seconds in measured.items() if seconds))
    if arguments.json:
        arguments.json.write_text(json.dumps({"rows": rows, "chosen": choice}, indent=1) + "\n")
    if short and arguments.device == "cpu" and choice["members"] == 1:
        print("one batch is slower here, and is not what is chosen")
        return 0
    print(f"below what is asked: {', '.join(short)}" if short
          else "every ratio is at least what is asked")
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
