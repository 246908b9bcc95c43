"""Reads the public views of a pelab database (docs/formats.md) and puts seeds together into cells.

A cell is what is the same but for the seed: (protocol, task, encoding). The protocol of a job that
departs from a named set is told by what departs: "published + model.kv_source=self", against the
nearest job of a named set in the file.
"""
import collections
import dataclasses
import json
import math
import pathlib
import sqlite3
from typing import NamedTuple

APPLICATION_ID = 0x50454C42
FIRST_SCHEMA = 101  # smaller ones are from before the first release
NAMED = ("published", "clean", "matched")
# Two jobs of the same encoding and task with the same sizes differ in nothing but the protocol.
SIZES = ("model.layers", "model.heads", "model.d_model", "model.d_ff", "model.dropout",
         "model.max_len", "task.length", "task.vocabulary", "task.train_examples",
         "task.test_examples", "train.lr", "train.beta1", "train.beta2")
NEEDED = {
    "v_jobs": "job_id pe pe_label task protocol seed device train_accuracy test_accuracy "
              "wall_seconds spec_json trained",
    "v_sweep_jobs": "sweep job_id",
    "v_curves": "job_id epoch test_accuracy",
    "v_head_ablation": "job_id method hygiene split target total intact_correct chance analysis_id",
    "v_attempts": "job_id number environment_json",
    "v_deposits": "layer max_drop top_layer deposit analysis_id",
    "v_analyses": "job_id name parameters_json total result_json analysis_id",
}


class Problem(Exception):
    """Told to the user without a traceback."""


class Variant(NamedTuple):
    """Which head ablation."""

    method: str
    hygiene: str
    split: str
    target: str

    def __str__(self):
        return f"{self.method}, {self.hygiene} hygiene, {self.split} data, {self.target}"


@dataclasses.dataclass
class Deposits:
    """A job's deposit indices under one variant. `defined` is false where accuracy is within 5
    standard errors of chance: nothing can drop then, and the indices say nothing. Where nothing
    drops although it could, max_drop is 0."""

    defined: bool
    max_drop: float = 0.0
    top_layer: int = None
    layers: frozenset = frozenset()  # that have a deposit
    drops: dict = dataclasses.field(default_factory=dict)  # layer -> that of its costliest head


@dataclasses.dataclass
class Removal:
    """Test accuracy after each removal of one head more: in greedy order, and in each random
    order."""

    intact: float
    first_layer: int  # of the head that the greedy order removes first
    greedy: list
    random: list

    def halved(self, accuracies):
        """How many heads are gone when less than half of the intact accuracy is left; None where it
        never is."""
        return next((gone for gone, left in enumerate(accuracies, 1) if left < self.intact / 2),
                    None)


@dataclasses.dataclass
class Job:
    job_id: int
    pe: str
    pe_label: str
    task: str
    protocol: str
    seed: int
    trained: bool  # also while analyses are added to it
    device: str
    train: float
    test: float
    wall: float
    spec: dict
    # what the last attempt's trainer said of itself
    environment: dict = dataclasses.field(default_factory=dict)
    speed: float = None  # mean test accuracy over the epochs
    deposits: dict = dataclasses.field(default_factory=dict)  # Variant -> Deposits
    # method -> what each layer is worth, all heads at once
    layer_drops: dict = dataclasses.field(default_factory=dict)
    removals: dict = dataclasses.field(default_factory=dict)  # method -> Removal

    @property
    def done(self):
        return bool(self.trained) and self.test is not None


@dataclasses.dataclass
class Cell:
    # published, clean, or custom where the file has no job of a named set to compare with
    protocol: str
    departed: dict  # the fields in which it departs from that protocol
    task: str
    pe: str
    jobs: list
    asked: bool = True  # false: only there as what a departure is compared with

    @property
    def name(self):
        """The protocol with its departures."""
        return self.protocol + (f" + {in_words(self.departed)}" if self.departed else "")

    @property
    def named(self):
        return self.protocol in NAMED and not self.departed

    @property
    def done(self):
        return [job for job in self.jobs if job.done]

    def values(self, what):
        """{seed: value} of the jobs that are done and have it."""
        found = {job.seed: what(job) for job in self.done}
        return {seed: value for seed, value in found.items() if value is not None}

    @property
    def test(self):
        return self.values(lambda job: job.test)

    @property
    def gap(self):
        return self.values(lambda job: job.train - job.test)

    def deposits(self, variant=None):
        return self.values(lambda job: job.deposits.get(variant or self.variant))

    @property
    def variants(self):
        return sorted({variant for job in self.done for variant in job.deposits})

    @property
    def variant(self):
        """The ablation that the cell's protocol asks for: the authors' for published, else clean
        heads on test data."""
        published = self.protocol == "published"
        wanted = ("zero", "authors" if published else "clean", "all" if published else "test",
                  "authors" if published and self.jobs[0].pe == "mla" else "head")
        return max(self.variants, key=lambda have: [a == b for a, b in zip(have, wanted)],
                   default=None)


