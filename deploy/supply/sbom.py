#!/usr/bin/env python3
"""Writes what pelab's programs are made of as CycloneDX 1.5 JSON: `make sbom`.

    sbom.py --bin build/release/bin --out build/sbom.cdx.json

The four programs, the Debian packages of the libraries that they load, the libraries that are
compiled in, and the npm packages of core/pages/package-lock.json: those in the pages, and, with
scope "excluded", those that only build them. The same inputs give the same bytes: the time is
SOURCE_DATE_EPOCH or that of the last commit, and the serial number is made from the content.
"""
from __future__ import annotations

import argparse
import base64
import datetime
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import urllib.parse
import uuid
from typing import Any

import licences
import linked
import locks
from refused import Refused

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ("pelab", "pelab-server", "pelab-worker", "pelab-trainer", "pelab-scale")
OWN_LICENCE = [{"license": {"id": "Apache-2.0"}}]

Json = dict[str, Any]


def version() -> str:
    text = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    found = re.search(r"project\(pelab VERSION ([\d.]+)", text)
    if not found:
        raise Refused("CMakeLists.txt does not say pelab's version")
    return found[1]


def timestamp() -> str | None:
    """SOURCE_DATE_EPOCH, else the time of the last commit; None if there is neither."""
    seconds = os.environ.get("SOURCE_DATE_EPOCH")
    if seconds is None:
        done = subprocess.run(["git", "-C", ROOT, "log", "-1", "--format=%ct"],
                              capture_output=True, text=True, check=False)
        seconds = done.stdout.strip()
        if done.returncode or not seconds:
            return None
    if not re.fullmatch(r"\d{1,11}", seconds):
        raise Refused(f'SOURCE_DATE_EPOCH is "{seconds}"; allowed: whole seconds since 1970')
    moment = datetime.datetime.fromtimestamp(int(seconds), datetime.timezone.utc)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def distribution() -> tuple[str, str]:
    """The name and the release of the system, such as debian and debian-12."""
    fields = {}
    try:
        for line in pathlib.Path("/etc/os-release").read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition("=")
            fields[name] = value.strip('"')
    except OSError:
        pass
    name = fields.get("ID", "debian")
    release = fields.get("VERSION_ID") or fields.get("VERSION_CODENAME")
    return name, f"{name}-{release}" if release else name


def digest(path: pathlib.Path) -> str:
    found = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            found.update(block)
    return found.hexdigest()


def properties(**values: str) -> list[Json]:
    return [{"name": f"pelab:{name}", "value": value} for name, value in sorted(values.items())]


def package_component(package: linked.Package, use: str) -> Json:
    name, release = distribution()
    purl = (f"pkg:deb/{name}/{urllib.parse.quote(package.name, safe='')}@"
            f"{urllib.parse.quote(package.version, safe=':')}"
            f"?arch={package.architecture}&distro={release}")
    return {"type": "library", "bom-ref": purl, "name": package.name, "version": package.version,
            "purl": purl, "scope": "required", "licenses": licences.of_debian(package.name),
            "properties": properties(use=use, source=package.source,
                                     source_version=package.source_version)}


def file_component(path: str) -> Json:
    """A library that no package has."""
    content = digest(pathlib.Path(path))
    name = os.path.basename(path)
    return {"type": "library", "bom-ref": f"file:{name}:{content[:16]}", "name": name,
            "scope": "required", "hashes": [{"alg": "SHA-256", "content": content}],
            "properties": properties(use="shared library")}


def npm_component(package: locks.Locked) -> Json:
    purl = f"pkg:npm/{urllib.parse.quote(package.name)}@{urllib.parse.quote(package.version)}"
    content = base64.b64decode(package.integrity.partition("-")[2]).hex()
    return {"type": "library", "bom-ref": purl, "name": package.name, "version": package.version,
            "purl": purl, "scope": "required" if package.bundled else "excluded",
            "hashes": [{"alg": "SHA-512", "content": content}],
            "licenses": licences.of_npm(package.name, package.licence),
            "properties": properties(use="bundled into the pages" if package.bundled
                                     else "build tool")}


