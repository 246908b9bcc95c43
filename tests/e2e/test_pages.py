#!/usr/bin/env python3
"""The coordinator's pages in a real browser: they show the content of the database, they follow its
changes, and user input only ever appears as text."""

import pathlib
import re
import sqlite3
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import browser  # noqa: E402
from pelab_harness import BIN, SOURCE, Case, wait_until  # noqa: E402

POPULATE = BIN.parent / "tests" / "pelab-populate"
TRAINER = SOURCE / "tests/support/steady_trainer.sh"
STORED = """\
name: stored
protocol: clean
pe: [nope, rope, absolute]
task: [distance, counting]
seed: 0..3
model: {d_model: 16, d_ff: 16, heads: 4, layers: 2}
train: {epochs: 12}
"""
LIVE = """\
name: live
protocol: clean
pe: [nope, rope]
task: distance
seed: 0..1
model: {d_model: 16, d_ff: 16, heads: 4, layers: 2}
train: {epochs: 8}
analyses: []
"""
EVIL = "<img src=x onerror=injected()>'; DROP TABLE jobs;--\x1b[31m\u202egnp"
EVIL_SHOWN = EVIL.replace("\x1b", "\u241b").replace("\u202e", "\\u202e")


@unittest.skipIf(browser.CHROMIUM is None, browser.MISSING)
class PagesTest(Case):
    @classmethod
    def setUpClass(cls):
        cls.page = browser.Page(width=1440)

    @classmethod
    def tearDownClass(cls):
        cls.page.close()

    def setUp(self):
        super().setUp()
        # before the coordinator ends, because the page would ask for it
        self.addCleanup(self.page.call, "Page.navigate", url="about:blank")
        self.page.size(1440)
        self.page.colors(False)

    def populate(self):
        sweep = self.write("stored.yaml", STORED)
        self.run_ok(POPULATE, sweep, "--db", self.db, "--fail-every", 7, "--error", EVIL,
                    "--log", f"first\n{EVIL}\nlast\n")

    def run_ok(self, *arguments, limit=60):
        result = subprocess.run([str(a) for a in arguments], capture_output=True, text=True,
                                timeout=limit)
        self.assertEqual(result.returncode, 0, result.stderr)

    def serve(self, address="127.0.0.1:0", *more):
        log = f"server.{len(self.started)}.log"
        process = self.spawn("pelab-server", "--db", self.db, "--listen", self.socket,
                             "--heartbeat", "1s", "--lease", "20s",
                             "--http", address, *more, log=log)
        found = wait_until(lambda: process.poll() is not None
                           or re.search(r"pages on (http://\S+)/", (self.folder / log).read_text()),
                           20, "the pages")
        self.assertIsNone(process.poll(), self.logs())
        self.url = found.group(1)
        return process

    def open(self, path):
        self.page.open(self.url + path)

    def await_element(self, selector):
        self.page.wait(f"document.querySelector('{selector}') !== null", selector)

    def await_charts(self, count):
        self.page.wait("[...document.querySelectorAll('.chart-plot')].filter((plot) => "
                       f"plot.data).length === {count}", f"{count} charts")

    def assert_clean(self):
        self.assertEqual(self.page.complaints(), [])
        self.assertEqual([url for url in self.page.requests()
                          if not url.startswith(self.url + "/")], [])
        self.assertFalse(self.page.evaluate("'injectedNow' in window"))

    def shown_states(self):
        return dict(self.page.evaluate(
            "[...document.querySelectorAll('.square')].map((square) => "
            "[Number(square.pathname.split('/')[2]), square.className.match(/state-(\\w+)/)[1]])"))

    def chart_values(self, place, kind):
        """Returns {label or key: y or z} of a chart's traces."""
        return self.page.evaluate(
            f"Object.fromEntries([...document.querySelectorAll('{place} "
            ".chart-plot')].flatMap((plot) => plot.data.filter((trace) => "
            f"trace.meta?.kind === '{kind}').map((trace) => [trace.meta.label ?? "
            "plot.closest('.chart').querySelector('h3').textContent, "
            "Array.from(trace.z ?? trace.y)])))")

    def test_pages_show_what_is_stored(self):
        self.populate()
        self.serve()
        self.open("/")
        self.page.wait("document.querySelectorAll('.sweep').length === 1")
        self.assertIn("24 of 24 jobs ended",
                      self.page.evaluate("document.querySelector('.facts').textContent"))
        # Every job has ended: the bar is full from end to end.
        self.assertEqual(self.page.evaluate(
            "(() => { const box = document.querySelector('.states').getBoundingClientRect();"
            " const parts = [...document.querySelectorAll('.states .part')].map((part) => "
            "part.getBoundingClientRect()).filter((part) => part.width); return [parts[0].left - "
            "box.left, box.right - parts[parts.length - 1].right]; })()"), [0, 0])
        self.assertEqual(self.page.evaluate("[...document.querySelectorAll('button')].map((button) "
                                            "=> button.id).filter(Boolean).join()"),
                         "session,theme")
        self.assertTrue(self.page.evaluate("document.getElementById('session').hidden"),
                        "nothing can be written")
        self.assert_clean()

        self.open("/sweeps/99")
        self.await_element(".notice.bad")
        self.assertRegex(self.page.evaluate("document.querySelector('.notice.bad').textContent"),
                         '^no sweep "99"; there are: ')
        self.assertFalse(
            self.page.evaluate("!!document.querySelector('main h1, main .states, main .counts')"))

        self.open("/sweeps/stored")
        self.await_charts(7)
        self.assertEqual(self.shown_states(), dict(self.query("SELECT job_id, state FROM v_jobs")))
        self.page.wait("document.querySelector('.limits').textContent.startsWith("
                       "'without doing the task: distance ')")
        self.check_means()
        self.check_curves()
        self.check_heat_maps()
        self.assert_clean()

        job = self.query("SELECT min(job_id) FROM v_jobs WHERE state = 'succeeded'")[0][0]
        self.open(f"/jobs/{job}?sweep=stored")
        self.await_charts(3)
        self.await_element(".log .line")
        stored = [row[0] for row in self.query(
            "SELECT test_accuracy FROM v_curves WHERE job_id = ? ORDER BY epoch", job)]
        self.assertEqual(self.page.evaluate("document.querySelector('.chart-plot').data.find((t) "
                                            "=> t.meta.kind === 'mean').y"), stored)
        self.assertEqual(self.page.evaluate(
            "[...document.querySelectorAll('.log .line')].map((line) => line.textContent)"),
                         ["first", EVIL_SHOWN, "last"])
        drops = [row[0] for row in self.query(
            "SELECT accuracy_drop FROM v_head_ablation WHERE job_id = ? ORDER BY layer, head", job)]
        drawn = self.page.evaluate(
            "[...document.querySelectorAll('.chart-plot')].map((plot) => plot.data.find((t) => "
            "t.type === 'heatmap')).find(Boolean).z.flat()")
        for shown, drop in zip(drawn, drops, strict=True):
            self.assertAlmostEqual(shown, 100 * drop, delta=1e-9)
        self.assert_clean()

        self.open("/workers")
        self.await_element(".worker h2")
        self.assertEqual(self.page.evaluate("document.querySelector('.worker h2').textContent"),
                         "example-host")
        self.assert_clean()

    def check_means(self):
        """Checks the figure of each group: the mean over its succeeded seeds, as computed in SQL.
        """
        shown = {}
        for pe, task, text in self.page.evaluate(
                "[...document.querySelectorAll('.grid-table tbody tr')].flatMap((row) => "
                "[...row.querySelectorAll('td')].map((box) => "
                "[row.querySelector('.variant').textContent, box.dataset.label, "
                "box.querySelector('.cell-mean').textContent]))"):
            shown[pe, task] = float(text.split("\u2009")[0])
        stored = {row[:2]: round(100 * row[2], 1) for row in self.query(
            "SELECT pe, task, avg(test_accuracy) FROM v_jobs WHERE state = 'succeeded' GROUP BY "
            "pe, task")}
        self.assertEqual(shown.keys(), stored.keys())
        for cell, mean in stored.items():
            self.assertAlmostEqual(shown[cell], mean, delta=0.1001)

    def check_curves(self):
        # Up to the last epoch that every started seed has reached.
        stored = {}
        for pe, epoch, mean, n in self.query(
                "SELECT j.pe, c.epoch, avg(c.test_accuracy), count(*) FROM v_curves c JOIN v_jobs "
                "j USING (job_id) WHERE j.task = 'distance' GROUP BY 1, 2 ORDER BY 1, 2"):
            if n == 4:
                stored.setdefault(pe, []).append(mean)
        shown = self.chart_values("main", "mean")
        self.assertEqual(shown.keys(), stored.keys())
        for pe, means in stored.items():
            self.assertEqual(len(shown[pe]), len(means))
            for a, b in zip(shown[pe], means):
                self.assertAlmostEqual(a, b, delta=1e-12)

    def check_heat_maps(self):
        # These encodings treat all heads alike, so the mean over seeds goes by rank within layer
        # and seed.
        stored = {}
        for pe, task, layer, rank, mean in self.query(
                "SELECT pe, task, layer, rank, avg(accuracy_drop) FROM (SELECT j.pe, j.task, "
                "a.layer, a.accuracy_drop, row_number() OVER (PARTITION BY a.job_id, a.layer ORDER "
                "BY a.accuracy_drop DESC) - 1 AS rank FROM v_head_ablation a JOIN v_jobs j USING "
                "(job_id)) GROUP BY 1, 2, 3, 4"):
            stored[f"{pe} · {task}", layer, rank] = mean
        shown = {(title, layer, head): value
                 for title, rows in self.chart_values(".maps", "values").items()
                 for layer, row in enumerate(rows) for head, value in enumerate(row)}
        self.assertEqual(shown.keys(), stored.keys())
        for place, mean in stored.items():
            self.assertAlmostEqual(shown[place], 100 * mean, delta=1e-9, msg=str(place))

    def test_what_users_wrote_stays_text(self):
        self.populate()
        with sqlite3.connect(self.db) as db:
            db.execute("UPDATE sweeps SET name = ?", (EVIL,))
        self.serve()
        self.page.call("Page.addScriptToEvaluateOnNewDocument",
                       source="window.injected = () => { window.injectedNow = true; };")
        failed = self.query("SELECT min(job_id) FROM v_jobs WHERE state = 'failed'")[0][0]
        for path, ready, place in (("/", ".sweep-name", ".sweep-name"),
                                   ("/sweeps/1", ".square", "h1"),
                                   (f"/jobs/{failed}", ".log .line", ".notice.bad")):
            self.open(path)
            self.await_element(ready)
            self.assertEqual(self.page.evaluate(f"document.querySelector('{place}').textContent"),
                             EVIL_SHOWN)
            self.assertEqual(self.page.evaluate("document.querySelectorAll('main img').length"), 0)
            self.assert_clean()
        self.await_element("td.long")
        self.assertEqual(self.page.evaluate("document.querySelector('td.long').textContent"),
                         EVIL_SHOWN)
        self.assertEqual(self.query("SELECT count(*) FROM v_jobs")[0][0], 24)

    def test_what_is_drawn_late_is_awaited(self):
        """The waits of these tests: a script that throws, since an element is missing, is not true
        yet."""
        self.page.call("Page.navigate", url="about:blank")
        self.page.wait("location.href === 'about:blank' && document.readyState === 'complete'")
        self.page.evaluate("setTimeout(() => { document.body.innerHTML = '<p>late</p>'; }, 300)")
        self.page.wait("document.querySelector('p').textContent === 'late'")

    def test_pages_follow_what_happens(self):
        server = self.serve()
        self.submit(LIVE)
        self.open("/sweeps/live")
        self.page.wait("document.querySelectorAll('.square.state-queued').length === 4")
        self.page.evaluate(
            "window.sameDocument = true; window.classesSeen = new Set();"
            "new MutationObserver((changes) => changes.forEach(({target}) => "
            "classesSeen.add(target.className))).observe(document.querySelector('.job-grid'), "
            "{subtree: true, attributeFilter: ['class']})")
        self.worker("w", 4, "--trainer", TRAINER, env={"PELAB_EPOCH_SECONDS": "0.2"})
        self.page.wait("document.querySelectorAll('.square.state-succeeded').length === 4")
        self.assertTrue(self.page.evaluate(
            "[...classesSeen].some((name) => name.startsWith('square state-running'))"))
        self.page.wait("document.querySelector('.left').textContent.includes('done')")
        self.page.wait("[...document.querySelectorAll('.cell-mean')].every((mean) => "
                       "mean.textContent.includes('±'))")
        self.page.wait("document.querySelector('.chart-plot').data?.filter((t) => t.meta.kind === "
                       "'mean' && t.y.length === 8).length === 2")
        self.assertEqual(self.shown_states(), dict(self.query("SELECT job_id, state FROM v_jobs")))
        self.assertTrue(self.page.evaluate("window.sameDocument"))
        self.assert_clean()

        # The page says that the coordinator is gone and finds it again, in the same document.
        server.terminate()
        server.wait(20)
        self.page.wait(
            "document.getElementById('live').textContent === 'connection lost, retrying'")
        self.serve(self.url.removeprefix("http://"))
        self.page.wait("document.getElementById('live').textContent === 'live'")
        # it never finishes these
        self.submit(LIVE.replace("name: live", "name: more").replace("0..1", "2..3").replace(
            "epochs: 8", "epochs: 900"))
        job = wait_until(lambda: self.query("SELECT min(job_id) FROM v_jobs WHERE state = "
                                            "'running' AND epochs = 900")[0][0], 30, "a job")
        self.assertTrue(self.page.evaluate("window.sameDocument"))

        self.open(f"/jobs/{job}")
        epochs = ("(document.querySelector('.chart-plot')?.data?.find((t) => t.meta.kind === "
                  "'mean')?.y.length ?? 0)")
        self.page.wait(epochs)
        before = self.page.evaluate(epochs)
        self.page.wait(f"{epochs} > {before} + 3", "the curve to grow")
        self.page.wait("document.querySelectorAll('.log .line').length > 3")
        self.assertIn("\u241b[31mepoch",
                      self.page.evaluate("document.querySelector('.log').textContent"))
        self.open("/workers")
        self.page.wait("!!document.querySelector('.slot-job a') && "
                       "document.querySelector('.slot-job').textContent.includes('lease renewed')")
        self.assertEqual(self.page.evaluate("document.querySelector('.worker .chip').textContent"),
                         "online")
        # A worker with GPUs reports how busy they are (tests/support/fake_nvml.cc).
        libraries = self.folder / "lib"
        libraries.mkdir()
        (libraries / "libnvidia-ml.so.1").symlink_to(
            BIN.parent / "tests/unit/worker/agent/libfake_nvml.so")
        gpus = self.worker("gpus", 1, "--trainer", TRAINER,
                           env={"PELAB_STEADY_DEVICE": "cuda:0", "LD_LIBRARY_PATH": str(libraries)})
        self.page.wait("document.querySelectorAll('.gpus li').length === 2", "two GPUs")
        self.assertEqual(self.page.evaluate(
            "[...document.querySelectorAll('.gpus li')].map((gpu) => gpu.textContent)"),
                         ["cuda:0 · load unknown · 100 B of 1000 B", "cuda:1 · 87 % busy"])
        gpus.terminate()
        gpus.wait(20)
        self.page.wait("[...document.querySelectorAll('.worker')].some((worker) => worker."
                       "querySelector('.chip').textContent === 'offline' && worker."
                       "querySelector('.slot-job').textContent === '–')", "no free slots there")
        self.assert_clean()

        self.ok(self.pelab("cancel", "more"))
        self.open("/sweeps/more")
        self.page.wait("document.querySelector('.left').textContent.endsWith(' · cancelled')")
        self.submit(LIVE.replace("name: live", "name: rates").replace("0..1", "0")
                    + "axes: {train.lr: [0.01, 0.001]}\n")
        self.open("/sweeps/rates")
        self.page.wait("document.querySelector('.chart-plot')?.data?.filter((t) => t.meta.kind === "
                       "'mean').map((t) => t.name).sort().join() === '" + ",".join(
                           f"{pe} · train.lr {lr}" for pe in ("nope", "rope")
                           for lr in ("0.001", "0.01")) + "'")
        self.assertEqual(self.page.evaluate(
            "document.querySelector('.chart-plot').layout.xaxis.dtick"), 1)
        self.assert_clean()

    def test_who_has_the_token_changes_sweeps(self):
        token = "a-token-of-this-test-" + "x" * 20
        self.serve("127.0.0.1:0", "--http-write", "--http-token-file", self.write("token", token))
        self.submit(LIVE)
        self.open("/sweeps/live")
        self.await_element(".square")
        self.assertEqual(self.page.evaluate("document.querySelectorAll('.controls').length"), 0,
                         "before one has logged in")
        self.press("#session")
        self.answer("token", "wrong-token-of-this-test", "Log in")
        self.page.wait("document.querySelector('dialog .notice:not([hidden])')?.textContent === "
                       "\"the token is not this coordinator's\"")
        self.answer("token", token, "Log in")
        self.page.wait("document.querySelector('.controls') && "
                       "document.querySelector('#session')?.textContent === 'Log out'")
        self.assertEqual(self.page.evaluate("document.cookie"), "", "no script sees the session")
        self.page.complaints()
        self.page._complaints.clear()  # complaints about the refused token

        state = "document.querySelector('h1 + .chip').textContent"
        self.press_text("Pause")
        self.page.wait(f"{state} === 'paused'")
        self.assertEqual(self.query("SELECT paused FROM sweeps"), [(1,)])
        self.page.wait(
            "document.querySelector('[role=status].notice').textContent.startsWith('Paused')")
        self.press_text("Priority…")
        self.answer("priority", "12", "Set")
        self.page.wait(
            "document.querySelector('h1').parentElement.nextSibling.textContent.includes('priority "
            "12')")
        self.press_text("Add seeds…")
        self.answer("seeds", "x", "Add")
        self.page.wait("!!document.querySelector('dialog .notice:not([hidden])')",
                       "an error in words")
        self.page._complaints.clear()
        self.answer("seeds", "2", "Add")
        self.page.wait("document.querySelectorAll('.square').length === 6")

        self.press_text("Cancel…")
        self.page.wait("document.querySelector('dialog h2').textContent === 'Cancel live?'")
        self.press_text("Back")
        self.page.wait("!document.querySelector('dialog')")
        self.assertEqual(self.query("SELECT state FROM sweeps"), [("active",)])
        self.press_text("Cancel…")
        self.press_text("Cancel the sweep")
        self.page.wait(f"{state} === 'cancelled'")
        self.assertEqual(self.query("SELECT DISTINCT state FROM v_jobs"), [("cancelled",)])
        self.page.wait("document.querySelectorAll('.square.state-cancelled').length === 6")

        self.open("/jobs/1")
        self.press_text("Log out")
        self.page.wait("document.querySelector('#session')?.textContent === 'Log in' && "
                       "!!document.querySelector('h1')")
        self.assertEqual(self.page.evaluate("document.querySelectorAll('.controls').length"), 0)
        self.assert_clean()

    def press(self, selector):
        self.page.wait(
            f"document.querySelector({selector!r}) && !document.querySelector({selector!r}).hidden",
            selector)
        self.page.evaluate(f"document.querySelector({selector!r}).click()")

    def press_text(self, text):
        button = ("[...document.querySelectorAll('button')].find((one) => one.textContent === "
                  f"{text!r} && !one.hidden && !one.disabled)")
        self.page.wait(button, text)
        self.page.evaluate(f"{button}.click()")

    def answer(self, name, value, confirm):
        """Fills the only field of the open dialog and confirms it."""
        self.await_element("dialog input, dialog textarea")
        self.page.evaluate(
            f"document.querySelector('dialog input, dialog textarea').value = {value!r}")
        button = ("[...document.querySelectorAll('dialog button')].find((one) => one.textContent "
                  f"=== {confirm!r})")
        self.page.wait(f"{button} && !{button}.disabled", confirm)
        self.page.evaluate(f"{button}.click()")

    def test_by_keyboard_and_on_a_phone(self):
        self.populate()
        self.serve()
        for path, ready in (("/", ".sweep"), ("/jobs/1", ".chart-plot .main-svg"),
                            ("/workers", ".worker"), ("/sweeps/1", ".chart-plot .main-svg")):
            self.page.size(390, 844, mobile=True)
            self.page.colors(True)
            self.open(path)
            self.await_element(ready)
            self.assertEqual(self.page.overflow(), 0, path)
            # If there is no room for headings, each figure shows its column's name.
            self.assertEqual(self.page.evaluate(
                "[...document.querySelectorAll('td:not(:first-child)')].filter((cell) => "
                "cell.textContent && getComputedStyle(cell, '::before').content.length < "
                "3).map((cell) => cell.textContent)"), [], path)
            self.assert_clean()
        self.page.size(1440)
        self.page.wait("innerWidth === 1440")
        focused = "document.activeElement"
        for _ in range(12):
            self.page.press("Tab")
            if self.page.evaluate(f"{focused}.classList.contains('square')"):
                break
        first = self.page.evaluate(f"{focused}.getAttribute('aria-label')")
        self.assertIn("seed 0", first)
        self.page.press("ArrowRight")
        self.assertIn("seed 1", self.page.evaluate(f"{focused}.getAttribute('aria-label')"))
        self.page.press("ArrowDown")
        below = self.page.evaluate(f"{focused}.getAttribute('aria-label')")
        self.assertTrue(below.startswith("rope") and "seed 1" in below, below)
        self.assertEqual(self.page.evaluate("document.querySelector('.tip').textContent"), below)
        target = self.page.evaluate(f"{focused}.href")
        self.page.press("Enter")
        self.page.wait(f"location.href === {target!r} && !!document.querySelector('h1')")
        # Colors: first those of the reader's system, then the reader's choice, also on the next
        # page.
        color = "getComputedStyle(document.body).backgroundColor"
        self.page.colors(True)
        dark = self.page.evaluate(color)
        self.page.evaluate("document.getElementById('theme').click()")
        light = self.page.evaluate(color)
        self.assertNotEqual(dark, light)
        self.open("/workers")
        self.assertEqual(self.page.evaluate(color), light)
        self.page.evaluate("localStorage.clear()")


if __name__ == "__main__":
    unittest.main()
