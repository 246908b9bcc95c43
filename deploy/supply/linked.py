"""Which libraries the programs load, and which Debian packages these come from.

A library without a package, such as a LibTorch from elsewhere, is named by its file. Of the
libraries that a program opens while it runs, those of OPENED are among them, and NVIDIA's NVML is
not: it is the host's.
"""
from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
from collections.abc import Iterable
from typing import NamedTuple

from refused import Refused

# Compiled into the programs: what deploy/install-deps.sh installs, and a header of it. The package
# that has the header may be another one (libboost-dev installs libboost1.74-dev).
COMPILED_IN = {
    "libboost-dev": "boost/math/distributions/students_t.hpp",
    "libcli11-dev": "CLI/CLI.hpp",
    "libsqlitecpp-dev": "SQLiteCpp/SQLiteCpp.h",  # a static library in Debian 12
    "nlohmann-json3-dev": "nlohmann/json.hpp",
}
HEADERS = pathlib.Path("/usr/include")
# What a program opens when it first needs it (client/figure/cairo_library.h).
OPENED = {"pelab": ["libcairo.so.2"]}
LDCONFIG = shutil.which("ldconfig", path="/usr/sbin:/sbin") or "ldconfig"


class Package(NamedTuple):
    name: str
    version: str
    architecture: str
    source: str
    source_version: str


class Linked(NamedTuple):
    direct: dict[str, set[str]]  # program -> paths of the libraries that it names itself
    needs: dict[str, set[str]]  # path of a library -> paths of the libraries that it names
    packages: dict[str, Package]  # path of a library -> its package, if it has one
    # What is compiled in, by its name in COMPILED_IN; None if no package has the header.
    compiled_in: dict[str, Package | None]


def _run(*words: str | pathlib.Path, may_fail: bool = False) -> str:
    try:
        done = subprocess.run(list(map(str, words)), capture_output=True, text=True,
                              env={**os.environ, "LC_ALL": "C"}, check=False)
    except FileNotFoundError as error:
        raise Refused(f"{words[0]} is missing: it says what the programs link") from error
    if done.returncode and not may_fail:
        said = (done.stderr or done.stdout).strip().split("\n")[0]
        raise Refused(f"{' '.join(map(str, words[:3]))}: exit {done.returncode}: {said}")
    return done.stdout


def loads(program: pathlib.Path) -> dict[str, str]:
    """The name of each library that the program loads -> its file.

    Without those whose name is taken by an empty library beside the program
    (docs/adr/0058-libraries-left-out.md).
    """
    found = _loads(program)
    for name in OPENED.get(program.name, []):
        found[name] = os.path.realpath(_installed(name))
        found.update(_loads(pathlib.Path(found[name])))
    return found


def _installed(name: str) -> str:
    """The file that the loader takes for the name."""
    line = rf"^\s*{re.escape(name)} \(libc6[^)]*\) => (/\S+)"
    path = re.search(line, _run(LDCONFIG, "-p"), re.MULTILINE)
    if not path:
        raise Refused(f"{name} is missing, which a program opens while it runs")
    return path[1]


def _loads(program: pathlib.Path) -> dict[str, str]:
    empty = os.path.realpath(program.parent.parent / "lib" / "pelab-trainer" / "empty")
    found = {}
    for line in _run("ldd", program).split("\n"):
        name, arrow, rest = line.strip().partition(" => ")
        if arrow and rest.startswith("not found"):
            raise Refused(f"{program} needs {name}, which is not installed")
        path = (rest if arrow else name).partition(" (")[0]
        if path.startswith("/") and os.path.dirname(os.path.realpath(path)) != empty:
            found[os.path.basename(name.partition(" (")[0])] = os.path.realpath(path)
    return found


def _needed(paths: list[str]) -> dict[str, list[str]]:
    """The names of the libraries that each file asks for itself."""
    found: dict[str, list[str]] = {path: [] for path in paths}
    path = paths[0]  # readelf names a file only if it is not alone
    for line in _run("readelf", "-d", "-W", *paths).split("\n"):
        if line.startswith("File: "):
            path = line[len("File: "):]
        needed = re.search(r"\(NEEDED\).*\[(.+)\]", line)
        if needed:
            found[path].append(needed[1])
    return found


def packages_of(paths: Iterable[str]) -> dict[str, Package]:
    """The installed Debian package of each file that has one."""
    spellings = {}
    for path in paths:
        spellings[path] = path
        # A package may have the file as /lib/… although /lib is a link to /usr/lib.
        if path.startswith("/usr/lib"):
            spellings[path[len("/usr"):]] = path
        elif path.startswith("/lib"):
            spellings["/usr" + path] = path
    if not spellings or not shutil.which("dpkg-query"):
        return {}
    owners = {}
    for line in _run("dpkg-query", "-S", *sorted(spellings), may_fail=True).split("\n"):
        names, _, path = line.partition(": ")
        if path in spellings and not names.startswith("diversion "):
            owners[spellings[path]] = names.split(",")[0]
    if not owners:
        return {}
    fields = ("binary:Package", "Package", "Version", "Architecture", "source:Package",
              "source:Version")
    known = {}
    for line in _run("dpkg-query", "-W", "-f", "\\t".join(f"${{{field}}}" for field in fields) +
                     "\\n", *sorted(set(owners.values()))).splitlines():
        name, *values = line.split("\t")
        known[name] = known[name.partition(":")[0]] = Package(*values)
    return {path: known[name] for path, name in owners.items()}


def linked(programs: list[pathlib.Path]) -> Linked:
    """What the programs link. Raises Refused if a library is missing."""
    loaded = {str(program): loads(program) for program in programs}
    files: dict[str, str] = {}
    for names in loaded.values():
        files.update(names)
    needed = _needed([*loaded, *sorted(set(files.values()))])
    for program in programs:
        needed[str(program)] += OPENED.get(program.name, [])
    direct = {program: {names[name] for name in needed[program] if name in names}
              for program, names in loaded.items()}
    needs = {path: {files[name] for name in needed[path] if name in files}
             for path in set(files.values())}
    headers = {name: str(HEADERS / header) for name, header in COMPILED_IN.items()}
    packages = packages_of([*needs, *headers.values()])  # one question: it reads long lists
    inside = {name: packages.pop(path, None) for name, path in headers.items()}
    # A library that another release of Debian has as a shared one is linked, and named so.
    shared = {package.source for package in packages.values()}
    inside = {name: package for name, package in inside.items()
              if package is None or package.source not in shared}
    return Linked(direct, needs, packages, inside)
