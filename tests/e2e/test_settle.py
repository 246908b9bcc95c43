"""`pelab settle` and the registered sheets: every round is recomputed from the database in numpy
(sheet_recount.py), and what a budget, an edit, a cancelled job or a lost loss does to it."""

import contextlib
import json
import math
import pathlib
import re
import subprocess
import sys
import unittest
import urllib.error
import urllib.parse
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import browser  # noqa: E402
import report_case  # noqa: E402
from pelab_harness import BIN, wait_until  # noqa: E402
from settle_case import CLAIMS, SWEEP, SettleCase, above, cell  # noqa: E402

POPULATE = BIN.parent / "tests/pelab-populate"
FEW = [above("rope-clearly", cell("rope"), cell("nope"), 0.9),
       above("rope-finite", cell("rope"), cell("nope", "1000"))]
# Jobs of 0.2 s whose models learn something.
LEARNS = """
name: learns
protocol: clean
pe: [rope, nope]
task: {name: distance, length: 8, vocabulary: 20, max_distance: 3, train_examples: 512,
       test_examples: 256}
seed: 0
model: {d_model: 16, d_ff: 32, heads: 2, layers: 2, max_len: 8, dropout: 0}
train: {epochs: 8, batch_size: 32, lr: 3e-3, schedule: constant, warmup_fraction: 0}
analyses: [head_ablation, layer_ablation, cumulative_ablation]
"""
MADE_UP = """
name: made-up
protocol: [clean, published]
pe: [rope, nope, alibi]
task: {name: distance, length: 16, vocabulary: 40, train_examples: 1000, test_examples: 500}
seed: 0..39
model: {d_model: 16, d_ff: 32, heads: 4, layers: 2, max_len: 16}
train: {epochs: 4}
analyses: [head_ablation]
"""