def open_database(path):
    if not pathlib.Path(path).is_file():
        raise Problem(
            f"{path}: there is no such file; it is the --db of pelab run (pelab.db by default)")
    try:
        connection = sqlite3.connect(f"{pathlib.Path(path).resolve().as_uri()}?mode=ro", uri=True,
                                     timeout=30)
    except sqlite3.Error as error:
        raise Problem(f"{path}: cannot be opened: {error}") from error
    try:
        _check(connection, path)
    except BaseException:
        connection.close()
        raise
    connection.row_factory = sqlite3.Row
    return connection


def _check(connection, path):
    try:
        is_pelab = connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID
    except sqlite3.DatabaseError:
        is_pelab = False
    if not is_pelab:
        raise Problem(f"{path}: not a pelab database")
    schema = connection.execute("PRAGMA user_version").fetchone()[0]
    if schema < FIRST_SCHEMA:
        raise Problem(
            f"{path} has schema version {schema}, from before the first release, which "
            "commit 36de102 (2026-11-23) was the last to read: use a pelab of that commit, or "
            "convert the file as docs/operations.md describes")
    for view, columns in NEEDED.items():
        have = {row[1] for row in connection.execute(f"PRAGMA table_xinfo({view})")}
        missing = [column for column in columns.split() if column not in have]
        if missing:
            raise Problem(f"{path}: {view} lacks {', '.join(missing)}; bring the file up to date "
                          "with `pelab db migrate`")


def flatten(spec):
    """{"model.layers": 2, …} without the seeds, which are what a cell's jobs differ in, and the
    format's versions."""
    flat = {}
    for name, value in spec.items():
        if isinstance(value, dict):
            flat.update({f"{name}.{inner}": item
                         for inner, item in value.items() if inner != "version"})
        else:
            flat[name] = value
    for name in ("format", "seed", "task.data_seed"):
        flat.pop(name, None)
    return flat


def _read_jobs(connection):
    jobs = {}
    for row in connection.execute("SELECT * FROM v_jobs ORDER BY job_id"):
        jobs[row["job_id"]] = Job(row["job_id"], row["pe"], row["pe_label"], row["task"],
                                  row["protocol"], row["seed"], row["trained"], row["device"],
                                  row["train_accuracy"], row["test_accuracy"],
                                  row["wall_seconds"], flatten(json.loads(row["spec_json"])))
    for row in connection.execute(
            "SELECT job_id, avg(test_accuracy) AS speed FROM v_curves GROUP BY job_id"):
        if row["job_id"] in jobs:
            jobs[row["job_id"]].speed = row["speed"]
    for row in connection.execute("SELECT job_id, environment_json FROM v_attempts WHERE "
                                  "environment_json IS NOT NULL ORDER BY number"):
        if row["job_id"] in jobs:
            jobs[row["job_id"]].environment = json.loads(row["environment_json"])
    _read_deposits(connection, jobs)
    _read_layers_and_removals(connection, jobs)
    return jobs


def _read_deposits(connection, jobs):
    """Of each variant, the analysis of most examples; those from before the paired counts (no
    chance) come last."""
    chosen = {}  # (job, variant) -> row
    for row in connection.execute("SELECT DISTINCT job_id, method, hygiene, split, target, total, "
                                  "intact_correct, chance, analysis_id FROM v_head_ablation ORDER "
                                  "BY chance IS NOT NULL, total, analysis_id"):
        chosen[row["job_id"],
               Variant(row["method"], row["hygiene"], row["split"], row["target"])] = row
    by_analysis = {}
    for (job_id, variant), row in chosen.items():
        accuracy = row["intact_correct"] / row["total"]
        error = math.sqrt(accuracy * (1 - accuracy) / row["total"])
        found = Deposits(row["chance"] is not None and accuracy - row["chance"] >= 5 * error)
        if job_id in jobs:
            jobs[job_id].deposits[variant] = by_analysis[row["analysis_id"]] = found
    for row in connection.execute(
            "SELECT analysis_id, layer, max_drop, top_layer, deposit FROM v_deposits"):
        found = by_analysis.get(row["analysis_id"])
        if not found or not found.defined:
            continue
        if row["layer"] is None:
            found.max_drop, found.top_layer = row["max_drop"] or 0.0, row["top_layer"]
            continue
        found.drops[row["layer"]] = row["max_drop"] or 0.0
        if row["deposit"]:
            found.layers |= {row["layer"]}


