"""Encodings from files, from Python to results, on the real binaries. Run by a Python with
PyTorch, which only makes the files."""

import contextlib
import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import unittest
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from own_encoding_case import EXAMPLE, OwnEncoding, SMALL, TINY, document  # noqa: E402
from pelab_harness import BIN, wait_until  # noqa: E402


class Check(OwnEncoding):
    def test_a_good_encoding(self):
        self.examples()
        found = json.loads(self.ok(self.pelab_db("check", "rope.pt", "--output", "json")).stdout)
        files = ("decay.pt", "t5.pt")
        # The T5 buckets grow from distance 16 on.
        for file, (status, checks) in zip(("rope.pt", *files), [
                (0, {row["name"]: row for row in found["checks"]}),
                *self.tried(files, length=24)]):
            self.assertEqual(status, 0, file)
            self.assertEqual({row["status"] for row in checks.values()} - {"note"}, {"ok"}, file)
            self.assertIn("distances alone", checks["shift"]["text"], file)
            self.assertIn("times rope's", checks["speed"]["text"])
        table = self.ok(self.pelab_db("check", "decay.pt", "--option", "strength=3", "--set",
                                      "model.heads=8", *SMALL)).stdout
        for text in ("encoding decay: a learned factor", "distance_factor", "strength: 1 (a number",
                     "16 parameters of its own", "of finite differences"):
            self.assertIn(text, table)
        declared = self.ok(self.pelab_db("check", "decay.pt", "--declaration")).stdout
        self.assertNotIn("finite differences", declared)

    def test_what_does_not_hold_is_found(self):
        wrong = (
                ("""
                 def logits(self, layer: int, query: torch.Tensor, key: torch.Tensor,
                            logits: torch.Tensor):
                     return logits + logits.mean(-1, keepdim=True) * logits
                 """, "causality", "a method mixes positions"),
                ("""
                 def transform(self, layer: int, side: int, x: torch.Tensor, length: int):
                     return x - x.mean(0, keepdim=True)
                 """, "examples", "a method mixes examples"),
                # The sum over a batch grows with the batch, whatever the examples are.
                ("""
                 def pair_bias(self, layer: int, query: torch.Tensor, key: torch.Tensor):
                     shape = [1, 1, query.size(2), key.size(2)]
                     return torch.arange(key.size(2)).expand(shape) * (0.1 * query.size(0))
                 """, "examples", "a method mixes examples"),
                ("""
                 def distance_bias(self, layer: int, length: int):
                     return self.scale * 0.0 + torch.ones(4, 2 * length - 1)
                 """, "influence", "pe.scale"),
                # One number for all keys changes no weight; only rounding gives it a gradient.
                ("""
                 def distance_bias(self, layer: int, length: int):
                     return self.scale * torch.ones(4, 2 * length - 1)
                 """, "influence", "pe.scale"),
                ("""
                 def distance_bias(self, layer: int, length: int):
                     rows = torch.ones(4, 2 * length - 1)
                     return (self.scale.detach() + self.scale * 0.5) * rows.cumsum(1)
                 """, "gradients", "off the finite difference"),
                ("""
                 def distance_bias(self, layer: int, length: int):
                     self.step = self.step + 1.0
                     return self.step * torch.arange(2 * length - 1) * self.scale
                 """, "module", "sets self.step"),
                ("""
                 def input_term(self, length: int):
                     return torch.ones(length, 16) / 0.0
                 """, "finite", "the method input_term gives infinity"),
                ("""
                 def transform(self, layer: int, side: int, x: torch.Tensor, length: int):
                     return torch.log(x)
                 """, "finite", "the method transform gives NaN"),
                ("""
                 def distance_bias(self, layer: int, length: int):
                     return torch.full([4, 2 * length - 1], -1.0) / 0.0
                 """, "finite", "minus infinity for every key"),
                ("""
                 def distance_bias(self, layer: int, length: int):
                     return torch.ones(3, 2 * length - 1)
                 """, "module", "distance_bias"),
                ("""
                 def input_term(self, length: int):
                     return torch.zeros(1 << 46)
                 """, "module", "can't allocate memory"))
        files = [f"{i}.pt" for i in range(len(wrong))]
        self.saved({file: methods for file, (methods, _, _) in zip(files, wrong)})
        for (status, rows), (_, name, said) in zip(self.tried(files), wrong):
            with self.subTest(said=said):
                self.found(name, said, status, rows)
        # The command gives the trainer's rows. Only a check that failed makes its status 1.
        for file, (_, name, said) in ((files[0], wrong[0]), (files[3], wrong[3])):
            with self.subTest(file=file):
                result = self.pelab_db("check", file, "--output", "json", *SMALL)
                checks = json.loads(result.stdout)["checks"]
                self.found(name, said, result.returncode, {row["name"]: row for row in checks})

    def found(self, name, said, status, rows):
        """Asserts that the check has said so. Only that parameters are idle is no failure."""
        self.assertIn(name, rows)
        self.assertIn(said, rows[name]["text"])
        failed = rows[name]["status"] == "failed"
        self.assertEqual((status, failed), (int(failed), name != "influence"))


