#!/usr/bin/env python3
"""Checks the form of the sources: `make lint`. Exit 1 if anything is found.

    lint.py --build DIR                  everything, with clang-tidy over all C++ sources
    lint.py --build DIR --changed        the same, but clang-tidy over the changed sources only
    lint.py --build DIR --changed --minutes 4
                                         clang-tidy starts nothing more after four minutes, and
                                         names what it did not reach; that is no failure

DIR is a configured build folder with the generated headers. What was found clean is remembered in
build/lint by content, so a second run takes seconds.

--changed compares the working tree with a commit: --base if it is given, else where HEAD left
origin/main, else, on main itself, HEAD~1. Where none of these exists (a clone without history),
clang-tidy is left out. A changed header alone has no source checked: all that include it would be.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence

from cache import Cache, digest
from names import hidden
from tidy import Tidy, groups

COLUMNS = 100
CLANG = "14"  # others format otherwise and have other checks; Debian 13 has newer ones only
CODE = re.compile(r"\.(cc|h|cu|cuh|proto|py|js|mjs|css|html|sh|cmake|in)$|(^|/)(CMakeLists.txt|"
                  r"Makefile|run)$")
CPP = re.compile(r"\.(cc|h|cu|cuh)$")
NPM = ("package.json", "package-lock.json", "eslint.config.js")
HERE = pathlib.Path(__file__).resolve().parent


class Lint:
    def __init__(self, root: pathlib.Path, build: pathlib.Path) -> None:
        self.root, self.build = root, build
        self.work = root / "build" / "lint"
        self.cache = Cache(self.work / "cache")
        listed = self._git("ls-files", "--cached", "--others", "--exclude-standard").split("\n")
        self.files = sorted(name for name in set(listed) if (root / name).is_file())
        self.failed: list[str] = []

    def _git(self, *words: str, check: bool = True) -> str:
        done = subprocess.run(["git", *words], cwd=self.root, capture_output=True, text=True,
                              check=check)
        return done.stdout.strip() if done.returncode == 0 else ""

    def report(self, name: str, found: Iterable[str], checked: int, total: int) -> None:
        """Prints a check's findings, and how many of its files were not known to be clean."""
        lines = [line for line in found if line]
        for line in lines:
            print(line)
        known = f", {total - checked} unchanged" if total > checked else ""
        print(f"{name}: {'FAILED' if lines else 'ok'} ({total} files{known})", flush=True)
        if lines:
            self.failed.append(name)

    def clang(self, program: str) -> bool:
        """Whether the program is of the version that the sources are held to; says so if not."""
        said = subprocess.run([program, "--version"], capture_output=True, text=True,
                              check=True).stdout
        fits = f"version {CLANG}." in said
        if not fits:
            print(f"{program}: left out, the sources are held to version {CLANG}")
        return fits

    def columns(self) -> None:
        """Lines of code end at 100 columns."""
        names = [name for name in self.files if CODE.search(name)]
        found = []
        for name in names:
            for number, line in enumerate((self.root / name).read_text().split("\n"), 1):
                if len(line) > COLUMNS:
                    found.append(f"{name}:{number}: {len(line)} columns, more than {COLUMNS}")
        self.report("columns", found, len(names), len(names))

    def names(self) -> None:
        """A name of an unnamed namespace hides no other one, for the sources of its unit."""
        names = [name for name in self.files if name.endswith(".cc")]
        self.report("names", dict.fromkeys(hidden(self.build, self.root)), len(names), len(names))

    def tool(self, name: str, command: Sequence[str | pathlib.Path], names: Sequence[str],
             configuration: Sequence[pathlib.Path], version: Sequence[str]) -> None:
        """Runs a command over those of the files that are not known to be clean, some at a time."""
        said = subprocess.run(version, capture_output=True, text=True, check=True).stdout
        tool = digest(name, said, *map(str, command[1:]),
                      *(path.read_bytes() for path in configuration))
        keys = {path: digest(tool, path, (self.root / path).read_bytes()) for path in names}
        left = [path for path in names if not self.cache.has(keys[path])]
        parts = [left[at:at + 50] for at in range(0, len(left), 50)]
        found = []
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for part, done in zip(parts, pool.map(lambda part: subprocess.run(
                    [*command, *part], cwd=self.root, stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT, text=True), parts)):
                if done.returncode:
                    found += [done.stdout or f"{name} ended with {done.returncode}"]
                else:
                    for path in part:
                        self.cache.keep(keys[path])
        self.report(name, found, len(left), len(names))

    def scripts(self) -> None:
        """The pages' scripts, by ESLint from the npm registry (or npm's cache)."""
        folder = self.work / "npm"
        key = digest("npm", *((HERE / name).read_bytes() for name in NPM))
        if not (folder / "installed").exists() or (folder / "installed").read_text() != key:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            for name in NPM:
                shutil.copy(HERE / name, folder)
            subprocess.run(["npm", "ci", "--ignore-scripts", "--prefer-offline", "--no-audit",
                            "--no-fund", "--loglevel=error"], cwd=folder, check=True,
                           stdout=subprocess.DEVNULL)
            (folder / "installed").write_text(key)
        program = folder / "node_modules" / "eslint" / "bin" / "eslint.js"
        names = [name for name in self.files if re.search(r"\.m?js$", name)]
        self.tool("eslint", ["node", program, "--max-warnings=0", "--config",
                             folder / "eslint.config.js"], names,
                  [HERE / "package-lock.json", HERE / "eslint.config.js"],
                  ["node", "--version"])

    def types(self) -> None:
        """The Python package's types, by mypy, with its own configuration and generated modules."""
        folder = self.build / "python"
        names = sorted(path for path in folder.rglob("*") if path.suffix in (".py", ".pyi", ".toml")
                       and "build" not in path.relative_to(folder).parts)
        said = subprocess.run(["mypy", "--version"], capture_output=True, text=True,
                              check=True).stdout
        key = digest("mypy", said, *(path.read_bytes() for path in names))
        found = []
        checked = 0 if self.cache.has(key) else len(names)
        if checked:
            done = subprocess.run(["mypy", "-p", "pelab"], cwd=folder, capture_output=True,
                                  text=True)
            if done.returncode:
                found = [done.stdout + done.stderr]
            else:
                self.cache.keep(key)
        self.report("mypy", found, checked, len(names))

    def base(self, given: str | None) -> str:
        """The commit to compare with; empty if there is none."""
        head = self._git("rev-parse", "HEAD", check=False)
        for ref in [given] if given else ["origin/main", "HEAD~1"]:
            found = self._git("merge-base", ref, "HEAD", check=False)
            if found and found != head:
                return found
        return ""

    def changed(self, given: str | None) -> set[str]:
        base = self.base(given)
        if not base:
            print("clang-tidy: no commit to compare with")
            return set()
        names = self._git("diff", "--name-only", "--diff-filter=d", base).split("\n")
        return set(names) | set(self._git("ls-files", "--others", "--exclude-standard").split("\n"))

    def tidy(self, only: set[str] | None, minutes: float | None) -> None:
        """clang-tidy over all C++ sources, or over those in `only`."""
        tidy = Tidy(self.cache, self.root, self.work / "tidy")
        every = groups(self.build, self.root, only)
        left = [group for group in every if not self.cache.has(tidy.key(group))]
        until = None if minutes is None else time.monotonic() + 60 * minutes
        found: list[str] = []
        missed: list[str] = []
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for group, lines in zip(left, pool.map(lambda one: tidy.check(one, until), left)):
                if lines is None:
                    missed += group.sources
                else:
                    found += lines
        if missed:
            print(f"clang-tidy: not reached in {minutes:g} minutes: {' '.join(missed)}")
        self.report("clang-tidy", dict.fromkeys(found), sum(len(group.sources) for group in left),
                    sum(len(group.sources) for group in every))

    def run(self, options: argparse.Namespace) -> bool:
        """All checks; true if nothing is found."""
        def ending(pattern: str) -> list[str]:
            return [name for name in self.files if re.search(pattern, name)]

        self.columns()
        self.names()
        if self.clang("clang-format"):
            self.tool("clang-format", ["clang-format", "--dry-run", "--Werror"],
                      ending(CPP.pattern), [self.root / ".clang-format"],
                      ["clang-format", "--version"])
        self.tool("flake8", ["flake8"], ending(r"\.py$"), [self.root / ".flake8"],
                  ["flake8", "--version"])
        self.tool("shellcheck", ["shellcheck", "--severity=warning"], ending(r"\.sh$|^\.ci/run$"),
                  [self.root / ".shellcheckrc"], ["shellcheck", "--version"])
        self.scripts()
        self.types()
        if self.clang("clang-tidy"):
            self.tidy(self.changed(options.base) if options.changed else None, options.minutes)
        return not self.failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--build", type=pathlib.Path, required=True, help="a configured folder")
    parser.add_argument("--root", type=pathlib.Path, default=HERE.parents[1], help="the sources")
    parser.add_argument("--changed", action="store_true",
                        help="clang-tidy over the changed sources only")
    parser.add_argument("--base", help="the commit to compare with, for --changed")
    parser.add_argument("--minutes", type=float, help="clang-tidy's time")
    options = parser.parse_args()
    return 0 if Lint(options.root.resolve(), options.build.resolve()).run(options) else 1


if __name__ == "__main__":
    sys.exit(main())
