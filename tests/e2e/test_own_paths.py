"""Files of one's own by where they are: beside a claim sheet, outside of the sweep's folder, two of
one name; and conditions that should find them. Run by a Python with numpy and PyTorch."""

import csv
import hashlib
import json
import os
import pathlib
import shutil
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from own_data_case import OwnData, SLOTS, Sines, TOY, document, toy  # noqa: E402
from trained_case import TrainedCase  # noqa: E402
import pelab  # noqa: E402

SHEET = """
name: own-inline
false_discovery_rate: 0.5
sweep:
  name: inline
  pe: [nope, {{name: own, file: {pe}}}]
  task: {{name: own, file: {task}}}
  model: {{d_model: 32, d_ff: 48, heads: 4, layers: 1, max_len: 32}}
  train: {{epochs: 1, batch_size: 64}}
claims:
  - id: learns-something
    where: task=own
    between: {{metric: test_accuracy, cell: pe=own, low: 0, high: 1.01}}
"""


class InlineSweep(OwnData):
    def sheet(self, pe="files/sines.pt", task="toy.safetensors"):
        (self.folder / "sheets" / "files").mkdir(parents=True, exist_ok=True)
        pelab.save_encoding(Sines(), self.folder / "sheets" / "files" / "sines.pt", name="sines")
        self.save("sheets/toy.safetensors")
        return self.write("sheets/claims.yaml", SHEET.format(pe=pe, task=task))

    def test_it_is_settled(self):
        sheet = self.sheet()
        planned = self.ok(self.pelab_db("settle", sheet, "--dry-run"))
        self.assertIn("2 cells", planned.stdout)
        self.ok(self.pelab_db("claims", "check", sheet))
        settled = self.ok(self.pelab_db("settle", sheet, "--budget", "30m", "--slots", "2", *SLOTS,
                                        timeout=240))
        self.assertIn("1 hold", settled.stdout)
        (stored,), = self.query("SELECT sweep_document FROM sheets")
        for name in ("sheets/toy.safetensors", "sheets/files/sines.pt"):
            self.assertIn(self.sha256(name), stored)
        self.assertEqual(self.query("SELECT count(*) FROM files"), [(2,)])
        self.assertIn("1 hold", self.ok(self.pelab_db("claims", "show", sheet)).stdout)
        self.assertIn("registered", self.ok(self.pelab_db("settle", "own-inline", *SLOTS)).stderr)
        self.ok(self.pelab_db("results", "own-inline", "--where", "pe=own and task=own"))
        self.ok(self.pelab_db("db", "check"))
        # What its rounds trained can be exported with its files.
        self.ok(self.pelab_db("export", "own-inline", "--out", "out"))
        self.assertEqual((self.folder / "out" / "files" / "sines.pt").read_bytes(),
                         (self.folder / "sheets" / "files" / "sines.pt").read_bytes())
        self.save("sheets/toy.safetensors", test=48)
        other = self.pelab_db("claims", "show", sheet)
        self.assertNotIn("1 hold", other.stdout, "with another file it is another sheet")
        difference = self.ok(self.pelab_db("claims", "diff", "own-inline", sheet)).stdout
        self.assertIn("sweep: its document", difference)

    def test_errors_have_their_place_in_the_sheet(self):
        for pe, task, said in (
                ("none.pt", "toy.safetensors", "claims.yaml:6:32: cannot"),
                ("toy.safetensors", "toy.safetensors", "claims.yaml:6:32: "),
                ("files/sines.pt", "none.safetensors", "claims.yaml:7:27: cannot"),
                ("files/sines.pt, size: 3", "toy.safetensors",
                 "claims.yaml:5:3: unknown option")):
            with self.subTest(pe=pe, task=task):
                for words in (("settle", "--dry-run"), ("settle",), ("claims", "check")):
                    result = self.pelab_db(*words, self.sheet(pe, task))
                    self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
                    self.assertIn(said, result.stderr)


class Exports(OwnData):
    def test_paths_outside_of_the_folder_and_names_of_the_export(self):
        for name in ("elsewhere", "sweeps"):
            (self.folder / name).mkdir()
        paths = {"elsewhere/toy.safetensors": str(self.folder / "elsewhere" / "toy.safetensors"),
                 "toy.safetensors": "../toy.safetensors",
                 "sweeps/jobs.csv": "jobs.csv", "sweeps/toy.safetensors": "toy.safetensors"}
        for number, file in enumerate(paths):
            self.save(file, train=32, test=40 + number, name=f"toy_{number}")
        tasks = ", ".join(f"{{name: own, file: {path}}}" for path in paths.values())
        sweep = self.write("sweeps/own.yaml",
                           document(f"[{tasks}]", "nope", epochs=1) + "# by hand\n")
        self.ok(self.run_sweep(sweep, *SLOTS))
        self.ok(self.pelab_db("export", "own", "--out", "out"))
        elsewhere = pathlib.Path(shutil.move(self.folder / "out", self.folder / "moved"))
        contents = {hashlib.sha256(path.read_bytes()).hexdigest()
                    for path in elsewhere.rglob("*") if path.is_file()}
        hashes = {file: self.sha256(file) for file in paths}
        self.assertLessEqual(set(hashes.values()), contents)
        with open(elsewhere / "jobs.csv", newline="", encoding="utf-8") as file:
            keys = sorted(row["key"] for row in csv.DictReader(file))
        self.assertIn("# by hand", (elsewhere / "sweep.yaml").read_text())
        readme = (elsewhere / "README.md").read_text()
        self.assertIn(f"`jobs.csv` is `files/{hashes['sweeps/jobs.csv'][:8]}-jobs.csv`", readme)
        provenance = json.loads((elsewhere / "provenance.json").read_text())
        self.assertEqual({one["path"]: one["sha256"] for one in provenance["own_files"]},
                         {path: hashes[file] for file, path in paths.items()})
        for file in paths:
            (self.folder / file).unlink()
        self.assertEqual(sorted(job["key"] for job in self.dry_run(elsewhere / "sweep.yaml")), keys)
        plan = self.ok(self.pelab_db("run", elsewhere / "sweep.yaml", "--dry-run"))
        self.assertIn("4 jobs", plan.stdout)


