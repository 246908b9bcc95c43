"""The contract of pelab-trainer as a process: events, exit statuses, resuming, stopping, files
(docs/formats.md)."""

import hashlib
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import catalog  # noqa: E402
from trainer_case import (  # noqa: E402
    BIN, MEMBERS, RESULTS, SOMETIMES, SOURCE, TRAINER, TrainerCase, cumulative_ablation, document,
    facts, layer_ablation, long_document, safetensors, sha256)


class Run(TrainerCase):
    def test_events_and_files(self):
        events = self.run_job(document(job="häns \"1\""), "w", "--checkpoint-seconds", 0)
        self.assertEqual([event["event"] for event in events],
                         ["hello"] + ["epoch", "checkpoint"] * 3 + ["head_ablation", "done"])
        self.assertEqual({event["job"] for event in events}, {"häns \"1\""})
        hello, epochs, done = events[0], facts(events, "epoch"), events[-1]
        self.assertEqual((hello["protocol"], hello["device"], hello["threads"],
                          hello["start_epoch"], hello["epochs"], hello["train_examples"],
                          hello["test_examples"]), (1, "cpu", 1, 0, 3, 256, 64))
        self.assertEqual([epoch["epoch"] for epoch in epochs], [0, 1, 2])
        self.assertEqual({(epoch["train_total"], epoch["test_total"]) for epoch in epochs},
                         {(256, 64)})
        self.assertEqual({epoch["train_eval_total"] for epoch in epochs}, {250})  # of 256
        matrix = next(event for event in events if event["event"] == "head_ablation")
        self.check_matrix(matrix, total=64, chance=1 / 8)
        self.assertEqual(matrix["intact_correct"], epochs[-1]["test_correct"])
        self.assertAlmostEqual(matrix["intact_nll"], epochs[-1]["test_loss"], places=6)
        self.assertEqual(matrix["parameters"],
                         {"data": "test", "hygiene": "clean", "max_examples": 0, "method": "zero",
                          "target": "head"})
        for file in [event for event in events
                     if event["event"] == "checkpoint"][-1:] + [done["weights"]]:
            path = self.folder / "w" / file["file"]
            self.assertEqual((sha256(path), path.stat().st_size), (file["sha256"], file["bytes"]))
        self.assertEqual(sorted(path.name for path in (self.folder / "w").iterdir()),
                         ["checkpoint.safetensors", "weights.safetensors"])

    def check_matrix(self, matrix, total, chance):
        """Checks that the counts and errors of the five 2 x 2 arrays agree with one another."""
        self.assertEqual((matrix["version"], matrix["total"], matrix["chance"]), (2, total, chance))
        for layer in range(2):
            for head in range(2):
                correct, lost, gained, nll, error = (matrix[name][layer][head]
                                                     for name in ("correct", "lost", "gained",
                                                                  "nll", "nll_standard_error"))
                self.assertEqual(correct, matrix["intact_correct"] - lost + gained)
                self.assertTrue(0 <= lost <= matrix["intact_correct"]
                                and 0 <= gained <= total - matrix["intact_correct"])
                self.assertGreater(nll, 0)
                self.assertGreater(error, 0)
        self.assertEqual([len(matrix[name]) for name in ("correct", "lost", "gained", "nll",
                                                         "nll_standard_error")], [2] * 5)

    def test_slices_beyond_the_latents_are_null(self):
        job = document("mla", target="authors")
        matrix = next(event for event in self.run_job(job) if event["event"] == "head_ablation")
        for name in ("correct", "lost", "gained", "nll", "nll_standard_error"):
            self.assertEqual([[entry is None for entry in row] for row in matrix[name]],
                             [[False, True]] * 2, name)

    def test_parts_of_a_batch_train_alike(self):
        whole = self.plain_run()
        parts = self.run_job(document(), "parts", "--micro-batch", 24)
        self.assertEqual((whole[0]["micro_batch"], parts[0]["micro_batch"], parts[0]["packing"]),
                         (0, 24, 1))
        for one, other in zip(facts(whole, "epoch"), facts(parts, "epoch"), strict=True):
            self.assertAlmostEqual(one["train_loss"], other["train_loss"], places=4)
            self.assertEqual(one["train_total"], other["train_total"])

    def test_half_a_batch_at_the_papers_size_needs_less_than_750_megabytes(self):
        model = {"d_model": 256, "d_ff": 512, "heads": 16, "layers": 6, "max_len": 128}
        # Two micro-batches, which are half a batch: the others would take no other memory. The
        # bound is half of a whole batch's, since half a batch that is not parted would also take
        # half of the memory.
        task = {"length": 128, "max_distance": 70, "vocabulary": 574, "train_examples": 32,
                "test_examples": 8}
        job = {**document("rope", model, task, {"batch_size": 64, "epochs": 1}), "analyses": []}
        hello = self.run_job(job, "paper")[0]
        self.assertTrue(0 < hello["micro_batch"] < 64, hello)
        # KiB, the maximum of all trainers so far
        most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        self.assertLess(most * 1024, 750e6)

    def test_other_analyses_leave_files(self):
        job = document()
        job["analyses"] += [layer_ablation(method="mean"), cumulative_ablation(),
                            layer_ablation(max_examples=20)]
        events = self.run_job(job)
        self.assertEqual([event["event"] for event in events][-5:],
                         ["head_ablation"] + ["analysis"] * 3 + ["done"])
        named = [event for event in events if event["event"] == "analysis"]
        self.assertEqual([(event["name"], event["version"]) for event in named],
                         [("layer_ablation", 1), ("cumulative_ablation", 1), ("layer_ablation", 1)])
        self.assertEqual([event["parameters"] for event in named],
                         [entry["parameters"] for entry in job["analyses"][1:]])
        self.assertEqual(len({event["file"] for event in named}), 3)
        layers, cumulative, few = (json.loads((self.folder / "w" / event["file"]).read_text())
                                   for event in named)
        tested = facts(events, "epoch")[-1]["test_correct"]
        self.assertEqual(list(layers), ["total", "intact_correct", "intact_nll", "chance",
                                        "correct", "lost", "gained", "nll", "nll_standard_error"])
        self.assertEqual((layers["total"], layers["intact_correct"], few["total"]),
                         (64, tested, 20))
        for layer in range(2):
            self.assertEqual(layers["correct"][layer],
                             tested - layers["lost"][layer] + layers["gained"][layer])
        self.assertEqual(list(cumulative),
                         ["total", "intact_correct", "intact_nll", "chance", "greedy", "random"])
        self.assertEqual((cumulative["total"], cumulative["intact_correct"], cumulative["chance"]),
                         (64, tested, 1 / 8))
        self.assertEqual(len(cumulative["random"]), 2)
        for curve in [cumulative["greedy"], *cumulative["random"]]:
            self.assertEqual(len({tuple(head) for head in curve["heads"]}), 3)
            self.assertEqual(len(curve["correct"]), 3)

    def test_kept_weights_are_as_documented(self):
        events = self.run_job(document("random"))
        metadata, tensors = safetensors(self.folder / "w" / events[-1]["weights"]["file"])
        self.assertEqual(json.loads(metadata["spec"]), document("random")["spec"])
        expected = {"embedding.weight": [40, 16], "pe.table": [16, 16], "final_norm.weight": [16],
                    "final_norm.bias": [16], "head.weight": [8, 16], "head.bias": [8]}
        for layer in ("layers.0.", "layers.1."):
            for name in ("query", "key", "value", "output"):
                expected |= {f"{layer}attention.{name}.weight": [16, 16],
                             f"{layer}attention.{name}.bias": [16]}
            expected |= {f"{layer}attention.norm.{part}": [16] for part in ("weight", "bias")}
            expected |= {f"{layer}ffn.norm.{part}": [16] for part in ("weight", "bias")}
            expected |= {f"{layer}ffn.in.weight": [32, 16], f"{layer}ffn.in.bias": [32],
                         f"{layer}ffn.out.weight": [16, 32], f"{layer}ffn.out.bias": [16]}
        self.assertEqual({name: shape for name, (_, shape, _) in tensors.items()}, expected)
        self.assertEqual({dtype for dtype, _, _ in tensors.values()}, {"F32"})
        trained = sum(len(values) for name, (_, _, values) in tensors.items() if name != "pe.table")
        self.assertEqual(events[0]["parameters"], trained)

    def test_two_runs_are_equal_bit_for_bit(self):
        first, second = self.plain_run("a"), self.run_job(document(), "b")
        self.assertEqual(facts(first, "hello", *RESULTS), facts(second, "hello", *RESULTS))
        self.assertEqual(facts(first, "done")[0]["weights"]["sha256"],
                         sha256(self.folder / "b" / "weights.safetensors"))

    def test_plain_operations_give_what_kernels_give_within_rounding(self):
        for model in ({}, {"kv_source": "input"}):
            fused = (self.run_job(document(model=model), "f", "--checkpoint-epochs", 1)
                     if model else self.plain_run("f"))
            plain = self.run_job(document(model=model), "p", "--kernels", "plain")
            self.assertEqual(plain[0]["kernels"], "plain")
            for one, other in zip(facts(fused, "epoch"), facts(plain, "epoch"), strict=True):
                self.assertAlmostEqual(one["train_loss"], other["train_loss"],
                                       delta=1e-4 * one["train_loss"])
            self.assertNotEqual(fused[-1]["weights"]["sha256"], plain[-1]["weights"]["sha256"],
                                "they are two ways")
        self.assertTrue((self.folder / "f" / "checkpoint.safetensors").exists())
        again = self.run_job(document(model=model), "f", "--resume", "--kernels", "plain")
        self.assertEqual(again[0]["start_epoch"], 0, "it is another way to compute")

    def test_bare_spec_is_a_job_without_analyses(self):
        events = self.run_job(document(train={"epochs": 1})["spec"])
        self.assertEqual([event["event"] for event in events], ["hello", "epoch", "done"])
        self.assertEqual({event["job"] for event in events}, {"job"})


