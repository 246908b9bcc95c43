"""Settles a registered claim sheet once more, from its documents and the database's views alone:
rounds, e-values, verdicts and standings, in numpy. It shares no code with the programs.

    python3 tests/support/sheet_recount.py results.db…    # every sheet of each file

It reads conditions of the form `field=value`, joined by spaces or `and`; enough for the sheets of
the documentation and of the tests.
"""

import functools
import itertools
import json
import math
import sqlite3
import sys

import numpy as np
import yaml

PILOTS = 1000
FUTILE = 0.05
COLUMNS = {"pe", "task", "protocol", "pe_label", "seed"}
INDICES = {"max_drop", "top_share", "top_ratio", "gini", "effective_heads", "deposits"}
ABLATION = INDICES | {"deposit", "no_deposit", "top_deeper"}
ANALYSES = {"layer_drop": "layer_ablation", "greedy_accuracy": "cumulative_ablation",
            "split_accuracy": "split_accuracy"}


# Statistics --------------------------------------------------------------------------------------

def log_choose(n, k):
    k = np.asarray(k, dtype=float)
    lgamma = np.vectorize(math.lgamma)
    return math.lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


@functools.cache
def log_es(n):
    """For every k: e(k, n) = sum over j <= k of C(n + 1, j), divided by (n + 1) C(n, k)."""
    sums = np.logaddexp.accumulate(log_choose(n + 1, np.arange(n + 1)))
    return sums - math.log(n + 1) - log_choose(n, np.arange(n + 1))


def log_e(k, n):
    return float(log_es(n)[k])


def log_mean(logs):
    return float(np.logaddexp.reduce(logs) - math.log(len(logs)))


def e_bh(logs, rate):
    """Which hypotheses are rejected, and the thresholds of the last one and of a further one."""
    ordered = np.sort(logs)[::-1]
    count = len(ordered)
    needed = np.log(count / (rate * np.arange(1, count + 1)))
    passing = np.flatnonzero(ordered >= needed)
    rejected = int(passing[-1]) + 1 if len(passing) else 0
    met = needed[max(rejected, 1) - 1]
    further = needed[min(rejected + 1, count) - 1]
    return [rejected > 0 and log >= met for log in logs], met, further


def chance_of_reaching(threshold, k, n, most):
    """By the posterior predictive of a uniform prior, each number of successes by itself."""
    if log_e(k, n) >= threshold:
        return 1.0
    alive, reached = np.zeros(n + 1), 0.0  # the chance of each number of successes
    alive[k] = 1.0
    for trials in range(n, most):
        success = np.arange(1, trials + 2) / (trials + 2)
        following = np.append(alive * (1 - success), 0.0)
        following[1:] += alive * success
        there = log_es(trials + 1) >= threshold
        reached += float(following[there].sum())
        alive = np.where(there, 0.0, following)
    return reached


# Shortcuts: the best guess from the length alone, from one place alone, or without looking --------

def best_of_joint(joint):
    """`joint`: {what is seen: {label: weight}}."""
    return (sum(max(labels.values()) for labels in joint.values())
            / sum(sum(labels.values()) for labels in joint.values()))


def add(joint, seen, label, weight=1.0):
    labels = joint.setdefault(seen, {})
    labels[label] = labels.get(label, 0.0) + weight


def distance_shortcut(task):
    place, length = {}, {}
    if task["definition"] == "clean":
        starts, classes = task["length"] - task["max_distance"], task["max_distance"]
        for start, distance in itertools.product(range(starts), range(1, classes + 1)):
            add(place, start + distance, distance)
        places = starts
    else:
        segments, classes = range(1, task["max_segment"] + 1), task["max_gap"]
        for left, gap, right in itertools.product(segments, range(1, classes + 1), segments):
            add(place, left + gap, gap)
            add(length, min(left + gap + right + 2, task["truncate"]), gap)
        places = task["max_segment"]
    factor = 1.0
    if task.get("split", "").startswith("held_out"):
        held = min(max(math.floor(task["held_out_fraction"] * places + 0.5), 1), max(1, places - 1))
        factor = places / held
    return max(min(1.0, factor * best_of_joint(joint)) for joint in (place, length) if joint)


def counting_shortcut(task):
    most = task["max_count"]
    least = 1 if task.get("scored_classes") == "nonzero" else 0
    size = task["length"] if task["definition"] == "clean" else task["content_length"]
    joint = {}
    for count in range(least, most + 1):  # whether one place has a trigger
        add(joint, True, count, count / size)
        add(joint, False, count, 1 - count / size)
    return best_of_joint(joint)