# The examples as the authors' code has these encodings, without a mask.
PUBLISHED = """
import sys
from typing import Dict, List
import torch
import pelab
sys.path.insert(0, {folder!r})
from own_encodings import Alibi, Rope, Sinusoid

class AuthorsAlibi(Alibi):
    def configure(self, sizes: Dict[str, int], options: Dict[str, float]) -> None:
        self.slopes = torch.exp(-torch.arange(sizes["heads"]) / sizes["heads"])

class AuthorsRope(Rope):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.zeros(1, 1))

    def configure(self, sizes: Dict[str, int], options: Dict[str, float]) -> None:
        size, width = sizes["head_size"], sizes["d_model"]
        self.frequencies = torch.pow(10000.0, -torch.arange(0, size, 2,
                                                            dtype=torch.float64) / size)
        angles = (torch.arange(sizes["max_len"]).unsqueeze(1)
                  * torch.pow(10000.0, -torch.arange(0, width, 2, dtype=torch.float64) / width))
        self.table = torch.cat([angles.sin(), angles.cos()], 1)

    def input_term(self, length: int) -> torch.Tensor:
        return self.table[:length]

pelab.save_encoding(AuthorsAlibi(), "authors_alibi.pt", name="authors_alibi")
pelab.save_encoding(AuthorsRope(), "authors_rope.pt", name="authors_rope")
"""


class Same(OwnEncoding):
    """The encodings that pelab brings, written as files, give the same counts: of every epoch and
    of every ablated head. The losses differ by rounding alone, and show what so few examples'
    counts would not."""

    FEW = {"train": 96, "test": 48}

    def same(self, pairs):
        for brought, own in pairs.items():
            with self.subTest(own=own):
                self.assertEqual(self.outcome(own), self.outcome(brought))
                losses = list(zip(self.losses(own), self.losses(brought), strict=True))
                self.assertGreater(len(losses), 8, "those of two epochs and of eight heads")
                for of_own, of_brought in losses:
                    self.assertAlmostEqual(of_own, of_brought, delta=1e-5 * of_brought)

    def losses(self, label):
        """Of each epoch and of each ablated head."""
        curves = self.query("SELECT c.train_loss, c.test_loss FROM v_curves AS c JOIN v_jobs "
                            "USING (job_id) WHERE pe_label = ? ORDER BY seed, epoch", label)
        heads = self.query("SELECT nll FROM v_head_ablation JOIN v_jobs USING (job_id) WHERE "
                           "pe_label = ? ORDER BY seed, layer, head", label)
        return [loss for row in (*curves, *heads) for loss in row]

    def test_clean(self):
        self.examples()
        pes = ("[alibi, rope, absolute, {name: relative, init_std: 0}, "
               + ", ".join(f"{{name: own, file: {name}.pt}}"
                           for name in ("alibi", "rope", "sinusoid", "t5")) + "]")
        self.ok(self.run_sweep(self.write("own.yaml", document(pes, **self.FEW))))
        self.assertEqual(self.states(), {"succeeded": 8})
        self.same({"alibi": "own:alibi", "rope": "own:rope(base=10000)",
                   "absolute": "own:sinusoid",
                   "relative(init_std=0)": "own:t5(buckets=32,longest=128)"})

    def test_published(self):
        self.examples()
        self.ok(self.python(self.write("published.py",
                                       PUBLISHED.format(folder=str(EXAMPLE.parent)))))
        pes = ("[alibi, rope, absolute, {name: relative, form: t5, init_std: 0}, "
               "{name: own, file: authors_alibi.pt}, {name: own, file: authors_rope.pt}, "
               "{name: own, file: sinusoid.pt}, {name: own, file: t5.pt}]")
        text = document(pes, **self.FEW).replace("clean", "published")
        self.ok(self.run_sweep(self.write("own.yaml", text)))
        self.assertEqual(self.states(), {"succeeded": 8})
        self.same({"alibi": "own:authors_alibi", "rope": "own:authors_rope",
                   "absolute": "own:sinusoid",
                   "relative(form=t5,init_std=0)": "own:t5(buckets=32,longest=128)"})