def describe(programs: list[pathlib.Path], packages: list[locks.Locked]) -> Json:
    """The document, but for its serial number."""
    uses = linked.linked(programs)
    # Several libraries of one package are one part.
    of_packages = {package: package_component(package, "shared library")
                   for package in set(uses.packages.values())}
    parts = {path: of_packages[uses.packages[path]] if path in uses.packages
             else file_component(path) for path in uses.needs}
    refs = {path: part["bom-ref"] for path, part in parts.items()}
    components = {part["bom-ref"]: part for part in parts.values()}
    depends: dict[str, set[str]] = {ref: set() for ref in components}
    for path, names in uses.needs.items():
        depends[refs[path]] |= {refs[name] for name in names} - {refs[path]}
    inside = [package_component(package, "compiled in") if package else
              {"type": "library", "bom-ref": f"compiled-in:{name}", "name": name,
               "scope": "required", "properties": properties(use="compiled in")}
              for name, package in uses.compiled_in.items()]
    npm = [npm_component(package) for package in packages]
    own = version()
    for program in programs:
        ref = f"{program.name}@{own}"
        components[ref] = {"type": "application", "bom-ref": ref, "name": program.name,
                           "version": own, "licenses": OWN_LICENCE, "scope": "required",
                           "hashes": [{"alg": "SHA-256", "content": digest(program)}]}
        depends[ref] = {refs[path] for path in uses.direct[str(program)]}
    components |= {part["bom-ref"]: part for part in [*inside, *npm]}
    depends[f"pelab@{own}:all"] = {
        *(f"{program.name}@{own}" for program in programs),
        *(part["bom-ref"] for part in [*inside, *npm] if part["scope"] == "required")}
    metadata: Json = {
        "component": {"type": "application", "bom-ref": f"pelab@{own}:all", "name": "pelab",
                      "version": own, "licenses": OWN_LICENCE},
        "lifecycles": [{"phase": "post-build"}]}
    made = timestamp()
    if made:
        metadata["timestamp"] = made
    return {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "metadata": metadata,
            "components": [components[ref] for ref in sorted(components)],
            "dependencies": [{"ref": ref, "dependsOn": sorted(depends[ref])}
                             for ref in sorted(depends)]}


def write(document: Json, out: pathlib.Path) -> None:
    """Writes the document under its name only when it is whole."""
    content = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
    serial = uuid.uuid5(uuid.NAMESPACE_URL, f"pelab:sbom:{content}")
    text = json.dumps({"serialNumber": f"urn:uuid:{serial}", **document}, indent=2, sort_keys=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    partial = out.with_name(out.name + ".partial")
    partial.write_text(text + "\n", encoding="utf-8")
    partial.replace(out)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="folder of the programs")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="file to write")
    parser.add_argument("--pages", type=pathlib.Path, default=ROOT / "core" / "pages",
                        help="folder of the pages' package-lock.json")
    options = parser.parse_args()
    try:
        programs = [options.bin / name for name in PROGRAMS if (options.bin / name).is_file()]
        if not programs:
            raise Refused(f"{options.bin} has none of {', '.join(PROGRAMS)}: run `make build`")
        for name in PROGRAMS:
            if options.bin / name not in programs:
                print(f"sbom.py: {options.bin} has no {name}: it is left out", file=sys.stderr)
        packages, wrong = locks.check(options.pages)
        if wrong:
            raise Refused("\nsbom.py: ".join(wrong))
        document = describe(programs, packages)
        write(document, options.out)
    except (Refused, OSError) as error:
        print(f"sbom.py: {error}", file=sys.stderr)
        return 1
    print(f"{options.out}: {len(document['components'])} components")
    return 0


if __name__ == "__main__":
    sys.exit(main())
