#!/usr/bin/env python3
"""Writes the tables of docs/reproduction.md from the databases of this folder.

    python3 docs/results/write_tables.py --pelab build/release/bin/pelab           # writes them
    python3 docs/results/write_tables.py --pelab build/release/bin/pelab --check   # exit 1 if old

The text between `<!-- begin NAME -->` and `<!-- end NAME -->` is that of the sheet NAME, as `pelab
claims show NAME --output markdown` prints it. The text of `answers` has a line for each claim whose
source is the paper, with the verdicts under both protocols at each size. That of `decided` says how
many are decided. The text of `NAME-grid` has the claims that are made for each value of two fields
or more. That of `summary` has a line for each sheet: how many of its claims are decided, and what
that took. The text of `executions` is about jobs that were computed several times
(executions.py).
"""

import argparse
import collections
import json
import lzma
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap

import executions

RESULTS = pathlib.Path(__file__).resolve().parent
PAGE = RESULTS.parent / "reproduction.md"
PROTOCOLS = ("published", "clean")
EXECUTIONS = {"two threads": "two-threads.db.xz", "16 examples at a time": "parts-of-16.db.xz"}
SIZES = ("small", "tiny")  # with which the names of sheets begin


class Pelab:
    """Asks the command line about one unpacked database."""

    def __init__(self, program, database):
        self.program, self.database = program, database

    def ask(self, *arguments):
        done = subprocess.run([self.program, "claims", *arguments, "--db", self.database],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            sys.exit(f"{self.database}: {done.stderr}")
        return done.stdout

    def sheets(self):
        """Names of the sheets that have a round behind them, oldest first."""
        listed = json.loads(self.ask("list", "--output", "json"))["sheets"]
        return [row["name"] for row in reversed(listed) if row["ended_rounds"] > 0]

    def verdicts(self, sheet):
        return json.loads(self.ask("show", sheet, "--output", "json"))


def place_of(sheet, claim):
    """((subject, claim, values of its other fields), (size, protocol)). The protocol is that of the
    sheet's name, of the claim or of its cells; None if the claim is about both or neither."""
    size, _, subject = sheet.partition("-")
    fields = dict(claim["each"])
    found = fields.pop("protocol", None)
    for protocol in PROTOCOLS:
        if subject.endswith(f"-{protocol}"):
            subject, found = subject.removesuffix(f"-{protocol}"), protocol
    if found is None:
        cells = {cell["protocol"] for statistic in claim["statistics"]
                 for cell in statistic["cells"]}
        found = cells.pop() if len(cells) == 1 and cells <= set(PROTOCOLS) else None
    return (subject, claim["claim"], tuple(fields.items())), (size, found)


def verdict_of(claim):
    """The verdict; of a claim without one, also whether further seeds are planned."""
    if claim["verdict"] in ("holds", "fails"):
        return claim["verdict"]
    return "still open" if claim["standing"] == "open" else claim["verdict"]


def of_sizes(verdicts):
    """The verdict of a claim that was judged at several sizes."""
    decided = {verdict for verdict in verdicts if verdict in ("holds", "fails")}
    if decided:
        return decided.pop() if len(decided) == 1 else "depends on the size"
    return "still open" if "still open" in verdicts else "not decided"


def answer(claims):
    """One word or two for the claims of a line, by size and protocol."""
    by_protocol = {}
    for (_, protocol), claim in claims.items():
        by_protocol.setdefault(protocol or "both", []).append(verdict_of(claim))
    verdicts = {protocol: of_sizes(by_protocol[protocol])
                for protocol in (*PROTOCOLS, "both") if protocol in by_protocol}
    found = set(verdicts.values())
    if found == {"holds", "fails"}:
        return "depends on the protocol"
    if len(found) == 1 and (len(verdicts) == len(PROTOCOLS) or "both" in verdicts):
        return found.pop()
    return "; ".join(f"{verdict} ({protocol})" for protocol, verdict in verdicts.items())


def rows_of(collected):
    """The claims by subject, claim and other fields; `collected` has (sheet, claim) pairs."""
    rows = {}
    for sheet, claim in collected:
        key, place = place_of(sheet, claim)
        row = rows.setdefault(key, {"says": claim["says"], "source": claim["source"], "by": {}})
        row["by"][place] = claim
    return rows


def decided(collected):
    """A sentence: how many claims some size decides, of those that some size can address. A claim
    counts once for each protocol. Ladders, which ask about further sizes, are left out, and so are
    claims about overfitting: none of these models overfits."""
    counts = collections.Counter()
    for (subject, _, _), row in rows_of(collected).items():
        for protocol in PROTOCOLS:
            verdicts = [verdict_of(claim) for (_, its), claim in row["by"].items()
                        if its == protocol]
            others = subject.startswith(("ladder", "gaps"))
            if not others and set(verdicts) - {"not eligible"}:
                counts[of_sizes(verdicts)] += 1
    both, addressed = counts["depends on the size"], sum(counts.values())
    known = counts["holds"] + counts["fails"] + both
    return textwrap.fill(
        f"{addressed} claims are about distance or counting, and about models that have learned "
        f"enough at some size. {known} of them are decided ({100 * known // addressed} %): "
        f"{counts['holds']} hold, {counts['fails']} fail, and {both} depend on the size. A claim "
        "counts once for each protocol. Claims about overfitting are left out, because these "
        "models do not overfit.", 100) + "\n"


def answers(collected):
    """Markdown lines, one for each claim."""
    rows = rows_of(collected)
    sizes = [size for size in SIZES
             if any(place[0] == size for row in rows.values() for place in row["by"])]
    columns = [(size, protocol) for size in sizes for protocol in PROTOCOLS]
    lines = [f"| claim | source | {' | '.join(f'{size}, {its}' for size, its in columns)} | "
             "answer |", f"|---|---|{'---|' * len(columns)}---|"]
    for (subject, _, fields), row in rows.items():
        cells = []
        for size, protocol in columns:
            claim = row["by"].get((size, protocol), row["by"].get((size, None)))
            cells.append("–" if claim is None else
                         f"{verdict_of(claim)}, {claim['shows']} of {claim['n']}")
        task = subject.removeprefix("gaps-").split("-")[0]
        where = ", ".join(f"{field.split('.')[-1]} {value}" for field, value in fields)
        says = f"{row['says']} ({where})" if where else row["says"]
        lines.append(f"| {task}: {says} | {row['source']} | {' | '.join(cells)} | "
                     f"{answer(row['by'])} |")
    return "\n".join(lines) + "\n"


def grids(sheet):
    """Markdown of the claims that are made for each value of several fields: one table for each
    combination of the fields before the last two, which are its rows and columns."""
    tables = {}  # (claim, the fields before the last two) -> {(row, column): claim}
    for claim in sheet["claims"]:
        if len(claim["each"]) >= 2:
            *panel, row, column = claim["each"].items()
            cells = tables.setdefault((claim["claim"], claim["says"], tuple(panel)), {})
            cells[row, column] = claim
    lines = []
    for (name, says, panel), cells in tables.items():
        where = ", ".join(f"{field} {value}" for field, value in panel)
        rows, columns = dict.fromkeys(row for row, _ in cells), dict.fromkeys(c for _, c in cells)
        (row_field, _), (column_field, _) = next(iter(cells))
        lines += [f"{says or name} ({where}).", "Seeds that show it, and limits of their share:",
                  "",
                  f"| {row_field} \\ {column_field} | "
                  f"{' | '.join(value for _, value in columns)} |",
                  f"|---|{'---|' * len(columns)}"]
        for row in rows:
            found = (cells.get((row, column)) for column in columns)
            lines.append(f"| {row[1]} | " + " | ".join(map(share, found)) + " |")
        lines.append("")
    return "\n".join(lines)


def share(claim):
    if claim is None or claim["n"] == 0:
        return "–"
    return (f"{claim['shows']} of {claim['n']} ({claim['share_low']:.2f} to "
            f"{claim['share_high']:.2f})")


def summary(settled):
    """Markdown lines, one for each sheet; `settled` has the answers of `claims show`."""
    columns = ["sheet", "claims", "hold", "fail", "decided", "seeds disagree", "learned too little",
               "open", "seeds", "jobs", "slot hours"]
    lines = [f"| {' | '.join(columns)} |", f"|---|{'---:|' * (len(columns) - 1)}"]
    for sheet in settled:
        claims, cost = sheet["claims"], sheet["registered"]
        count = collections.Counter(verdict_of(claim) for claim in claims)
        decided, split = count["holds"] + count["fails"], count["undecided"]
        addressed = len(claims) - count["not eligible"]
        seeds = [claim["seeds"] for claim in claims]
        lines.append(
            f"| {sheet['sheet']} | {len(claims)} | {count['holds']} | {count['fails']} | "
            f"{decided} of {addressed} | {split} | {count['not eligible']} | "
            f"{count['still open']} | {min(seeds)} to {max(seeds)} | {cost['jobs']} | "
            f"{cost['slot_seconds'] / 3600:.1f} |")
    return "\n".join(lines) + "\n"


def unpacked(packed, folder):
    database = pathlib.Path(folder) / packed.stem
    database.write_bytes(lzma.decompress(packed.read_bytes()))
    return database


def tables(program):
    """{name of a marker: its text}."""
    texts, collected, settled = {}, [], []
    with tempfile.TemporaryDirectory() as folder:
        for packed in sorted(RESULTS.glob("*.db.xz")):
            database = unpacked(packed, folder)
            pelab = Pelab(program, database)
            for sheet in pelab.sheets():
                texts[sheet] = pelab.ask("show", sheet, "--output", "markdown")
                settled.append(pelab.verdicts(sheet))
                if grid := grids(settled[-1]):
                    texts[f"{sheet}-grid"] = grid
        texts["executions"] = executions.table(
            pathlib.Path(folder) / "tiny-clean.db",
            {name: unpacked(RESULTS / "executions" / file, folder)
             for name, file in EXECUTIONS.items()})
    settled.sort(key=lambda sheet: sheet["registered"]["at_ms"])
    for sheet in settled:
        collected += [(sheet["sheet"], claim) for claim in sheet["claims"]
                      if re.search(r"arXiv|Table|Figure", claim["source"] or "")]
    texts["answers"] = answers(collected)
    texts["decided"] = decided(collected)
    texts["summary"] = summary(settled)
    return texts


def filled(page, texts):
    used = set()

    def replace(match):
        name = match.group(1)
        if name not in texts:
            sys.exit(f"{PAGE}: there is no sheet {name}")
        used.add(name)
        return f"<!-- begin {name} -->\n\n{texts[name].rstrip()}\n\n<!-- end {name} -->"
    page = re.sub(r"<!-- begin (\S+) -->\n.*?<!-- end \1 -->", replace, page, flags=re.DOTALL)
    if missing := sorted(set(texts) - used):
        sys.exit(f"{PAGE}: no markers for {', '.join(missing)}")
    return page


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--pelab", required=True, help="the pelab program")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if it is old")
    options = parser.parse_args()
    before = PAGE.read_text(encoding="utf-8")
    after = filled(before, tables(options.pelab))
    if options.check:
        if before != after:
            sys.exit(f"{PAGE} is not what the databases say; run this without --check")
    else:
        PAGE.write_text(after, encoding="utf-8")


if __name__ == "__main__":
    main()
