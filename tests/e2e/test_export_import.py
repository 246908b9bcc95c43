"""`pelab export` as an outside reader sees it, and `pelab import` on the real binaries: repeated,
cut off by kill -9, with a conflict, with a quota, into a served file and into a file that is not
served, and from a file that is being written."""

import csv
import hashlib
import json
import pathlib
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pelab_harness import BIN, tiny_sweep, wait_until  # noqa: E402
from trained_case import TrainedCase  # noqa: E402


SMALL = {"epochs": 2, "train_examples": 128}


class Trained(TrainedCase):
    SWEEP = (tiny_sweep(pes="[nope, {name: partial_rope, heads: [1]}]", **SMALL)
             + "analyses: [head_ablation, layer_ablation]\n")
    COPY = "other.db"

    def setUp(self):
        super().setUp()
        self.other = self.folder / self.COPY

    def checked(self, db=None):
        result = subprocess.run([BIN / "pelab", "db", "check", "--db", db or self.db],
                                capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def on_file(self, *arguments, status=0, db=None):
        """Runs the CLI on a file and returns its JSON."""
        result = subprocess.run([BIN / "pelab", *map(str, arguments), "--db", str(db or self.db),
                                 "--output", "json"], cwd=self.folder,
                                capture_output=True, text=True, timeout=120)
        self.assertEqual(result.returncode, status, result.stdout + result.stderr)
        return json.loads(result.stdout)


class Export(Trained):
    def export(self, *arguments):
        out = self.folder / "out"
        report = self.on_file("export", "tiny", "--out", out, *arguments, db=self.other)
        return out, report

    def rows(self, out, name):
        with open(out / name, newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def test_a_stranger_understands_it(self):
        out, report = self.export()
        self.assertTrue(report["complete"])
        names = sorted(path.name for path in out.iterdir())
        self.assertEqual(names, sorted(file["file"] for file in report["files"]))

        # Every checksum is right, and every file has one.
        sums = dict(reversed(line.split("  "))
                    for line in (out / "SHA256SUMS").read_text().splitlines())
        self.assertEqual(sorted([*sums, "SHA256SUMS"]), names)
        for name, digest in sums.items():
            self.assertEqual(hashlib.sha256((out / name).read_bytes()).hexdigest(), digest, name)

        # The README names every file, and every column of every table that it describes.
        readme = (out / "README.md").read_text()
        for name in names:
            if name != "README.md":
                self.assertIn(f"| `{name}` |", readme)
        sections = dict(re.findall(r"^### (\S+)\n(.*?)(?=^### |\Z)", readme, re.M | re.S))
        tables = [name for name in names if name.endswith(".csv")]
        self.assertEqual(sorted(sections), tables)
        for name in tables:
            raw = (out / name).read_bytes()
            self.assertTrue(raw.endswith(b"\r\n"))
            header = raw.split(b"\r\n", 1)[0].decode().split(",")
            self.assertEqual(re.findall(r"^\| `([^`]+)` \|", sections[name], re.M), header, name)
            rows = self.rows(out, name)
            self.assertGreater(len(rows), 0, name)
            self.assertEqual({file["file"]: file["rows"] for file in report["files"]}[name],
                             len(rows))
        self.assertIn("Nothing: all 4 jobs", readme)
        self.assertNotIn(str(self.folder), readme)

    def test_numbers_are_those_of_the_database(self):
        out, _ = self.export()

        def stored(sql):
            connection = sqlite3.connect(f"file:{self.other}?mode=ro", uri=True)
            connection.row_factory = sqlite3.Row
            try:
                return [dict(row) for row in connection.execute(sql)]
            finally:
                connection.close()

        def same(text, value):
            if value is None:
                return text == ""
            if isinstance(value, float):
                return float(text) == value
            return (text == str(value)
                    or (text in ("true", "false") and (text == "true") == bool(value)))
        of_sweep = "WHERE job_id IN (SELECT job_id FROM v_sweep_jobs WHERE sweep = 'tiny')"
        for name, sql in {
            "jobs.csv": f"SELECT * FROM v_jobs {of_sweep} ORDER BY job_id",
            "curves.csv": f"SELECT * FROM v_curves {of_sweep} ORDER BY job_id, epoch",
            "head_ablations.csv": f"SELECT * FROM v_head_ablation {of_sweep} ORDER BY job_id, "
                                  "analysis_id, layer, head",
            "deposits.csv": f"SELECT * FROM v_deposits {of_sweep} ORDER BY job_id, analysis_id, "
                            "coalesce(layer, -1)",
            "attempts.csv": f"SELECT * FROM v_attempts {of_sweep} ORDER BY job_id, number",
        }.items():
            rows, expected = self.rows(out, name), stored(sql)
            self.assertEqual(len(rows), len(expected), name)
            for row, want in zip(rows, expected):
                for column, text in row.items():
                    column = {"started_at_ms": "started_at", "ended_at_ms": "ended_at"}.get(column,
                                                                                            column)
                    if column in want:
                        self.assertTrue(same(text, want[column]),
                                        (name, column, text, want[column]))
        # A job's key is the hash of its spec's text.
        lines = (out / "specs.jsonl").read_text().splitlines()
        keys = {row["job_id"]: row["key"] for row in self.rows(out, "jobs.csv")}
        self.assertEqual(len(lines), 4)
        for line in lines:
            job, spec = json.loads(line), line.split('"spec":', 1)[1][:-1]
            self.assertEqual(hashlib.sha256(spec.encode()).hexdigest(), job["key"])
            self.assertEqual(keys[str(job["job_id"])], job["key"])
        # Compute the means here, independently.
        for cell in self.rows(out, "summary.csv"):
            values = [float(row["test_accuracy"])
                      for row in self.rows(out, "jobs.csv") if row["pe_label"] == cell["pe"]]
            self.assertEqual(int(cell["n"]), len(values))
            self.assertAlmostEqual(float(cell["mean"]), sum(values) / len(values), delta=1e-12)
            spread = abs(values[0] - values[1]) / 2 ** 0.5
            self.assertAlmostEqual(float(cell["sd"]), spread, delta=1e-12)
            self.assertAlmostEqual(float(cell["half_width"]),
                                   12.706204736174707 * spread / 2 ** 0.5, delta=1e-9)

    def test_the_document_and_its_commands_give_the_same_jobs(self):
        out, _ = self.export()
        provenance = json.loads((out / "provenance.json").read_text())
        self.assertEqual(provenance["sweep"]["name"], "tiny")
        self.assertEqual(list(provenance["environment"]["device"]), ["cpu"])
        self.assertIn(provenance["commands"][0], (out / "README.md").read_text())
        command = provenance["commands"][0].split()
        self.assertEqual(command[:3], ["pelab", "run", "sweep.yaml"])
        dry = subprocess.run([BIN / "pelab", "submit", "sweep.yaml",
                              "--dry-run", "--db", self.other, "--output", "json"], cwd=out,
                             capture_output=True, text=True)
        self.assertEqual(json.loads(dry.stdout)["counts"]["stored"], 4, dry.stdout + dry.stderr)

    def test_gaps_are_in_plain_sight(self):
        out = self.folder / "gaps"
        report = self.on_file("export", "failing", "--out", out, db=self.other)
        self.assertEqual((report["jobs"], report["trained"], report["complete"]), (1, 0, False))
        readme = (out / "README.md").read_text()
        self.assertIn("**1 of 1 jobs are not trained**", readme)
        self.assertIn("nope distance seed 7: failed", readme)
        self.assertIn("--set train.lr=1000", readme)
        self.assertEqual([(row["n"], row["failed"], row["complete"], row["mean"])
                          for row in self.rows(out, "summary.csv")],
                         [("0", "1", "false", "")])

    def test_served_or_not_it_is_the_same(self):
        out, _ = self.export()
        shutil.copy(self.other, self.db)
        self.server()
        served = self.folder / "served"
        self.json("export", "tiny", "--out", served)
        for path in out.iterdir():
            if path.suffix == ".csv" or path.name in ("specs.jsonl", "sweep.yaml"):
                self.assertEqual(path.read_bytes(), (served / path.name).read_bytes(), path.name)

    def test_a_folder_that_is_there_is_refused(self):
        full, empty = self.folder / "full", self.folder / "empty"
        full.mkdir()
        empty.mkdir()
        (full / "mine").write_text("keep")
        refused = self.on_file("export", "tiny", "--out", full, status=2, db=self.other)
        self.assertIn("is there already", refused["error"]["message"])
        self.on_file("export", "tiny", "--out", f"{empty}/", db=self.other)
        self.on_file("export", "tiny", "--out", self.folder / "no" / "such", status=2,
                     db=self.other)
        self.on_file("export", "nobody", "--out", self.folder / "new", status=2, db=self.other)
        self.on_file("export", "tiny", "--out", full / "mine", status=2, db=self.other)
        self.assertEqual([path.name for path in full.iterdir()], ["mine"])
        self.assertEqual([path.name for path in self.folder.iterdir() if "partial" in path.name],
                         [])

    def test_odd_text_stays_text(self):
        connection = sqlite3.connect(self.other)
        odd = 'evil`|\n<script>alert(1)</script> "; DROP TABLE jobs; --\x1b[31m,=1+1'
        connection.execute("UPDATE jobs SET error = ? WHERE job_id = 1", (odd,))
        connection.execute("UPDATE attempts SET error = ? WHERE job_id = 1", (odd,))
        connection.execute("UPDATE sweeps SET file_name = ? WHERE name = 'tiny'", (odd,))
        connection.commit()
        connection.close()
        out, _ = self.export()
        self.assertEqual(self.rows(out, "jobs.csv")[0]["error"], odd)
        self.assertEqual(self.rows(out, "attempts.csv")[0]["error"], odd)
        readme = (out / "README.md").read_text()
        self.assertNotIn("\x1b", readme)
        self.assertIn("`evil'/\\n<script>", readme)
        self.assertEqual(json.loads((out / "provenance.json").read_text())["sweep"]["file_name"],
                         odd)


class Import(Trained):
    def same_results(self):
        self.assertEqual(self.results(self.db), self.results(self.other))
        attempts = ("SELECT j.key, a.number, a.worker, a.device, a.start_epoch, a.outcome, "
                    "a.error, a.started_at, a.ended_at, a.environment_json FROM v_attempts a JOIN "
                    "v_jobs j USING (job_id) WHERE j.trained ORDER BY 1, 2")
        self.assertEqual(self.query(attempts), self.query(attempts, db=self.other))
        jobs = ("SELECT key, pe, pe_label, task, protocol, seed, state, attempts, device, epochs, "
                "epochs_done, train_accuracy, test_accuracy, best_test_accuracy, wall_seconds, "
                "error, spec_json FROM v_jobs WHERE trained ORDER BY key")
        self.assertEqual(self.query(jobs), self.query(jobs, db=self.other))
        analyses = ("SELECT j.key, n.name, n.version, n.parameters_json, n.total, n.seconds, "
                    "n.result_json, n.created_at FROM v_analyses n JOIN v_jobs j USING (job_id) "
                    "ORDER BY 1, 2")
        self.assertEqual(self.query(analyses), self.query(analyses, db=self.other))

    def test_into_a_new_file_twice(self):
        dry = self.on_file("import", self.other, "--dry-run")
        self.assertEqual((dry["imported"], dry["unfinished"], dry["files"]), (4, 1, 4))
        self.assertFalse(self.db.exists())
        first = self.on_file("import", self.other)
        self.assertEqual((first["imported"], first["present"], first["unfinished"], first["files"],
                          first["sweeps"]), (4, 0, 1, 4, 1))
        self.same_results()
        self.checked()
        self.assertEqual(self.query("SELECT name, state, succeeded FROM v_sweeps"),
                         [("tiny", "finished", 4)])
        self.assertEqual(self.query("SELECT document FROM v_sweeps"),
                         self.query("SELECT document FROM v_sweeps WHERE name = 'tiny'",
                                    db=self.other))
        before = list(sqlite3.connect(f"file:{self.db}?mode=ro", uri=True).iterdump())
        second = self.on_file("import", self.other)
        self.assertEqual((second["imported"], second["present"], second["files"], second["sweeps"]),
                         (0, 4, 0, 0))
        self.assertEqual(list(sqlite3.connect(f"file:{self.db}?mode=ro", uri=True).iterdump()),
                         before)
        again = self.on_file("import", self.db)  # from itself
        self.assertEqual((again["imported"], again["present"], again["sweeps"]), (0, 4, 0))
        # The database where the sweep was submitted knows it again.
        back = self.on_file("import", self.db, db=self.other)
        self.assertEqual((back["imported"], back["present"], back["sweeps"]), (0, 4, 0))
        for database in (self.db, self.other):
            self.assertEqual(self.query("SELECT count(*) FROM v_sweeps WHERE name = 'tiny'",
                                        db=database), [(1,)])
        # Imported jobs can be queried, reported and analyzed like jobs trained here.
        self.assertEqual(self.on_file("results", "tiny")["complete"], True)
        dry = self.on_file("submit", self.write("tiny.yaml",
                                                self.query("SELECT document FROM v_sweeps")[0][0]),
                           "--dry-run")
        self.assertEqual(dry["counts"]["stored"], 4)
        more = self.on_file("analyze", "1", "--analysis", "cumulative_ablation")
        self.assertEqual(
            self.query("SELECT job_id FROM v_analyses WHERE name = 'cumulative_ablation'"), [(1,)],
            more)
        self.checked()

    def test_into_a_coordinator_that_trains(self):
        self.server()
        self.worker(slots=1)
        self.submit(tiny_sweep(name="busy", seeds="[0]", pes="[nope]", epochs=100_000))
        self.submit(tiny_sweep(name="part", seeds="[0]", pes="[nope]", **SMALL)
                    + "analyses: [head_ablation, layer_ablation]\n")
        wait_until(lambda: self.trainers(), 30, "the trainer")
        report = self.json("import", self.other)
        self.assertEqual((report["imported"], report["in_flight"], report["sweeps"]), (3, 1, 0))
        self.assertEqual(report["partial_sweeps"], ["tiny: 3 of 4 jobs"])
        self.ok(self.pelab("cancel", "busy"))
        wait_until(lambda: self.query("SELECT state FROM v_sweeps WHERE name = 'part'")
                   == [("finished",)], 60, "the job")
        report = self.json("import", self.other)
        self.assertEqual((report["imported"], report["present"], report["in_flight"],
                          report["different"], report["sweeps"]), (0, 4, 0, [], 1))
        self.assertEqual(self.query("SELECT state, succeeded FROM v_sweeps WHERE name = 'tiny'"),
                         [("finished", 4)])
        self.assertEqual(len(self.json("workers")["workers"]), 2)
        self.checked()

    def test_cut_off_and_gone_on(self):
        coordinator = self.server()
        for kill in ("client", "server"):
            importing = self.spawn("pelab", "import", self.other, "--server", self.socket)
            wait_until(lambda: importing.poll() is not None
                       or self.query("SELECT count(*) FROM v_jobs")[0][0] > 0, 20, "a job")
            victim = importing if kill == "client" else coordinator
            victim.send_signal(signal.SIGKILL)
            importing.wait(30)
            if kill == "server":
                coordinator.wait(10)
                coordinator = self.server()
            self.checked()
        self.json("import", self.other)
        self.same_results()
        self.checked()

    def test_another_curve_is_reported(self):
        self.on_file("import", self.other)
        connection = sqlite3.connect(self.other)
        connection.execute(
            "UPDATE curves SET train_loss = train_loss + 1 WHERE epoch = 1 AND attempt_id = 1")
        connection.commit()
        connection.close()
        before = self.curves()
        for dry in (["--dry-run"], []):
            report = self.on_file("import", self.other, *dry, status=1)
            self.assertEqual((report["imported"], report["present"], len(report["different"])),
                             (0, 3, 1))
        self.assertEqual(self.curves(), before)
        text = self.ok(self.pelab_db("import", self.other), 1).stdout
        self.assertIn("0 new jobs, 3 already here, 1 not finished there, 1 different here", text)
        self.assertIn("nothing was overwritten", text)

    def test_a_failed_job_here_is_made_good(self):
        self.on_file("import", self.other)
        connection = sqlite3.connect(self.db)
        connection.execute("PRAGMA foreign_keys = OFF")
        key = connection.execute("SELECT key FROM jobs WHERE job_id = 1").fetchone()[0]
        connection.execute("UPDATE jobs SET trained = 0, state = 'failed' WHERE job_id = 1")
        connection.execute("UPDATE sweep_counts SET succeeded = 3, failed = 1")
        connection.commit()
        connection.close()
        self.assertEqual(self.on_file("import", self.other)["imported"], 1)
        self.assertEqual(self.query("SELECT generation, state FROM v_jobs WHERE key = ?", key),
                         [(2, "succeeded")])
        self.assertEqual(self.on_file("results", "tiny")["complete"], True)

    def test_quota_and_missing_weights(self):
        self.server("--artifact-quota", "1000")
        refused = json.loads(self.ok(self.pelab("import", self.other, "--output", "json"),
                                     1).stdout)["error"]["message"]
        self.assertRegex(refused, "quota.*--no-files leaves weights out")
        self.assertEqual(self.query("SELECT count(*) FROM v_jobs"), [(0,)])
        report = self.json("import", self.other, "--no-files")
        self.assertEqual((report["imported"], report["files"]), (4, 0))
        self.checked()

        damaged = sorted(pathlib.Path(f"{self.other}.artifacts").rglob("*/*"))
        damaged[0].write_bytes(b"x" * damaged[0].stat().st_size)
        damaged[1].unlink()
        second = self.folder / "second.db"
        report = self.on_file("import", self.other, db=second, status=1)
        self.assertEqual((report["imported"], report["files"], len(report["missing_files"])),
                         (4, 2, 2))
        self.checked(second)

    def test_what_is_not_read(self):
        self.on_file("import", self.other)
        before = self.results(self.db)
        wrong = {"none": self.folder / "none.db",
                 "text": self.write("text.db", "no database" * 100), "folder": self.folder}
        for version in (1, 4711):
            path = wrong[str(version)] = self.folder / f"v{version}.db"
            shutil.copy(self.other, path)
            connection = sqlite3.connect(path)
            connection.execute(f"PRAGMA user_version = {version}")
            connection.close()
        torn = wrong["torn"] = self.folder / "torn.db"
        data = bytearray(self.other.read_bytes())
        for at in range(4096, len(data), 4096):
            data[at:at + 200] = b"\xff" * 200
        torn.write_bytes(data)
        for name, path in wrong.items():
            for dry in (["--dry-run"], []):
                result = subprocess.run([BIN / "pelab", "import", path, "--db", self.db,
                                         "--output", "json", *dry], cwd=self.folder,
                                        capture_output=True, text=True, timeout=60)
                self.assertIn(result.returncode, (1, 2), (name, result.stdout))
                self.assertGreater(len(json.loads(result.stdout)["error"]["message"]), 10)
        self.assertEqual(self.results(self.db), before)
        self.checked()

    def test_from_one_that_is_being_written(self):
        coordinator = self.server()
        self.worker(slots=1)
        self.submit(tiny_sweep(seeds="0..1", pes="[nope]", name="busy", **SMALL))
        target = self.folder / "target.db"
        wait_until(lambda: self.states().get("succeeded", 0) >= 1, 60, "a job")
        report = self.on_file("import", self.db, db=target)
        self.assertGreaterEqual(report["imported"], 1)
        self.assertEqual(report["imported"] + report["unfinished"], 2)
        self.checked(target)
        self.wait_finished(2)
        coordinator.terminate()
        coordinator.wait(10)
        self.on_file("import", self.db, db=target)
        self.assertEqual(self.results(target), self.results(self.db))
        self.assertEqual(self.query("SELECT name, state FROM v_sweeps", db=target),
                         [("busy", "finished")])
        self.checked(target)


if __name__ == "__main__":
    unittest.main(verbosity=2)
