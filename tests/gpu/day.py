#!/usr/bin/env python3
"""The stages of deploy/gpu-day.sh after the build: what is to be done on a GPU, in order of worth.

    tests/gpu/day.py --list
    tests/gpu/day.py build/gpu-day correct speed --out build/gpu-day/results --minutes 9

A stage has parts. Each part's end is kept in OUT/STAGE.json, and its output in OUT/PART.txt; a part
that ended well is not run again by a later call with the same OUT, nor is one of `speed` that
missed a bound. A part that the time cuts off is run again, but for table1, which goes on.

Exit status: 0 all well, 1 a part failed, 2 this host lacks something, 75 time ended before."""

import argparse
import collections
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

from host import missing_device

HERE = pathlib.Path(__file__).resolve().parent
BENCH = HERE.parent / "bench/train"
ENDED, LACKS = 75, 2
# Of trainer_model_test: what computes on TestDevice().
DEVICE_TESTS = ("*AttentionKernel*:AttentionDefinition*:FusedLayers.*:Operations.*:"
                "*EveryPrecision*:ClassifiedSums*:AdamWPrecisions*")
# As small as they come: the sanitizers slow each access down.
SANITIZED_TESTS = ("*AttentionKernel.Agrees*/paper_size*:*AttentionKernel.Agrees*/odd_sizes:"
                   "*AttentionKernel.Agrees*/packed_biases:FusedLayers.ANorm*:FusedLayers.Activ*:"
                   "Operations.*:AdamWPrecisions*")

# minutes: expected on an H200. command(build, out, device, minutes left): a list.
Part = collections.namedtuple("Part", "name minutes what files command needs")


def tests_of(tests, *before):
    def command(build, _out, _device, _left):
        return [*before, build / "tests/trainer_model_test", f"--gtest_filter={tests}"]
    return command


def script(path, *options, json_to=None, takes_device=True):
    def command(build, out, device, _left):
        return [sys.executable, path, build, *options,
                *(["--device", device] if takes_device else []),
                *(["--json", out / json_to] if json_to else [])]
    return command


def steps(*options, name):
    return script(BENCH / "gpu.py", "--batch", "512", "--rounds", "1", "--side-seconds", "240",
                  "--no-jobs", *options, json_to=f"{name}.json")


def stalls(build, _out, device, _left):
    sections = [word for section in ("SpeedOfLight", "Occupancy", "WarpStateStats")
                for word in ("--section", section)]
    return ["ncu", "--clock-control", "none", *sections, "--kernel-name", "regex:TensorAttention",
            "--launch-skip", "12", "--launch-count", "12", build / "bench/train_bench", "--pe",
            "rope", "--precision", "bf16", "--batch", "512", "--steps", "1", "--warm-up", "1",
            "--device", device, "--threads", "1", "--cuda-graphs", "off"]


def table1(build, out, device, left):
    return [sys.executable, HERE / "table1.py", build, "--out", out / "table", "--device", device,
            "--minutes", f"{left:.2f}"]


def more_seeds(build, out, device, left):
    return [*table1(build, out, device, left), "--seeds", "5", "--precision", "bf16", "--pe",
            "rope", "nope", "mla", "absolute", "relative", "alibi", "random"]


STAGES = {
    "correct": [
        Part("kernels", 0.3, "each kernel, float32 and bf16, against float64 on the device; whole "
             "decoders and their gradients", ["kernels.txt"], tests_of(DEVICE_TESTS),
             "tests/trainer_model_test"),
        Part("jobs", 0.7, "each encoding under both protocols: a small job against the CPU's, CUDA "
             "graphs against none, a run against its repetition",
             ["jobs.json"], script(HERE / "check_jobs.py", json_to="jobs.json"), None),
        Part("sass", 0.2, "the kernels' machine code: tensor cores, wide loads, local memory",
             ["sass.json"], script(HERE / "sass.py", json_to="sass.json", takes_device=False),
             "cuobjdump"),
        Part("memcheck", 0.2, "compute-sanitizer: accesses out of bounds", ["memcheck.txt"],
             tests_of(SANITIZED_TESTS, "compute-sanitizer", "--tool", "memcheck", "--kernel-regex",
                      "kns=pelab", "--error-exitcode", "1"), "compute-sanitizer"),
        Part("racecheck", 0.2, "compute-sanitizer: races in shared memory", ["racecheck.txt"],
             tests_of(SANITIZED_TESTS, "compute-sanitizer", "--tool", "racecheck",
                      "--kernel-regex", "kns=pelab", "--error-exitcode", "1"),
             "compute-sanitizer"),
    ],
    "speed": [
        Part("steps-rope", 3, "a step of rope in bf16: eager and torch.compile(max-autotune), and "
             "the floor", ["steps-rope.json"],
             steps("--pe", "rope", "--precision", "bf16", "--peers", "eager", "compile",
                   name="steps-rope"), None),
        Part("cells", 4, "three epochs and an ablation of Table 1's 14 cells in bf16; 5 seeds are "
             "extrapolated", ["cells.json"],
             script(BENCH / "gpu.py", "--no-steps", "--precision", "bf16", json_to="cells.json"),
             None),
        Part("profile", 1.6, "the time of each kernel in a step", ["profile.json"],
             script(HERE / "profile.py", json_to="profile.json"), "ncu"),
        Part("stalls", 0.5, "what the attention kernels for tensor cores wait for", ["stalls.txt"],
             stalls, "ncu"),
        Part("steps-relative", 3, "a step of relative in bf16: torch.compile and FlexAttention",
             ["steps-relative.json"],
             steps("--pe", "relative", "--precision", "bf16", "--peers", "compile", "flex",
                   name="steps-relative"), None),
        Part("steps-float32", 3, "a step of rope in float32: eager and torch.compile",
             ["steps-float32.json"],
             steps("--pe", "rope", "--precision", "float32", "--peers", "eager", "compile",
                   name="steps-float32"), None),
        Part("steps-others", 12, "steps of all other encodings", ["steps-others.json"],
             steps("--pe", "nope", "mla", "alibi", "absolute", "shaw", "--peers", "eager",
                   "compile", name="steps-others"), None),
        Part("packing", 1, "seeds as one batch against one after another", ["packing.txt"],
             script(BENCH / "packing.py"), None),
        Part("evaluation", 3, "evaluation and head ablation against eager", ["evaluation.txt"],
             script(BENCH / "cells.py", "--protocol", "published", "--pe", "rope", "mla",
                    "--batch", "512", "--steps", "20", "--warm-up", "5", "--examples", "4096",
                    "--ablated", "512"), None),
    ],
    "table": [
        Part("table1", 200, "Table 1's cells at the paper's size, one seed each, with checkpoints",
             ["table/table1.json", "table/CELL/events.jsonl"], table1, None),
    ],
    "seeds": [
        Part("seeds", 240, "all of Table 1's encodings with five seeds, in bf16",
             ["table/table1.json", "table/CELL/events.jsonl"], more_seeds, None),
    ],
}


