"""The page that `pelab report` writes, in headless Chromium: it shows the data in it, makes no
network requests, works by keyboard, and shows hostile text as text."""

import collections
import json
import pathlib
import re
import sqlite3
import sys
import unittest
import xml.dom.minidom

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import browser  # noqa: E402
from pelab_harness import Case  # noqa: E402
from report_case import OWN, SWEEP, Made, data_of, make_database, report  # noqa: E402

HOSTILE = [
    "</script><script>window.broken = 1</script>", "<img src=x onerror='window.broken = 1'>",
    "\"'`;&amp;<b>bold</b>", "\u2028\u2029\u202eright to left", "\x1b[31mred\x07 %{y} $x^2$",
    "'; DROP TABLE jobs; --", "<!--", "]]>", "<a href='javascript:1'>x</a>",
]


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


def check_looks(test, page, data):
    """Checks all charts: one encoding has one color, no two have the same, and variants differ in
    dash and marker."""
    drawn = page.evaluate(
        """pelabReport.charts.filter((entry) => ['curves', 'layers'].includes(entry.kind))
          .flatMap((entry) => entry.element.querySelector('.chart-plot').data
            .filter((trace) => ['mean', 'points'].includes(trace.meta.kind))
            .map((trace) => ({label: trace.meta.label, color: trace.line.color,
                              dash: trace.line.dash, symbol: trace.marker.symbol})))
          .concat(pelabReport.charts.filter((entry) => entry.kind === 'violins')
            .flatMap((entry) => entry.element.querySelector('.chart-plot').data
              .map((trace) => ({label: entry.chart.data.label, color: trace.marker.color}))))""")
    pes = {cell["short"]: cell["pe"] for cell in data["cells"]}
    colors, looks = collections.defaultdict(set), collections.defaultdict(set)
    for trace in drawn:
        colors[pes[trace["label"]]].add(trace["color"])
        if "dash" in trace:
            looks[trace["label"]].add((trace["color"], trace["dash"], trace["symbol"]))
    test.assertEqual(set(colors), set(pes.values()))
    test.assertEqual({len(found) for found in colors.values()}, {1}, colors)
    test.assertEqual(len({next(iter(found)) for found in colors.values()}), len(colors), colors)
    test.assertEqual({len(found) for found in looks.values()}, {1}, looks)
    test.assertEqual(len({next(iter(found)) for found in looks.values()}), len(looks), looks)
    return {label: next(iter(found)) for label, found in looks.items()}


def open_whole(page, file):
    """Opens a report and draws all its charts, also those far below the window."""
    page.open(file)
    page.wait("typeof pelabReport !== 'undefined'")
    page.evaluate("pelabReport.drawAll()")


def check_whole(test, page):
    """Checks that every chart is there, that nothing scrolls sideways, that the browser has nothing
    to complain about, and that the page has asked for nothing."""
    test.assertEqual(page.complaints(), [])
    test.assertEqual(page.requests(), [])
    test.assertLessEqual(page.overflow(), 0)
    test.assertIsNone(page.evaluate(
        "document.querySelector('.chart-place:not(:has(.main-svg))')?.outerHTML ?? null"))


# Whether every chart has the width of its place, also where the window has another width now.
# Charts in closed folds draw themselves again when these are opened.
ALL_FIT = ("pelabReport.charts.map(({chart}) => chart.figure).filter((figure) => figure?.plot"
           ".checkVisibility()).every(({plot, width}) => width === Math.floor(plot.clientWidth))")


