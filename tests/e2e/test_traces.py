"""Traces from the command to the trainer: files of spans (--trace-file) and ids in JSON logs."""

import json
import os
import pathlib
import re
import signal
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from fake_slurm import FakeSlurm  # noqa: E402
from pelab_harness import BIN, Case, tiny_sweep, wait_until  # noqa: E402

TRACE = "0af7651916cd43dd8448eb211c80319c"
OUTER = "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{OUTER}-01"
# Keeps what the trainer's environment says, then runs the real one.
TRAINER = """\
#!/bin/sh
echo "$TRACEPARENT" >> %s
exec %s "$@"
"""


def spans(path):
    """The spans of a file, each with `service` and the values of its attributes."""
    found = []
    if not path.exists():
        return found
    for line in path.read_text().splitlines():
        for resource in json.loads(line)["resourceSpans"]:
            about = {a["key"]: a["value"] for a in resource["resource"]["attributes"]}
            for scope in resource["scopeSpans"]:
                for span in scope["spans"]:
                    span["service"] = about["service.name"]["stringValue"]
                    span["values"] = {a["key"]: next(iter(a["value"].values()))
                                      for a in span["attributes"]}
                    found.append(span)
    return found


def seconds(span):
    return (int(span["endTimeUnixNano"]) - int(span["startTimeUnixNano"])) / 1e9


QUEUES = """\
[queue.cpu]
time_limit = "4h"
max_allocations = 1
device = "cpu"
worker = []
workdir = "/tmp"
"""


