"""Files of data of one's own: what makes two files the same data, what Python reads and writes, and
what is refused. Run by a Python with numpy and PyTorch."""

import hashlib
import os
import pathlib
import shutil
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from own_data_case import (  # noqa: E402
    EXAMPLE, OwnData, SLOTS, Sines, TOY, document, toy)
import numpy as np  # noqa: E402
import pelab  # noqa: E402
from pelab import _npz, _task  # noqa: E402
import torch  # noqa: E402


class Identity(OwnData):
    def test_the_same_numbers_give_the_same_bytes(self):
        arguments = toy()
        self.save("numpy.safetensors")
        for name, convert in (("list", lambda array: array.tolist()), ("torch", torch.tensor),
                              ("int16", lambda array: array.astype(np.int16)),
                              ("order", np.asfortranarray)):
            file = self.save(f"{name}.safetensors", tokens=convert(arguments["tokens"]),
                             targets=convert(arguments["targets"]))
            self.assertEqual(file.read_bytes(),
                             (self.folder / "numpy.safetensors").read_bytes(), name)

    def keys(self, path, file):
        sweep = self.folder / path
        sweep.parent.mkdir(exist_ok=True)
        sweep.write_text(document(f"{{name: own, file: {file}}}"))
        return [job["key"] for job in self.dry_run(sweep)]

    def test_keys(self):
        first = self.save("toy.safetensors")
        (self.folder / "elsewhere").mkdir()
        shutil.copy(first, self.folder / "elsewhere" / "renamed.safetensors")
        keys = self.keys("own.yaml", "toy.safetensors")
        self.assertEqual(len(keys), 1)
        for path, file in (("own.yaml", "elsewhere/renamed.safetensors"),
                           ("elsewhere/own.yaml", "renamed.safetensors"),
                           ("sub/own.yaml", "../toy.safetensors"),
                           ("own.yaml", self.folder / "elsewhere" / "renamed.safetensors")):
            self.assertEqual(self.keys(path, file), keys, file)
        tokens = toy()["tokens"]
        tokens[-1, -1] = (tokens[-1, -1] + 1) % 6
        self.save("changed.safetensors", tokens=tokens)
        self.assertNotEqual(self.keys("own.yaml", "changed.safetensors"), keys)
        self.assertFalse(self.db.exists())

    def test_npz(self):
        """Arrays of numpy.savez train, of whatever integers, and give the same numbers."""
        arguments = toy()
        for name, dtype in (("wide", np.int64), ("narrow", np.int16)):
            np.savez(self.folder / f"{name}.npz", name=name, split=arguments["split"],
                     tokens=arguments["tokens"].astype(dtype),
                     targets=arguments["targets"].astype(dtype))
        self.save("saved.safetensors", name="saved")
        tasks = ", ".join(f"{{name: own, file: {file}}}" for file in
                          ("wide.npz", "narrow.npz", "saved.safetensors"))
        self.ok(self.run_sweep(self.write("own.yaml", document(f"[{tasks}]")), *SLOTS))
        found = {}
        for row in self.rows("v_curves", {"job_id", "seconds"}):
            found.setdefault(row.pop("of_task"), []).append(row)
        self.assertEqual(sorted(found), ["own:narrow", "own:saved", "own:wide"])
        self.assertEqual(found["own:narrow"], found["own:saved"])
        self.assertEqual(found["own:wide"], found["own:saved"])


