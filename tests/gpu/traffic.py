#!/usr/bin/env python3
"""Bytes that the CUDA kernels move and FLOP that tensor cores do, counted under emulation on a
small problem, against the passes of tests/bench/train/floor.py and the table in traffic.csv.

    tests/gpu/traffic.py build/release             what the kernels move, against floor and table
    tests/gpu/traffic.py build/release --update    writes the table

A byte that a kernel reads or writes several times counts once, as in the floor: the memory of the
device moves at least that. Beside its pass a kernel moves parameters, keys of dropout and partial
sums, which do not grow with the batch, or grow by a row for every 64, and on tensor cores a bit for
each of attention's weights; `beside` counts them. A kernel that moves more, or fewer, bytes than
its pass and these is an error: either the kernel wastes something, or the floor asks for too much.

Columns: kernel, element, bytes read and written, the same summed over blocks (a byte that two
blocks read counts twice: what they ask of the caches that they share), and FLOP of tensor cores.

Exit status: 0 as it should be, 1 not, 2 the build lacks the program."""

import argparse
import csv
import pathlib
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/bench/train"))
import floor  # noqa: E402

TABLE = SOURCE / "tests/gpu/traffic.csv"
COLUMNS = ("kernel", "element", "read", "written", "read_by_blocks", "written_by_blocks",
           "tensor_flop")
BYTES = {"float32": 4, "bf16": 2}
KEYS = 8  # bytes of the keys of a dropout
# The passes of floor.py by the kernels that do them.
PASSES = {"norm forward": "bias, dropout, residual, norm: x, z to y, n",
          "norm backward": "… backward: dy, dn, y to dx, dz",
          "rms norm forward": "latents' norm",
          "rms norm backward": "… backward",
          "activation forward": "bias, activation: h to a",
          "activation backward": "… backward: h, da to dh",
          "AdamW": "AdamW: p, g, m, v to p, m, v, and g cleared"}
FORWARD = "attention: q, k, v to o"
BACKWARD = "attention: q, k, v, do to dq, dk, dv"


def count(build):
    """The problem's sizes and the rows of the table, from the program."""
    program = build / "tests/kernel_traffic"
    if not program.exists():
        print(f"traffic: {program} is not built", file=sys.stderr)
        sys.exit(2)
    first, *lines = subprocess.run([program], check=True, capture_output=True,
                                   text=True).stdout.splitlines()
    sizes = {name: int(value) for name, value in (part.split("=") for part in first.split(";"))}
    return sizes, [dict(zip(COLUMNS, (int(field) if field.isdigit() else field
                                      for field in line.split(";")))) for line in lines]


def spec(sizes, encoding, latent_norm=False):
    """As floor.py reads it; mla: the published one, with a rotary part as wide as a head."""
    pe = {"name": encoding}
    if encoding == "mla":
        pe.update(latent=sizes["width"] // 2, rotary=sizes["width"] // sizes["heads"],
                  rotary_query="per_head", latent_norm=latent_norm)
    return {"model": {"layers": 1, "d_model": sizes["width"], "heads": sizes["heads"],
                      "d_ff": sizes["inner"], "kv_source": "self"}, "pe": pe}


def rotary_pass(row, sizes):
    """Content and rotary channels to heads, or back. The floor has none for it, since products
    could write heads."""
    heads = sizes["heads"]
    width = sizes["width"] // heads  # of the content channels, and of the rotary ones
    channels = heads * 3 * width + (1 if "shared" in row["kernel"] else heads) * width
    return floor.Pass("rotary heads", 1, 0, sizes["batch"] * sizes["positions"] * channels
                      * BYTES[row["element"]])


def pass_of(row, sizes):
    """The pass that the kernel does, or None if there is none for it."""
    if row["kernel"].startswith("rotary heads"):
        return rotary_pass(row, sizes)
    encoding = row["kernel"].split()[0].rstrip(",")
    attention = encoding in ("rope", "mla")
    name = PASSES.get(row["kernel"])
    if attention:
        name = FORWARD if row["kernel"].endswith("forward") else BACKWARD
    if name is None:
        return None
    of_latents = encoding == "rms"
    of = spec(sizes, "mla" if of_latents else encoding if attention else "rope", of_latents)
    listed = floor.passes(of, sizes["batch"], sizes["positions"], BYTES[row["element"]],
                          sizes["parameters"])
    return next(each for each in listed if each.name == name)


