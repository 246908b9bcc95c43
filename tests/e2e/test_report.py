"""`pelab report` on databases with made-up results, opened in headless Chromium. The page shows the
database's content, makes no network requests, works by keyboard, and shows hostile text as text."""

import collections
import contextlib
import json
import math
import pathlib
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest
import xml.dom.minidom

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "docs" / "sweeps"))
import browser  # noqa: E402
from pelab_harness import BIN, Case  # noqa: E402
from verdict import claims, results, statistics  # noqa: E402

POPULATE = BIN.parent / "tests" / "pelab-populate"
SWEEP = """\
name: made-up
protocol: [published, clean]
pe: [nope, rope, mla, rope_abs, {name: partial_rope, heads: [1, 2, 4]}]
task: [distance, {name: counting, length: 16}]
exclude: [{pe: mla, task: counting}, {pe: partial_rope, task: counting}, {protocol: published, task: counting}]
seed: 0..2
model: {d_model: 32, d_ff: 64, heads: 4, layers: 3, max_len: 128}
train: {epochs: 12}
"""
HOSTILE = [
    "</script><script>window.broken = 1</script>", "<img src=x onerror='window.broken = 1'>", "\"'`;&amp;<b>bold</b>",
    "\u2028\u2029\u202eright to left", "\x1b[31mred\x07 %{y} $x^2$", "'; DROP TABLE jobs; --", "<!--", "]]>", "<a href='javascript:1'>x</a>",
]


def make_database(path, sweep=SWEEP, *options):
    document = path.with_suffix(".yaml")
    document.write_text(sweep)
    subprocess.run([POPULATE, document, "--db", path, *options], check=True, timeout=60)


def report(database, out, *arguments, sweep="made-up"):
    return subprocess.run([BIN / "pelab", "report", sweep, "--db", database, "--out", out, *arguments],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)


def data_of(page):
    """The data inside the report."""
    text = re.search(r'<script type="application/json" id="report-data">(.*?)</script>', page.read_text(), re.DOTALL).group(1)
    return json.loads(text)


def accuracy_text(mean, half):
    """Formats an accuracy like a table: with ±, or with both ends if one of them is 0 or 100 %."""
    if mean is None:
        return "–"
    alone = f"{100 * mean:.1f}\u2009%"
    if half is None:
        return alone
    low, high = max(mean - half, 0), min(mean + half, 1)
    if (low, high) == (mean - half, mean + half):
        return f"{100 * mean:.1f}\u2009±\u2009{100 * half:.1f}\u2009%"
    return f"{alone} ({100 * low:.1f} to {100 * high:.1f}\u2009%)"


class Made(unittest.TestCase):
    """Makes one database and its report for all tests of the class."""

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="pelab-report-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.db = cls.folder / "pelab.db"
        make_database(cls.db, SWEEP, "--fail-every", "11", "--open-every", "13", "--error", "out of memory at <epoch 6>")
        # an interval that would pass 100 %
        with contextlib.closing(sqlite3.connect(cls.db)) as connection, connection:
            connection.execute("UPDATE jobs SET best_test_correct = best_test_total * (20 - seed) / 20 WHERE pe = 'mla'")
        cls.page = cls.folder / "report.html"
        result = report(cls.db, cls.page)
        assert result.returncode == 0, result.stderr
        cls.data = data_of(cls.page)
        cls.connection = sqlite3.connect(f"file:{cls.db}?mode=ro", uri=True)
        cls.addClassCleanup(cls.connection.close)

    def query(self, sql, *parameters):
        return self.connection.execute(sql, parameters).fetchall()

    def close(self, found, wanted, what=""):
        self.assertEqual(found is None, wanted is None, what)
        if wanted is not None:
            self.assertTrue(math.isclose(found, wanted, rel_tol=1e-9, abs_tol=1e-12), f"{what}: {found}, not {wanted}")

    def check_band(self, point, values, what):
        """Checks {mean, low, high} against independent statistics."""
        wanted = statistics.interval(values)
        self.close(point["mean"], wanted.mean, what)
        self.close(point["low"], None if wanted.half is None else wanted.low, what)
        self.close(point["high"], None if wanted.half is None else wanted.high, what)

    def jobs(self, cell):
        return [job["job_id"] for job in self.data["cells"][cell]["jobs"]]

    def done(self, cell):
        marks = ", ".join("?" * len(self.jobs(cell)))
        return [row[0] for row in self.query(f"SELECT job_id FROM v_jobs WHERE state = 'succeeded' AND job_id IN ({marks}) "
                                             "ORDER BY job_id", *self.jobs(cell))]


