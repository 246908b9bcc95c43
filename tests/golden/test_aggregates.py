"""Every aggregate that `pelab` prints against numpy and scipy, over databases with made-up results
in which seeds fail, are missing, tie and stand alone. The bootstrap's generator is written anew
here, from its description in core/base/random.h."""

import collections
import functools
import json
import math
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest

import numpy
import scipy.optimize
import scipy.stats

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pelab_harness import BIN  # noqa: E402

POPULATE = BIN.parent / "tests" / "pelab-populate"
SWEEPS = {
    "many": """\
name: many
pe: [nope, rope, alibi, {name: partial_rope, heads: [1, 2]}]
task: [distance, counting]
seed: 0..6
model: {d_model: 32, d_ff: 64, heads: 4, layers: 3, max_len: 128}
train: {epochs: 15}
""",
    "one": """\
name: one
pe: [nope, rope]
task: distance
seed: [3]
model: {d_model: 32, d_ff: 64, heads: 4, layers: 3, max_len: 128}
train: {epochs: 15}
""",
}
ROW_METRICS = {
    "test_accuracy": "test_accuracy", "best_test_accuracy": "best_test_accuracy",
    "train_accuracy": "train_accuracy",
    "train_eval_accuracy": "train_eval_accuracy",
    "generalisation_gap": "train_eval_accuracy - test_accuracy", "wall_seconds": "wall_seconds",
}
INDICES = ("max_drop", "top_share", "top_ratio", "gini", "effective_heads", "deposits")
MASK = (1 << 64) - 1


def mix64(value):
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB & MASK
    return value ^ (value >> 31)


def philox(counter, key):
    """Philox4x32-10 on arrays of counters: uint64 of shape [n, 4] with 32 bits each."""
    c = [counter[:, i].copy() for i in range(4)]
    k = list(key)
    low = numpy.uint64(0xFFFFFFFF)
    shift = numpy.uint64(32)
    for _ in range(10):
        p0 = numpy.uint64(0xD2511F53) * c[0]
        p1 = numpy.uint64(0xCD9E8D57) * c[2]
        c = [(p1 >> shift) ^ c[1] ^ numpy.uint64(k[0]), p1 & low,
             (p0 >> shift) ^ c[3] ^ numpy.uint64(k[1]), p0 & low]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


@functools.lru_cache
def draws(n, resamples=10000):
    """[resamples, n]: which of n values each draw takes. Draws that Lemire's method rejects are
    left to the slow path."""
    purpose = 0xCBF29CE484222325
    for c in b"bootstrap":
        purpose = (purpose ^ c) * 0x100000001B3 & MASK
    key = mix64(mix64(0x9E3779B97F4A7C15) ^ purpose)
    words = numpy.zeros((resamples, n + 8 + n % 2), dtype=numpy.uint64)
    for index in range(0, words.shape[1], 2):
        counter = numpy.zeros((resamples, 4), dtype=numpy.uint64)
        counter[:, 0] = index >> 1
        counter[:, 2] = numpy.arange(resamples)
        block = philox(counter, (key & 0xFFFFFFFF, key >> 32))
        words[:, index] = block[0]
        words[:, index + 1] = block[2]
    products = words * numpy.uint64(n)
    kept = (products & numpy.uint64(0xFFFFFFFF)) >= numpy.uint64(((1 << 32) - n) % n)
    out = numpy.zeros((resamples, n), dtype=int)
    for row in range(resamples):
        good = (products[row][kept[row]] >> numpy.uint64(32) if not kept[row].all()
                else products[row] >> numpy.uint64(32))
        out[row] = good[:n]
    return out


@functools.lru_cache
def t_quantile(p, degrees):
    """By the distribution function: scipy 1.10's ppf is itself off by some 1e-9."""
    return scipy.optimize.brentq(lambda t: scipy.stats.t.cdf(t, degrees) - p, 0, 1000, xtol=1e-14,
                                 rtol=1e-14)


def t_interval(values):
    half = t_quantile(0.975, len(values) - 1) * numpy.std(values, ddof=1) / math.sqrt(len(values))
    return numpy.mean(values) - half, numpy.mean(values) + half


