"""Shared parts of the tests that settle claim sheets: small sheets, and what is stored of them."""

import json
import os
import pathlib
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import sheet_recount  # noqa: E402
from pelab_harness import BIN, Case, wait_until  # noqa: E402

# Jobs of 0.1 s. With a learning rate of 1000, weights grow until they are not finite.
SWEEP = """\
name: tiny
protocol: clean
pe: [nope, rope, alibi]
task: {name: distance, length: 16, vocabulary: 40, max_distance: 12, train_examples: 128,
       test_examples: 128}
seed: 0
model: {d_model: 16, d_ff: 32, heads: 2, layers: 2, max_len: 16, dropout: 0}
train: {epochs: 2, batch_size: 32, weight_decay: 1, schedule: constant, warmup_fraction: 0}
axes: {train.lr: [1e-3, 1000]}
exclude: [{pe: [rope, alibi], train.lr: 1000}]
analyses: [head_ablation]
"""


def cell(pe, lr="1e-3"):
    return f"pe={pe} train.lr={lr}"


def above(name, a, b, by=0, **more):
    return {"id": name, "above": {"metric": "test_accuracy", "a": a, "b": b, "by": by}, **more}


# Ten claims of all kinds. Most are decided by wide margins, so that few seeds are needed.
CLAIMS = [
    above("rope-learns", cell("rope"), cell("nope", "1000"), -0.5),
    above("alibi-learns", cell("alibi"), cell("nope", "1000"), -0.5),
    above("rope-clearly", cell("rope"), cell("nope"), 0.5),
    above("rope-slightly", cell("rope"), cell("nope")),
    {"id": "chain", "above": {"metric": "test_accuracy", "by": -0.6,
                              "chain": [cell("rope"), cell("alibi"), cell("nope")]}},
    {"id": "near", "near": {"metric": "test_accuracy", "a": cell("rope"), "b": cell("nope"),
                            "within": 0.9}},
    {"id": "band", "between": {"metric": "train_accuracy", "cell": cell("rope"), "low": 0,
                               "high": 0.8}},
    {"id": "band-above", "between": {"metric": "train_accuracy", "cell": cell("rope"),
                                     "low": 0.9, "high": 1}},
    {"id": "contrast", "contrast": {"metric": "test_accuracy", "by": -1.5, "of": [
        {"cell": cell("rope"), "weight": 1}, {"cell": cell("nope"), "weight": -1},
        {"cell": cell("alibi"), "weight": -1}, {"cell": cell("nope", "1000"), "weight": 1}]}},
    {"id": "deposit", "most": {"metric": "deposit", "cell": cell("rope"), "layers": "any"}},
]


# Ten claims about the sweep of `make demo`.
DEMO = pathlib.Path(__file__).resolve().parents[2] / "docs/sweeps/quick.yaml"
DEMO_CLAIMS = [
    above("rope-above-nope", "pe=rope", "pe=nope", where="task=distance"),
    above("rope-above-absolute", "pe=rope", "pe=absolute", where="task=distance"),
    above("best", "pe=rope", ["pe=nope", "pe=absolute"], where="task=distance"),
    {"id": "nope-below-half", "where": "task=distance", "contrast": {
        "metric": "test_accuracy", "of": [{"cell": "pe=rope", "weight": 0.5},
                                          {"cell": "pe=nope", "weight": -1}]}},
    {"id": "near", "where": "task=counting", "near": {
        "metric": "test_accuracy", "a": "pe=rope", "b": "pe=absolute", "within": 0.05}},
    {"id": "nope-counts", "where": "task=counting", "between": {
        "metric": "test_accuracy", "cell": "pe=nope", "low": 0.3, "high": 1}},
    {"id": "fast", "where": "task=distance", "above": {
        "metric": "epochs_to(0.5)", "a": "pe=nope", "b": "pe=rope"}},
    {"id": "worth", "where": "task=distance", "between": {
        "metric": "max_drop", "cell": "pe=rope", "low": 0.2, "high": 1}},
    {"id": "heads", "where": "task=distance", "above": {
        "metric": "max_drop", "a": "pe=rope", "b": "pe=absolute"}},
    {"id": "deposit", "where": "task=distance", "most": {
        "metric": "deposit", "cell": "pe=rope", "layers": "any"}},
]


class SettleCase(Case):
    document = SWEEP

    def setUp(self):
        super().setUp()
        self.write("tiny.yaml", self.document)

    def sheet(self, claims=None, name="tiny-claims", **settings):
        """Writes a sheet as JSON, which is YAML too."""
        # A high rate of false discoveries: few seeds decide.
        document = {"name": name, "sweep": "tiny.yaml", "max_seeds": 12,
                    "false_discovery_rate": 0.5, **settings,
                    "claims": CLAIMS if claims is None else claims}
        return self.write(f"{name}.yaml", json.dumps(document, indent=1))

    def command(self, sheet, *arguments, served=False):
        if "--slots" not in arguments:  # few rounds, so that trainers start less often
            arguments += ("--slots", 16)
        where = ["--server", self.socket] if served else ["--db", self.db]
        return [BIN / "pelab", *where, "settle", sheet, *map(str, arguments)]

    def settle(self, sheet, *arguments, served=False, timeout=240):
        own = [] if served else ["--cpu-slots", 2, "--threads-per-slot", 1]
        return subprocess.run(self.command(sheet, *own, *arguments, served=served),
                              cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=timeout)

    def begin(self, sheet, *arguments, served=False):
        """The same in the background; the process is ended with the test."""
        own = [] if served else ["--cpu-slots", 2, "--threads-per-slot", 1]
        return self.spawn("pelab", *self.command(sheet, *own, *arguments, served=served)[1:])

    def settled(self, db=None):
        """Everything that is stored of the rounds, without times."""
        rounds = self.query("SELECT sheet_id, round, first_seed, end_seed, cells_json, ended_at IS "
                            "NULL FROM v_sheet_rounds ORDER BY sheet_id, round", db=db)
        claims = self.query("SELECT * FROM v_sheet_claims ORDER BY sheet_id, round, position",
                            db=db)
        return rounds, claims

    def verdicts(self, sheet=1):
        return dict(self.query(
            "SELECT claim, verdict FROM v_sheet_claims WHERE sheet_id = ? AND round = (SELECT "
            "max(round) FROM v_sheet_claims WHERE sheet_id = ?)", sheet, sheet))

    def recount(self):
        problems, claims = sheet_recount.check(self.db)
        self.assertEqual(problems, [])
        self.assertGreater(claims, 0)

    def wait_round(self, number, timeout=60):
        wait_until(lambda: self.db.exists() and self.query(
            "SELECT name FROM sqlite_master WHERE name = 'v_sheet_rounds'") and self.query(
                "SELECT 1 FROM v_sheet_rounds WHERE round = ?", number), timeout,
                   f"round {number}")

    def interrupt(self, process):
        process.send_signal(signal.SIGINT)
        return process.wait(20)

    def kill(self, pid):
        os.kill(pid, signal.SIGKILL)
