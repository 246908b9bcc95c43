#!/usr/bin/env python3
"""Encodings from files against the same ones as pelab brings them, and against rope: the time of an
epoch.

    tests/bench/train/own.py build/release

The sides alternate, each in its own process. Each result is the median of all rounds. Needs
PyTorch, which only writes the files. Exits 1 if a pair does not give the same losses."""

import argparse
import hashlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[3]
EXAMPLE = SOURCE / "client" / "python" / "examples" / "own_encodings.py"
# What pelab brings, and the file of the same encoding; decay has no counterpart.
PAIRS = (("rope", "rope"), ("alibi", "alibi"), ("absolute", "sinusoid"),
         ("{name: relative, init_std: 0}", "t5"), (None, "decay"))
SIZES = {
    "small": {"length": 32, "examples": 4000, "d_model": 64, "heads": 4, "layers": 2, "d_ff": 128,
              "batch": 64},
    "paper": {"length": 128, "examples": 64, "d_model": 256, "heads": 16, "layers": 6,
              "d_ff": 512, "batch": 64},
}
DOCUMENT = """
name: own
pe: [{pes}]
task: {{name: distance, length: {length}, vocabulary: 574, train_examples: {examples},
        test_examples: 64}}
model: {{d_model: {d_model}, heads: {heads}, layers: {layers}, d_ff: {d_ff}, max_len: {length}}}
train: {{epochs: {epochs}, batch_size: {batch}}}
"""


def specs(build, folder, size, epochs):
    """The canonical specs, by label."""
    pes = []
    for brought, own in PAIRS:
        pes += ([brought] if brought else []) + [f"{{name: own, file: {own}.pt}}"]
    document = folder / "own.yaml"
    document.write_text(DOCUMENT.format(pes=", ".join(pes), epochs=epochs, **SIZES[size]))
    said = subprocess.run([build / "bin" / "pelab", "run", document, "--dry-run", "--output",
                           "json"], capture_output=True, text=True, check=True)
    return {job["pe_label"]: job["spec"] for job in json.loads(said.stdout)["jobs"]}


def epochs_of(build, folder, spec, threads):
    """The trainer's epoch events."""
    (folder / "job.json").write_text(json.dumps(spec))
    shutil.rmtree(folder / "work", ignore_errors=True)
    said = subprocess.run([build / "bin" / "pelab-trainer", "run", "--spec", folder / "job.json",
                           "--workdir", folder / "work", "--files", folder, "--threads",
                           str(threads)], capture_output=True, text=True, check=True)
    events = [json.loads(line) for line in said.stdout.splitlines()]
    return [event for event in events if event["event"] == "epoch"]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    agree = True
    print("| size | encoding | brought, s | own, s | own / brought | own / rope |\n"
          "|---|---|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run([sys.executable, EXAMPLE, folder], check=True,
                       env={**os.environ, "PYTHONPATH": str(build / "python")})
        for path in list(folder.glob("*.pt")):
            shutil.copy(path, folder / hashlib.sha256(path.read_bytes()).hexdigest())
        for size in SIZES:
            agree &= compare(build, folder, size, arguments)
    return 0 if agree else 1


def compare(build, folder, size, arguments):
    jobs = specs(build, folder, size, arguments.epochs)
    seconds, losses = {label: [] for label in jobs}, {}
    for _ in range(arguments.rounds):
        for label, spec in jobs.items():
            epochs = epochs_of(build, folder, spec, arguments.threads)
            # The first epoch has what is done once.
            seconds[label] += [epoch["seconds"] for epoch in epochs[1:]]
            losses[label] = [epoch["train_loss"] for epoch in epochs]
    median = {label: statistics.median(times) for label, times in seconds.items()}
    agree = True
    for brought, own in PAIRS:
        theirs = next(label for label in jobs if label.startswith(f"own:{own}"))
        ours = next((label for label in jobs if brought and not label.startswith("own:")
                     and label.split("(")[0] in brought), None)
        times = f"{median[ours]:.3f}" if ours else ""
        ratio = f"{median[theirs] / median[ours]:.2f}" if ours else ""
        print(f"| {size} | {own} | {times} | {median[theirs]:.3f} | {ratio} | "
              f"{median[theirs] / median['rope']:.2f} |", flush=True)
        if ours:
            apart = max(abs(a - b) / a for a, b in zip(losses[ours], losses[theirs]))
            if apart > 1e-4:
                print(f"{own}: the losses differ by {apart:.2g}", file=sys.stderr)
                agree = False
    return agree


if __name__ == "__main__":
    sys.exit(main())
