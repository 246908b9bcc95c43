"""The time that Table 1 takes on a GPU.

Each of its 14 cells trains some epochs with the trainer itself, and its heads are ablated; the rest
is extrapolated.

The limits: a pass without gradients takes a third of a step's floor (floor.py). An epoch is its
steps plus such a pass over the test examples. An ablation of L layers and H heads is one pass,
plus, for each head, a pass through what follows that head."""

import json
import pathlib
import statistics
import subprocess
import tempfile
import time

import floor

PES = ("nope", "absolute", "random", "relative", "alibi", "rope", "mla")
EXAMPLES = {"distance": (70000, 30000), "counting": (35000, 15000)}  # for training and for testing
SEEDS = 5
PARAMETERS = 3.4e6  # roughly; AdamW's pass over them is a hundredth of a step
EPOCHS = 3  # trained; the first warms up


def published(pe):
    """(epochs, batch) in the authors' code."""
    return (150, 1024) if pe == "mla" else (100, 512)


def document(options, pe, task, precision, folder):
    """The job document for a trainer; the precision is in the spec, as in train_bench."""
    subprocess.run([str(part) for part in [
        options.build / "bench/train_bench", "--protocol", "published", "--pe", pe, "--task", task,
        "--batch", 1, "--steps", 1, "--threads", "1", "--device", options.device,
        "--precision", precision, "--dump", folder]], check=True, capture_output=True, text=True)
    with open(folder / "weights.safetensors", "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    spec = json.loads(header["__metadata__"]["spec"])
    spec["task"]["train_examples"], spec["task"]["test_examples"] = EXAMPLES[task]
    spec["train"]["epochs"], spec["train"]["batch_size"] = EPOCHS, published(pe)[1]
    analysis = {"name": "head_ablation", "version": 2,
                "parameters": {"data": "test", "hygiene": "clean", "max_examples": 0,
                               "method": "zero", "target": "head"}}
    return {"job": f"{pe}-{task}", "spec": spec, "analyses": [analysis]}


def limits(options, spec, ceilings, precision):
    """(seconds of an epoch, seconds of the ablation) at the device's ceilings."""
    model, train, task = spec["model"], spec["train"], spec["task"]
    rate = "bf16" if precision == "bf16" else "tf32" if options.tf32 else "float32"
    listed = floor.passes(spec, train["batch_size"], task["length"],
                          2 if precision == "bf16" else 4, PARAMETERS)
    step = floor.seconds(listed, ceilings[f"{rate}_flops"], ceilings["copy_bytes_per_s"])["floor_s"]
    example = step / train["batch_size"]
    layers, heads = model["layers"], model["heads"]
    products = sum(into * out for _, into, out in floor.linears(spec))
    feed_forward = 2 * model["d_model"] * model["d_ff"] / products
    passes = 1 + heads * (layers - 1) / 2 + heads * feed_forward
    return (example * (task["train_examples"] + task["test_examples"] / 3),
            example / 3 * task["test_examples"] * passes)


def run_cell(options, pe, task, precision, ceilings):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        try:
            job = document(options, pe, task, precision, folder)
        except subprocess.CalledProcessError as error:
            return {"failed": error.stderr.strip()}
        (folder / "job.json").write_text(json.dumps(job))
        began = time.perf_counter()
        done = subprocess.run([options.build / "bin/pelab-trainer", "run",
                               "--spec", folder / "job.json", "--workdir", folder / "run",
                               "--device", options.device, "--threads", "1"], check=False,
                              capture_output=True, text=True)
        wall = time.perf_counter() - began
    events = [json.loads(line) for line in done.stdout.splitlines()]
    epochs = [event["seconds"] for event in events if event["event"] == "epoch"]
    ablation = sum(event["seconds"] for event in events if event["event"] == "head_ablation")
    if done.returncode != 0 or len(epochs) < EPOCHS:
        return {"failed": (done.stderr.strip().splitlines() or ["it ended early"])[-1]}
    epoch = statistics.mean(epochs[1:])
    # Starting, data, warm-up, storing weights.
    around = wall - sum(epochs) - ablation + max(0.0, epochs[0] - epoch)
    epoch_limit, ablation_limit = limits(options, job["spec"], ceilings, precision)
    return {"epoch_s": epoch, "ablation_s": ablation, "around_s": around,
            "epoch_limit_s": epoch_limit, "ablation_limit_s": ablation_limit,
            "job_s": published(pe)[0] * epoch + ablation + around}


def share(cell, what):
    return 100 * cell[f"{what}_limit_s"] / cell[f"{what}_s"] if cell[f"{what}_s"] > 0 else 0


def measure_table(options, precision, ceilings):
    print(f"\nTable 1, {precision}, one job on the device at a time; jobs are extrapolated from "
          f"{EPOCHS - 1} epochs")
    cells = []
    for task in EXAMPLES:
        for pe in PES:
            cell = {"pe": pe, "task": task, **run_cell(options, pe, task, precision, ceilings)}
            cells.append(cell)
            print(f"  {task:9} {pe:9} "
                  + (f"failed: {cell['failed']}" if "failed" in cell else
                     f"epoch {cell['epoch_s']:7.2f} s ({share(cell, 'epoch'):3.0f} % of the "
                     f"limit)   ablation {cell['ablation_s']:6.2f} s "
                     f"({share(cell, 'ablation'):3.0f} %)   around {cell['around_s']:5.1f} s   "
                     f"job of {published(pe)[0]} epochs {cell['job_s'] / 60:6.1f} min"), flush=True)
    hours = SEEDS * sum(cell.get("job_s", 0) for cell in cells) / 3600
    whole = "" if all("job_s" in cell for cell in cells) else " (without the cells that failed)"
    print(f"  {len(cells)} cells x {SEEDS} seeds: {hours:.2f} hours{whole}")
    return {"precision": precision, "cells": cells, "hours": hours}
