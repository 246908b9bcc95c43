"""The Python package's own arithmetic and grammar: compared with numpy and scipy, and tried on
input that people may write."""

import json
import math
import pathlib
import random
import sqlite3
import tempfile
import unittest
import warnings
from concurrent import futures

import grpc
import numpy as np
import pandas as pd
import scipy.stats

import pelab
from pelab import _build, _cells, _columns, _compare, _encoding, _statistics, _where
from pelab._jobs import JobRows, template_of
from pelab._remote import Coordinator
from pelab.errors import InvalidInput, NotFound, PelabError, Refused
from pelab.v1 import results_pb2


def job(job_id, seed, accuracy=0.5, pe="rope", task="distance", state="succeeded", trained=None,
        lr=0.001, protocol="clean", label=None, spec=None, error=None):
    spec = (spec or {"model": {"layers": 2, "dropout_sites": ["attention", "ffn"]},
                     "pe": {"name": pe, "form": "a b"}, "seed": seed,
                     "task": {"data_seed": seed, "name": task}, "train": {"lr": lr}})
    values = {name: 0 for name in _columns.JOBS} | {
        "job_id": job_id, "key": f"{job_id:064x}", "pe": pe, "pe_label": label or pe, "task": task,
        "protocol": protocol, "seed": seed, "state": state, "device": None,
        "test_accuracy": accuracy, "best_test_accuracy": accuracy,
        "train_accuracy": 0.0, "train_eval_accuracy": accuracy, "wall_seconds": 1.5, "error": error,
        "trained": state == "succeeded" if trained is None else trained,
        "spec_json": json.dumps(spec, separators=(",", ":"), sort_keys=True)}
    return tuple(values.values())


class Statistics(unittest.TestCase):
    def test_quantiles(self):
        for degrees in [1, 2, 3, 4, 5, 9, 30, 99, 1000]:
            for p in [0.975, 0.95, 0.5, 0.025, 0.005, 0.995]:
                self.assertAlmostEqual(scipy.stats.t.cdf(_statistics.t_quantile(p, degrees),
                                                         degrees), p, delta=1e-12)

    def test_paired_tests(self):
        draw = random.Random(11)
        for n in [2, 3, 5, 12]:
            a, b = ([draw.random() for _ in range(n)] for _ in range(2))
            expected = scipy.stats.ttest_rel(a, b)
            t, p = _statistics.paired_t([x - y for x, y in zip(a, b)])
            self.assertAlmostEqual(t, expected.statistic, delta=1e-9 * abs(expected.statistic))
            self.assertAlmostEqual(p, expected.pvalue, delta=1e-12)
        self.assertIsNone(_statistics.paired_t([0.5]))
        self.assertIsNone(_statistics.paired_t([0.5, 0.5]))
        for only_a, only_b in [(3, 9), (9, 3), (0, 5), (7, 7), (120, 90)]:
            self.assertAlmostEqual(_statistics.mcnemar_p(only_a, only_b),
                                   scipy.stats.binomtest(only_a, only_a + only_b).pvalue,
                                   delta=1e-12)
        self.assertEqual(_statistics.mcnemar_p(0, 0), 1)

    def test_random_seeds_with_ties_gaps_and_one_seed(self):
        draw = random.Random(7)
        for trial in range(60):
            jobs, expected = [], {}
            for pe in ["nope", "rope", "mla"]:
                values = []
                for seed in range(draw.choice([1, 2, 3, 5, 12])):
                    state = draw.choice(["succeeded"] * 6 + ["failed", "cancelled", "running",
                                                             "queued"])
                    accuracy = draw.choice([0.25, 0.5, draw.random(), draw.random() * 1e-9 + 0.9])
                    jobs.append(job(len(jobs) + 1, seed, accuracy, pe, state=state))
                    values.append((state, accuracy))
                expected[pe] = values
            frame = _cells.summary(JobRows(jobs), "test_accuracy", []).set_index("pe")
            self.assertEqual(len(frame), 3)
            for pe, values in expected.items():
                done = np.array([value for state, value in values if state == "succeeded"])
                row = frame.loc[pe]
                self.assertEqual(row["n"], len(done), trial)
                self.assertEqual(row["failed"], sum(state == "failed" for state, _ in values))
                self.assertEqual(row["cancelled"], sum(state == "cancelled" for state, _ in values))
                self.assertEqual(row["missing"],
                                 sum(state in ("running", "queued") for state, _ in values))
                self.assertEqual(row["complete"], len(done) == len(values))
                self.assertEqual(len(row["seeds"]), len(values))
                if len(done) == 0:
                    self.assertTrue(np.isnan(row["mean"]))
                    continue
                self.assertAlmostEqual(row["mean"], np.mean(done), delta=1e-12)
                if len(done) == 1:
                    self.assertTrue(np.isnan(row["half_width"]) and np.isnan(row["sd"]))
                    continue
                self.assertAlmostEqual(row["sd"], np.std(done, ddof=1), delta=1e-12)
                half = scipy.stats.t.ppf(0.975, len(done) - 1) * scipy.stats.sem(done)
                self.assertAlmostEqual(row["half_width"], half, delta=1e-9)
                self.assertAlmostEqual(row["low"], max(np.mean(done) - half, 0), delta=1e-9)
                self.assertAlmostEqual(row["high"], min(np.mean(done) + half, 1), delta=1e-9)


