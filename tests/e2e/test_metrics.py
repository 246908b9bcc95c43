"""Metrics of the real programs, and what is shipped for them: alerts, their tests, a dashboard."""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from fake_slurm import FakeSlurm  # noqa: E402
from pelab_harness import (BIN, Case, SOURCE, tiny_sweep, trainer_environment,  # noqa: E402
                           wait_until)

RULES = SOURCE / "deploy/prometheus/rules.yml"
RULES_TESTS = sorted(RULES.parent.glob("rules_test*.yml"))
DASHBOARD = SOURCE / "deploy/grafana/pelab.json"
NO_PROMTOOL = "needs promtool (Debian: apt-get install prometheus)"
HAS_PROMTOOL = shutil.which("promtool") is not None
METRIC = re.compile(r"\bpelab_[a-z0-9_]+\b")
FORBIDDEN = {"job", "job_id", "attempt", "attempt_id", "key"}

QUEUES = "\n".join(f'[queue.{name}]\ntime_limit = "4h"\nworker = []\nworkdir = "/tmp"\n'
                   for name in ("cpu", "gpu"))


def promtool(*arguments, text=None):
    return subprocess.run(["promtool", *map(str, arguments)], input=text, capture_output=True,
                          text=True, timeout=120)


def families(scrape):
    """The types of the metrics of a scrape, by name."""
    return dict(re.findall(r"^# TYPE (\S+) (\S+)$", scrape, re.MULTILINE))


def value(scrape, sample):
    found = re.search(rf"^{re.escape(sample)} (\S+)$", scrape, re.MULTILINE)
    return None if found is None else float(found.group(1))


def family_of(name, known):
    """The family that a name in an expression belongs to."""
    base = re.sub(r"_(bucket|sum|count)$", "", name)
    return base if known.get(base) == "histogram" else name


class ShippedTest(unittest.TestCase):
    """What needs no program of pelab."""

    @unittest.skipUnless(HAS_PROMTOOL, NO_PROMTOOL)
    def test_rules(self):
        for arguments in [("check", "rules", RULES), ("test", "rules", *RULES_TESTS)]:
            result = promtool(*arguments)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_each_alert_has_a_firing_and_a_silent_case(self):
        alerts = re.findall(r"- alert: (\w+)", RULES.read_text())
        self.assertGreater(len(alerts), 10)
        cases = [case for file in RULES_TESTS
                 for case in re.split(r"(?=- eval_time:)", file.read_text())[1:]]
        for alert in alerts:
            own = [case for case in cases if f"alertname: {alert}\n" in case]
            self.assertTrue([case for case in own if "exp_alerts" in case], f"{alert} never fires")
            self.assertTrue([case for case in own if "exp_alerts" not in case],
                            f"{alert} is never silent")

    def test_dashboard(self):
        board = json.loads(DASHBOARD.read_text())
        self.assertEqual(board["schemaVersion"], 36)
        self.assertEqual(board["uid"], "pelab")
        variables = {item["name"]: item for item in board["templating"]["list"]}
        self.assertEqual(variables["datasource"]["type"], "datasource")
        self.assertEqual(variables["datasource"]["query"], "prometheus")
        panels = board["panels"]
        self.assertGreaterEqual(len(panels), 12)
        shown = set(METRIC.findall(DASHBOARD.read_text()))
        self.assertLessEqual({"pelab_allocations", "pelab_allocation_queue_paused"}, shown)
        self.assertEqual(len({panel["id"] for panel in panels}), len(panels))
        self.assertEqual(len({panel["title"] for panel in panels}), len(panels))
        taken = set()
        for panel in panels:
            with self.subTest(panel=panel["title"]):
                self.assertIn(panel["type"], ("timeseries", "stat"))
                self.assertEqual(panel["datasource"]["uid"], "${datasource}")
                self.assertTrue(panel["fieldConfig"]["defaults"]["unit"])
                place = panel["gridPos"]
                self.assertLessEqual(place["x"] + place["w"], 24)
                cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                         for y in range(place["y"], place["y"] + place["h"])}
                self.assertFalse(cells & taken, "two panels overlap")
                taken |= cells
                self.assertTrue(panel["targets"])
                for target in panel["targets"]:
                    self.assertEqual(target["datasource"]["uid"], "${datasource}")
                    self.assertRegex(target["expr"], METRIC)

    @unittest.skipUnless(HAS_PROMTOOL, NO_PROMTOOL)
    def test_expressions_of_the_dashboard(self):
        """Grafana is not in Debian; Prometheus at least parses the expressions."""
        board = json.loads(DASHBOARD.read_text())
        rules = [f'      - {{record: "a:b", expr: {json.dumps(expression)}}}'
                 for panel in board["panels"] for target in panel["targets"]
                 for expression in [target["expr"].replace("$__rate_interval", "5m")]]
        text = "groups:\n  - name: a\n    rules:\n" + "\n".join(sorted(set(rules)))
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "dashboard.yml")
            file.write_text(text + "\n")
            result = promtool("check", "rules", "--lint=none", file)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)


