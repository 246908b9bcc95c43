"""`pelab claims`: verdicts on stored results, computed once more from the database in exact
arithmetic, and what a sheet that is wrong says. The sheets are JSON, which is YAML too."""

import collections
import csv
import fractions
import io
import itertools
import json
import math
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from made_up import POPULATE, made_up  # noqa: E402
from pelab_harness import BIN, SOURCE, Case  # noqa: E402

RATE = 0.05
SWEEP = """
name: made-up
protocol: [clean, published]
pe: [rope, nope, alibi, mla]
task: {name: distance, length: 16, vocabulary: 40, train_examples: 1000, test_examples: 500}
seed: 0..24
model: {d_model: 16, d_ff: 32, heads: 4, layers: 2, max_len: 16}
train: {epochs: 4}
analyses: [head_ablation]
"""
MOST = {"most": {"metric": "deposit", "cell": "pe=rope", "layers": "any"}, "each": ["protocol"]}
SHEET = {
    "name": "made-up-claims", "sweep": "made-up.yaml", "false_discovery_rate": RATE,
    "max_seeds": 25,
    "claims": [
        {"id": "above", "above": {"metric": "test_accuracy", "a": "pe=rope", "b": "pe=nope"},
         "each": "protocol"},
        {"id": "margin", "where": "protocol=clean",
         "above": {"metric": "best_test_accuracy", "a": "pe=alibi", "b": "pe=rope", "by": -0.02}},
        {"id": "chain", "where": "protocol=clean",
         "above": {"metric": "test_accuracy", "chain": ["pe=rope", {"pe": "alibi"}, "pe=nope"]}},
        {"id": "band", "where": "protocol=published",
         "between": {"metric": "train_accuracy", "cell": "pe=mla", "low": 0.1, "high": 0.99}},
        {"id": "near", "where": "protocol=clean",
         "near": {"metric": "test_accuracy", "a": "pe=rope", "b": "pe=alibi", "within": 0.005}},
        {"id": "contrast", "contrast": {"metric": "test_accuracy", "of": [
            {"cell": "pe=rope protocol=clean", "weight": 1},
            {"cell": "pe=nope protocol=clean", "weight": -1},
            {"cell": "pe=rope protocol=published", "weight": -1},
            {"cell": "pe=nope protocol=published", "weight": 1}]}},
        {"id": "deposit", **MOST}],
}


def e_value(k, n):
    """2^(n + 1) B(k + 1, n - k + 1) (1 - I_1/2(k + 1, n - k + 1)), as a sum of binomials."""
    return fractions.Fraction(sum(math.comb(n + 1, j) for j in range(k + 1)),
                              (n + 1) * math.comb(n, k))


def e_bh(values):
    """Whether each hypothesis is rejected: the largest k with e_(k) >= K / (q k)."""
    ordered = sorted(values, reverse=True)
    passing = [k for k in range(1, len(ordered) + 1)
               if ordered[k - 1] >= len(ordered) / (RATE * k)]
    limit = len(ordered) / (RATE * max(passing)) if passing else math.inf
    return [value >= limit for value in values]


def shortcut(task):
    """The best guess from the length or from the second trigger's place, over all sequences."""
    by_length, by_place = collections.defaultdict(collections.Counter), \
        collections.defaultdict(collections.Counter)
    if task["definition"] == "clean":
        for start in range(task["length"] - task["max_distance"]):
            for distance in range(1, task["max_distance"] + 1):
                by_place[start + distance][distance] += 1
    else:
        segments, gaps = range(1, task["max_segment"] + 1), range(1, task["max_gap"] + 1)
        for left, gap, right in itertools.product(segments, gaps, segments):
            by_place[left + gap + 1][gap] += 1
            by_length[min(left + gap + right + 2, task["truncate"])][gap] += 1
    return max(sum(max(counts.values()) for counts in by.values())
               / sum(sum(counts.values()) for counts in by.values())
               for by in (by_length, by_place) if by)


