#!/usr/bin/env python3
"""Measures the coordinator's pages in headless Chromium.

It measures how soon the grid of a sweep is drawn, and whether a page that follows 60 live jobs
grows.

    PELAB_BIN=build/release/bin python3 tests/bench/pages/measure.py paint
    PELAB_BIN=build/release/bin python3 tests/bench/pages/measure.py live --minutes 10

`paint` uses a database of 10,000 jobs of 150 epochs, with a sweep of 200 jobs. It measures the time
from the start of the navigation until the grid is drawn, with an empty cache each time.

`live` runs 60 jobs, each with an epoch every 2 s, and a page that follows them. Every minute it
prints the JavaScript heap after a forced collection, and the numbers of nodes and listeners. At the
end it takes a heap snapshot of that page, and one of the same page opened anew, which shows the
same curves. A snapshot holds all objects, also the browser's own (nodes, styles, layout). Whatever
the first page has in excess of the new one, except compiled functions, counts as growth.

Exits 1 if a limit is exceeded.
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
import browser  # noqa: E402
from pelab_harness import wait_until  # noqa: E402
from test_pages import POPULATE, TRAINER, PagesTest  # noqa: E402

PES = ("[nope, absolute, random, relative, alibi, rope, mla, rope_abs, {name: partial_rope, heads: "
       "[1, 2]}]")
SHOWN = f"name: shown\nprotocol: clean\npe: {PES}\ntask: [distance, counting]\nseed: 0..9\n"
OTHERS = f"name: others\nprotocol: clean\npe: {PES}\ntask: [distance, counting]\nseed: 10..499\n"
SMALL = "model: {d_model: 16, d_ff: 16, heads: 4, layers: 2}\n"
LIVE = ("name: live\nprotocol: clean\npe: [nope, rope, alibi, mla, absolute, relative]\n"
        "task: [distance, counting]\nseed: 0..4\n"
        f"{SMALL}train: {{epochs: 100000}}\nanalyses: []\n")
MOST_PAINT = 1.0    # s
MOST_GROWTH = 0.05  # share of all objects
# V8's compiled code of functions that run often. It is bounded, and dropped after a while without
# use.
COMPILED = "code"


class Measure(PagesTest):
    def runTest(self):
        pass

    def paint(self, times=15):
        sweeps = [self.write(f"{name}.yaml", text + SMALL + "train: {epochs: 150}\n")
                  for name, text in (("a", SHOWN), ("b", OTHERS))]
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
        print(f"grid drawn after: median {statistics.median(drawn):.3f} s, slowest of {times} "
              f"{max(drawn):.3f} s; with curves and heat maps: median "
              f"{statistics.median(charts):.2f} s")
        return max(drawn) <= MOST_PAINT

    def kinds(self):
        """Bytes of the page's objects by kind, from a heap snapshot."""
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
        step, kind, size = (len(meta["node_fields"]), meta["node_fields"].index("type"),
                            meta["node_fields"].index("self_size"))
        sizes = collections.Counter()
        for at in range(0, len(nodes), step):
            sizes[meta["node_types"][0][nodes[at + kind]]] += nodes[at + size]
        return sizes

    def usage(self):
        self.page.call("HeapProfiler.collectGarbage")
        heap = self.page.call("Runtime.getHeapUsage")["usedSize"] / 2**20
        counters = self.page.call("Memory.getDOMCounters")
        return (f"heap {heap:.2f} MiB, {counters['nodes']} nodes, {counters['jsEventListeners']} "
                "listeners")

    def live(self, minutes):
        self.serve()
        self.submit(LIVE)
        self.worker("w", 60, "--trainer", TRAINER, env={"PELAB_EPOCH_SECONDS": "2"})
        wait_until(lambda: self.states().get("running", 0) >= 60, 60, "60 running jobs")
        self.open("/sweeps/live")
        self.page.evaluate("window.seen = 0; new MutationObserver((all) => { window.seen += "
                           "all.length; }).observe(document.querySelector('main'), {subtree: true, "
                           "attributes: true, childList: true, characterData: true})")
        self.assert_clean()
        self.page.call("Network.disable")  # while enabled, the browser keeps all answers
        for minute in range(1, minutes + 1):
            time.sleep(60)
            print(f"minute {minute}: {self.usage()}, {self.page.evaluate('window.seen')} changes "
                  f"of the page, {self.query('SELECT sum(epochs_done) FROM v_jobs')[0][0]} epochs",
                  flush=True)
        self.assertEqual(self.states(), {"running": 60})
        followed = self.kinds()
        charts = self.page.evaluate("document.querySelectorAll('.chart-plot').length")
        self.open("/sweeps/live")
        self.await_charts(charts)
        print(f"opened anew: {self.usage()}")
        anew = self.kinds()
        for kind in sorted(followed, key=lambda kind: -followed[kind]):
            print(f"{kind}: {followed[kind] / 2**20:.2f} MiB, opened anew {anew[kind] / 2**20:.2f}")
        followed_all, anew_all = (sum(kinds.values()) - kinds[COMPILED]
                                  for kinds in (followed, anew))
        growth = followed_all / anew_all - 1
        print(f"all objects but compiled functions: {followed_all / 2**20:.2f} MiB, opened anew "
              f"{anew_all / 2**20:.2f} ({100 * growth:+.1f} %)")
        self.assertEqual(self.page.complaints(), [])
        return growth <= MOST_GROWTH


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
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
