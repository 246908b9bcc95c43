"""The results of a sheet's jobs, for sheet_recount.py: metrics of jobs, of ablations and of other
analyses, read from the views."""

import json
import math

COLUMNS = {"pe", "task", "protocol", "pe_label", "seed"}
INDICES = {"max_drop", "top_share", "top_ratio", "gini", "effective_heads", "deposits"}
ABLATION = INDICES | {"deposit", "no_deposit", "top_deeper"}
ANALYSES = {"layer_drop": "layer_ablation", "greedy_accuracy": "cumulative_ablation",
            "split_accuracy": "split_accuracy"}


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
