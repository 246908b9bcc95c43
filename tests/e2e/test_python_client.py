"""The Python package on the real binaries. Frames from a file and from its coordinator are equal
and agree with the command line. Also: claim sheets; submitting, watching, errors; the wheel in a
virtual environment; the example script and notebook on both sources.

Needs grpc, pandas and protobuf. PYTHONPATH names the package, PELAB_WHEEL its wheel."""

import contextlib
import importlib.util
import io
import json
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import unittest.mock

import numpy as np
import pandas as pd

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from notebook_runner import run as run_notebook  # noqa: E402
from pelab_harness import BIN, SOURCE, tiny_sweep, wait_until  # noqa: E402
from settle_case import SettleCase, above  # noqa: E402
from trained_case import TrainedCase  # noqa: E402

import pelab  # noqa: E402

EXAMPLES = SOURCE / "client" / "python" / "examples"
OF_JOBS = ["results", "curves", "ablations", "deposits", "analyses", "attempts", "artifacts"]


# Covers every part of the language (docs/formats.md, "Conditions and metrics").
CONDITIONS = [
    "pe=rope seed=0", "pe=rope seed=0 or pe=nope seed=1", "not pe=rope seed=0",
    "pe=rope", "seed=1,pe=nope", "train.lr=1e-3", "state=failed", "test_accuracy>0.1,seed<=0",
    "pe!=rope", "pe in (rope, alibi) and not seed=1", "(pe=rope or seed=0) and state=succeeded",
    "not (pe=nope or seed=1)", "pe=rope or pe=nope and seed=1", "seed in (1..7)",
    "seed not in (0, 7)", "pe ~ 'r*'", "pe !~ \"n[ao]pe\"", "task='distance'", "train.lr >= 1e-2",
    "train.lr < 1e3", "generalisation_gap < 1", "generalisation_gap > -1 and seed=0",
    "epochs_to(0) <= 1", "epochs_to(0.99) <= 3", "not epochs_to(0.99) <= 3",
    "gini > 0", "effective_heads >= 1 or pe=rope", "max_drop >= 0 and pe=nope", "model.layers=2",
    "model.layers in (1..3) and seed=0",
    "error ~ '*loss*'", "wall_seconds > 0", "protocol=custom", "pe.base=10000", "pe.base!=10000",
]


def same(left, right, **options):
    """Checks that two frames are equal: every value bit for bit, types, columns and order."""
    pd.testing.assert_frame_equal(left, right, check_exact=True, **options)
    for name in left.columns:
        if left[name].dtype == np.float64:
            assert left[name].to_numpy().tobytes() == right[name].to_numpy().tobytes(), name


def outside():
    """The environment without what a caller's build or virtual environment sets."""
    return {name: value for name, value in os.environ.items()
            if name not in ("PYTHONPATH", "MAKEFLAGS", "MAKELEVEL", "VIRTUAL_ENV")}


def open_both(case):
    """Starts a coordinator and returns the two sources: the file and its coordinator."""
    case.server()
    file, coordinator = pelab.open(case.db), pelab.connect(case.socket)
    case.addCleanup(file.close)
    case.addCleanup(coordinator.close)
    return file, coordinator