class TraceTest(Case):
    def setUp(self):
        super().setUp()
        self.file = self.folder / "spans.jsonl"
        self.told = self.folder / "told"

    def trainer(self):
        path = self.write("trainer", TRAINER % (self.told, BIN / "pelab-trainer"))
        path.chmod(0o755)
        return path

    def named(self, name, service=None):
        return [span for span in spans(self.file)
                if span["name"] == name and service in (None, span["service"])]

    def assert_tree(self, roots):
        """Every span is below one of `roots`, and within the time of its parent's host clock."""
        all_spans = {span["spanId"]: span for span in spans(self.file)}
        self.assertEqual(len(all_spans), len(spans(self.file)), "two spans have one id")
        for span in all_spans.values():
            self.assertEqual(span["traceId"], TRACE, span)
            self.assertGreaterEqual(seconds(span), 0, span)
            parent = span.get("parentSpanId", "")
            self.assertTrue(parent in all_spans or parent in roots, span)

    def test_run(self):
        document = self.write("s.yaml", tiny_sweep(epochs=2, train_examples=128))
        result = self.run_sweep(document, "--trace-file", self.file, "--cpu-slots", "2",
                                env={"TRACEPARENT": TRACEPARENT})
        self.ok(result)
        self.assert_tree({OUTER})
        command = self.named("pelab run")[0]
        self.assertEqual(command["parentSpanId"], OUTER)
        attempts = self.named("attempt", "pelab-server")
        self.assertEqual(len(attempts), 4)
        submit = self.named("Sweeps/Submit", "pelab-server")[0]
        on_worker = {span["parentSpanId"]: span for span in self.named("attempt on worker")}
        for attempt in attempts:
            self.assertEqual(attempt["parentSpanId"], submit["spanId"])
            self.assertEqual(attempt["values"]["pelab.outcome"], "succeeded")
            here = on_worker[attempt["spanId"]]
            parts = [span["name"] for span in sorted(
                (s for s in spans(self.file) if s.get("parentSpanId") == here["spanId"]),
                key=lambda s: int(s["startTimeUnixNano"]))]
            self.assertEqual(parts, ["fetch", "start trainer", "train", "analysis", "upload"])
        stored = dict(self.query("SELECT span_id, trace_id FROM v_attempts"))
        self.assertEqual(stored, {span["spanId"]: TRACE for span in attempts})
        self.assertEqual(self.query("SELECT trace_id FROM v_sweeps"), [(TRACE,)])

    def test_logs_and_trainer(self):
        self.server("--trace-file", self.file, "--log-format", "json")
        self.worker("w", 1, "--trainer", self.trainer(), "--trace-file", self.file,
                    "--log-format", "json")
        document = self.write("s.yaml", tiny_sweep(epochs=1, seeds="0", pes="nope"))
        self.ok(self.pelab("submit", document, env={"TRACEPARENT": TRACEPARENT}))
        self.wait_finished(1)
        wait_until(lambda: self.named("attempt on worker"), 30, "the worker's span")
        span = self.named("attempt on worker")[0]
        told = [line for line in self.told.read_text().splitlines() if line]
        self.assertEqual(told, [f"00-{TRACE}-{span['spanId']}-01"])
        lines = [json.loads(line) for line in self.logs().splitlines() if line.startswith("{")]
        submitted = [line for line in lines if "was submitted" in line["message"]]
        self.assertEqual([(line["sweep_id"], line["trace_id"]) for line in submitted],
                         [(1, TRACE)])
        started = [line for line in lines if ", trainer " in line["message"]]
        self.assertEqual([(line["sweep_id"], line["job_id"], line["attempt_id"], line["trace_id"])
                          for line in started], [(1, 1, 1, TRACE)])
        worker_id = self.query("SELECT worker_id FROM v_workers")[0][0]
        self.assertEqual(started[0]["worker_id"], worker_id)
        self.assertEqual(started[0]["span_id"], span["parentSpanId"])
        sweep = self.json("status", "tiny")
        self.assertIn(TRACE, json.dumps(sweep))

    def test_allocations(self):
        """pelab-scale: the trace of an allocation, from sbatch to the coordinator and a worker."""
        self.server("--trace-file", self.file)
        self.write("queues.toml", QUEUES)
        self.ok(self.pelab("alloc", "add", self.folder / "queues.toml"))
        self.submit(tiny_sweep(epochs=400, seeds="0", pes="nope"))
        slurm = FakeSlurm(self.folder / "slurm")
        self.spawn("pelab-scale", "--server", self.socket, "--interval", "100ms", "--look", "100ms",
                   "--trace-file", self.file, env={**slurm.env, "TRACEPARENT": TRACEPARENT})
        wait_until(slurm.scripts, 20, "an allocation")
        (allocation, script), = slurm.scripts().items()
        told, = re.findall(r"^export TRACEPARENT=(.*)$", script, re.MULTILINE)
        # Its worker, which Slurm does not start here, without the script's srun.
        worker = self.spawn("pelab-worker", "--server", self.socket, "--workdir", self.folder / "w",
                            "--name", f"pelab-cpu-{allocation}", "--cpu-slots", 1, "--log-format",
                            "json", env={"TRACEPARENT": told})
        slurm.set(allocation, "RUNNING")
        wait_until(lambda: self.named("starting"), 20, "its hello")
        # Nobody needs to be told about a worker that has no job and is gone.
        wait_until(lambda: self.query("SELECT count(*) FROM v_curves")[0][0] > 0, 60, "an epoch")
        worker.send_signal(signal.SIGKILL)
        slurm.set(allocation, "NODE_FAIL")
        wait_until(lambda: len(self.named("Allocations/WorkerGone")) == 2, 20, "its end, told")
        whole, = wait_until(lambda: self.named("allocation"), 20, "its span")
        self.assertEqual(whole["parentSpanId"], OUTER)
        self.assertEqual(told, f"00-{TRACE}-{whole['spanId']}-01")
        self.assertEqual(whole["status"]["message"], "NODE_FAIL")
        self.assertEqual(whole["values"]["pelab.queue"], "cpu")
        self.assertEqual(whole["values"]["pelab.allocation"], str(allocation))
        below = [span["name"] for span in spans(self.file)
                 if span.get("parentSpanId") == whole["spanId"]]
        self.assertLessEqual({"waiting", "starting", "running", "Allocations/ReportQueues",
                              "Allocations/WorkerGone"}, set(below))
        reports = [span["spanId"] for span in self.named("Allocations/ReportQueues", "pelab-scale")]
        self.assertLess(len(reports), 8, "only those with news")
        lines = [json.loads(line) for line in self.logs().splitlines() if line.startswith("{")]
        self.assertEqual({line["trace_id"] for line in lines if "attempt_id" not in line}, {TRACE})

    def test_kills(self):
        """A coordinator and a worker that are killed: the trace goes on with the next attempt."""
        server = self.server("--trace-file", self.file, lease_ms=2000)
        worker = self.worker("w", 1, "--trace-file", self.file)
        document = self.write("s.yaml", tiny_sweep(epochs=120, train_examples=128, seeds="0",
                                                   pes="nope"))
        self.ok(self.pelab("submit", document, env={"TRACEPARENT": TRACEPARENT}))
        wait_until(lambda: self.query("SELECT count(*) FROM v_curves")[0][0] > 2, 60, "epochs")
        server.send_signal(signal.SIGKILL)
        server.wait()
        worker.send_signal(signal.SIGKILL)
        worker.wait()
        self.server("--trace-file", self.file, lease_ms=2000)
        self.worker("w", 1, "--trace-file", self.file)
        self.wait_finished(1)
        wait_until(lambda: len(self.named("attempt")) == 2, 30, "the spans of both attempts")
        outcomes = [span["values"]["pelab.outcome"] for span in self.named("attempt")]
        self.assertEqual(outcomes[1], "succeeded")
        self.assertIn(outcomes[0], {"lost", "preempted"})
        self.assertEqual({span["traceId"] for span in self.named("attempt")}, {TRACE})
        self.assertEqual([span["traceId"] for span in self.named("attempt on worker")][-1], TRACE)

    def test_interrupt(self):
        """Ctrl-C of a command that also has a thread for spans ends it in order."""
        document = self.write("s.yaml", tiny_sweep(epochs=3000))
        run = self.spawn("pelab", "run", document, "--db", self.db, "--trace-file", self.file,
                         "--cpu-slots", "1")
        wait_until(lambda: "/12000 epochs" in self.logs(), 60, "the command to show its progress")
        wait_until(lambda: self.query("SELECT count(*) FROM v_curves")[0][0] > 0, 60, "an epoch")
        run.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(60), 130, self.logs())
        self.assertIn("go on with: pelab run", self.logs())
        self.assertEqual(self.named("pelab run")[0]["status"]["message"], "exit status 130")
        attempt = self.named("attempt on worker")[0]
        self.assertEqual(attempt["status"]["code"], 2)

    def test_bad_input(self):
        result = self.pelab("sweeps", "--trace-file", self.folder / "no" / "file")
        self.assertNotEqual(result.returncode, 0)
        self.assertRegex(result.stderr, r"^pelab: cannot open \S+/no/file: no such file")
        os.mkfifo(self.file)
        for program in ("pelab-server", "pelab-worker"):
            process = self.spawn(program, "--trace-file", self.file,
                                 *(["--server", "unix:/nowhere", "--workdir", self.folder / "w"]
                                   if program == "pelab-worker" else
                                   ["--db", self.folder / "x.db", "--listen",
                                    f"unix:{self.folder}/x"]), log=f"{program}.bad.log")
            self.assertNotEqual(process.wait(60), 0)
        self.assertEqual(self.logs().count("is a pipe, not a file of spans"), 2, self.logs())


if __name__ == "__main__":
    unittest.main(verbosity=2)
