"""Settles a registered claim sheet once more, from its documents and the database's views alone:
rounds, e-values, verdicts and standings, in numpy. It shares no code with the programs.

    python3 tests/support/sheet_recount.py results.db…    # every sheet of each file

It reads conditions of the form `field=value`, joined by spaces or `and`; enough for the sheets of
the documentation and of the tests.
"""

import json
import math
import sqlite3
import sys

import yaml

from recount_claims import claims_of, same_figures
from recount_evidence import chance_of_reaching, e_bh
from recount_results import Results
from recount_shortcuts import shortcut

PILOTS = 1000
FUTILE = 0.05


class Sheet:
    def __init__(self, connection, number):
        self.db = connection
        row = connection.execute("SELECT document, first_seed, fresh_from, slots, sweep_id, "
                                 "sha256, sweep_document FROM v_sheets WHERE sheet_id = ?",
                                 (number,)).fetchone()
        self.number = number
        self.first, self.fresh, self.slots = row[1:4]
        self.document = yaml.safe_load(row[0])
        self.rate = self.document.get("false_discovery_rate", 0.05)
        self.most = self.document.get("max_seeds", 40)
        self.results = Results(connection, row[4])
        rounds = connection.execute("SELECT cells_json FROM v_sheet_rounds WHERE sheet_id = ? AND "
                                    "round = 1", (number,)).fetchone()
        # The order of the sweep's cells is that of its first round, which has them all.
        order = [cell for cell, in connection.execute(
            "SELECT job_id FROM v_sweep_jobs WHERE sweep_id = ? ORDER BY ordinal", (row[4],))]
        by_job = {job["job"]: name for name, jobs in self.results.jobs.items()
                  for job in jobs.values()}
        names = list(dict.fromkeys(by_job[job] for job in order if job in by_job))
        self.combinations = dict(zip(names, json.loads(rounds[0])))
        self.results.ordered = lambda group: [name for name in names if name in group]
        chances = {}
        for name in names:
            classes = connection.execute(
                "SELECT 1.0 / max(chance) FROM v_head_ablation WHERE job_id = ?",
                (next(iter(self.results.jobs[name].values()))["job"],)).fetchone()[0]
            chances[name] = shortcut(self.results.specs[name], classes or math.inf)
        self.results.limit = chances.__getitem__
        self.claims = claims_of(self.document, self.results)

    def settle(self, rounds):
        """The rounds, and after each the rows of its claims, as long as `rounds` ask for them."""
        states = [{"standing": "open"} for _ in self.claims]
        end, found = self.first, []
        aside = []  # claims that were put aside after the round before
        for number in range(1, rounds + 1):
            cells = self._open_cells(states)
            # Some may have been put aside after the round began, which then has their cells.
            stored = self._cells_of(number) if aside else set()
            cells = cells.union(*(claim.cells for claim in aside if claim.cells <= stored))
            if not cells:
                break
            first = end
            seeds = min(-(-self.slots // len(cells)), max(1, first - self.first))
            end = min(first + seeds, self.first + self.most, PILOTS)
            if end <= first:
                break
            self._conclude(states, end)
            aside = self._put_aside(states, number)
            found.append({"round": number, "first_seed": first, "end_seed": end,
                          "cells": sorted(self.combinations[cell] for cell in cells),
                          "claims": [dict(state) for state in states]})
        return found

    def _open_cells(self, states):
        claims = [claim for claim, state in zip(self.claims, states)
                  if state["standing"] == "open"]
        return set().union(*(claim.cells for claim in claims)) if claims else set()

    def _cells_of(self, number):
        stored, = self.db.execute("SELECT cells_json FROM v_sheet_rounds WHERE sheet_id = ? AND "
                                  "round = ?", (self.number, number)).fetchone()
        combinations = json.loads(stored)
        return {cell for cell, its in self.combinations.items() if its in combinations}

    def _put_aside(self, states, number):
        """People put claims aside; only the rows tell which, and after which round. Returns those
        of this round."""
        found = []
        for position, in self.db.execute(
                "SELECT position FROM v_sheet_claims WHERE sheet_id = ? AND round = ? AND "
                "standing = 'put aside'", (self.number, number)):
            if states[position]["standing"] == "open":
                states[position]["standing"] = "put aside"
                found.append(self.claims[position])
        return found

    def _conclude(self, states, end):
        for claim, state in zip(self.claims, states):
            if state["standing"] == "open":
                seeds, eligible, holds, fails, sides, figures = claim.weigh(
                    range(self.first, end))
                state.update(claim=claim.id, seeds=seeds, eligible=eligible, log_e_holds=holds,
                             log_e_fails=fails, sides=sides, figures=figures,
                             exploratory=min(max(self.fresh - self.first, 0), seeds))
        logs = []
        for state in states:
            too_few = 2 * state["eligible"] < state["seeds"]
            logs += [-math.inf if too_few else state[side]
                     for side in ("log_e_holds", "log_e_fails")]
        rejected, met, further = e_bh(logs, self.rate)
        for i, state in enumerate(states):
            decided = rejected[2 * i] or rejected[2 * i + 1]
            state["log_threshold"] = met if decided else further
            state["verdict"] = ("holds" if rejected[2 * i] else "fails" if decided else
                                "not eligible" if 2 * state["eligible"] < state["seeds"] else
                                "undecided")
            if decided:
                state["standing"] = "decided"
        # What a claim would have to reach if all open ones were decided.
        count = sum(state["standing"] in ("decided", "open") for state in states)
        lowest = math.log(2 * len(states) / (self.rate * max(count, 1)))
        for state in states:
            if state["standing"] != "open":
                continue
            if state["seeds"] >= self.most or end >= PILOTS:
                state["standing"] = "all seeds"
            elif self._chance(state, lowest) < FUTILE:
                state["standing"] = "futile"

    def _chance(self, state, threshold):
        left = (self.most - state["seeds"]) * (state["eligible"] + 1) / (state["seeds"] + 1)
        most = state["eligible"] + math.ceil(left)
        chances = [[chance_of_reaching(threshold, k, n, most) for k, n in side]
                   for side in state["sides"]]
        return min(chances[0]) + sum(chances[1])

    def differences(self):
        """What is stored otherwise than recomputed, in words."""
        stored = self.db.execute(
            "SELECT round, first_seed, end_seed, cells_json FROM v_sheet_rounds WHERE sheet_id = ? "
            "AND ended_at IS NOT NULL ORDER BY round", (self.number,)).fetchall()
        found = self.settle(len(stored))
        problems = []
        if len(found) != len(stored):
            problems.append(f"{len(stored)} rounds are stored, {len(found)} recomputed")
        names = ("claim", "standing", "verdict", "seeds", "eligible", "exploratory")
        logs = ("log_e_holds", "log_e_fails", "log_threshold")
        figures = ("leans_to", "k", "n", "shows", "mean")
        for ours, (number, first, end, cells) in zip(found, stored):
            if (first, end, json.loads(cells)) != (ours["first_seed"], ours["end_seed"],
                                                   ours["cells"]):
                problems.append(f"round {number}: {first}, {end}, {cells} stored, {ours}")
            rows = self.db.execute(
                f"SELECT {', '.join(names + logs + figures)} FROM v_sheet_claims WHERE sheet_id = "
                "? AND round = ? ORDER BY position", (self.number, number)).fetchall()
            if len(rows) != len(ours["claims"]):
                problems.append(f"round {number}: {len(rows)} claims, not {len(ours['claims'])}")
            for row, claim in zip(rows, ours["claims"]):
                if row[:len(names)] != tuple(claim[name] for name in names):
                    problems.append(f"round {number}: {row} stored, {claim} recomputed")
                for name, log in zip(logs, row[len(names):]):
                    if not math.isclose(log, claim[name], rel_tol=1e-9, abs_tol=1e-9):
                        problems.append(f"round {number}, {row[0]}: {name} is {log}, not "
                                        f"{claim[name]}")
                beside = dict(zip(figures, row[len(names) + len(logs):]))
                if beside["leans_to"] is not None and not same_figures(beside, claim["figures"]):
                    problems.append(f"round {number}, {row[0]}: {beside}, not {claim['figures']}")
        return problems


def check(path):
    """The differences of every sheet of a database, and how many claims were recomputed."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    problems, claims = [], 0
    for number, name in connection.execute(
            "SELECT sheet_id, name FROM v_sheets WHERE ended_rounds > 0 ORDER BY sheet_id"
    ).fetchall():
        sheet = Sheet(connection, number)
        claims += len(sheet.claims)
        problems += [f"{path}, sheet {name}: {problem}" for problem in sheet.differences()]
    connection.close()
    return problems, claims


def main():
    failed = False
    for path in sys.argv[1:]:
        problems, claims = check(path)
        for problem in problems[:20]:
            print(problem)
        print(f"{path}: {claims} claims recomputed, {len(problems)} differences")
        failed = failed or bool(problems) or claims == 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
