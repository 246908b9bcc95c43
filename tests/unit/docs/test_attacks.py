"""Holds docs/attacks.md to its promise: every test that it names for an attack exists, and every
attack has a test or a measurement."""

import ast
import pathlib
import re
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[3]
TESTS = SOURCE / "tests"
PAGE = SOURCE / "docs" / "attacks.md"
HEADER = ["attack", "answer", "test"]
GOOGLE = re.compile(r"\bTEST(?:_F|_P)?\s*\(\s*(\w+)\s*,\s*(\w+)\s*\)")


def cells(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


def attacks():
    """The rows of all tables, each as three cells."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("|")]
    return [row for row in map(cells, lines) if row != HEADER and set("".join(row)) != {"-"}]


def named(row):
    """The tests of a row; other code in its last cell is the command of a measurement."""
    return [code for code in re.findall(r"`([^`]+)`", row[-1]) if not code.startswith("make ")]


def google_tests():
    found = set()
    for path in TESTS.rglob("*.cc"):
        found.update(f"{suite}.{case}" for suite, case in GOOGLE.findall(path.read_text()))
    return found


def python_tests(name):
    """The tests of all files of that name."""
    found = set()
    for path in TESTS.rglob(name):
        for item in ast.parse(path.read_text()).body:
            if isinstance(item, ast.ClassDef):
                found.update(f"{name} {item.name}.{part.name}" for part in item.body
                             if isinstance(part, ast.FunctionDef))
    return found


class Attacks(unittest.TestCase):
    def test_every_test_exists(self):
        names = {name for row in attacks() for name in named(row)}
        self.assertGreaterEqual(len(names), 100)
        there = google_tests()
        for file in {name.split()[0] for name in names if " " in name}:
            there |= python_tests(file)
        self.assertEqual(sorted(names - there), [], "docs/attacks.md names tests that do not exist")

    def test_every_attack_has_one(self):
        for row in attacks():
            with self.subTest(attack=row[0]):
                self.assertEqual(len(row), len(HEADER))
                self.assertTrue(named(row) or "measures" in row[-1])

    def test_they_are_counted(self):
        self.assertIn(f"Each of these {len(attacks())} attacks ", PAGE.read_text())


if __name__ == "__main__":
    unittest.main()
