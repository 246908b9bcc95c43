#!/usr/bin/env python3
"""Registers, spills and occupancy of the CUDA kernels, as ptxas counts them, against the table kept
in tests/gpu/resources.csv.

    tests/gpu/resources.py build/release             what the build compiled, against the table
    tests/gpu/resources.py build/release --update    compiles for each architecture (four minutes)
                                                     and writes the table

With the compiler that made the table, every figure must be the same; whoever changes a kernel runs
--update and reads the difference. With another compiler, no kernel may spill more than in the
table.

Columns: architecture, kernel, registers of a thread, bytes of spill stores and loads, bytes of the
stack frame, of static and of dynamic shared memory, threads of a block, and warps that all of these
let a multiprocessor hold, of 64. Only attention kernels have dynamic shared memory; the table has
what their launchers ask for without biases: at T = 128, or at 64 for those of up to 64 keys, and
at 256 for those that stream.

Exit status: 0 as in the table, 1 not, 2 this host lacks something."""

import argparse
import csv
import pathlib
import re
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
KERNELS = SOURCE / "worker/trainer/kernels"
TABLE = SOURCE / "tests/gpu/resources.csv"
ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
COLUMNS = ("architecture", "kernel", "registers", "spill_stores", "spill_loads", "stack", "shared",
           "dynamic", "threads", "warps")
# Threads of a block, by the kernel's name; those of the others are among their template arguments,
# or their launchers tell them (attention_launches.cc).
THREADS = {"SumRowsKernel": 1024,
           "ResidualNormForwardKernel": 256, "ResidualNormBackwardKernel": 256,
           "RmsNormForwardKernel": 256, "RmsNormBackwardKernel": 256,
           "RotaryHeadsForwardKernel": 256, "RotaryHeadsBackwardKernel": 256,
           "BlockSumsKernel": 1024, "BiasActivationForwardKernel": 256,
           "BiasActivationBackwardKernel": 256, "DropoutMaskKernel": 256, "AdamWKernel": 256,
           "CrossEntropyKernel": 128, "TallyKernel": 256}
REGISTERS, WARPS, BLOCKS = 65536, 64, 32  # of a multiprocessor of sm_80, sm_90 and sm_100
SHARED_BYTES = {"sm_80": 164 << 10, "sm_90": 228 << 10, "sm_100": 228 << 10}
RESERVED_BYTES = 1 << 10  # of shared memory, for each block
COMPILING = re.compile(r"Compiling entry function '(\w+)' for '(\w+)'")
FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers")
SHARED = re.compile(r"(\d+) bytes smem")


def threads_of(kernel):
    """Of a block: a number, or None for a kernel that is not known."""
    name, _, arguments = kernel.partition("<")
    numbers = [int(number) for number in re.findall(r"\d+", arguments)]
    if name in ("DropoutStepKernel", "CountScoredKernel"):
        return numbers[-1]
    return THREADS.get(name)


