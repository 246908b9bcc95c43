#!/usr/bin/env python3
"""Checks the lock files and the known advisories, without a network. Exit 1 if a rule is broken.

    check.py                             the lock files
    check.py --sbom build/sbom.cdx.json  also what the programs link (`make sbom` writes the file)

An advisory (advisories.json) that applies to a version in use is an error unless it has a decision.
This is no search for new advisories: `npm audit` and `debsecan` ask for these, with a network.
"""
from __future__ import annotations

import argparse
import pathlib
import re
import sys
from typing import Any

import advisories
import locks
from refused import Refused, read_json

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOCK_FOLDERS = ("core/pages", "tests/lint", "tests/deploy")


def linked(path: pathlib.Path) -> set[advisories.Used]:
    """The sources of the Debian packages in a file of sbom.py."""
    document = read_json(path)
    if document.get("bomFormat") != "CycloneDX":
        raise Refused(f"{path}: is not a CycloneDX document")
    found = set()
    for part in document.get("components", []):
        values = {item["name"]: item["value"] for item in part.get("properties", [])}
        release = re.search(r"[?&]distro=[a-z]+-([\w.]+)", part.get("purl", ""))
        if "pelab:source" in values:
            found.add(advisories.Used("debian", values["pelab:source"],
                                      values["pelab:source_version"],
                                      release[1] if release else ""))
    return found


def judge(known: list[dict[str, Any]],
          used: set[advisories.Used]) -> tuple[list[str], list[str]]:
    """A line for each advisory that applies and has a decision, and one for each that has none."""
    decided, wrong = [], []
    for advisory in known:
        for item in sorted(used):
            if not advisories.applies(advisory, item):
                continue
            decision = advisory.get("decision")
            if decision is None:
                wrong.append(f"{advisory['id']} applies to {item}: {advisory['summary']}. Take a "
                             "version without it, or write a decision into advisories.json")
            else:
                decided.append(f"{advisory['id']}: {item}: {decision['status']}: "
                               f"{decision['why']}")
    return decided, wrong


def check(root: pathlib.Path, sbom: pathlib.Path | None) -> tuple[list[str], list[str]]:
    """What there is to say, and what is wrong. Raises Refused if a file cannot be read."""
    wrong: list[str] = []
    locked: set[advisories.Used] = set()
    for folder in LOCK_FOLDERS:
        packages, mistakes = locks.check(root / folder)
        wrong += mistakes
        locked |= {advisories.Used("npm", package.name, package.version) for package in packages}
    known = advisories.read(root / "deploy/supply/advisories.json", root)
    if not wrong:  # otherwise, packages are missing
        names = {item.package for item in locked}
        wrong += [f"advisories.json: {advisory['id']} is about {advisory['package']}, which no "
                  "lock file has: remove it, or correct the name" for advisory in known
                  if advisory["ecosystem"] == "npm" and advisory["package"] not in names]
    sources = linked(sbom) if sbom else set()
    said, undecided = judge(known, locked | sources)
    said.append(f"{len(locked)} locked packages keep the rules; of {len(known)} known advisories, "
                f"each that applies to these or to {len(sources)} linked sources has a decision")
    wrong += undecided
    return (said[:-1] if wrong else said), wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--root", type=pathlib.Path, default=ROOT, help="the checkout")
    parser.add_argument("--sbom", type=pathlib.Path, help="a file of sbom.py")
    options = parser.parse_args()
    try:
        said, wrong = check(options.root, options.sbom)
    except Refused as error:
        said, wrong = [], [str(error)]
    for sentence in said:
        print(sentence)
    for sentence in wrong:
        print(f"check.py: {sentence}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
