"""Own data where programs are killed and files are lost, and in exports, imports, reports and
claims. Run by a Python with numpy and PyTorch."""

import csv
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import browser  # noqa: E402
from own_data_case import (  # noqa: E402
    INDUCTION, OwnData, SLOTS, Sines, TOY, Trained, document, induction)
from pelab_harness import BIN, wait_until  # noqa: E402
from report_case import data_of  # noqa: E402
import pelab  # noqa: E402

TRAINER = BIN / "pelab-trainer"


class Faults(OwnData):
    def test_killed_in_the_middle_it_gives_the_same(self):
        """With an encoding of one's own as well, so that each job needs two files."""
        self.induction()
        self.save("toy.safetensors")
        pelab.save_encoding(Sines(), self.folder / "sines.pt", name="sines")
        text = document(f"[{INDUCTION}, {TOY}]", "{name: own, file: sines.pt}", "[0, 1]", epochs=6)
        self.same_after_kills(self.write("own.yaml", text), 4)
        self.assertEqual(self.query("SELECT count(DISTINCT worker) FROM v_attempts"), [(2,)])
        self.ok(self.pelab_db("db", "check"))

    def test_a_file_that_the_coordinator_lost_is_sent_again(self):
        self.save("toy.safetensors")
        self.server()
        self.ok(self.pelab("submit", self.write("own.yaml", document(TOY))))
        sha256 = self.sha256("toy.safetensors")
        self.folder.joinpath("pelab.db.artifacts", sha256[:2], sha256).unlink()
        self.worker("w", 1)
        wait_until(lambda: self.states() == {"failed": 1}, 120, "the job to fail")
        (error,), = self.query("SELECT error FROM v_jobs")
        self.assertIn("submit the sweep again", error)
        self.ok(self.pelab("submit", "own.yaml"))
        self.ok(self.pelab("retry", "own"))
        self.wait_finished(1)

    def old_trainer(self):
        """A trainer of before, which has no task own."""
        told = json.loads(subprocess.run([TRAINER, "capabilities"], check=True,
                                         capture_output=True, timeout=60).stdout)
        told["tasks"] = [task for task in told["tasks"] if task["name"] != "own"]
        self.write("capabilities.json", json.dumps(told) + "\n")
        path = self.write("old-trainer", f"""#!/bin/sh
if [ "$1" = capabilities ]; then exec cat {self.folder}/capabilities.json; fi
exec {TRAINER} "$@"
""")
        path.chmod(0o755)
        return path

    def test_a_worker_of_before_is_not_given_them(self):
        self.save("toy.safetensors")
        self.server()
        self.worker("old", 1, "--trainer", self.old_trainer())
        brought = "{name: counting, length: 12, vocabulary: 40, triggers: 6, train_examples: 64, "
        text = document(f"[{brought}test_examples: 32}}, {TOY}]")
        self.ok(self.pelab("submit", self.write("own.yaml", text)))
        wait_until(lambda: self.states() == {"queued": 1, "succeeded": 1}, 60,
                   "the job of counting alone")
        self.assertRegex(self.ok(self.pelab("status", "own")).stdout, "its trainer has no task own")
        # Data is no code: a worker that takes no own encodings takes it.
        self.worker("new", 1, "--own-encodings", "off")
        self.wait_finished(2)
        self.ok(self.pelab("extend", "own", "--seed", "1"))
        self.wait_finished(4)