class Package(TrainedCase):
    def sources(self):
        return open_both(self)

    def test_both_sources_give_equal_frames(self):
        file, coordinator = self.sources()
        choices = [{}, {"sweep": "tiny"}, {"sweep": 2}, {"where": "pe=rope and seed in (0)"},
                   {"state": ["failed"]}, {"jobs": [1, 3]},
                   {"sweep": "tiny", "where": "not pe=rope", "train__epochs": 3},
                   {"where": "seed>100"},
                   {"where": "epochs_to(0.05) <= 3 and gini >= 0 or generalisation_gap > 0.9"}]
        for name in OF_JOBS + ["summary"]:
            for choice in choices:
                left, right = getattr(file, name)(**choice), getattr(coordinator, name)(**choice)
                same(left, right)
                if choice == {}:
                    self.assertGreater(len(left), 0, name)
        self.assertEqual(len(file.results(where="seed>100")), 0)
        same(file.results(fields=["train.lr", "model.layers", "pe.base"]),
             coordinator.results(fields=["train.lr", "model.layers", "pe.base"]))
        same(file.summary(by=["pe", "seed"], metric="wall_seconds"),
             coordinator.summary(by=["pe", "seed"], metric="wall_seconds"))
        for metric in ("generalisation_gap", "epochs_to(0.1)", "gini"):
            same(file.summary("tiny", metric=metric), coordinator.summary("tiny", metric=metric))
            same(file.summary("tiny", by="pe"), file.summary("tiny", by=["pe"]))
        for source in (file, coordinator):
            same(source.curves(fields="train.lr"), source.curves(fields=["train.lr"]))
            same(source.results(fields="train.lr"), source.results(fields=["train.lr"]))
            with self.assertWarnsRegex(UserWarning, "^no job meets pe = mla; pe there: ") as warned:
                source.compare("tiny", "pe = rope", "pe = mla")
            self.assertEqual(pathlib.Path(warned.filename), pathlib.Path(__file__))
        same(file.workers(), coordinator.workers())
        same(file.sweeps(), coordinator.sweeps())
        key = file.results()["key"][0][:12]
        same(file.curves(jobs=[key]), coordinator.curves(jobs=[key]))
        self.assertEqual(file.document("tiny"), coordinator.document("tiny"))
        self.assertEqual(file.log(1), coordinator.log(1))
        for bad in [{"sweep": "nobody"}, {"jobs": ["abc"]}, {"jobs": ["ffffffff"]},
                    {"jobs": ["777"]}]:
            said = []
            for source in (file, coordinator):
                with self.assertRaises(pelab.PelabError) as raised:
                    source.curves(**bad)
                said.append((type(raised.exception), str(raised.exception)))
            self.assertEqual(said[0], said[1])

    def test_frames_are_what_the_command_line_says(self):
        file, coordinator = self.sources()
        results = self.json("results", "tiny")
        frame = coordinator.results("tiny")
        self.assertEqual(len(frame), len(results["jobs"]))
        for row, job in zip(frame.to_dict("records"), results["jobs"]):
            self.assertEqual(json.loads(row.pop("spec_json")), job["spec"])
            for name, value in row.items():
                self.assertTrue(value == job[name] or (pd.isna(value) and job[name] is None), name)
        cells = file.summary("tiny").to_dict("records")
        self.assertEqual(len(cells), len(results["groups"]))
        for row, group in zip(cells, results["groups"]):
            for name in ("pe", "task", "metric", "n", "missing", "failed", "cancelled", "complete",
                         "mean", "sd"):
                self.assertEqual(row[name], group[name], name)
            self.assertAlmostEqual(row["half_width"], group["half_width"], delta=1e-12)
            self.assertEqual((list(row["seeds"]), list(row["job_ids"])),
                             (group["seeds"], group["job_ids"]))
        curves = self.json("curves", "tiny")["curves"]
        self.assertEqual(coordinator.curves("tiny").to_dict("records"), curves)
        chosen = set()
        for where in CONDITIONS:
            by_cli = [job["job_id"] for job in self.json("results", "--where", where)["jobs"]]
            self.assertEqual(list(file.results(where=where)["job_id"]), by_cli, where)
            self.assertEqual(list(coordinator.results(where=where)["job_id"]), by_cli, where)
            chosen.add(tuple(by_cli))
        self.assertGreater(len(chosen), 8, "the conditions choose different jobs")
        heads = self.json("ablation", "tiny")["head_ablation"]
        frame = coordinator.ablations("tiny")
        self.assertEqual(len(heads), len(frame))
        for row, head in zip(frame.to_dict("records"), heads):
            for name, value in row.items():
                self.assertTrue(value == head[name] or (pd.isna(value) and head[name] is None),
                                name)

    def test_submit_watch_cancel_log(self):
        _, coordinator = self.sources()
        self.worker(slots=2)
        document = tiny_sweep(name="more", seeds="[5]", pes="[nope]")
        submission = coordinator.submit(document, overrides={"train.epochs": 4})
        self.assertEqual((submission.name, submission.expanded, str(submission.counts)),
                         ("more", True, "1 new, 0 already stored, 0 in flight, 0 failed earlier"))
        snapshots = list(coordinator.watch("more"))
        self.assertTrue(snapshots[-1].ended and snapshots[-1].succeeded == 1
                        and not snapshots[0].ended)
        self.assertIn("1/1 jobs succeeded", str(snapshots[-1]))
        frame = coordinator.results("more", fields=["train.epochs"])
        self.assertEqual((frame["train.epochs"][0], frame["epochs_done"][0]), (4, 4))

        again = coordinator.submit(self.write("again.yaml",
                                              document.replace("name: more", "name: again")))
        self.assertEqual(again.counts.new, 1)  # with the document's own 3 epochs
        line = io.StringIO()
        self.assertEqual(coordinator.wait("again", progress=line).succeeded, 1)
        self.assertTrue(line.getvalue().startswith("\ragain: ") and line.getvalue().endswith("\n"))

        mapping = {"name": "long", "protocol": "clean", "pe": "nope", "seed": 1,
                   "model": {"d_model": 16, "d_ff": 32, "heads": 2, "layers": 2, "max_len": 16},
                   "task": {"name": "distance", "length": 16, "vocabulary": 40,
                            "train_examples": 512, "test_examples": 128},
                   "train": {"epochs": 100_000, "batch_size": 64}}
        self.assertEqual(coordinator.submit(mapping).counts.new, 1)
        watched = coordinator.watch("long")
        running = next(one for one in watched if one.jobs and one.jobs[0].epochs_done > 0)
        job = running.jobs[0]
        self.assertEqual((job.pe_label, job.task, job.seed, job.epochs),
                         ("nope", "distance", 1, 100_000))
        watched.close()
        self.assertEqual(coordinator.cancel("long").jobs_cancelled, 1)
        self.assertEqual(coordinator.wait("long").cancelled, 1)
        self.assertEqual(coordinator.snapshot("long").state, "cancelled")
        with self.assertRaises(pelab.InvalidInput):
            coordinator.cancel()
        self.assertIsInstance(coordinator.log(job.job_id), str)
        self.assertIsInstance("".join(coordinator.follow(job.job_id)), str)

    def test_errors_are_sentences(self):
        file, coordinator = self.sources()
        path = self.write("bad.yaml", tiny_sweep(pes="[nope, alibbi]") + "color: red\n")
        with self.assertRaises(pelab.InvalidInput) as raised:
            coordinator.submit(path)
        places = [(one.line, one.column) for one in raised.exception.violations]
        self.assertEqual(len(places), 2)
        self.assertIn(f"{path}:3:12: unknown pe \"alibbi\"", str(raised.exception))
        with self.assertRaises(pelab.InvalidInput) as raised:
            coordinator.submit(tiny_sweep(), overrides={"model.layrs": 4})
        self.assertIn("model.layrs", str(raised.exception))
        for source in (file, coordinator):
            for wrong, kind, words in [
                (lambda: source.document("nobody"), pelab.NotFound, 'no sweep "nobody"'),
                (lambda: source.log(99), pelab.NotFound, "no job 99"),
                (lambda: source.log(1, attempt=9), pelab.NotFound, "job 1 has no attempt 9"),
                (lambda: source.results(state="done"), pelab.InvalidInput, 'unknown state "done"'),
                (lambda: source.results(where="color=red"), pelab.InvalidInput,
                 'unknown field "color"'),
                (lambda: source.results(fields=["color"]), pelab.InvalidInput,
                 'unknown field "color"'),
            ]:
                with self.assertRaises(kind) as raised:
                    wrong()
                self.assertIn(words, str(raised.exception))
        with self.assertRaisesRegex(AttributeError, "no submit: a coordinator has it"):
            file.submit(path)
        with self.assertRaisesRegex(AttributeError, "a database file has no color$"):
            file.color
        with self.assertRaises(pelab.NotFound) as raised:
            coordinator.submit(self.folder / "none.yaml")
        for address, kind in [(f"unix:{self.folder}/nobody", pelab.NoCoordinator),
                              ("127.0.0.1:1", pelab.NoCoordinator), ("nohost", pelab.InvalidInput),
                              ("host:99999", pelab.InvalidInput), ("unix:", pelab.InvalidInput),
                              ("::1:7470", pelab.InvalidInput)]:
            with self.assertRaises(kind):
                pelab.connect(address)
        with self.assertRaises(pelab.InvalidInput):
            pelab.connect("127.0.0.1:1", token_file=path)
        for process in self.started:
            process.kill()
            process.wait()
        with self.assertRaises(pelab.NoCoordinator) as raised:
            coordinator.results()
        self.assertEqual(str(raised.exception), f"lost the coordinator at {self.socket}")

    def test_a_watch_ends_with_its_principal(self):
        self.server()
        tokens = [self.folder / "root.token", self.folder / "bob.token"]
        for name, role, token in zip(("root", "bob"), ("operator", "reader"), tokens):
            self.ok(self.pelab("admin", "principal", "add", name, "--role", role, "--token-out",
                               token, *(() if name == "root" else ("--token-file", tokens[0]))))
        self.submit(tiny_sweep(name="waits", seeds="[3]"), "--token-file", tokens[0])
        with pelab.connect(self.socket, token_file=tokens[1]) as coordinator:
            snapshots = coordinator.watch("waits")
            self.assertIn("waits", str(next(snapshots)))
            self.ok(self.pelab("admin", "principal", "disable", "bob", "--token-file", tokens[0]))
            with self.assertRaisesRegex(pelab.PelabError, "principal bob is disabled"):
                list(snapshots)

    def test_files_that_are_not_read(self):
        with self.assertRaises(pelab.NotFound) as raised:
            pelab.open(self.folder / "none.db")
        self.assertIn("no database at", str(raised.exception))
        with self.assertRaises(pelab.Refused):
            pelab.open(self.folder)
        os.mkfifo(self.folder / "pipe.db")
        with self.assertRaises(pelab.Refused) as raised:
            pelab.open(self.folder / "pipe.db")  # must not wait for a writer
        self.assertIn("pipe.db is not a regular file", str(raised.exception))
        for text in [b"not a database at all, but long enough to be looked at" * 40, b""]:
            (self.folder / "text.db").write_bytes(text)
            with self.assertRaises(pelab.Refused) as raised:
                pelab.open(self.folder / "text.db")
            self.assertIn("is not a pelab database", str(raised.exception))
        changed = self.folder / "changed.db"
        shutil.copy(self.db, changed)
        connection = sqlite3.connect(changed)
        connection.executescript(
            "DROP VIEW v_jobs; CREATE VIEW v_jobs AS WITH RECURSIVE n (job_id) AS (SELECT 1 UNION "
            "ALL SELECT job_id FROM n) SELECT job_id FROM n")
        connection.close()
        with self.assertRaises(pelab.Refused) as raised:
            pelab.open(changed)
        self.assertIn('its view "v_jobs" is not the view', str(raised.exception))
        for version, words in [(4711, "from a newer pelab"), (1, "from before the first release")]:
            connection = sqlite3.connect(self.db)
            connection.execute(f"PRAGMA user_version = {version}")
            connection.close()
            with self.assertRaises(pelab.Refused) as raised:
                pelab.open(self.db)
            self.assertIn(words, str(raised.exception))
        self.assertIn(str(raised.exception), self.ok(self.pelab_db("results"), 2).stderr)

    def test_the_file_is_not_written_and_odd_names_are_names(self):
        odd = self.folder / "a b%20?#é.db"
        shutil.copy(self.db, odd)
        before = odd.read_bytes()
        with pelab.open(odd) as source:
            self.assertEqual(len(source.results("tiny")), 4)
            self.assertEqual(set(source.workers()["state"]), {"offline"})
            os.mkfifo(f"{odd}.lock")
            self.assertEqual(set(source.workers()["state"]), {"offline"})
            with self.assertRaises(sqlite3.OperationalError):
                source._db.execute("DELETE FROM jobs")
            with self.assertRaises(pelab.NotFound):
                source.results("x' OR 1=1 --")
        self.assertEqual(odd.read_bytes(), before)

    def test_reading_while_it_is_written(self):
        _, coordinator = self.sources()
        self.worker(slots=2)
        coordinator.submit(tiny_sweep(name="busy", seeds="[0]", pes="[rope]", epochs=100_000))
        first = pelab.open(self.db)
        wait_until(lambda: len(first.curves("busy")) > 5, 60, "epochs")
        link = self.folder / "link.db"
        link.symlink_to(self.db.name)
        with pelab.open(link) as linked:  # the coordinator locks the file, not the link
            self.assertIn("online", set(linked.workers()["state"]))
        seen = 0
        for _ in range(20):
            frame = first.curves("busy")
            for _, epochs in frame.groupby("job_id")["epoch"]:
                self.assertEqual(list(epochs), list(range(len(epochs))))
            self.assertGreaterEqual(len(frame), seen)
            seen = len(frame)
        first.close()
        coordinator.cancel("busy")

    def install_wheel(self):
        """Installs the wheel into a new virtual environment; gives its Python."""
        environment = self.folder / "pelab-env"
        subprocess.run([sys.executable, "-m", "venv",
                        "--system-site-packages", "--without-pip", environment], check=True)
        python = environment / "bin" / "python3"
        subprocess.run([python, "-m", "pip", "install",
                        "--quiet", "--no-deps", "--no-index", "--disable-pip-version-check",
                        os.environ["PELAB_WHEEL"]], check=True, env=outside(), cwd=self.folder)
        return python

    def install_as_documented(self):
        """Runs the command of client/python/README.md with a home folder of its own."""
        section = (SOURCE / "client" / "python" / "README.md").read_text().split("## Installing")[1]
        environment = outside() | {
            "HOME": str(self.folder), "PRESET": BIN.parent.name,
            "http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}
        shown = subprocess.run(["bash", "-ec", section.split("```\n")[1]], env=environment,
                               cwd=SOURCE, capture_output=True, text=True)
        self.assertEqual(shown.returncode, 0, shown.stdout + shown.stderr)
        self.assertIn(" is installed", shown.stdout)
        return self.folder / "pelab-env" / "bin" / "python3"

    def test_installation(self):
        # The Makefile builds in build/: for programs elsewhere, only the wheel can be tried.
        there = BIN.parent.parent == SOURCE / "build"
        python = self.install_as_documented() if there else self.install_wheel()
        script = ("import pelab, sys, pathlib; print(pelab.__file__); "
                  "assert (pathlib.Path(pelab.__file__).parent / 'py.typed').exists(); "
                  "source = pelab.open(sys.argv[1]); "
                  "print(pelab.__version__, len(source.results()), len(source.summary()))")
        shown = subprocess.run([python, "-c", script, self.db], env=outside(), cwd=self.folder,
                               check=True, capture_output=True, text=True)
        where, *said = shown.stdout.split()
        self.assertTrue(where.startswith(str(self.folder / "pelab-env")), where)
        version = self.ok(self.pelab_db("--version")).stdout.split()[1]
        self.assertEqual(said, [version, "5", "3"])

    def test_a_script_ends_that_closes_nothing(self):
        file, coordinator = self.sources()
        script = ("import sys, pelab\n"
                  "source = pelab.connect(sys.argv[1])\n"
                  "print(len(source.results('tiny', where='seed == 0')))\n")
        done = subprocess.run([sys.executable, "-c", script, str(self.socket)], check=False,
                              capture_output=True, text=True, timeout=30)
        expected = len(file.results("tiny", where="seed = 0"))
        self.assertEqual((done.stdout, done.returncode), (f"{expected}\n", 0), done.stderr)
        self.assertGreater(expected, 0)
        self.assertEqual(len(file.results("tiny", where="seed == 0")), expected)
        coordinator.close()

    def test_examples_on_both_sources(self):
        file, coordinator = self.sources()
        spec = importlib.util.spec_from_file_location("first_look", EXAMPLES / "first_look.py")
        example = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(example)
        left, right = example.look(file, "tiny"), example.look(coordinator, "tiny")
        self.assertEqual(list(left), list(right))
        for name in left:
            same(left[name], right[name])
            self.assertGreater(len(left[name]), 0, name)
        shown = subprocess.run([sys.executable, EXAMPLES / "first_look.py", str(self.db), "tiny"],
                               check=True, capture_output=True, text=True).stdout
        printed = io.StringIO()
        # As the script again, without another import of pandas.
        with (unittest.mock.patch.object(sys, "argv", ["first_look.py", self.socket, "tiny"]),
              contextlib.redirect_stdout(printed)):
            example.main()
        self.assertEqual(shown, printed.getvalue())
        self.assertIn("n=2", shown)

        notebook = json.loads((EXAMPLES / "first_look.ipynb").read_text())
        stored = [cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
        self.assertTrue(all(stored), "a cell of the notebook was not executed")
        self.assertLess((EXAMPLES / "first_look.ipynb").stat().st_size, 30_000)
        text = json.dumps(notebook).replace('\\"quick\\"', '\\"tiny\\"')
        os.environ["PELAB_DB"] = str(self.db)
        done, names = run_notebook(json.loads(text))
        names["source"].close()
        again, other = run_notebook(
            json.loads(text.replace('pelab.open(os.environ.get(\\"PELAB_DB\\", \\"pelab.db\\"))',
                                    f'pelab.connect(\\"{self.socket}\\")')))
        other["source"].close()
        self.assertIsInstance(other["source"], pelab.Coordinator)
        self.assertEqual(done["cells"][-1]["outputs"], again["cells"][-1]["outputs"])
        for name in ("cells", "jobs", "curves", "heads"):
            same(names[name], other[name])


class Sheets(SettleCase):
    """Sheets that are settled on jobs that nobody trained, with results. Each test gets a copy of
    the database."""

    SWEEP = tiny_sweep(name="made-up", seeds="0..39", pes="[rope, nope, alibi]").replace(
        "protocol: clean", "protocol: [clean, published]") + "analyses: [head_ablation]\n"
    CLAIMS = [
        above("above", "pe=rope", "pe=nope", each="protocol"),
        above("far-above", "pe=rope protocol=clean", "pe=nope protocol=clean", 0.999),
        {"id": "near", "where": "protocol=clean", "near": {
            "metric": "epochs_to(0.5)", "a": "pe=rope", "b": "pe=alibi", "within": 1}},
        {"id": "deposit", "each": "protocol",
         "most": {"metric": "deposit", "cell": "pe=rope", "layers": "any"}}]

    @classmethod
    def setUpClass(cls):
        made = cls.made = SettleCase("settle")
        made.setUp()
        cls.addClassCleanup(made.doCleanups)
        sweep = made.write("tiny.yaml", cls.SWEEP)
        subprocess.run([BIN.parent / "tests/pelab-populate", sweep, "--db", made.db], check=True,
                       capture_output=True)
        # No job is trained, so the coordinator needs no worker, which would load LibTorch.
        coordinator = made.server()
        made.ok(made.settle(made.sheet(cls.CLAIMS, max_seeds=30, false_discovery_rate=0.2),
                            "--no-fresh-seeds", "--slots", "6", "--max-jobs", "0", served=True))
        # Its seeds are not there yet: no round begins.
        made.ok(made.settle(made.sheet(cls.CLAIMS[:1], name="later"), "--max-jobs", "0",
                            served=True))
        coordinator.terminate()
        coordinator.wait(10)

    def setUp(self):
        super().setUp()
        shutil.copy(self.made.db, self.db)

    def shown(self, *arguments):
        return json.loads(self.ok(self.pelab_db("claims", *arguments, "--output", "json")).stdout)

    def test_both_sources_give_equal_frames(self):
        file, coordinator = open_both(self)
        same(file.sheets(), coordinator.sheets())
        sheets = file.sheets()
        self.assertEqual(list(sheets["name"]), ["later", "tiny-claims"])
        for name in ["tiny-claims", 1, "1", sheets["sha256"][1][:6], sheets["sha256"][1]]:
            for rounds in ("last", "all"):
                same(file.claims(name, rounds=rounds), coordinator.claims(name, rounds=rounds))
            same(file.claims(name), file.claims(1))
        every, last = file.claims(1, rounds="all"), file.claims(1)
        self.assertGreater(last["round"][0], 1)
        self.assertEqual(list(every["round"].unique()), list(range(1, last["round"][0] + 1)))
        same(last, every[every["round"] == last["round"][0]].reset_index(drop=True))
        for rounds in ("last", "all"):
            empty = coordinator.claims("later", rounds=rounds)
            same(empty, file.claims("later", rounds=rounds))
            same(empty, last.iloc[:0])
        for name in ["nobody", "tiny-claim", 3, "", "abcde", "ABCDEF", "x' OR 1=1 --", "a\nb\x1b",
                     "é" * 300]:
            said = []
            for source in (file, coordinator):
                with self.assertRaises(pelab.NotFound) as raised:
                    source.claims(name)
                said.append(str(raised.exception))
            self.assertEqual(said[0], said[1])
            self.assertIn(f'no sheet "{name}";', said[0])
            self.assertIn("known: later, tiny-claims", said[0])

    def test_frames_are_what_the_command_line_says(self):
        file, coordinator = open_both(self)
        claims = self.shown("show", "tiny-claims")["claims"]
        rows = coordinator.claims("tiny-claims").to_dict("records")
        self.assertEqual([row["claim"] for row in rows], [claim["id"] for claim in claims])
        self.assertTrue(any(claim["t_half_width"] is not None for claim in claims))
        for row, claim in zip(rows, claims):
            for name in ("standing", "verdict", "seeds", "eligible", "exploratory", "e_holds",
                         "e_fails", "threshold", "leans_to", "k", "n", "shows", "mean",
                         "t_half_width", "median_low", "median_high"):
                value = None if pd.isna(row[name]) else row[name]
                self.assertEqual(value, claim[name], (claim["id"], name))
        self.assertLessEqual({"holds", "fails"}, {row["verdict"] for row in rows})
        stored = self.query("SELECT * FROM v_sheet_claims WHERE sheet_id = 1 ORDER BY round, "
                            "position")
        frame = file.claims(1, rounds="all")
        shown = frame.iloc[:, :20].astype(object)
        self.assertEqual(list(shown.where(shown.notna(), None).itertuples(index=False, name=None)),
                         stored)
        for name in ("e_holds", "e_fails", "threshold"):
            np.testing.assert_allclose(frame[name], np.exp(frame[f"log_{name}"]), rtol=1e-14)
        sheets = self.shown("list")["sheets"]
        for row, sheet in zip(file.sheets().to_dict("records"), sheets, strict=True):
            self.assertEqual(row.pop("created_at").value, sheet["created_at_ms"] * 1_000_000)
            for name, value in row.items():
                self.assertTrue(value == sheet[name] or (pd.isna(value) and sheet[name] is None),
                                name)


class Documented(TrainedCase):
    """Runs the examples of client/python/README.md one after another in one namespace. They refer
    to a sweep table1 and to a claim sheet table1-small."""

    SWEEP = tiny_sweep(name="table1") + "analyses: [head_ablation]\n"

    @classmethod
    def train(cls, maker):
        """Takes the jobs of Package, which are this sweep's too."""
        shutil.copy(Package.trained() / "pelab.db", maker.folder)
        shutil.copytree(Package.trained() / "pelab.db.artifacts",
                        maker.folder / "pelab.db.artifacts")
        maker.server()
        said = maker.submit(cls.SWEEP)
        maker.assertIn("0 new, 4 already stored", said.stdout)
        maker.stop_all()

    def blocks(self):
        return (SOURCE / "client" / "python" / "README.md").read_text().split("```python\n")[1:]

    def run_blocks(self, blocks):
        texts = [block.split("```")[0].replace("gpu01:7470", self.socket) for block in blocks]
        os.chdir(self.folder)
        self.addCleanup(os.chdir, SOURCE)
        cells = [{"cell_type": "code", "source": [text]} for text in texts]
        notebook, names = run_notebook({"cells": cells})
        return (["".join("".join(output.get("text", "")) for output in cell["outputs"])
                 for cell in notebook["cells"]], names)

    def settle(self):
        """Registers the sheet and settles it on the seeds that are stored."""
        self.write("table1.yaml", self.SWEEP)
        sheet = self.write("table1-small.yaml", json.dumps({
            "name": "table1-small", "sweep": "table1.yaml",
            "claims": [above("rope-above-nope", "pe=rope", "pe=nope")]}))
        self.ok(self.pelab_db("settle", sheet, "--no-fresh-seeds", "--slots", 2, "--max-jobs", 0))

    def test_reading(self):
        self.settle()
        self.server()
        printed, names = self.run_blocks([block
                                          for block in self.blocks() if " as lab:" not in block])
        self.assertIn("distance: ", "".join(printed))
        self.assertIn("2 pairs", "".join(printed))
        self.assertEqual((list(names["learning"].columns), len(names["learning"])), ([1e-3], 3))
        self.assertEqual(set(names["heads"]["pe_label"]), {"nope", "rope"})
        self.assertIn("rope-above-nope: undecided after 2 seeds, e = ", "".join(printed))
        self.assertEqual((list(names["evidence"].columns), list(names["evidence"].index)),
                         (["rope-above-nope"], [1, 2]))
        names["source"].close()

    def test_asking(self):
        self.db, self.socket = self.folder / "other.db", f"unix:{self.folder}/other"
        self.server()
        self.worker()
        self.write("table1.yaml", tiny_sweep(name="table1", epochs=1, seeds="[0]"))
        printed, names = self.run_blocks(["import pelab\n```", *(block for block in self.blocks()
                                                                 if " as lab:" in block)])
        self.assertTrue(
            printed[1].startswith("2 new, 0 already stored, 0 in flight, 0 failed earlier\n"),
            printed)
        self.assertIn("table1: 2/2 jobs succeeded", printed[1])
        self.assertEqual(names["snapshot"].succeeded, 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
