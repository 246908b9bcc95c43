"""Own data where programs are killed, files are lost and workers are old, and in claims. Run by a
Python with numpy and PyTorch."""

import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from own_data_case import INDUCTION, OwnData, SLOTS, TOY, document  # noqa: E402
from own_encoding_case import OwnEncoding  # noqa: E402
from pelab_harness import BIN, wait_until  # noqa: E402

TRAINER = BIN / "pelab-trainer"


class Faults(OwnData, OwnEncoding):
    # The encoding with parameters of its own is trained on both kinds of tasks.
    KILLED = document(
        f"""
  - {TOY}
  - {INDUCTION}
  - {{name: distance, length: 24, vocabulary: 40, train_examples: 64, test_examples: 32}}""",
        "[{name: own, file: rope.pt}, {name: own, file: decay.pt}]", "[0, 1]", epochs=6) + """
exclude:
  - {pe.encoding: rope, task.data: induction}
  - {pe.encoding: rope, task: distance}
  - {pe.encoding: decay, task.data: toy}
  - {task: distance, seed: 1}
"""

    def test_killed_in_the_middle_it_gives_the_same(self):
        """Own data and own encodings, in jobs that need one file or two."""
        self.induction(train=64)
        self.save("toy.safetensors", train=64, test=32)
        self.examples()
        self.same_after_kills(self.write("own.yaml", self.KILLED), 5)
        self.assertEqual(self.query("SELECT count(DISTINCT worker) FROM v_attempts"), [(2,)])
        self.ok(self.pelab("cancel", "own"))
        self.ok(self.pelab_db("db", "check"))

    def test_a_file_that_the_coordinator_lost_is_sent_again(self):
        self.save("toy.safetensors")
        self.server()
        self.ok(self.pelab("submit", self.write("own.yaml", document(TOY))))
        sha256 = self.sha256("toy.safetensors")
        self.folder.joinpath("pelab.db.artifacts", sha256[:2], sha256).unlink()
        self.worker("w", 1)
        wait_until(lambda: self.states() == {"failed": 1}, 120, "the job to fail")
        (error,), = self.query("SELECT error FROM v_jobs")
        self.assertIn("submit the sweep again", error)
        self.ok(self.pelab("submit", "own.yaml"))
        self.ok(self.pelab("retry", "own"))
        self.wait_finished(1)

    def old_trainer(self):
        """A trainer of before, which has no task own."""
        forget = self.write("forget.py", """
import json, sys
told = json.load(sys.stdin)
told["tasks"] = [task for task in told["tasks"] if task["name"] != "own"]
print(json.dumps(told))
""")
        path = self.write("old-trainer", f"""#!/bin/sh
if [ "$1" = capabilities ]; then {TRAINER} "$@" | {sys.executable} {forget}; exit; fi
exec {TRAINER} "$@"
""")
        path.chmod(0o755)
        return path

    def test_a_worker_of_before_is_not_given_them(self):
        self.save("toy.safetensors")
        self.server()
        self.worker("old", 1, "--trainer", self.old_trainer())
        brought = "{name: counting, length: 12, vocabulary: 40, triggers: 6, train_examples: 64, "
        text = document(f"[{brought}test_examples: 32}}, {TOY}]")
        self.ok(self.pelab("submit", self.write("own.yaml", text)))
        wait_until(lambda: self.states() == {"queued": 1, "succeeded": 1}, 60,
                   "the job of counting alone")
        self.assertRegex(self.ok(self.pelab("status", "own")).stdout, "its trainer has no task own")
        # Data is no code: a worker that takes no own encodings takes it.
        self.worker("new", 1, "--own-encodings", "off")
        self.wait_finished(2)
        self.ok(self.pelab("extend", "own", "--seed", "1"))
        self.wait_finished(4)


class Claims(OwnData):
    def test_claims_about_own_data_are_settled(self):
        self.save("toy.safetensors")
        self.write("own.yaml", document(TOY))
        sheet = self.write("claims.yaml", """
name: own-claims
sweep: own.yaml
claims:
  - id: learns-something
    where: task=own:toy
    between: {metric: test_accuracy, cell: pe=rope, low: 0, high: 1.01}
  - id: trains
    where: task.data=toy
    between: {metric: train_accuracy, cell: pe=rope, low: 0, high: 1.01}
""")
        settled = self.ok(self.pelab_db("settle", sheet, "--budget", "30m", "--slots", "4", *SLOTS,
                                        timeout=240))
        self.assertIn("2 hold", settled.stdout)
        (stored,), = self.query("SELECT sweep_document FROM sheets")
        self.assertIn(self.sha256("toy.safetensors"), stored)
        self.assertIn("2 hold", self.ok(self.pelab_db("claims", "show", sheet)).stdout)
        self.save("toy.safetensors", test=48)
        other = self.pelab_db("claims", "show", sheet)
        self.assertNotIn("2 hold", other.stdout, "with another file it is another sheet")
        self.ok(self.pelab_db("db", "check"))


if __name__ == "__main__":
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    unittest.main()
