#!/usr/bin/env python3
"""Jobs per hour of a sweep of small jobs on this machine's CPU, against a PyTorch script.

`pelab run` is compared with a script that trains one job; two copies run at a time, as people do
it. Both sides have the same models, starting weights, examples and matrix library, in float32.

    tests/bench/train/jobs.py build/release
    tests/bench/train/jobs.py build/release --rounds 3 --json jobs.json

The sides alternate. Our time includes coordinator, worker and database, all records and making the
data; the script's data are made before its time starts. A third measurement runs our sweep with one
job at a time on as many threads. It shows that slots of one thread, a worker's default, use the
cores better. The mean final test accuracies are printed too, to show that both sides trained alike.
Exits 1 if we reach less than twice the jobs per hour. Needs the same as steps.py."""

import argparse
import concurrent.futures
import json
import pathlib
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

from steps import HERE, PYTHON, kernels, said

ASKED = 2.0
AT_ONCE = 2
SWEEP = """
name: small
protocol: clean
pe: [nope, absolute, alibi, rope]
task:
  - {name: distance, length: 32, vocabulary: 64, max_distance: 16,
     train_examples: 4000, test_examples: 1000}
  - {name: counting, length: 32, vocabulary: 64, triggers: 8,
     train_examples: 4000, test_examples: 1000}
seed: [0, 1]
model: {layers: 2, heads: 4, d_model: 64, d_ff: 128, max_len: 32}
train: {epochs: 4, batch_size: 64, lr: 1e-3}
analyses: []
"""


def run_ours(build, folder, environment, slots=AT_ONCE, threads=1):
    """(seconds, jobs, mean accuracy, their specs)."""
    sweep, database = folder / "small.yaml", folder / f"ours-{slots}x{threads}.db"
    sweep.write_text(SWEEP)
    began = time.perf_counter()
    subprocess.run([build / "bin/pelab", "run", sweep, "--db", database, "--cpu-slots", str(slots),
                    "--threads-per-slot", str(threads)], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, env=environment)
    seconds = time.perf_counter() - began
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as db:
        rows = db.execute("SELECT test_accuracy, spec_json FROM v_jobs WHERE state = 'succeeded' "
                          "ORDER BY job_id").fetchall()
    if not rows:
        sys.exit("pelab run has trained no job")
    return seconds, len(rows), statistics.mean(row[0] for row in rows), [row[1] for row in rows]


def dump(build, folder, specs, environment):
    """Writes the input of the script, one folder per job."""
    folders = []
    for number, spec in enumerate(specs):
        job = folder / f"job-{number}"
        job.mkdir()
        (job / "job.json").write_text(json.dumps({"job": str(number), "spec": json.loads(spec),
                                                  "analyses": []}))
        subprocess.run([build / "bench/train_bench", "--spec", job / "job.json", "--dump", job],
                       check=True, env=environment)
        folders.append(job)
    return folders


def run_script(folders, environment):
    """(seconds, mean accuracy)."""
    began = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        answers = list(pool.map(lambda job: said([PYTHON, HERE / "peer.py", job, "--job",
                                                  "--threads", "1"], environment), folders))
    return (time.perf_counter() - began,
            statistics.mean(answer["test_accuracy"][-1] for answer in answers))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=pathlib.Path, help="write the figures here too")
    arguments = parser.parse_args()
    environment = kernels(arguments.build)
    ours, one_by_one, script, accuracies = [], [], [], []
    for _ in range(arguments.rounds):
        with tempfile.TemporaryDirectory() as folder:
            seconds, jobs, accuracy, specs = run_ours(arguments.build, pathlib.Path(folder),
                                                      environment)
            threaded_seconds, *_ = run_ours(arguments.build, pathlib.Path(folder), environment, 1,
                                            AT_ONCE)
            folders = dump(arguments.build, pathlib.Path(folder), specs, environment)
            script_seconds, script_accuracy = run_script(folders, environment)
        ours.append(3600 * jobs / seconds)
        one_by_one.append(3600 * jobs / threaded_seconds)
        script.append(3600 * jobs / script_seconds)
        accuracies.append((accuracy, script_accuracy))
        print(f"{jobs} jobs: pelab run {seconds:.1f} s (mean accuracy {accuracy:.4f}), one job at "
              f"a time {threaded_seconds:.1f} s, the script {script_seconds:.1f} s "
              f"({script_accuracy:.4f})", flush=True)
    ratio = statistics.median(ours) / statistics.median(script)
    print(f"jobs an hour, float32, median of {arguments.rounds}: pelab run "
          f"{statistics.median(ours):.0f}, the script {statistics.median(script):.0f}: {ratio:.2f} "
          f"times (asked: {ASKED}); "
          f"one job at a time on {AT_ONCE} threads {statistics.median(one_by_one):.0f}")
    if arguments.json:
        arguments.json.write_text(json.dumps(
            {"ours_per_hour": ours, "one_by_one_per_hour": one_by_one, "script_per_hour": script,
             "ratio": ratio, "mean_accuracies": accuracies}, indent=1) + "\n")
    return 0 if ratio >= ASKED else 1


if __name__ == "__main__":
    sys.exit(main())