class Sweeps(OwnEncoding):
    def test_one_machine(self):
        self.examples()
        pes = "[rope, {name: own, file: decay.pt, strength: [1, 4]}]"
        self.ok(self.run_sweep(self.write("own.yaml", document(pes, "[0, 1]", train=96, test=64)),
                               "--cpu-slots", "2", "--threads-per-slot", "1"))
        self.assertEqual(self.states(), {"succeeded": 6})
        self.assertEqual(self.labels(), ["own:decay(strength=1)", "own:decay(strength=4)", "rope"])
        self.assertNotEqual(self.outcome("own:decay(strength=1)"),
                            self.outcome("own:decay(strength=4)"))
        self.ok(self.pelab_db("export", "own", "--out", "out"))
        self.assertEqual((self.folder / "out" / "decay.pt").read_bytes(),
                         (self.folder / "decay.pt").read_bytes())
        provenance = json.loads((self.folder / "out" / "provenance.json").read_text())
        self.assertFalse([line for line in provenance["commands"] if "file:" in line])
        again = self.ok(self.run_sweep(self.folder / "own.yaml"))
        self.assertIn("6 succeeded", again.stdout)
        self.ok(self.pelab_db("db", "check"))
        for words in (("results",), ("deposits", "own"), ("jobs", "--where", "pe.encoding=decay"),
                      ("ablation", "own", "--where", "pe=own")):
            self.assertIn("decay", self.ok(self.pelab_db(*words)).stdout, words)

    def test_two_workers_with_empty_caches(self):
        self.examples()
        self.server()
        text = document("[{name: own, file: decay.pt}, {name: own, file: alibi.pt}]", "0..1",
                        **TINY)
        self.worker("a", 1)
        self.worker("b", 1)
        # The first of them could finish such short jobs before the second is there.
        self.wait_online(2)
        self.ok(self.pelab("submit", self.write("own.yaml", text)))
        self.wait_finished(4)
        self.assertEqual(self.states(), {"succeeded": 4})
        workers = self.query("SELECT count(DISTINCT worker) FROM v_attempts")
        self.assertEqual(workers, [(2,)])
        self.ok(self.pelab("extend", "own", "--seed", "2..3"))
        self.wait_finished(8)

    def test_claims_about_them_are_settled(self):
        self.examples()
        self.write("own.yaml", document("[nope, {name: own, file: decay.pt}]", **TINY))
        sheet = self.write("claims.yaml", """
name: own-claims
sweep: own.yaml
false_discovery_rate: 0.5
claims:
  - id: decay-learns-something
    between: {metric: test_accuracy, cell: pe.encoding=decay, low: 0, high: 1.01}
  - id: decay-above-nope
    above: {metric: test_accuracy, a: pe=own, b: pe=nope, by: -0.9}
""")
        settled = self.ok(subprocess.run(
            [BIN / "pelab", "settle", sheet, "--db", self.db, "--max-jobs", "40"], cwd=self.folder,
            capture_output=True, text=True, timeout=240))
        self.assertIn("2 hold", settled.stdout)
        stored, = self.query("SELECT sweep_document FROM sheets")[0]
        self.assertIn(self.sha256("decay.pt"), stored)
        shown = self.ok(self.pelab_db("claims", "show", sheet))
        self.assertIn("2 hold", shown.stdout)
        self.saved({"decay.pt": "def input_term(self, length: int):\n"
                                "    return torch.zeros(length, 16)"})
        other = self.pelab_db("claims", "show", sheet)
        self.assertNotIn("2 hold", other.stdout, "with another file it is another sheet")

    def test_python_submits_them(self):
        self.examples()
        self.server()
        self.worker("w", 1)
        path = self.write("own.yaml", document("{name: own, file: some/where.pt, strength: 2}",
                                               **TINY))
        script = self.write("submit.py", f"""
import pelab
with pelab.connect({self.socket!r}) as coordinator:
    for files in ({{"some/where.pt": "none.pt"}}, {{"some/where.pt": "own.yaml"}}):
        try:
            coordinator.submit({str(path)!r}, own_files=files)
        except pelab.PelabError as error:
            print(type(error).__name__, error)
    made = coordinator.submit({str(path)!r}, own_files={{"some/where.pt": "decay.pt"}})
    coordinator.wait(made.sweep_id)
    print(coordinator.results("own")["pe_label"].tolist())
""")
        said = self.ok(self.python(script)).stdout
        self.assertIn("NotFound cannot read none.pt", said)
        self.assertIn("InvalidInput own.yaml: this is no file of data (safetensors), and none of "
                      "an encoding", said)
        self.assertIn("['own:decay(strength=2)']", said)

    def test_the_document_is_checked_with_the_file(self):
        self.examples()
        for pes, said in (("{name: own, file: none.pt}", "own.yaml:4:23: cannot read"),
                          ("{name: own, file: own.yaml}", "this is no TorchScript file"),
                          ("{name: own, file: decay.pt, strenth: 1}", "did you mean strength?"),
                          ("{name: own, file: decay.pt, strength: 101}",
                           "own.yaml:4:43: pe.strength must be a number from 0 to 100, not 101"),
                          ("own", "an own encoding needs a file")):
            result = self.run_sweep(self.write("own.yaml", document(pes)))
            self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
            self.assertIn(said, result.stderr)
            self.assertNotIn("Traceback", result.stderr)
        self.assertFalse(pathlib.Path(self.db).exists(), "nothing is begun for a wrong document")


