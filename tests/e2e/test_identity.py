"""Principals with the real programs: tokens on a socket, certificates over TLS, and the record."""

import csv
import io
import json
import os
import pathlib
import stat
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pelab_harness import BIN, Case, tiny_sweep, trainer_environment, wait_until  # noqa: E402


class IdentityTest(Case):

    def admin(self, *arguments, token=None, status=0):
        env = {"PELAB_TOKEN": token} if token else None
        return self.ok(self.pelab("admin", *arguments, env=env), status)

    def begin(self):
        """Adds the operator `root` and returns its token."""
        self.server()
        return self.admin("principal", "add", "root", "--role", "operator").stdout.strip()

    def end_server(self):
        server = self.started.pop()
        server.terminate()
        self.assertEqual(server.wait(20), 0)

    def mode(self, path):
        return stat.S_IMODE(os.stat(path).st_mode)

    def test_tokens(self):
        root = self.begin()
        self.assertRegex(root, r"^pelab_[0-9a-f]{64}$")
        refused = self.ok(self.pelab("status"), 2)
        self.assertIn("needs a token; give --token-file or PELAB_TOKEN", refused.stderr)
        self.admin("principal", "add", "alice", "--role", "submitter", "--max-slots", 1,
                   "--token-out", self.folder / "alice.token", token=root)
        self.admin("principal", "add", "gpu01", "--role", "worker", "--token-out",
                   self.folder / "gpu01.token", token=root)
        for file in ["alice.token", "gpu01.token", "pelab.db", "pelab.db.lock"]:
            self.assertEqual(self.mode(self.folder / file), 0o600, file)
        alice = (self.folder / "alice.token").read_text().strip()

        sweep = self.write("sweep.yaml", tiny_sweep(epochs=1))
        self.ok(self.pelab("submit", sweep, "--token-file", self.folder / "alice.token"))
        self.worker("w", 2, "--token-file", self.folder / "gpu01.token", env=trainer_environment())
        self.wait_finished(4)
        self.assertEqual(self.query("SELECT owner FROM v_sweeps"), [("alice",)])
        # One slot at a time was hers, though the worker has two.
        self.assertEqual(self.query(
            "SELECT count(*) FROM v_attempts AS a JOIN v_attempts AS b ON a.attempt_id <> "
            "b.attempt_id AND a.started_at <= b.started_at AND b.started_at < a.ended_at"), [(0,)])

        (self.folder / "root.token").write_text(root)
        capabilities = subprocess.run([BIN / "pelab-trainer", "capabilities"], check=True,
                                      capture_output=True, text=True).stdout
        trainer = self.write("trainer", f"#!/bin/sh\necho '{capabilities}'\n")  # starts at once
        trainer.chmod(0o755)
        for turn in range(5):  # whichever direction of the session's stream ends first
            refused = subprocess.run(
                [BIN / "pelab-worker", "--server", self.socket, "--workdir",
                 self.folder / f"root{turn}", "--token-file", self.folder / "root.token",
                 "--trainer", trainer],
                stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
            self.assertEqual(refused.returncode, 1, refused.stderr)
            self.assertIn("root is an operator; Fleet/Session is for a worker; `pelab admin "
                          "principal add NAME --role worker", refused.stderr)
            self.assertNotIn("trying again", refused.stderr)

        denied = self.admin("principal", "list", token=alice, status=2)
        self.assertIn("alice is a submitter; Admin/ListPrincipals is for an operator",
                      denied.stderr)
        worker = (self.folder / "gpu01.token").read_text().strip()
        self.assertIn("gpu01 is a worker",
                      self.ok(self.pelab("jobs", env={"PELAB_TOKEN": worker}), 2).stderr)
        self.assertIn("alice", self.admin("principal", "list", token=root).stdout)
        # A stream that is open when its principal is disabled ends with the reason.
        self.admin("principal", "disable", "gpu01", token=root)
        worker_log = next(self.folder.glob("pelab-worker.*.log"))
        wait_until(lambda: "principal gpu01 is disabled;" in worker_log.read_text(),
                   30, "the worker to be told")
        waits = self.write("waits.yaml", tiny_sweep(name="waits", epochs=2, seeds="[7]"))
        self.ok(self.pelab("submit", waits, "--token-file", self.folder / "alice.token"))
        watch = self.spawn("pelab", "--server", self.socket, "status", "waits", "--watch",
                           "--token-file", self.folder / "alice.token", log="watch.log")
        log = self.folder / "watch.log"
        wait_until(lambda: "waits: 0/" in log.read_text(), 20, "the watch")
        self.admin("principal", "disable", "alice", token=root)
        self.assertEqual(watch.wait(20), 2, log.read_text())
        self.assertIn("principal alice is disabled", log.read_text())
        gone = self.ok(self.pelab("status", env={"PELAB_TOKEN": alice}), 2)
        self.assertIn("principal alice is disabled", gone.stderr)

        audit = self.ok(self.pelab("audit", "--output", "csv", env={"PELAB_TOKEN": root})).stdout
        acts = {(row["principal"], row["method"], row["outcome"])
                for row in csv.DictReader(io.StringIO(audit))}
        self.assertLessEqual({("", "Admin/AddPrincipal", "OK"),
                              ("alice", "Sweeps/Submit", "OK"),
                              ("alice", "Admin/ListPrincipals", "PERMISSION_DENIED"),
                              ("root", "Admin/ChangePrincipal", "OK")}, acts)
        for token in [root, alice, worker]:
            self.assertNotIn(token, audit)
            self.assertNotIn(token.encode(), self.db.read_bytes())

    def test_one_machine_needs_none_of_it(self):
        """Whoever can open the database file may use it, also with principals in it."""
        self.begin()
        self.end_server()
        self.ok(self.run_sweep(self.write("sweep.yaml", tiny_sweep(epochs=1, pes="[nope]",
                                                                   seeds="[0]"))))
        self.assertEqual(self.states(), {"succeeded": 1})
        self.ok(self.pelab_db("db", "check"))

    def test_certificates(self):
        root = self.begin()
        ca = self.folder / "ca"
        self.admin("ca", "init", ca)
        for kind, name in [("server", "localhost"), ("worker", "gpu01"), ("worker", "gpu02")]:
            self.admin("ca", "issue", ca, kind, name, "--out", self.folder)
        for file in ["localhost.key", "gpu01.key", "ca/ca.key"]:
            self.assertEqual(self.mode(self.folder / file), 0o600, file)
        self.admin("principal", "add", "gpu01", "--role", "worker", "--cert-uri",
                   "pelab://worker/gpu01", token=root)
        self.end_server()

        self.spawn("pelab-server", "--db", self.db, "--listen", "localhost:0", "--tls-cert",
                   self.folder / "localhost.pem", "--tls-key", self.folder / "localhost.key",
                   "--tls-client-ca", ca / "ca.pem", log="tls.log")
        log = self.folder / "tls.log"
        line = wait_until(lambda: [text for text in log.read_text().splitlines()
                                   if text.startswith("listening on ")], 20, "the coordinator")
        self.socket = line[0].removeprefix("listening on ")
        trust = ["--tls-ca", ca / "ca.pem"]
        own = ["--tls-cert", self.folder / "gpu01.pem", "--tls-key", self.folder / "gpu01.key"]
        me = json.loads(self.ok(self.pelab("admin", "whoami", "--output", "json", *trust,
                                           *own)).stdout)["principal"]
        self.assertEqual((me["name"], me["role"]), ("gpu01", "worker"))
        stranger = self.ok(self.pelab("admin", "whoami", *trust, "--tls-cert",
                                      self.folder / "gpu02.pem", "--tls-key",
                                      self.folder / "gpu02.key"), 2)
        self.assertIn("the certificate of pelab://worker/gpu02 is not one of this coordinator's",
                      stranger.stderr)
        sweep = self.write("sweep.yaml", tiny_sweep(epochs=1, pes="[nope]", seeds="[0]"))
        self.ok(self.pelab("submit", sweep, *trust, env={"PELAB_TOKEN": root}))
        self.worker("w", 1, *trust, *own, env=trainer_environment())
        self.wait_finished(1)
        self.assertEqual(self.query("SELECT principal FROM workers"), [("gpu01",)])

    def test_what_cannot_be_told_apart_is_refused(self):
        self.begin()
        self.end_server()
        for arguments, words in [
                (["--listen", "0.0.0.0:0", "--insecure"], "the database has principals"),
                (["--listen", "127.0.0.1:0", "--admit-everybody"],
                 "--admit-everybody is only allowed with Unix sockets"),
                (["--listen", "localhost:0", "--tls-client-ca", "ca.pem"],
                 "--tls-client-ca needs --tls-cert and --tls-key")]:
            process = self.spawn("pelab-server", "--db", self.db, *arguments, log="refused.log")
            self.assertNotEqual(process.wait(20), 0, arguments)
            self.assertIn(words, (self.folder / "refused.log").read_text())


if __name__ == "__main__":
    unittest.main()
