#!/usr/bin/env python3
"""Small jobs on a GPU against the same jobs on the CPU: every encoding under both protocols, and
`positions`, which is rope on own data with a target at some positions of each sequence.

    tests/gpu/check_jobs.py build/gpu-day --json jobs.json

A job has two layers of four heads, width 64, sequences of 32 tokens and three epochs of 512
examples. Each is trained on the CPU in float32, and on the GPU in float32 with CUDA graphs, without
them, and in bf16. What is expected:

  graphs   with and without CUDA graphs every figure, and the weights, are the same to the bit
  again    a second run on the GPU has the bits of the first
  cpu      the losses of every epoch, and those without each head, are the CPU's but for rounding
           (float32: 2e-3 of the loss after three epochs; bf16: 0.05)
  forked   (the first job only) a trainer that loads LibTorch itself gives the same bits as one
           that is forked from one that has loaded it; all others are forked, as workers do
  dropout  the same elements are dropped: the losses agree with dropout on, which is the case in
           every job

Exit status: 0 everything holds, 1 something does not, 2 this host lacks something."""

import argparse
import concurrent.futures
import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile

import own_positions
from host import missing_device

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import catalog  # noqa: E402
from preloaded import Preloaded  # noqa: E402

PROTOCOLS = ("clean", "published")
POSITIONS = "positions"
EXAMPLES = {False: {"train": 512, "test": 256}, True: {"train": 64, "test": 16}}
MOST_APART = {"float32": 2e-3, "bf16": 0.05}  # relative difference of a loss from the CPU's
TIMES = {"seconds", "wall_seconds"}
FIGURES = ("epoch", "head_ablation")
ABLATION = {"name": "head_ablation", "version": 2,
            "parameters": {"data": "test", "hygiene": "clean", "max_examples": 0, "method": "zero",
                           "target": "head"}}


def job(build, pe, protocol, files, examples):
    """The job in float32."""
    by_position = pe == POSITIONS
    made = subprocess.run(
        [build / "bench/train_bench", "--small", "--protocol", protocol, "--pe",
         "rope" if by_position else pe, "--batch", "64", "--epochs", "3", "--print-job"],
        check=True, capture_output=True, text=True)
    found = json.loads(made.stdout)
    found["spec"]["task"].update({f"{name}_examples": some for name, some in examples.items()})
    if by_position:
        found["spec"]["task"] = own_positions.write(files, examples)
        del found["spec"]["model"]["readout"]  # each position has logits of its own
    if pe == "xpos":
        found["spec"]["model"]["mask"] = "causal"  # the only one that it allows
    found["analyses"] = [ABLATION]
    return found


def in_bf16(document):
    spec = document["spec"]
    return {**document, "spec": {**spec, "train": {**spec["train"], "precision": "bf16"}}}


def by_itself(command):
    return subprocess.run([str(word) for word in command], check=False, capture_output=True,
                          text=True)


def forked(command):
    return Preloaded.of(command[0]).run(command)


def run(build, document, files, device, *options, start=forked):
    """(the events without times, SHA-256 of the weights), or raises RuntimeError."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "job.json").write_text(json.dumps(document))
        done = start([build / "bin/pelab-trainer", "run", "--spec", folder / "job.json",
                      "--files", files, "--workdir", folder / "w", "--device", device, "--threads",
                      "1", *options])
        if done.returncode != 0:
            last = (done.stdout.strip().splitlines() or [""])[-1]
            raise RuntimeError(f"exit status {done.returncode} on {device}: {last} {done.stderr}")
        weights = hashlib.sha256((folder / "w/weights.safetensors").read_bytes()).hexdigest()
    events = [json.loads(line) for line in done.stdout.splitlines()]
    return [{name: value for name, value in event.items() if name not in TIMES}
            for event in events if event["event"] in FIGURES], weights


def losses(events):
    found = []
    for event in events:
        if event["event"] == "epoch":
            found += [event["train_loss"], event["test_loss"]]
        else:
            found += [event["intact_nll"]]
            found += [loss for layer in event["nll"] for loss in layer if loss is not None]
    return found


def apart(found, expected):
    pairs = list(zip(losses(found), losses(expected), strict=True))
    return max(abs(a - b) / max(abs(b), 1e-9) for a, b in pairs)


def check(build, files, device, pe, protocol, first, examples):
    """{what: (holds, figure)} of one encoding under one protocol."""
    try:
        exact = job(build, pe, protocol, files, examples)
        cpu = run(build, exact, files, "cpu")
        graphs = run(build, exact, files, device)
        again = run(build, exact, files, device)
        plain = run(build, exact, files, device, "--cuda-graphs", "off")
        short = run(build, in_bf16(exact), files, device)
        alone = run(build, exact, files, device, start=by_itself) if first else graphs
    except (RuntimeError, subprocess.CalledProcessError) as error:
        return {"failed": (False, str(error)[-600:])}
    far = {"float32": apart(graphs[0], cpu[0]), "bf16": apart(short[0], cpu[0])}
    return {"graphs": (graphs == plain, None), "again": (graphs == again, None),
            **({"forked": (graphs == alone, None)} if first else {}),
            **{f"cpu {way}": (of <= MOST_APART[way], of) for way, of in far.items()}}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--device", default="cuda:0")
    kinds = [*catalog.encodings(), POSITIONS]
    parser.add_argument("--pe", nargs="+", choices=kinds, default=kinds)
    parser.add_argument("--protocol", nargs="+", choices=PROTOCOLS, default=PROTOCOLS)
    parser.add_argument("--at-once", type=int, default=8, help="jobs at a time [default: 8]")
    parser.add_argument("--few", action="store_true",
                        help="an eighth of the examples or fewer, to try the script")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    if lacks := missing_device(options.build, options.device):
        print(f"check_jobs: {lacks}", file=sys.stderr)
        return 2
    cells = [(pe, protocol) for protocol in options.protocol for pe in options.pe]
    Preloaded.of(options.build / "bin/pelab-trainer")  # before there are threads
    with (concurrent.futures.ThreadPoolExecutor(options.at_once) as pool,
          tempfile.TemporaryDirectory() as files):
        found = list(pool.map(lambda cell: check(options.build, pathlib.Path(files),
                                                 options.device, *cell, first=cell is cells[0],
                                                 examples=EXAMPLES[options.few]),
                              cells))
    wrong = 0
    for (pe, protocol), results in zip(cells, found):
        shown = "  ".join(f"{what}: " + ("" if holds else "NOT ")
                          + ("the same" if figure is None else
                             f"{figure:.1e}" if isinstance(figure, float) else figure)
                          for what, (holds, figure) in results.items())
        wrong += sum(not holds for holds, _ in results.values())
        print(f"{protocol:9} {pe:12} {shown}")
    if options.json:
        options.json.write_text(json.dumps(
            [{"pe": pe, "protocol": protocol,
              "checks": {what: {"holds": holds, "figure": figure}
                         for what, (holds, figure) in results.items()}}
             for (pe, protocol), results in zip(cells, found)], indent=1) + "\n")
    print(f"{len(cells)} cells: "
          + (f"{wrong} checks do not hold" if wrong else "every check holds"))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