class MetricsTest(Case):
    """A coordinator, a worker and two sweeps, of which one waits."""

    def read(self, url, **headers):
        request = urllib.request.Request(url, headers=headers)
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.read().decode()

    def begin(self):
        """Starts a coordinator and returns the address of its metrics."""
        self.server("--http", "127.0.0.1:0", "--metrics-sweeps", "--trace-file",
                    self.folder / "spans")
        return self.line_with(r"^pages on (http://\S+/)$") + "metrics"

    def line_with(self, pattern):
        return wait_until(lambda: re.search(pattern, self.logs(), re.MULTILINE), 20,
                          pattern).group(1)

    def queues(self, url):
        """Two queues, of which one is paused; the other gets an allocation, which waits."""
        self.write("queues.toml", QUEUES)
        self.ok(self.pelab("alloc", "add", self.folder / "queues.toml"))
        self.ok(self.pelab("alloc", "pause", "gpu", "--reason", "maintenance"))
        self.spawn("pelab-scale", "--server", self.socket, "--interval", "200ms", "--look", "200ms",
                   env=FakeSlurm(self.folder / "slurm").env)
        waiting = 'pelab_allocations{queue="cpu",state="waiting"}'
        wait_until(lambda: value(self.read(url), waiting) == 1, 20, waiting)

    def train(self):
        """Two jobs end, and four others wait."""
        self.worker("w", 1, "--metrics", "127.0.0.1:0", env=trainer_environment())
        self.submit(tiny_sweep(epochs=1, pes="[nope]"))
        self.wait_finished(2)
        self.ok(self.pelab("workers", "drain", self.worker_id()))
        self.submit(tiny_sweep(name="waits"))
        self.ok(self.pelab("db", "backup", self.folder / "copy.db"))

    def worker_id(self):
        return self.query("SELECT worker_id FROM workers")[0][0]

    def check_format(self, scrape):
        """Prometheus itself would take the scrape, and finds nothing to complain about."""
        with self.subTest("promtool check metrics"):
            if not HAS_PROMTOOL:
                self.skipTest(NO_PROMTOOL)
            result = promtool("check", "metrics", text=scrape)
            self.assertEqual((result.returncode, result.stdout + result.stderr), (0, ""))

    def check_values(self, scrape):
        for sample, wanted in [
                ('pelab_jobs{state="succeeded"}', 2), ('pelab_jobs{state="queued"}', 4),
                ('pelab_sweeps{state="finished"}', 1), ('pelab_sweeps{state="active"}', 1),
                ('pelab_sweep_jobs{sweep="2",name="waits",state="queued"}', 4),
                ('pelab_slots{state="closed",kind="cpu"}', 1),
                ('pelab_slots_wanted{kind="any"}', 4), ("pelab_epochs_stored_total", 2),
                ('pelab_attempts_ended_total{outcome="succeeded",error="none"}', 2),
                ("pelab_dispatch_wait_seconds_count", 2), ("pelab_worker_streams", 1),
                ("pelab_store_writable", 1),
                ('pelab_allocation_queue_paused{queue="gpu"}', 1),
                ('pelab_allocation_queue_paused{queue="cpu"}', 0),
                ('pelab_allocations{queue="gpu",state="waiting"}', 0),
                ('pelab_rpc_requests_total{method="Maintenance/Backup",code="OK"}', 1)]:
            self.assertEqual(value(scrape, sample), wanted, sample)
        self.assertGreater(value(scrape, "pelab_artifact_bytes"), 0)
        self.assertGreater(value(scrape, "pelab_backup_last_success_timestamp_seconds"), 1.7e9)

    def check_names(self, coordinator, worker):
        """Rules, dashboard and documentation name what there is."""
        known = {**families(coordinator), **families(worker)}
        for file in [RULES, DASHBOARD]:
            for name in METRIC.findall(file.read_text()):
                self.assertIn(family_of(name, known), known, f"{file.name} names {name}")
        page = (SOURCE / "docs/operations.md").read_text()
        table = page.split("\n## Metrics\n", 1)[1].split("\n## ", 1)[0]
        documented = set(re.findall(r"^\| `(pelab_[a-z0-9_]+)", table, re.MULTILINE))
        self.assertEqual(documented, set(known))

    def check_labels(self, scrape):
        for sample in re.findall(r"^pelab_\w+\{(.*)\} \S+$", scrape, re.MULTILINE):
            names = set(re.findall(r'(\w+)="(?:[^"\\]|\\.)*"', sample))
            self.assertFalse(names & FORBIDDEN, sample)

    def test_scrapes(self):
        url = self.begin()
        self.check_format(self.read(url))
        self.train()
        self.queues(url)
        scrape = self.read(url)
        worker = self.read(self.line_with(r"metrics on (http://\S+/metrics)$"))
        self.assertIn('pelab_build_info{version="', worker)
        self.assertIn("pelab_disk_free_bytes{mount=", worker)
        self.check_values(scrape)
        self.check_names(scrape, worker)
        for text in [scrape, worker]:
            self.check_format(text)
            self.check_labels(text)

    def test_gpus(self):
        """The coordinator and the worker say the same of the worker's GPUs
        (tests/support/fake_nvml.cc)."""
        url = self.begin()
        libraries = self.folder / "lib"
        libraries.mkdir()
        (libraries / "libnvidia-ml.so.1").symlink_to(
            BIN.parent / "tests/unit/worker/agent/libfake_nvml.so")
        self.worker("w", 1, "--metrics", "127.0.0.1:0", "--trainer",
                    SOURCE / "tests/support/steady_trainer.sh",
                    env={"PELAB_STEADY_DEVICE": "cuda:0", "LD_LIBRARY_PATH": str(libraries),
                         "PELAB_FAKE_XIDS": str(self.write("xids", "13 31 13"))})
        own = self.line_with(r"metrics on (http://\S+/metrics)$")
        names = ("pelab_gpu_energy_joules_total", "pelab_gpu_xid_errors_total")

        def samples(scrape):
            return sorted(line for line in scrape.splitlines() if line.startswith(names))

        wait_until(lambda: len(samples(self.read(own))) == 3, 20, "two errors and an energy")
        wait_until(lambda: samples(self.read(url)) == samples(self.read(own)), 20,
                   "the same of the coordinator")
        self.check_format(self.read(url))
        self.check_labels(self.read(url))

    def test_certificate(self):
        ca = self.folder / "ca"
        self.ok(self.pelab("admin", "ca", "init", ca))
        self.ok(self.pelab("admin", "ca", "issue", ca, "server", "localhost", "--days", 30,
                           "--out", self.folder))
        self.spawn("pelab-server", "--db", self.db, "--listen", "localhost:0", "--http",
                   "127.0.0.1:0", "--tls-cert", self.folder / "localhost.pem", "--tls-key",
                   self.folder / "localhost.key")
        scrape = self.read(self.line_with(r"^pages on (http://\S+/)$") + "metrics")
        end = value(scrape, "pelab_tls_certificate_not_after_timestamp_seconds")
        self.assertAlmostEqual(end - time.time(), 30 * 86400, delta=2 * 86400)

    def test_who_may_ask(self):
        url = self.begin()
        with self.assertRaises(urllib.error.HTTPError) as refused:
            self.read(url, Host="elsewhere.example.org")
        self.assertEqual(refused.exception.code, 421)
        refused.exception.close()
        for program, option, words in [
                ("pelab-worker", "--metrics", "--metrics 0.0.0.0:0 can be reached from other "
                                              "machines"),
                ("pelab-server", "--http", "0.0.0.0:0 can be reached from other machines")]:
            arguments = ["--server", self.socket] if program == "pelab-worker" else \
                ["--db", self.folder / "other.db", "--listen", f"unix:{self.folder}/other"]
            process = self.spawn(program, *arguments, option, "0.0.0.0:0", log="refused.log")
            self.assertEqual(process.wait(20), 2, program)
            self.assertIn(words, (self.folder / "refused.log").read_text())
        process = self.spawn("pelab-server", "--db", self.folder / "other.db", "--metrics-sweeps",
                             log="refused.log")
        self.assertEqual(process.wait(20), 2)
        self.assertIn("--metrics-sweeps is only allowed with --http",
                      (self.folder / "refused.log").read_text())


if __name__ == "__main__":
    unittest.main()