class Python(OwnData):
    def test_a_file_is_read_and_written_again(self):
        for changes in ({}, {"class_names": ["none", "one", "two", "more"], "classes": 4},
                        {"lengths": np.arange(192) % 10 + 1, "words": {1: "open"},
                         "repeats_allowed": True},
                        {"chance": 0.25, "help": "a toy", "vocabulary": 30}):
            self.save("toy.safetensors", **changes)
            file = self.folder / "toy.safetensors"
            pelab.save_task(self.folder / "again.safetensors", **pelab.load_task(file))
            self.assertEqual((self.folder / "again.safetensors").read_bytes(), file.read_bytes())
        with self.assertRaisesRegex(pelab.NotFound, "cannot write .*none/a.safetensors: No such"):
            pelab.save_task(self.folder / "none" / "a.safetensors", **pelab.load_task(file))
        (self.folder / "decay.pt").write_bytes(b"PK\3\4" + bytes(60))
        with self.assertRaisesRegex(pelab.InvalidInput, "decay.pt: this is a zip archive, as the"):
            pelab.load_task(self.folder / "decay.pt")

    def test_what_is_wrong_is_refused_before_anything_is_sent(self):
        self.save("toy.safetensors")
        arrays = toy()
        np.savez(self.folder / "wrong.npz", tokens=arrays["tokens"], targets=arrays["targets"],
                 split=np.array(arrays["split"]), classes=1)
        self.server()
        with pelab.connect(self.socket) as coordinator:
            with self.assertRaisesRegex(pelab.InvalidInput, "wrong.npz: targets.*allowed: 0 to 0"):
                coordinator.submit(self.write("own.yaml", document("{name: own, file: x.npz}")),
                                   own_files={"x.npz": self.folder / "wrong.npz"})
            with self.assertRaisesRegex(pelab.InvalidInput, "own_files="):
                coordinator.submit(self.write("own.yaml", document(TOY)))
        self.assertEqual(self.query("SELECT 1 FROM v_sweeps"), [])

    def test_python_submits_data(self):
        self.save("toy.safetensors")
        np.savez(self.folder / "mine.npz", name="mine", **{
            name: toy()[name] for name in ("tokens", "targets", "split")})
        self.server()
        self.worker("w", 1)
        sweep = document("[{name: own, file: some/where.safetensors}, {name: own, file: b}]")
        files = {"some/where.safetensors": self.folder / "toy.safetensors",
                 "b": self.folder / "mine.npz"}
        with pelab.connect(self.socket) as coordinator:
            for wrong, kind, said in (
                    ({}, pelab.InvalidInput, "did not come with this document"),
                    ({**files, "b": self.folder / "none"}, pelab.NotFound, "cannot read"),
                    ({**files, "b": EXAMPLE}, pelab.InvalidInput, "is no file of data")):
                with self.assertRaisesRegex(kind, said):
                    coordinator.submit(sweep, own_files=wrong)
            self.assertEqual(self.states(), {})
            made = coordinator.submit(sweep, own_files=files)
            coordinator.wait(made.sweep_id)
            found = coordinator.results("own")["task"].tolist()
        self.assertEqual(sorted(found), ["own:mine", "own:toy"])
        self.assertEqual(self.states(), {"succeeded": 2})

    def files(self):
        """Files of many kinds, which both readers read."""
        self.induction()
        yield "induction.safetensors"
        targets = np.where(toy()["tokens"] == 1, -1, toy()["tokens"])
        letters = "é" * 200
        lengths = np.arange(192) % 10 + 1
        three = ["train"] * 128 + ["zebra"] * 32 + ["alpha"] * 32
        repeated = toy()["tokens"].copy()
        repeated[-5:] = repeated[:5]
        for name, changes in (
                ("sequence", {}), ("position", {"targets": targets}),
                ("padded", {"lengths": lengths, "targets": targets, "repeats_allowed": True}),
                ("splits", {"split": three}), ("chance", {"chance": 1 / 3, "split": three}),
                ("repeats", {"tokens": repeated, "repeats_allowed": True}),
                ("labels", {"first_label": -2, "targets": toy()["targets"] - 1, "classes": 9}),
                ("wide", {"tokens": toy()["tokens"] * 60, "vocabulary": 1000}),
                ("words", {"words": {1: "one", 2: "z\"w\\ei"}, "help": "a" + letters,
                           "class_names": ["none", "é", "two", "more"]})):
            self.save(f"{name}.safetensors", name=name, **changes)
            yield f"{name}.safetensors"
        arrays = {name: np.array(toy()[name]) for name in ("tokens", "targets", "split")}
        for name, changes in (
                ("plain", {}), ("compressed", {"name": "squeezed", "help": letters}),
                ("signed", {"targets": targets.astype(np.int8)}),
                ("bytes", {"split": arrays["split"].astype("S")}),
                ("first", {"split": arrays["split"][::-1]}),
                ("flags", {"targets": toy()["targets"] > 1, "chance": 0.25, "classes": 3}),
                ("numbered", {"split": (arrays["split"] == "test").astype(np.int32),
                              "splits": np.array(["train", "later"]), "vocabulary": 20,
                              "lengths": lengths, "repeats": "allowed"})):
            save = np.savez_compressed if name == "compressed" else np.savez
            save(self.folder / f"{name}.npz", **{**arrays, **changes})
            yield f"{name}.npz"

    def test_both_readers_find_the_same(self):
        for file in self.files():
            with self.subTest(file=file):
                found = self.checked(file)
                self.assertIsInstance(found.pop("warnings"), list)
                for split in found["splits"]:
                    for name in ("shortest", "longest", "labels", "most_frequent",
                                 "unknown_tokens", "unknown_labels"):
                        split.pop(name)
                data = (self.folder / file).read_bytes()
                data = _npz.from_npz(data, file) if file.endswith(".npz") else data
                self.assertEqual((found.pop("sha256"), found.pop("bytes")),
                                 (hashlib.sha256(data).hexdigest(), len(data)))
                self.assertEqual(_task.declared(data, file), found)
                self.assertLessEqual(len(found.get("help", "").encode()), 300)
                sweep = self.write("own.yaml", document(
                    f"{{name: own, file: {file}, test: {found['splits'][1]['name']}}}"))
                task = self.dry_run(sweep)[0]["spec"]["task"]
                for name in ("length", "vocabulary", "classes", "first_label", "targets", "padded"):
                    self.assertEqual(task[name], found[name], name)
                self.assertEqual(task["chance"], found["splits"][1]["chance"])