class Carry(Trained):
    def test_export(self):
        self.ok(self.pelab_db("export", "own", "--out", "out"))
        out = self.folder / "out"
        with open(out / "jobs.csv", newline="", encoding="utf-8") as file:
            keys = sorted(row["key"] for row in csv.DictReader(file))
        provenance = json.loads((out / "provenance.json").read_text())
        self.assertFalse([line for line in provenance["commands"] if "file:" in line])
        self.assertIn("| `data/induction.safetensors` |", (out / "README.md").read_text())
        self.assertEqual((out / "data" / "induction.safetensors").read_bytes(), induction())
        # The folder alone is enough to run it elsewhere, and finds the jobs it came from.
        elsewhere = pathlib.Path(shutil.move(out, self.folder / "elsewhere"))
        self.data.unlink()
        self.assertEqual(sorted(job["key"] for job in self.dry_run(elsewhere / "sweep.yaml")), keys)
        again = self.ok(self.run_sweep(elsewhere / "sweep.yaml"))
        self.assertIn("going on with sweep 1 own: 2 succeeded", again.stdout)

    def test_import(self):
        other = self.folder / "other.db"
        for _ in range(2):
            self.ok(self.pelab_db("import", self.db, "--db", other))
        sha256 = hashlib.sha256(induction()).hexdigest()
        stored = self.query("SELECT sha256, bytes FROM files", db=other)
        self.assertEqual(stored, [(sha256, len(induction()))])
        kept = self.folder / "other.db.artifacts" / sha256[:2] / sha256
        self.assertEqual(kept.read_bytes(), induction())
        self.assertEqual(self.results(other), self.results())
        self.ok(self.pelab_db("db", "check", "--db", other))
        # The new database lacks nothing to export a model with its data, and to go on.
        self.ok(self.pelab_db("export-model", 1, "--out", "model", "--data", "--db", other))
        self.assertTrue((self.folder / "model" / "data.safetensors").exists())

    def test_conditions(self):
        for where, tasks in (("task=own:induction", {"own:induction"}),
                             ("task=own:induction(test=long)", {"own:induction(test=long)"}),
                             ("task.data=induction", set(self.SPLITS.values())),
                             ("task.data=induction and task.test=long",
                              {"own:induction(test=long)"}),
                             ("task.targets=position", set(self.SPLITS.values())),
                             ("task.data=other", set())):
            result = self.ok(self.pelab_db("results", "--where", where, "--output", "json"))
            found = {row["task"] for row in json.loads(result.stdout)["groups"]}
            self.assertEqual(found, tasks, where)
        said = self.ok(self.pelab_db("results", "own")).stdout
        self.assertRegex(said, r"own:induction clean 2\.1 % \(guessing\)")

    def test_report(self):
        self.ok(self.pelab_db("report", "own", "--out", "report.html"))
        page = self.folder / "report.html"
        self.assertEqual({cell["task"] for cell in data_of(page)["cells"]},
                         set(self.SPLITS.values()))
        if not browser.CHROMIUM:
            self.skipTest(browser.MISSING)
        with browser.Page() as tab:
            tab.open(page)
            tab.wait("typeof pelabReport !== 'undefined'")
            tab.evaluate("pelabReport.drawAll()")
            self.assertEqual(tab.complaints(), [])
            self.assertGreater(tab.evaluate("pelabReport.charts.length"), 3)
            self.assertLessEqual(tab.overflow(), 0)
            self.assertIn("own:induction(test=long)", tab.evaluate("document.body.innerText"))


class Claims(OwnData):
    def test_claims_about_own_data_are_settled(self):
        self.save("toy.safetensors")
        self.write("own.yaml", document(TOY))
        sheet = self.write("claims.yaml", """
name: own-claims
sweep: own.yaml
claims:
  - id: learns-something
    where: task=own:toy
    between: {metric: test_accuracy, cell: pe=rope, low: 0, high: 1.01}
  - id: trains
    where: task.data=toy
    between: {metric: train_accuracy, cell: pe=rope, low: 0, high: 1.01}
""")
        settled = self.ok(self.pelab_db("settle", sheet, "--budget", "30m", "--slots", "4", *SLOTS,
                                        timeout=240))
        self.assertIn("2 hold", settled.stdout)
        (stored,), = self.query("SELECT sweep_document FROM sheets")
        self.assertIn(self.sha256("toy.safetensors"), stored)
        self.assertIn("2 hold", self.ok(self.pelab_db("claims", "show", sheet)).stdout)
        self.save("toy.safetensors", test=48)
        other = self.pelab_db("claims", "show", sheet)
        self.assertNotIn("2 hold", other.stdout, "with another file it is another sheet")
        self.ok(self.pelab_db("db", "check"))


if __name__ == "__main__":
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    unittest.main()
