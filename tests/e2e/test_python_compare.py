"""Comparisons, fields and mistakes in the Python package, checked against the command line's JSON.
The results are made up, with failed and missing seeds. Everything is read both from the file and
from a coordinator.

Needs grpc, pandas and protobuf. PYTHONPATH names the package."""

import json
import math
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pandas as pd

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pelab_harness import BIN, Case, tiny_sweep  # noqa: E402
from trained_case import RunCase  # noqa: E402

import pelab  # noqa: E402

POPULATE = BIN.parent / "tests" / "pelab-populate"
SMALL = """\
model: {d_model: 32, d_ff: 64, heads: 4, layers: 3, max_len: 128}
task: [distance, counting]
analyses: [head_ablation]
"""
SWEEPS = {
    "many": "protocol: [clean, published]\npe: [nope, rope, {name: partial_rope, select: list, "
            "head_list: [1, 2]}]\nseed: 0..4\ntrain: {epochs: 9}\n"
            "axes: {train.lr: [1e-4, 3e-4]}\n",
    "low": "protocol: clean\npe: [rope, mla]\nseed: [0, 2, 3]\ntrain: {epochs: 9, precision: "
           "bf16}\n",
    "other": "protocol: clean\npe: [relative]\n"
             "seed: 1..3\ntrain: {epochs: 9, batch_size: 64, lr: 1e-5}\n",
}
COMPARISONS = [
    ("many", "pe=rope and protocol=clean", "pe=nope and protocol=clean",
     ["test_accuracy", "epochs_to(0.4)", "wall_seconds"]),
    ("many", "train.lr=1e-4", "train.lr=3e-4", ["test_accuracy", "generalisation_gap"]),
    ("many", "protocol=clean", "protocol=published", ["test_accuracy"]),
    ("many", "pe_label ~ partial*", "pe=rope", ["best_test_accuracy"]),
    ("", "pe=relative", "pe=rope and train.precision=float32 and train.lr=1e-4 and protocol=clean",
     ["test_accuracy"]),
    ("", "train.precision=bf16 and pe=rope",
     "train.precision=float32 and pe=rope and train.lr=1e-4 and protocol=clean", ["test_accuracy"]),
    ("", "pe=mla", "pe=relative", ["test_accuracy"]),
    ("low", "pe=rope", "pe=mla", ["test_accuracy", "gini", "effective_heads"]),
    ("low", "pe=rope", "pe=nope", ["test_accuracy"]),
]


def close(test, left, right, what):
    """Checks that numbers are equal except for rounding by another order of operations. None and
    NaN are equal."""
    if right is None:
        test.assertTrue(pd.isna(left), what)
    else:
        test.assertTrue(math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-15),
                        f"{what}: {left} and {right}")