class Wrong(OwnData):
    def refused(self, text, said, *more):
        """Submits a document that is wrong. `said` is what stands after the file's name."""
        path = self.write("own.yaml", text)
        for command in (self.pelab_db("submit", path, "--dry-run"), self.run_sweep(path)):
            self.assertEqual(command.returncode, 2, command.stdout + command.stderr)
            self.assertIn(f"own.yaml:{said}", command.stderr)
            for words in more:
                self.assertIn(words, command.stderr)
            for words in ("Traceback", "terminate", "what()"):
                self.assertNotIn(words, command.stderr)
        self.assertFalse(self.db.exists(), "nothing is begun for a wrong document")

    def test_documents(self):
        self.save("toy.safetensors")
        self.save("later.safetensors", split=["train"] * 128 + ["later"] * 64)
        file = "{name: own, file: toy.safetensors"
        for task, said, *more in (
                ("{name: own, file: none.safetensors}", "5:25: cannot open"),
                ("{name: own, file: .}", "5:25: ", "is a directory"),
                ("{name: own, file: [a, b]}", "5:25: task.file must be the path of a file"),
                ("own", "5:7: own data needs a file", "write {name: own, file:"),
                ("{name: own}", "5:7: own data needs a file"),
                (file + ", test: long}", "5:48: task.test must be one of test", '"long"'),
                (file + ", test: train}", "5:48: task.test must be one of test", '"train"'),
                (file + ", test: []}", "5:48: task.test is an empty list"),
                (file + ", length: 5}", "5:42: task.length cannot be set", "allowed here: file, "
                 "label_space, scored_classes, test"),
                (file + ", data_seed: 5}", "5:42: task.data_seed is for data that pelab generates"),
                (file + ", label_space: words}", "5:55: task.label_space must be one of exact"),
                (file + ", train_examples: 5}", "5:42: task.train_examples cannot be set"),
                (file + ", tset: test}", '5:42: unknown key of own data "tset"',
                 "did you mean test?"),
                (file + ", strength: 2}", '5:42: unknown key of own data "strength"',
                 "known: file, label_space, scored_classes, test"),
                ("{name: own, file: later.safetensors}", "5:7: ", "has no split named test",
                 "test: later")):
            with self.subTest(task=task):
                self.refused(document(task), said, *more)
        text = document(TOY)
        self.refused(text.replace("max_len: 32", "max_len: 8"), "5:7: task.length is 10",
                     "at most model.max_len (8)")
        result = self.run_sweep(self.write("own.yaml", text), "--set", "task.length=5")
        self.assertEqual(result.returncode, 2)
        self.assertIn("task.length cannot be set for task: it is what the file holds",
                      result.stderr)
        self.assertFalse(self.db.exists())

    def test_files(self):
        good = toy()
        arrays = {name: np.array(good[name]) for name in ("tokens", "targets")}
        arrays["split"] = np.array(good["split"])
        tokens = good["tokens"].copy()
        tokens[-1] = tokens[0]
        for name, changes, said in (
                ("floats", {"tokens": arrays["tokens"] / 1}, "tokens has the type F64; allowed: "
                 "integers"),
                ("repeats", {"tokens": tokens}, "row 191 of the file, of test, has the "
                 "tokens of row 0, of train"),
                ("negative", {"tokens": arrays["tokens"] - 1}, "is -1; allowed: 0 to"),
                ("shape", {"targets": arrays["targets"][1:]}, "targets has the shape (191); "
                 "allowed: (192), a target for each example"),
                ("alone", {"split": np.array(["train"] * 192)}, "it has 2 to 32 names"),
                ("trian", {"split": np.array(["trian"] * 100 + ["test"] * 92)}, "the splits are "
                 "trian, test; allowed: train and at least one more; did you mean train with "
                 "trian?"),
                ("classes", {"classes": 2}, "is 2; allowed: 0 to 1 (metadata classes)"),
                ("chance", {"chance": 1.5}, "chance must be a number from 0 to 1"),
                ("slip", {"vocabulery": 20}, "did you mean vocabulary?"),
                ("name", {"name": "My Data"}, "a lower-case letter, then up to 39"),
                ("complex", {"tokens": arrays["tokens"] * 1j}, "allowed: integers and texts")):
            with self.subTest(file=name):
                np.savez(self.folder / f"{name}.npz", **{**arrays, **changes})
                check = self.pelab_db("check", f"{name}.npz")
                self.assertEqual(check.returncode, 2, check.stdout)
                self.assertIn(said, check.stderr)
                self.refused(document(f"{{name: own, file: {name}.npz}}"), "5:25: ", said)

    def test_other_kinds_of_files(self):
        pelab.save_encoding(Sines(), self.folder / "sines.pt", name="sines")
        self.save("toy.safetensors")
        good = (self.folder / "toy.safetensors").read_bytes()
        self.write("text.safetensors", "tokens\n1 2 3\n")
        (self.folder / "cut.safetensors").write_bytes(good[:-1])
        (self.folder / "empty.safetensors").write_bytes(b"")
        (self.folder / "cut.npz").write_bytes(b"PK\3\4" + good)
        np.save(self.folder / "one.npy", toy()["tokens"])
        for file, said in (("sines.pt", "an encoding stands under pe"),
                           ("text.safetensors", "this is no safetensors file"),
                           ("cut.safetensors", "this is no safetensors file"),
                           ("empty.safetensors", "this is no safetensors file"),
                           ("cut.npz", "cut.npz"),
                           ("one.npy", "this is a single NumPy array; numpy.savez")):
            with self.subTest(file=file):
                self.refused(document(f"{{name: own, file: {file}}}"), "5:25: ", said)
        self.refused(document(TOY, pes="{name: own, file: toy.safetensors}"), "4:23: ")

    def test_save_task_says_what_is_wrong(self):
        tokens = toy()["tokens"].copy()
        tokens[-1] = tokens[0]
        ragged = [[1] * 10] * 191 + [[1] * 9]
        negative = toy()["tokens"].copy()
        negative[0, 8:] = -1
        positions = np.full((192, 10), -1)
        for changes, said in (
                ({"tokens": toy()["tokens"] / 2}, "tokens has the type float64; allowed: integers"),
                ({"tokens": toy()["tokens"][0]}, r"allowed: \(N, T\), a row for each example"),
                ({"tokens": tokens}, "1 of 64 examples of test are in train, too .row 191 of the "
                 "file"),
                ({"tokens": ragged}, "the rows of tokens have different lengths"),
                ({"tokens": negative}, r"tokens\[0, 8\] is -1; allowed: 0 to "),
                ({"tokens": toy()["tokens"].astype(np.uint64) + 2**63}, "less than 2.63"),
                ({"vocabulary": 2}, r"; allowed: 0 to 1 \(metadata vocabulary\)"),
                ({"classes": 1}, r"targets\[\d+\] is \d; allowed: 0 to 0 \(metadata classes\)"),
                ({"first_label": 1}, r"targets\[\d+\] is 0; allowed: 1 to "),
                ({"targets": np.where(np.arange(192) == 7, -1, toy()["targets"])},
                 r"targets\[7\] is -1; allowed: 0 to "),
                ({"chance": 33.3}, "chance must be a number from 0 to 1"),
                ({"class_names": ["one"]}, "class_names must be a JSON list of"),
                ({"class_names": "one"}, "class_names is 'one'; allowed: a list of texts"),
                ({"words": ["a"]}, "words is .'a'.; allowed: a mapping"),
                ({"split": None}, "split is None; allowed: a name for each example"),
                ({"split": np.arange(192) < 128}, "split has (np.)?True"),
                ({"split": ["train"] * 3}, "split has 3 names; allowed: 192"),
                ({"split": ["train"] * 192}, "allowed: train and at least one more"),
                ({"split": ["train"] * 128 + ["My Test"] * 64}, "the split 'My Test' must be a "
                 "lower-case letter"),
                ({"targets": toy()["targets"][1:]}, r"targets has the shape \(191,\)"),
                ({"targets": positions}, "no position of the split train has a target"),
                ({"name": "My Data"}, "the name 'My Data' must be a lower-case letter"),
                ({"lengths": np.zeros(192, int)}, r"lengths\[0\] is 0; allowed: 1 to 10"),
                ({"lengths": np.full(192, 11)}, r"lengths\[0\] is 11; allowed: 1 to 10")):
            with self.subTest(said=said), self.assertRaisesRegex(pelab.InvalidInput, said):
                self.save("toy.safetensors", **changes)
        with self.assertRaisesRegex(pelab.InvalidInput, "such as mine.safetensors"):
            self.save("toy.npz")
        with self.assertRaisesRegex(pelab.NotFound, "cannot write .*No such file"):
            self.save("none/toy.safetensors")
        self.assertEqual(list(self.folder.iterdir()), [])


if __name__ == "__main__":
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    unittest.main()
