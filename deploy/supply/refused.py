"""What the scripts of this folder raise if they cannot do what they were asked to do."""
import json
import pathlib
from collections.abc import Iterable
from typing import Any


class Refused(Exception):
    """Its text is one sentence for a person."""


def _once(path: pathlib.Path, pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise Refused(f'{path}: "{name}" stands twice in one object')
        found[name] = value
    return found


def read_json(path: pathlib.Path) -> dict[str, Any]:
    """The object in the file. A name that stands twice is refused: readers differ about it."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"{path}: cannot be read: {error}") from error
    try:
        found = json.loads(text, object_pairs_hook=lambda pairs: _once(path, pairs))
    except (json.JSONDecodeError, RecursionError) as error:
        raise Refused(f"{path}: is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise Refused(f"{path}: is not a JSON object")
    return found
