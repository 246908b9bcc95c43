#!/usr/bin/env python3
"""The instructions of the CUDA kernels in machine code, counted by kind, and what must be there.

    tests/gpu/sass.py build/gpu-day
    tests/gpu/sass.py build/gpu-day --architecture sm_80 --json sass.json

Tensor cores (HMMA, HGMMA) are expected in the attention kernels for them and nowhere else; loads of
16 bytes (LDG.E.128; of 8 bytes for four bf16) where rows are read in vectors. Local memory (LDL,
STL) is spills and arrays with an index that the compiler does not know. Counts are of instructions
in the code, not of executions. Needs cuobjdump, of the CUDA toolkit.

Exit status: 0 as expected, 1 not, 2 this host lacks something."""

import argparse
import collections
import json
import pathlib
import re
import shutil
import subprocess
import sys

import resources

LIBRARY = "worker/trainer/kernels/libpelab_trainer_kernels_cuda.a"
KINDS = {  # in this order; the first that fits
    "tensor": r"HG?MMA|IMMA|QGMMA", "load16": r"LDG\.E.*\.128", "load8": r"LDG\.E.*\.64",
    "async": r"LDGSTS|UBLKCP", "load": r"LDG|LD\.E", "store16": r"STG\.E.*\.128",
    "store": r"STG|ST\.E", "shared16": r"LDS.*\.128|LDSM|STS.*\.128", "shared": r"LDS|STS",
    "local": r"LDL|STL",
    "special": r"MUFU", "float": r"FFMA|FADD|FMUL|FMNMX|FSETP|FSEL|HFMA2|HADD2|HMUL2|F2F",
    "integer": r"IMAD|IADD|LOP3|SHF|LEA|ISETP|PRMT|SEL|VIADD|IABS", "shuffle": r"SHFL|REDUX",
    "atomic": r"ATOM|RED\b", "barrier": r"BAR|BSYNC|BSSY|WARPSYNC"}
# (kernels, kind, whether it must be there)
EXPECTED = ((r"^(Tensor|Streamed)Attention", "tensor", True),
            (r"^(?!TensorAttention|StreamedAttention)", "tensor", False),
            (r"^AdamWKernel<4>", "load16", True),
            (r"^ResidualNorm\w+Kernel<float, 4", "load16", True),
            (r"^ResidualNorm\w+Kernel<Bf16, 8", "load16", True),
            (r"^RmsNorm\w+Kernel<(float, 4|Bf16, 8)", "load16", True),
            (r"^RotaryHeads\w+Kernel<(float, 4|Bf16, 8)", "load16", True),
            (r"^BiasActivation\w+Kernel<float, 4", "load16", True),
            (r"^BiasActivation\w+Kernel<Bf16, 8", "load16", True),
            (r"^AttentionForwardKernel<float", "load16", True),
            (r"^(Tensor|Streamed)Attention\w+<16|^ResidualNorm\w+Kernel<(Bf16, 8, 1|float, 4, 2)>|"
             r"^RmsNorm\w+Kernel<(Bf16, 8, 1|float, 4, 2)>|^RotaryHeads|^BiasActivation|^AdamW",
             "local", False))  # those of the paper's size
INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+ )?([A-Z][\w.]*)")


def kind_of(word):
    return next((kind for kind, pattern in KINDS.items() if re.match(pattern, word)), "other")


def count(text):
    """{symbol: Counter of kinds}"""
    found, now = {}, None
    for line in text.splitlines():
        if function := re.match(r"\s*Function : (\w+)", line):
            now = found.setdefault(function[1], collections.Counter())
        elif now is not None and (word := INSTRUCTION.match(line)):
            now[kind_of(word[1])] += 1
    return found


def named(found):
    names = subprocess.run(["c++filt"], input="\n".join(found), check=True, capture_output=True,
                           text=True).stdout.splitlines()
    return {resources.short_name(name): counts for name, counts in zip(names, found.values())}


def unexpected(found):
    """Sentences about kernels that lack an instruction, or have one that is not expected."""
    return [f"{kernel}: {'no' if must else counts[kind]} {kind} instructions"
            for kernel, counts in found.items() for pattern, kind, must in EXPECTED
            if re.search(pattern, kernel) and (counts[kind] > 0) != must]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--architecture", default="sm_90")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    library = options.build / LIBRARY
    for lacks in ([] if shutil.which("cuobjdump") else ["no cuobjdump"]) + (
            [] if library.exists() else [f"no {library}"]):
        print(f"sass: {lacks} here", file=sys.stderr)
        return 2
    text = subprocess.run(["cuobjdump", "--dump-sass", "--gpu-architecture", options.architecture,
                           str(library)], check=True, capture_output=True, text=True).stdout
    found = named(count(text))
    if not found:
        print(f"sass: {library} has no code for {options.architecture}", file=sys.stderr)
        return 2
    print("kernel".ljust(46) + "".join(kind.rjust(9) for kind in [*KINDS, "other"]))
    for kernel in sorted(found):
        print(kernel[:45].ljust(46)
              + "".join(str(found[kernel][kind]).rjust(9) for kind in [*KINDS, "other"]))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    told = unexpected(found)
    print("\n".join(told) or f"{len(found)} kernels, each with the instructions that are expected")
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main())