def shortcut(spec, classes):
    task = spec["task"]
    best = distance_shortcut(task) if task["name"] == "distance" else counting_shortcut(task)
    return max(best, 1 / classes)


# Results -----------------------------------------------------------------------------------------

class Results:
    """The jobs of a sheet's sweep: a configuration is a spec without its seeds."""

    def __init__(self, connection, sweep):
        self.db = connection
        self.jobs = {}  # {configuration: {seed: row}}
        self.specs, self.columns = {}, {}
        for row in connection.execute(
                "SELECT j.job_id, j.seed, j.pe, j.task, j.protocol, j.pe_label, j.spec_json, "
                "j.state, j.trained, j.test_accuracy, j.best_test_accuracy, j.train_accuracy, "
                "j.wall_seconds, j.train_eval_accuracy FROM v_jobs AS j WHERE job_id IN "
                "(SELECT job_id FROM v_sweep_jobs WHERE sweep_id = ?)", (sweep,)):
            (job, seed, pe, task, protocol, label, spec, state, trained, test, best, train,
             wall, fit) = row
            spec = json.loads(spec)
            plain = {**spec, "seed": None, "task": {**spec["task"]}}
            if plain["task"].get("data_seed") == seed:
                plain["task"]["data_seed"] = None
            name = json.dumps(plain, sort_keys=True)
            self.specs.setdefault(name, spec)
            self.columns.setdefault(name, {"pe": pe, "task": task, "protocol": protocol,
                                           "pe_label": label})
            done = bool(trained) or state == "succeeded"
            self.jobs.setdefault(name, {})[seed] = {
                "job": job, "done": done, "lost": not done and self._not_finite(job, state),
                "test_accuracy": test, "best_test_accuracy": best, "train_accuracy": train,
                "wall_seconds": wall, "train_eval_accuracy": fit,
                "generalisation_gap": fit - test if done and fit is not None else None}

    def _not_finite(self, job, state):
        if state != "failed":
            return False
        kind = self.db.execute("SELECT error_kind FROM v_attempts WHERE job_id = ? ORDER BY number "
                               "DESC LIMIT 1", (job,)).fetchone()
        return kind is not None and kind[0] == "non_finite_loss"

    def field(self, name, field):
        if field in COLUMNS:
            return str(self.columns[name].get(field))
        at = self.specs[name]
        parts = field.split(".")
        if len(parts) == 1:
            places = [at[section] for section in ("pe", "task", "model", "train")
                      if field in at.get(section, {})]
            return text(places[0][field]) if places else None
        for part in parts:
            if not isinstance(at, dict) or part not in at:
                return None
            at = at[part]
        return text(at)

    def meeting(self, condition):
        pairs = [part.split("=", 1) for part in condition.replace(" and ", " ").split()]
        return {name for name in self.jobs
                if all(same(self.field(name, field), value) for field, value in pairs)}

    def ablation(self, name, seed):
        """(analysis, intact right, chance, total) of the ablation that the protocol asks for."""
        published = self.columns[name]["protocol"] == "published"
        target = "authors" if published and self.columns[name]["pe"] == "mla" else "head"
        rows = self.db.execute(
            "SELECT DISTINCT analysis_id, intact_correct, total, chance, method, hygiene, split, "
            "target FROM v_head_ablation WHERE job_id = ?",
            (self.jobs[name][seed]["job"],)).fetchall()
        if not rows:
            return None
        return max(rows, key=lambda row: (
            row[4] == "zero", row[5] == ("authors" if published else "clean"),
            row[6] == ("all" if published else "test"), row[7] == target, row[3] is not None,
            row[2], row[0]))

    def property(self, name, seed, metric, layers):
        row = self.ablation(name, seed)
        if row is None or row[3] is None:
            return math.nan
        analysis, correct, total, chance = row[:4]
        if not stands_out(correct, total, chance):
            return math.nan
        rows = self.db.execute("SELECT layer, deposit, top_layer, max_drop, top_share, top_ratio, "
                               "gini, effective_heads, deposits FROM v_deposits WHERE "
                               "analysis_id = ?", (analysis,)).fetchall()
        whole = next(row for row in rows if row[0] is None)
        if metric == "top_deeper":
            return math.nan if whole[2] is None else float(whole[2] > 0)
        if metric not in ("deposit", "no_deposit"):
            value = dict(zip(("max_drop", "top_share", "top_ratio", "gini", "effective_heads",
                              "deposits"), whole[3:]))[metric]
            return (0.0 if metric == "max_drop" else math.nan) if value is None else float(value)
        having = {row[0] for row in rows if row[0] is not None and row[1]}
        depth = self.specs[name]["model"]["layers"]
        if layers == "shallow":
            found = any(2 * layer < depth for layer in having)
        elif layers in (None, "any"):
            found = bool(having)
        else:
            found = set(layers) <= having
        return float(found == (metric == "deposit"))

    def analysis(self, name, seed, kind):
        """The result of the analysis of this kind that the protocol asks for, if there is one."""
        data = "all" if self.columns[name]["protocol"] == "published" else "test"
        rows = [(json.loads(parameters), json.loads(result), number)
                for parameters, result, number in self.db.execute(
                    "SELECT parameters_json, result_json, analysis_id FROM v_analyses "
                    "WHERE job_id = ? AND name = ?", (self.jobs[name][seed]["job"], kind))]
        return max(rows, default=(None, None), key=lambda row: (
            row[0].get("method", "zero") == "zero", row[0].get("data", data) == data,
            row[1].get("total", 0), row[2]))[1]

    def score(self, name, seed, metric):
        """A metric of one of ANALYSES: "layer_drop(0)"."""
        kind, argument = metric[:-1].split("(")
        result = self.analysis(name, seed, ANALYSES[kind])
        if result is None:
            return math.nan
        if kind == "split_accuracy":
            return next((split["correct"] / split["total"] for split in result["splits"]
                         if split["name"] == argument), math.nan)
        counts = result["correct"] if kind == "layer_drop" else result["greedy"]["correct"]
        at = int(argument) - (kind == "greedy_accuracy")
        intact, total = result["intact_correct"], result["total"]
        if at >= len(counts) or not stands_out(intact, total, result["chance"]):
            return math.nan
        return (intact - counts[at] if kind == "layer_drop" else counts[at]) / total

    def epochs_to(self, name, seed, accuracy):
        found = self.db.execute("SELECT min(epoch) FROM v_curves WHERE job_id = ? AND "
                                "test_accuracy >= ?",
                                (self.jobs[name][seed]["job"], accuracy)).fetchone()[0]
        return math.inf if found is None else float(found)

    def value(self, name, seed, metric, layers=None):
        row = self.jobs[name][seed]
        if row["lost"]:
            if is_about_ablation(metric):
                return math.nan
            if metric == "generalisation_gap":
                return 1.0
            return math.inf if metric.startswith(("wall_", "epochs_to")) else 0.0
        if metric in ABLATION:
            return self.property(name, seed, metric, layers)
        if metric.split("(")[0] in ANALYSES:
            return self.score(name, seed, metric)
        if metric.startswith("epochs_to("):
            return self.epochs_to(name, seed, float(metric[len("epochs_to("):-1]))
        return row[metric]

    def is_open(self, name, seed, metrics):
        row = self.jobs.get(name, {}).get(seed)
        if row is None or not (row["done"] or row["lost"]):
            return True
        return row["done"] and any(self._lacks_analysis(name, seed, metric) for metric in metrics)

    def _lacks_analysis(self, name, seed, metric):
        if metric in ABLATION:
            return self.ablation(name, seed) is None
        kind = ANALYSES.get(metric.split("(")[0])
        return kind is not None and self.analysis(name, seed, kind) is None