class Cells(unittest.TestCase):
    def test_what_tells_cells_apart_becomes_a_column(self):
        jobs = [job(1, 0), job(2, 1), job(3, 0, lr=0.01), job(4, 0, pe="nope")]
        frame = _cells.summary(JobRows(jobs), "test_accuracy", [])
        self.assertEqual(list(frame.columns[:3]), ["pe", "task", "train.lr"])
        self.assertEqual(list(frame["train.lr"]), [0.001, 0.01, 0.001])
        self.assertEqual([list(ids) for ids in frame["job_ids"]], [[1, 2], [3], [4]])

    def test_a_trained_job_that_adds_analyses_counts(self):
        frame = _cells.summary(JobRows([job(1, 0, state="queued", trained=True),
                                        job(2, 1, state="queued")]), "test_accuracy", [])
        self.assertEqual((frame["n"][0], frame["missing"][0]), (1, 1))

    def test_group_by(self):
        jobs = [job(1, 0), job(2, 1), job(3, 0, lr=0.01, pe="nope")]
        frame = _cells.summary(JobRows(jobs), "wall_seconds", ["seed", "train.lr"])
        self.assertEqual([list(row[:2]) for row in frame.values],
                         [[0, 0.001], [1, 0.001], [0, 0.01]])
        for bad in [{"metric": "speed", "by": []}, {"metric": "test_accuracy", "by": ["trian.lr"]}]:
            with self.assertRaises(InvalidInput):
                _cells.summary(JobRows(jobs), **bad)

    def test_metrics_that_are_worked_out(self):
        jobs = JobRows([job(1, 0), job(2, 1), job(3, 2)], fetch=fetch_for_where)
        frame = _cells.summary(jobs, "epochs_to(0.5)", [])
        self.assertEqual((frame["n"][0], frame["missing"][0], frame["not_reached"][0]), (2, 0, 1))
        self.assertTrue(np.isnan(frame["mean"][0]),
                        "a mean of the seeds that did well says nothing")
        self.assertEqual(_cells.summary(jobs.select([True, True, False]), "epochs_to(0.5)",
                                        [])["mean"][0], 0)
        self.assertEqual(_cells.summary(jobs, "generalisation_gap", [])["mean"][0], 0)
        with self.assertRaises(InvalidInput):
            _cells.summary(jobs, "gini", [])  # job 2 has two
        self.assertEqual(_cells.summary(jobs.select([True, False, True]), "gini", [])["mean"][0],
                         0.5)

    def test_no_jobs(self):
        frame = _cells.summary(JobRows([]), "test_accuracy", [])
        self.assertEqual((len(frame), list(frame.columns[:3])), (0, ["pe", "task", "metric"]))

    def test_templates(self):
        spec = '{"note":"\\"seed\\":3,","seed":3,"task":{"data_seed":3,"seeds":3}}'
        self.assertEqual(template_of(spec, 3),
                         '{"note":"\\"seed\\":3,","seed":\x1f,"task":{"data_seed":\x1f,"seeds":3}}')
        self.assertEqual(template_of(spec, 31), spec)


