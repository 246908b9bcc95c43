"""The rules of npm's lock files: what `npm ci` installs must be said exactly, by the lock file
alone. Nothing is fetched."""
import base64
import binascii
import pathlib
import re
from typing import Any, NamedTuple

from refused import Refused, read_json

# Licences of packages that are copied into the pages, and so are given to others.
ALLOWED_LICENCES = ("0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT")

# Packages that may have an install script, with the reason. `npm ci --ignore-scripts` runs none.
INSTALL_SCRIPTS = {
    "esbuild": "the script only replaces a small start script by the program of "
               "@esbuild/PLATFORM, which works without that",
}

_VERSION = re.compile(r"\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?")
_NAME = re.compile(r"(@[a-z0-9][a-z0-9._-]*/)?[a-z0-9][a-z0-9._-]*")
_DEPENDENCIES = ("dependencies", "devDependencies")
# Other ways to bring packages in, or to change them, that nothing here needs.
_REFUSED_FIELDS = ("bundleDependencies", "bundledDependencies", "optionalDependencies",
                   "overrides", "peerDependencies", "workspaces")


class Locked(NamedTuple):
    """A package of a lock file. `bundled` ones are dependencies, the others devDependencies."""
    name: str
    version: str
    integrity: str
    licence: str
    bundled: bool


def _asked(path: pathlib.Path, holder: object) -> dict[str, dict[str, Any]]:
    """The dependencies that a package.json, or the lock file's copy of it, asks for."""
    if isinstance(holder, dict):
        found = {field: holder.get(field, {}) for field in _DEPENDENCIES}
        if all(isinstance(names, dict) for names in found.values()):
            return found
    raise Refused(f"{path}: its {' and '.join(_DEPENDENCIES)} are not objects")


def _manifest(path: pathlib.Path, manifest: dict[str, Any]) -> list[str]:
    """What is wrong with a package.json."""
    wrong = [f'{path}: has "{field}"; allowed: {" and ".join(_DEPENDENCIES)}'
             for field in _REFUSED_FIELDS if field in manifest]
    for names in _asked(path, manifest).values():
        for name, version in names.items():
            if not isinstance(version, str) or not _VERSION.fullmatch(version):
                wrong.append(f'{path}: {name} has version "{version}"; allowed: an exact one, such '
                             "as 1.2.3")
    return wrong


def _integrity(value: object) -> bool:
    """Whether it is one SHA-512 in base64."""
    if not isinstance(value, str) or not value.startswith("sha512-"):
        return False
    try:
        return len(base64.b64decode(value.partition("-")[2], validate=True)) == 64
    except binascii.Error:
        return False


def _entry(where: str, name: str, entry: dict[str, Any]) -> list[str]:
    """What is wrong with a package of a lock file."""
    version = entry.get("version")
    if entry.get("link") or "name" in entry or not _NAME.fullmatch(name):
        return [f"{where}: is a link, or another package under this name; allowed: packages of "
                "the registry under their own names"]
    wrong = []
    if not isinstance(version, str) or not _VERSION.fullmatch(version):
        wrong.append(f'{where}: has version "{version}"; allowed: an exact one, such as 1.2.3')
    # Without an address npm asks the registry that it is configured for, and compares the bytes
    # with the integrity.
    address = f"https://registry.npmjs.org/{name}/-/{name.rpartition('/')[2]}-{version}.tgz"
    if entry.get("resolved", address) != address:
        wrong.append(f'{where}: comes from "{entry["resolved"]}"; allowed: {address}, or no '
                     "address")
    if not _integrity(entry.get("integrity")):
        wrong.append(f'{where}: has integrity "{entry.get("integrity")}"; allowed: one sha512-… of '
                     "64 bytes")
    if entry.get("hasInstallScript") and name not in INSTALL_SCRIPTS:
        wrong.append(f"{where}: has an install script; only these may: "
                     f"{', '.join(sorted(INSTALL_SCRIPTS))} (deploy/supply/locks.py)")
    if not entry.get("dev") and entry.get("license") not in ALLOWED_LICENCES:
        wrong.append(f'{where}: has licence "{entry.get("license")}"; allowed in the pages: '
                     f"{', '.join(ALLOWED_LICENCES)}")
    return wrong


def _agrees(path: pathlib.Path, asked: dict[str, dict[str, Any]],
            entries: dict[str, Any]) -> list[str]:
    """In what a lock file does not do as its package.json asks."""
    wrong = []
    copy = _asked(path, entries.get("", {}))
    for field, names in asked.items():
        if copy[field] != names:
            wrong.append(f"{path}: its {field} are not those of package.json: run `npm install "
                         "--package-lock-only` beside it")
        for name, version in names.items():
            locked = entries.get(f"node_modules/{name}")
            locked = locked if isinstance(locked, dict) else {}
            found = locked.get("version")
            if found != version:
                wrong.append(f'{path}: {name} is locked as "{found}", and package.json asks for '
                             f'"{version}"')
            elif field == "dependencies" and locked.get("dev"):
                wrong.append(f"{path}: {name} is bundled, but marked as a build tool")
    return wrong


def check(folder: pathlib.Path) -> tuple[list[Locked], list[str]]:
    """The packages that the folder's package-lock.json names, sorted, and a sentence for each rule
    that it or its package.json breaks. A package that breaks a rule is not among the packages.
    Raises Refused if a file cannot be read."""
    manifest = read_json(folder / "package.json")
    path = folder / "package-lock.json"
    lock = read_json(path)
    entries = lock.get("packages")
    if lock.get("lockfileVersion") != 3 or not isinstance(entries, dict):
        raise Refused(f"{path}: is not a lock file of version 3 (npm 7 or newer)")
    wrong = _manifest(folder / "package.json", manifest)
    wrong += _agrees(path, _asked(folder / "package.json", manifest), entries)
    packages = set()
    for key, entry in entries.items():
        if not key:
            continue
        if not key.startswith("node_modules/") or not isinstance(entry, dict):
            wrong.append(f"{path}: {key}: is a folder, not a package of the registry")
            continue
        name = key.rpartition("node_modules/")[2]
        mistakes = _entry(f"{path}: {key}", name, entry)
        wrong += mistakes
        if not mistakes:
            packages.add(Locked(name, entry["version"], entry["integrity"],
                                str(entry.get("license", "")), not entry.get("dev", False)))
    return sorted(packages), wrong