class Stopping(TrainerCase):
    def stop_after(self, job, workdir, epochs, number=signal.SIGTERM, options=()):
        return self.stop_command(self.command(job, workdir, *options), epochs, number)

    def test_resumed_run_gives_what_a_whole_one_gives(self):
        job = document(train={"epochs": 20})
        whole = self.run_job(job, "whole")
        stopped = self.stop_after(job, "w", 5)
        self.assertEqual(stopped[-1]["event"], "checkpoint")
        told = facts(stopped, "epoch")
        self.assertEqual(stopped[-1]["epoch"], len(told))
        self.assertEqual(stopped[-1]["sha256"], sha256(self.folder / "w" / stopped[-1]["file"]))
        resumed = self.run_job(job, "w", "--resume")
        self.assertEqual(resumed[0]["start_epoch"], len(told))
        self.assertEqual(told + facts(resumed, "epoch"), facts(whole, "epoch"))
        self.assertEqual(facts(resumed, "head_ablation", "done"),
                         facts(whole, "head_ablation", "done"))

    def test_interrupt_stops_too_and_a_second_stop_resumes_further(self):
        first = self.stop_after(long_document(), "w", 2, signal.SIGINT)
        second = self.stop_after(long_document(), "w", 2, options=["--resume"])
        self.assertEqual(second[0]["start_epoch"], first[-1]["epoch"])
        self.assertGreater(second[-1]["epoch"], first[-1]["epoch"])

    def test_max_start_epoch_and_other_specs_begin_anew(self):
        job = document(train={"epochs": 4})
        self.run_job(job, "w", "--checkpoint-seconds", 0)
        for options, job, start in ((["--max-start-epoch", 3], job, 0),
                                    (["--max-start-epoch", 4], job, 4),
                                    ([], document(train={"epochs": 5}), 0)):
            shutil.copytree(self.folder / "w", self.folder / "copy", dirs_exist_ok=True)
            events = self.run_job(job, "copy", "--resume", *options)
            self.assertEqual(events[0]["start_epoch"], start, options)
            self.assertEqual([epoch["epoch"] for epoch in facts(events, "epoch")],
                             list(range(start, job["spec"]["train"]["epochs"])))

    def test_it_ends_with_its_parent(self):
        reading, writing = os.pipe()
        process = subprocess.Popen(self.command(long_document(), "w", "--parent-fd", reading),
                                   stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, pass_fds=[reading])
        os.close(reading)
        self.assertIn(b"hello", process.stdout.readline())
        began = time.monotonic()
        os.close(writing)
        process.communicate(timeout=30)
        self.assertEqual(process.returncode, 75)
        self.assertLess(time.monotonic() - began, 5)

    def test_vanished_reader_ends_it(self):
        process = subprocess.Popen(self.command(long_document()), stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        process.stdout.readline()
        process.stdout.close()
        error = process.stderr.read().decode()
        process.stderr.close()
        self.assertEqual(process.wait(60), 1)
        self.assertIn("cannot write an event", error)


class Errors(TrainerCase):
    def test_bad_specs(self):
        cases = {
            "model.d_model": document(model={"d_model": 17}),
            "bogus": document(model={"bogus": 1}),
            "alibbi": json.dumps(document()).replace('"rope"', '"alibbi"'),
            "version": json.dumps(document()).replace('"name": "rope", "version": 1',
                                                      '"name": "rope", "version": 9'),
            "not valid JSON": "{",
        }
        for word, job in cases.items():
            with self.subTest(word):
                events = self.run_job(job, status=1)
                self.assertIn(word, self.one_error(events, "bad_spec"))
                self.assertIn("pelab-trainer: ", self.stderr)

    def test_unknown_analysis_is_refused_before_training(self):
        job = document()
        job["analyses"][0]["version"] = 7
        self.assertEqual([event["event"] for event in self.run_job(job, status=1)], ["error"])
        lonely = document(task={"test_examples": 1}, method="resample")
        events = self.run_job(lonely, status=1)
        self.assertEqual([event["event"] for event in events], ["error"])
        self.assertIn("task.test_examples is 1", self.one_error(events, "bad_spec"))

    def test_missing_device(self):
        message = self.one_error(self.run_job(document(), "w", "--device", "cuda:120", status=1),
                                 "bad_spec")
        self.assertIn("cuda:120", message)

    def test_missing_spec_and_workdir_that_is_a_file(self):
        result = self.preloaded().run([TRAINER, "run", "--spec", self.folder / "no.json",
                                       "--workdir", self.folder / "w"])
        self.assertEqual(result.returncode, 1)
        self.stderr = result.stderr
        self.assertIn("no.json", self.one_error(self.events(result.stdout), "io"))
        self.write("", "w")
        self.assertIn(str(self.folder / "w"),
                      self.one_error(self.run_job(document(), status=1), "io"))

    def test_damaged_checkpoint_is_left_out(self):
        self.plain_run()
        path = self.folder / "w" / "checkpoint.safetensors"
        path.write_bytes(path.read_bytes()[:100])
        events = self.run_job(document(), "w", "--resume")  # a retry must get past it
        self.assertEqual(events[0]["start_epoch"], 0)
        self.assertEqual(events[-1]["event"], "done")

    def test_non_finite_loss(self):
        job = document(train={"lr": 1000, "weight_decay": 1000, "epochs": 20, "warmup_fraction": 0,
                              "schedule": "constant"})
        self.assertRegex(self.one_error(self.run_job(job, status=1), "non_finite_loss"),
                         r"loss of epoch \d+ is")

    def test_out_of_memory(self):
        job = document(model={"d_model": 2048, "d_ff": 8192, "layers": 8})

        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
        message = self.one_error(self.run_job(job, status=1, preexec_fn=limit,
                                              env={**os.environ, "OPENBLAS_NUM_THREADS": "1"}),
                                 "out_of_memory")
        said = re.search(r"tried to allocate (\d+) bytes.*[ ;](\d+) bytes were free", message)
        self.assertTrue(said, message)
        asked, free = map(int, said.groups())
        self.assertGreater(asked, free)
        self.assertLess(free, 2 << 30)

    def test_full_disk_or_unwritable_workdir(self):
        events = self.run_job(document(train={"epochs": 1}), "w",
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE,
                                                                    (1000, 1000)), status=1)
        self.assertIn("weights.safetensors", self.one_error(events, "io"))

    def test_wrong_use(self):
        spec = self.write(document())
        for words, said in (
                ([], "command"),
                (["run", "--spec", spec, "--workdir", "w", "--threads", "0"], "--threads")):
            with self.subTest(words):
                result = self.preloaded().run([TRAINER, *words])
                self.assertEqual((result.returncode, result.stdout), (2, ""))
                self.assertIn(said, result.stderr)
                self.assertEqual(len(result.stderr.splitlines()), 1)


