"""pelab-trainer analyze: analyses of kept weights (docs/formats.md)."""

import json
import pathlib
import struct
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from trainer_case import (  # noqa: E402
    TRAINER, TrainerCase, cumulative_ablation, document, facts, head_ablation, layer_ablation)


class Analyze(TrainerCase):
    def analyze(self, job, weights, *options, status=0):
        return self.run_command([TRAINER, "analyze", "--spec", self.write(job, "analyze.json"),
                                 "--weights", weights, "--workdir", self.folder / "a", *options],
                                status)

    def kept(self, job):
        """The events of a run and the weights that it kept."""
        events = self.run_job(job)
        return events, self.folder / "w" / events[-1]["weights"]["file"]

    def kept_plain(self):
        return self.folder / "w" / self.plain_run()[-1]["weights"]["file"]

    def test_it_gives_what_the_run_gave(self):
        for pe in ("rope", "random", "mla"):
            with self.subTest(pe):
                job = document(pe)
                job["analyses"] = [head_ablation(method=method, target="authors", hygiene="authors")
                                   for method in ("zero", "mean", "resample")]
                job["analyses"] += [layer_ablation(method="resample"), cumulative_ablation()]
                ran, weights = self.kept(job)
                analyzed = self.analyze(job, weights, "--threads", 1)
                self.assertEqual([event["event"] for event in analyzed],
                                 ["hello"] + ["head_ablation"] * 3 + ["analysis"] * 2 + ["done"])
                self.assertEqual({**facts(ran, "hello")[0], "start_epoch": 3},
                                 facts(analyzed, "hello")[0])
                self.assertEqual(facts(ran, "head_ablation", "analysis"),
                                 facts(analyzed, "head_ablation", "analysis"))
                for event in facts(analyzed, "analysis"):
                    self.assertEqual((self.folder / "a" / event["file"]).read_text(),
                                     (self.folder / "w" / event["file"]).read_text())
                self.assertNotIn("weights", analyzed[-1])
                self.assertEqual(list((self.folder / "a").glob("*.safetensors")), [])

    def test_weights_of_another_job_are_refused(self):
        weights = self.kept_plain()
        for job, said in ((document(train={"epochs": 4}), "train.epochs is 3 there and 4 in the "
                                                          "job"),
                          (document("nope"), "pe"), (document(model={"heads": 4}),
                                                     "model.heads is 2 there and 4 in the job")):
            with self.subTest(said):
                message = self.one_error(self.analyze(job, weights, status=1), "bad_spec")
                self.assertIn("the weights of another job", message)
                self.assertIn(said, message)

    def rewritten(self, weights, change):
        """A copy of the weights after change(header). `change` gets the header's object and returns
        the new data."""
        raw = weights.read_bytes()
        size = struct.unpack("<Q", raw[:8])[0]
        header, data = json.loads(raw[8:8 + size]), raw[8 + size:]
        data = change(header, data) or data
        text = json.dumps(header).encode()
        out = self.folder / "changed.safetensors"
        out.write_bytes(struct.pack("<Q", len(text)) + text + data)
        return out

    def test_weights_that_do_not_fit_or_are_damaged(self):
        weights = self.kept_plain()
        name = "layers.1.attention.query.weight"

        def rename(header, _):
            header["layers.1.attention.bogus"] = header.pop(name)

        def extra(header, _):
            header["layers.7.bogus"] = header[name]

        def reshape(header, _):
            header[name]["shape"] = [8, 32]

        def retype(header, _):
            header[name]["dtype"] = "I32"

        def no_spec(header, _):
            del header["__metadata__"]

        def not_a_number(header, data):
            begin = header[name]["data_offsets"][0]
            return data[:begin] + struct.pack("<f", float("nan")) + data[begin + 4:]

        def cut(_, data):
            return data[:-4]

        for change, kind, said in (
                (rename, "bad_spec", [name, "missing"]),
                (extra, "bad_spec", ["layers.7.bogus", "none of the model's"]),
                (reshape, "bad_spec", [name, "(8, 32)", "(16, 16)"]),
                (retype, "bad_spec", [name, "F32"]), (no_spec, "bad_spec", ["spec"]),
                (not_a_number, "io", [name, "not finite"]), (cut, "io", ["cut off"])):
            with self.subTest(change.__name__):
                path = self.rewritten(weights, change)
                message = self.one_error(self.analyze(document(), path, status=1), kind)
                for word in [str(path)] + said:
                    self.assertIn(word, message)
        self.one_error(self.analyze(document(), self.write("short", "short"), status=1), "io")
        self.assertIn("no-such-file",
                      self.one_error(self.analyze(document(), self.folder / "no-such-file",
                                                  status=1), "io"))

    def test_it_needs_analyses_that_it_knows(self):
        job, weights = document(), self.kept_plain()
        for analyses, said in (([], "\"analyses\""), ([{**head_ablation(), "version": 7}], "7")):
            job["analyses"] = analyses
            events = self.analyze(job, weights, status=1)
            self.assertEqual([event["event"] for event in events], ["error"])
            self.assertIn(said, self.one_error(events, "bad_spec"))


if __name__ == "__main__":
    unittest.main()
