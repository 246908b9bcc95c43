"""Jobs with the fields of their specs, parsed once for all seeds of a configuration."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pelab import _catalog, _columns

# The deposit indices, over all layers.
INDICES = ("max_drop", "top_share", "top_ratio", "gini", "effective_heads", "deposits")
# Names for conditions and metrics, besides columns and fields.
DERIVED = ("generalisation_gap", "epochs_to", *INDICES)

STATES = ("queued", "assigned", "running", "succeeded", "failed", "cancelled")

SEED_MARK = "\x1f"  # in a template, replaces each seed that equals the job's own
_PLACES = {name: place for place, name in enumerate(_columns.JOBS)}


def flatten(value: Any, prefix: str = "", out: dict[str, Any] | None = None) -> dict[str, Any]:
    """{"train": {"lr": 1e-4}} as {"train.lr": 1e-4}."""
    fields: dict[str, Any] = {} if out is None else out
    if not isinstance(value, dict):
        fields[prefix] = _catalog.frozen(value)
        return fields
    for name, member in value.items():
        flatten(member, f"{prefix}.{name}" if prefix else name, fields)
    return fields


def template_of(spec_json: str, seed: int) -> str:
    """The spec with SEED_MARK in place of each seed that equals the job's own.

    Replicates have equal templates.
    """
    digits = str(seed)
    template = spec_json
    for before in ('"seed":', '_seed":'):
        for end in ",}":
            template = template.replace(before + digits + end, before + SEED_MARK + end)
    return template


def fields_of_template(template: str) -> dict[str, Any]:
    """Every field by its full name, with SEED_MARK (as text) for seeds that follow the job's.

    Includes fields that the spec leaves out because they have their legacy value.
    """
    try:
        spec = json.loads(template.replace(SEED_MARK, '"\\u001f"'))
    except ValueError:
        return {}
    if not isinstance(spec, dict):
        return {}
    fields = flatten(spec)
    return (_catalog.legacy_values(str(fields.get("pe.name", "")), str(fields.get("task.name", "")))
            | fields)


@dataclass
class JobRows:
    """Rows with the columns of _columns.JOBS, ordered by job_id."""

    rows: Sequence[tuple[Any, ...]]
    # fetch(what, job_ids): the rows of `what` ("curves", "deposits") for these jobs.
    fetch: Callable[[str, Sequence[int]], Sequence[tuple[Any, ...]]] | None = None
    templates: list[str] = field(init=False)
    _fields: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    _epochs_to: dict[float, dict[int, int]] = field(default_factory=dict)
    _deposits: dict[int, list[tuple[Any, ...]]] | None = None

    def __post_init__(self) -> None:
        spec, seed = _PLACES["spec_json"], _PLACES["seed"]
        self.templates = [template_of(row[spec] or "", row[seed]) for row in self.rows]

    def fields(self, index: int) -> Mapping[str, Any]:
        """The fields of the job at this index, in the form of fields_of_template."""
        template = self.templates[index]
        known = self._fields.get(template)
        if known is None:
            known = self._fields[template] = fields_of_template(template)
        return known

    def value(self, index: int, name: str, argument: float | None = None) -> Any:
        """A column, a derived value, or else a field of the spec; None if the job has none."""
        place = _PLACES.get(name)
        if place is not None:
            value = self.rows[index][place]
            return bool(value) if _columns.JOBS[name] == "bool" else value
        if name == "generalisation_gap":
            train = self.value(index, "train_eval_accuracy")
            test = self.value(index, "test_accuracy")
            return None if train is None or test is None else train - test
        if name == "epochs_to" and argument is not None:
            return self._reached(argument).get(self.rows[index][0])
        return self.field(index, name)

    def indices(self, index: int, name: str) -> list[Any]:
        """A deposit index over all layers, for each of the job's head ablations."""
        place = list(_columns.DEPOSITS).index(name)
        return [row[place] for row in self._whole_models().get(self.rows[index][0], ())]

    def ablation_kinds(self) -> set[str]:
        """Method, restore policy, split and target of the jobs' head ablations."""
        first = list(_columns.DEPOSITS).index("method")
        of_jobs = self._whole_models()
        return {" ".join(str(part) for part in row[first:first + 4])
                for job in self.rows for row in of_jobs.get(job[0], ())}

    def _whole_models(self) -> dict[int, list[tuple[Any, ...]]]:
        """The deposit rows over all layers, by job."""
        if self._deposits is None:
            self._deposits = {}
            layer = list(_columns.DEPOSITS).index("layer")
            for row in self.rows_of("deposits"):
                if row[layer] is None:
                    self._deposits.setdefault(row[0], []).append(row)
        return self._deposits

    def _reached(self, accuracy: float) -> dict[int, int]:
        """The epoch, from 0, in which each job first reached this test accuracy."""
        known = self._epochs_to.get(accuracy)
        if known is None:
            known = self._epochs_to[accuracy] = {}
            places = list(_columns.CURVES)
            epoch, reached = places.index("epoch"), places.index("test_accuracy")
            for row in self.rows_of("curves"):  # rows are ordered by epoch; the first one counts
                if row[reached] is not None and row[reached] >= accuracy:
                    known.setdefault(row[0], row[epoch])
        return known

    def rows_of(self, what: str) -> Sequence[tuple[Any, ...]]:
        """The rows of "curves", "deposits" or "analyses" for these jobs."""
        return self.fetch(what, [row[0] for row in self.rows]) if self.fetch is not None else ()

    def field(self, index: int, name: str) -> Any:
        """A field of the spec; None if there is none."""
        value = self.fields(index).get(name)
        return self.rows[index][_PLACES["seed"]] if value == SEED_MARK else value

    def field_names(self) -> set[str]:
        """Every field that the spec of at least one job has."""
        return {name for index in {template: index
                                   for index, template in enumerate(self.templates)}.values()
                for name in self.fields(index)}

    def select(self, keep: Sequence[bool]) -> "JobRows":
        chosen = JobRows([row for row, wanted in zip(self.rows, keep) if wanted], self.fetch)
        chosen._fields, chosen._deposits = self._fields, self._deposits
        chosen._epochs_to = dict(self._epochs_to)  # a copy: later reads cover fewer jobs
        return chosen