class Claims(Case):
    def setUp(self):
        super().setUp()
        self.write("made-up.yaml", SWEEP)

    def populate(self, *options):
        """Adds results to the database."""
        if not self.db.exists():
            document = (self.folder / "made-up.yaml").read_text()
            shutil.copy(made_up("made-up.yaml", document, *options), self.db)
            return
        subprocess.run([POPULATE, self.folder / "made-up.yaml", "--db", self.db, *options],
                       check=True, capture_output=True)

    def sheet(self, sheet, name="sheet.yaml"):
        return self.write(name, json.dumps(sheet))

    def shown(self, *options):
        found = json.loads(self.ok(self.pelab_db("claims", "show", self.sheet(SHEET), "--output",
                                                 "json", *options)).stdout)
        return {claim["id"]: claim for claim in found["claims"]}

    def values(self, metric):
        """{(pe, protocol): {seed: value}} from the database."""
        found = collections.defaultdict(dict)
        for pe, protocol, seed, value in sqlite3.connect(self.db).execute(
                f"SELECT pe, protocol, seed, {metric} FROM v_jobs WHERE state = 'succeeded'"):
            found[pe, protocol][seed] = value
        return found

    def deposits(self, protocol):
        """Of each seed of RoPE that is eligible: 1 with a deposit in some layer, 0 without one, NaN
        where the accuracy does not stand out from chance. From the ablation of the protocol."""
        connection = sqlite3.connect(self.db)
        found = []
        for number, (seed, job, spec, accuracy) in enumerate(connection.execute(
                "SELECT seed, job_id, spec_json, test_accuracy FROM v_jobs WHERE pe = 'rope' AND "
                "protocol = ? AND state = 'succeeded' ORDER BY seed", (protocol,))):
            if seed > number:
                break
            if not accuracy > shortcut(json.loads(spec)["task"]) + 0.1:
                continue
            hygiene, split = ("authors", "all") if protocol == "published" else ("clean", "test")
            analysis, correct, total, chance = connection.execute(
                "SELECT analysis_id, intact_correct, total, chance FROM v_head_ablation WHERE "
                "job_id = ? AND method = 'zero' AND hygiene = ? AND split = ?",
                (job, hygiene, split)).fetchone()
            right = correct / total
            stands_out = right - chance >= 5 * math.sqrt(right * (1 - right) / total)
            any_layer, = connection.execute(
                "SELECT max(deposit) FROM v_deposits WHERE analysis_id = ? AND layer IS NOT NULL",
                (analysis,)).fetchone()
            found.append(any_layer if stands_out else math.nan)
        return found

    def recounted(self):
        """{id: (holds, fails)}: of each claim the (k, n) of its sides, from the database."""
        test, best, train = map(self.values, ("test_accuracy", "best_test_accuracy",
                                              "train_accuracy"))

        def counts(differences, limit, above):
            # Accuracies are fractions: what is on the limit is rounded to one side of it.
            return (sum(d > limit + 1e-12 if above else d < limit - 1e-12 for d in differences),
                    len(differences))

        def sums(*terms):
            seeds = set.intersection(*(set(cell) for _, cell in terms))
            first_gap = min(set(range(26)) - seeds)  # seeds count up to the first one that lacks
            return [sum(weight * cell[seed] for weight, cell in terms)
                    for seed in range(first_gap)]

        def difference(metric, a, b, protocol):
            return sums((1, metric[a, protocol]), (-1, metric[b, protocol]))
        sides = {}

        def above(name, parts, limit):
            sides[name] = ([counts(part, limit, True) for part in parts],
                           [counts(part, limit, False) for part in parts])

        def between(name, values, low, high):
            sides[name] = ([counts(values, low, True), counts(values, high, False)],
                           [counts(values, low, False), counts(values, high, True)])
        for protocol in ("clean", "published"):
            above(f"above[{protocol}]", [difference(test, "rope", "nope", protocol)], 0)
        above("margin", [difference(best, "alibi", "rope", "clean")], -0.02)
        above("chain", [difference(test, "rope", "alibi", "clean"),
                        difference(test, "alibi", "nope", "clean")], 0)
        between("band", sums((1, train["mla", "published"])), 0.1, 0.99)
        between("near", difference(test, "rope", "alibi", "clean"), -0.005, 0.005)
        for protocol in ("clean", "published"):
            above(f"deposit[{protocol}]", [self.deposits(protocol)], 0.5)
        above("contrast", [sums((1, test["rope", "clean"]), (-1, test["nope", "clean"]),
                                (-1, test["rope", "published"]),
                                (1, test["nope", "published"]))], 0)
        return sides

    def check(self, found):
        sides = self.recounted()
        values = []
        for name, claim in found.items():
            told = collections.defaultdict(list)
            for side in claim["sides"]:
                told[side["of"]].append((side["k"], side["n"]))
            self.assertEqual((told["holds"], told["fails"]), sides[name], name)
            holds = min(e_value(*side) for side in told["holds"])
            fails = sum(e_value(*side) for side in told["fails"]) / len(told["fails"])
            self.assertAlmostEqual(claim["e_holds"] / float(holds), 1, places=9, msg=name)
            self.assertAlmostEqual(claim["e_fails"] / float(fails), 1, places=9, msg=name)
            values += [float(holds), float(fails)]
        rejected = e_bh(values)
        for i, (name, claim) in enumerate(found.items()):
            verdict = ("holds" if rejected[2 * i] else "fails" if rejected[2 * i + 1] else
                       "undecided")
            self.assertIn(claim["verdict"],
                          (verdict, "not eligible" if verdict == "undecided" else verdict), name)
        return {claim["verdict"] for claim in found.values()}

    def test_verdicts_are_those_of_exact_arithmetic(self):
        self.populate()
        found = self.shown()
        self.assertEqual(list(found), ["above[clean]", "above[published]", "margin", "chain",
                                       "band", "near", "contrast", "deposit[clean]",
                                       "deposit[published]"])
        self.assertGreaterEqual(len(self.check(found)), 2, "all verdicts are the same")
        for name in ("deposit[clean]", "deposit[published]"):
            values = found[name]["statistics"][0]["values"]
            self.assertEqual([value["seed"] for value in values], list(range(25)))
            self.assertEqual(found[name]["eligible"], sum(value["eligible"] for value in values))
            self.assertEqual(found[name]["sides"][0]["k"],
                             sum(value["eligible"] and value["value"] == 1 for value in values))

    def test_a_claim_about_ablations_waits_for_them(self):
        self.write("made-up.yaml", SWEEP.replace("[head_ablation]", "[]"))
        self.populate()
        found = self.shown()
        self.assertEqual({name: claim["seeds"] for name, claim in found.items()},
                         {name: 0 if name.startswith("deposit") else 25 for name in found})
        text = self.ok(self.pelab_db("claims", "show", self.sheet(SHEET))).stdout
        self.assertIn("no seed is complete for deposit[clean], deposit[published]", text)

    def test_the_sheets_of_the_documentation(self):
        sheets = sorted((SOURCE / "docs/claims").glob("*.yaml"))
        self.assertTrue(sheets)
        for sheet in sheets:
            self.ok(subprocess.run([BIN / "pelab", "claims", "check", sheet], cwd=self.folder,
                                   capture_output=True, text=True, timeout=60))

    def test_open_and_broken_jobs_stop_the_seeds(self):
        self.populate("--open-every", "70", "--fail-every", "60", "--error", "out of memory")
        found = self.shown()
        self.check(found)
        self.assertLess(min(claim["seeds"] for claim in found.values()), 25)
        self.assertGreater(max(claim["seeds"] for claim in found.values()), 5)

    def test_cells_of_another_sweep_than_the_one_of_that_name(self):
        self.populate("--set", "name=earlier")
        self.populate("--set", "seed=0", "--set", "train.epochs=9")  # none of the sheet's cells
        sheet = self.sheet(SHEET)
        self.assertEqual({claim["seeds"] for claim in self.shown().values()}, {25})
        self.assertIn("all 25 seeds of max_seeds: 150 jobs, ",
                      self.ok(self.pelab_db("claims", "check", sheet)).stdout)
        self.assertNotIn("unknown", self.ok(self.pelab_db("claims", "check", sheet)).stdout)

    def test_seeds_that_begin_later(self):
        self.populate("--set", "seed=4..8")
        text = self.ok(self.pelab_db("claims", "show", self.sheet(SHEET))).stdout
        self.assertIn("the first complete seed is 4: --first-seed 4 counts from there on\n", text)
        found = self.shown("--first-seed", "4")
        self.assertEqual({claim["seeds"] for claim in found.values()}, {5})

    def test_a_loss_that_is_not_finite_is_the_worst_result(self):
        self.populate()
        with sqlite3.connect(self.db) as connection:
            job, attempt = connection.execute(
                "SELECT job_id, max(attempt_id) FROM v_jobs JOIN attempts USING (job_id) WHERE "
                "pe = 'rope' AND protocol = 'clean' AND seed = 3").fetchone()
            for name, in connection.execute(
                    "SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
                connection.execute(f"DROP TRIGGER {name}")
            connection.execute("UPDATE jobs SET state = 'failed', trained = 0 WHERE job_id = ?",
                               (job,))
            connection.execute("UPDATE attempts SET outcome = 'failed', error_kind = "
                               "'non_finite_loss' WHERE attempt_id = ?", (attempt,))
        connection.close()
        above = self.shown()["above[clean]"]
        self.assertEqual(above["seeds"], 25)
        nope = self.values("test_accuracy")["nope", "clean"][3]
        self.assertAlmostEqual(above["statistics"][0]["values"][3]["value"], -nope)

    def test_seeds_that_show_neither_a_claim_nor_its_contrary_are_named(self):
        self.populate()
        test = self.values("test_accuracy")
        differences = [test["rope", "clean"][seed] - test["nope", "clean"][seed]
                       for seed in range(25)]
        by = differences[0]
        above, ties = (sum(d > by for d in differences), differences.count(by))
        claim = {"id": "tied", "where": "protocol=clean",
                 "above": {"metric": "test_accuracy", "a": "pe=rope", "b": "pe=nope", "by": by}}
        text = self.ok(self.pelab_db("claims", "show",
                                     self.sheet({**SHEET, "claims": [claim]}))).stdout
        self.assertRegex(text, rf"tied .* {above} of 25, {ties} tie{'s' if ties > 1 else ''} ")

    def test_the_same_with_a_coordinator(self):
        self.populate()
        file = self.shown()
        self.server()
        sheet = self.sheet(SHEET)
        served = json.loads(self.ok(self.pelab("claims", "show", sheet, "--output",
                                               "json")).stdout)
        self.assertEqual({claim["id"]: claim for claim in served["claims"]}, file)

    def test_tables_and_csv(self):
        self.populate()
        sheet = self.sheet(SHEET)
        text = self.ok(self.pelab_db("claims", "show", sheet)).stdout
        for claim in self.shown():
            name, bracket, each = claim.partition("[")  # a long id is wrapped there
            self.assertRegex(text, rf"(?m)^{name}")
            self.assertIn(bracket + each, text)
        self.assertRegex(text, r"(?m)^above +holds +2\.6e\+06 +25 of 25 +0\.[5-9]\d…1\.00")
        self.assertRegex(text, r"contrast +undecided +0\.\d+ +15 of 25, 1 tie")
        self.assertLessEqual(max(map(len, text.splitlines())), 82)
        paper = self.ok(self.pelab_db("claims", "show", sheet, "--output", "markdown")).stdout
        lines = [line.replace("\\", "").split("|")[1:5]
                 for line in paper.splitlines() if line.startswith("|")][2:]
        self.assertEqual([(line[0].strip(), line[3].strip()) for line in lines],
                         [(name, claim["verdict"]) for name, claim in self.shown().items()])
        refused = self.pelab_db("claims", "list", "--output", "markdown")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("--output markdown is for pelab claims show", refused.stderr)
        rows = list(csv.DictReader(io.StringIO(self.ok(self.pelab_db(
            "claims", "show", sheet, "--output", "csv")).stdout)))
        self.assertEqual([row["id"] for row in rows], list(self.shown()))
        late = self.shown("--first-seed", "20")
        self.assertEqual({claim["seeds"] for claim in late.values()}, {5})

    def test_check_counts_jobs_and_time(self):
        sheet = self.sheet(SHEET)
        alone = subprocess.run([BIN / "pelab", "claims", "check", sheet, "--output", "json"],
                               cwd=self.folder, capture_output=True, text=True, timeout=60)
        before = json.loads(self.ok(alone).stdout)
        self.assertEqual((before["seconds_per_seed"], before["fewest_seeds"]), (None, 8))
        self.assertEqual(self.ok(self.pelab_db("claims", "check", sheet, "--output",
                                               "json")).stdout, alone.stdout)
        self.populate()
        after = json.loads(self.ok(self.pelab_db("claims", "check", sheet, "--output",
                                                 "json")).stdout)
        self.assertEqual(len(after["cells"]), 6)
        self.assertEqual({cell["stored"] for cell in after["cells"]}, {25})
        means = [row[0] for row in sqlite3.connect(self.db).execute(
            "SELECT avg(wall_seconds) FROM v_jobs WHERE pe <> 'mla' AND (pe <> 'alibi' OR "
            "protocol = 'clean') OR pe = 'mla' AND protocol = 'published' GROUP BY pe, protocol")]
        self.assertAlmostEqual(after["seconds_per_seed"], sum(means))
        self.assertIn("all 25 seeds of max_seeds: 150 jobs",
                      self.ok(self.pelab_db("claims", "check", sheet)).stdout)
        seconds = after["seconds_per_seed"]
        self.assertIn("is enough for 2 seeds of each\n", self.ok(self.pelab_db(
            "settle", sheet, "--dry-run", "--budget", f"{round(2500 * seconds)}ms")).stdout)

    def test_sheets_that_are_wrong(self):
        lacks = {**SHEET, "claims": [{"id": "a", "above": {"metric": "test_accuracy",
                                                           "a": "pe=shaw", "b": "pe=rope"},
                                      "where": "protocol=clean"}]}
        for sheet, said in ((lacks, 'no cell of the sweep meets "pe=shaw" where protocol=clean'),
                            ({**SHEET, "sweep": "none.yaml"}, "none.yaml: no such file"),
                            ({**SHEET, "clams": []}, "did you mean claims?"),
                            ({**SHEET, "claims": []}, "a list of 1 to 1000 claims")):
            result = self.pelab("claims", "check", self.sheet(sheet))
            self.assertEqual(result.returncode, 2, result.stdout)
            self.assertIn(said, result.stderr)
            self.assertRegex(result.stderr, r"sheet\.yaml:1:\d+: ")
        self.write("made-up.yaml", SWEEP.replace("alibi", "alibbi"))
        result = self.pelab("claims", "check", self.sheet(SHEET))
        self.assertEqual(result.returncode, 2)
        self.assertRegex(result.stderr, r"made-up\.yaml:4:18: unknown pe \"alibbi\"")


if __name__ == "__main__":
    unittest.main(verbosity=2)
