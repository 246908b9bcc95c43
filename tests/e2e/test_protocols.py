"""Protocols from the user's side: the settings of each and their reasons, the note about encodings
that are compared under `clean`, and `matched` from the document to a stored result, with every
encoding."""

import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pelab_harness import Case, tiny_sweep  # noqa: E402

BETAS = "AdamW betas (0.98, 0.9)"


def under(protocol, **arguments):
    return tiny_sweep(**arguments).replace("protocol: clean", f"protocol: {protocol}")


class Catalog(Case):
    def values(self, protocol):
        shown = json.loads(
            self.ok(self.pelab_db("catalog", "protocol", protocol, "--output", "json")).stdout)
        return {(row["field"], row["owner"]): row for row in shown["values"]}

    def test_a_protocol_says_what_it_sets_and_why(self):
        clean, matched, published = (self.values(name)
                                     for name in ("clean", "matched", "published"))
        self.assertEqual(set(clean), set(matched))
        self.assertEqual(set(clean), set(published))
        for values in (clean, matched, published):
            for field, row in values.items():
                self.assertTrue(row["reason"], field)
        self.assertEqual(clean["train.beta1", None]["value"], "0.98")
        self.assertIn("MLA", clean["train.beta1", None]["reason"])
        self.assertEqual(matched["train.beta2", None]["value"], "0.999")
        self.assertEqual(matched["model.readout", None]["value"], "last")
        self.assertEqual(published["pe.slopes", "alibi"]["value"], "exponential")

    def test_as_a_table_and_as_csv(self):
        table = self.ok(self.pelab_db("catalog", "protocol", "clean")).stdout
        for word in ("field", "value", "reason", "train.beta1", "0.98", "model.mask", "causal",
                     "pe.slopes of alibi"):
            self.assertIn(word, table)
        rows = self.ok(self.pelab_db("catalog", "protocol", "clean",
                                     "--output", "csv")).stdout.splitlines()
        self.assertEqual(rows[0], "field,owner,value,reason")
        self.assertEqual(len(rows) - 1, len(self.values("clean")))


class Notes(Case):
    def notes(self, document):
        path = self.write("sweep.yaml", document)
        result = self.ok(self.pelab_db("submit", path, "--dry-run", "--output", "json"))
        found = json.loads(result.stdout)["notes"]
        for note in found:
            self.assertIn(f"note: {note}", result.stderr)
        return found

    def test_of_encodings_compared_under_clean(self):
        note, = self.notes(under("clean"))
        self.assertIn(BETAS, note)
        self.assertIn("protocol matched", note)
        for document in (under("clean", pes="[rope]"), under("matched"), under("published"),
                         under("clean") + "axes: {train.beta1: [0.9]}\n"):
            self.assertEqual(self.notes(document), [], document)

    def test_submit_and_run_say_it_too(self):
        self.server()
        submitted = self.submit(under("clean"))
        self.assertIn(BETAS, submitted.stderr)
        self.assertNotIn("note:", submitted.stdout)


class Matched(Case):
    def test_runs_with_every_encoding(self):
        known = json.loads(
            self.ok(self.pelab_db("catalog", "pe", "--output", "json")).stdout)["entries"]
        names = [entry["name"] for entry in known if entry["name"] != "own"]  # which needs a file
        path = self.write("sweep.yaml", under("matched", pes="[" + ", ".join(names) + "]",
                                              seeds="[0]", epochs=1, train_examples=64))
        result = self.ok(self.run_sweep(path, "--cpu-slots", 2))
        self.assertNotIn(BETAS, result.stdout + result.stderr)
        rows = self.query("SELECT pe, state, protocol, json_extract(spec_json, '$.train.beta1'), "
                          "json_extract(spec_json, '$.train.beta2'), json_extract(spec_json, "
                          "'$.model.readout') FROM v_jobs")
        self.assertEqual(sorted(rows), sorted((name, "succeeded", "matched", 0.9, 0.999, "last")
                                              for name in names))


if __name__ == "__main__":
    unittest.main()
