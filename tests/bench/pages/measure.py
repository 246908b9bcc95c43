#!/usr/bin/env python3
"""Measures the coordinator's pages in headless Chromium: how soon the grid of a sweep is drawn, and whether a page that
follows 60 live jobs grows.

    PELAB_BIN=build/release/bin python3 tests/bench/pages/measure.py paint
    PELAB_BIN=build/release/bin python3 tests/bench/pages/measure.py live --minutes 10

`paint`: a database of 10,000 jobs of 150 epochs, in it a sweep of 200; from the start of the navigation until the grid is
drawn, with an empty cache each time. `live`: 60 jobs at a time, an epoch every 2 s each; every minute the JavaScript heap
after a forced collection, nodes and listeners, and after the second minute and at the end a heap snapshot: all of the page's
objects, also those of the browser behind them (nodes, styles, layout). Exits 1 where a figure is not met.
"""

import argparse
import collections
import json
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "e2e"))
import browser
from pelab_harness import wait_until
from test_pages import POPULATE, TRAINER, PagesTest

PES = "[nope, absolute, random, relative, alibi, rope, mla, rope_abs, {name: partial_rope, heads: [1, 2]}]"
SHOWN = f"name: shown\nprotocol: clean\npe: {PES}\ntask: [distance, counting]\nseed: 0..9\n"
OTHERS = f"name: others\nprotocol: clean\npe: {PES}\ntask: [distance, counting]\nseed: 10..499\n"
SMALL = "model: {d_model: 16, d_ff: 16, heads: 4, layers: 2}\n"
LIVE = ("name: live\nprotocol: clean\npe: [nope, rope, alibi, mla, absolute, relative]\ntask: [distance, counting]\nseed: 0..99\n"
        f"{SMALL}train: {{epochs: 30}}\nanalyses: []\n")
MOST_PAINT = 1.0   # s
WARM_UP = 2        # minutes
MOST_GROWTH = 0.1  # of all objects, after that


class Measure(PagesTest):
    def runTest(self):
        pass

    def paint(self, times=15):
        sweeps = [self.write(f"{name}.yaml", text + SMALL + "train: {epochs: 150}\n") for name, text in (("a", SHOWN), ("b", OTHERS))]
        began = time.monotonic()
        self.run_ok(POPULATE, *sweeps, "--db", self.db, "--fail-every", 37, limit=900)
        jobs, epochs = self.query("SELECT count(*), sum(epochs_done) FROM v_jobs")[0]
        print(f"{jobs} jobs with {epochs} epochs stored in {time.monotonic() - began:.0f} s")
        self.serve()
        mark = "performance.getEntriesByName('pelab-grid-drawn')[0]?.startTime ?? 0"
        drawn, charts = [], []
        for _ in range(times):
            self.page.call("Network.clearBrowserCache")
            self.open("/sweeps/shown")
            self.page.wait(mark)
            drawn.append(self.page.evaluate(mark) / 1000)
            self.await_charts(7)
            charts.append(self.page.evaluate("performance.now()") / 1000)
            self.assertEqual(len(self.shown_states()), 200)
        print(f"grid drawn after: median {statistics.median(drawn):.3f} s, slowest of {times} {max(drawn):.3f} s; "
              f"with curves and heat maps: median {statistics.median(charts):.2f} s")
        return max(drawn) <= MOST_PAINT

    def kinds(self):
        """Bytes of the page's objects by kind, by a heap snapshot."""
        chunks = []
        note = self.page._note

        def listen(message):
            if message.get("method") == "HeapProfiler.addHeapSnapshotChunk":
                chunks.append(message["params"]["chunk"])
            note(message)

        self.page._note, self.page.timeout = listen, 120
        self.page.call("HeapProfiler.takeHeapSnapshot")
        self.page._note = note
        snapshot = json.loads("".join(chunks))
        meta, nodes = snapshot["snapshot"]["meta"], snapshot["nodes"]
        step, kind, size = len(meta["node_fields"]), meta["node_fields"].index("type"), meta["node_fields"].index("self_size")
        sizes = collections.Counter()
        for at in range(0, len(nodes), step):
            sizes[meta["node_types"][0][nodes[at + kind]]] += nodes[at + size]
        return sizes

    def live(self, minutes):
        self.serve()
        self.submit(LIVE)
        self.worker("w", 60, "--trainer", TRAINER, env={"PELAB_EPOCH_SECONDS": "2"})
        wait_until(lambda: self.states().get("running", 0) >= 60, 60, "60 running jobs")
        self.open("/sweeps/live")
        self.page.evaluate("window.seen = 0; new MutationObserver((all) => { window.seen += all.length; })"
                           ".observe(document.querySelector('main'), {subtree: true, attributes: true, childList: true, characterData: true})")
        self.assert_clean()
        self.page.call("Network.disable")  # with it the browser keeps every answer for the debugger
        first = {}
        last = WARM_UP + minutes
        for minute in range(1, last + 1):
            time.sleep(60)
            self.page.call("HeapProfiler.collectGarbage")
            heap = self.page.call("Runtime.getHeapUsage")["usedSize"] / 2**20
            counters = self.page.call("Memory.getDOMCounters")
            print(f"minute {minute}: heap {heap:.2f} MiB, {counters['nodes']} nodes, {counters['jsEventListeners']} listeners, "
                  f"{self.page.evaluate('window.seen')} changes of the page, states {self.states()}", flush=True)
            if minute in (WARM_UP, last):
                kinds = self.kinds()
                first = first or kinds
        before, after = sum(first.values()), sum(kinds.values())
        for kind in sorted(kinds, key=lambda kind: -kinds[kind]):
            print(f"{kind}: {first.get(kind, 0) / 2**20:.2f} -> {kinds[kind] / 2**20:.2f} MiB")
        growth = after / before - 1
        print(f"all objects, from minute {WARM_UP} to {last}: {before / 2**20:.2f} -> {after / 2**20:.2f} MiB ({100 * growth:+.1f} %)")
        self.assertEqual(self.page.complaints(), [])
        return growth <= MOST_GROWTH


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["paint", "live"])
    parser.add_argument("--minutes", type=int, default=10)
    arguments = parser.parse_args()
    if browser.CHROMIUM is None:
        sys.exit(browser.MISSING)
    Measure.setUpClass()
    case = Measure()
    case.setUp()
    try:
        ok = case.paint() if arguments.what == "paint" else case.live(arguments.minutes)
    finally:
        case.doCleanups()
        Measure.tearDownClass()
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