class Conditions(OwnData, TrainedCase):
    """Each test gets a copy of a database of four jobs, and of the files that these name. A fifth
    job is of another sweep, whose task is not own."""

    @classmethod
    def train(cls, maker):
        pelab.save_task(maker.folder / "toy.safetensors", **toy(train=64))
        pelab.save_task(maker.folder / "more.safetensors", **toy(train=64, test=48))
        pelab.save_encoding(Sines(), maker.folder / "sines.pt", name="sines")
        tasks = f"[{TOY}, {{name: own, file: more.safetensors}}]"
        pes = "[nope, {name: own, file: sines.pt}]"
        own = maker.write("own.yaml", document(tasks, pes, epochs=1))
        other = maker.write("other.yaml", document(
            "{name: counting, length: 16, max_count: 3, vocabulary: 40, train_examples: 64, "
            "test_examples: 64}", "nope", name="other", epochs=1))
        maker.server()
        maker.worker()
        for sweep in (own, other):
            maker.ok(maker.pelab("submit", sweep))
        maker.wait_finished(5)
        maker.stop_all()

    def setUp(self):
        super().setUp()
        for name in ("toy.safetensors", "more.safetensors", "sines.pt", "own.yaml"):
            shutil.copy(self.trained() / name, self.folder)

    def test_own_stands_for_all(self):
        for where, jobs in (("task=own", 4), ("pe=own", 2), ("task=own and pe=own", 2),
                            ("task!=own", 1), ("task in (own, counting)", 5), ("pe!=own", 3)):
            with self.subTest(where=where):
                found = self.ok(self.pelab_db("jobs", "--where", where, "--output", "json"))
                self.assertEqual(len(json.loads(found.stdout)["jobs"]), jobs)
                with pelab.open(self.db) as database:
                    self.assertEqual(len(database.results(where=where)), jobs)
        with pelab.open(self.db) as database:
            self.assertEqual(len(database.results(task="own")), 4)
            self.assertEqual(len(database.results(pe="own")), 2)

    def test_a_value_that_no_job_has_is_named(self):
        ways = [(command, output) for command in ("results", "jobs")
                for output in ("table", "json")]
        for number, (words, said) in enumerate((
                (("task=own:tyo",), "no job of the sweep has task = own:tyo; did you mean own:toy? "
                                    "there: own:toy"),
                (("pe in (nope, rop) and pe=rop",), "has pe = rop; there: nope, own"),
                (("train.epochs=2",), "has train.epochs = 2; there: 1"),
                (("seed<0 and pe=own",), "no job of the sweep has seed < 0; there: 0"),
                (("test_accuracy>2",), "has test_accuracy > 2; there: 0."),
                (("task.file=" + "0" * 64,), f"there: {min(self.hashes())[:8]}, "))):
            # The first in all ways: the words of a note do not depend on the command.
            for command, output in ways if number == 0 else (ways[number % 4],):
                with self.subTest(words=words, command=command, output=output):
                    result = self.ok(self.pelab_db(command, "own", "--where", *words,
                                                   "--output", output))
                    self.assertIn("note: --where: ", result.stderr)
                    self.assertIn(said, result.stderr)
        for where in ("pe=nope and pe=own", "pe=own and not seed<1", "pe~x*"):
            result = self.ok(self.pelab_db("results", "own", "--where", where))
            self.assertEqual((result.stdout, result.stderr), ("no jobs\n", ""), where)
        for command in (("ablation", "own"), ("curves", "own"), ("deposits", "own"),
                        ("analyses", "own")):
            self.assertIn("did you mean nope?", self.ok(self.pelab_db(
                *command, "--where", "pe=nop")).stderr, command)
        for command in (("export", "own", "--out", "out"), ("report", "own", "--out", "r.html")):
            result = self.pelab_db(*command, "--where", "pe=nop")
            self.assertNotEqual(result.returncode, 0)
            self.assertIn("did you mean nope?", result.stderr)

    def hashes(self):
        return [self.sha256(file) for file in ("toy.safetensors", "more.safetensors")]

    def test_two_files_of_one_name_have_short_hashes(self):
        for words in (("results", "own"), ("jobs", "own"), ("status", "own"),
                      ("deposits", "own"), ("ablation", "own"), ("curves", "own")):
            said = self.ok(self.pelab_db(*words)).stdout
            for sha256 in self.hashes():
                self.assertNotIn(sha256[:20], said, words)
                self.assertIn(sha256[:8], said, words)
        self.ok(self.pelab_db("report", "own", "--out", "report.html"))
        for output in ("json", "csv"):
            whole = self.ok(self.pelab_db("results", "own", "--output", output)).stdout
            for sha256 in self.hashes():
                self.assertIn(sha256, whole)
        job, other = (row[0] for row in self.query(
            "SELECT min(job_id) FROM v_jobs WHERE pe = 'nope' AND task LIKE 'own%' GROUP BY "
            "spec_json"))
        said = self.ok(self.pelab_db("diff", job, other)).stdout
        self.assertIn(self.hashes()[0][:8], said)
        self.assertNotIn(self.hashes()[0][:20], said)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    unittest.main()
