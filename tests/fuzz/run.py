#!/usr/bin/env python3
"""Runs fuzz targets with libFuzzer and prints what came of it. `make fuzz` builds them first.

    tests/fuzz/run.py [--build build/fuzz] [--seconds 600] [--jobs 2] [TARGET…]

Each target starts from its inputs in tests/fuzz/corpus and from those that earlier runs have found,
which are kept in build/fuzz-corpus. An input that breaks a target is kept in build/fuzz-findings,
and the target ends there. The exit status is 1 if any target broke."""

import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parents[1]
# The longest input that a target gets, in bytes.
LONGEST = {"document": 4096, "event": 4096, "http": 2048, "import": 4096, "json_text": 4096,
           "own": 8192, "request": 4096, "safetensors": 4096, "sheet": 4096, "spool": 4096,
           "trainer_line": 4096, "where": 1024}
# Seconds for one input. libFuzzer reports one that takes longer.
PATIENCE = 20
MEMORY_MB = 4096


@dataclass
class Result:
    target: str
    executions: int
    covered: int  # edges
    features: int
    broke: str  # the file with the input, or "exit status N"


def options(target: str, seconds: int, findings: pathlib.Path) -> list[str]:
    dictionary = HERE / "dictionaries" / f"{target}.dict"
    return [f"-max_total_time={seconds}", f"-max_len={LONGEST[target]}", f"-timeout={PATIENCE}",
            f"-report_slow_units={PATIENCE}",
            f"-rss_limit_mb={MEMORY_MB}", "-print_final_stats=1", "-close_fd_mask=1",
            f"-artifact_prefix={findings}/",
            *([f"-dict={dictionary}"] if dictionary.exists() else [])]


def run(target: str, arguments: argparse.Namespace, folder: str) -> Result:
    corpus = SOURCE / "build" / "fuzz-corpus" / target
    findings = SOURCE / "build" / "fuzz-findings" / target
    for path in (corpus, findings):
        path.mkdir(parents=True, exist_ok=True)
    before = set(findings.iterdir())
    log = findings.with_suffix(".log")
    environment = {**os.environ, "TMPDIR": folder, "UBSAN_OPTIONS": "print_stacktrace=1"}
    with log.open("wb") as out:
        status = subprocess.run(
            [arguments.build / "tests" / f"{target}_fuzz", corpus, HERE / "corpus" / target,
             *options(target, arguments.seconds, findings)],
            stdout=out, stderr=subprocess.STDOUT, env=environment, check=False).returncode
    text = log.read_text(errors="replace")
    coverage = re.findall(r"cov: (\d+) ft: (\d+)", text) or [("0", "0")]
    executions = re.findall(r"stat::number_of_executed_units: (\d+)", text) or \
        re.findall(r"^#(\d+)", text, re.MULTILINE) or ["0"]
    found = sorted(set(findings.iterdir()) - before)
    broke = str(found[0]) if found else f"exit status {status}" if status != 0 else ""
    return Result(target, int(executions[-1]), int(coverage[-1][0]), int(coverage[-1][1]), broke)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(LONGEST))
    parser.add_argument("--build", type=pathlib.Path, default=SOURCE / "build" / "fuzz")
    parser.add_argument("--seconds", type=int, default=600, help="for each target")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="targets at once")
    arguments = parser.parse_args()
    for target in arguments.targets:
        if target not in LONGEST:
            parser.error(f'unknown target "{target}"; known: {", ".join(LONGEST)}')
    # Databases of an input are written to memory where that is possible.
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="pelab-fuzz-", dir=memory) as folder, \
            concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        results = list(pool.map(lambda target: run(target, arguments, folder),
                                arguments.targets or LONGEST))
    print(f"{'target':<14}{'executions':>12}{'edges':>8}{'features':>10}  broken by")
    for result in results:
        print(f"{result.target:<14}{result.executions:>12,}{result.covered:>8,}"
              f"{result.features:>10,}  {result.broke or 'nothing'}")
    return 1 if any(result.broke for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
