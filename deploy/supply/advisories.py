"""Known defects of libraries and packages, and what pelab does about each (advisories.json).

The list is written by hand. An advisory has an `id`, the `package` (npm's name, or Debian's name of
the source), its `ecosystem`, the versions that are `affected` ("< 1.2.3", ">= 2.0.0 < 2.1.0"; those
of the authors, not Debian's) and a `summary`. `debian` names the first package without the defect
in a release, because Debian mends older versions. A `decision` says why pelab can live with it:

    not-affected  pelab does not use what is defective
    mitigated     pelab has a limit or a check of its own before it
    accepted      it stays possible; `see` has the page that says what to do about it
"""
from __future__ import annotations

import operator
import pathlib
import re
from typing import Any, NamedTuple

import versions
from refused import Refused, read_json

STATUSES = ("not-affected", "mitigated", "accepted")
_ID = re.compile(r"CVE-\d{4}-\d{4,}|GHSA(-[0-9a-z]{4}){3}")
_BOUND = re.compile(r"(<|>=|=) (\d\S*)")
_FIELDS = {"id", "package", "ecosystem", "affected", "summary"}


class Used(NamedTuple):
    """What is locked or linked. `release` is that of the system, such as "12"."""
    ecosystem: str
    package: str
    version: str
    release: str = ""

    def __str__(self) -> str:
        return f"{self.package} {self.version}"


def _within(bounds: str, version: str) -> bool:
    """Whether the authors' version is within the bounds."""
    here = versions.authors(version)
    tests = {"<": operator.lt, ">=": operator.ge, "=": operator.eq}
    return all(tests[sign](here, versions.authors(bound)) for sign, bound in _BOUND.findall(bounds))


def applies(advisory: dict[str, Any], used: Used) -> bool:
    if (advisory["ecosystem"], advisory["package"]) != (used.ecosystem, used.package):
        return False
    version = used.version
    if used.ecosystem == "debian":
        mended = advisory.get("debian", {}).get(used.release)
        if mended and versions.debian(version) >= versions.debian(mended):
            return False
        version = versions.upstream(version)
    return any(_within(bounds, version) for bounds in advisory["affected"])


def _wrong(advisory: dict[str, Any], root: pathlib.Path) -> str | None:
    """What is wrong with an entry of the list."""
    if not isinstance(advisory, dict) or not isinstance(advisory.get("decision", {}), dict):
        return "it, or its decision, is not an object"
    missing = _FIELDS - set(advisory)
    unknown = set(advisory) - _FIELDS - {"debian", "decision"}
    if missing or unknown:
        return f"{', '.join(sorted(missing | unknown))} is missing or unknown"
    if not _ID.fullmatch(advisory["id"]):
        return "its id is not that of a CVE or GHSA"
    if advisory["ecosystem"] not in ("npm", "debian"):
        return f'its ecosystem is "{advisory["ecosystem"]}"; allowed: npm, debian'
    bounds = advisory["affected"]
    if not isinstance(bounds, list) or not bounds or not all(
            isinstance(text, str) and text and not _BOUND.sub("", text).strip()
            for text in bounds):
        return f'affected is {bounds}; allowed: texts such as "< 1.2.3" and ">= 2.0.0 < 2.1.0"'
    decision = advisory.get("decision")
    if decision is None:
        return None
    if decision.get("status") not in STATUSES:
        return f'the decision is "{decision.get("status")}"; allowed: {", ".join(STATUSES)}'
    sees = decision["status"] == "not-affected" or decision.get("see")
    if not decision.get("why") or not sees:
        return "the decision does not say why, or not where to see it"
    lost = [name for name in decision.get("see", []) if not (root / name).exists()]
    return f"{lost[0]} does not exist" if lost else None


def read(path: pathlib.Path, root: pathlib.Path) -> list[dict[str, Any]]:
    """The list. Raises Refused if an entry is not as above. `root` is the folder of `see`."""
    found = read_json(path).get("advisories")
    if not isinstance(found, list):
        raise Refused(f"{path}: has no list \"advisories\"")
    seen = set()
    for at, advisory in enumerate(found):
        wrong = _wrong(advisory, root)
        if not wrong and (advisory["id"], advisory["package"]) in seen:
            wrong = "stands twice in the list"
        if wrong:
            name = advisory.get("id") if isinstance(advisory, dict) else None
            raise Refused(f"{path}: {name or f'advisories[{at}]'}: {wrong}")
        seen.add((advisory["id"], advisory["package"]))
    return found
