"""Wrong input gives a message with the place, the value and the allowed values, the right exit
status, and stores nothing."""

import json
import pathlib
import sqlite3
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pelab_harness import Case, processes, tiny_sweep  # noqa: E402


class BadSweeps(Case):
    def refused(self, document, *expected):
        """Checks that `run` and `submit --dry-run` refuse the document with exit status 2, name the
        place, and leave no database."""
        path = self.write("bad.yaml", document)
        for command in (["run", path], ["submit", path, "--dry-run"]):
            result = self.pelab_db(*command)
            self.ok(result, 2)
            for text in expected:
                self.assertIn(text, result.stderr)
            self.assertRegex(result.stderr, r"bad\.yaml:\d+:\d+: ")
            self.assertNotIn("terminate called", result.stderr)
        self.assertFalse(self.db.exists(), "a refused sweep left a database")
        as_json = json.loads(self.ok(self.pelab_db("submit", path, "--dry-run", "--output", "json"),
                                     2).stdout)
        self.assertGreater(as_json["error"]["violations"][0]["line"], 0)

    def test_unknown_pe(self):
        self.refused("name: a\npe: [rope, alibbi]\ntask: distance\nseed: 0\n", "bad.yaml:2:12",
                     '"alibbi"', "alibi", "nope")

    def test_unknown_key(self):
        self.refused("name: a\npe: rope\ntask: distance\nseed: 0\nmodle: {layers: 2}\n",
                     "bad.yaml:5:1", "modle", "model")
        self.refused("name: a\npe: rope\ntask: distance\nseed: 0\nmodel: {layer: 2}\n",
                     "bad.yaml:5:9", "layer", "layers")

    def test_wrong_type(self):
        self.refused("name: a\npe: rope\ntask: distance\nseed: 0\nmodel: {layers: many}\n",
                     "bad.yaml:5:17", "many", "integer")

    def test_negative_epochs(self):
        self.refused("name: a\npe: rope\ntask: distance\nseed: 0\ntrain: {epochs: -3}\n",
                     "bad.yaml:5:17", "-3", "1")

    def test_width_not_divisible_by_heads(self):
        self.refused("name: a\npe: rope\ntask: distance\n"
                     "seed: 0\nmodel: {d_model: 100, heads: 16}\n", "bad.yaml:5:",
                     "100", "a multiple of model.heads (16)")

    def test_sequence_too_short(self):
        self.refused(
            "name: a\npe: rope\ntask: {name: distance, length: 16, max_distance: 40}\nseed: 0\n",
            "bad.yaml:3:", "16", "41", "40")

    def test_causal_only_method_with_a_bidirectional_mask(self):
        self.refused("name: a\npe: [rope, xpos]\ntask: distance\nseed: 0\nmodel: {mask: none}\n",
                     "bad.yaml:5:15", "model.mask is none", "causal", "constraint causal-only")
        # The protocol's own mask counts too.
        self.refused("name: a\nprotocol: [clean, published]\npe: xpos\ntask: distance\nseed: 0\n",
                     "bad.yaml:3:5", "published", "constraint causal-only")

    def test_rotary_heads_that_are_not_there(self):
        self.refused("name: a\npe: {name: partial_rope, heads: [1, 5]}\ntask: distance\n"
                     "seed: 0\nmodel: {heads: 4}\n", "bad.yaml:2:37", "pe.heads is 5",
                     "at most model.heads (4)", "constraint heads-exist")
        self.refused("name: a\npe: {name: partial_rope, select: list, head_list: [0, 16]}\ntask: "
                     "distance\nseed: 0\n",
                     "bad.yaml:2:51", "[0, 16]", "from 0 to 15", "constraint listed-heads-exist")

    def test_mla_with_a_bias_from_a_table(self):
        self.refused("name: a\npe: [rope, {name: mla, form: table}]\ntask: distance\nseed: 0\n",
                     "bad.yaml:2:24", '"form"', "rotary", "constraint mla-no-bias", "relative")
        self.refused("name: a\npe: mla\ntask: distance\nseed: 0\naxes: {pe.slopes: [geometric]}\n",
                     "bad.yaml:5:", "constraint mla-no-bias")

    def test_task_longer_than_the_model(self):
        self.refused("name: a\npe: rope\ntask: {name: distance, length: 200}\nseed: 0\n",
                     "bad.yaml:3:32", "task.length is 200", "at most model.max_len (128)",
                     "constraint length-fits-model")
        self.refused("name: a\npe: rope\ntask: [distance, counting]\n"
                     "seed: 0\nmodel: {max_len: 64}\n", "bad.yaml:5:18",
                     "at most model.max_len (64)", "constraint length-fits-model")

    def test_empty_range(self):
        self.refused("name: a\npe: rope\ntask: distance\nseed: 5..1\n", "bad.yaml:4:7", "5..1")

    def test_a_million_million_jobs_at_once(self):
        document = "name: a\npe: rope\ntask: distance\nseed: 0..999999999999\n"
        self.refused(document, "1000000000000 jobs", "at most 1000000")

    def test_broken_yaml(self):
        self.refused("name: a\npe: [rope\ntask: distance\n", "bad.yaml:")

    def test_override(self):
        path = self.write("good.yaml", tiny_sweep())
        result = self.ok(self.pelab_db("submit", path, "--dry-run", "--set", "model.layers=0"), 2)
        self.assertIn("model.layers", result.stderr)
        self.assertIn("64", result.stderr)

    def test_a_server_refuses_what_a_client_lets_through(self):
        self.server()
        result = self.pelab("submit",
                            self.write("bad.yaml", "name: a\npe: ropee\ntask: distance\nseed: 0\n"))
        self.ok(result, 2)
        self.assertIn("bad.yaml:2:5", result.stderr)
        self.assertEqual(self.query("SELECT count(*) FROM sweeps"), [(0,)])


