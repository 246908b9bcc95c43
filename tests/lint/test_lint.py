#!/usr/bin/env python3
"""Holds lint.py to its promises: a mistake of each kind is found, also after a clean run, and what
was clean is not looked at again. Run by hand: it needs what `make lint` needs, and a minute.

    tests/lint/test_lint.py [BUILD_DIR]
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from names import hidden

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CLEAN = {
    "core/sum.h": "int Sum(int a, int b);\n",
    "core/sum.cc": '#include "core/sum.h"\n\nint Sum(int a, int b) { return a + b; }\n',
    "core/twice.cc": '#include "core/sum.h"\n\nint Twice(int a) { return Sum(a, a); }\n',
    "core/page.js": "export const twice = (a) => 2 * a;\n",
    "tests/sum.py": "def twice(a):\n    return 2 * a\n",
    "deploy/sum.sh": '#!/bin/sh\necho "$1"\n',
    "build/dev/python/pelab/__init__.py": "def twice(a: int) -> int:\n    return 2 * a\n",
}
MISTAKES = {
    "columns": ("core/sum.h", f"// {'x' * 98}\n"),
    "clang-format": ("core/sum.h", "int  Other();\n"),
    "flake8": ("tests/sum.py", "\n\nimport os\n"),
    "shellcheck": ("deploy/sum.sh", "cd $1\n"),
    "eslint": ("core/page.js", "var three = 3;\n"),
    "mypy": ("build/dev/python/pelab/__init__.py", "twice('2')\n"),
    "clang-tidy": ("core/twice.cc", "\nint* Nothing() { return 0; }\n"),
}


class Lint(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.root)
        for name in (".clang-format", ".clang-tidy", ".flake8", ".shellcheckrc"):
            shutil.copy(ROOT / name, self.root)
        self.write({**CLEAN, ".gitignore": "/build/\n"})
        build = self.root / "build" / "dev"
        (build / "compile_commands.json").write_text(json.dumps([
            {"directory": str(build), "file": f"{self.root}/core/{name}.cc",
             "command": f"/usr/bin/c++ -I{self.root} -std=c++20 -o core/{target}.dir/{name}.cc.o "
                        f"-c {self.root}/core/{name}.cc"}
            for target in ("sum", "other") for name in ("sum", "twice")]))
        installed = ROOT / "build" / "lint" / "npm"
        if installed.exists():
            shutil.copytree(installed, self.root / "build" / "lint" / "npm", symlinks=True)
        self.git("init", "-q")
        self.commit()

    def git(self, *words):
        subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@y", *words],
                       cwd=self.root, check=True)

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-qm", "x")

    def write(self, files):
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def lint(self, *options):
        done = subprocess.run(
            [sys.executable, "-B", HERE / "lint.py", "--root", self.root, "--build",
             self.root / "build" / "dev", *options], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def test_each_mistake_is_found_and_clean_files_are_remembered(self):
        status, said = self.lint()
        self.assertEqual(status, 0, said)
        status, said = self.lint()
        self.assertEqual(status, 0, said)
        self.assertEqual(said.count("unchanged"), len(MISTAKES) - 1, said)  # columns has no cache
        self.assertIn("clang-tidy: ok (2 files, 2 unchanged)", said)
        for name, (path, mistake) in MISTAKES.items():
            with self.subTest(name):
                self.write({path: CLEAN[path] + mistake})
                status, said = self.lint()
                self.assertEqual(status, 1, said)
                self.assertIn(f"{name}: FAILED", said)
                self.assertIn(pathlib.Path(path).name, said)
                self.write({path: CLEAN[path]})
        self.write({"core/sum.h": CLEAN["core/sum.h"] + "inline int* Nothing() { return 0; }\n"})
        status, said = self.lint()
        self.assertIn("core/sum.h:2:", said)  # the sources include something else

    def test_changed_takes_the_sources_since_the_base(self):
        status, said = self.lint("--changed")
        self.assertIn("no commit to compare with", said)
        self.assertEqual(status, 0, said)
        path, mistake = MISTAKES["clang-tidy"]
        self.write({path: CLEAN[path] + mistake})
        self.commit()
        status, said = self.lint("--changed")
        self.assertEqual((status, "core/twice.cc:5:" in said), (1, True), said)
        self.assertIn("clang-tidy: FAILED (1 files)", said)
        status, said = self.lint("--changed", "--minutes", "0")
        self.assertEqual(status, 0, said)
        self.assertIn("not reached in 0 minutes: core/twice.cc", said)

    def test_a_name_that_hides_another_one_of_its_unit_is_found(self):
        unit = self.root / "build" / "dev" / "Unity" / "unity_0.cxx"
        unnamed = "namespace {{\nint Shown(int a) {{\n  return {};\n}}\n}}  // namespace\n"
        first = "namespace pelab {\n" + unnamed.format("a") + "}  // namespace pelab\n"
        calls = "int Twice(int a) {\n  return Shown(2 * a);\n}\n"
        self.write({"core/first.cc": first,
                    "build/dev/Unity/unity_0.cxx": "".join(
                        f'#include "{self.root}/core/{name}.cc"\n' for name in ("first", "second")),
                    "build/dev/compile_commands.json": json.dumps([{"file": str(unit)}])})
        for second, count in [
                ("namespace pelab {\n" + calls + "}\n", 1),
                ("namespace pelab::other {\n" + calls + "}\n", 1),
                ("namespace pelab {\n" + unnamed.format("-a") + calls + "}\n", 0),
                ("namespace other {\n" + calls + "}\n", 0)]:
            with self.subTest(second):
                self.write({"core/second.cc": second})
                found = hidden(self.root / "build" / "dev", self.root)
                self.assertEqual(len(found), count, found)
                for line in found:
                    self.assertIn("core/second.cc: a call of Shown", line)


if __name__ == "__main__":
    unittest.main()
