"""The numbers in the file that `pelab report` writes, against SQL on the views and independent
statistics."""

import collections
import math
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from report_case import SWEEP, Made  # noqa: E402
import statistics_by_hand as statistics  # noqa: E402


class Data(Made):
    """Checks the numbers in the file against SQL on the views and independent statistics."""

    def close(self, found, wanted, what=""):
        self.assertEqual(found is None, wanted is None, what)
        if wanted is not None:
            self.assertTrue(math.isclose(found, wanted, rel_tol=1e-9, abs_tol=1e-12),
                            f"{what}: {found}, not {wanted}")

    def check_band(self, point, values, what, least=-math.inf, most=math.inf):
        """Checks {mean, low, high} against independent statistics, cut at `least` and `most`."""
        wanted = statistics.interval(values)
        self.close(point["mean"], wanted.mean, what)
        self.close(point["low"], None if wanted.half is None else max(wanted.low, least), what)
        self.close(point["high"], None if wanted.half is None else min(wanted.high, most), what)

    def jobs(self, cell):
        return [job["job_id"] for job in self.data["cells"][cell]["jobs"]]

    def done(self, cell):
        marks = ", ".join("?" * len(self.jobs(cell)))
        return [row[0]
                for row in self.query("SELECT job_id FROM v_jobs WHERE state = 'succeeded' AND "
                                      f"job_id IN ({marks}) ORDER BY job_id", *self.jobs(cell))]

    def test_cells_are_the_jobs_but_for_the_seed(self):
        self.assertEqual(sum(len(cell["jobs"]) for cell in self.data["cells"]),
                         self.query("SELECT count(*) FROM v_jobs")[0][0])
        for index, cell in enumerate(self.data["cells"]):
            values = [row[0] for row in self.query("SELECT test_accuracy FROM v_jobs WHERE job_id "
                                                   f"IN ({','.join(map(str, self.done(index)))})")]
            wanted = statistics.interval(values)
            self.close(cell["test"]["mean"], wanted and wanted.mean)
            self.close(cell["test"]["half_width"], wanted and wanted.half)
            self.assertEqual((cell["test"]["n"], cell["test"]["of"]), (len(values), 3))

    def test_curves(self):
        self.assertTrue(self.data["curves"]["with_seeds"])
        seen = 0
        for series in self.data["curves"]["series"]:
            rows = collections.defaultdict(list)  # epoch -> values of the finished jobs
            singles = collections.defaultdict(lambda: ([], []))
            for job in self.jobs(series["cell"]):
                for epoch, test, train in self.query("SELECT epoch, test_accuracy, train_accuracy "
                                                     "FROM v_curves WHERE job_id = ? ORDER BY "
                                                     "epoch", job):
                    singles[job][0].append(test)
                    singles[job][1].append(train)
                    if job in self.done(series["cell"]):
                        rows[epoch].append((test, train))
            self.assertEqual({seed["job_id"]: (seed["test"], seed["train"])
                              for seed in series["seeds"]}, dict(singles))
            self.assertEqual(series["basis"], "done")
            self.assertEqual(series["epochs"], len(rows))
            for epoch, values in rows.items():
                self.assertEqual(len(values), series["n"])
                for which, metric in enumerate(("test", "train")):
                    point = {name: series[metric][name][epoch] for name in ("mean", "low", "high")}
                    self.check_band(point, [value[which] for value in values],
                                    f"cell {series['cell']} epoch {epoch}")
                    seen += 1
        self.assertGreater(seen, 400)

    def test_heat_maps(self):
        gaps = 0
        for found in self.data["heads"]:
            parameters = found["parameters"]
            for layer in range(found["layers"]):
                for head in range(found["heads"]):
                    rows = self.query(
                        "SELECT accuracy_drop, drop_standard_error FROM v_head_ablation WHERE "
                        "layer = ? AND head = ? AND method = ? AND hygiene = ? AND split = ? AND "
                        "target = ? AND job_id IN "
                        f"({','.join(map(str, self.jobs(found['cell'])))})",
                        layer, head, parameters["method"], parameters["hygiene"],
                        parameters["data"], parameters["target"])
                    drops = [drop for drop, _ in rows if drop is not None]
                    gaps += not drops
                    self.close(found["mean"][layer][head],
                               math.fsum(drops) / len(drops) if drops else None)
                    self.assertEqual(found["n"][layer][head], len(drops))
                    self.assertEqual(found["counts"][layer][head],
                                     sum(drop > 3 * error
                                         for drop, error in rows if drop is not None))
            for layer in range(found["layers"]):
                seeds = [sorted((drop for drop in seed["drops"][layer] if drop is not None),
                                reverse=True) for seed in found["seeds"]]
                for rank in range(found["heads"]):
                    drops = [ordered[rank] for ordered in seeds if rank < len(ordered)]
                    self.close(found["by_rank"]["drops"][layer][rank],
                               math.fsum(drops) / len(drops) if drops else None)
            self.assertEqual(found["heads_differ"],
                             self.data["cells"][found["cell"]]["pe"] in ("alibi", "partial_rope"))
            stored = {(seed["seed"], layer, head): drop for seed in found["seeds"]
                      for layer, row in enumerate(seed["drops"]) for head, drop in enumerate(row)}
            self.assertEqual(len(stored), len(found["seeds"]) * found["layers"] * found["heads"])
        self.assertGreater(gaps, 0)  # the authors' slices of mla

    def test_layers(self):
        self.assertTrue(self.data["layers"])
        for series in self.data["layers"]:
            for point in series["points"]:
                # A deposit index is NULL in two cases: nothing has an effect (0 here), and nothing
                # could have one (left out).
                rows = self.query(
                    "SELECT d.max_drop, h.total, h.intact_correct, h.chance FROM v_deposits AS d "
                    "JOIN (SELECT DISTINCT analysis_id, total, intact_correct, chance FROM "
                    "v_head_ablation) AS h USING (analysis_id) WHERE d.layer = ? AND d.job_id IN "
                    f"({','.join(map(str, self.jobs(series['cell'])))})", point["x"])
                values = []
                for drop, total, right, chance in rows:
                    accuracy = right / total
                    if (accuracy > chance
                        and accuracy - chance >= 5 * math.sqrt(accuracy * (1 - accuracy) / total)):
                        values.append(drop or 0)
                variants = {entry["variant"]
                            for entry in self.data["layers"] if entry["cell"] == series["cell"]}
                if len(variants) == 1:
                    self.check_band(point, values, str(series["cell"]))

    def test_head_counts(self):
        (distance,) = [chart for chart in self.data["head_counts"] if chart["task"] == "distance"]
        self.assertEqual([series["label"] for series in distance["series"]],
                         ["first k heads, clean", "first k heads, published"])
        for series, protocol in zip(distance["series"], ("clean", "published")):
            self.assertEqual(sorted(point["x"] for point in series["points"]), [1, 2, 4])
            for point in series["points"]:
                values = [row[0] for row in self.query(
                    "SELECT test_accuracy FROM v_jobs WHERE pe = 'partial_rope' AND task = "
                    "'distance' AND protocol = ? AND state = 'succeeded' AND "
                    "coalesce(json_extract(spec_json, '$.pe.heads'), 1) = ?", protocol, point["x"])]
                self.check_band(point, values, f"{protocol} {point['x']}")
        self.assertEqual({level["key"] for level in distance["levels"]}, {"rope", "nope"})

    def test_comparisons_are_paired_by_seed(self):
        comparisons = self.data["comparisons"]
        self.assertEqual((comparisons["baseline"], comparisons["without"]), ("rope", []))
        accuracy = {(label, task, protocol, seed): value
                    for label, task, protocol, seed, value in self.query(
                        "SELECT pe_label, task, protocol, seed, test_accuracy FROM v_jobs WHERE "
                        "state = 'succeeded'")}
        seen = set()
        for row in comparisons["rows"]:
            group = (row["task"], row["protocol"])
            differences = [accuracy[row["encoding"], *group, seed] - accuracy["rope", *group, seed]
                           for seed in range(3) if (row["encoding"], *group, seed) in accuracy
                           and ("rope", *group, seed) in accuracy]
            self.assertEqual((row["n"], row["of"]), (len(differences), 3))
            self.check_band({"mean": row["difference"], "low": row["low"], "high": row["high"]},
                            differences, str(row), -1, 1)
            if len(differences) > 1:
                wanted = statistics.interval(differences)
                t = wanted.mean / (wanted.half / statistics.t_quantile(0.975, len(differences) - 1))
                self.assertAlmostEqual(row["p"],
                                       2 * (1 - statistics.t_cdf(abs(t), len(differences) - 1)), 9)
            seen.add((row["encoding"], *group))
        self.assertEqual(seen, {key[:3] for key in accuracy if key[0] != "rope"})

    def test_epochs_to_half(self):
        self.assertEqual({entry["cell"] for entry in self.data["epochs_to_half"]},
                         {index for index in range(len(self.data["cells"])) if self.done(index)})
        some = 0
        for entry in self.data["epochs_to_half"]:
            firsts = [self.query("SELECT min(epoch) FROM v_curves WHERE job_id = ? AND "
                                 "test_accuracy >= 0.5", job)[0][0]
                      for job in self.done(entry["cell"])]
            reached = sorted(first for first in firsts if first is not None)
            self.assertEqual((entry["reached"], entry["of"]), (len(reached), len(firsts)))
            ranked = reached + [math.inf] * (len(firsts) - len(reached))
            # the epoch by which at least half of the seeds had reached it
            middle = ranked[(len(ranked) - 1) // 2]
            self.assertEqual(entry["median"], None if middle == math.inf else middle)
            some += 0 < len(reached)
        self.assertGreater(some, 3)

    def test_set_up(self):
        set_up = self.data["set_up"]
        shared = {field["name"]: (field["value"], field["default"])
                  for field in set_up["model"] + set_up["train"]}
        self.assertEqual(shared["model.d_model"], ("32", "256"))
        self.assertEqual(shared["train.epochs"][0], "12")
        self.assertEqual([task["name"] for task in set_up["tasks"]], ["distance", "counting"])
        self.assertEqual([protocol["name"] for protocol in set_up["protocols"]],
                         ["published", "clean"])
        self.assertEqual(sum(protocol["cells"] for protocol in set_up["protocols"]),
                         len(self.data["cells"]))
        self.assertEqual({encoding["label"] for encoding in set_up["encodings"]},
                         {row[0] for row in self.query("SELECT DISTINCT pe_label FROM v_jobs")})
        self.assertEqual({tuple(encoding["parameters"]) for encoding in set_up["encodings"]},
                         {(12345,)})
        varying = {field["name"] for field in set_up["varies"]}
        for name in ("model.mask", "train.lr", "model.d_model"):
            values = {row[0] for row in self.query(
                "SELECT DISTINCT json_extract(spec_json, ?) FROM v_jobs", "$." + name)}
            self.assertEqual(len(values) > 1, name in varying, name)

    def test_what_is_missing_is_listed(self):
        wanted = self.query(
            "SELECT job_id, state, error FROM v_jobs WHERE state <> 'succeeded' ORDER BY job_id")
        self.assertGreater(len(wanted), 4)
        self.assertEqual(sorted((job["job_id"], job["state"], job["error"])
                                for job in self.data["lacking"]), wanted)

    def test_provenance(self):
        provenance = self.data["provenance"]
        note, = provenance["notes"]  # encodings are compared under clean
        self.assertIn("AdamW betas (0.98, 0.9)", note)
        self.assertEqual({job["job_id"]: job["key"] for job in provenance["jobs"]},
                         dict(self.query("SELECT job_id, key FROM v_jobs")))
        self.assertEqual(provenance["commands"][0], f"pelab run {self.db.with_suffix('.yaml')}")
        self.assertEqual(provenance["commands"][-1], "pelab report made-up --out report.html")
        self.assertEqual(provenance["environments"][0]["libtorch"], "1.13.1")
        self.assertEqual(self.data["sweeps"][0]["document"], SWEEP)
        keys = dict(self.query("SELECT job_id, spec_json FROM v_jobs"))
        for spec, cell in zip(provenance["specs"], self.data["cells"]):
            self.assertEqual(spec, keys[cell["jobs"][0]["job_id"]])


if __name__ == "__main__":
    unittest.main(verbosity=2)