class Data(Made):
    """Checks the numbers in the file against SQL on the views and independent statistics."""

    def test_cells_are_the_jobs_but_for_the_seed(self):
        self.assertEqual(sum(len(cell["jobs"]) for cell in self.data["cells"]), self.query("SELECT count(*) FROM v_jobs")[0][0])
        for index, cell in enumerate(self.data["cells"]):
            values = [row[0] for row in self.query(f"SELECT test_accuracy FROM v_jobs WHERE job_id IN ({','.join(map(str, self.done(index)))})")]
            wanted = statistics.interval(values)
            self.close(cell["test"]["mean"], wanted and wanted.mean)
            self.close(cell["test"]["half_width"], wanted and wanted.half)
            self.assertEqual((cell["test"]["n"], cell["test"]["of"]), (len(values), 3))

    def test_curves(self):
        self.assertTrue(self.data["curves"]["with_seeds"])
        seen = 0
        for series in self.data["curves"]["series"]:
            rows = collections.defaultdict(list)  # epoch -> values of the finished jobs
            singles = collections.defaultdict(lambda: ([], []))
            for job in self.jobs(series["cell"]):
                for epoch, test, train in self.query("SELECT epoch, test_accuracy, train_accuracy FROM v_curves WHERE job_id = ? ORDER BY epoch", job):
                    singles[job][0].append(test)
                    singles[job][1].append(train)
                    if job in self.done(series["cell"]):
                        rows[epoch].append((test, train))
            self.assertEqual({seed["job_id"]: (seed["test"], seed["train"]) for seed in series["seeds"]}, dict(singles))
            self.assertEqual(series["basis"], "done")
            self.assertEqual(series["epochs"], len(rows))
            for epoch, values in rows.items():
                self.assertEqual(len(values), series["n"])
                for which, metric in enumerate(("test", "train")):
                    point = {name: series[metric][name][epoch] for name in ("mean", "low", "high")}
                    self.check_band(point, [value[which] for value in values], f"cell {series['cell']} epoch {epoch}")
                    seen += 1
        self.assertGreater(seen, 400)

    def test_heat_maps(self):
        gaps = 0
        for found in self.data["heads"]:
            parameters = found["parameters"]
            for layer in range(found["layers"]):
                for head in range(found["heads"]):
                    rows = self.query(
                        "SELECT accuracy_drop, drop_standard_error FROM v_head_ablation WHERE layer = ? AND head = ? AND method = ? AND "
                        f"hygiene = ? AND split = ? AND target = ? AND job_id IN ({','.join(map(str, self.jobs(found['cell'])))})",
                        layer, head, parameters["method"], parameters["hygiene"], parameters["data"], parameters["target"])
                    drops = [drop for drop, _ in rows if drop is not None]
                    gaps += not drops
                    self.close(found["mean"][layer][head], math.fsum(drops) / len(drops) if drops else None)
                    self.assertEqual(found["n"][layer][head], len(drops))
                    self.assertEqual(found["counts"][layer][head], sum(drop > 3 * error for drop, error in rows if drop is not None))
            for layer in range(found["layers"]):
                seeds = [sorted((drop for drop in seed["drops"][layer] if drop is not None), reverse=True) for seed in found["seeds"]]
                for rank in range(found["heads"]):
                    drops = [ordered[rank] for ordered in seeds if rank < len(ordered)]
                    self.close(found["by_rank"]["drops"][layer][rank], math.fsum(drops) / len(drops) if drops else None)
            self.assertEqual(found["heads_differ"], self.data["cells"][found["cell"]]["pe"] in ("alibi", "partial_rope"))
            stored = {(seed["seed"], layer, head): drop for seed in found["seeds"] for layer, row in enumerate(seed["drops"])
                      for head, drop in enumerate(row)}
            self.assertEqual(len(stored), len(found["seeds"]) * found["layers"] * found["heads"])
        self.assertGreater(gaps, 0)  # the authors' slices of mla

    def test_layers(self):
        self.assertTrue(self.data["layers"])
        for series in self.data["layers"]:
            for point in series["points"]:
                # A deposit index is NULL in two cases: nothing has an effect (0 here), and nothing
                # could have one (left out).
                rows = self.query(
                    "SELECT d.max_drop, h.total, h.intact_correct, h.chance FROM v_deposits AS d JOIN (SELECT DISTINCT analysis_id, total, "
                    "intact_correct, chance FROM v_head_ablation) AS h USING (analysis_id) WHERE d.layer = ? AND d.job_id IN "
                    f"({','.join(map(str, self.jobs(series['cell'])))})", point["x"])
                values = []
                for drop, total, right, chance in rows:
                    accuracy = right / total
                    if accuracy > chance and accuracy - chance >= 5 * math.sqrt(accuracy * (1 - accuracy) / total):
                        values.append(drop or 0)
                variants = {entry["variant"] for entry in self.data["layers"] if entry["cell"] == series["cell"]}
                if len(variants) == 1:
                    self.check_band(point, values, str(series["cell"]))

    def test_head_counts(self):
        (distance,) = [chart for chart in self.data["head_counts"] if chart["task"] == "distance"]
        self.assertEqual([series["label"] for series in distance["series"]], ["first k heads, clean", "first k heads, published"])
        for series, protocol in zip(distance["series"], ("clean", "published")):
            self.assertEqual(sorted(point["x"] for point in series["points"]), [1, 2, 4])
            for point in series["points"]:
                values = [row[0] for row in self.query(
                    "SELECT test_accuracy FROM v_jobs WHERE pe = 'partial_rope' AND task = 'distance' AND protocol = ? AND state = 'succeeded' "
                    "AND coalesce(json_extract(spec_json, '$.pe.heads'), 1) = ?", protocol, point["x"])]
                self.check_band(point, values, f"{protocol} {point['x']}")
        self.assertEqual({level["key"] for level in distance["levels"]}, {"rope", "nope"})

    def test_comparisons_are_paired_by_seed(self):
        comparisons = self.data["comparisons"]
        self.assertEqual((comparisons["baseline"], comparisons["without"]), ("rope", []))
        accuracy = {(label, task, protocol, seed): value for label, task, protocol, seed, value in self.query(
            "SELECT pe_label, task, protocol, seed, test_accuracy FROM v_jobs WHERE state = 'succeeded'")}
        seen = set()
        for row in comparisons["rows"]:
            group = (row["task"], row["protocol"])
            differences = [accuracy[row["encoding"], *group, seed] - accuracy["rope", *group, seed] for seed in range(3)
                           if (row["encoding"], *group, seed) in accuracy and ("rope", *group, seed) in accuracy]
            self.assertEqual((row["n"], row["of"]), (len(differences), 3))
            self.check_band({"mean": row["difference"], "low": row["low"], "high": row["high"]}, differences, str(row))
            if len(differences) > 1:
                wanted = statistics.interval(differences)
                t = wanted.mean / (wanted.half / statistics.t_quantile(0.975, len(differences) - 1))
                self.assertAlmostEqual(row["p"], 2 * (1 - statistics.t_cdf(abs(t), len(differences) - 1)), 9)
            seen.add((row["encoding"], *group))
        self.assertEqual(seen, {key[:3] for key in accuracy if key[0] != "rope"})

    def test_epochs_to_half(self):
        self.assertEqual({entry["cell"] for entry in self.data["epochs_to_half"]}, {index for index in range(len(self.data["cells"])) if self.done(index)})
        some = 0
        for entry in self.data["epochs_to_half"]:
            firsts = [self.query("SELECT min(epoch) FROM v_curves WHERE job_id = ? AND test_accuracy >= 0.5", job)[0][0] for job in self.done(entry["cell"])]
            reached = sorted(first for first in firsts if first is not None)
            self.assertEqual((entry["reached"], entry["of"]), (len(reached), len(firsts)))
            ranked = reached + [math.inf] * (len(firsts) - len(reached))
            # the epoch by which at least half of the seeds had reached it
            middle = ranked[(len(ranked) - 1) // 2]
            self.assertEqual(entry["median"], None if middle == math.inf else middle)
            some += 0 < len(reached)
        self.assertGreater(some, 3)

    def test_set_up(self):
        set_up = self.data["set_up"]
        shared = {field["name"]: (field["value"], field["default"]) for field in set_up["model"] + set_up["train"]}
        self.assertEqual(shared["model.d_model"], ("32", "256"))
        self.assertEqual(shared["train.epochs"][0], "12")
        self.assertEqual([task["name"] for task in set_up["tasks"]], ["distance", "counting"])
        self.assertEqual([protocol["name"] for protocol in set_up["protocols"]], ["published", "clean"])
        self.assertEqual(sum(protocol["cells"] for protocol in set_up["protocols"]), len(self.data["cells"]))
        self.assertEqual({encoding["label"] for encoding in set_up["encodings"]}, {row[0] for row in self.query("SELECT DISTINCT pe_label FROM v_jobs")})
        self.assertEqual({tuple(encoding["parameters"]) for encoding in set_up["encodings"]}, {(12345,)})
        varying = {field["name"] for field in set_up["varies"]}
        for name in ("model.mask", "train.lr", "model.d_model"):
            values = {row[0] for row in self.query("SELECT DISTINCT json_extract(spec_json, ?) FROM v_jobs", "$." + name)}
            self.assertEqual(len(values) > 1, name in varying, name)

    def test_what_is_missing_is_listed(self):
        wanted = self.query("SELECT job_id, state, error FROM v_jobs WHERE state <> 'succeeded' ORDER BY job_id")
        self.assertGreater(len(wanted), 4)
        self.assertEqual(sorted((job["job_id"], job["state"], job["error"]) for job in self.data["lacking"]), wanted)

    def test_verdicts_are_those_of_another_program(self):
        connection = results.open_database(self.db)
        self.addCleanup(connection.close)
        cells = results.load(connection, ["made-up"])
        wanted = [(claim.figure, claim.text, protocol, outcome.ours, outcome.verdict) for protocol in ("published", "clean")
                  for claim, outcome in claims.judge(cells, protocol)]
        found = [(claim["figure"], claim["text"], claim["protocol"], claim["ours"], claim["verdict"]) for claim in self.data["paper"]["claims"]]
        self.assertEqual(sorted(found), sorted(wanted))
        self.assertGreater(len(found), 10)
        self.assertEqual({"holds", "fails", "undecided"} & {row[-1] for row in found}, {"holds", "fails", "undecided"})

    def test_provenance(self):
        provenance = self.data["provenance"]
        note, = provenance["notes"]  # encodings are compared under clean
        self.assertIn("AdamW betas (0.98, 0.9)", note)
        self.assertEqual({job["job_id"]: job["key"] for job in provenance["jobs"]}, dict(self.query("SELECT job_id, key FROM v_jobs")))
        self.assertEqual(provenance["commands"][0], f"pelab run {self.db.with_suffix('.yaml')}")
        self.assertEqual(provenance["commands"][-1], "pelab report made-up --out report.html")
        self.assertEqual(provenance["environments"][0]["libtorch"], "1.13.1")
        self.assertEqual(self.data["sweeps"][0]["document"], SWEEP)
        keys = dict(self.query("SELECT job_id, spec_json FROM v_jobs"))
        for spec, cell in zip(provenance["specs"], self.data["cells"]):
            self.assertEqual(spec, keys[cell["jobs"][0]["job_id"]])


def check_looks(self, page, data):
    """Checks all charts: one encoding has one color, no two have the same, and variants differ in
    dash and marker."""
    drawn = page.evaluate("""pelabReport.charts.filter((entry) => ['curves', 'layers'].includes(entry.kind)).flatMap((entry) =>
        entry.element.querySelector('.chart-plot').data.filter((trace) => ['mean', 'points'].includes(trace.meta.kind)).map((trace) => (
        {label: trace.meta.label, colour: trace.line.color, dash: trace.line.dash, symbol: trace.marker.symbol}))).concat(
        pelabReport.charts.filter((entry) => entry.kind === 'violins').flatMap((entry) => entry.element.querySelector('.chart-plot').data.map((trace) => (
        {label: entry.chart.data.label, colour: trace.marker.color}))))""")
    pes = {cell["short"]: cell["pe"] for cell in data["cells"]}
    colours, looks = collections.defaultdict(set), collections.defaultdict(set)
    for trace in drawn:
        colours[pes[trace["label"]]].add(trace["colour"])
        if "dash" in trace:
            looks[trace["label"]].add((trace["colour"], trace["dash"], trace["symbol"]))
    self.assertEqual(set(colours), set(pes.values()))
    self.assertEqual({len(found) for found in colours.values()}, {1}, colours)
    self.assertEqual(len({next(iter(found)) for found in colours.values()}), len(colours), colours)
    self.assertEqual({len(found) for found in looks.values()}, {1}, looks)
    self.assertEqual(len({next(iter(found)) for found in looks.values()}), len(looks), looks)
    return {label: next(iter(found)) for label, found in looks.items()}


@unittest.skipUnless(browser.CHROMIUM, browser.MISSING)
class Shown(Made):
    """Tests the page in a browser."""

    check_looks = check_looks

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.tab = browser.Page()
        cls.addClassCleanup(cls.tab.close)

    def open(self, width=1440):
        """Opens the report with all its charts in the one tab. If its width is the same, the tab
        stays as the earlier tests left it."""
        page = self.tab
        page.colours(dark=False)
        if getattr(page, "width", None) != width:
            page.width = width
            page.size(width, mobile=width < 500)
            page.open(self.page)
            page.wait("typeof pelabReport !== 'undefined'")
            page.evaluate("pelabReport.drawAll()")
        return page

    def test_is_whole_quiet_and_asks_nothing(self):
        for width in (390, 1440):
            page = self.open(width)
            self.assertEqual(page.complaints(), [])
            self.assertEqual(page.requests(), [])
            self.assertLessEqual(page.overflow(), 0)
            kinds = set(page.evaluate("pelabReport.charts.map((entry) => entry.kind)"))
            self.assertEqual(kinds, {"table", "curves", "heat map", "violins", "layers", "head counts"})
            self.assertIsNone(page.evaluate("document.querySelector('.chart-place:not(:has(.main-svg))')?.outerHTML ?? null"))
            if width < 500:  # axis labels stay within the window
                self.assertLessEqual(page.evaluate("Math.max(...[...document.querySelectorAll('.main-svg')].map((svg) => svg.getBoundingClientRect().right))"), 390)

    def test_charts_draw_the_data(self):
        page = self.open()
        drawn = page.evaluate("""pelabReport.charts.filter((entry) => entry.kind !== 'table').map((entry) => ({
            kind: entry.kind, name: entry.name, data: entry.chart.data, traces: entry.element.querySelector('.chart-plot').data.map(
              (trace) => ({type: trace.type, x: trace.x, y: trace.y, z: trace.z, meta: trace.meta, visible: trace.visible}))}))""")
        curves = {(series["cell"], metric): series[metric] for series in self.data["curves"]["series"] for metric in ("test", "train")}
        seen = collections.Counter()
        for chart in drawn:
            means = [trace for trace in chart["traces"] if (trace["meta"] or {}).get("kind") == "mean"]
            if chart["kind"] == "curves":
                metric = chart["name"].split(":")[0]
                self.assertEqual(len(means), len(chart["data"]["series"]))
                for trace, series in zip(means, chart["data"]["series"]):
                    wanted = curves[series["cell"], metric]
                    self.assertEqual((trace["y"], series["low"], series["high"]), (wanted["mean"], wanted["low"], wanted["high"]))
                    self.assertEqual(trace["x"], list(range(len(wanted["mean"]))))
            elif chart["kind"] == "heat map":
                (values,) = [trace for trace in chart["traces"] if trace["meta"]["kind"] == "values"]
                named = [found for found in self.data["heads"]
                         if chart["name"] == "{short} {group}".format(**self.data["cells"][found["cell"]])]
                ranks = [len(found["seeds"]) > 1 and not found["heads_differ"] for found in named]
                shown = [found["by_rank"]["drops"] if by_rank else found["mean"] for found, by_rank in zip(named, ranks)]
                wanted = [drops for drops in shown if drops == chart["data"]["values"]]
                self.assertGreaterEqual(len(wanted), 1, chart["name"])
                self.assertEqual(values["z"], [[None if drop is None else drop * 100 for drop in row] for row in wanted[0]])
                gaps = sum(drop is None for row in wanted[0] for drop in row)
                self.assertEqual(sum(z == 0 for trace in chart["traces"] if trace["meta"]["kind"] == "gaps" for row in trace["z"] for z in row), gaps)
            elif chart["kind"] == "violins":
                for trace, layer in zip(chart["traces"], chart["data"]["layers"]):
                    self.assertEqual(trace["y"], [point["value"] * 100 for point in layer["points"]])
            seen[chart["kind"]] += 1
        # two metrics of distance under two protocols, and counting
        self.assertEqual(seen["curves"], 6)
        self.assertGreater(seen["heat map"], 8)
        self.assertEqual(seen["heat map"], seen["violins"])

    def test_an_encoding_has_one_colour_in_every_chart(self):
        page = self.open()
        self.check_looks(page, self.data)

    def test_charts_of_layers_are_alike(self):
        page = self.open()
        for kind in ("violins", "layers"):
            ends = page.evaluate(f"pelabReport.charts.filter((entry) => entry.kind === '{kind}').map((entry) => entry.element.querySelector('.chart-plot')._fullLayout.yaxis.range)")
            self.assertGreater(len(ends), 1)
            self.assertEqual(ends, [ends[0]] * len(ends), kind)
        forms = page.evaluate("pelabReport.charts.filter((entry) => entry.kind === 'violins').map((entry) => [...new Set(entry.chart.figure.plot.data.map((trace) => trace.meta.kind))].join())")
        self.assertEqual(set(forms), {forms[0]})
        drops = [drop for found in self.data["heads"] for seed in found["seeds"] for row in seed["drops"] for drop in row if drop is not None]
        low, high = page.evaluate("pelabReport.charts.find((entry) => entry.kind === 'violins').chart.figure.plot._fullLayout.yaxis.range")
        self.assertLess(low, 100 * min(drops))
        self.assertGreater(high, 100 * max(drops))

    def test_tables_say_what_is_there_and_what_is_not(self):
        page = self.open()
        rows = page.evaluate("[...document.querySelectorAll('#results tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))")
        self.assertEqual(len(rows), len(self.data["cells"]))
        for row, cell in zip(rows, self.data["cells"]):
            for accuracy in (cell["test"], cell["best"]):
                self.assertIn(accuracy_text(accuracy["mean"], accuracy["half_width"]), row)
            if not cell["complete"]:
                self.assertRegex(row[-1], r"of 3, .*(missing|failed)")
        self.assertIn("to 100.0\u2009%)", " ".join(map(" ".join, rows)))
        self.assertIn(f"{len(self.data['lacking'])} of {len(self.data['provenance']['jobs'])} jobs have no result",
                      page.evaluate("document.querySelector('.notice').textContent"))
        missing = page.evaluate("document.querySelector('#lacking').textContent")
        self.assertIn("out of memory at <epoch 6>", missing)
        self.assertIn("pelab retry made-up", missing)
        first = "document.querySelector('#results th button')"
        page.evaluate(f"{first}.click()")
        self.assertEqual(page.evaluate(f"{first}.closest('th').getAttribute('aria-sort')"), "ascending")
        shown = page.evaluate("[...document.querySelectorAll('#results tbody tr')].map((row) => row.cells[0].textContent)")
        self.assertEqual(shown, sorted(shown, key=str.lower))

    def test_works_by_keyboard(self):
        page = self.open()
        visible = "[...document.querySelectorAll('#curves .chart-plot')][0].data.filter((trace) => trace.meta.kind === 'mean').length"
        before = page.evaluate(visible)
        page.evaluate("document.querySelector('#curves .legend-item').focus()")
        page.press("Enter")
        self.assertEqual(page.evaluate(visible), before - 1)
        self.assertEqual(page.evaluate("document.activeElement.getAttribute('aria-pressed')"), "false")
        page.press(" ")
        self.assertEqual(page.evaluate(visible), before)
        axis = "document.querySelector('#curves .chart-plot')._fullLayout.xaxis.range"
        whole = page.evaluate(axis)
        page.evaluate("document.querySelector('#curves .chart-plot').focus()")
        page.press("+")
        page.wait(f"{axis}[1] < {whole[1]}")
        page.press("0")
        page.wait(f"{axis}[1] === {whole[1]}")
        seeds = "document.querySelector('#curves [title=\"Show each seed\"]')"
        page.evaluate(f"{seeds}.click()")
        self.assertGreater(page.evaluate("document.querySelector('#curves .chart-plot').data.filter((trace) => trace.meta.kind === 'seed').length"), 10)
        self.assertEqual(page.complaints(), [])

    def test_pictures_can_be_saved(self):
        page = self.open()
        for kind in ("curves", "heat map", "violins", "layers", "head counts"):
            svg = page.evaluate(f"pelabReport.charts.find((entry) => entry.kind === '{kind}').chart.toSvg()")
            self.assertEqual(xml.dom.minidom.parseString(svg).documentElement.tagName, "svg", kind)
        self.assertIn("rope_abs", page.evaluate("pelabReport.charts.find((entry) => entry.kind === 'curves').chart.toSvg()"))

    def test_is_dark_where_its_reader_is(self):
        page = self.open()
        colour = "getComputedStyle(document.body).backgroundColor + document.querySelector('#curves .chart-plot').data.find((trace) => trace.meta.kind === 'mean').line.color"
        light = page.evaluate(colour)
        page.colours(dark=True)
        page.wait(f"({colour}) !== {json.dumps(light)}")


OWN = """\
name: own
protocol: clean
pe: [nope, rope, alibi, {name: partial_rope, heads: 2}]
task: {name: distance, length: 40, vocabulary: 64, max_distance: 36}
seed: [0, 1]
axes: {train.lr: [1e-3, 3e-3]}
model: {d_model: 32, d_ff: 64, heads: 4, layers: 2, max_len: 40, readout: last}
train: {epochs: 6}
analyses: [head_ablation]
"""


class OwnSweep(Case):
    """Tests a user's own sweep with an axis."""

    check_looks = check_looks

    def shown_commands(self, page):
        texts = page.evaluate("[...document.querySelectorAll('main code, main pre')].map((element) => element.textContent)")
        return [line for text in texts for line in text.splitlines() if line.startswith("pelab ")]

    @unittest.skipUnless(browser.CHROMIUM, browser.MISSING)
    def test_shows_the_axis_by_dashes_and_nothing_of_the_paper(self):
        make_database(self.db, OWN)
        self.ok(self.pelab_db("report", "own"))
        data = data_of(self.folder / "report.html")
        self.assertEqual(data["set_up"]["protocols"], [{**data["set_up"]["protocols"][0], "name": "custom", "near": "clean", "cells": 8, "departures": [
            {"field": "model.readout", "value": "last", "protocol_value": "masked_mean"}]}])
        with browser.Page() as page:
            page.open(self.folder / "report.html")
            page.wait("typeof pelabReport !== 'undefined'")
            page.evaluate("pelabReport.drawAll()")
            self.assertEqual(page.complaints(), [])
            looks = self.check_looks(page, data)
            slow, fast = ({looks[label][1] for label in looks if label.endswith(rate)} for rate in ("train.lr=0.001", "train.lr=0.003"))
            self.assertEqual((len(slow), len(fast)), (1, 1))
            self.assertNotEqual(slow, fast)
            shown = page.evaluate("document.querySelector('main').textContent")
            self.assertIsNone(page.evaluate("document.querySelector('#paper')"))
            self.assertNotIn("of the paper", shown)
            self.assertIn("model.readout: last (clean: masked_mean)", shown)

    def test_every_command_that_it_prints_is_one(self):
        make_database(self.db, OWN.replace("[head_ablation]", "[]"), "--fail-every", "5", "--set", "train.epochs=3")
        self.server()
        self.ok(self.pelab("extend", "own", "--seed", "7..8"))
        self.ok(self.pelab("report", "own"))
        commands = list(data_of(self.folder / "report.html")["provenance"]["commands"])
        self.assertEqual(commands, [f"pelab run {self.db.with_suffix('.yaml')} --set train.epochs=3", "pelab extend own --seed 7..8",
                                    "pelab report own --out report.html"])
        if browser.CHROMIUM:
            with browser.Page() as page:
                page.open(self.folder / "report.html")
                page.wait("typeof pelabReport !== 'undefined'")
                commands = sorted(set(commands + self.shown_commands(page)))
                self.assertIn("pelab retry own", commands)
                self.assertIn("pelab analyze own --analysis head_ablation", commands)
        for command in commands:
            words = shlex.split(command)[1:]
            more = {"run": ["--dry-run"], "extend": ["--dry-run"], "report": ["--force"]}.get(words[0], [])
            ended = self.pelab(*words, *more)
            # Status 3: accepted, but not every job can be analyzed.
            self.ok(ended, 3 if words[0] == "analyze" and ended.returncode == 3 else 0)


class Hostile(Case):
    """Checks that any content of the database is shown as text."""

    def make(self):
        few = re.sub(r"exclude:.*\n", "", SWEEP.replace("made-up", "hostile").replace("rope_abs, ", "").replace("[1, 2, 4]", "[1, 2]"))
        make_database(self.db, few, "--set", "train.epochs=3", "--set", "seed=0", "--set", "protocol=clean", "--fail-every", "3", "--error", "\n".join(HOSTILE))
        # names that no coordinator accepts, as if from another program
        connection = sqlite3.connect(self.db)
        connection.execute("UPDATE sweeps SET name = ?, document = ?", (HOSTILE[0] + HOSTILE[1], "\n".join(HOSTILE)))
        for job, (text, label) in enumerate(zip(HOSTILE, reversed(HOSTILE)), 1):
            connection.execute("UPDATE jobs SET pe_label = ?, protocol = ? WHERE job_id = ?", (text, label, job))
        connection.commit()
        connection.close()
        page = self.folder / "hostile.html"
        self.ok(report(self.db, page, sweep="1"))
        return page

    def test_nothing_breaks_out_of_the_data(self):
        page = self.make()
        text = page.read_text()
        self.assertEqual(len(re.findall("<script", text.split("plotly.js (cartesian")[0])), 3)
        data = data_of(page)
        self.assertEqual(data["sweeps"][0]["name"], HOSTILE[0] + HOSTILE[1])
        self.assertEqual({cell["pe_label"] for cell in data["cells"]} & set(HOSTILE), set(HOSTILE))
        self.assertNotIn("\u2028", text.split('id="report-data"')[1].split("</script>")[0])

    @unittest.skipUnless(browser.CHROMIUM, browser.MISSING)
    def test_is_shown_as_text(self):
        file = self.make()
        with browser.Page() as page:
            page.open(file)
            page.wait("typeof pelabReport !== 'undefined'")
            page.evaluate("pelabReport.drawAll()")
            self.assertIsNone(page.evaluate("window.broken ?? null"))
            self.assertEqual(page.complaints(), [])
            self.assertEqual(page.requests(), [])
            self.assertEqual(page.evaluate("document.querySelector('h1').textContent"), HOSTILE[0] + HOSTILE[1])
            self.assertEqual(page.evaluate("document.querySelectorAll('main img, main script, main b, main [onerror], .main-svg a').length"), 0)
            shown = page.evaluate("document.querySelector('main').textContent")
            for text in HOSTILE:
                if text.isprintable():
                    self.assertIn(text, shown)
            self.assertIn("\\u2028\\u2029\\u202eright to left", shown)
            self.assertIn("\u241b[31mred\u2407 %{y} $x^2$", shown)
            self.assertNotRegex(shown, "[\u2028\u202e\x1b\x07]")
            svg = page.evaluate("Promise.all(pelabReport.charts.filter((entry) => entry.kind !== 'table').map((entry) => entry.chart.toSvg()))")
            for one in svg:
                self.assertEqual(len(xml.dom.minidom.parseString(one).getElementsByTagName("script")), 0)


class CommandLine(Case):
    def test_from_a_coordinator_and_from_the_file_alike(self):
        make_database(self.db, SWEEP, "--set", "train.epochs=3", "--open-every", "5")
        alone = self.folder / "alone.html"
        self.ok(self.pelab_db("report", "made-up", "--out", alone))
        self.server()
        served = self.folder / "served.html"
        said = self.json("report", "made-up", "--out", served)
        self.assertEqual((said["report"], said["bytes"], said["sweeps"]), (str(served), served.stat().st_size, ["made-up"]))
        found, wanted = data_of(served), data_of(alone)
        for name in ("made_at_ms", "source"):
            self.assertNotEqual(found.pop(name), wanted.pop(name))
        for sweep in (found["sweeps"][0], wanted["sweeps"][0]):
            sweep.pop("waiting_reason", None)
        self.assertEqual(found, wanted)

    def test_replaces_nothing_unasked_and_leaves_nothing_half_written(self):
        make_database(self.db, SWEEP, "--set", "train.epochs=2", "--set", "seed=0")
        self.ok(self.pelab_db("report", "made-up"))
        first = (self.folder / "report.html").read_bytes()
        again = self.pelab_db("report", "made-up")
        self.assertEqual((again.returncode, again.stdout), (2, ""))
        self.assertIn("report.html already exists; --force replaces it", again.stderr)
        self.assertEqual((self.folder / "report.html").read_bytes(), first)
        self.ok(self.pelab_db("report", "made-up", "--force"))
        for output in ("json", "jsonl"):
            said = self.ok(self.pelab_db("report", "made-up", "--force", "--output", output)).stdout
            row = json.loads(said)
            self.assertEqual((row["report"], row["sweeps"], row["bytes"]), ("report.html", ["made-up"], (self.folder / "report.html").stat().st_size))
            self.assertEqual(said.count("\n") == 1, output == "jsonl", "one line")
        self.assertIn("no sweep", self.ok(self.pelab_db("report", "nosuch", "--out", "x.html"), 2).stderr)
        self.assertIn("--out", self.ok(self.pelab_db("report", "made-up", "--out", self.folder), 2).stderr)
        self.assertIn("none/there", self.ok(self.pelab_db("report", "made-up", "--out", "none/there.html"), 2).stderr)
        left = {path.name for path in self.folder.iterdir()}
        self.assertEqual({name for name in left if "html" in name}, {"report.html"})

    def test_a_sweep_that_nobody_ran_says_what_to_do(self):
        make_database(self.db, SWEEP, "--open-every", "1", "--set", "seed=0")
        connection = sqlite3.connect(self.db)
        connection.execute("DELETE FROM attempts")
        connection.commit()
        connection.close()
        data_page = self.folder / "report.html"
        self.ok(self.pelab_db("report", "made-up"))
        data = data_of(data_page)
        self.assertEqual(len(data["lacking"]), sum(len(cell["jobs"]) for cell in data["cells"]))
        self.assertEqual((data["heads"], data["layers"], data["curves"]["series"]), ([], [], []))


if __name__ == "__main__":
    unittest.main(verbosity=2)
