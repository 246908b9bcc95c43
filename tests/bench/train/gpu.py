#!/usr/bin/env python3
"""A training step at paper size on a GPU, ours against PyTorch, in float32 and bf16.

PyTorch runs eager, with torch.compile and with FlexAttention.

    tests/bench/train/gpu.py build/gpu-bench          every encoding, then the cells of Table 1
    tests/bench/train/gpu.py build/gpu-bench --pe rope relative --batch 512 --rounds 5 --no-jobs

All sides start from the same weights, use the same batches and alternate, each in its own process.
Each result is the median of all steps. FlexAttention has no dropout of attention weights, so a side
without it ("no a.d.") is compared only with another side without it. The floor is that of floor.py,
with the rates that this device's copies and products reached in the same run; "of the floor" is
floor over step. In the steps' table, epochs and jobs are extrapolated from the step alone. Then
each cell of Table 1 trains three epochs (the first warms up) and its heads are ablated; from these,
14 cells of 5 seeds are extrapolated.

Exit status: 0 every bound is met, 1 a bound is missed or a side failed, 2 this host lacks
something."""

import argparse
import collections
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import floor
import whole_jobs
from steps import HERE, PES, PROTOCOLS, TASKS

PYTHON = os.environ.get("PELAB_TORCH_PYTHON", sys.executable)
EPOCH_EXAMPLES, JOB_EPOCHS = 70000, 100  # of the distance task
BIASED = ("relative", "alibi", "shaw")   # compared with FlexAttention
OF_COMPILE = {"relative": 0.65}          # bound as a share of torch.compile's step; 0.8 for others
OF_EAGER = 0.25                          # bf16: bound as a share of the eager float32 step
OF_FLOOR = 0.6

Side = collections.namedtuple("Side", "who precision attention_dropout")


def label(side):
    return f"{side.who} {side.precision}" + ("" if side.attention_dropout else ", no a.d.")


def sides(pe, peers, precisions):
    """The sides, in the order in which they alternate."""
    found = []
    for precision in precisions:
        found.append(Side("ours", precision, True))
        found += [Side(peer, precision, True)
                  for peer in ("eager", "compile", "compile-plain") if peer in peers]
        if "flex" in peers and pe in BIASED:
            found += [Side("ours", precision, False), Side("flex", precision, False)]
    return found


class Lacks(Exception):
    """Raised if this host lacks something; the text says what."""