def beside(row, sizes):
    """Bytes that the kernel moves and its pass does not count."""
    kernel, width, heads = row["kernel"], sizes["width"], sizes["heads"]
    blocks = sizes["batch"] * sizes["positions"] // sizes["block_rows"]
    if kernel == "norm forward":
        return 3 * 4 * width + KEYS  # bias, gamma, beta
    if kernel == "norm backward":
        return 4 * width + KEYS + blocks * 3 * 4 * width  # gamma; three partial sums
    if kernel.startswith("rotary heads"):
        return 4 * sizes["positions"] * width // heads  # the rotations
    if kernel.startswith("rms norm"):  # gamma, the rows' sizes, partial sums
        return (4 * (width + sizes["batch"] * sizes["positions"])
                + (blocks * 4 * width if kernel.endswith("backward") else 0))
    if kernel == "activation forward":
        return 4 * sizes["inner"] + KEYS
    if kernel == "activation backward":
        return 4 * sizes["inner"] + KEYS + blocks * 4 * sizes["inner"]
    if kernel == "AdamW":
        return 12 + 8  # the rates of a step, and its number
    found = KEYS
    if kernel.startswith("rope"):
        rotations = 4 * sizes["positions"] * width // heads
        found += 3 * 4 * width + rotations
        if kernel.endswith("backward"):
            found += sizes["batch"] * 3 * 4 * width  # a partial sum of each bias for a sequence
    if kernel.endswith("backward") and "tensor cores" not in kernel:
        found += sizes["batch"] * sizes["positions"] * width * BYTES[row["element"]]  # o
    if "tensor cores" in kernel:  # which weights dropout keeps
        found += sizes["batch"] * heads * sizes["positions"] ** 2 // 8
    return found


def against_floor(rows, sizes):
    """What is wrong, in sentences."""
    wrong = []
    for row in rows:
        one = pass_of(row, sizes)
        if one is None:
            continue
        moved, asked = row["read"] + row["written"], one.bytes + beside(row, sizes)
        if moved != asked:
            wrong.append(f"{row['kernel']} ({row['element']}) moves {moved:,} bytes; its pass and "
                         f"what goes with it are {asked:,}")
    return wrong


def against_table(rows):
    with TABLE.open(newline="", encoding="utf-8") as file:
        table = {(row["kernel"], row["element"]): row for row in csv.DictReader(file)}
    wrong = []
    for row in rows:
        old = table.pop((row["kernel"], row["element"]), None)
        if old is None:
            wrong.append(f"{row['kernel']} ({row['element']}) is not in the table")
            continue
        wrong += [f"{row['kernel']} ({row['element']}): {column} {int(old[column]):,} in the "
                  f"table, now {row[column]:,}"
                  for column in COLUMNS[2:] if int(old[column]) != row[column]]
    return wrong + [f"{kernel} ({element}) is in the table and not counted"
                    for kernel, element in table]


def write(rows):
    with TABLE.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def shown(rows, sizes):
    lines = [f"{'kernel':32} {'element':8} {'moved':>11} {'/ pass':>7} {'by blocks':>11} "
             f"{'tensor FLOP':>12} {'/ pass':>7}"]
    for row in rows:
        one = pass_of(row, sizes)
        moved = row["read"] + row["written"]
        line = f"{row['kernel']:32} {row['element']:8} {moved:11,} "
        line += f"{moved / one.bytes:7.2f} " if one else f"{'':8}"
        line += f"{row['read_by_blocks'] + row['written_by_blocks']:11,} "
        if row["tensor_flop"]:
            line += f"{row['tensor_flop']:12,} {row['tensor_flop'] / one.flop:7.2f}"
        lines.append(line.rstrip())
    return "\n".join(lines)


def report(sizes, rows):
    """Prints the table and what is wrong. Returns the exit status."""
    print(shown(rows, sizes))
    wrong = against_floor(rows, sizes) + against_table(rows)
    for line in wrong:
        print(f"traffic: {line}", file=sys.stderr)
    if not wrong:
        print(f"{len(rows)} kernels as in the table and the floor")
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--update", action="store_true", help="writes the table")
    options = parser.parse_args()
    sizes, rows = count(options.build)
    if options.update:
        write(rows)
    return report(sizes, rows)


if __name__ == "__main__":
    sys.exit(main())
