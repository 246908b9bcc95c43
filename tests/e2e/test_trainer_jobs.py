"""Several jobs that differ only in their seed, in one pelab-trainer (docs/formats.md)."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from trainer_case import RESULTS, TRAINER, TrainerCase, document, facts, sha256  # noqa: E402


class SeveralJobs(TrainerCase):
    """Jobs that differ only in their seed, in one process."""

    SEEDS = (3, 5, 8)

    def job(self, seed, epochs=2, **model):
        job = document(model=model, task={"data_seed": seed, "train_examples": 128},
                       train={"epochs": epochs}, job=f"seed{seed}")
        job["spec"]["seed"] = seed
        return job

    def files(self, jobs, folder):
        """The command-line options of the jobs, each with a directory of its own."""
        options = []
        for job in jobs:
            options += ["--spec", self.write(job, f"{folder}-{job['job']}.json"),
                        "--workdir", self.folder / folder / job["job"]]
        return options

    def run_jobs(self, jobs, folder, *options, status=0):
        return self.run_command([TRAINER, "run", *self.files(jobs, folder), *options], status)

    @staticmethod
    def of(events, job):
        return [event for event in events if event["job"] == job["job"]]

    def expect_as_alone(self, events, jobs, alone):
        self.assertEqual({event["job"] for event in events}, {job["job"] for job in jobs})
        for job in jobs:
            own = self.of(events, job)
            self.assertEqual([own[0]["event"], own[-1]["event"]], ["hello", "done"])
            self.assertEqual(facts(own, *RESULTS), facts(self.of(alone, job), *RESULTS), job["job"])

    def test_each_gives_what_it_gives_alone(self):
        for model in ({}, {"kv_source": "input", "attention_bias": False, "final_norm": False}):
            jobs = [self.job(seed, **model) for seed in self.SEEDS]
            alone = sum((self.run_job(job, f"alone-{job['job']}") for job in jobs), [])
            for way, members in (("on", 3), ("off", None), (5, 3), ("auto", None)):
                with self.subTest(way=way, model=model):
                    events = self.run_jobs(jobs, f"way-{way}", "--packing", way)
                    self.expect_as_alone(events, jobs, alone)
                    hello = self.of(events, jobs[1])[0]
                    self.assertEqual(hello["packing"], 1, "on a CPU it changes nothing")
                    if way == "auto":
                        self.assertEqual(list(hello["step_seconds"]), ["alone", "packed"])
                        self.assertGreater(hello["step_seconds"]["alone"], 0)
                    else:
                        self.assertEqual(hello.get("members"), members)
                    for job in jobs:
                        weights = self.of(events, job)[-1]["weights"]
                        kept = self.folder / f"way-{way}" / job["job"] / weights["file"]
                        self.assertEqual(sha256(kept), weights["sha256"])

    def test_a_job_alone_may_be_computed_as_one_of_several(self):
        # In bfloat16 the number of members may change the rounding.
        jobs = [self.job(seed) for seed in self.SEEDS]
        for job in jobs:
            job["spec"]["train"]["precision"] = "bf16"
        together = self.run_jobs(jobs, "all", "--packing", "on")
        one = self.run_jobs(jobs[1:2], "one", "--packing", 3, "--checkpoint-epochs", 1)
        self.assertTrue((self.folder / "one" / "seed5" / "checkpoint.safetensors").exists())
        self.assertEqual([(event["packing"], event["members"]) for event in (together[0], one[0])],
                         [(3, 3), (3, 3)])
        self.expect_as_alone(one, jobs[1:2], together)
        # With another packing the checkpoint is not used.
        again = self.run_jobs(jobs[1:2], "one", "--packing", "off",
                              "--resume", "--checkpoint-epochs", 1)
        self.assertEqual((again[0]["packing"], again[0]["start_epoch"]), (1, 0))

    def test_what_fails_of_one_leaves_the_others(self):
        jobs = [self.job(seed) for seed in self.SEEDS]
        (self.folder / "w" / "seed5" / "weights.safetensors").mkdir(parents=True)
        bad = self.job(9)
        bad["spec"]["model"]["heads"] = 3
        events = self.run_jobs([*jobs, bad], "w", "--packing", "on", status=1)
        self.assertIn("weights.safetensors", self.one_error(self.of(events, jobs[1]), "io"))
        self.assertIn("heads", self.one_error(self.of(events, bad), "bad_spec"))
        self.assertEqual(len(self.of(events, bad)), 1)
        for job in (jobs[0], jobs[2]):
            self.assertEqual(self.of(events, job)[-1]["event"], "done")
        self.assertEqual(len(facts(self.of(events, jobs[1]), "epoch")), 2, "its epochs are told")

    def test_a_loss_that_is_no_number_is_the_error_of_each(self):
        jobs = [self.job(seed, epochs=20) for seed in self.SEEDS]
        for job in jobs:
            job["spec"]["train"].update(lr=1000, weight_decay=1000, warmup_fraction=0,
                                        schedule="constant")
        events = self.run_jobs(jobs, "w", "--packing", "on", status=1)
        for job in jobs:
            self.assertRegex(self.one_error(self.of(events, job), "non_finite_loss"),
                             r"loss of epoch \d+ is")

    def test_other_configurations_are_refused(self):
        jobs = [self.job(3), self.job(5, d_ff=48)]
        events = self.run_jobs(jobs, "w", status=1)
        for job in jobs:
            self.assertIn("more than the seed", self.one_error(self.of(events, job), "bad_spec"))

    def test_each_needs_its_own_directory(self):
        spec = self.write(self.job(3))
        for options, text in ((["--spec", spec, "--workdir", "w", "--spec", spec, "--workdir", "w"],
                               "--workdir w"),
                              (["--spec", spec, "--workdir", "w", "--spec", spec],
                               "--workdir DIR is missing"),
                              (["--spec", spec, "--workdir", "w", "--packing", "all"],
                               "auto, off, on, or an integer")):
            result = self.preloaded().run([TRAINER, "run", *options])
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(text, result.stderr)

    def stop_after(self, jobs, folder, epochs, *options):
        return self.stop_command([TRAINER, "run", *self.files(jobs, folder), *options], epochs)

    def test_stopped_jobs_go_on_together_or_apart(self):
        jobs = [self.job(seed, epochs=20) for seed in self.SEEDS]
        alone = sum((self.run_job(job, f"alone-{job['job']}") for job in jobs), [])
        told = self.stop_after(jobs, "w", 15, "--packing", "on")
        for job in jobs:
            self.assertEqual(self.of(told, job)[-1]["event"], "checkpoint")
        # One job has lost its checkpoint and trains behind the others.
        (self.folder / "w" / "seed5" / "checkpoint.safetensors").unlink()
        resumed = self.run_jobs(jobs, "w", "--packing", "on", "--resume")
        for job in jobs:
            start = self.of(resumed, job)[0]["start_epoch"]
            self.assertEqual(start, 0 if job["job"] == "seed5" else self.of(told, job)[-1]["epoch"])
            before = facts(self.of(told, job), "epoch")[:start]
            self.assertEqual(before + facts(self.of(resumed, job), "epoch"),
                             facts(self.of(alone, job), "epoch"))
            self.assertEqual(facts(self.of(resumed, job), "done"),
                             facts(self.of(alone, job), "done"))
        # A checkpoint that was made in a batch is continued alone.
        told = self.stop_after(jobs, "v", 9, "--packing", "on")
        last = self.run_jobs(jobs[:1], "v", "--resume")
        self.assertEqual(last[0]["start_epoch"], self.of(told, jobs[0])[-1]["epoch"])
        self.assertEqual(facts(last, "done"), facts(self.of(alone, jobs[0]), "done"))


if __name__ == "__main__":
    unittest.main()