class BadPlaces(Case):
    def test_missing_file(self):
        result = self.ok(self.pelab_db("run", self.folder / "none.yaml"), 2)
        self.assertIn("none.yaml", result.stderr)
        self.assertFalse(self.db.exists())

    def test_no_coordinator(self):
        result = self.ok(self.pelab("submit", self.write("good.yaml", tiny_sweep())), 4)
        self.assertIn(self.socket, result.stderr)
        self.assertNotIn("grpc", result.stderr.lower())

    def test_not_a_database(self):
        self.db.write_text("certainly not SQLite, and more than sixteen bytes of it\n" * 100)
        before = self.db.read_bytes()
        for command in (["results"], ["db", "check"],
                        ["run", self.write("good.yaml", tiny_sweep())]):
            result = self.ok(self.pelab_db(*command), 2)
            self.assertIn("not a pelab database", result.stderr)
        self.assertEqual(self.db.read_bytes(), before)

    def test_a_newer_database(self):
        connection = sqlite3.connect(self.db)
        connection.executescript(
            "PRAGMA application_id = 0x50454C42; PRAGMA user_version = 999; CREATE TABLE t(x);")
        connection.close()
        for command in (["results"], ["db", "check"],
                        ["run", self.write("good.yaml", tiny_sweep())]):
            result = self.ok(self.pelab_db(*command), 2)
            self.assertIn("999", result.stderr)
        self.assertEqual(processes(str(self.folder)), [])

    def test_a_database_from_before_the_first_release(self):
        connection = sqlite3.connect(self.db)
        connection.executescript("PRAGMA application_id = 0x50454C42; PRAGMA user_version = 13; "
                                 "CREATE TABLE t(x);")
        connection.close()
        before = self.db.read_bytes()
        told = self.ok(self.pelab_db("results"), 2).stderr.partition(": ")[2].strip()
        self.assertRegex(told, "^.*pelab.db has schema version 13, from before the first release, "
                               ".* docs/operations.md describes$")
        for command in (["db", "check"], ["db", "info"], ["db", "migrate"],
                        ["db", "backup", self.folder / "copy.db"],
                        ["run", self.write("good.yaml", tiny_sweep())],
                        ["report", "x", "--out", self.folder / "x.html"],
                        ["import", self.db, "--dry-run"]):
            self.assertIn(told, self.ok(self.pelab_db(*command), 2).stderr, command)
        process = self.spawn("pelab-server", "--db", self.db, "--listen", self.socket, log="s.log")
        self.assertNotEqual(process.wait(10), 0)
        self.assertIn(told, (self.folder / "s.log").read_text())
        self.assertEqual(self.db.read_bytes(), before)

    def test_server_refuses_them_too(self):
        self.db.write_text("certainly not SQLite\n" * 100)
        process = self.spawn("pelab-server", "--db", self.db, "--listen", self.socket, log="s.log")
        self.assertNotEqual(process.wait(10), 0)
        self.assertIn("not a pelab database", (self.folder / "s.log").read_text())

    def test_usage(self):
        self.ok(self.pelab("no-such-command"), 2)
        self.ok(self.pelab("results", "--output", "xml"), 2)
        self.ok(self.pelab("--help"), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