def answer_of(command, seconds=None):
    """(the side's JSON, None) or (None, why it failed); in at most so many seconds."""
    try:
        done = subprocess.run([str(part) for part in command], check=False, capture_output=True,
                              text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return None, f"not done after {seconds} s (--side-seconds)"
    if done.returncode != 0:
        return None, (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
    return json.loads(done.stdout.strip().splitlines()[-1]), None


def require_gpu(build, device):
    trainer = build / "bin/pelab-trainer"
    for program in (trainer, build / "bench/train_bench"):
        if not program.exists():
            raise Lacks(f"{program} is not built")
    found, why = answer_of([trainer, "capabilities"])
    if found is None:
        raise Lacks(f"pelab-trainer does not start: {why}")
    if device not in found["devices"]:
        raise Lacks(f"pelab-trainer sees no {device}: LibTorch {found['libtorch']} "
                    f"{'has CUDA but finds no such GPU' if found['cuda'] else 'is a CPU build'}")
    seen = "import torch; print(int(torch.cuda.is_available()))"
    done = subprocess.run([PYTHON, "-c", seen], check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise Lacks(f"{PYTHON} has no torch; PELAB_TORCH_PYTHON names another")
    if done.stdout.strip() != "1":
        raise Lacks(f"the torch of {PYTHON} sees no GPU")
    return found


def our_command(options, pe, side):
    command = [options.build / "bench/train_bench", "--protocol", options.protocol, "--pe", pe,
               "--task", options.task, "--batch", options.batch, "--steps", options.steps,
               "--warm-up", options.warm_up, "--threads", "1",
               "--device", options.device, "--precision", side.precision]
    return (command + ([] if side.attention_dropout else ["--no-attention-dropout"])
            + (["--tf32"] if options.tf32 else []))


def peer_command(options, folder, side):
    how, _, written_out = side.who.partition("-")
    command = [PYTHON, HERE / "peer.py", folder, "--steps", options.steps,
               "--warm-up", options.warm_up, "--threads", "1",
               "--device", options.device, "--how", how, "--precision", side.precision]
    command += ["--attention", "plain"] if written_out else []
    return (command + ([] if side.attention_dropout else ["--no-attention-dropout"])
            + (["--tf32"] if options.tf32 else []))


def take_turns(options, pe):
    """{side: {"seconds", "peak_bytes"} or {"failed"}}, and the peers' description of the model."""
    measured, model = {}, None
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([str(part)
                               for part in our_command(options, pe, Side("ours", "float32", True))
                               + ["--dump", folder]], check=False, capture_output=True, text=True)
        if done.returncode != 0:
            return ({Side("ours", "float32", True): {"failed": f"--dump: {done.stderr.strip()}"}},
                    None)
        for _ in range(options.rounds):
            for side in sides(pe, options.peers, options.precision):
                into = measured.setdefault(side, {"seconds": [], "peak_bytes": 0})
                if "failed" in into:
                    continue
                command = (our_command(options, pe, side) if side.who == "ours"
                           else peer_command(options, folder, side))
                answer, why = answer_of(command, options.side_seconds)
                print(f"  {pe}: {label(side)}: "
                      + (why if answer is None
                         else f"{1000 * statistics.median(answer['seconds']):.2f} ms"),
                      file=sys.stderr, flush=True)
                if answer is None:
                    into["failed"] = why
                    continue
                into["seconds"] += answer["seconds"]
                into["peak_bytes"] = max(into["peak_bytes"], answer["peak_bytes"])
                into["parameters"] = answer["parameters"]
                if side.who != "ours":
                    into["difference"], model = (answer["difference"], {"spec": answer["spec"],
                                                                        "length": answer["length"]})
    return measured, model


def median(measured, side):
    found = measured.get(side, {})
    return (statistics.median(found["seconds"]) if found.get("seconds")
            and "failed" not in found else None)


def check(pe, measured, floors):
    """[(name, value or None, bound, met)]; a value is ours over the other's, or floor over ours."""
    found = []

    def compare(name, mine, other, bound):
        if mine in measured and other in measured:
            a, b = median(measured, mine), median(measured, other)
            ratio = a / b if a is not None and b is not None else None
            found.append((name, ratio, bound, ratio is not None and ratio <= bound))
    for precision in dict.fromkeys(side.precision for side in measured):
        ours = Side("ours", precision, True)
        for peer in ("compile", "compile-plain"):
            compare(f"{precision}: step over {peer}'s", ours, Side(peer, precision, True),
                    OF_COMPILE.get(pe, 0.8))
        compare(f"{precision}, no a.d.: step over flex's", Side("ours", precision, False),
                Side("flex", precision, False), OF_COMPILE.get(pe, 0.8))
        if precision == "bf16":
            compare("bf16: step over eager float32's", ours, Side("eager", "float32", True),
                    OF_EAGER)
        mine = median(measured, ours)
        share = floors[precision]["floor_s"] / mine if mine and floors else None
        found.append((f"{precision}: floor over step", share, OF_FLOOR,
                      share is not None and share >= OF_FLOOR))
    for side, what in measured.items():
        if "failed" in what:
            found.append((f"{label(side)} failed: {what['failed']}", None, None, False))
    if len({what["parameters"] for what in measured.values() if "parameters" in what}) > 1:
        found.append(("the sides do not train the same number of parameters", None, None, False))
    return found


def floors_of(options, model, ceilings, parameters):
    found = {}
    for precision in options.precision:
        rate = "bf16" if precision == "bf16" else "tf32" if options.tf32 else "float32"
        listed = floor.passes(model["spec"], options.batch, model["length"],
                              2 if precision == "bf16" else 4, parameters)
        found[precision] = {**floor.seconds(listed, ceilings[f"{rate}_flops"],
                                            ceilings["copy_bytes_per_s"]), "passes": listed}
    return found


def print_encoding(pe, options, measured, floors, checks):
    print(f"\n{pe}")
    for side, what in measured.items():
        took = median(measured, side)
        if took is None:
            print(f"  {label(side):28} failed: {what['failed']}")
            continue
        ours = median(measured, Side("ours", side.precision, side.attention_dropout))
        limit = floors.get(side.precision, {}).get("floor_s", 0)
        epoch = EPOCH_EXAMPLES / options.batch * took
        print(f"  {label(side):28} {1000 * took:9.2f} ms  ours/this "
              f"{ours / took if ours else float('nan'):5.2f}  of the floor "
              f"{100 * limit / took:4.0f} %  memory {what['peak_bytes'] / 1e9:6.2f} GB  "
              f"extrapolated: epoch {epoch:7.2f} s, job {JOB_EPOCHS * epoch / 60:7.1f} min")
    for precision, at in floors.items():
        print(f"  floor {precision:8} {1000 * at['floor_s']:7.2f} ms (pass by pass "
              f"{1000 * at['by_pass_s']:.2f} ms): {at['flop'] / 1e12:.3f} TFLOP, "
              f"{at['bytes'] / 1e9:.2f} GB")
    for name, value, bound, met in checks:
        shown = ("" if bound is None
                 else f" {'not measured' if value is None else f'{value:.2f}'} (asked: {bound})")
        print(f"  {'met    ' if met else 'NOT MET'} {name}{shown}", flush=True)


def print_ceilings(ceilings):
    print(f"{ceilings['device']}, PyTorch {ceilings['torch']}. Reached in this run: copies "
          f"{ceilings['copy_bytes_per_s'] / 1e12:.2f} TB/s, products float32 "
          f"{ceilings['float32_flops'] / 1e12:.1f}, TF32 {ceilings['tf32_flops'] / 1e12:.1f}, bf16 "
          f"{ceilings['bf16_flops'] / 1e12:.1f} TFLOP/s")


def measure_steps(options, ceilings, keep):
    """The rows of all encodings; keep(rows) is called after each."""
    rows, listed = [], False
    for pe in options.pe:
        measured, model = take_turns(options, pe)
        parameters = next((what["parameters"]
                           for what in measured.values() if "parameters" in what), 0)
        floors = floors_of(options, model, ceilings, parameters) if model else {}
        if floors and not listed:
            listed = True
            print("The passes of a step:\n" + floor.table(floors[options.precision[-1]]["passes"]))
        checks = check(pe, measured, floors)
        print_encoding(pe, options, measured, floors, checks)
        rows.append({"pe": pe, "sides": [{**side._asdict(), "median_s": median(measured, side),
                                          **what} for side, what in measured.items()],
                     "floor": floors, "checks": checks})
        keep(rows)
    return rows


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--pe", nargs="+", choices=PES, default=PES)
    parser.add_argument("--task", choices=TASKS, default="distance")
    parser.add_argument("--protocol", choices=PROTOCOLS, default="clean")
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--warm-up", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--precision", nargs="+", choices=("float32", "bf16"),
                        default=["float32", "bf16"])
    parser.add_argument("--peers", nargs="+", choices=("eager", "compile", "compile-plain", "flex"),
                        default=["eager", "compile", "flex"])
    parser.add_argument("--tf32", action="store_true",
                        help="float32 products in TF32, on every side")
    parser.add_argument("--no-steps", action="store_true", help="only the cells of Table 1")
    parser.add_argument("--no-jobs", action="store_true", help="without the cells of Table 1")
    parser.add_argument("--side-seconds", type=float, default=600,
                        help="the longest that one side may take, torch.compile's own work "
                             "included [default: 600]")
    parser.add_argument("--json", type=pathlib.Path,
                        help="where to keep the figures [default: BUILD/gpu-bench.json]")
    return parser.parse_args()


def main():
    options = parse()
    try:
        require_gpu(options.build, options.device)
        ceilings, why = answer_of([PYTHON, HERE / "peer.py",
                                   "--ceilings", "--device", options.device])
        if ceilings is None:
            raise Lacks(f"the device's ceilings could not be measured: {why}")
    except Lacks as lacks:
        print(f"gpu-bench: {lacks}", file=sys.stderr)
        return 2
    print_ceilings(ceilings)
    kept = {"ceilings": ceilings,
            "options": {name: str(value) for name, value in vars(options).items()}}
    into = options.json or options.build / "gpu-bench.json"

    def keep(**parts):
        kept.update(parts)
        into.write_text(json.dumps(kept, indent=1) + "\n")

    keep(steps=[], jobs=[])
    if not options.no_steps:
        measure_steps(options, ceilings, lambda rows: keep(steps=rows))
    for precision in [] if options.no_jobs else options.precision:
        table = whole_jobs.measure_table(options, precision, ceilings)
        keep(jobs=kept["jobs"] + [table])
    missed = [f"{row['pe']}: {name}" for row in kept["steps"]
              for name, _, _, met in row["checks"] if not met]
    missed += [f"{cell['pe']} {cell['task']}: {cell['failed']}" for table in kept["jobs"]
               for cell in table["cells"] if "failed" in cell]
    print("\n" + ("not met:\n  " + "\n  ".join(missed) if missed else "every bound is met"
                  if kept["steps"] else "no bound was measured"))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