class Made(Case):
    """All tests read one database, and one changes a copy of it."""

    @classmethod
    def setUpClass(cls):
        made = cls.made = Case("server")
        made.setUp()
        cls.addClassCleanup(made.doCleanups)
        files = [made.write(f"{name}.yaml", f"name: {name}\n" + text + SMALL)
                 for name, text in SWEEPS.items()]
        subprocess.run([POPULATE, *files, "--db", made.db, "--fail-every", "11",
                        "--open-every", "9"], check=True)
        shutil.copy(made.db, made.folder / "copy.db")
        cls.serve(made)

    @staticmethod
    def serve(case):
        case.server(lease_ms=600_000)  # a long lease for the made-up worker, which never connects

    def setUp(self):
        super().setUp()
        self.own = self.db, self.socket
        self.db, self.socket = self.made.db, self.made.socket
        self.open_both()

    def open_both(self):
        self.file, self.coordinator = pelab.open(self.db), pelab.connect(self.socket)
        self.addCleanup(self.file.close)
        self.addCleanup(self.coordinator.close)

    def same(self, left, right):
        pd.testing.assert_frame_equal(left, right, check_exact=True)
        self.assertEqual(left.attrs, right.attrs)

    def both(self, call):
        """The frame from the file, after a check that the coordinator gives the same."""
        left, right = call(self.file), call(self.coordinator)
        self.same(left, right)
        return left

    def test_comparisons_are_those_of_the_command_line(self):
        groups, confounded, incomplete = self.compare_all()
        self.assertTrue(groups > 20 and confounded > 1 and incomplete > 5,
                        (groups, confounded, incomplete))
        self.db, self.socket = self.own
        shutil.copy(self.made.folder / "copy.db", self.db)
        self.serve(self)
        self.open_both()
        self.assertGreater(self.coordinator.cancel("many").jobs_cancelled, 0)
        self.compare_all()
        frame = self.file.compare("many", "train.lr=1e-4", "train.lr=3e-4")
        self.assertGreater(frame["cancelled"].sum(), 0)

    def compare_all(self):
        """Returns the numbers of groups, confounded comparisons and incomplete groups."""
        groups = confounded = incomplete = 0
        for sweep, a, b, metrics in COMPARISONS:
            for metric in metrics:
                frame = self.both(lambda source: source.compare(sweep or None, a, b, metric=metric))
                said = self.json("results", *([sweep] if sweep else []), "--compare", a,
                                 "--with", b, "--metric", metric)
                where = f"{sweep} {a} {b} {metric}"
                self.assertEqual(frame.attrs["also_different"], tuple(said["also_different"]),
                                 where)
                self.assertEqual(len(frame), len(said["groups"]), where)
                for row, group in zip(frame.to_dict("records"), said["groups"]):
                    self.compare_row(row, group, where)
                    self.assertEqual(row["also_different"], tuple(said["also_different"]))
                    incomplete += not row["complete"]
                groups += len(frame)
                confounded += bool(said["also_different"])
        return groups, confounded, incomplete

    def compare_row(self, row, group, where):
        for name, value in group.items():
            if name in ("pairs", "interval"):
                continue
            if isinstance(value, (int, float)) or value is None:
                close(self, row[name], value, f"{where} {name}")
            else:  # the command line identifies its groups by text
                self.assertEqual(str(row[name]) if isinstance(row[name], str)
                                 else json.dumps(row[name]).replace(", ", ","),
                                 value if isinstance(row[name], str)
                                 else json.dumps(json.loads(value)).replace(", ", ","),
                                 f"{where} {name}")
        pairs = group["pairs"]
        self.assertEqual((row["seeds"], row["jobs_a"], row["jobs_b"]),
                         tuple(tuple(pair[name] for pair in pairs)
                               for name in ("seed", "job_a", "job_b")), where)
        for mine, pair in zip(row["differences"], pairs):
            close(self, mine, pair["difference"], where)

    def test_comparisons_that_cannot_be(self):
        for a, b, words in [("pe=rope", "pe=rope or pe=nope", "is on both sides"),
                            ("pe=rope", "pe in (nope, partial_rope)", "of one side have"),
                            ("", "pe=rope", "expected FIELD=VALUE"),
                            ("pe=rope", "pe=nop", 'unknown pe "nop"; did you mean nope?')]:
            for source in (self.file, self.coordinator):
                with self.assertRaises(ValueError) as raised:
                    source.compare("many", a, b)
                self.assertIn(words, str(raised.exception))

    def test_fields_on_every_frame(self):
        names = ["train.lr", "model.layers", "model.final_norm", "model.dropout_sites",
                 "train.precision", "pe.head_list", "pe.base", "task.data_seed"]
        jobs = self.both(lambda source: source.results(fields=names)).set_index("job_id")
        specs = {job: json.loads(text) for job, text in jobs["spec_json"].items()}
        self.assertEqual([str(jobs[name].dtype) for name in names],
                         ["float64", "int64", "bool", "object", "object", "object", "float64",
                          "int64"])
        for job, spec in specs.items():
            row = jobs.loc[job]
            self.assertEqual((row["train.lr"], row["model.layers"], row["model.final_norm"],
                              row["task.data_seed"]),
                             (spec["train"]["lr"], 3, spec["model"]["final_norm"], row["seed"]))
            self.assertEqual(row["model.dropout_sites"], tuple(spec["model"]["dropout_sites"]))
            self.assertEqual(row["train.precision"], spec["train"].get("precision", "float32"))
            self.assertEqual(row["pe.head_list"],
                             tuple(spec["pe"]["head_list"]) if "head_list" in spec["pe"] else None)
            self.assertTrue(row["pe.base"] == spec["pe"].get("base")
                            or ("base" not in spec["pe"] and np.isnan(row["pe.base"])))
        self.assertEqual(set(jobs["train.precision"]), {"float32", "bf16"})
        self.assertEqual(set(jobs.loc[jobs["pe"] == "partial_rope", "pe.head_list"]), {(1, 2)})
        for what in ("curves", "ablations", "deposits", "analyses", "attempts", "artifacts"):
            frame = self.both(lambda source: getattr(source, what)("many", where="seed < 2",
                                                                   fields=[*names, "pe_label"]))
            plain = getattr(self.file, what)("many", where="seed < 2")
            self.same(frame[list(plain.columns)], plain)
            self.assertEqual(list(frame.columns[len(plain.columns):]), [*names, "pe_label"])
            self.assertTrue(len(frame) > 0 or what == "artifacts", what)
            for name in [*names, "pe_label"]:
                for job, value in zip(frame["job_id"], frame[name]):
                    expected = jobs.loc[job, name]
                    self.assertTrue(value == expected or (pd.isna(value) and pd.isna(expected)),
                                    f"{what} {name} of job {job}: {value!r}")

    def test_summaries_have_typed_fields(self):
        frame = self.both(lambda source: source.summary("many", fields=[
            "model.layers", "train.precision", "seed", "train.lr", "task.data_seed"]))
        self.assertEqual(set(frame["train.lr"]), {1e-4, 3e-4})
        self.assertEqual((str(frame["train.lr"].dtype), str(frame["model.layers"].dtype)),
                         ("float64", "int64"))
        self.assertEqual((set(frame["train.precision"]), set(frame["task.data_seed"])),
                         ({"float32"}, {"seed"}))
        self.assertTrue(frame["seed"].isna().all())  # the jobs of a group differ in it
        said = self.json("results", "many")["groups"]
        self.assertEqual([json.dumps(value) for value in frame["train.lr"]],
                         [group["train.lr"] for group in said])
        by = self.both(lambda source: source.summary(by=["train.precision", "model.final_norm",
                                                         "pe.head_list", "seed"]))
        self.assertEqual([str(by[name].dtype) for name in by.columns[:4]],
                         ["object", "bool", "object", "int64"])
        self.assertEqual(set(by["pe.head_list"]), {None, (1, 2)})
        # A spec without the field means its legacy value.
        self.assertEqual(set(self.both(lambda source: source.summary(
            where="pe=rope and protocol=clean and train.lr=1e-4"))["train.precision"]),
                         {"float32", "bf16"})
        self.assertEqual(
            set(self.both(lambda source: source.results(train__precision="float32"))["pe"]),
            {"nope", "rope", "partial_rope", "relative"})

    def test_unknown_values_are_mistakes(self):
        for call, words in [
            (lambda source: source.results(pe="rop"), 'unknown pe "rop"; did you mean rope? known: '
                                                      'nope, absolute'),
            (lambda source: source.summary(where="task=distanse"),
             'unknown task "distanse"; did you mean distance? known: distance, counting'),
            (lambda source: source.curves(where="not pe in (rope, nop)"), 'unknown pe "nop"; did '
                                                                          'you mean nope?'),
            (lambda source: source.deposits(protocol="publshed"),
             'unknown protocol "publshed"; did you mean published? known: clean, published'),
            (lambda source: source.analyses(where="state != suceeded"), 'unknown state "suceeded"; '
                                                                        'did you mean succeeded?'),
            (lambda source: source.results(state="fail"), 'unknown state "fail"; did you mean '
                                                          'failed? known: queued'),
            (lambda source: source.results(model__mask="casual"),
             'unknown model.mask "casual"; did you mean causal? known: causal, none'),
            (lambda source: source.results(model__final_norm="yes"),
             'condition on model.final_norm: "yes" is not true or false'),
            (lambda source: source.results(where="train.lr = fast"), 'condition on train.lr: '
                                                                     '"fast" is not a number'),
            (lambda source: source.results(model__dropout_sites=("fnn",)),
             "is not a list out of attention+output+ffn_inner+ffn"),
            (lambda source: source.results("mny"), 'no sweep "mny"; did you mean many? known: '
                                                   'other, low, many'),
            (lambda source: source.compare("lo", "pe=rope", "pe=nope"), 'no sweep "lo"; did you '
                                                                        'mean low?'),
            (lambda source: source.document("mny"), 'no sweep "mny"; did you mean many?'),
            (lambda source: source.curves(fields=["trian.lr"]), 'unknown field "trian.lr"; did you '
                                                                'mean train.lr?'),
            (lambda source: source.summary(by=["modl.layers"]), 'unknown field "modl.layers"; did '
                                                                'you mean model.layers?'),
            (lambda source: source.summary(metric="test_acuracy"), 'unknown metric "test_acuracy"; '
                                                                   'did you mean test_accuracy?'),
            (lambda source: source.curves(fields=["test_accuracy"]),
             'curves have a column "test_accuracy" of their own'),
        ]:
            said = []
            for source in (self.file, self.coordinator):
                with self.assertRaises(ValueError, msg=words) as raised:
                    call(source)
                said.append(str(raised.exception))
            self.assertEqual(said[0], said[1])
            self.assertIn(words, said[0])
        # A name in the catalog is not an error, even if no job has it.
        self.assertEqual(len(self.both(lambda source: source.results(pe="xpos"))), 0)
        self.assertEqual(
            len(self.both(lambda source: source.results(where="model.mask=none and pe=mla"))), 0)


class Judged(RunCase):
    SWEEP = (tiny_sweep(epochs=1, train_examples=128)
             + "analyses: [head_ablation, example_correctness]\n")

    def test_mcnemar_is_that_of_the_command_line(self):
        self.server()
        said = self.json("results", "tiny", "--compare", "pe=rope",
                         "--with", "pe=nope")["groups"][0]["pairs"]
        with pelab.open(self.db) as file:
            row = file.compare("tiny", "pe=rope", "pe=nope").iloc[0]
            self.assertEqual(len(file.compare("tiny", "seed=0 and pe=rope", "seed=1 and pe=rope")),
                             0)
        for name in ("only_a", "only_b"):
            self.assertEqual(row[name], tuple(pair["mcnemar"][name] for pair in said))
        self.assertGreater(sum(row["only_a"]) + sum(row["only_b"]), 0)
        for p, pair in zip(row["mcnemar_p"], said):
            close(self, p, pair["mcnemar"]["p"], "p")


if __name__ == "__main__":
    import unittest
    unittest.main(verbosity=2)