class Scores(unittest.TestCase):
    """The same cases as in tests/unit/core/results/ablation_scores_test.cc."""

    ZERO = '{"method":"zero","data":"test"}'

    def values(self, metric, *analyses):
        """The values of jobs 1 and 2; `analyses`: (job, name, rest of the result, parameters)."""
        head = '{"total":100,"intact_correct":80,"chance":0.125,'

        def fetch(what, job_ids):
            self.assertEqual((what, job_ids), ("analyses", [1, 2]))
            rows = [{"job_id": job_id, "name": name, "parameters_json": parameters,
                     "result_json": head + result + "}", "analysis_id": at}
                    for at, (job_id, name, result, parameters) in enumerate(analyses)]
            return [tuple(row.get(name) for name in _columns.ANALYSES) for row in rows]
        jobs = JobRows([job(1, 0), job(2, 1)], fetch)
        value = _cells.metric_of(jobs, metric)
        return [value(0), value(1)]

    def test_a_layer_and_heads_that_are_gone(self):
        layers = (1, "layer_ablation", '"correct":[20,83]', self.ZERO)
        self.assertEqual(self.values("layer_drop(0)", layers), [0.6, None])
        self.assertAlmostEqual(self.values("layer_drop(1)", layers)[0], -0.03)
        self.assertEqual(self.values("layer_drop(2)", layers), [None, None])
        newer = (1, "layer_ablation", '"correct":[70]', self.ZERO)
        self.assertEqual(self.values("layer_drop(0)", layers, newer), [0.1, None])
        near_chance = (1, "layer_ablation", '"correct":[70],"intact_correct":13', self.ZERO)
        self.assertEqual(self.values("layer_drop(0)", layers, near_chance), [None, None])
        greedy = (2, "cumulative_ablation", '"greedy":{"correct":[79,40]}', self.ZERO)
        self.assertEqual(self.values("greedy_accuracy(1)", layers, greedy), [None, 0.79])
        self.assertEqual(self.values("greedy_accuracy(3)", greedy), [None, None])

    def test_what_has_no_value(self):
        for result in ('"correct":[]', '"correct":{}', '"correct":"x"', '"correct":[null]',
                       '"chance":0.79,"correct":[1]', '"chance":"x","correct":[1]', '"total":0'):
            row = (1, "layer_ablation", result, self.ZERO)
            self.assertEqual(self.values("layer_drop(0)", row), [None, None], result)

    def test_refusals(self):
        row = (1, "layer_ablation", '"correct":[20]', self.ZERO)
        other = (2, "layer_ablation", '"correct":[20]', '{"method":"mean","data":"all"}')
        for metric, rows, words in (
                ("layer_drop(0)", [row, other], r"several kinds \(mean all; zero test\)"),
                ("greedy_accuracy(1)", [row], "no analysis cumulative_ablation yet"),
                ("layer_drop(01)", [row], r'unknown metric "layer_drop\(01\)"'),
                ("greedy_accuracy(0)", [row], "unknown metric")):
            with self.assertRaisesRegex(InvalidInput, words):
                self.values(metric, *rows)

    def test_intervals_of_shares(self):
        wide = _cells.interval_of([0.9, 1.0])
        self.assertEqual(_cells.within_bounds("greedy_accuracy(1)", wide).high, 1)
        self.assertGreater(_cells.within_bounds("layer_drop(0)", wide).high, 1)


def fetch_for_where(what, job_ids):
    """The curves of jobs 1 (0.5, 0.95) and 2 (0.5, 0.6). Job 1 has one head ablation, job 2 has
    two."""
    def row(columns, values):
        return tuple(values.get(name) for name in columns)
    if what == "curves":
        return [row(_columns.CURVES, {"job_id": job, "epoch": epoch, "test_accuracy": accuracy})
                for job, accuracies in {1: (0.5, 0.95), 2: (0.5, 0.6)}.items()
                for epoch, accuracy in enumerate(accuracies)]
    return [row(_columns.DEPOSITS, {"job_id": job, "layer": layer, "gini": gini})
            for job, layer, gini in [(1, None, 0.5), (1, 0, 0.1), (2, None, 0.5), (2, None, 0.1),
                                     (2, 0, 0.9)]]


