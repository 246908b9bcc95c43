"""`pelab report` as a command: from a coordinator and from a file, what it replaces, and whether
the commands that the page prints are commands."""

import json
import pathlib
import shlex
import sqlite3
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import browser  # noqa: E402
from pelab_harness import Case  # noqa: E402
from report_case import OWN, SWEEP, data_of, make_database  # noqa: E402


class CommandLine(Case):
    def test_from_a_coordinator_and_from_the_file_alike(self):
        make_database(self.db, SWEEP, "--set", "train.epochs=3", "--open-every", "5")
        alone = self.folder / "alone.html"
        self.ok(self.pelab_db("report", "made-up", "--out", alone))
        self.server()
        served = self.folder / "served.html"
        said = self.json("report", "made-up", "--out", served)
        self.assertEqual((said["report"], said["bytes"], said["sweeps"]),
                         (str(served), served.stat().st_size, ["made-up"]))
        found, wanted = data_of(served), data_of(alone)
        for name in ("made_at_ms", "source"):
            self.assertNotEqual(found.pop(name), wanted.pop(name))
        for sweep in (found["sweeps"][0], wanted["sweeps"][0]):
            sweep.pop("waiting_reason", None)
        self.assertEqual(found, wanted)

    def test_replaces_nothing_unasked_and_leaves_nothing_half_written(self):
        make_database(self.db, SWEEP, "--set", "train.epochs=2", "--set", "seed=0")
        self.ok(self.pelab_db("report", "made-up"))
        first = (self.folder / "report.html").read_bytes()
        again = self.pelab_db("report", "made-up")
        self.assertEqual((again.returncode, again.stdout), (2, ""))
        self.assertIn("report.html already exists; --force replaces it", again.stderr)
        self.assertEqual((self.folder / "report.html").read_bytes(), first)
        self.ok(self.pelab_db("report", "made-up", "--force"))
        for output in ("json", "jsonl"):
            said = self.ok(self.pelab_db("report", "made-up", "--force", "--output", output)).stdout
            row = json.loads(said)
            self.assertEqual((row["report"], row["sweeps"], row["bytes"]),
                             ("report.html", ["made-up"],
                              (self.folder / "report.html").stat().st_size))
            self.assertEqual(said.count("\n") == 1, output == "jsonl", "one line")
        self.assertIn("no sweep",
                      self.ok(self.pelab_db("report", "nosuch", "--out", "x.html"), 2).stderr)
        self.assertIn("--out",
                      self.ok(self.pelab_db("report", "made-up", "--out", self.folder), 2).stderr)
        self.assertIn("none/there", self.ok(self.pelab_db("report", "made-up",
                                                          "--out", "none/there.html"), 2).stderr)
        left = {path.name for path in self.folder.iterdir()}
        self.assertEqual({name for name in left if "html" in name}, {"report.html"})

    def test_a_sweep_that_nobody_ran_says_what_to_do(self):
        make_database(self.db, SWEEP, "--open-every", "1", "--set", "seed=0")
        connection = sqlite3.connect(self.db)
        connection.execute("DELETE FROM attempts")
        connection.commit()
        connection.close()
        data_page = self.folder / "report.html"
        self.ok(self.pelab_db("report", "made-up"))
        data = data_of(data_page)
        self.assertEqual(len(data["lacking"]), sum(len(cell["jobs"]) for cell in data["cells"]))
        self.assertEqual((data["heads"], data["layers"], data["curves"]["series"]), ([], [], []))

    @unittest.skipUnless(browser.CHROMIUM, browser.MISSING)
    def test_ablations_of_seeds_at_chance_are_not_called_missing(self):
        make_database(self.db, SWEEP, "--set", "train.epochs=2", "--set", "seed=0")
        connection = sqlite3.connect(self.db)
        connection.execute("UPDATE analyses SET intact_correct = CAST(total * chance AS INTEGER)")
        connection.execute("UPDATE deposit_indices SET max_drop = NULL")  # then it is not defined
        connection.commit()
        connection.close()
        self.ok(self.pelab_db("report", "made-up"))
        with browser.tab() as page:
            page.open(self.folder / "report.html")
            page.wait("typeof pelabReport !== 'undefined'")
            layers = page.evaluate("document.querySelector('#layers').innerText")
            self.assertIn("No seed stands out from chance", layers)
            self.assertNotIn("No head ablation is stored", layers)

    def shown_commands(self, page):
        texts = page.evaluate("[...document.querySelectorAll('main code, main pre')].map((element) "
                              "=> element.textContent)")
        return [line for text in texts for line in text.splitlines() if line.startswith("pelab ")]

    def test_every_command_that_it_prints_is_one(self):
        make_database(self.db, OWN.replace("[head_ablation]", "[]"), "--fail-every", "5",
                      "--set", "train.epochs=3")
        self.server()
        self.ok(self.pelab("extend", "own", "--seed", "7..8"))
        self.ok(self.pelab("report", "own"))
        commands = list(data_of(self.folder / "report.html")["provenance"]["commands"])
        run = f"pelab run {self.db.with_suffix('.yaml')} --set train.epochs=3"
        self.assertEqual(commands, [run, "pelab extend own --seed 7..8", run,
                                    "pelab report own --out report.html"])
        if browser.CHROMIUM:
            with browser.tab() as page:
                page.open(self.folder / "report.html")
                page.wait("typeof pelabReport !== 'undefined'")
                commands = sorted(set(commands + self.shown_commands(page)))
                self.assertIn("pelab retry own", commands)
                self.assertIn("pelab analyze own --analysis head_ablation", commands)
        for command in commands:
            words = shlex.split(command)[1:]
            more = {"run": ["--dry-run"], "extend": ["--dry-run"],
                    "report": ["--force"]}.get(words[0], [])
            ended = self.pelab(*words, *more)
            # Status 3: accepted, but not every job can be analyzed.
            self.ok(ended, 3 if words[0] == "analyze" and ended.returncode == 3 else 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