def warps_of(architecture, registers, threads, shared):
    """How many warps fit at once: registers are handed out by 256 to a warp."""
    warps = -(-threads // 32)
    of_a_warp = -(-registers * 32 // 256) * 256
    return warps * min(REGISTERS // of_a_warp // warps, WARPS // warps, BLOCKS,
                       SHARED_BYTES[architecture] // (shared + RESERVED_BYTES))


def launches(build):
    """{attention kernel: (threads, bytes of dynamic shared memory)}, as the launchers say."""
    program = build / "tests/attention_launches"
    if not program.exists():
        print(f"resources: {program} is not built", file=sys.stderr)
        sys.exit(2)
    told = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    return {kernel: (int(threads), int(size))
            for kernel, threads, size in (line.split(";") for line in told.splitlines())}


def parse(text):
    """The rows in what ptxas -v said."""
    rows, row = [], None
    for line in text.splitlines():
        if found := COMPILING.search(line):
            row = {"mangled": found[1], "architecture": found[2]}
        elif row is not None and (found := FRAME.search(line)):
            row.update(zip(("stack", "spill_stores", "spill_loads"), map(int, found.groups())))
        elif row is not None and (found := USED.search(line)):
            shared = SHARED.search(line)
            row.update(registers=int(found[1]), shared=int(shared[1]) if shared else 0)
            rows.append(row)
            row = None
    return rows


def short_name(name):
    """A kernel's name and template arguments, from what c++filt says."""
    short = re.sub(r"\(anonymous namespace\)::|pelab::(trainer::)?", "", name)
    return re.sub(r"\((int|bool)\)", "", short).removeprefix("void ").split("(")[0]


def named(rows, launched):
    """The rows with the kernels' names in place of their symbols, and their launches; sorted.

    launched: as launches() says.
    """
    names = subprocess.run(["c++filt"], input="\n".join(row.pop("mangled") for row in rows),
                           check=True, capture_output=True, text=True).stdout.splitlines()
    for row, name in zip(rows, names):
        row["kernel"] = short_name(name)
        row["threads"], row["dynamic"] = launched.get(row["kernel"],
                                                      (threads_of(row["kernel"]), 0))
        if row["threads"] is None:
            sys.exit(f"resources: {row['kernel']}: its threads are not in {__file__}")
        row["warps"] = warps_of(row["architecture"], row["registers"], row["threads"],
                                row["shared"] + row["dynamic"])
    return sorted(rows, key=lambda row: (ARCHITECTURES.index(row["architecture"]), row["kernel"]))


def built(build):
    """The rows of what the build compiled."""
    logs = sorted(build.glob("worker/trainer/kernels/**/*.cu.o.ptxas"))
    sources = sorted(KERNELS.glob("*/*.cu"))
    if len(logs) != len(sources):
        print(f"resources: {build} has {len(logs)} of {len(sources)} compiled kernel files; cmake "
              f"--build {build} --target pelab_trainer_kernels_cuda makes them", file=sys.stderr)
        sys.exit(2)
    rows = [row for log in logs for row in parse(log.read_text())]
    return named([row for row in rows if row["architecture"] in ARCHITECTURES], launches(build))


def compiled(nvcc, source, architecture, *options):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [nvcc, *options, "-std=c++17", "-O3", "-DNDEBUG", f"-I{SOURCE}",
             f"-arch={architecture}", "-Xptxas=-v", "-cubin", "-o", f"{folder}/kernels.cubin",
             source],
            check=True, capture_output=True, text=True)
    return parse(done.stderr)


def release(nvcc):
    said = subprocess.run([nvcc, "--version"], check=True, capture_output=True, text=True).stdout
    return re.search(r"V[\d.]+", said)[0]


def read_table():
    """(the compiler's release, rows)."""
    with open(TABLE, encoding="utf-8") as file:
        compiler = file.readline().removeprefix("# nvcc ").strip()
        return compiler, [{name: int(value) if value.isdigit() else value
                           for name, value in row.items()} for row in csv.DictReader(file)]


def write_table(compiler, rows):
    with open(TABLE, "w", encoding="utf-8", newline="") as file:
        file.write(f"# nvcc {compiler}\n")
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: row[name] for name in COLUMNS} for row in rows)


def differences(found, expected, same_compiler):
    """Sentences about kernels that are not as in the table."""
    kept = {(row["architecture"], row["kernel"]): row for row in expected}
    seen = {(row["architecture"], row["kernel"]) for row in found}
    told = [f"{kernel} ({architecture}) is in the table and not compiled"
            for architecture, kernel in kept
            if (architecture, kernel) not in seen and architecture in {key[0] for key in seen}]
    for row in found:
        name = f"{row['kernel']} ({row['architecture']})"
        before = kept.get((row["architecture"], row["kernel"]))
        if before is None:
            told.append(f"{name} is not in the table")
            continue
        changed = [column for column in COLUMNS if row[column] != before[column]]
        if not same_compiler:
            changed = [column for column in ("spill_stores", "spill_loads")
                       if row[column] > before[column]]
        told += [f"{name}: {column} {before[column]} in the table, now {row[column]}"
                 for column in changed]
    return told


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--nvcc", default="/usr/local/cuda/bin/nvcc")
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    compiler = release(options.nvcc)
    if options.update:
        rows = [row for architecture in ARCHITECTURES for source in sorted(KERNELS.glob("*/*.cu"))
                for row in compiled(options.nvcc, source, architecture)]
        write_table(compiler, named(rows, launches(options.build)))
        return 0
    found = built(options.build)
    maker, expected = read_table()
    told = differences(found, expected, maker == compiler)
    spilled = sum(row["spill_stores"] + row["spill_loads"] > 0 for row in found)
    print("\n".join(told) or f"{len(found)} kernels as in the table; {spilled} of them spill")
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main())