def bootstrap_interval(values):
    means = numpy.sort(values)[draws(len(values))].mean(axis=1)
    return tuple(numpy.quantile(means, [0.025, 0.975]))


class Aggregates(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="pelab-aggregates-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.databases = {}
        for name, document in SWEEPS.items():
            path = cls.folder / f"{name}.db"
            (cls.folder / f"{name}.yaml").write_text(document)
            holes = ["--fail-every", "11", "--open-every", "9"] if name == "many" else []
            subprocess.run([POPULATE, cls.folder / f"{name}.yaml", "--db", path, *holes],
                           check=True, timeout=60)
            cls.databases[name] = path

    def pelab(self, name, *arguments):
        result = subprocess.run([BIN / "pelab", *arguments, "--db", self.databases[name],
                                 "--output", "json"], capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def query(self, name, sql, *parameters):
        connection = sqlite3.connect(f"file:{self.databases[name]}?mode=ro", uri=True)
        try:
            return connection.execute(sql, parameters).fetchall()
        finally:
            connection.close()

    def close(self, found, wanted, what):
        self.assertEqual(found is None, wanted is None, what)
        if wanted is not None:
            self.assertTrue(math.isclose(found, wanted, rel_tol=1e-9, abs_tol=1e-12),
                            f"{what}: {found}, not {wanted}")

    def values_of(self, name, metric):
        """job_id -> value, of succeeded jobs."""
        if metric in ROW_METRICS:
            sql = f"SELECT job_id, {ROW_METRICS[metric]} FROM v_jobs WHERE state = 'succeeded'"
        elif metric in INDICES:
            sql = (f"SELECT d.job_id, d.{metric} FROM v_deposits AS d JOIN v_jobs AS j USING "
                   "(job_id) WHERE d.layer IS NULL AND j.state = 'succeeded'")
        else:
            x = float(metric[len("epochs_to("):-1])
            sql = (
                "SELECT c.job_id, min(c.epoch) FROM v_curves AS c JOIN v_jobs AS j USING (job_id) "
                f"WHERE j.state = 'succeeded' AND c.test_accuracy >= {x} GROUP BY c.job_id")
        return {job: value for job, value in self.query(name, sql) if value is not None}

    def jobs_of(self, name, columns):
        groups = collections.defaultdict(list)
        for row in self.query(
                name, f"SELECT job_id, state, {', '.join(columns)} FROM v_jobs ORDER BY job_id"):
            groups[tuple(map(str, row[2:]))].append(row[:2])
        return groups

    def check_groups(self, name, metric, interval, columns):
        answer = self.pelab(name, "results", "--metric", metric, "--interval", interval,
                            "--group-by", ",".join(columns))
        values, jobs = self.values_of(name, metric), self.jobs_of(name, columns)
        self.assertEqual({tuple(group[column] for column in columns) for group in answer["groups"]},
                         set(jobs))
        for group in answer["groups"]:
            what = f"{name} {metric} {interval} {[group[column] for column in columns]}"
            mine = jobs[tuple(group[column] for column in columns)]
            done = numpy.array([values[job] for job, _ in mine if job in values])
            failed = sum(state in ("failed", "cancelled") for _, state in mine)
            lacking = len(mine) - len(done) - failed  # open jobs, and those that never got there
            ended = sum(job not in values and state == "succeeded" for job, state in mine)
            censored = ended if metric.startswith("epochs_to") else 0
            self.assertEqual((group["n"], group["failed"], group["missing"], group["not_reached"]),
                             (len(done), failed, lacking - censored, censored), what)
            if censored:
                self.assertEqual([group[name] for name in ("mean", "sd", "half_width", "low",
                                                           "high")], [None] * 5, what)
                continue
            self.close(group["mean"], numpy.mean(done) if len(done) else None, what)
            self.close(group["sd"], numpy.std(done, ddof=1) if len(done) > 1 else None, what)
            low, high = ((None, None) if len(done) < 2 else t_interval(done) if interval == "t"
                         else bootstrap_interval(done))
            if low is not None and metric.endswith("_accuracy"):
                low, high = max(low, 0), min(high, 1)
            self.close(group["low"], low, what)
            self.close(group["high"], high, what)

    def test_metrics_with_student_s_interval(self):
        for name in SWEEPS:
            for metric in [*ROW_METRICS, *INDICES, "epochs_to(0.3)", "epochs_to(0.999)"]:
                with self.subTest(metric):
                    self.check_groups(name, metric, "t", ("pe_label", "task"))

    def test_groups_by_anything(self):
        self.check_groups("many", "test_accuracy", "t", ("task",))
        self.check_groups("many", "train_accuracy", "t", ("seed", "task"))

    def test_bootstrap(self):
        for name in SWEEPS:
            for metric in ("test_accuracy", "gini"):
                self.check_groups(name, metric, "bootstrap", ("pe_label", "task"))

    def test_paired(self):
        tests = 0
        for metric in ("test_accuracy", "epochs_to(0.3)", "gini"):
            answer = self.pelab("many", "results", "--metric", metric, "--compare", "pe=rope",
                                "--with", "pe=alibi")
            values = self.values_of("many", metric)
            self.assertEqual({group["task"] for group in answer["groups"]},
                             {"distance", "counting"})
            for group in answer["groups"]:
                rows = self.query("many",
                                  "SELECT a.job_id, b.job_id, a.seed FROM v_jobs AS a JOIN v_jobs "
                                  "AS b ON a.seed = b.seed AND a.task = b.task WHERE a.pe = 'rope' "
                                  "AND b.pe = 'alibi' AND a.task = ? ORDER BY a.seed",
                                  group["task"])
                self.assertEqual([(p["job_a"], p["job_b"], p["seed"]) for p in group["pairs"]],
                                 rows)
                both = [(values[a], values[b]) for a, b, _ in rows if a in values and b in values]
                self.assertEqual(group["n"], len(both))
                if not both or group["not_reached"]:
                    self.assertIsNone(group["difference"])
                    continue
                a, b = (numpy.array(side) for side in zip(*both))
                self.assertLess(len(both), len(rows), "no pair lacks a side: nothing is tested")
                self.close(group["mean_a"], a.mean(), metric)
                self.close(group["mean_b"], b.mean(), metric)
                self.close(group["difference"], (a - b).mean(), metric)
                low, high = t_interval(a - b)
                if not metric.startswith("epochs_to"):
                    low, high = max(low, -1), min(high, 1)
                self.close(group["low"], low, metric)
                self.close(group["high"], high, metric)
                if numpy.ptp(a - b) == 0:
                    self.assertIsNone(group["p"])
                    continue
                wanted = scipy.stats.ttest_rel(a, b)
                self.close(group["t"], wanted.statistic, metric)
                self.close(group["p"], wanted.pvalue, metric)
                tests += 1
        self.assertGreater(tests, 3)

    def test_pairs_of_one_seed_have_no_test(self):
        (group,) = self.pelab("one", "results", "--compare", "pe=rope",
                              "--with", "pe=nope")["groups"]
        self.assertEqual((group["n"], group["low"], group["t"], group["p"]), (1, None, None, None))

    def test_deposit_indices_from_their_matrices(self):
        """Gini and effective heads of every stored matrix, from the drops alone."""
        checked = 0
        for analysis, stored_gini, stored_heads in self.query(
                "many", "SELECT analysis_id, gini, effective_heads FROM v_deposits WHERE layer IS "
                        "NULL"):
            rows = self.query("many",
                              "SELECT accuracy_drop, lost, gained, total FROM v_head_ablation "
                              "WHERE analysis_id = ? AND accuracy_drop IS NOT NULL", analysis)
            drops = []
            for _, lost, gained, total in rows:
                mean = (lost - gained) / total
                error = math.sqrt(((lost + gained) / total - mean * mean) / total)
                drops.append(mean if mean > 3 * error else 0)
            if stored_gini is None:
                continue
            drops = numpy.sort(drops)
            ranks = numpy.arange(1, len(drops) + 1)
            gini = (2 * (ranks * drops).sum() / drops.sum() - (len(drops) + 1)) / len(drops)
            shares = drops / drops.sum()
            self.close(stored_gini, gini, f"analysis {analysis}")
            self.close(stored_heads, 1 / (shares**2).sum(), f"analysis {analysis}")
            checked += 1
        self.assertGreater(checked, 20)


if __name__ == "__main__":
    unittest.main(verbosity=2)