class Comparing(unittest.TestCase):
    def test_a_metric_that_is_read_once_a_side(self):
        """The values that one side has read of its own jobs must not count as all values."""
        jobs = JobRows([job(1, 0), job(2, 0, pe="nope")], fetch=lambda what, ids: [
            row for row in fetch_for_where(what, ids) if row[0] in ids])
        a, b = (_where.select(jobs, None, {"pe": pe}) for pe in ("rope", "nope"))
        row = _compare.compare(a, b, ["pe"], "epochs_to(0.6)").iloc[0]
        self.assertEqual((row["n"], row["difference"], row["jobs_a"], row["jobs_b"]),
                         (1, 0, (1,), (2,)))
        self.assertTrue(np.isnan(row["p"]) and np.isnan(row["low"]))

    def test_an_interval_of_a_difference_stays_within_its_range(self):
        """By hand: 0.9 and -0.3 have the mean 0.3 and the standard error 0.6."""
        jobs = JobRows([job(1, 0, 0.95), job(2, 1, 0.2), job(3, 0, 0.05, pe="nope"),
                        job(4, 1, 0.5, pe="nope")])
        a, b = (_where.select(jobs, None, {"pe": pe}) for pe in ("rope", "nope"))
        row = _compare.compare(a, b, ["pe"], "test_accuracy").iloc[0]
        self.assertEqual((row["low"], row["high"]), (-1, 1))
        self.assertAlmostEqual(row["half_width"], 12.7062 * 0.6, delta=1e-4)
        self.assertAlmostEqual(row["t"], 0.5, delta=1e-12)

    def test_what_else_differs_is_said(self):
        jobs = JobRows([job(1, 0), job(2, 1), job(3, 0, pe="nope", lr=0.01),
                        job(4, 7, pe="nope", lr=0.01)])
        a, b = (_where.select(jobs, None, {"pe": pe}) for pe in ("rope", "nope"))
        frame = _compare.compare(a, b, ["pe"], "test_accuracy")
        self.assertEqual(frame["also_different"][0], ("train.lr: 0.001 against 0.01",))
        self.assertEqual(frame.attrs, {"also_different": ("train.lr: 0.001 against 0.01",),
                                       "unpaired_a": 1, "unpaired_b": 1})
        none = _compare.compare(a, b.select([False, False]), ["pe"], "test_accuracy")
        self.assertEqual((len(none), none.attrs["unpaired_a"]), (0, 2))


class Pages(unittest.TestCase):
    def test_pages_that_repeat_are_an_end(self):
        with Coordinator("unix:/nobody", grpc.insecure_channel("unix:/nobody")) as coordinator:
            answers = iter(["a", "b", "a", "b", "a"])
            pages = coordinator._pages(
                lambda request, **_: results_pb2.ListCurvesResponse(next=next(answers)),
                results_pb2.ListCurvesRequest(), 10)
            with self.assertRaises(PelabError) as raised:
                list(pages)
        self.assertIn("repeats the pages of its answer", str(raised.exception))


class Submitting(unittest.TestCase):
    def test_what_is_no_sweep_is_refused_with_a_sentence(self):
        with Coordinator("unix:/nobody", grpc.insecure_channel("unix:/nobody")) as coordinator:
            for wrong, shown in [("", "''"), (5, "5"), (b"x", "b'x'"), (None, "None"),
                                 ("a\0", "'a")]:
                with self.assertRaises(InvalidInput, msg=shown) as raised:
                    coordinator.submit(wrong)
                self.assertTrue(str(raised.exception).startswith(f"the sweep is {shown}"))
                self.assertIn("; it must be a path, the text of a document, or a mapping",
                              str(raised.exception))
                with self.assertRaises(InvalidInput, msg=shown) as raised:
                    coordinator.submit({"name": "a"}, own_files={"mine.pt": wrong})
                self.assertTrue(str(raised.exception).startswith(f"an own file is {shown}"))
            with self.assertRaises(NotFound) as raised:
                coordinator.submit("none.yaml")
            self.assertEqual(str(raised.exception),
                             "cannot read none.yaml: No such file or directory")


