#!/usr/bin/env python3
"""A whole job at paper size, ours against PyTorch eager.

For each encoding and task, it measures on both sides a training step, the evaluation of test
examples and the ablation of every head. An epoch and a job are extrapolated from these.

    tests/bench/train/cells.py build/release                 every encoding and task under clean
    tests/bench/train/cells.py build/release --pe mla --protocol published --task distance \\
        --rounds 3
    tests/bench/train/cells.py build/gpu-bench --device cuda:0 --batch 512 --steps 20 \\
        --warm-up 5 --examples 4096 --ablated 512

The sides alternate, each in its own process, with the same weights, examples, matrix library and
number of threads. Each result is the median over all rounds. Eager evaluates in batches of 256 and
ablates in the usual way, with one whole pass per head. Before the steps, both sides must agree with
the starting weights: on the mean losses of the intact model and without each head, and, except for
near ties, on the numbers of correct examples. Measure on an idle machine: a busy one slows eager's
many small products on several threads far more than our side.

No whole epoch or job is trained. An epoch is extrapolated as the protocol's training examples in
steps of --batch plus one evaluation of its test examples; a job as its epochs plus one ablation
over its test examples. Starting a job, making its data and storing its weights are left out on both
sides. Exits 1 if the sides disagree. Needs the same as steps.py; for bf16 PyTorch 2."""

import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile

from steps import HERE, PES, PROTOCOLS, PYTHON, TASKS, kernels, said

MOST_APART = {"float32": 1e-4, "bf16": 1e-3}  # relative difference of losses
NEAR_TIES = {"float32": 2, "bf16": 8}         # so many predictions may differ
KINDS = {"step": "seconds", "evaluation": "evaluation_seconds", "ablation": "ablation_seconds"}
SHOWN = (("step", "step, s"), ("evaluation", "evaluation of 1000, s"),
         ("ablation", "ablation over 1000, s"),
         ("epoch", "epoch, h, extrapolated"), ("job", "job, h, extrapolated"))


def our_command(arguments, pe, task):
    return [arguments.build / "bench/train_bench", "--protocol", arguments.protocol, "--pe", pe,
            "--task", task, "--batch", str(arguments.batch), *measured_options(arguments)]


def measured_options(arguments):
    """The options that both sides receive, since the data depend on them."""
    return ["--steps", str(arguments.steps), "--warm-up", str(arguments.warm_up),
            "--threads", str(arguments.threads), "--evaluate", str(arguments.examples),
            "--ablate", str(arguments.ablated), "--device", arguments.device]


def protocol_job(arguments, pe, task, environment):
    """The spec with the protocol's own numbers of examples and epochs."""
    return said([*our_command(arguments, pe, task), "--whole", "--print-job"], environment)["spec"]


def disagreement(mine, theirs, precision):
    """(largest relative difference of a loss, text about a disagreement or None)."""
    if mine["parameters"] != theirs["parameters"]:
        return (math.nan,
                f"we train {mine['parameters']} parameters, the peer {theirs['parameters']}")
    apart = 0.0
    for kind in ("evaluation", "ablation"):
        ours, eager = mine[kind], theirs[kind]
        if ours["scored"] != eager["scored"] or len(ours["loss"]) != len(eager["loss"]):
            return math.nan, f"{kind}: other examples or heads"
        losses = [abs(a - b) / max(abs(b), 1e-9) for a, b in zip(ours["loss"], eager["loss"])]
        right = max(abs(a - b) for a, b in zip(ours["correct"], eager["correct"]))
        apart = max(apart, *losses)
        wrong = [loss for loss in losses if not loss <= MOST_APART[precision]]  # also catches NaN
        if wrong:
            return (apart, f"{kind}: {len(wrong)} of {len(losses)} losses differ, the first by "
                           f"{wrong[0]:.1e}")
        if right > NEAR_TIES[precision]:
            return (apart, f"{kind}: of {ours['scored']} predictions {right} more are right on one "
                           "of the sides")
    return apart, None