@unittest.skipUnless(browser.CHROMIUM, browser.MISSING)
class Shown(Made):
    """Tests the page in a browser."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.tab = cls.enterClassContext(browser.tab())
        cls.width = None

    def open(self, width=1440):
        """Returns the one tab, which has the report with all its charts. It stays as the earlier
        tests left it. If they had another width, the charts draw themselves again."""
        page, opened = self.tab, Shown.width is not None
        if Shown.width != width:
            Shown.width = width
            page.size(width, mobile=width < 500)
        if opened:
            page.wait(f"innerWidth === {width} && {ALL_FIT}", f"the charts at {width} px")
        else:
            open_whole(page, self.page)
        return page

    def test_a_page_is_whole_quiet_and_asks_nothing(self):
        # First by its name: the page is loaded for a phone, and the other tests take it as it is
        # after the window has become wide. OwnSweep loads a page for a wide window.
        for width in (390, 1440):
            page = self.open(width)
            check_whole(self, page)
            kinds = set(page.evaluate("pelabReport.charts.map((entry) => entry.kind)"))
            self.assertEqual(kinds,
                             {"table", "curves", "heat map", "violins", "layers", "head counts"})
            # No chart is wider than the window, and axis labels stay within it.
            self.assertLessEqual(page.evaluate(
                "Math.max(...[...document.querySelectorAll('.main-svg')].map((svg) => "
                "svg.getBoundingClientRect().right))"), width)

    def test_charts_draw_the_data(self):
        page = self.open()
        drawn = page.evaluate(
            """pelabReport.charts.filter((entry) => entry.kind !== 'table').map((entry) => ({
            kind: entry.kind, name: entry.name, data: entry.chart.data,
            traces: entry.element.querySelector('.chart-plot').data.map(
              (trace) => ({type: trace.type, x: trace.x, y: trace.y, z: trace.z,
                           meta: trace.meta, visible: trace.visible}))}))""")
        curves = {(series["cell"], metric): series[metric]
                  for series in self.data["curves"]["series"] for metric in ("test", "train")}
        seen = collections.Counter()
        for chart in drawn:
            means = [trace
                     for trace in chart["traces"] if (trace["meta"] or {}).get("kind") == "mean"]
            if chart["kind"] == "curves":
                metric = chart["name"].split(":")[0]
                self.assertEqual(len(means), len(chart["data"]["series"]))
                for trace, series in zip(means, chart["data"]["series"]):
                    wanted = curves[series["cell"], metric]
                    self.assertEqual((trace["y"], series["low"], series["high"]),
                                     (wanted["mean"], wanted["low"], wanted["high"]))
                    self.assertEqual(trace["x"], list(range(len(wanted["mean"]))))
            elif chart["kind"] == "heat map":
                (values,) = [trace
                             for trace in chart["traces"] if trace["meta"]["kind"] == "values"]
                named = [found for found in self.data["heads"] if chart["name"]
                         == "{short} {group}".format(**self.data["cells"][found["cell"]])]
                ranks = [len(found["seeds"]) > 1 and not found["heads_differ"] for found in named]
                shown = [found["by_rank"]["drops"] if by_rank else found["mean"]
                         for found, by_rank in zip(named, ranks)]
                wanted = [drops for drops in shown if drops == chart["data"]["values"]]
                self.assertGreaterEqual(len(wanted), 1, chart["name"])
                self.assertEqual(values["z"], [[None if drop is None else drop * 100
                                                for drop in row] for row in wanted[0]])
                gaps = sum(drop is None for row in wanted[0] for drop in row)
                self.assertEqual(sum(z == 0
                                     for trace in chart["traces"] if trace["meta"]["kind"] == "gaps"
                                     for row in trace["z"] for z in row), gaps)
            elif chart["kind"] == "violins":
                for trace, layer in zip(chart["traces"], chart["data"]["layers"]):
                    self.assertEqual(trace["y"],
                                     [point["value"] * 100 for point in layer["points"]])
            seen[chart["kind"]] += 1
        # two metrics of distance under two protocols, and counting
        self.assertEqual(seen["curves"], 6)
        self.assertGreater(seen["heat map"], 8)
        self.assertEqual(seen["heat map"], seen["violins"])

    def test_an_encoding_has_one_color_in_every_chart(self):
        page = self.open()
        check_looks(self, page, self.data)

    def test_charts_of_layers_are_alike(self):
        page = self.open()
        for kind in ("violins", "layers"):
            ends = page.evaluate(
                f"pelabReport.charts.filter((entry) => entry.kind === '{kind}').map((entry) => "
                "entry.element.querySelector('.chart-plot')._fullLayout.yaxis.range)")
            self.assertGreater(len(ends), 1)
            self.assertEqual(ends, [ends[0]] * len(ends), kind)
        forms = page.evaluate(
            "pelabReport.charts.filter((entry) => entry.kind === 'violins').map((entry) => [...new "
            "Set(entry.chart.figure.plot.data.map((trace) => trace.meta.kind))].join())")
        self.assertEqual(set(forms), {forms[0]})
        drops = [drop for found in self.data["heads"] for seed in found["seeds"]
                 for row in seed["drops"] for drop in row if drop is not None]
        low, high = page.evaluate("pelabReport.charts.find((entry) => entry.kind === "
                                  "'violins').chart.figure.plot._fullLayout.yaxis.range")
        self.assertLess(low, 100 * min(drops))
        self.assertGreater(high, 100 * max(drops))

    def test_a_value_and_its_interval_stay_on_one_line(self):
        page = self.open()
        found = page.evaluate("[...document.querySelectorAll('#results tbody td')]"
                              ".filter((cell) => cell.textContent.includes('±'))"
                              ".map((cell) => [cell.className, getComputedStyle(cell).whiteSpace])")
        self.assertEqual({name for name, _ in found},
                         {"kind-interval", "kind-points_interval", "kind-mean"})
        self.assertEqual({space for _, space in found}, {"nowrap"})

    def test_tables_say_what_is_there_and_what_is_not(self):
        page = self.open()
        rows = page.evaluate("[...document.querySelectorAll('#results tbody tr')].map((row) => "
                             "[...row.cells].map((cell) => cell.textContent))")
        self.assertEqual(len(rows), len(self.data["cells"]))
        titles = page.evaluate("[...document.querySelectorAll('#results thead th')].map((title) => "
                               "title.textContent)")
        seeds = titles.index("seeds")
        self.assertEqual(titles[seeds + 1], "test accuracy")
        for row, cell in zip(rows, self.data["cells"]):
            for accuracy in (cell["test"], cell["best"]):
                self.assertIn(accuracy_text(accuracy["mean"], accuracy["half_width"]), row)
            if not cell["complete"]:
                self.assertRegex(row[seeds], r"of 3, .*(missing|failed)")
        self.assertIn("to 100.0\u2009%)", " ".join(map(" ".join, rows)))
        self.assertIn(f"{len(self.data['lacking'])} of {len(self.data['provenance']['jobs'])} jobs "
                      "have no result",
                      page.evaluate("document.querySelector('.notice').textContent"))
        missing = page.evaluate("document.querySelector('#lacking').textContent")
        self.assertIn("out of memory at <epoch 6>", missing)
        self.assertIn("pelab retry made-up", missing)
        first = "document.querySelector('#results th button')"
        page.evaluate(f"{first}.click()")
        self.assertEqual(page.evaluate(f"{first}.closest('th').getAttribute('aria-sort')"),
                         "ascending")
        shown = page.evaluate("[...document.querySelectorAll('#results tbody tr')].map((row) => "
                              "row.cells[0].textContent)")
        self.assertEqual(shown, sorted(shown, key=str.lower))

    def test_works_by_keyboard(self):
        page = self.open()
        visible = ("[...document.querySelectorAll('#curves .chart-plot')][0].data.filter((trace) "
                   "=> trace.meta.kind === 'mean').length")
        before = page.evaluate(visible)
        page.evaluate("document.querySelector('#curves .legend-item').focus()")
        page.press("Enter")
        self.assertEqual(page.evaluate(visible), before - 1)
        self.assertEqual(page.evaluate("document.activeElement.getAttribute('aria-pressed')"),
                         "false")
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
        self.assertGreater(
            page.evaluate("document.querySelector('#curves .chart-plot').data.filter((trace) => "
                          "trace.meta.kind === 'seed').length"), 10)
        self.assertEqual(page.complaints(), [])

    def test_pictures_can_be_saved(self):
        page = self.open()
        for kind in ("curves", "heat map", "violins", "layers", "head counts"):
            svg = page.evaluate(
                f"pelabReport.charts.find((entry) => entry.kind === '{kind}').chart.toSvg()")
            self.assertEqual(xml.dom.minidom.parseString(svg).documentElement.tagName, "svg", kind)
        self.assertIn("rope_abs", page.evaluate(
            "pelabReport.charts.find((entry) => entry.kind === 'curves').chart.toSvg()"))

    def test_works_in_the_dark(self):
        # Last by its name: the charts of the page stay dark.
        page = self.open()
        color = (
            "getComputedStyle(document.body).backgroundColor + document.querySelector('#curves "
            ".chart-plot').data.find((trace) => trace.meta.kind === 'mean').line.color")
        light = page.evaluate(color)
        page.colors(dark=True)
        page.wait(f"({color}) !== {json.dumps(light)}")
        self.assertEqual(page.complaints(), [])


@unittest.skipUnless(browser.CHROMIUM, browser.MISSING)
class OwnSweep(Case):
    def test_shows_the_axis_by_dashes_and_nothing_of_the_paper(self):
        make_database(self.db, OWN)
        self.ok(self.pelab_db("report", "own"))
        data = data_of(self.folder / "report.html")
        self.assertEqual(data["set_up"]["protocols"], [
            {**data["set_up"]["protocols"][0], "name": "custom", "near": "clean", "cells": 8,
             "departures": [
                 {"field": "model.readout", "value": "last", "protocol_value": "masked_mean"}]}])
        with browser.tab() as page:
            open_whole(page, self.folder / "report.html")
            check_whole(self, page)
            looks = check_looks(self, page, data)
            slow, fast = ({looks[label][1] for label in looks if label.endswith(rate)}
                          for rate in ("train.lr=0.001", "train.lr=0.003"))
            self.assertEqual((len(slow), len(fast)), (1, 1))
            self.assertNotEqual(slow, fast)
            shown = page.evaluate("document.querySelector('main').textContent")
            self.assertIsNone(page.evaluate("document.querySelector('#paper')"))
            self.assertNotIn("of the paper", shown)
            self.assertIn("model.readout: last (clean: masked_mean)", shown)


class Hostile(Case):
    """Checks that any content of the database is shown as text."""

    def make(self):
        few = re.sub(r"exclude:.*\n +.*\n", "", SWEEP.replace("made-up", "hostile"))
        few = few.replace("rope_abs, ", "").replace("[1, 2, 4]", "[1, 2]")
        make_database(self.db, few, "--set", "train.epochs=3", "--set", "seed=0",
                      "--set", "protocol=clean", "--fail-every", "3", "--error", "\n".join(HOSTILE))
        # names that no coordinator accepts, as if from another program
        connection = sqlite3.connect(self.db)
        connection.execute("UPDATE sweeps SET name = ?, document = ?",
                           (HOSTILE[0] + HOSTILE[1], "\n".join(HOSTILE)))
        for job, (text, label) in enumerate(zip(HOSTILE, reversed(HOSTILE)), 1):
            connection.execute("UPDATE jobs SET pe_label = ?, protocol = ? WHERE job_id = ?",
                               (text, label, job))
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
        with browser.tab() as page:
            open_whole(page, file)
            self.assertIsNone(page.evaluate("window.broken ?? null"))
            self.assertEqual(page.complaints(), [])
            self.assertEqual(page.requests(), [])
            self.assertEqual(page.evaluate("document.querySelector('h1').textContent"),
                             HOSTILE[0] + HOSTILE[1])
            self.assertEqual(page.evaluate("document.querySelectorAll('main img, main script, main "
                                           "b, main [onerror], .main-svg a').length"), 0)
            shown = page.evaluate("document.querySelector('main').textContent")
            for text in HOSTILE:
                if text.isprintable():
                    self.assertIn(text, shown)
            self.assertIn("\\u2028\\u2029\\u202eright to left", shown)
            self.assertIn("\u241b[31mred\u2407 %{y} $x^2$", shown)
            self.assertNotRegex(shown, "[\u2028\u202e\x1b\x07]")
            svg = page.evaluate("Promise.all(pelabReport.charts.filter((entry) => entry.kind !== "
                                "'table').map((entry) => entry.chart.toSvg()))")
            for one in svg:
                self.assertEqual(
                    len(xml.dom.minidom.parseString(one).getElementsByTagName("script")), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