class Where(unittest.TestCase):
    jobs = JobRows([job(1, 0, 0.25), job(2, 1, 0.5, pe="nope"),
                    job(3, 2, None, pe="partial_rope", label="partial_rope(heads=1,2)",
                        state="failed", error='<b>\' OR 1=1 --')], fetch=fetch_for_where)

    def ids(self, where, **equals):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            ids = [row[0] for row in _where.select(self.jobs, where, equals).rows]
        self.said = [str(one.message) for one in said]
        self.assertEqual(bool(self.said), not ids)
        return ids

    def test_what_no_job_meets_is_said(self):
        for where, equals, said in (
                ("pe = mla", {}, "no job meets pe = mla; pe there: nope, partial_rope, rope"),
                (None, {"test_accuracy": 0.75},
                 "no job meets test_accuracy=0.75; test_accuracy there: 0.25, 0.5, none"),
                ("seed = 2 and train.lr > 1", {"pe": "rope"},
                 "no job meets seed = 2 and train.lr > 1 and pe='rope'; seed there: 0, 1, 2; "
                 "train.lr there: 0.001; pe there: nope, partial_rope, rope")):
            self.assertEqual(self.ids(where, **equals), [])
            self.assertEqual(self.said, [said])
        many = JobRows([job(i, i) for i in range(12)], fetch=fetch_for_where)
        with self.assertWarnsRegex(UserWarning, "seed there: 0, 1, 10, 11, .* 7 and 2 more$"):
            _where.select(many, "seed = 99", {})

    def test_conditions(self):
        for where, expected in {
            "pe=rope": [1], "pe!=rope": [2, 3], "pe=rope,seed=0": [1], "pe=rope or pe=nope": [1, 2],
            "not pe=rope": [2, 3], "seed in (0, 2)": [1, 3], "seed not in (0, 2)": [2],
            "pe in (rope,nope) and not seed=0": [2], "seed in (1..9)": [2, 3],
            "seed>=1 and (pe=nope or "
            "state=failed)": [2, 3], "pe ~ *rope": [1, 3], "pe~r?pe": [1], "pe ~ [n-r]ope": [1, 2],
            "pe ~ [^r]ope": [2], "pe !~ *rope": [2], "pe_label='*rope'": [],
            "device != cpu": [1, 2, 3], "device !~ c*": [1, 2, 3], "device ~ *": [],
            "test_accuracy<0.5": [1], "test_accuracy>=0.25": [1, 2], "test_accuracy!=0.25": [2, 3],
            "not test_accuracy<0.5": [2, 3], "train.lr=1e-3": [1, 2, 3], "train.lr > 0.001": [],
            "model.dropout_sites=ffn+attention": [1, 2, 3], "model.dropout_sites=[ffn]": [],
            "model.dropout_sites=[ffn, attention]": [1, 2, 3], "task.data_seed=1": [2],
            "pe_label=partial_rope(heads=1,2)": [3], "PE.NAME=rope or seed=9".lower(): [1],
            "trained=true": [1, 2], "error=\"<b>' OR 1=1 --\"": [3], "error='<b>'' OR 1=1 --'": [3],
            "pe.form = 'a b'": [1, 2, 3], "  ": [1, 2, 3], "seed=0 or seed=1 and pe=rope": [1],
            "SEED = 0".lower() + " AND NOT pe = nope": [1],
            "generalisation_gap = 0": [1, 2], "epochs_to(0.9) <= 1": [1], "epochs_to(0.9) <= 0": [],
            "epochs_to(0.5)=0": [1, 2], "not epochs_to(0.9)<5": [2, 3],
            "gini > 0.4": [1, 2], "gini<0.2": [2], "gini != 7": [1, 2],
        }.items():
            self.assertEqual(self.ids(where), expected, where)

    def test_keywords(self):
        self.assertEqual(self.ids(None, pe=["rope", "nope"], seed=range(1, 5)), [2])
        self.assertEqual(self.ids("seed<2", train__lr=0.001), [1, 2])
        self.assertEqual(self.ids(None, pe_label="*"), [])
        self.assertEqual(self.ids(None, model__dropout_sites=("attention", "ffn")), [1, 2, 3])
        self.assertEqual(self.ids(None, model__dropout_sites=["ffn", "ffn+attention"],
                                  trained=True), [1, 2])
        self.assertEqual(self.ids(None, model__dropout_sites=[("ffn",)]), [])

    def test_mistakes_are_said(self):
        for where, words in {
            "pee=rope": 'column 1: unknown field "pee" in a condition; did you mean '
                        'pe', "pe": 'expected after "pe" one of',
            "pe=": "a value", "(pe=rope": '"and", "or" or ")"', "pe=rope)": "the end",
            "pe=rope nope": 'column 9: unknown field "nope"', "pe<rope": "is not a number",
            "pe<3": "needs a number", "seed ~ 3": "needs a text", "seed in 3": "a list of values",
            "seed in (3": '"," or ")"', "pe='rope": "the quote is not closed", "and": "FIELD=VALUE",
            "=3": "FIELD=VALUE", "x'; DROP TABLE jobs; --=1": "unknown field",
            "epochs_to<3": "as in epochs_to(0.9)", "epochs_to(x)<3": "a number",
            "not " * 60 + "pe=rope": "more than 50 levels", "pe=" + "x" * 10_000: "at most 10000",
        }.items():
            with self.assertRaises(InvalidInput, msg=where) as raised:
                self.ids(where)
            self.assertIn(words, str(raised.exception))
        with self.assertRaises(InvalidInput):
            self.ids(None, pee="rope")
        with self.assertRaises(InvalidInput) as raised:
            self.ids(12)
        self.assertIn("where is 12; it must be a condition as text", str(raised.exception))