# Methods that are wrong at the trainer, and what the job's error says.
WRONG = {
    "shape": ("""
        def distance_bias(self, layer: int, length: int):
            return self.scale[0] * torch.ones(4, length)
        """, ["mine", "distance_bias", "47"]),
    "integers": ("""
        def distance_bias(self, layer: int, length: int):
            return torch.ones(4, 2 * length - 1, dtype=torch.long)
        """, ["mine", "distance_bias", "Float"]),
    "raises": ("""
        def distance_bias(self, layer: int, length: int):
            assert length < 3, "too long for me"
            return torch.ones(4, 2 * length - 1)
        """, ["mine", "distance_bias", "too long for me"]),
    "nan": ("""
        def distance_bias(self, layer: int, length: int):
            return self.scale * torch.full([4, 2 * length - 1], float("nan"))
        """, ["loss"]),
    "transform": ("""
        def transform(self, layer: int, side: int, x: torch.Tensor, length: int):
            return x[:, :, :, :2]
        """, ["mine", "transform"]),
    "logits": ("""
        def logits(self, layer: int, query: torch.Tensor, key: torch.Tensor,
                   logits: torch.Tensor):
            return logits.sum()
        """, ["mine", "logits"]),
    "configure": ("""
        def configure(self, sizes: Dict[str, int], options: Dict[str, float]):
            self.step = options["none"]
        def input_term(self, length: int):
            return torch.ones(length, 16)
        """, ["mine", "configure", "KeyError: none; sizes has", "max_len", "options has nothing"]),
    "scalar": ("""
        def configure(self, sizes: Dict[str, int], options: Dict[str, float]):
            self.scale = torch.ones([])
        def input_term(self, length: int):
            return self.scale * torch.ones(length, 16)
        """, ["mine", "scale"]),
}


ENDLESS = {
    "loop.pt": """
        def distance_bias(self, layer: int, length: int):
            x = torch.zeros(1, 2 * length - 1)
            while bool(x.sum() < 1):
                x = x * 1
            return x
        """,
    "grow.pt": """
        def distance_bias(self, layer: int, length: int):
            x = torch.jit.annotate(List[torch.Tensor], [])
            while len(x) < 1000000:
                x.append(torch.empty(1 << 22))
            return x[0][:2 * length - 1].unsqueeze(0)
        """,
}


class Faults(OwnEncoding):
    def test_a_worker_may_refuse_them(self):
        self.examples()
        self.server()
        self.worker("off", 1, "--own-encodings", "off")
        text = document("[nope, {name: own, file: decay.pt}]", **TINY)
        self.ok(self.pelab("submit", self.write("own.yaml", text)))
        wait_until(lambda: self.states() == {"queued": 1, "succeeded": 1}, 60,
                   "the job of nope alone")
        self.assertRegex(self.ok(self.pelab("status", "own")).stdout, "its trainer has no pe own")
        self.worker("on", 1)
        self.wait_finished(2)

    def test_a_file_that_the_coordinator_lost_is_sent_again(self):
        self.examples()
        self.server()
        self.ok(self.pelab("submit", self.write("own.yaml", document(
            "{name: own, file: decay.pt}", **TINY))))
        lost = [path for path in pathlib.Path(f"{self.db}.artifacts").rglob("*") if path.is_file()
                and path.read_bytes() == (self.folder / "decay.pt").read_bytes()]
        self.assertEqual(len(lost), 1)
        lost[0].unlink()
        self.worker("w", 1)
        wait_until(lambda: self.states() == {"failed": 1}, 120, "the job to fail")
        (error,), = self.query("SELECT error FROM v_jobs")
        self.assertIn("submit the sweep again", error)
        self.ok(self.pelab("submit", "own.yaml"))
        self.ok(self.pelab("retry", "own"))
        self.wait_finished(1)


