"""What files of own encodings declare: choices, what they need of a job, and whether they
extrapolate. Run by a Python with PyTorch, which only makes the files."""

import json
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from forked_script import run_script  # noqa: E402
from own_encoding_case import OwnEncoding, SMALL, document  # noqa: E402

FORMS = """
    def configure(self, sizes: Dict[str, int], options: Dict[str, float]):
        self.step = options["form"]
    def distance_bias(self, layer: int, length: int):
        d = torch.arange(1 - length, length).abs().float()
        return -self.scale * (torch.log1p(d) if self.step == 1.0 else d)
"""
ARGUMENTS = """name='forms', options={'form': pelab.choice('linear', ['linear', 'log'], 'how')},
     needs={'model.mask': ['causal'], 'model.heads': pelab.between(2, 4)}, extrapolates=False"""
DATA = """
import pelab
tokens = [[5 + (i * j) % 7 for j in range(24)] for i in range(1, 31)]
pelab.save_task("mine.safetensors", tokens, [i % 2 for i in range(30)],
                ["train", "test", "long"] * 10, name="mine", lengths=[8, 8, 24] * 10,
                repeats_allowed=True)
"""


class Declared(OwnEncoding):
    kept = None  # the file forms.pt

    def forms(self):
        """Puts forms.pt into the test's folder. It is made once."""
        if Declared.kept is None:
            self.assertEqual(self.save([("forms.pt", FORMS, ARGUMENTS)]), [])
            Declared.kept = (self.folder / "forms.pt").read_bytes()
        (self.folder / "forms.pt").write_bytes(Declared.kept)

    def test_a_choice_is_trained_and_exported(self):
        self.forms()
        text = document("{name: own, file: forms.pt, form: [linear, log]}", train=128)
        self.ok(self.run_sweep(self.write("own.yaml", text)))
        labels = ["own:forms(form=linear)", "own:forms(form=log)"]
        self.assertEqual(self.labels(), labels)
        self.assertNotEqual(*map(self.outcome, labels))
        rows = self.ok(self.pelab_db("jobs", "--where", "pe.options=form=log", "--output", "json"))
        job = json.loads(rows.stdout)["jobs"][0]["job_id"]
        self.ok(self.pelab_db("export-model", job, "--out", "model", "--data"))
        found = self.ok(run_script("model/model.py", "model/data.safetensors",
                                   folder=self.folder)).stdout
        (correct,), = self.query("SELECT test_correct FROM v_curves WHERE job_id = ? ORDER BY "
                                 "epoch DESC LIMIT 1", job)
        self.assertIn(f"{correct}/96 ", found)

    def test_the_document_is_checked_against_them(self):
        self.forms()
        own = "{name: own, file: forms.pt"
        for pes, change, said in (
                (f"{own}, form: lg}}", "", "own.yaml:4:39: pe.form must be one of linear, log, not "
                                           '"lg"; did you mean log?'),
                (f"{own}}}", "heads: 8", "own.yaml:7:39: model.heads is 8; the encoding forms "
                                         "needs model.heads from 2 to 4"),
                (f"[rope, {own}}}]", "heads: 4, mask: none", "model.mask is none; the encoding "
                                                             "forms needs model.mask causal")):
            sweep = document(pes).replace("heads: 4", change or "heads: 4")
            result = self.pelab_db("submit", self.write("own.yaml", sweep), "--dry-run")
            self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
            self.assertIn(said, result.stderr)

    def test_a_note_about_longer_sequences(self):
        self.forms()
        self.ok(self.python(self.write("data.py", DATA)))
        text = document("[rope, {name: own, file: forms.pt}]").replace("clean", "matched")
        lines = [line if not line.startswith("task:") else
                 "task: {name: own, file: mine.safetensors, test: [test, long]}"
                 for line in text.splitlines()]
        sweep = self.write("own.yaml", "\n".join(lines))
        result = self.ok(self.pelab_db("submit", sweep, "--dry-run"))
        self.assertEqual(result.stderr,
                         "note: the encoding forms declares extrapolates: false, but the split "
                         "long of the data mine has sequences of up to 24 tokens, and its training "
                         "split of up to 8\n")

    def test_check_shows_them(self):
        self.forms()
        shown = self.ok(self.pelab_db("check", "forms.pt", "--declaration")).stdout
        for line in ("option   form: linear (one of linear, log), how\n",
                     "needs    model.heads: 2 to 4\n", "needs    model.mask: causal\n",
                     "lengths  extrapolates: false\n"):
            self.assertIn(line, shown)
        said = self.pelab_db("check", "forms.pt", "--set", "model.heads=8")
        self.assertIn("model.heads is 8; the encoding forms needs model.heads from 2 to 4",
                      said.stderr)
        both = """
            def pair_bias(self, layer: int, query: torch.Tensor, key: torch.Tensor):
                mixed = (key * key.mean(2, keepdim=True)).sum(-1)
                return self.scale[0, 0] * mixed.unsqueeze(2)
            """
        self.save([("both.pt", both, "name='both', needs={'model.mask': ['none'], "
                                     "'model.heads': [2]}")])
        found = self.json_of("check", "both.pt", *SMALL)
        rows = {row["name"]: row for row in found["checks"]}
        self.assertEqual(rows["causality"]["status"], "note", "it is never behind a causal mask")
        self.assertIn("earlier positions", rows["causality"]["text"])

    def json_of(self, *words):
        return json.loads(self.pelab_db(*words, "--output", "json").stdout)

    def test_save_encoding_says_what_is_wrong(self):
        good = "def input_term(self, length: int):\n    return self.scale"
        wrong = (("def distance_bias(self, layer: int):\n    return self.scale", "name='mine'",
                  "distance_bias takes (layer); it must take (layer, length)"),
                 ("def other(self):\n    return self.scale", "name='mine'", "none of the methods"),
                 ("def input_term(self, length: int):\n    return eval('1')", "name='mine'",
                  "torch.jit.script cannot compile"),
                 (good, "name='My PE'", "the encoding's name is 'My PE'"),
                 (good, "name='mine', options={'a': pelab.real(2, 0, 1)}",
                  "option a: its default 2.0"),
                 (good, "name='mine', options={'file': pelab.flag(True)}", "neither name nor file"),
                 (good, "name='mine', options={'a': 1.0}", "option 'a' is 1.0; write pelab.real"),
                 (good, "name='mine', options={'a': pelab.choice('x', ['x'])}",
                  "option a has 1 choices; allowed: 2 to 32"),
                 (good, "name='mine', options={'a': pelab.choice('x', ['x', 'true'])}",
                  "option a: a choice is 'true'; allowed: a lower-case letter"),
                 (good, "name='mine', options={'a': pelab.choice('x', ['x', 'y', 'x'])}",
                  "option a has a choice twice: x, y, x"),
                 (good, "name='mine', options={'a': pelab.choice('z', ['x', 'y'])}",
                  "option a: its default 'z' is not one of x, y"),
                 (good, "name='mine', extrapolates='no'",
                  "extrapolates is 'no'; allowed: True, False, None"),
                 (good, "name='mine', causal_only=1", "causal_only is 1; allowed: True, False"),
                 (good, "name='mine', needs={'model.head': [4]}", "did you mean model.heads?"),
                 (good, "name='mine', needs={'pe.base': [4]}", "needs names 'pe.base'"),
                 (good, "name='mine', needs={'model.mask': 'causal'}",
                  "needs of model.mask is 'causal'; write a list of allowed values"),
                 (good, "name='mine', needs={'model.mask': ['causel']}", "did you mean causal?"),
                 (good, "name='mine', needs={'model.heads': pelab.between(4, 1)}",
                  "from 4 to 1 leaves no value"),
                 ("def distance_bias(self, layer, length):\n    return self.scale", "name='mine'",
                  "annotate its argument layer: int"),
                 ("def distance_bias(self, length: int, layer: int):\n    return self.scale",
                  "name='mine'", "it must take (layer, length)"))
        said = self.save([("mine.pt", methods, arguments) for methods, arguments, _ in wrong])
        self.assertEqual(len(said), len(wrong), said)
        for line, (_, _, words) in zip(said, wrong):
            self.assertIn(words, line)
        self.assertFalse((self.folder / "mine.pt").exists())


if __name__ == "__main__":
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    unittest.main()