class Frames(unittest.TestCase):
    def test_types_do_not_depend_on_the_rows(self):
        kinds = {"int": "i", "Int": "I", "float": "f", "bool": "b", "Bool": "B", "text": "t",
                 "time": "m"}
        columns = {name: kind for kind, name in kinds.items()}
        full = _columns.frame([(1, 2, 0.5, True, 1, "x", 1_700_000_000_123),
                               (2, None, None, False, None, None, None)], columns)
        empty = _columns.frame([], columns)
        pd.testing.assert_series_equal(full.dtypes, empty.dtypes)
        self.assertEqual([str(kind) for kind in full.dtypes],
                         ["int64", "Int64", "float64", "bool", "boolean", "object",
                          "datetime64[ns, UTC]"])
        self.assertEqual(full["m"][0], pd.Timestamp("2023-11-14 22:13:20.123", tz="UTC"))
        self.assertTrue(pd.isna(full["m"][1]) and pd.isna(full["I"][1]) and full["t"][1] is None)


class Sheets(unittest.TestCase):
    """Claim sheets in a database that the package's own copy of the schema makes."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.path = self.folder / "sheets.db"
        with self.written() as db:
            db.executescript(_build.SCHEMA_SQL)
            db.execute(f"PRAGMA application_id = {_build.APPLICATION_ID}")
            db.execute(f"PRAGMA user_version = {_build.SCHEMA_VERSION}")

    def written(self):
        db = sqlite3.connect(self.path)
        self.addCleanup(db.close)
        db.execute("PRAGMA synchronous = OFF")
        return db

    def register(self, *sheets):
        with self.written() as db:
            db.executemany(
                "INSERT INTO sheets (sheet_id, name, sha256, document, file_name, sweep_document, "
                "first_seed, fresh_from, slots, owner, created_at) "
                "VALUES (?, ?, ?, 'x', 'a.yaml', 'y', 0, 0, 6, '', 1700000000123)",
                [(number, name, digits.ljust(64, "0")) for number, name, digits in sheets])

    def conclude(self, *claims):
        with self.written() as db:
            db.executemany("INSERT INTO sheet_claims VALUES (?, ?, ?, 'c', 'open', 'undecided', 3, "
                           "2, 1, ?, ?, ?, 'holds', 1, 2, 1, 0.5, NULL, NULL, NULL)", claims)

    def opened(self):
        source = pelab.open(self.path)
        self.addCleanup(source.close)
        return source

    def test_columns_are_those_of_the_views(self):
        with self.written() as db:
            for view, columns, without in [("v_sheets", _columns.SHEETS, ["document",
                                                                          "sweep_document"]),
                                           ("v_sheet_claims", _columns.SHEET_CLAIMS, [])]:
                names = [row[0] for row in db.execute(f"SELECT * FROM {view}").description]
                self.assertEqual(list(columns), [name for name in names if name not in without])

    def test_types_with_rows_and_without(self):
        empty = self.opened().sheets()
        self.register((1, "a", "aa"))
        self.assertEqual(len(empty), 0)
        sheets, none = self.opened().sheets(), self.opened().claims("a")
        pd.testing.assert_series_equal(sheets.dtypes, empty.dtypes)
        self.assertEqual(sheets["created_at"][0], pd.Timestamp(1700000000123, unit="ms", tz="UTC"))
        self.assertTrue(pd.isna(sheets["sweep_id"][0]))
        self.conclude((1, 1, 0, 0.5, -0.5, 1.0))
        claims = self.opened().claims("a")
        self.assertEqual((len(none), len(claims)), (0, 1))
        pd.testing.assert_series_equal(claims.dtypes, none.dtypes)
        self.assertEqual({str(claims[name].dtype) for name in _columns.CLAIMS if "e_" in name or
                          "threshold" in name}, {"float64"})

    def test_numbers_are_the_exponentials_of_the_logarithms(self):
        self.register((1, "a", "aa"))
        logs = [(0.0, -1e-300, 2.5), (690.0, -690.0, 709.78), (800.0, -800.0, math.inf)]
        self.conclude(*((1, 1, place, *row) for place, row in enumerate(logs)))
        frame = self.opened().claims(1)
        for name, place in [("holds", 0), ("fails", 1)]:
            self.assertEqual(list(frame[f"log_e_{name}"]), [row[place] for row in logs])
        self.assertEqual(list(frame["e_holds"]), [1, math.exp(690), math.inf])
        self.assertEqual(list(frame["e_fails"]), [1, math.exp(-690), 0])
        self.assertEqual(list(frame["threshold"]), [math.exp(2.5), math.exp(709.78), math.inf])

    def test_rounds(self):
        self.register((1, "a", "aa"), (2, "b", "bb"))
        self.conclude(*((1, number, place, number, place, 3.0)
                        for number in (10, 2, 1) for place in (1, 0)), (2, 11, 0, 0, 0, 0))
        source = self.opened()
        every = source.claims("a", rounds="all")
        self.assertEqual(list(zip(every["round"], every["position"])),
                         [(1, 0), (1, 1), (2, 0), (2, 1), (10, 0), (10, 1)])
        last = source.claims("a")
        pd.testing.assert_frame_equal(last, every.tail(2).reset_index(drop=True))
        with self.assertRaises(InvalidInput) as raised:
            source.claims("a", rounds="lsat")
        self.assertEqual(str(raised.exception),
                         'unknown rounds "lsat"; did you mean last? known: last, all')

    def test_a_name_a_number_or_digits(self):
        self.register((1, "a", "abcdef0"), (2, "2b", "abcdef1"), (3, "a", "0123456"),
                      (4, "1", "777777"), (5, "0123456", "d"), (12, "é'--", "e"))
        self.conclude(*((number, 1, 0, 0, 0, 0) for number in (1, 2, 3, 4, 5, 12)))
        source = self.opened()
        for name, number in [("a", 3), ("2b", 2), (1, 1), ("1", 1), ("4", 4), ("12", 12),
                             ("abcdef", 2), ("abcdef0", 1), ("0123456", 5), ("012345", 3),
                             ("777777", 4), ("é'--", 12), ("abcdef0".ljust(64, "0"), 1)]:
            self.assertEqual(list(source.claims(name)["sheet_id"]), [number], name)
        known = "known: é'--, 0123456, 1, a, 2b"
        for name, said in [("nobody", known), ("abcde", known), ("ABCDEF", known),
                           ("abcdef2", known), (99, known), ("", known), ("-1", "mean 1?"),
                           ("a' OR 1=1 --", known), ("9" * 30, known), ("a\0", "mean a?")]:
            with self.assertRaises(NotFound) as raised:
                source.claims(name)
            self.assertIn(f'no sheet "{name}";', str(raised.exception))
            self.assertIn(said, str(raised.exception))

    def test_a_file_of_an_older_schema(self):
        with self.written() as db:
            for view in ("v_sheets", "v_sheet_rounds", "v_sheet_claims"):
                db.execute(f"DROP VIEW {view}")
            db.execute(f"PRAGMA user_version = {_build.SCHEMA_VERSION - 1}")
        with self.assertRaises(Refused) as raised:
            pelab.open(self.path)
        self.assertIn("pelab db migrate migrates it", str(raised.exception))

    def test_a_coordinator_of_an_older_version(self):
        address = f"unix:{self.folder}/s"
        server = grpc.server(futures.ThreadPoolExecutor(1))
        server.add_insecure_port(address)
        server.start()
        self.addCleanup(server.stop, None)
        with pelab.connect(address) as coordinator:
            for ask in (coordinator.sheets, lambda: coordinator.claims("a")):
                with self.assertRaises(Refused) as raised:
                    ask()
                self.assertEqual(str(raised.exception),
                                 f"the coordinator at {address} does not know this request: it is "
                                 "of an older version")


class Declarations(unittest.TestCase):
    """What save_encoding writes of options and needs, and what it refuses."""

    def test_a_choice(self):
        form = pelab.choice("log", ["linear", "log"], "a form")
        self.assertEqual(_encoding._option_json("form", form),
                         {"name": "form", "type": "choice", "default": "log",
                          "choices": ["linear", "log"], "help": "a form"})
        for choices, said in (("linear", "write a list of names"), (5, "write a list of names"),
                              (["log"], "1 choices; allowed: 2 to 32"),
                              (["log", "log"], "a choice twice"),
                              ([f"c{i}" for i in range(33)], "33 choices"),
                              (["log", "Linear"], "a choice is 'Linear'"),
                              (["log", 2], "a choice is 2"), (["log", "nan"], "none of false, inf"),
                              (["a", "b"], "default 'log' is not one of a, b")):
            with self.subTest(choices=choices), self.assertRaises(InvalidInput) as raised:
                _encoding._option_json("form", pelab.choice("log", choices))
            self.assertIn(said, str(raised.exception))

    def test_needs(self):
        for name, need, declared in (
                ("model.mask", ["causal"], ["causal"]), ("model.heads", (4, 8), [4, 8]),
                ("train.lr", pelab.between(0, 0.1), {"min": 0, "max": 0.1}),
                ("model.final_norm", [True], [True])):
            self.assertEqual(_encoding._need_json(name, need), declared)
        for name, need, said in (
                ("model.head", [4], "did you mean model.heads?"), ("pe.base", [4], "needs names"),
                ("head_ablation.method", ["zero"], "allowed: a field of the model"),
                (5, [4], "needs names 5"), ("model.mask", "causal", "write a list of allowed"),
                ("model.mask", [], "write a list of allowed"), ("model.heads", 4, "write a list"),
                ("model.mask", ["causel"], "did you mean causal?"),
                ("model.heads", [None], "names None"), ("model.heads", [[4]], "names [4]"),
                ("model.heads", pelab.between(5, 4), "leaves no value"),
                ("model.heads", pelab.between(math.nan, 4), "leaves no value")):
            with self.subTest(need=need), self.assertRaises(InvalidInput) as raised:
                _encoding._need_json(name, need)
            self.assertIn(said, str(raised.exception))
        for low in ("1", None, True):
            with self.assertRaises(InvalidInput):
                pelab.between(low, 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