def signal_all(processes, number):
    """Sends the signal to these processes, as far as they have not ended. They are pidfds."""
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(process, number)


class Wrong(OwnEncoding):
    def test_a_wrong_method_fails_its_job_and_the_worker_goes_on(self):
        self.saved({**{f"{name}.pt": methods for name, (methods, _) in WRONG.items()},
                    "loop.pt": ENDLESS["loop.pt"]})
        files = [f"{{name: own, file: {name}.pt}}" for name in (*WRONG, "loop")]
        self.server()
        self.worker("w", 1, "--attempt-timeout", "2s")
        text = document(f"[{', '.join(files)}, nope]", **TINY)
        self.ok(self.pelab("submit", self.write("own.yaml", text)))
        own = "spec_json ->> '$.pe.file' = ?"
        loop = self.sha256("loop.pt")
        wait_until(lambda: self.query(f"SELECT 1 FROM v_jobs WHERE {own} AND state = 'running'",
                                      loop), 180, "the endless job to begin")
        trainers = [os.pidfd_open(pid) for pid in self.trainers()]
        for trainer in trainers:
            self.addCleanup(os.close, trainer)

        def failed():
            """The loop goes on during the question alone, as on a slow machine. Otherwise it
            would keep a processor busy until its worker kills it."""
            signal_all(trainers, signal.SIGCONT)
            try:
                return self.query("SELECT 1 FROM v_attempts JOIN v_jobs USING (job_id) WHERE "
                                  f"outcome = 'failed' AND {own}", loop)
            finally:
                signal_all(trainers, signal.SIGSTOP)
        wait_until(failed, 90, "the attempt that never ends to be ended")
        (error,), = self.query("SELECT DISTINCT a.error FROM v_attempts AS a JOIN v_jobs USING "
                               f"(job_id) WHERE a.error <> '' AND {own}", loop)
        self.assertIn("said nothing for 2 s; stopped by --attempt-timeout", error)
        others = ["failed"] * len(WRONG) + ["succeeded"]
        wait_until(lambda: sorted(row[0] for row in self.query(
            "SELECT state FROM v_jobs WHERE spec_json ->> '$.pe.file' IS NOT ?", loop)) == others,
            180, lambda: f"the other jobs to end; {self.situation()}")
        self.assertEqual(self.query("SELECT state FROM v_jobs WHERE pe = 'nope'"),
                         [("succeeded",)])
        for name, (_, said) in WRONG.items():
            (error,), = self.query(f"SELECT error FROM v_jobs WHERE {own}",
                                   self.sha256(f"{name}.pt"))
            for text in said:
                self.assertIn(text, error, name)
            self.assertNotIn("Traceback", error, name)
            self.assertNotIn("Exception raised from", error, name)
            self.assertLess(len(error), 600, name)

    def test_check_of_code_without_end(self):
        self.saved(ENDLESS)
        for name, time, limit, said in (("loop", "1s", None, "a method may run without end"),
                                        ("grow", "60s", 1 << 30, "allocate memory")):
            result = subprocess.run(
                [BIN / "pelab", "check", f"{name}.pt", "--timeout", time], cwd=self.folder,
                capture_output=True, text=True, timeout=100,
                preexec_fn=lambda: limit and resource.setrlimit(resource.RLIMIT_DATA,
                                                                (limit, limit)))
            self.assertNotEqual(result.returncode, 0, name)
            self.assertIn(said, re.sub(r"\s+", " ", result.stdout + result.stderr), name)

    def test_the_same_code_gives_the_same_file(self):
        methods = "def input_term(self, length: int):\n    return self.scale"
        self.saved({"a.pt": methods})
        self.saved({"b.pt": "\n\n# a comment\n" + methods})
        self.assertEqual(self.sha256("a.pt"), self.sha256("b.pt"))
        with zipfile.ZipFile(self.folder / "a.pt") as archive:
            declared = json.loads(archive.read("archive/extra/pelab.json"))
        self.assertEqual((declared["name"], declared["methods"]), ("mine", ["input_term"]))


if __name__ == "__main__":
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    unittest.main()
