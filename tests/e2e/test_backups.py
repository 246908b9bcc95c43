"""Backups that the coordinator makes by itself (--backup-dir), with the real programs."""

import calendar
import os
import pathlib
import re
import sys
import time
import unittest
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from own_mounts import mount_tmpfs, own_mounts, unmount  # noqa: E402
from pelab_harness import Case, tiny_sweep, wait_until  # noqa: E402

NAME = re.compile(r"^pelab-\d{8}T\d{6}Z\.db$")
MS_RDONLY, MS_REMOUNT = 1, 32
DISK_BYTES = 80 << 20  # more than the 64 MiB that a backup leaves free


class BackupsCase(Case):
    def setUp(self):
        super().setUp()
        self.backups = self.folder / "backups"
        self.backups.mkdir()

    def serve(self, *arguments, every="1s", keep="1000"):
        return self.server("--backup-dir", self.backups, "--backup-every", every, "--keep", keep,
                           *arguments)

    def complete(self):
        return sorted(path for path in self.backups.iterdir() if NAME.match(path.name))

    def wait_for(self, backups, timeout=60):
        """Waits until so many backups are there, and returns them."""
        wait_until(lambda: len(self.complete()) >= backups, timeout, f"{backups} backups")
        return self.complete()

    def wait_new(self, backups=2):
        """Waits for backups that began after this call, and returns the newest."""
        before = set(self.complete())
        wait_until(lambda: len(set(self.complete()) - before) >= backups, 60, "new backups")
        return self.complete()[-1]

    def check(self, backup):
        self.ok(self.pelab("db", "check", "--db", backup))

    def halves(self):
        return [path.name for path in self.backups.iterdir() if ".partial" in path.name]

    def last_success(self):
        url = re.findall(r"^pages on (http://\S+/)$", self.logs(), re.MULTILINE)[-1]
        with urllib.request.urlopen(url + "metrics", timeout=20) as answer:
            text = answer.read().decode()
        name = "pelab_backup_last_success_timestamp_seconds"
        return float(re.search(rf"^{name} (\S+)$", text, re.MULTILINE).group(1))


