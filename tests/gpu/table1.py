#!/usr/bin/env python3
"""Trains Table 1's cells at the paper's size on a GPU, one after another, while there is time.

    tests/gpu/table1.py build/gpu-day --out day/table --minutes 9

The order is RoPE, NoPE, MLA x distance, counting x published, clean, in bf16, then the same in
float32; seed 0, then the next ones. Each cell has a folder with its job, its events
(docs/formats.md) and its newest checkpoint. Where the time ends within a cell, the trainer is asked
to stop and leaves a checkpoint; the next call with the same --out goes on there. It prints each
cell's epochs, last test accuracy, time of an epoch, and deposit. `pelab import day/table --db
pelab.db` stores the cells that are done.

Exit status: 0 every cell is done, 75 time ended before, 1 a cell failed, 2 this host lacks
something."""

import argparse
import json
import pathlib
import signal
import socket
import statistics
import subprocess
import sys
import time

from host import missing_device

PES, TASKS, PROTOCOLS = ("rope", "nope", "mla"), ("distance", "counting"), ("published", "clean")
ENDED = 75  # the trainer's exit status after SIGTERM
TO_STOP = 15  # seconds that a trainer has to write its checkpoint
ABLATION = {"name": "head_ablation", "version": 2,
            "parameters": {"data": "test", "hygiene": "clean", "max_examples": 0, "method": "zero",
                           "target": "head"}}


def cells(options):
    return [(precision, protocol, task, pe, seed)
            for seed in range(options.seeds) for precision in options.precision
            for protocol in options.protocol for task in options.task for pe in options.pe]


def job_of(options, cell):
    precision, protocol, task, pe, seed = cell
    size = ["--small"] if options.small else ["--whole"]
    made = subprocess.run(
        [options.build / "bench/train_bench", *size, "--protocol", protocol, "--pe", pe,
         "--task", task, "--seed", str(seed), "--print-job"],
        check=True, capture_output=True, text=True)
    job = json.loads(made.stdout)
    job["job"] = "-".join(map(str, cell))
    if precision != "float32":
        job["spec"]["train"]["precision"] = precision
    if options.epochs:
        job["spec"]["train"]["epochs"] = options.epochs
    job["analyses"] = [ABLATION]
    return job


def events_of(folder):
    """The newest event of each epoch, and the others by kind."""
    epochs, others = {}, {}
    path = folder / "events.jsonl"
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            event = json.loads(line)
        except ValueError:
            continue  # the last line of a trainer that was killed
        if event["event"] == "epoch":
            epochs[event["epoch"]] = event
        else:
            others[event["event"]] = event
    return [epochs[epoch] for epoch in sorted(epochs)], others


def note(folder, **members):
    """Adds a line of ours to the trainer's lines (docs/formats.md, "Runs of a trainer alone")."""
    path = folder / "events.jsonl"
    text = path.read_bytes() if path.exists() else b""
    job = json.loads((folder / "job.json").read_text())["job"]
    with open(path, "a", encoding="utf-8") as events:
        if text and not text.endswith(b"\n"):
            events.write("\n")  # the trainer was killed within a line
        events.write(json.dumps({**members, "unix_ms": int(1000 * time.time()), "job": job}) + "\n")


def train(options, cell, folder, until):
    """The trainer's exit status; it is asked to stop at `until`."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "job.json").exists():
        (folder / "job.json").write_text(json.dumps(job_of(options, cell)) + "\n")
    note(folder, event="call", host=socket.gethostname())
    try:
        return call(options, folder, until)
    finally:
        note(folder, event="returned")


def call(options, folder, until):
    with open(folder / "events.jsonl", "a", encoding="utf-8") as events, \
            open(folder / "stderr.txt", "a", encoding="utf-8") as errors:
        trainer = subprocess.Popen(
            [options.build / "bin/pelab-trainer", "run", "--spec", folder / "job.json",
             "--workdir", folder, "--device", options.device, "--threads", "1", "--resume",
             "--checkpoint-seconds", "20"], stdout=events, stderr=errors)
        try:
            return trainer.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            trainer.send_signal(signal.SIGTERM)
        try:
            return trainer.wait(TO_STOP)
        except subprocess.TimeoutExpired:
            trainer.kill()
            return trainer.wait()


def deposit(ablation):
    """(largest loss of accuracy by one head, that of the second), in points of all examples."""
    lost = sorted(((ablation["intact_correct"] - correct) / ablation["total"]
                   for layer in ablation["correct"] for correct in layer if correct is not None),
                  reverse=True)
    return 100 * lost[0], 100 * lost[1] if len(lost) > 1 else float("nan")


def summary(cell, folder):
    epochs, others = events_of(folder)
    found = {"cell": "-".join(map(str, cell)), "epochs": len(epochs), "done": "done" in others,
             "device": others.get("hello", {}).get("device_name"),
             "commit": others.get("hello", {}).get("commit")}
    if epochs:
        later = [epoch["seconds"] for epoch in epochs[1:]] or [epochs[0]["seconds"]]
        found.update(epoch_s=statistics.median(later),
                     test_accuracy=epochs[-1]["test_correct"] / epochs[-1]["test_total"])
    if "head_ablation" in others:
        found["ablation_s"] = others["head_ablation"]["seconds"]
        found["lost_points"] = deposit(others["head_ablation"])
    if "error" in others:
        found["error"] = others["error"]["message"]
    return found


def shown(row):
    if "test_accuracy" not in row:
        return f"{row['cell']:34} " + row.get("error", "not begun")
    points = ("   heads' largest losses {:.1f} and {:.1f} points".format(*row["lost_points"])
              if "lost_points" in row else "")
    return (f"{row['cell']:34} {row['epochs']:4} epochs of {row['epoch_s']:6.2f} s   test accuracy "
            f"{row['test_accuracy']:.4f}{points}" + ("" if row["done"] else "   (goes on)"))


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--precision", nargs="+", choices=("bf16", "float32"),
                        default=["bf16", "float32"])
    parser.add_argument("--protocol", nargs="+", choices=PROTOCOLS, default=PROTOCOLS)
    parser.add_argument("--task", nargs="+", choices=TASKS, default=TASKS)
    parser.add_argument("--pe", nargs="+", default=PES)
    parser.add_argument("--epochs", type=int, help="instead of the protocol's")
    parser.add_argument("--small", action="store_true", help="a small model, to try the script")
    return parser.parse_args()


def main():
    options = parse()
    until = time.monotonic() + 60 * options.minutes - TO_STOP
    if lacks := missing_device(options.build, options.device):
        print(f"table1: {lacks}", file=sys.stderr)
        return 2
    failed, left = False, False
    rows = []
    for cell in cells(options):
        folder = options.out / "-".join(map(str, cell))
        if "done" not in events_of(folder)[1]:
            if time.monotonic() >= until:
                left = True
                break
            status = train(options, cell, folder, until)
            failed |= status not in (0, ENDED)
            left |= status == ENDED
        rows.append(summary(cell, folder))
        print(shown(rows[-1]), flush=True)
        (options.out / "table1.json").write_text(json.dumps(rows, indent=1) + "\n")
    return 1 if failed else ENDED if left else 0


if __name__ == "__main__":
    sys.exit(main())
