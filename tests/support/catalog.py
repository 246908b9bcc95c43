"""The names in the catalog, for scripts that have no binary to ask. They are read from the golden
keys; the test GoldenKeys.HoldEveryProtocolEncodingAndTask checks that these match the catalog.
Standard library only."""

import functools
import json
import pathlib
import re

_KEYS = pathlib.Path(__file__).resolve().parents[1] / "golden" / "canonical_keys.json"
_DEFAULT = re.compile(r"\{name: golden, protocol: (\w+), pe: (\w+), task: (\w+), seed: 0\}")


@functools.lru_cache(maxsize=None)
def default_specs():
    """Returns {(protocol, encoding, task): spec} of the default jobs, in the file's order."""
    with open(_KEYS, encoding="utf-8") as file:
        cases = json.load(file)
    named = ((_DEFAULT.fullmatch(case["document"]), case["spec"]) for case in cases)
    return {match.groups(): spec for match, spec in named if match}


def _distinct(place):
    return tuple(dict.fromkeys(name[place] for name in default_specs()))


def protocols():
    return _distinct(0)


def encodings():
    return _distinct(1)


def tasks():
    return _distinct(2)


def versions():
    """{encoding: version}"""
    return {name: spec["pe"]["version"] for (_, name, _), spec in default_specs().items()}