class Settle(SettleCase):
    def test_ten_claims_from_nothing(self):
        sheet = self.sheet()
        result = self.ok(self.settle(sheet))
        self.recount()
        verdicts = self.verdicts()
        self.assertEqual(list(verdicts), [claim["id"] for claim in CLAIMS])
        for claim in ("rope-learns", "alibi-learns", "chain", "near", "band", "contrast"):
            self.assertEqual(verdicts[claim], "holds")
        for claim in ("rope-clearly", "band-above"):
            self.assertEqual(verdicts[claim], "fails")
        self.assertEqual(verdicts["deposit"], "not eligible")
        self.assertIn("confirmatory", result.stdout)
        self.assertRegex(result.stderr, r"round 1: seed 0, 4 jobs\n")
        self.assertRegex(result.stderr, r"round \d+ ended: \d+ of 10 claims decided, 0 open")
        # Every seed of the cell whose loss is not finite failed, and counts as the worst result.
        failed = self.query("SELECT count(*), count(DISTINCT seed) FROM v_jobs WHERE state = "
                            "'failed'")[0]
        self.assertEqual(failed[0], failed[1])
        self.assertGreater(failed[0], 3)
        stored = self.settled()
        again = self.ok(self.settle(sheet))
        self.assertEqual(self.settled(), stored)
        self.assertNotIn("round 1:", again.stderr)
        self.assertEqual(again.stdout, result.stdout)
        self.ok(self.pelab_db("db", "check"))
        self._shown_in_every_way(sheet, result.stdout)

    def _shown_in_every_way(self, sheet, text):
        digest = self.query("SELECT sha256 FROM v_sheets")[0][0]
        for name in (sheet, "tiny-claims", "1", digest[:8]):
            self.assertEqual(self.ok(self.pelab_db("claims", "show", name)).stdout, text)
        found = json.loads(self.ok(self.pelab_db("claims", "show", "1", "--output",
                                                 "json")).stdout)
        self.assertEqual(found["rests_on"], "confirmatory")
        self.assertEqual(found["registered"]["changed"], [])
        # Jobs that diverged cost slot time too.
        self.assertEqual([(found["registered"]["jobs"],)],
                         self.query("SELECT count(*) FROM v_jobs"))
        seconds, = self.query("SELECT sum(coalesce(j.wall_seconds, (a.ended_at - a.started_at) / "
                              "1000.0)) FROM v_jobs AS j JOIN v_attempts AS a USING (job_id)")[0]
        self.assertAlmostEqual(found["registered"]["slot_seconds"], seconds)
        self.assertEqual({claim["id"]: claim["verdict"] for claim in found["claims"]},
                         self.verdicts())
        self.assertEqual({claim["exploratory"] for claim in found["claims"]}, {0})
        listed = json.loads(self.ok(self.pelab_db("claims", "list", "--output", "json")).stdout)
        self.assertEqual([row["sha256"] for row in listed["sheets"]], [digest])
        verdicts = list(self.verdicts().values())
        decided = verdicts.count("holds"), verdicts.count("fails")
        self.assertEqual([listed["sheets"][0][key]
                          for key in ("claims", "hold", "fail", "open", "given_up")],
                         [10, *decided, 0, 10 - sum(decided)])
        self.assertIn("tiny-claims", self.ok(self.pelab_db("claims", "list")).stdout)
        late = self.pelab_db("claims", "show", "1", "--first-seed", "2")
        self.assertEqual(late.returncode, 2)
        self.assertIn("sheet 1 is registered, so its verdicts are those of its last round; "
                      "--first-seed and --sweep are for the sheet's file", late.stderr)
        missing = self.pelab_db("claims", "show", "no-such-sheet")
        self.assertEqual(missing.returncode, 2)
        self.assertIn('no sheet "no-such-sheet" is registered', missing.stderr)

    def test_claims_about_layers_and_about_heads_that_are_gone(self):
        self.write("learns.yaml", LEARNS)
        rope = {"cell": "pe=rope", "low": 0.05, "high": 1}
        always = {"eligible": {"above": 0, "by": 0}}
        sheet = self.sheet([
            {"id": "first-layer", "between": {"metric": "layer_drop(0)", **rope}},
            {"id": "one-head", "between": {"metric": "greedy_accuracy(1)", **rope}},
            # Also with models that are near chance, so that these metrics are undefined.
            {"id": "all-heads", **always, "near": {
                "metric": "greedy_accuracy(4)", "within": 0.2, "a": "pe=rope", "b": "pe=nope"}},
            {"id": "nope-loses-less", **always, "above": {
                "metric": "layer_drop(0)", "a": "pe=rope", "b": "pe=nope"}},
            above("where-layers-matter", "pe=rope", "pe=nope", eligible={
                "metric": "layer_drop(0)", "above": 0, "by": 0}),
        ], sweep="learns.yaml", max_seeds=8)
        self.ok(self.settle(sheet))
        self.recount()
        self.assertEqual(self.verdicts()["one-head"], "holds")
        counted = dict(self.query("SELECT claim, max(n) FROM v_sheet_claims GROUP BY claim"))
        self.assertGreater(min(counted.values()), 0, counted)

    def test_a_budget_ends_between_rounds_and_the_next_command_goes_on(self):
        sheet = self.sheet(FEW)
        nothing = self.ok(self.settle(sheet, "--budget", "0"))
        self.assertIn("stopped by --budget", nothing.stderr)
        self.assertEqual(self.settled()[0], [])
        self.assertEqual(self.query("SELECT count(*) FROM v_jobs"), [(0,)])
        some = self.ok(self.settle(sheet, "--max-jobs", "7"))
        self.assertIn("stopped by --max-jobs 7: 6 were run, and the next round has 6", some.stderr)
        self.assertEqual(len(self.settled()[0]), 2)
        past = self.ok(self.settle(sheet, "--until", "2020-01-01T00:00:00Z"))
        self.assertIn("stopped by --until", past.stderr)
        self.ok(self.settle(sheet))
        self.recount()
        self.assertEqual(self.verdicts(), {"rope-clearly": "fails", "rope-finite": "holds"})
        for flag, value, said in (("--budget", "3x", 'invalid --budget "3x"'),
                                  ("--until", "25:00", 'invalid --until "25:00"'),
                                  ("--max-jobs", "-1", "--max-jobs")):
            wrong = self.settle(sheet, flag, value)
            self.assertEqual(wrong.returncode, 2, wrong.stderr)
            self.assertIn(said, wrong.stderr)
        check = self.ok(self.settle(sheet, "--dry-run"))
        self.assertIn("nothing was run", check.stdout)

    def test_a_job_that_diverged_for_another_sweep_costs_nothing(self):
        other = (SWEEP.replace("pe: [nope, rope, alibi]", "pe: nope")
                 .replace("epochs: 2,", "epochs: 2, lr: 1000,"))
        other = "".join(line for line in other.splitlines(keepends=True)
                        if not line.startswith(("axes:", "exclude:")))
        self.pelab_db("run", self.write("other.yaml", other), "--cpu-slots", 1,
                      "--threads-per-slot", 1)
        self.assertEqual(self.query("SELECT state FROM v_jobs"), [("failed",)])
        result = self.ok(self.settle(self.sheet(FEW), "--no-fresh-seeds", "--max-jobs", 2))
        self.assertIn("round 1: seed 0, 3 jobs, 1 of them stored already", result.stderr)
        self.assertIn("stopped by --max-jobs 2: 2 were run, and the next round has 3",
                      result.stderr)
        self.assertEqual(self.query("SELECT count(*) FROM v_jobs"), [(3,)])

    def made_up(self, document=MADE_UP, *options):
        """Jobs that nobody trained, with results."""
        self.write("tiny.yaml", document)
        subprocess.run([POPULATE, self.folder / "tiny.yaml", "--db", self.db, *options], check=True,
                       capture_output=True)

    @contextlib.contextmanager
    def served(self):
        """With a coordinator, which has no worker: where nothing is trained, none need load
        LibTorch."""
        coordinator = self.server()
        yield
        coordinator.terminate()
        coordinator.wait(10)

    def settle_stored(self, sheet, *options):
        """Settles on what is stored, with a coordinator."""
        return self.settle(sheet, *options, "--max-jobs", "0", served=True)

    def test_an_edited_sheet_is_another_one_and_begins_with_fresh_seeds(self):
        self.made_up()
        claims = [{"id": "a", "each": "protocol", "above": {
            "metric": "test_accuracy", "a": "pe=rope", "b": "pe=nope", "by": 0}}]
        first = self.sheet(claims)
        with self.served():
            self.ok(self.settle_stored(first, "--no-fresh-seeds"))
        first_claims = json.loads(json.dumps(claims))
        claims[0]["above"]["by"] = 0.01
        claims.append({"id": "b", "where": "protocol=clean", "above": {
            "metric": "test_accuracy", "a": "pe=alibi", "b": "pe=nope"}})
        edited = self.settle(self.sheet(claims, name="tiny-claims"))
        self.assertEqual(edited.returncode, 2, edited.stderr)
        self.assertIn("sheet 1 is named tiny-claims and says something else", edited.stderr)
        shown = self.ok(self.pelab_db("claims", "show", first)).stdout  # the file is edited
        self.assertIn("sheet 1 has its name and says something else (pelab claims diff 1", shown)
        self.sheet(first_claims)  # as it was registered
        self.ok(self.settle("tiny-claims", "--max-jobs", "0"))
        second = self.sheet(claims, name="tiny-claims-2")
        # The times of the stored seeds are known before its first round.
        self.assertRegex(self.ok(self.settle(second, "--budget", "1ms")).stderr,
                         r"0\.0s were spent, and the next round takes about \d")
        self.ok(self.settle(second, "--max-jobs", "0"))
        shared = self.sheet(claims, name="tiny-claims-3")
        with self.served():
            self.ok(self.settle_stored(shared, "--no-fresh-seeds"))
        self.recount()
        self.assertEqual(self.query("SELECT first_seed, fresh_from FROM v_sheets ORDER BY "
                                    "sheet_id"), [(0, 40), (40, 40), (0, 40)])
        self.assertEqual(self.query("SELECT count(*) FROM v_sweeps"), [(3,)])
        diff = self.ok(self.pelab_db("claims", "diff", first, "2"))
        self.assertRegex(diff.stdout, r"a: by: 0 → 0.01\n")
        self.assertRegex(diff.stdout, r"b: added\n")
        self.assertRegex(diff.stdout, r"registered .* as sheet 1\n(.*\n)*.*as sheet 2")
        same = self.ok(self.pelab_db("claims", "diff", "1", first))
        self.assertIn("they are the same sheet", same.stdout)
        with_no_database = subprocess.run([BIN / "pelab", "--db", "none.db", "settle", "nope"],
                                          cwd=self.folder, capture_output=True, text=True,
                                          timeout=60)
        self.assertEqual(with_no_database.returncode, 2)
        self.assertIn("no file nope, and no database none.db in which", with_no_database.stderr)
        self.assertFalse((self.folder / "none.db").exists())
        for command in (["diff", first, "nope.yaml"], ["show", "nope.yaml"]):
            missing = self.pelab_db("claims", *command)
            self.assertEqual(missing.returncode, 2)
            self.assertIn("no file nope.yaml; ", missing.stderr)
        (self.folder / "sheets").mkdir()
        for command in (["settle"], ["claims", "check"], ["claims", "show"]):
            folder = self.pelab_db(*command, "sheets")
            self.assertEqual(folder.returncode, 2, folder.stderr)
            self.assertIn("cannot read sheets: it is a directory; a file is expected",
                          folder.stderr)

    def test_seeds_that_were_stored_before_are_exploratory(self):
        self.made_up(MADE_UP, "--fail-every", "90", "--error", "loss is not finite")
        sheet = self.sheet([
            {"id": "above", "each": "protocol",
             "above": {"metric": "test_accuracy", "a": "pe=rope", "b": "pe=nope"}},
            {"id": "deposit", "each": ["protocol"],
             "most": {"metric": "deposit", "cell": "pe=rope", "layers": "any"}},
            {"id": "near", "where": "protocol=clean", "near": {
                "metric": "epochs_to(0.5)", "a": "pe=rope", "b": "pe=alibi", "within": 1}},
            {"id": "drop", "where": "protocol=clean", "above": {
                "metric": "max_drop", "a": "pe=rope", "b": "pe=nope"}, "eligible": {"above": 0}},
            {"id": "no-deposit", "each": ["pe", "protocol"],
             "most": {"metric": "no_deposit", "cell": "task=distance"}},
        ], max_seeds=30)
        with self.served():
            result = self.settle_stored(sheet, "--no-fresh-seeds", "--slots", "6")
        self.recount()
        self.assertEqual(self.query("SELECT first_seed, fresh_from FROM v_sheets"), [(0, 40)])
        self.assertIn("exploratory up to seed 39, which was stored before", result.stdout)
        found = json.loads(self.ok(self.pelab_db("claims", "show", sheet, "--output",
                                                 "json")).stdout)
        self.assertEqual(found["rests_on"], "exploratory")
        self.assertEqual(len(found["claims"]), 12)
        rounds = self.query("SELECT end_seed - first_seed FROM v_sheet_rounds ORDER BY round")
        self.assertEqual(rounds[0], (1,))
        self.its_standing(found, len(rounds))
        self.in_the_report(found)
        self.on_the_pages(found)

    def its_standing(self, found, rounds):
        """A registered sheet is checked by its name, and how far it is is said."""
        decided, given_up = (sum(claim["standing"] in which for claim in found["claims"])
                             for which in (["decided"], ["futile", "all seeds"]))
        self.assertEqual(decided + given_up, 12)
        standing = (f"registered as sheet 1: {rounds} rounds, {decided} of 12 claims decided, 0 "
                    f"open, {given_up} given up; pelab settle has nothing left to run")
        checked = self.ok(self.pelab_db("claims", "check", "tiny-claims", "--output", "json"))
        self.assertEqual(json.loads(checked.stdout)["standing"], standing)
        dry = self.ok(self.pelab_db("settle", "tiny-claims", "--dry-run"))
        self.assertTrue(dry.stdout.endswith(f"\n{standing}\nnothing was run\n"), dry.stdout)
        none = self.pelab_db("claims", "check", "tiny-claim")
        self.assertEqual(none.returncode, 2)
        self.assertIn("no file tiny-claim; no sheet", none.stderr)

    def in_the_report(self, found):
        self.ok(self.pelab_db("report", "tiny-claims"))
        data = report_case.data_of(self.folder / "report.html")
        sheet, = data["sheets"]
        histories = [claim.pop("history") for claim in sheet["claims"]]
        for claim in sheet["claims"]:
            self.assertIs(claim.pop("fraction"), claim["metric"] in ("test_accuracy", "max_drop"))
        self.assertEqual(sheet.pop("max_seeds"), 30)
        self.assertEqual(sheet, found)
        for position, history in enumerate(histories):
            stored = self.query("SELECT DISTINCT seeds, max(log_e_holds, log_e_fails) FROM "
                                "v_sheet_claims WHERE position = ? ORDER BY seeds", position)
            self.assertEqual([point[0] for point in history], [row[0] for row in stored])
            for (_, log10), (_, log) in zip(history, stored):
                self.assertAlmostEqual(log10 * math.log(10), log)
        self.assertEqual(data["provenance"]["commands"][0],
                         f"pelab settle {self.folder / 'tiny-claims.yaml'} --slots 6")
        if not browser.CHROMIUM:
            return
        with browser.tab() as page:
            page.open(self.folder / "report.html")
            page.wait("typeof pelabReport !== 'undefined'")
            page.evaluate("pelabReport.drawAll()")
            self.assertEqual(page.complaints(), [])
            for section in ("results", "comparisons"):
                self.assertIn("the limits under Claims hold whenever one stops", page.evaluate(
                    f"document.querySelector('#{section} > .muted').textContent"))
            kinds = page.evaluate("pelabReport.charts.map((entry) => entry.kind)")
            self.assertEqual(kinds.count("evidence"), 1)
            self.assertEqual(kinds.count("seed values"), 4)  # not for the properties
            self.assertEqual(
                page.evaluate("[...new Set(pelabReport.charts.filter(({ kind }) => kind === "
                              "'seed values').map(({ element }) => element.querySelector("
                              "'.chart-plot').layout.xaxis.title.text))]"),
                ["test_accuracy, a fraction", "epochs_to(0.5)", "max_drop, a fraction"])
            lines = page.evaluate(
                "pelabReport.charts.find((entry) => entry.kind === 'evidence').element"
                ".querySelector('.chart-plot').data.map((trace) => [trace.meta.kind, "
                "trace.x.length])")
            self.assertEqual([count for kind, count in lines if kind == "evidence"],
                             [len(history) for history in histories])
            self.assertEqual(page.evaluate("document.querySelectorAll('#claims .verdict').length"),
                             len(histories))
            self.has_a_ladder(page, found)

    def on_the_pages(self, found):
        server = self.server("--http", "127.0.0.1:0")
        url = wait_until(lambda: re.search(r"pages on (http://\S+)/", self.logs()), 20,
                         "the pages").group(1)
        sweep = found["registered"]["sweep_id"]
        with urllib.request.urlopen(f"{url}/api/v1/sweeps/{sweep}/claims", timeout=20) as answer:
            sheet, = json.load(answer)["sheets"]
        self.assertEqual([claim["claim"] for claim in sheet["claims"]],
                         [claim["id"] for claim in found["claims"]])
        names = ["kind", "verdict", "e_holds", "threshold", "leans_to", "k", "n", "shows",
                 "share_low", "share_high", "mean", "t_half_width", "median_low", "median_high",
                 "slot_seconds"]
        for here, there in zip(sheet["claims"], found["claims"]):
            self.assertEqual({name: here[name] for name in names},
                             {name: there[name] for name in names})
        sized = next(claim for claim in found["claims"] if claim["kind"] != "most")
        self.has_seeds(f"{url}/api/v1/sweeps/{sweep}/seeds", sheet["sheet_id"], sized)
        if browser.CHROMIUM:
            with browser.tab() as page:
                page.open(f"{url}/sweeps/{sweep}")
                page.wait("document.querySelector('.verdict')")
                row = page.evaluate("document.querySelector('tr:has(.verdict)').textContent")
                row = row.replace("\u00a0", " ")
                first = found["claims"][0]
                self.assertIn(f"{first['shows']} of {first['n']}", row)
                self.assertIn(f"{abs(first['mean']):.3f} \u00b1 ", row)
                page.evaluate("(() => { const list = [...document.querySelectorAll('select')]"
                              f".find((one) => [...one.options].some((o) => o.value === "
                              f"{json.dumps(sized['id'])})); list.value = "
                              f"{json.dumps(sized['id'])}; "
                              "list.dispatchEvent(new Event('change')); })()")
                dots = ("[...document.querySelectorAll('.chart-plot')].flatMap((plot) => "
                        "plot.data).filter((trace) => trace.meta?.kind === 'seeds')")
                page.wait(f"{dots}.length")
                self.assertEqual(page.evaluate(f"{dots}.flatMap((trace) => trace.x).length"),
                                 sum(len(one["values"]) for one in sized["statistics"]))
                self.assertEqual(page.complaints(), [])
        server.terminate()
        server.wait(10)

    def has_seeds(self, path, sheet, claim):
        """The values of one claim's seeds are those of `claims show`."""
        def ask(**query):
            return urllib.request.urlopen(f"{path}?{urllib.parse.urlencode(query)}", timeout=20)
        with ask(sheet=sheet, claim=claim["id"]) as answer:
            seeds = json.load(answer)
        self.assertEqual({name: seeds[name] for name in ("metric", "sides", "statistics")},
                         {name: claim[name] for name in ("metric", "sides", "statistics")})
        for query, status, said in (({"sheet": sheet, "claim": claim["id"] + "x"}, 400,
                                     f"did you mean {claim['id']}?"),
                                    ({"sheet": sheet}, 400, "claim= (its id) are needed"),
                                    ({"sheet": 99, "claim": claim["id"]}, 404, 'no sheet "99"')):
            with self.assertRaises(urllib.error.HTTPError) as refused:
                ask(**query)
            self.assertEqual(refused.exception.code, status)
            self.assertIn(said, json.load(refused.exception)["error"])

    def has_a_ladder(self, page, found):
        """The claim for each of two fields is a chart with these as rows and columns."""
        ladder, = page.evaluate(
            "pelabReport.charts.filter((entry) => entry.kind === 'shares').map("
            "({ element }) => element.querySelector('.chart-plot').data[0])"
            ".map(({ x, y, z, text }) => ({ x, y, z, text }))")
        self.assertEqual([ladder["y"], ladder["x"]],
                         [["rope", "nope", "alibi"], ["clean", "published"]])
        shown = {(claim["each"]["pe"], claim["each"]["protocol"]): claim
                 for claim in found["claims"] if claim["claim"] == "no-deposit"}
        self.assertEqual(len(shown), 6)
        for pe, shares, texts in zip(ladder["y"], ladder["z"], ladder["text"]):
            for protocol, share, text in zip(ladder["x"], shares, texts):
                claim = shown[pe, protocol]
                if claim["n"]:
                    self.assertEqual(share, (claim["share_low"] + claim["share_high"]) / 2)
                    self.assertTrue(claim["share_low"] <= share <= claim["share_high"])
                self.assertTrue(text.startswith(f"{claim['shows']} of {claim['n']}<br>"
                                                f"{claim['share_low']:.2f}") if claim["n"]
                                else text == "–", text)

    def test_the_seeds_of_a_sheet_can_run_out(self):
        self.made_up(MADE_UP.replace("0..39", "[0, 980]"))
        sheet = self.sheet([above("a", "pe=rope protocol=clean", "pe=nope protocol=clean")],
                           max_seeds=30)
        result = self.settle(sheet, "--slots", "2")
        self.assertEqual(result.returncode, 2)
        self.assertIn("have seeds up to 980, and the sheet needs 30 below 1000", result.stderr)

    def test_a_claim_that_is_put_aside_gets_no_further_seeds(self):
        sheet = self.sheet(FEW)
        new = self.settle(sheet, "--put-aside", "rope-finite")
        self.assertEqual(new.returncode, 2)
        self.assertIn("the sheet is not registered, so it has no round whose e-values a claim "
                      "could keep", new.stderr)
        self.assertEqual(self.query("SELECT count(*) FROM v_sheets"), [(0,)])
        self.ok(self.settle(sheet, "--max-jobs", "3"))
        unknown = self.settle(sheet, "--put-aside", "rope-finit")
        self.assertEqual(unknown.returncode, 2)
        self.assertIn('sheet 1 (tiny-claims) has no claim "rope-finit"; did you mean rope-finite?',
                      unknown.stderr)
        result = self.ok(self.settle(sheet, "--put-aside", "rope-finite"))
        self.assertIn("0 of 2 claims decided, 1 open, 1 put aside", result.stderr)
        self.assertRegex(result.stderr, r"round 2: seed 1, 2 jobs")
        self.recount()
        self.assertEqual(self.verdicts(), {"rope-clearly": "fails", "rope-finite": "undecided"})
        self.assertEqual(self.query("SELECT DISTINCT standing, seeds FROM v_sheet_claims WHERE "
                                    "claim = 'rope-finite'"), [("put aside", 1)])
        self.assertIn("put aside: gets no further seeds, by pelab settle --put-aside",
                      result.stdout)
        late = self.ok(self.settle(sheet, "--put-aside", "rope-clearly"))
        self.assertIn("note: rope-clearly gets no further seeds anyway (fails)", late.stderr)
        self.assertEqual(late.stdout, result.stdout)
        self.ok(self.pelab_db("db", "check"))

    def test_a_cancelled_job_stops_the_round_until_the_sheet_is_settled_again(self):
        self.server()
        sheet = self.sheet(FEW)
        settler = self.begin(sheet, served=True)
        self.wait_round(1)
        wait_until(lambda: self.query("SELECT count(*) FROM v_jobs")[0][0] == 3, 20, "the jobs")
        job, = self.query("SELECT job_id FROM v_jobs WHERE pe = 'rope'")[0]
        self.ok(self.pelab("cancel", "--job", job))
        self.worker()
        self.assertEqual(settler.wait(60), 3, self.logs())
        log = self.logs()
        self.assertIn("round 1 cannot be completed: 1 of its 3 jobs does not come", log)
        self.assertRegex(log, rf"job {job}, rope distance \w+ train\.lr=0\.001 "
                              rf"seed 0: it was cancelled")
        self.assertEqual(self.settled()[1], [])
        self.ok(self.settle(sheet, served=True))
        self.recount()
        self.assertEqual(self.verdicts(), {"rope-clearly": "fails", "rope-finite": "holds"})
        found = json.loads(self.ok(self.pelab("claims", "show", sheet, "--output", "json")).stdout)
        cells = [cell for claim in found["claims"] for statistic in claim["statistics"]
                 for cell in statistic["cells"]]
        self.assertEqual({tuple(cell["settings"]) for cell in cells}, {("train.lr",)})
        self.assertIn("0.001", {cell["settings"]["train.lr"] for cell in cells})
        # A sweep that is deleted takes its results along; what was found stays.
        stored = self.settled()
        self.ok(self.pelab("sweeps", "delete", "tiny-claims", "--yes"))
        self.assertEqual(self.settled(), stored)
        shown = self.ok(self.pelab("claims", "show", sheet)).stdout
        self.assertIn("do not give the verdicts' e-values any more", shown)
        self.assertEqual(self.ok(self.settle(sheet, served=True)).stdout, shown)

    def test_ctrl_c_leaves_a_round_that_goes_on(self):
        sheet = self.sheet(FEW)
        settler = self.begin(sheet)
        self.wait_round(2)
        self.assertEqual(self.interrupt(settler), 130, self.logs())
        self.assertRegex(self.logs(), f"go on with: pelab settle {sheet} --db .* --cpu-slots 2 "
                                      "--threads-per-slot 1")
        self.assertEqual(self.trainers(), [])
        # The round is left as it is by whoever may spend nothing, or less than it takes.
        left = self.settled(), self.query("SELECT count(*) FROM v_attempts")
        rest = r"the rest of round \d+"
        limits = {("--budget", "0"): rf"--budget 0.*: 0.* were spent, and {rest} takes about .*s",
                  ("--max-jobs", "0"): rf"--max-jobs 0: 0 were run, and {rest} has \d+",
                  ("--until", "2020-01-01T00:00:00Z"): rf"--until: {rest} would not end in time"}
        for limit, said in limits.items():
            stopped = self.ok(self.settle(sheet, *limit))
            self.assertRegex(stopped.stderr, f"stopped by {said}; settle the sheet again to go on")
            self.assertEqual((self.settled(), self.query("SELECT count(*) FROM v_attempts")), left)
        self.ok(self.settle(sheet))
        self.recount()

    def test_sheets_that_are_wrong_register_nothing(self):
        self.server()
        lacks = self.sheet([above("a", "pe=mla", cell("rope"))])
        for served in (False, True):
            result = self.settle(lacks, served=served)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertRegex(result.stderr, r"tiny-claims\.yaml:\d+:\d+: no cell of the sweep "
                                            'meets "pe=mla"')
        self.assertEqual(self.query("SELECT count(*) FROM v_sheets"), [(0,)])
        nobody = self.settle(self.sheet(FEW), "--dry-run", served=True)
        self.assertEqual(nobody.returncode, 0, nobody.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