def stands_out(correct, total, chance):
    right = correct / total
    return right > chance and right - chance >= 5 * math.sqrt(right * (1 - right) / total)


def is_about_ablation(metric):
    return metric in ABLATION or ANALYSES.get(metric.split("(")[0], "").endswith("_ablation")


def text(value):
    return str(value).lower() if isinstance(value, bool) else str(value)


def same(found, wanted):
    if found is None:
        return False
    try:
        return float(found) == float(wanted)
    except ValueError:
        return found == wanted


# Claims ------------------------------------------------------------------------------------------

def condition(cell):
    return " ".join(f"{field}={text(value)}" for field, value in cell.items()) \
        if isinstance(cell, dict) else cell


class Claim:
    """One claim under one combination of its `each`: statistics (lists of weight and cell) and the
    signs that they must have."""

    def __init__(self, document, results, group, name):
        self.id = document["id"] + (f"[{name}]" if name else "")
        self.kind = next(kind for kind in ("above", "between", "near", "most", "contrast")
                         if kind in document)
        body = document[self.kind]
        self.metric, self.layers = body["metric"], body.get("layers")
        self.results = results
        self.eligible = document.get("eligible", {"above": "shortcut"}
                                     if is_about_ablation(self.metric) else None)
        self.metrics = {self.metric} | ({self.eligible.get("metric", "test_accuracy")}
                                        if self.eligible else set())

        def one(cell):
            found = results.meeting(condition(cell)) & group
            assert len(found) == 1, f"{self.id}: {cell} are {len(found)} cells"
            return found.pop()
        if self.kind == "above":
            if "chain" in body:
                cells = [one(cell) for cell in body["chain"]]
                pairs = list(zip(cells, cells[1:]))
            else:
                sides = [body[side] if isinstance(body[side], list) else [body[side]]
                         for side in ("a", "b")]
                pairs = list(itertools.product(*([one(cell) for cell in side] for side in sides)))
            self.statistics = [[(1, a), (-1, b)] for a, b in pairs]
            self.holds = [(i, 1, body.get("by", 0)) for i in range(len(self.statistics))]
            self.fails = [(i, -1, body.get("by", 0)) for i in range(len(self.statistics))]
        elif self.kind == "contrast":
            self.statistics = [[(term["weight"], one(term["cell"])) for term in body["of"]]]
            self.holds, self.fails = [(0, 1, body.get("by", 0))], [(0, -1, body.get("by", 0))]
        elif self.kind == "most":
            self.statistics = [[(1, one(body["cell"]))]]
            self.holds, self.fails = [(0, 1, 0.5)], [(0, -1, 0.5)]
        else:
            near = self.kind == "near"
            self.statistics = [[(1, one(body["a"])), (-1, one(body["b"]))] if near else
                               [(1, one(body["cell"]))]]
            low, high = (-body["within"], body["within"]) if near else (body["low"], body["high"])
            self.holds, self.fails = [(0, 1, low), (0, -1, high)], [(0, -1, low), (0, 1, high)]
        self.cells = {cell for statistic in self.statistics for _, cell in statistic}

    def is_eligible(self, seed):
        if self.eligible is None:
            return True
        metric = self.eligible.get("metric", "test_accuracy")
        above, by = self.eligible.get("above", "shortcut"), self.eligible.get("by", 0.1)
        for cell in self.cells:
            limit = self.results.limit(cell) if above == "shortcut" else above
            value = self.results.value(cell, seed, metric)
            if not value > limit + by:
                return False
        return True

    def weigh(self, seeds):
        """(seeds, eligible, log e of holds, log e of fails, counts of the sides, figures)."""
        used, count = [], 0
        for seed in seeds:
            if any(self.results.is_open(cell, seed, self.metrics) for cell in self.cells):
                break
            count += 1
            if self.is_eligible(seed):
                used.append([sum(weight * self.results.value(cell, seed, self.metric, self.layers)
                                 for weight, cell in statistic) for statistic in self.statistics])
        values = np.array(used, dtype=float).reshape(len(used), len(self.statistics))
        sides = []
        for side in (self.holds, self.fails):
            # Accuracies are fractions: what is on the limit is rounded to one side of it.
            counts = [sign * (values[:, at] - limit) > 1e-12 * max(1, abs(limit))
                      for at, sign, limit in side]
            sides.append([(int(np.sum(count_of)), len(used)) for count_of in counts])
        holds = min(log_e(*side) for side in sides[0])
        fails = log_mean([log_e(*side) for side in sides[1]])
        return count, len(used), holds, fails, sides, self._figures(values, sides, holds >= fails)

    def _figures(self, values, sides, holds):
        """The figures beside the verdict, which are about the side that the seeds speak for."""
        logs = [[log_e(*side) for side in both] for both in sides]
        weakest, strongest = logs[0].index(min(logs[0])), logs[1].index(max(logs[1]))
        k, n = sides[0][weakest] if holds else sides[1][strongest]
        at = (self.holds[weakest] if holds else self.fails[strongest])[0]
        finite = values[np.isfinite(values[:, at]), at]
        return {"leans_to": "holds" if holds else "fails", "k": k, "n": n,
                "shows": sides[0][weakest][0], "mean": finite.mean() if len(finite) else None}


