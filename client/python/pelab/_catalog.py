"""The catalog of the pelab that this package was built with: names, types and choices.

`pelab catalog` shows the same catalog.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any

from pelab.errors import InvalidInput, NotFound

CUSTOM = "custom"  # the protocol of jobs that depart from every named protocol


@dataclass(frozen=True)
class Field:
    """A field of a job's spec. Fields of the same name have the same type, whatever their owner."""

    name: str
    owner: str  # the PE or task that has this field; empty: every job
    type: str  # bool, int, real, choice, set or int set
    choices: tuple[str, ...]
    legacy: Any  # the value if a spec lacks the field; None: there is no such value


@lru_cache(maxsize=None)
def _read() -> Any:
    return json.loads(resources.files("pelab").joinpath("catalog.json").read_text(encoding="utf-8"))


@lru_cache(maxsize=None)
def _fields() -> tuple[Field, ...]:
    return tuple(Field(one["name"], one["owner"], one["type"], tuple(one["choices"]),
                       frozen(one.get("legacy"))) for one in _read()["fields"])


@lru_cache(maxsize=None)
def _by_name() -> Mapping[str, Field]:
    return {one.name: one for one in reversed(_fields())}


def frozen(value: Any) -> Any:
    """Turns JSON lists into tuples, which can be compared, grouped by and used as keys."""
    return tuple(map(frozen, value)) if isinstance(value, list) else value


def field(name: str) -> Field | None:
    """The field of this full name ("train.lr"); None if there is none."""
    return _by_name().get(name)


def field_names() -> set[str]:
    return set(_by_name())


def pes() -> list[str]:
    return list(_read()["pe"])


def tasks() -> list[str]:
    return list(_read()["task"])


def protocols() -> list[str]:
    return [*_read()["protocol"], CUSTOM]


def choices(name: str) -> tuple[str, ...]:
    """The choices of all fields of this name."""
    return tuple(dict.fromkeys(choice for one in _fields() if one.name == name
                               for choice in one.choices))


def legacy_values(pe: str, task: str) -> dict[str, Any]:
    """The fields that a spec of this PE and task may leave out, with the values they then have."""
    return {one.name: one.legacy
            for one in _fields() if one.legacy is not None and one.owner in ("", pe, task)}


def hint(word: str, known: Iterable[str]) -> str:
    """The known word that was probably meant, or an empty text."""
    near = difflib.get_close_matches(word, sorted(known), 1)
    return near[0] if near else ""


def unknown_text(what: str, word: str, known: Iterable[str]) -> str:
    """A message that names the unknown word, a likely correction and the known words."""
    names = list(known)
    near = hint(word, names)
    meant = f" did you mean {near}?" if near else ""
    return f'{what} "{word}";{meant} known: {", ".join(names) if names else "none"}'


def unknown(what: str, word: str, known: Iterable[str]) -> InvalidInput:
    """An error with unknown_text's message."""
    return InvalidInput(unknown_text(f"unknown {what}", word, known))


def no_sweep(sweep: str, names: Iterable[str]) -> NotFound:
    """An error for a sweep that does not exist; `names` are the existing sweeps, newest first."""
    return _not_found("no sweep", sweep, names)


def no_sheet(sheet: str, names: Iterable[str]) -> NotFound:
    """An error for a sheet that is not registered; `names` are those that are, newest first."""
    return _not_found("no sheet", sheet, names)


def _not_found(what: str, word: str, names: Iterable[str]) -> NotFound:
    known = list(dict.fromkeys(names))
    return NotFound(unknown_text(what, word, known[:20] + ["…"] * (len(known) > 20)))
