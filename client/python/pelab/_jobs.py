"""Jobs with the fields of their specs, read once for all seeds of a configuration."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pelab import _columns

SEED_MARK = "\x1f"  # in a template, wherever a seed has the value of the job's own
_PLACES = {name: place for place, name in enumerate(_columns.JOBS)}


def flatten(value: Any, prefix: str = "", out: dict[str, Any] | None = None) -> dict[str, Any]:
    """{"train": {"lr": 1e-4}} as {"train.lr": 1e-4}."""
    fields: dict[str, Any] = {} if out is None else out
    if not isinstance(value, dict):
        fields[prefix] = value
        return fields
    for name, member in value.items():
        flatten(member, f"{prefix}.{name}" if prefix else name, fields)
    return fields


def template_of(spec_json: str, seed: int) -> str:
    """The spec with SEED_MARK for the seeds that have the job's own value: equal for replicates."""
    digits = str(seed)
    template = spec_json
    for before in ('"seed":', '_seed":'):
        for end in ",}":
            template = template.replace(before + digits + end, before + SEED_MARK + end)
    return template


def fields_of_template(template: str) -> dict[str, Any]:
    """Every field by its full name, with SEED_MARK (as text) for seeds that follow the job's."""
    try:
        spec = json.loads(template.replace(SEED_MARK, '"\\u001f"'))
    except ValueError:
        return {}
    return flatten(spec) if isinstance(spec, dict) else {}


@dataclass
class JobRows:
    """Rows with the columns of _columns.JOBS, by job_id."""

    rows: Sequence[tuple[Any, ...]]
    templates: list[str] = field(init=False)
    _fields: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        spec, seed = _PLACES["spec_json"], _PLACES["seed"]
        self.templates = [template_of(row[spec] or "", row[seed]) for row in self.rows]

    def fields(self, index: int) -> Mapping[str, Any]:
        """As fields_of_template gives them, of the job at this place."""
        template = self.templates[index]
        known = self._fields.get(template)
        if known is None:
            known = self._fields[template] = fields_of_template(template)
        return known

    def value(self, index: int, name: str) -> Any:
        """A column, or else a field of the spec; None where there is neither."""
        place = _PLACES.get(name)
        if place is not None:
            return self.rows[index][place]
        return self.field(index, name)

    def field(self, index: int, name: str) -> Any:
        """A field of the spec."""
        value = self.fields(index).get(name)
        return self.rows[index][_PLACES["seed"]] if value == SEED_MARK else value

    def field_names(self) -> set[str]:
        """Every field that the spec of any of the jobs has."""
        return {name for index in {template: index for index, template in enumerate(self.templates)}.values()
                for name in self.fields(index)}

    def select(self, keep: Sequence[bool]) -> "JobRows":
        chosen = JobRows([row for row, wanted in zip(self.rows, keep) if wanted])
        chosen._fields = self._fields
        return chosen
