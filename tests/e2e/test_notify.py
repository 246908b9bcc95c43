"""Notifications (--notify) of the real coordinator to a small HTTP server."""

import hashlib
import hmac
import http.server
import json
import pathlib
import re
import socket
import ssl
import sys
import threading
import time
import unittest
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pelab_harness import BIN, tiny_sweep, trainer_environment, wait_until  # noqa: E402
from settle_case import SettleCase, above, cell  # noqa: E402

SECRET = "correct-horse-battery-staple"
# A trainer that fails at once if its job has seed 1.
TRAINER = """\
#!/bin/sh
case "$*" in *--spec*)
  for argument; do
    [ ! -f "$argument" ] || ! grep -q '"seed":1[,}]' "$argument" || exit 3
  done ;;
esac
exec %s "$@"
"""


class Receiver:
    """Keeps what it is sent. Answers the next requests with `answers`, and all others with 200."""

    def __init__(self, answers=(), certificate=None):
        self.requests = []
        answers = list(answers)
        requests = self.requests

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                code = answers.pop(0) if answers else 200
                requests.append((self.path, self.headers, body, code))
                self.send_response(code)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        scheme = "http"
        if certificate:
            scheme = "https"
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.url = f"{scheme}://localhost:{self.server.server_port}/hook/secret-path?x=1"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def delivered(self):
        return [json.loads(body) for _, _, body, code in list(self.requests) if code == 200]

    def events(self):
        return [(message["event"], message.get("sweep")) for message in self.delivered()]