class Others(TrainerCase):
    def trainer(self, *arguments):
        result = self.preloaded().run([TRAINER, *arguments])
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def test_dataset_agrees_with_the_hash(self):
        for name, task in (("clean", {}), ("padded", {"definition": "published", "max_segment": 2,
                                                      "max_gap": 6, "truncate": 15})):
            with self.subTest(name):
                job = document(task=task, train={"epochs": 1})
                if task:
                    del job["spec"]["task"]["max_distance"]
                out = self.folder / "data.safetensors"
                self.trainer("dataset", "--spec", self.write(job), "--out", out)
                metadata, tensors = safetensors(out)
                length = job["spec"]["task"]["length"]
                self.assertEqual({name: shape for name, (_, shape, _) in tensors.items()},
                                 {"tokens": [320, length], "lengths": [320], "targets": [320],
                                  "split": [320], "triggers": [2]})
                tokens, lengths, labels, split, triggers = (
                    tensors[name][2]
                    for name in ("tokens", "lengths", "targets", "split", "triggers"))
                self.assertEqual(split, (0,) * 256 + (1,) * 64)
                digest = hashlib.sha256(struct.pack("<qq", length, 256))
                for values in (tokens, lengths, labels):
                    digest.update(struct.pack(f"<{len(values)}i", *values))
                self.assertEqual(digest.hexdigest(), metadata["data_sha256"])
                self.assertEqual(json.loads(metadata["spec"]), job["spec"])
                self.assertEqual(self.run_job(job)[0]["data_sha256"], digest.hexdigest())
                for i in range(320):
                    row = tokens[i * length:(i + 1) * length]
                    self.assertEqual(set(row[lengths[i]:]) - {0}, set())
                    gap = labels[i] + (1 if name == "clean" else 0)
                    self.assertTrue(any(row[t] == triggers[0] and row[t + gap] == triggers[1]
                                        for t in range(length - gap)), row)

    def test_capabilities(self):
        capabilities = json.loads(self.trainer("capabilities"))
        self.assertEqual(list(capabilities),
                         ["protocol", "trainer", "libtorch", "preload", "cuda", "devices",
                          "environment", "pes", "tasks", "analyses"])
        self.assertEqual(capabilities["protocol"], 1)
        self.assertEqual(capabilities["preload"], 1)
        self.assertEqual(capabilities["devices"][0], "cpu")
        self.assertEqual(capabilities["cuda"], len(capabilities["devices"]) > 1)
        told = {name: value for name, value in os.environ.items() if name == "OPENBLAS_CORETYPE"}
        self.assertEqual(capabilities["environment"], told, "what it was told, it says again")
        self.assertEqual({entry["name"]: entry["version"] for entry in capabilities["pes"]},
                         {**catalog.versions(), "own": 1})
        self.assertEqual({entry["name"] for entry in capabilities["tasks"]},
                         {"distance", "counting", "own"})
        self.assertEqual({entry["name"]: entry["version"] for entry in capabilities["analyses"]},
                         {"head_ablation": 2, "layer_ablation": 1, "cumulative_ablation": 1,
                          "example_correctness": 1, "split_accuracy": 1})
        self.assertEqual(capabilities["trainer"],
                         self.run_job(document(train={"epochs": 1}))[0]["trainer"])

    def test_libraries_begin_once(self):
        """A trainer chooses other kernels of OpenBLAS before LibTorch begins, without a restart."""
        environment = {name: value for name, value in os.environ.items()
                       if name != "OPENBLAS_CORETYPE"}
        begun = subprocess.run([TRAINER, "--version"], capture_output=True, text=True, timeout=60,
                               env={**environment, "OPENBLAS_NUM_THREADS": "1",
                                    "LD_DEBUG": "files"})
        self.assertEqual(begun.returncode, 0)
        self.assertEqual(len(re.findall(r"calling init: .*libtorch_cpu", begun.stderr)), 1)
        self.assertEqual(len(re.findall(r"file=libtorch_cpu\S+ .*generating link map",
                                        begun.stderr)), 1)

    def test_openblas_starts_no_threads_of_its_own(self):
        """A process with threads could not be forked."""
        fake = BIN.parent / "tests" / "libfake_openblas.so"
        environment = {name: value for name, value in os.environ.items()
                       if name != "OPENBLAS_NUM_THREADS"}
        for told, threads in (({}, "1"), ({"OPENBLAS_NUM_THREADS": "3"}, "3")):
            begun = subprocess.run([TRAINER, "--version"], capture_output=True, text=True,
                                   timeout=60, env={**environment, **told, "LD_PRELOAD": fake})
            self.assertEqual((begun.returncode, begun.stderr), (0, f"begins with {threads}\n"))

    def test_help_and_version(self):
        self.assertIn("--checkpoint-seconds", self.trainer("--help"))
        self.assertRegex(self.trainer("--version"),
                         r"^pelab-trainer \d+\.\d+\.\d+( \(commit .*\))?\n$")

    def test_event_table_of_the_documentation_is_this_one(self):
        text = (SOURCE / "docs" / "formats.md").read_text()
        table = text[text.index("## Trainer's JSON Lines"):]
        rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", table[:table.index("\n## ", 5)], re.M))
        for event, members in MEMBERS.items():
            outer = re.sub(r"[{(][^})]*[})]", "", rows[event])
            self.assertEqual(sorted(re.findall(r"`(\w+)`", outer)),
                             sorted(members + SOMETIMES.get(event, [])), event)


if __name__ == "__main__":
    unittest.main()
