"""Checks that every sweep file of docs/sweeps is valid and agrees with docs/sweeps/README.md:
sizes, shared jobs, counts.

`pelab submit --dry-run` expands each file; nothing is trained and no coordinator is asked.
"""

import functools
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pelab_harness import BIN, SOURCE  # noqa: E402

SWEEPS = SOURCE / "docs" / "sweeps"
FILES = sorted(SWEEPS.rglob("*.yaml"))
PAPER_SIZE = {"layers": 6, "heads": 16, "d_model": 256, "d_ff": 512, "dropout": 0.1, "max_len": 128}
PAPER_DATA = {"distance": (128, 574, 70000, 30000), "counting": (128, 574, 35000, 15000)}


def name_of(path):
    return str(path.relative_to(SWEEPS).with_suffix(""))


@functools.lru_cache(maxsize=None)
def expand(name):
    """The file's jobs, as listed by the dry run."""
    with tempfile.TemporaryDirectory() as folder:
        result = subprocess.run(
            [BIN / "pelab", "submit", SWEEPS / f"{name}.yaml", "--dry-run", "--output", "json",
             "--db", f"{folder}/none.db"],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    if result.returncode != 0:
        raise AssertionError(f"{name}: exit {result.returncode}\n{result.stdout}\n{result.stderr}")
    return json.loads(result.stdout)


def jobs(name):
    return expand(name)["jobs"]


def keys(name, **conditions):
    """The keys of the jobs with these values of pe, task or protocol."""
    return {job["key"]
            for job in jobs(name) if all(job[what] == value for what, value in conditions.items())}


def data_of(job):
    task = job["spec"]["task"]
    return tuple(task[name] for name in ("length", "vocabulary", "train_examples", "test_examples"))


def sizes_of(job):
    return {name: job["spec"]["model"][name] for name in PAPER_SIZE}


class EveryFile(unittest.TestCase):
    def test_is_valid_and_not_empty(self):
        self.assertGreater(len(FILES), 20)
        for path in FILES:
            with self.subTest(file=name_of(path)):
                self.assertTrue(jobs(name_of(path)))

    def test_is_named_after_its_place(self):
        """A name and a path may differ in "-" and "_" alone: ladder_arms was registered with its
        claims as small-ladder-arms, and nothing registered is renamed."""
        for path in FILES:
            with self.subTest(file=name_of(path)):
                self.assertEqual(expand(name_of(path))["name"].replace("_", "-"),
                                 name_of(path).replace("/", "-").replace("_", "-"))

    def test_no_job_is_there_twice(self):
        for path in FILES:
            with self.subTest(file=name_of(path)):
                self.assertEqual(len(keys(name_of(path))), len(jobs(name_of(path))))

    def test_the_readme_counts_its_jobs(self):
        text = (SWEEPS / "README.md").read_text(encoding="utf-8")
        rows = re.findall(r"^\| \[(.+?)\]\((.+?)\.yaml\) \| (\d+) \| (\d+) \|", text, re.M)
        self.assertEqual(sorted(row[0] for row in rows), sorted(map(name_of, FILES)))
        seen = set()
        for name, link, total, new in rows:
            with self.subTest(file=name):
                self.assertEqual(name, link)
                self.assertEqual((int(total), int(new)), (len(jobs(name)), len(keys(name) - seen)))
            seen |= keys(name)


class Paper(unittest.TestCase):
    FIGURES = [f"paper/figure{number:02}" for number in range(2, 15)]

    def test_table_1_and_figures_2_to_14_are_there(self):
        self.assertEqual([name_of(path) for path in FILES if name_of(path).startswith("paper/")],
                         self.FIGURES + ["paper/table1"])

    def test_sizes_are_the_papers(self):
        for name in [*self.FIGURES, "paper/table1"]:
            for job in jobs(name):
                self.assertEqual(sizes_of(job), PAPER_SIZE, name)
                self.assertEqual(data_of(job), PAPER_DATA[job["task"]], name)

    def test_training_is_the_protocols(self):
        for job in jobs("paper/table1"):
            train = job["spec"]["train"]
            published = (150, 1024) if job["pe"] == "mla" else (100, 512)
            clean = (100 if job["task"] == "distance" else 150, 512)
            self.assertIn(job["protocol"], ("published", "clean"))
            self.assertEqual((train["epochs"], train["batch_size"]),
                             published if job["protocol"] == "published" else clean)
            self.assertEqual((train["lr"], train["beta1"], train["beta2"]), (1e-4, 0.98, 0.9))

    def test_both_protocols_and_five_seeds(self):
        for name in [*self.FIGURES, "paper/table1"]:
            self.assertEqual({job["protocol"] for job in jobs(name)}, {"published", "clean"}, name)
            self.assertEqual({job["seed"] for job in jobs(name)}, set(range(5)), name)

    def test_figures_share_jobs(self):
        self.assertLessEqual(keys("paper/figure04"), keys("paper/table1"))
        self.assertLessEqual(keys("paper/figure07"), keys("paper/table1"))
        self.assertLessEqual(keys("paper/figure08"), keys("paper/figure02"))
        for pe in ("rope", "nope"):
            self.assertLessEqual(keys("paper/figure02", pe=pe), keys("paper/table1"))
            self.assertLessEqual(keys("paper/figure03", pe=pe), keys("paper/table1"))
        for k, figure in ((2, "09"), (3, "10"), (5, "11"), (6, "12"), (13, "13"), (15, "14")):
            first = {job["key"] for job in jobs(f"paper/figure{figure}")
                     if job["spec"]["pe"].get("heads") == k}
            self.assertEqual(len(first), 10)  # 2 protocols x 5 seeds
            self.assertLessEqual(first, keys("paper/figure05"))


class Small(unittest.TestCase):
    NAMES = [name_of(path) for path in FILES if name_of(path).startswith("small/")]

    def test_sizes_are_those_of_distance_and_counting(self):
        """Checks the sizes and the training, except where they are varied: betas, the ladders'
        depth and heads, and the authors' longer training of MLA."""
        all_jobs = jobs("small/distance") + jobs("small/counting")
        first = all_jobs[0]
        model, train = sizes_of(first), first["spec"]["train"]
        data = {job["task"]: data_of(job) for job in all_jobs}
        longer = {"epochs": 15, "batch_size": 128}
        for name in self.NAMES:
            betas = {"beta1", "beta2"} if name == "small/betas" else set()
            ladder = {"layers", "heads"} if "/ladder" in name else set()
            for job in jobs(name):
                sizes = {**sizes_of(job), **{field: model[field] for field in ladder}}
                self.assertEqual((sizes, data_of(job)), (model, data[job["task"]]), name)
                authors_mla = (job["pe"], job["protocol"]) == ("mla", "published")
                expected = ({**train, **longer} if authors_mla and
                            name in ("small/distance", "small/counting") else train)
                self.assertEqual({**job["spec"]["train"],
                                  **{field: train[field] for field in betas}}, expected, name)

    def test_betas_are_the_authors_and_the_usual_ones(self):
        self.assertEqual({(job["spec"]["train"]["beta1"], job["spec"]["train"]["beta2"])
                          for job in jobs("small/betas")}, {(0.98, 0.9), (0.9, 0.98)})

    def test_every_method_is_there_under_both_protocols(self):
        methods = {"nope", "absolute", "random", "relative", "alibi", "rope", "mla",
                   "partial_rope"}
        for task, more in (("distance", {"rope_abs"}), ("counting", set())):
            self.assertEqual({(job["pe"], job["protocol"]) for job in jobs(f"small/{task}")},
                             {(pe, protocol) for pe in methods | more
                              for protocol in ("clean", "published")})

    def test_switches_depart_one_at_a_time(self):
        """Each job of a factorial sweep differs from the published one in exactly one field that
        both have."""
        for name in self.NAMES:
            if "/switches_" not in name:
                continue
            base = {job["pe"]: flat(job) for job in jobs(name) if job["protocol"] == "published"}
            departures = [changed(flat(job), base[job["pe"]])
                          for job in jobs(name) if job["protocol"] != "published"]
            self.assertTrue(departures, name)
            for departed in departures:
                # its class 0 is a distance, so the scored classes change with it
                if "task.label_space" in departed:
                    departed.discard("task.scored_classes")
                self.assertEqual(len(departed), 1, f"{name}: {departed}")

    def test_backbones_are_equal_but_for_the_encoding(self):
        for name in ("small/backbone_clean", "small/backbone_mla", "small/backbone_rope"):
            for task in ("distance", "counting"):
                rest = {json.dumps({field: value for field, value in flat(job).items()
                                    if not field.startswith("pe.")},
                                   sort_keys=True) for job in jobs(name) if job["task"] == task}
                self.assertEqual(len(rest), 1, f"{name} {task}")


def flat(job):
    fields = {f"{section}.{name}": value for section, members in job["spec"].items()
              if isinstance(members, dict) for name, value in members.items()}
    return {name: value for name, value in fields.items() if name != "task.data_seed"}


def changed(fields, base):
    return {name for name in fields if name in base and fields[name] != base[name]}


if __name__ == "__main__":
    unittest.main(verbosity=2)