def list_stages():
    print(f"{'stage':8} {'part':15} {'minutes':>7}  what it does  [files in OUT]")
    print(f"{'build':8} {'build':15} {2.0:7.1f}  the trainer, its bench and the kernels' tests, "
          "against this host's LibTorch  [BUILD/build.log]")
    for stage, parts in STAGES.items():
        for part in parts:
            print(f"{stage:8} {part.name:15} {part.minutes:7.1f}  {part.what}  "
                  f"[{', '.join(part.files)}]")


def missing(part, build):
    """What the part needs and this host lacks, or None."""
    if part.needs is None or shutil.which(part.needs) or (build / part.needs).exists():
        return None
    return part.needs


def run_part(part, options, until):
    """{"status", "seconds"}; the output goes to the terminal's end and to a file."""
    lacks = missing(part, options.build)
    if lacks:
        print(f"{part.name}: left out: no {lacks} here", flush=True)
        return {"status": LACKS, "lacks": lacks}
    left = until - time.monotonic()
    if left < 20:
        return {"status": ENDED}
    print(f"{part.name}: {part.what}; about {part.minutes:g} min", flush=True)
    environment = {**os.environ, "PELAB_TEST_DEVICE": options.device,
                   "PELAB_TORCH_PYTHON": os.environ.get("PELAB_TORCH_PYTHON", sys.executable)}
    command = [str(word) for word in part.command(options.build, options.out, options.device,
                                                  left / 60)]
    began = time.monotonic()
    with open(options.out / f"{part.name}.txt", "w", encoding="utf-8") as output:
        try:
            status = subprocess.run(command, check=False, stdout=output, stderr=subprocess.STDOUT,
                                    timeout=left, env=environment).returncode
        except subprocess.TimeoutExpired:
            status = ENDED
    for line in (options.out / f"{part.name}.txt").read_text(errors="replace").splitlines()[-25:]:
        print(f"  {line[:200]}")
    print(f"{part.name}: " + {0: "well", ENDED: "not done yet"}.get(status, f"FAILED ({status})"),
          flush=True)
    return {"status": status, "seconds": time.monotonic() - began, "command": command}


def run_stage(stage, options, until):
    """The worst status of its parts."""
    kept = options.out / f"{stage}.json"
    parts = json.loads(kept.read_text())["parts"] if kept.exists() else {}
    for part in STAGES[stage]:
        if parts.get(part.name, {}).get("status") in ((0, 1) if stage == "speed" else (0,)):
            print(f"{part.name}: done before")
            continue
        parts[part.name] = run_part(part, options, until)
        kept.write_text(json.dumps({"stage": stage, "device": options.device, "parts": parts},
                                   indent=1) + "\n")
    found = {parts[part.name]["status"] for part in STAGES[stage]} - {0, LACKS}
    return 1 if found - {ENDED} else ENDED if found else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, nargs="?")
    parser.add_argument("stages", nargs="*", metavar="STAGE", help=", ".join(STAGES))
    parser.add_argument("--list", action="store_true", help="the stages, and nothing else")
    parser.add_argument("--out", type=pathlib.Path, help="[default: BUILD/results]")
    parser.add_argument("--minutes", type=float, default=1e4)
    parser.add_argument("--device", default="cuda:0")
    options = parser.parse_args()
    if options.list:
        list_stages()
        return 0
    unknown = set(options.stages) - set(STAGES)
    if options.build is None or unknown:
        parser.error(f"no stage {', '.join(sorted(unknown))}; there are {', '.join(STAGES)}"
                     if unknown else "the folder of the build is missing")
    until = time.monotonic() + 60 * options.minutes
    if lacks := missing_device(options.build, options.device):
        print(f"gpu-day: {lacks}", file=sys.stderr)
        return LACKS
    options.out = options.out or options.build / "results"
    options.out.mkdir(parents=True, exist_ok=True)
    found = [run_stage(stage, options, until) for stage in options.stages or STAGES]
    return 1 if 1 in found else max(found, default=0)


if __name__ == "__main__":
    sys.exit(main())