class BackupsTest(BackupsCase):
    def test_while_a_sweep_trains(self):
        """Each backup is sound, whenever it was made; the last has everything, and can be served.
        """
        server = self.serve("--http", "127.0.0.1:0")
        self.worker("w", 1)  # alone, it trains for longer than the time between two backups
        self.submit(tiny_sweep(epochs=8, train_examples=256))
        self.wait_finished(4)
        last = self.wait_new(3)  # the first may have begun before the last file was stored
        server.terminate()
        self.assertEqual(server.wait(20), 0, self.logs())
        backups = self.complete()
        self.assertGreaterEqual(len(backups), 3)
        for backup in backups:
            self.check(backup)
        self.assertEqual(self.halves(), [])
        epochs = [self.query("SELECT count(*) FROM v_curves", db=backup)[0][0]
                  for backup in backups]
        self.assertEqual(epochs, sorted(epochs), "a later backup has fewer epochs")
        self.assertEqual(epochs[-1], 32)
        self.check_files(backups)
        self.serve_instead(last)

    def check_files(self, backups):
        """Backups share files with each other, and none with the coordinator."""
        sha256s = [row[0] for row in self.query("SELECT sha256 FROM v_artifacts")]
        self.assertEqual(len(sha256s), 4)
        for sha256 in sha256s:
            live = self.artifact(self.db, sha256)
            self.assertEqual(live.stat().st_nlink, 1, "a backup has a link to a live file")
            copies = [self.artifact(backup, sha256) for backup in backups]
            there = [copy for copy in copies if copy.exists()]
            self.assertGreaterEqual(len(there), 2)
            self.assertEqual({copy.stat().st_ino for copy in there}, {there[0].stat().st_ino})
            self.assertEqual(there[0].read_bytes(), live.read_bytes())

    @staticmethod
    def artifact(database, sha256):
        return pathlib.Path(f"{database}.artifacts", sha256[:2], sha256)

    def serve_instead(self, backup):
        """A coordinator over the backup has the results of the original."""
        wanted = self.results()
        self.assertEqual(self.results(db=backup), wanted)
        results = self.ok(self.pelab_db("results", "tiny", "--output", "json")).stdout
        self.db = backup
        self.server()
        self.assertEqual(self.ok(self.pelab("results", "tiny", "--output", "json")).stdout, results)
        self.ok(self.pelab("db", "check"))

    def test_retention(self):
        (self.backups / "pelab-friday.db").write_text("mine")
        (self.backups / "notes.txt").write_text("mine")
        self.serve(keep="2")
        first = self.wait_for(1)[0]
        wait_until(lambda: not first.exists(), 30, "the first backup to be removed")
        for _ in range(3):
            last = self.wait_new(1)
            wait_until(lambda: len(self.complete()) <= 2, 10, "two backups")
            self.assertTrue(last.exists(), "the newest was removed")
        self.assertEqual((self.backups / "pelab-friday.db").read_text(), "mine")
        self.assertEqual((self.backups / "notes.txt").read_text(), "mine")

    def test_restart_neither_delays_nor_repeats(self):
        server = self.serve(every="1h")
        self.wait_for(1)
        server.kill()
        server.wait()
        self.serve(every="1h", keep="1")
        time.sleep(2)
        self.assertEqual(len(self.complete()), 1, "a restart repeated the backup")
        self.assertIn("the next one is due in 59m", self.logs())

    def test_killed_in_the_middle(self):
        """After kills at any moment, a start removes what is half."""
        worker = self.worker("w", 1)
        halves = 0
        for number in range(6):
            server = self.serve()
            if number == 0:
                self.submit(tiny_sweep(epochs=60, train_examples=64))
            wait_until(self.halves, 20, "a backup to begin")
            server.kill()
            server.wait()
            halves += bool(self.halves())
        worker.kill()
        self.assertGreater(halves, 0, "no kill came in the middle of a backup")
        server = self.serve(every="1h")
        self.assertEqual(self.halves(), [])
        server.terminate()
        self.assertEqual(server.wait(20), 0)
        for backup in self.complete():
            self.check(backup)
        leftovers = {re.sub(r"\.db.*", ".db", path.name) for path in self.backups.iterdir()
                     if path.name.startswith("pelab-")}
        self.assertEqual(leftovers, {path.name for path in self.complete()})

    def test_folder_goes_away_and_comes_back(self):
        server = self.serve()
        self.wait_for(1)
        moved = self.folder / "elsewhere"
        self.backups.rename(moved)
        wait_until(lambda: "the backup failed" in self.logs(), 20, "a failure to be logged")
        time.sleep(3)  # three further tries
        self.submit(tiny_sweep())
        self.assertEqual(self.logs().count("the backup failed"), 1, "said more than once")
        moved.rename(self.backups)
        self.check(self.wait_new(1))
        self.assertIsNone(server.poll())

    def test_metric(self):
        server = self.serve("--http", "127.0.0.1:0")
        self.wait_for(1)
        self.assertAlmostEqual(self.last_success(), time.time(), delta=60)
        server.terminate()
        self.assertEqual(server.wait(20), 0)
        newest = time.strptime(self.complete()[-1].name, "pelab-%Y%m%dT%H%M%SZ.db")
        self.serve("--http", "127.0.0.1:0", every="1h")
        self.assertEqual(self.last_success(), calendar.timegm(newest))

    def refused(self, *arguments):
        process = self.spawn("pelab-server", "--db", self.db, "--listen", self.socket, *arguments,
                             log="refused.log")
        code = process.wait(20)
        text = (self.folder / "refused.log").read_text()
        (self.folder / "refused.log").unlink()
        return code, text

    def test_wrong_options(self):
        (self.folder / "file").write_text("")
        for code, arguments, words in [
                (2, ["--backup-every", "1h"], "--backup-every is only allowed with --backup-dir"),
                (2, ["--keep", "7d"], "--keep is only allowed with --backup-dir"),
                (2, ["--backup-dir", self.backups, "--keep", "7x"],
                 'invalid --keep "7x"; allowed: a number of backups (30)'),
                (2, ["--backup-dir", self.backups, "--backup-every", "daily"],
                 'invalid --backup-every "daily"; allowed: a time above 0'),
                (2, ["--backup-dir", self.backups, "--backup-every", "500ms"],
                 "--backup-every 500ms is too short; allowed: at least 1s"),
                (1, ["--backup-dir", self.folder / "none"],
                 "none: there is no such directory; --backup-dir must be an existing directory"),
                (1, ["--backup-dir", self.folder / "file"], "file: it is not a directory")]:
            status, text = self.refused(*arguments)
            self.assertEqual(status, code, text)
            self.assertIn(words, text)

    def test_same_disk_and_another_coordinator(self):
        self.serve()
        self.assertRegex(self.logs(), "backups is on the same disk as .*pelab.db")
        (self.folder / "other").mkdir()
        self.db = self.folder / "other/pelab.db"
        code, text = self.refused("--backup-dir", self.backups)
        self.assertEqual(code, 1)
        self.assertIn("another coordinator keeps backups named pelab-… in", text)


REFUSED = own_mounts()


@unittest.skipIf(REFUSED, REFUSED)
class FullDiskTest(BackupsCase):
    def setUp(self):
        super().setUp()
        if refused := mount_tmpfs(self.backups, f"size={DISK_BYTES}"):
            self.skipTest(refused)
        self.addCleanup(unmount, self.backups)

    def test_full_from_the_beginning(self):
        with open(self.backups / "filler", "wb") as file:
            os.posix_fallocate(file.fileno(), 0, 40 << 20)
        self.serve("--http", "127.0.0.1:0")
        wait_until(lambda: "bytes free; the copy needs" in self.logs(), 20, "the full disk")
        self.assertEqual(self.last_success(), 0, "an alert needs a value")

    def test_full_and_read_only(self):
        server = self.serve()
        self.wait_for(1)
        self.assertNotIn("is on the same disk", self.logs())
        filler = self.backups / "filler"
        with open(filler, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, 40 << 20)
        wait_until(lambda: "bytes free; the copy needs" in self.logs(), 20, "the full disk")
        self.assertEqual(self.halves(), [])
        self.submit(tiny_sweep())
        filler.unlink()
        self.check(self.wait_new(1))
        # Not while a backup is being written.
        wait_until(lambda: not mount_tmpfs(self.backups, "", MS_RDONLY | MS_REMOUNT), 20,
                   "a read-only disk")
        wait_until(lambda: "read-only file system" in self.logs().lower(), 20, "the reason")
        self.assertIsNone(server.poll())
        self.ok(self.pelab("status"))
        server.terminate()
        self.assertEqual(server.wait(20), 0)
        code = self.spawn("pelab-server", "--db", self.db, "--listen", self.socket, "--backup-dir",
                          self.backups, log="read-only.log").wait(20)
        self.assertEqual(code, 1)
        self.assertIn("Read-only file system; --backup-dir must be",
                      (self.folder / "read-only.log").read_text())


if __name__ == "__main__":
    unittest.main()
