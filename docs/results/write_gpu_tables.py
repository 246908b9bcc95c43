#!/usr/bin/env python3
"""Writes the GPU tables of docs/benchmarks.md from the JSON files of docs/results/gpu.

    python3 docs/results/write_gpu_tables.py            # writes them
    python3 docs/results/write_gpu_tables.py --check    # exit 1 if they are old

The files are those that deploy/gpu-day.sh leaves: jobs.json (tests/gpu/check_jobs.py), steps*.json
(tests/bench/train/gpu.py) and profile.json (tests/gpu/profile.py)."""

import argparse
import collections
import json
import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parent / "gpu"
PAGE = FOLDER.parents[1] / "benchmarks.md"
SHOWN_KERNELS = 8


def read(name):
    return json.loads((FOLDER / name).read_text())


def jobs():
    """The largest difference from the CPU by precision, and what else was checked."""
    rows = [row for row in read("jobs.json") if "failed" not in row["checks"]]
    lines = ["| protocol | encodings | graphs and none, two runs | "
             "float32: loss apart from the CPU's | bf16 |", "|---|---|---|---|---|"]
    for protocol in dict.fromkeys(row["protocol"] for row in rows):
        of = [row["checks"] for row in rows if row["protocol"] == protocol]
        same = all(checks[what]["holds"] for checks in of for what in ("graphs", "again"))
        most = {way: max(checks[f"cpu {way}"]["figure"] for checks in of)
                for way in ("float32", "bf16")}
        lines.append(f"| {protocol} | {len(of)} | {'the same bits' if same else 'NOT the same'} | "
                     f"{most['float32']:.1e} | {most['bf16']:.1e} |")
    return lines


def milliseconds(side):
    return None if side is None or side["median_s"] is None else 1000 * side["median_s"]


def steps():
    """A line for each encoding and precision, beside what PyTorch took if it was measured."""
    files = [json.loads(path.read_text()) for path in sorted(FOLDER.glob("steps*.json"))]
    whos = [who for who in ("eager", "compile", "flex")
            if any(side["who"] == who for file in files for row in file["steps"]
                   for side in row["sides"])]
    lines = ["| encoding | precision | step | memory | the floor | floor / step |"
             + "".join(f" {who} | ratio |" for who in whos),
             "|---|---|---:|---:|---:|---:|" + "---:|---:|" * len(whos)]
    for file in files:
        for row in file["steps"]:
            of = collections.defaultdict(dict)
            for side in row["sides"]:
                if side["attention_dropout"]:
                    of[side["precision"]][side["who"]] = side
            for precision, by in of.items():
                ours, floor = milliseconds(by["ours"]), 1000 * row["floor"][precision]["floor_s"]
                line = (f"| {row['pe']} | {precision} | {ours:.1f} ms | "
                        f"{by['ours']['peak_bytes'] / 1e9:.1f} GB | {floor:.1f} ms | "
                        f"{100 * floor / ours:.0f} % |")
                for who in whos:
                    theirs = milliseconds(by.get(who))
                    line += f" {theirs:.1f} ms | {ours / theirs:.2f} |" if theirs else " | |"
                lines.append(line)
    return lines


def short(kernel):
    """A kernel of pelab with its template arguments; another without."""
    name = kernel.split(">")[0] + ">" if "Kernel<" in kernel else kernel.split("<")[0]
    return name[:60]


def profile():
    lines = ["| encoding, precision | kernel | ms a step | launches | share |",
             "|---|---|---:|---:|---:|"]
    for side in read("profile.json"):
        whole = side.get("step_ms") or sum(row[1] for row in side["kernels"])
        took, launches = collections.Counter(), collections.Counter()
        for name, milliseconds_, count in side["kernels"]:
            took[short(name)] += milliseconds_
            launches[short(name)] += count
        for name, of in took.most_common(SHOWN_KERNELS):
            lines.append(f"| {side['pe']}, {side['precision']} | `{name}` | {of:.2f} | "
                         f"{launches[name]:.0f} | {100 * of / whole:.0f} % |")
    return lines


def replaced(page, name, lines):
    begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->"
    if begin not in page or end not in page:
        sys.exit(f"{PAGE}: no {begin.strip()} … {end}")
    before, rest = page.split(begin, 1)
    return before + begin + "\n" + "\n".join(lines) + "\n\n" + end + rest.split(end, 1)[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    page = old = PAGE.read_text()
    for name, lines in (("gpu-jobs", jobs()), ("gpu-steps", steps()), ("gpu-profile", profile())):
        page = replaced(page, name, lines)
    if options.check:
        return 0 if page == old else 1
    PAGE.write_text(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