def _read_layers_and_removals(connection, jobs):
    """Of several analyses with the same method, the one of most examples."""
    for row in connection.execute(
            "SELECT job_id, name, parameters_json, result_json FROM v_analyses WHERE name IN "
            "('layer_ablation', 'cumulative_ablation') ORDER BY total, analysis_id"):
        if row["job_id"] not in jobs:
            continue
        job, found = jobs[row["job_id"]], json.loads(row["result_json"])
        method = json.loads(row["parameters_json"])["method"]
        accuracy = lambda counts: [count / found["total"] for count in counts]  # noqa: E731
        intact = found["intact_correct"] / found["total"]
        if row["name"] == "layer_ablation":
            job.layer_drops[method] = [intact - left for left in accuracy(found["correct"])]
        else:
            job.removals[method] = Removal(intact, found["greedy"]["heads"][0][0],
                                           accuracy(found["greedy"]["correct"]),
                                           [accuracy(order["correct"])
                                            for order in found["random"]])


def departures(spec, reference):
    """The fields that both have with different values; what only one of them has follows from
    another field."""
    return {name: spec[name]
            for name in sorted(spec) if name in reference and spec[name] != reference[name]}


def in_words(fields):
    def text(value):
        return "[" + ", ".join(map(text, value)) + "]" if isinstance(value, list) else (
            value if isinstance(value, str) else json.dumps(value))
    return ", ".join(f"{name}={text(value)}" for name, value in fields.items())


def _distance(job, reference):
    """How far a job is from one of a named set. What decides the data weighs most: it changes the
    question."""
    return sum(3 if name.startswith("task.") else 1
               for name in departures(job.spec, reference.spec))


def _nearest(job, jobs):
    """The named set's job that this one departs from least."""
    candidates = [other for other in jobs
                  if other.protocol in NAMED and (other.pe, other.task) == (job.pe, job.task)]
    return min(candidates, key=lambda other: (_distance(job, other), other.job_id), default=None)


def _groups(jobs, everything):
    """{(protocol, departures, task, encoding): jobs}, and the jobs of named sets that something
    departs from."""
    groups, references = collections.defaultdict(list), {}
    for job in jobs:
        protocol, departed, label = job.protocol, {}, job.pe_label
        reference = None if protocol in NAMED else _nearest(job, everything)
        if reference is not None:
            protocol, departed, label = (reference.protocol, departures(job.spec, reference.spec),
                                         reference.pe_label)
            references[reference.job_id] = reference
        groups[protocol, json.dumps(departed), job.task, label].append(job)
    return groups, references


def _cells(groups):
    """A group whose jobs differ in more than the seed becomes several cells, told apart by what
    differs."""
    for (protocol, departed, task, label), jobs in groups.items():
        names = [name for name in sorted(set().union(*(job.spec for job in jobs)))
                 if len({json.dumps(job.spec.get(name)) for job in jobs}) > 1]
        parts = collections.defaultdict(list)
        for job in jobs:
            parts[in_words({name: job.spec[name] for name in names if name in job.spec})].append(
                job)
        for suffix, part in parts.items():
            yield Cell(protocol, json.loads(departed), task,
                       f"{label} ({suffix})" if suffix else label, part)


def _is_counterpart(job, reference):
    """Whether it is the same cell under the other named set."""
    return (job.protocol in NAMED and job.protocol != reference.protocol and
            (job.pe, job.pe_label, job.task) == (reference.pe, reference.pe_label, reference.task)
            and all(job.spec.get(name) == reference.spec.get(name) for name in SIZES))


def load(connection, sweeps):
    """The cells of these sweeps, in the order of their jobs; then those that are only compared
    with."""
    jobs, asked = _read_jobs(connection), {}
    for sweep in sweeps:
        rows = connection.execute(
            "SELECT DISTINCT job_id FROM v_sweep_jobs WHERE sweep = ? ORDER BY job_id", (sweep,))
        found = {row["job_id"]: jobs[row["job_id"]] for row in rows if row["job_id"] in jobs}
        if not found:
            known = [row[0] for row in connection.execute(
                "SELECT DISTINCT sweep FROM v_sweep_jobs ORDER BY sweep")]
            raise Problem(
                f"no sweep {sweep!r} in this database; there are: {', '.join(known) or 'none'}")
        asked.update(found)
    groups, references = _groups(asked.values(), jobs.values())
    cells = list(_cells(groups))
    for reference in list(references.values()):
        references.update({job.job_id: job
                           for job in jobs.values() if _is_counterpart(job, reference)})
    wanted = {json.dumps(job.spec, sort_keys=True)
              for job_id, job in references.items() if job_id not in asked}
    others = [job for job in jobs.values()
              if job.job_id not in asked and json.dumps(job.spec, sort_keys=True) in wanted]
    return cells + [dataclasses.replace(cell, asked=False)
                    for cell in _cells(_groups(others, [])[0])]