class NotifyTest(SettleCase):
    def receiver(self, *answers, certificate=None):
        receiver = Receiver(answers, certificate)
        self.addCleanup(receiver.close)
        return receiver

    def serve(self, url, *arguments):
        return self.server("--notify", url, "--http", "127.0.0.1:0", *arguments)

    def trainer_that_fails(self):
        path = self.write("trainer", TRAINER % (BIN / "pelab-trainer"))
        path.chmod(0o755)
        return path

    def wait_events(self, receiver, count, timeout=60):
        wait_until(lambda: len(receiver.delivered()) >= count, timeout,
                   f"{count} notifications; there are {receiver.events()}\n{self.logs()}")
        time.sleep(0.5)  # a repeated one would come now
        return receiver.delivered()

    def counts(self):
        url = re.findall(r"^pages on (http://\S+/)$", self.logs(), re.MULTILINE)[-1]
        with urllib.request.urlopen(url + "metrics", timeout=20) as answer:
            text = answer.read().decode()
        return {name: int(float(count)) for name, count in re.findall(
            r'^pelab_notifications_total\{outcome="(\w+)"\} (\S+)$', text, re.MULTILINE)}

    def test_end_of_a_sweep(self):
        receiver = self.receiver()
        secret = self.write("secret", SECRET + "\n")
        secret.chmod(0o600)
        server = self.serve(receiver.url, "--notify-secret-file", secret)
        self.worker("w", 2, env=trainer_environment())
        self.submit(tiny_sweep(epochs=1, train_examples=64))
        messages = self.wait_events(receiver, 1)
        self.assertEqual(receiver.events(), [("sweep_done", "tiny")])
        self.assertEqual(messages[0]["sweep_id"], 1)
        self.assertEqual(messages[0]["counts"], {"queued": 0, "assigned": 0, "running": 0,
                                                 "succeeded": 4, "failed": 0, "cancelled": 0})
        self.assertAlmostEqual(messages[0]["at_ms"] / 1000, time.time(), delta=60)
        self.assertEqual(messages[0]["text"], "Sweep tiny (1) is done: 4 succeeded")
        path, headers, body, _ = receiver.requests[0]
        self.assertEqual(path, "/hook/secret-path?x=1")
        wanted = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
        self.assertEqual(headers["X-Pelab-Signature"], "sha256=" + wanted)
        self.assertRegex(headers["User-Agent"], r"^pelab/\d")
        self.assertEqual(headers["Content-Type"], "application/json")
        self.assertEqual(self.counts(), {"delivered": 1, "failed": 0, "dropped": 0})
        self.assertNotIn("secret-path", self.logs(), "the log shows the path")
        # A restart repeats nothing; the next sweep, whose jobs are stored already, is told.
        server.terminate()
        self.assertEqual(server.wait(20), 0)
        self.serve(receiver.url)
        time.sleep(1)
        self.assertEqual(len(receiver.requests), 1)
        self.submit(tiny_sweep(epochs=1, train_examples=64, name="again"))
        self.wait_events(receiver, 2)
        self.assertEqual(receiver.events()[1:], [("sweep_done", "again")])
        self.assertNotIn("X-Pelab-Signature", receiver.requests[1][1])

    def test_failures_and_quarantine(self):
        receiver = self.receiver()
        server = self.serve(receiver.url)
        self.worker("w", 1, "--trainer", self.trainer_that_fails(), env=trainer_environment())
        # Three jobs fail; the first of them is told, and then the end.
        self.submit(tiny_sweep(epochs=1, seeds="[1]", pes="[nope, rope, alibi]"))
        wait_until(lambda: ("sweep_failed", "tiny") in receiver.events(), 120, "the end")
        self.assertEqual(sorted(receiver.events(), key=str),
                         [("job_failed", "tiny"), ("sweep_failed", "tiny"),
                          ("worker_quarantined", None)])
        by_event = {message["event"]: message for message in receiver.delivered()}
        self.assertEqual(by_event["worker_quarantined"]["seconds"], 600)
        self.assertIn("exited with status 3", by_event["job_failed"]["error"])
        self.assertIn(by_event["job_failed"]["error"], by_event["job_failed"]["text"])
        self.assertEqual(by_event["sweep_failed"]["counts"]["failed"], 3)
        # A retry fails again, which is told again; a restart in between forgets nothing.
        server.terminate()
        self.assertEqual(server.wait(20), 0)
        self.serve(receiver.url)
        before = len([event for event in receiver.events() if event[0] != "worker_quarantined"])
        self.assertEqual(before, 2)
        self.ok(self.pelab("retry", "tiny"))
        wait_until(lambda: len([event for event in receiver.events()
                                if event[0] != "worker_quarantined"]) >= 4, 120, "the second end")
        self.assertEqual([event[0] for event in receiver.events()
                          if event[0] != "worker_quarantined"][2:], ["job_failed", "sweep_failed"])

    def test_cancelled(self):
        receiver = self.receiver()
        self.serve(receiver.url)
        self.submit(tiny_sweep())
        self.ok(self.pelab("cancel", "tiny"))
        messages = self.wait_events(receiver, 1)
        self.assertEqual(receiver.events(), [("sweep_cancelled", "tiny")])
        self.assertEqual(messages[0]["counts"]["cancelled"], 4)

    def test_spent_budget(self):
        receiver = self.receiver()
        self.serve(receiver.url)
        self.worker("w", 2, env=trainer_environment())
        sheet = self.sheet([above("rope-clearly", cell("rope"), cell("nope"), 0.9)])
        nothing = self.ok(self.settle(sheet, "--budget", "0", served=True))
        self.assertIn("stopped by --budget 0.0s: 0.0s were spent", nothing.stderr)
        message, = self.wait_events(receiver, 1)
        self.assertEqual(message["event"], "budget")
        self.assertEqual((message["sheet"], message["sheet_id"], message["rounds"]),
                         ("tiny-claims", 1, 0))
        self.assertEqual(message["claims"], {"decided": 0, "open": 1, "given_up": 0})
        self.assertEqual(message["stopped_by"], "--budget 0.0s: 0.0s were spent")
        self.assertNotIn("sweep", message)
        # After a round, the message counts the jobs of the sheet's sweep too.
        self.ok(self.settle(sheet, "--max-jobs", "3", served=True))
        wait_until(lambda: "budget" in [event for event, _ in receiver.events()[1:]], 60,
                   f"the second budget\n{self.logs()}")
        message = [one for one in receiver.delivered() if one["event"] == "budget"][1]
        self.assertEqual((message["rounds"], message["sweep"]), (1, "tiny-claims"))
        self.assertEqual(message["counts"]["succeeded"], 2)
        self.assertIn("--max-jobs 3: 2 were run, and the next round has 2", message["text"])
        # A sheet that is settled has no use for more.
        self.ok(self.settle(sheet, served=True))
        before = receiver.events().count(("budget", "tiny-claims"))
        self.ok(self.settle(sheet, "--budget", "0", served=True))
        time.sleep(0.5)
        self.assertEqual(receiver.events().count(("budget", "tiny-claims")), before)

    def test_server_error_is_tried_again(self):
        receiver = self.receiver(500, 503)
        self.serve(receiver.url)
        self.submit(tiny_sweep())
        self.ok(self.pelab("cancel", "tiny"))
        self.wait_events(receiver, 1)
        self.assertEqual([code for _, _, _, code in receiver.requests], [500, 503, 200])
        self.assertEqual(len({body for _, _, body, _ in receiver.requests}), 1, "another message")
        self.assertTrue(receiver.delivered()[0]["id"])
        self.assertEqual(self.counts()["delivered"], 1)

    def test_nobody_there(self):
        """The coordinator works on, and stops at once, if nobody answers or nobody listens."""
        hole = socket.socket()  # takes connections and never answers
        self.addCleanup(hole.close)
        hole.bind(("127.0.0.1", 0))
        hole.listen(8)
        for url in [f"http://127.0.0.1:{hole.getsockname()[1]}/", "http://127.0.0.1:1/"]:
            server = self.serve(url)
            for number in range(3):
                self.submit(tiny_sweep(name=f"sweep{number}"))
                self.ok(self.pelab("cancel", f"sweep{number}"))
            self.ok(self.pelab("status"))
            began = time.monotonic()
            server.terminate()
            self.assertEqual(server.wait(20), 0)
            self.assertLess(time.monotonic() - began, 4)
        self.assertIn("cannot deliver sweep_cancelled of sweep", self.logs())
        self.assertRegex(self.logs(), r"\d notifications are not delivered: the coordinator ends")

    def test_certificates(self):
        """Only a receiver whose certificate is trusted gets a message."""
        ca = self.folder / "ca"
        self.ok(self.pelab("admin", "ca", "init", ca))
        self.ok(self.pelab("admin", "ca", "issue", ca, "server", "localhost", "--out", self.folder))
        receiver = self.receiver(certificate=(self.folder / "localhost.pem",
                                              self.folder / "localhost.key"))
        server = self.serve(receiver.url)
        self.submit(tiny_sweep(name="untrusted"))
        self.ok(self.pelab("cancel", "untrusted"))
        wait_until(lambda: "cannot deliver sweep_cancelled" in self.logs(), 20, "a refusal")
        server.terminate()
        self.assertEqual(server.wait(20), 0)
        self.assertEqual(receiver.requests, [])
        self.server("--notify", receiver.url, env={"SSL_CERT_FILE": str(ca / "ca.pem")})
        self.submit(tiny_sweep(name="trusted"))
        self.ok(self.pelab("cancel", "trusted"))
        self.wait_events(receiver, 1)
        self.assertEqual(receiver.events(), [("sweep_cancelled", "trusted")])

    def test_wrong_options(self):
        empty = self.write("empty", "")
        for arguments, words in [
                (["--notify-secret-file", empty], "is only allowed with --notify"),
                (["--notify", "example.org/x"], "invalid --notify: it does not begin with http://"),
                (["--notify", "http://a:b@c/"], "invalid --notify: it has a user (@)"),
                (["--notify", "http://a/", "--notify-secret-file", empty], "invalid token in")]:
            process = self.spawn("pelab-server", "--db", self.db, "--listen", self.socket,
                                 *arguments, log="refused.log")
            self.assertEqual(process.wait(20), 2, arguments)
            self.assertIn(words, (self.folder / "refused.log").read_text())
            (self.folder / "refused.log").unlink()


if __name__ == "__main__":
    unittest.main()
