"""Standard output on a full disk, closed, or abandoned by its reader: truncated output must not
count as complete."""

import hashlib
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from made_up import made_up  # noqa: E402
from pelab_harness import BIN, Case, tiny_sweep, wait_until  # noqa: E402

NOBODY = 65534  # the id of the user who owns nothing
COMMANDS = [["--help"], ["--version"], ["results", "--help"], ["catalog"],
            ["catalog", "pe", "rope"], ["completion", "bash"], ["status"], ["status", "tiny"],
            ["jobs"], ["jobs", "--output", "json"], ["jobs", "--output", "jsonl"], ["results"],
            ["results", "--seeds"], ["curves", "tiny"], ["curves", "tiny", "--output", "csv"],
            ["ablation", "tiny"], ["deposits", "tiny"], ["analyses", "tiny"], ["artifacts", "tiny"],
            ["logs", "1"], ["workers"], ["db", "check"], ["db", "info"], ["diff", "1", "2"],
            ["report", "tiny", "--out", "new.html"], ["export", "tiny", "--out", "new"]]


class Output(Case):
    def setUp(self):
        super().setUp()
        document = tiny_sweep() + "analyses: [head_ablation]\n"
        shutil.copy(made_up("tiny.yaml", document, "--log", "epoch 0\n"), self.db)
        self.environment = {name: value
                            for name, value in os.environ.items() if name != "PELAB_SERVER"}

    def shell(self, redirection, arguments):
        """Runs `pelab ARGUMENTS REDIRECTION` in a shell, because a shell can close a descriptor."""
        return subprocess.run(["bash", "-c", f'exec "$@" {redirection}', "bash", BIN / "pelab",
                               *arguments], cwd=self.folder, env=self.environment,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)

    def test_a_full_disk_is_an_error_of_every_command(self):
        for command in COMMANDS:
            with self.subTest(command=command):
                result = self.shell(">/dev/full", command)
                self.assertEqual(result.returncode, 1, result.stderr)
                self.assertEqual(result.stderr.splitlines()[-1],
                                 "pelab: cannot write to standard output: No space left on device")
                self.assertEqual(result.stderr.count("cannot write"), 1)
                (self.folder / "new.html").unlink(missing_ok=True)
                shutil.rmtree(self.folder / "new", ignore_errors=True)

    def test_a_full_disk_is_an_error_of_the_other_programs(self):
        for program, arguments in (("pelab-server", ["--help"]), ("pelab-server", ["--version"]),
                                   ("pelab-worker", ["--help"]),
                                   ("pelab-worker", ["--version"]), ("pelab-trainer", ["--help"]),
                                   ("pelab-trainer", ["capabilities"])):
            if not (BIN / program).exists():
                continue  # a build without LibTorch has no trainer
            with self.subTest(program=program, arguments=arguments):
                result = subprocess.run(["bash", "-c", 'exec "$@" >/dev/full', "bash",
                                         BIN / program, *arguments],
                                        capture_output=True, text=True, timeout=120)
                self.assertEqual(result.returncode, 1, result.stderr)
                self.assertIn(
                    f"{program}: cannot write to standard output: No space left on device",
                    result.stderr)

    def test_only_files_are_replaced(self):
        target = self.folder / "target.html"
        target.write_text("old")
        (self.folder / "link.html").symlink_to(target)
        os.mkfifo(self.folder / "pipe")
        result = self.shell("", ["report", "tiny", "--db", str(self.db), "--out", "link.html",
                                 "--force"])
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("<html", target.read_text())
        self.assertTrue((self.folder / "link.html").is_symlink())
        for out in (["report", "tiny", "--out", "pipe", "--force"],
                    ["results", "tiny", "--output", "markdown", "--out", "pipe", "--force"]):
            with self.subTest(command=out[0]):
                result = self.shell("", [*out, "--db", str(self.db)])
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertIn("--out: pipe is a device or a pipe; name a file", result.stderr)
        self.assertTrue((self.folder / "pipe").is_fifo())

    def test_an_error_keeps_its_exit_status(self):
        result = self.shell(">/dev/full", ["results", "nosuch", "--output", "json"])
        self.assertEqual(result.returncode, 2)
        self.assertIn("cannot write to standard output", result.stderr)

    def test_a_closed_standard_output_is_an_error(self):
        for command in COMMANDS[:10]:
            with self.subTest(command=command):
                result = self.shell(">&-", command)
                self.assertEqual(result.returncode, 1, result.stderr)
                self.assertEqual(result.stderr,
                                 "pelab: cannot write to standard output: Bad file descriptor\n")
        self.assertEqual(self.shell("<&- 2>&-", ["jobs"]).returncode, 0,
                         "it needs neither of these")

    def test_no_file_gets_the_number_of_a_closed_descriptor(self):
        before = hashlib.sha256(self.db.read_bytes()).hexdigest()
        self.assertEqual(self.shell("<&- >&- 2>&-", ["--db", str(self.db), "jobs"]).returncode, 1)
        self.assertEqual(hashlib.sha256(self.db.read_bytes()).hexdigest(), before)
        server = subprocess.Popen(["bash", "-c", 'exec "$@" <&- >&- 2>&-', "bash",
                                   BIN / "pelab-server", "--db", self.db, "--listen", self.socket],
                                  cwd=self.folder, env=self.environment, start_new_session=True)
        self.started.append(server)
        wait_until(lambda: self.pelab("status").returncode == 0, 20, "the coordinator")
        for descriptor in range(3):  # a library may have opened a file before main
            self.assertNotIn(str(self.folder), os.readlink(f"/proc/{server.pid}/fd/{descriptor}"))

    def test_a_limit_of_file_sizes_is_like_a_full_disk(self):
        """`ulimit -f`: SIGXFSZ would end a program that does not expect it."""
        server = self.server()
        hard = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)[1]
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (4096, hard))
        sweep = self.write("large.yaml", tiny_sweep(seeds="[77]", name="large") + "#"
                           + "x" * 200_000 + "\n")
        self.assertNotEqual(self.pelab("submit", sweep).returncode, 0)
        self.assertIsNone(server.poll(), "the coordinator ended")
        self.ok(self.pelab("status"))
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (hard, hard))
        self.ok(self.pelab("submit", sweep))

    def test_the_coordinator_may_open_as_many_files_as_it_is_allowed(self):
        server = subprocess.Popen(
            [BIN / "pelab-server", "--db", self.db, "--listen", self.socket], cwd=self.folder,
            env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (256, 1024)))
        self.started.append(server)
        wait_until(lambda: self.pelab("status").returncode == 0, 20, "the coordinator")
        self.assertEqual(resource.prlimit(server.pid, resource.RLIMIT_NOFILE), (1024, 1024))

    @unittest.skipUnless(os.geteuid() == 0, "only root can run programs as another user")
    def test_a_coordinator_without_threads_says_so(self):
        self.folder.chmod(0o777)

        def serve_as_nobody(threads, *words):
            def become_nobody():
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
                resource.setrlimit(resource.RLIMIT_NPROC, (threads, threads))
            return subprocess.run([BIN / "pelab-server", *words], cwd=self.folder,
                                  env=self.environment, stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, timeout=60,
                                  preexec_fn=become_nobody)

        try:
            if serve_as_nobody(1, "--version").returncode != 0:
                self.skipTest("a program with sanitizers needs threads of its own")
        except PermissionError:
            self.skipTest("other users cannot run the programs here")
        for threads in (1, 8, 16):  # at 16, gRPC ended the process
            result = serve_as_nobody(threads, "--db", self.folder / "n.db", "--listen",
                                     self.socket)
            self.assertEqual(result.returncode, 1, result.stderr)
            last = result.stderr.splitlines()[-1]
            self.assertRegex(last, r"^pelab-server: cannot start a thread, after \d+ of \d+: .*"
                                   r"\(ulimit -u, TasksMax=\)$")
            self.assertFalse((self.folder / "n.db").exists(), "nothing is begun")

    def test_a_reader_that_goes_away_is_no_error(self):
        for command in (["jobs"], ["jobs", "--output", "json"],
                        ["curves", "tiny", "--output", "csv"], ["--help"], ["catalog"]):
            with self.subTest(command=command):
                read, write = os.pipe()
                os.close(read)
                result = subprocess.run([BIN / "pelab", *command], cwd=self.folder,
                                        env=self.environment, stdin=subprocess.DEVNULL,
                                        stdout=write, stderr=subprocess.PIPE, text=True,
                                        timeout=120)
                os.close(write)
                self.assertEqual((result.returncode, result.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
