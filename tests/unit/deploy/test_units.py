"""Holds deploy/systemd to its promises: systemd accepts the units, they are closed as far as they
can be, and the options of their configuration files are those of the programs. Exits with 77, which
ctest counts as skipped, where systemd-analyze is missing."""

import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[3]
UNITS = SOURCE / "deploy" / "systemd"
BIN = pathlib.Path(os.environ["PELAB_BIN"]).resolve()
ROLES = ("server", "worker", "scale")
USERS = {"server": "pelab", "worker": "pelab-worker"}
THRESHOLD = 20  # an exposure of at most 2.0, of 10


def analyze(*words):
    done = subprocess.run(["systemd-analyze", "--no-pager", *map(str, words)],
                          capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def variables(path):
    """The variables of an EnvironmentFile=."""
    words = shlex.split(path.read_text(), comments=True)
    return dict(word.split("=", 1) for word in words)


def unit_name(role):
    # pelab-scale runs as one of the cluster's users, whom the name of the instance names.
    return f"pelab-{role}{'@' if role == 'scale' else ''}.service"


class Units(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def unit(self, role, **changes):
        """A copy of the unit that starts the program that was built."""
        text = (UNITS / unit_name(role)).read_text()
        for old, new in {f"/usr/bin/pelab-{role}": str(BIN / f"pelab-{role}"), **changes}.items():
            self.assertIn(old, text)
            text = text.replace(old, new)
        path = self.folder / unit_name(role)
        path.write_text(text)
        return path

    def test_systemd_accepts_them(self):
        for role in ROLES:
            with self.subTest(role=role):
                status, said = analyze("verify", "--man=no", self.unit(role))
                self.assertEqual((status, said), (0, ""))

    def test_an_unknown_setting_would_be_noticed(self):
        _, said = analyze("verify", "--man=no", self.unit("server", RestartSec="RestartSecs"))
        self.assertIn("RestartSecs", said)

    def test_they_are_closed(self):
        for role in ROLES:
            with self.subTest(role=role):
                check = ("security", "--offline=true", f"--threshold={THRESHOLD}")
                status, said = analyze(*check, self.unit(role))
                self.assertEqual(status, 0, said)
                open_unit = self.unit(role, CapabilityBoundingSet="#", SystemCallFilter="#")
                status, _ = analyze(*check, open_unit)
                self.assertNotEqual(status, 0, "the check finds what it is to find")

    def test_the_options_of_their_files_are_known(self):
        for role in ROLES:
            with self.subTest(role=role):
                found = variables(UNITS / f"{role}.conf")
                done = subprocess.run(
                    [BIN / f"pelab-{role}", *found.pop("OPTIONS").split(), "--version"],
                    env={**os.environ, **found}, capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_they_write_where_systemd_lets_them(self):
        for role, state in USERS.items():
            with self.subTest(role=role):
                self.assertIn(f"StateDirectory={state}\n", self.unit(role).read_text())
                self.assertIn(f"/var/lib/{state}", (UNITS / f"{role}.conf").read_text())

    def test_their_users_are_made(self):
        for role, user in USERS.items():
            with self.subTest(role=role):
                self.assertIn(f"User={user}\n", self.unit(role).read_text())
                self.assertIn(f"u {user} - ", (UNITS / f"pelab-{role}.sysusers").read_text())


if __name__ == "__main__":
    if not shutil.which("systemd-analyze"):
        print("skipped: systemd-analyze is missing")
        sys.exit(77)
    unittest.main()
