"""A first look at a sweep's results: means over seeds, learning curves and important heads.

    python3 first_look.py pelab.db [SWEEP]            # the file itself
    python3 first_look.py gpu01:7470 [SWEEP]          # a coordinator; also unix:PATH
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

import pelab


def open_source(name: str) -> pelab.Source:
    """Opens the file of this name if it exists; else connects to a coordinator."""
    return pelab.open(name) if Path(name).exists() else pelab.connect(name)


def look(source: pelab.Source, sweep: str | None = None) -> dict[str, pd.DataFrame]:
    """The frames that main prints."""
    jobs = source.results(sweep, fields=["model.layers", "train.lr"])

    # Means over seeds, as `pelab results` shows them.
    cells = source.summary(sweep)

    # Mean test accuracy by epoch, with a column per positional encoding and task.
    curves = source.curves(sweep).merge(jobs[["job_id", "pe_label", "task"]], on="job_id")
    learning = curves.pivot_table(index="epoch", columns=["pe_label", "task"],
                                  values="test_accuracy")

    # The head with the largest accuracy drop, for each seed of each encoding and task.
    heads = source.ablations(sweep).merge(jobs[["job_id", "pe_label", "task", "seed"]], on="job_id")
    heads = heads[heads["accuracy_drop"].notna()]
    top = heads.loc[heads.groupby(["pe_label", "task", "seed"])["accuracy_drop"].idxmax()]
    columns = ["pe_label", "task", "seed", "layer", "head", "accuracy_drop", "drop_standard_error"]
    return {"jobs": jobs, "cells": cells, "learning": learning,
            "top_heads": top[columns].reset_index(drop=True)}


def main() -> None:
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    try:
        with open_source(sys.argv[1]) as source:
            frames = look(source, sys.argv[2] if len(sys.argv) == 3 else None)
    except pelab.PelabError as error:
        sys.exit(f"first_look: {error}")
    cells = frames["cells"]
    for row in cells.itertuples():
        gaps = "" if row.complete else f"  ({row.missing} missing, {row.failed} failed)"
        print(f"{row.pe:24} {row.task:12} {row.mean:.4f} ± {row.half_width:.4f}  n={row.n}{gaps}")
    print("\nmean test accuracy, last epochs\n", frames["learning"].tail(3).round(4).to_string(),
          sep="")
    print("\nthe head that costs most\n", frames["top_heads"].round(4).to_string(index=False),
          sep="")


if __name__ == "__main__":
    main()