def same_figures(stored, ours):
    """Whether two claims have the same figures; means may differ in their last bits."""
    means = [figures["mean"] for figures in (stored, ours)]
    if None in means or not math.isclose(*means, rel_tol=1e-9, abs_tol=1e-9):
        return stored == ours
    return {**stored, "mean": None} == {**ours, "mean": None}


def claims_of(sheet, results):
    found = []
    for document in sheet["claims"]:
        group = results.meeting(condition(document.get("where", "")))
        assert group, document["id"]
        each = document.get("each", [])
        each = [each] if isinstance(each, str) else each
        names = []
        for name in results.ordered(group):
            values = ", ".join(str(results.field(name, field)) for field in each)
            if values not in names:
                names.append(values)
        for values in names:
            members = {name for name in group
                       if ", ".join(str(results.field(name, field)) for field in each) == values}
            found.append(Claim(document, results, members, values))
    return found


# A sheet -----------------------------------------------------------------------------------------

class Sheet:
    def __init__(self, connection, number):
        self.db = connection
        row = connection.execute("SELECT document, first_seed, fresh_from, slots, sweep_id, "
                                 "sha256, sweep_document FROM v_sheets WHERE sheet_id = ?",
                                 (number,)).fetchone()
        self.number = number
        self.first, self.fresh, self.slots = row[1:4]
        self.document = yaml.safe_load(row[0])
        self.rate = self.document.get("false_discovery_rate", 0.05)
        self.most = self.document.get("max_seeds", 40)
        self.results = Results(connection, row[4])
        rounds = connection.execute("SELECT cells_json FROM v_sheet_rounds WHERE sheet_id = ? AND "
                                    "round = 1", (number,)).fetchone()
        # The order of the sweep's cells is that of its first round, which has them all.
        order = [cell for cell, in connection.execute(
            "SELECT job_id FROM v_sweep_jobs WHERE sweep_id = ? ORDER BY ordinal", (row[4],))]
        by_job = {job["job"]: name for name, jobs in self.results.jobs.items()
                  for job in jobs.values()}
        names = list(dict.fromkeys(by_job[job] for job in order if job in by_job))
        self.combinations = dict(zip(names, json.loads(rounds[0])))
        self.results.ordered = lambda group: [name for name in names if name in group]
        chances = {}
        for name in names:
            classes = connection.execute(
                "SELECT 1.0 / max(chance) FROM v_head_ablation WHERE job_id = ?",
                (next(iter(self.results.jobs[name].values()))["job"],)).fetchone()[0]
            chances[name] = shortcut(self.results.specs[name], classes or math.inf)
        self.results.limit = chances.__getitem__
        self.claims = claims_of(self.document, self.results)

    def settle(self, rounds):
        """The rounds, and after each the rows of its claims, as long as `rounds` ask for them."""
        states = [{"standing": "open"} for _ in self.claims]
        end, found = self.first, []
        aside = []  # claims that were put aside after the round before
        for number in range(1, rounds + 1):
            cells = self._open_cells(states)
            # Some may have been put aside after the round began, which then has their cells.
            stored = self._cells_of(number) if aside else set()
            cells = cells.union(*(claim.cells for claim in aside if claim.cells <= stored))
            if not cells:
                break
            first = end
            seeds = min(-(-self.slots // len(cells)), max(1, first - self.first))
            end = min(first + seeds, self.first + self.most, PILOTS)
            if end <= first:
                break
            self._conclude(states, end)
            aside = self._put_aside(states, number)
            found.append({"round": number, "first_seed": first, "end_seed": end,
                          "cells": sorted(self.combinations[cell] for cell in cells),
                          "claims": [dict(state) for state in states]})
        return found

    def _open_cells(self, states):
        claims = [claim for claim, state in zip(self.claims, states)
                  if state["standing"] == "open"]
        return set().union(*(claim.cells for claim in claims)) if claims else set()

    def _cells_of(self, number):
        stored, = self.db.execute("SELECT cells_json FROM v_sheet_rounds WHERE sheet_id = ? AND "
                                  "round = ?", (self.number, number)).fetchone()
        combinations = json.loads(stored)
        return {cell for cell, its in self.combinations.items() if its in combinations}

    def _put_aside(self, states, number):
        """People put claims aside; only the rows tell which, and after which round. Returns those
        of this round."""
        found = []
        for position, in self.db.execute(
                "SELECT position FROM v_sheet_claims WHERE sheet_id = ? AND round = ? AND "
                "standing = 'put aside'", (self.number, number)):
            if states[position]["standing"] == "open":
                states[position]["standing"] = "put aside"
                found.append(self.claims[position])
        return found

    def _conclude(self, states, end):
        for claim, state in zip(self.claims, states):
            if state["standing"] == "open":
                seeds, eligible, holds, fails, sides, figures = claim.weigh(
                    range(self.first, end))
                state.update(claim=claim.id, seeds=seeds, eligible=eligible, log_e_holds=holds,
                             log_e_fails=fails, sides=sides, figures=figures,
                             exploratory=min(max(self.fresh - self.first, 0), seeds))
        logs = []
        for state in states:
            too_few = 2 * state["eligible"] < state["seeds"]
            logs += [-math.inf if too_few else state[side]
                     for side in ("log_e_holds", "log_e_fails")]
        rejected, met, further = e_bh(logs, self.rate)
        for i, state in enumerate(states):
            decided = rejected[2 * i] or rejected[2 * i + 1]
            state["log_threshold"] = met if decided else further
            state["verdict"] = ("holds" if rejected[2 * i] else "fails" if decided else
                                "not eligible" if 2 * state["eligible"] < state["seeds"] else
                                "undecided")
            if decided:
                state["standing"] = "decided"
        # What a claim would have to reach if all open ones were decided.
        count = sum(state["standing"] in ("decided", "open") for state in states)
        lowest = math.log(2 * len(states) / (self.rate * max(count, 1)))
        for state in states:
            if state["standing"] != "open":
                continue
            if state["seeds"] >= self.most or end >= PILOTS:
                state["standing"] = "all seeds"
            elif self._chance(state, lowest) < FUTILE:
                state["standing"] = "futile"

    def _chance(self, state, threshold):
        left = (self.most - state["seeds"]) * (state["eligible"] + 1) / (state["seeds"] + 1)
        most = state["eligible"] + math.ceil(left)
        chances = [[chance_of_reaching(threshold, k, n, most) for k, n in side]
                   for side in state["sides"]]
        return min(chances[0]) + sum(chances[1])

    def differences(self):
        """What is stored otherwise than recomputed, in words."""
        stored = self.db.execute(
            "SELECT round, first_seed, end_seed, cells_json FROM v_sheet_rounds WHERE sheet_id = ? "
            "AND ended_at IS NOT NULL ORDER BY round", (self.number,)).fetchall()
        found = self.settle(len(stored))
        problems = []
        if len(found) != len(stored):
            problems.append(f"{len(stored)} rounds are stored, {len(found)} recomputed")
        names = ("claim", "standing", "verdict", "seeds", "eligible", "exploratory")
        logs = ("log_e_holds", "log_e_fails", "log_threshold")
        figures = ("leans_to", "k", "n", "shows", "mean")
        for ours, (number, first, end, cells) in zip(found, stored):
            if (first, end, json.loads(cells)) != (ours["first_seed"], ours["end_seed"],
                                                   ours["cells"]):
                problems.append(f"round {number}: {first}, {end}, {cells} stored, {ours}")
            rows = self.db.execute(
                f"SELECT {', '.join(names + logs + figures)} FROM v_sheet_claims WHERE sheet_id = "
                "? AND round = ? ORDER BY position", (self.number, number)).fetchall()
            if len(rows) != len(ours["claims"]):
                problems.append(f"round {number}: {len(rows)} claims, not {len(ours['claims'])}")
            for row, claim in zip(rows, ours["claims"]):
                if row[:len(names)] != tuple(claim[name] for name in names):
                    problems.append(f"round {number}: {row} stored, {claim} recomputed")
                for name, log in zip(logs, row[len(names):]):
                    if not math.isclose(log, claim[name], rel_tol=1e-9, abs_tol=1e-9):
                        problems.append(f"round {number}, {row[0]}: {name} is {log}, not "
                                        f"{claim[name]}")
                beside = dict(zip(figures, row[len(names) + len(logs):]))
                if beside["leans_to"] is not None and not same_figures(beside, claim["figures"]):
                    problems.append(f"round {number}, {row[0]}: {beside}, not {claim['figures']}")
        return problems


def check(path):
    """The differences of every sheet of a database, and how many claims were recomputed."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    problems, claims = [], 0
    for number, name in connection.execute(
            "SELECT sheet_id, name FROM v_sheets WHERE ended_rounds > 0 ORDER BY sheet_id"
    ).fetchall():
        sheet = Sheet(connection, number)
        claims += len(sheet.claims)
        problems += [f"{path}, sheet {name}: {problem}" for problem in sheet.differences()]
    connection.close()
    return problems, claims


def main():
    failed = False
    for path in sys.argv[1:]:
        problems, claims = check(path)
        for problem in problems[:20]:
            print(problem)
        print(f"{path}: {claims} claims recomputed, {len(problems)} differences")
        failed = failed or bool(problems) or claims == 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
