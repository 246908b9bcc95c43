"""Damaged, copied and migrated files. A damaged page or log is refused or named in a message.
Commits before a torn end are recovered. A backup under load is complete and can be served. A
migration that is killed leaves the old schema or the new one."""

import json
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from fault_case import FaultCase, rounds  # noqa: E402
from pelab_harness import BIN, SOURCE, listens, tiny_sweep, wait_until  # noqa: E402

EPOCHS = 40
JOBS = 2
PAGE = 4096
SWEEP = tiny_sweep(epochs=EPOCHS, train_examples=128, seeds="[0]")


class Damage(FaultCase):
    _halfway = None  # the files of a database by name, and the epochs that were seen in it

    def halfway(self):
        """Makes a database whose coordinator was killed in the middle of a sweep, and records the
        stored epochs that were seen. It is made once; a later test gets a copy of its files."""
        self.document = SWEEP
        if Damage._halfway:
            files, seen = Damage._halfway
            for name, data in files.items():
                (self.folder / name).parent.mkdir(exist_ok=True, parents=True)
                (self.folder / name).write_bytes(data)
            self.observe()
            self.ledger.stop()
            self.ledger.seen.update(seen)
            return
        self.undisturbed(self.document, JOBS)
        server, worker = self.server(), self.worker()
        self.submit(self.document)
        self.observe()
        self.wait_epochs(10)
        self.kill(server)
        self.kill(worker)
        self.ledger.stop()
        wait_until(lambda: not self.trainers(), 10, "the trainers to end")
        self.assertFalse(self._finished(), "nothing is left to be trained")
        Damage._halfway = ({path.relative_to(self.folder): path.read_bytes()
                            for path in self.folder.rglob("*")
                            if path.is_file() and str(path).startswith(str(self.db))},
                           dict(self.ledger.seen))

    def start_refused(self):
        """The message that names the damage: from the server, which does not start, or from a
        command to a server that starts. None if all is well."""
        server = self.spawn("pelab-server", "--db", self.db, "--listen", self.socket,
                            "--heartbeat", "200ms", "--lease", "2s", log="try.log")
        status = None

        def answered():
            nonlocal status
            if server.poll() is None and not listens(self.socket):
                return False
            status = self.pelab("status")
            return (server.poll() is not None or status.returncode == 0
                    or "is damaged" in status.stderr)
        wait_until(answered, 20, "an answer")
        if server.poll() is None:
            self.stop(server)
            return status.stderr if status.returncode else None
        self.started.remove(server)
        self.assertEqual(server.returncode, 1, "it crashed: " + self.logs())
        return (self.folder / "try.log").read_text().splitlines()[-1]

    def keep(self):
        files = {path: path.read_bytes()
                 for path in self.folder.glob("pelab.db*") if path.is_file()}

        def restore():
            for path in self.folder.glob("pelab.db*"):
                if path.is_file() and not path.name.endswith(".lock"):
                    path.unlink()
            for path, data in files.items():
                path.write_bytes(data)
        return restore

    def test_a_torn_log_gives_what_was_committed_before(self):
        self.halfway()
        restore = self.keep()
        wal = pathlib.Path(f"{self.db}-wal")
        data = wal.read_bytes()
        self.assertGreater(len(data), 10 * PAGE)
        figures, _ = self._undisturbed[self.document]
        for hit in range(rounds(4, 0.25)):
            restore()
            at = self.draw.randrange(32, len(data))
            if hit % 2:
                wal.write_bytes(data[:at])
            else:
                wal.write_bytes(data[:at] + bytes([data[at] ^ 0x40]) + data[at + 1:])
            with self.subTest(at=at, of=len(data), cut=hit % 2):
                self.assertIsNone(self.start_refused(), "a torn log is no reason to refuse")
                self.check()
                now = self.curves()
                self.assertEqual(now, {where: figures[where] for where in now},
                                 "not a prefix of what was trained")
        # With the complete log all epochs that were seen are still there, and the sweep runs to its
        # end.
        restore()
        self.server()
        self.worker("second")
        self.settle(self.document, JOBS)

    def test_a_damaged_page_is_named_and_never_a_crash(self):
        self.halfway()
        # by hand: no server is running
        sqlite3.connect(self.db).execute("PRAGMA wal_checkpoint(TRUNCATE)")
        restore = self.keep()
        pages = self.db.stat().st_size // PAGE
        self.assertGreater(pages, 20)
        refused = named = 0
        hits = rounds(6, 0.25)
        for _ in range(hits):
            restore()
            page = self.draw.randrange(0, pages)
            with open(self.db, "r+b") as file:
                file.seek(page * PAGE + (100 if page == 0 else 0))
                file.write(bytes(self.draw.randrange(256) for _ in range(200)))
            with self.subTest(page=page, of=pages):
                result = self.pelab_db("db", "check")
                self.assertIn(result.returncode, (0, 1, 2), result.stderr)
                named += result.returncode != 0
                if result.returncode:
                    self.assertRegex(result.stdout + result.stderr,
                                     "FAILED the file is a sound|is damaged|not a pelab")
                said = self.start_refused()
                if said:
                    refused += 1
                    self.assertRegex(said,
                                     "damaged|malformed|not a pelab database|not one of pelab's")
                    self.assertNotIn("assert", said)
        self.assertGreater(named, 0, "no damage was noticed")

    def test_a_backup_under_load_is_whole_and_served(self):
        self.document = SWEEP
        self.undisturbed(self.document, JOBS)
        server, worker = self.server(), self.worker()
        self.submit(self.document)
        self.observe()
        self.wait_epochs(4)
        self.ledger.look()
        seen = dict(self.ledger.seen)
        copy = self.folder / "copies" / "friday.db"
        copy.parent.mkdir()
        report = json.loads(self.ok(self.pelab("db", "backup", copy, "--output", "json")).stdout)
        self.assertEqual(report["missing_artifacts"], [])
        self.assertEqual({at: self.curves(copy).get(at) for at in seen}, seen,
                         "the copy lacks what was stored before")
        self.settle(self.document, JOBS)  # the original database continues
        self.kill(server)
        self.kill(worker)
        # Serve the copy elsewhere: it has lost its workers and ends with the same results.
        self.db = copy
        self.check()
        self.ledger.seen = seen
        self.server()
        self.worker("elsewhere")
        self.settle(self.document, JOBS)

    def test_a_killed_migration_leaves_old_or_new(self):
        # By a `pelab` with one migration more than there are.
        newer = "pelab-of-next-schema"
        migrations = sorted((SOURCE / "migrations").glob("[0-9]*.sql"))
        rows = SOURCE / "tests/contract/store/schemas/rows_101.sql"
        old = self.folder / "old.db"
        connection = sqlite3.connect(old)
        connection.execute("PRAGMA journal_mode = WAL")  # as in every database of a coordinator
        for file in [migrations[0], rows, *migrations[1:]]:
            connection.executescript(file.read_text())
        first = 100 + len(migrations)
        connection.executescript("PRAGMA application_id = 0x50454C42; "
                                 f"PRAGMA user_version = {first}")
        connection.execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i "
                           "< 2000) INSERT INTO logs SELECT 2, i, randomblob(4000) FROM n")
        connection.commit()
        connection.close()
        for _ in range(rounds(6, 0.25)):
            shutil.copyfile(old, self.db)
            for leftover in ("-wal", "-shm"):
                pathlib.Path(f"{self.db}{leftover}").unlink(missing_ok=True)
            process = self.spawn(newer, "--db", self.db, "db", "migrate", "--no-copy")
            time.sleep(self.draw.uniform(0, 0.1))
            process.send_signal(signal.SIGKILL)
            process.wait()
            self.started.remove(process)
            schema = self.query("PRAGMA user_version")[0][0]
            self.assertIn(schema, (first, first + 1))
            self.assertEqual(self.query("PRAGMA integrity_check"), [("ok",)])
            logs = self.query("SELECT count(*) FROM v_logs WHERE attempt_id = 2")
            self.assertEqual(logs[0][0], 2000)
        subprocess.run([BIN / newer, "--db", self.db, "db", "migrate", "--no-copy"],
                       check=True, capture_output=True, timeout=60)
        self.assertEqual(self.query("PRAGMA user_version")[0][0], first + 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