def take_turns(arguments, pe, task, environment):
    """Returns ({side: {"step", "evaluation" and "ablation": [seconds]}}, the largest difference,
    text about a disagreement)."""
    ours, precision = our_command(arguments, pe, task), ["--precision", arguments.precision]
    seconds = {side: {kind: [] for kind in KINDS} for side in ("ours", "eager")}
    apart, wrong = 0.0, None
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([*ours, "--dump", folder], check=True, env=environment)
        peer = [PYTHON, HERE / "peer.py", folder, *measured_options(arguments), *precision]
        for _ in range(arguments.rounds):
            mine, theirs = said([*ours, *precision], environment), said(peer, environment)
            for side, answer in (("ours", mine), ("eager", theirs)):
                for kind, name in KINDS.items():
                    seconds[side][kind] += answer[name]
            apart, wrong = disagreement(mine, theirs, arguments.precision)
            if wrong:
                break
    return seconds, apart, wrong


def extrapolate(arguments, spec, of):
    """Hours of an epoch and of a job, from the seconds of a step and of 1000 examples."""
    task, train = spec["task"], spec["train"]
    epoch = (task["train_examples"] / arguments.batch * of["step"]
             + task["test_examples"] / 1000 * of["evaluation"])
    job = train["epochs"] * epoch + task["test_examples"] / 1000 * of["ablation"]
    return {"epoch": epoch / 3600, "job": job / 3600}


def measure(arguments, pe, task, environment):
    spec = protocol_job(arguments, pe, task, environment)
    seconds, apart, wrong = take_turns(arguments, pe, task, environment)
    row = {"protocol": arguments.protocol, "pe": pe, "task": task, "precision": arguments.precision,
           "device": arguments.device, "threads": arguments.threads, "batch": arguments.batch,
           "examples": arguments.examples, "ablated": arguments.ablated,
           "train_examples": spec["task"]["train_examples"],
           "test_examples": spec["task"]["test_examples"], "epochs": spec["train"]["epochs"],
           "losses_differ_by": apart, "disagreement": wrong, "seconds": seconds}
    share = {"step": 1, "evaluation": 1000 / arguments.examples,
             "ablation": 1000 / arguments.ablated}
    for side in ("ours", "eager"):
        of = {kind: share[kind] * statistics.median(seconds[side][kind]) for kind in KINDS}
        row[side] = {**of, **extrapolate(arguments, spec, of)}
    row["ratio"] = {kind: row["eager"][kind] / row["ours"][kind] for kind in row["ours"]}
    return row


def figure(value):
    """The value with three significant digits."""
    return f"{value:.{max(0, 2 - math.floor(math.log10(value)))}f}"


def print_head(arguments):
    print(f"{arguments.protocol}, {arguments.device}, threads: {arguments.threads}; a step of "
          f"{arguments.batch} examples; {arguments.examples} evaluated and {arguments.ablated} "
          "ablated, shown for 1000")
    print((f"{'':33}" + "".join(f"  {title:^24}" for _, title in SHOWN)).rstrip())
    print("encoding      task      precision"
          + f"  {'ours':>8} {'eager':>8} {'ratio':>6}" * len(SHOWN) + "  losses differ by")


def print_row(row):
    ours, eager, ratio = row["ours"], row["eager"], row["ratio"]
    of = "".join(f"  {figure(ours[kind]):>8} {figure(eager[kind]):>8} {ratio[kind]:6.2f}"
                 for kind, _ in SHOWN)
    print(f"{row['pe']:13} {row['task']:9} {row['precision']:9}{of}  {row['losses_differ_by']:.1e}",
          flush=True)


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--pe", nargs="+", choices=PES, default=PES)
    parser.add_argument("--task", nargs="+", choices=TASKS, default=TASKS)
    parser.add_argument("--protocol", choices=PROTOCOLS, default="clean")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", choices=("float32", "bf16"), default="float32")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=1)
    parser.add_argument("--warm-up", type=int, default=1,
                        help="steps before those that are timed [default: 1]")
    parser.add_argument("--examples", type=int, default=128,
                        help="test examples that are evaluated [default: 128]")
    parser.add_argument("--ablated", type=int, default=16,
                        help="test examples over which heads are ablated [default: 16]")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--json", type=pathlib.Path, help="write the figures here too")
    return parser.parse_args()


def main():
    arguments = parse()
    environment = kernels(arguments.build)
    print_head(arguments)
    rows = []
    for pe in arguments.pe:
        for task in arguments.task:
            rows.append(measure(arguments, pe, task, environment))
            print_row(rows[-1])
            if arguments.json:
                arguments.json.write_text(json.dumps(rows, indent=1) + "\n")
    wrong = [f"{row['pe']} {row['task']}: {row['disagreement']}"
             for row in rows if row["disagreement"]]
    print("\n".join(["the sides disagree:", *wrong]) if wrong
          else "both sides agree on every loss and prediction")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
