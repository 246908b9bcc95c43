"""A first look at a sweep's results: means over seeds, learning curves and important heads.

    python3 first_look.py pelab.db [SWEEP]            # the file itself
    python3 first_look.py gpu01:7470 [SWEEP]          # a coordinator; also unix:PATH
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

import pelab

KIND = ["method", "hygiene", "split"]  # of an ablation


def open_source(name: str) -> pelab.Source:
    """Opens the file of this name if it exists; else connects to a coordinator."""
    return pelab.open(name) if Path(name).exists() else pelab.connect(name)


def look(source: pelab.Source, sweep: str | None = None) -> dict[str, pd.DataFrame]:
    """The frames that main prints."""
    jobs = source.results(sweep, fields=["model.layers", "train.lr"])

    # Means over seeds, as `pelab results` shows them. The columns before "metric" tell the groups
    # apart: the encoding, the task, and what else was varied.
    cells = source.summary(sweep)
    varied = list(cells.columns[:cells.columns.get_loc("metric")])
    groups = ["pe_label" if name == "pe" else name for name in varied]

    # Mean test accuracy by epoch, with a column per group.
    curves = with_groups(source.curves(sweep, fields=groups), groups)
    learning = curves.pivot_table(index="epoch", columns=groups, values="test_accuracy")

    # The head with the largest accuracy drop, for each seed of each group and kind of ablation.
    heads = with_groups(source.ablations(sweep, fields=[*groups, "seed"]), [*groups, *KIND])
    heads = heads[heads["accuracy_drop"].notna()]
    top = heads.loc[heads.groupby([*groups, *KIND, "seed"])["accuracy_drop"].idxmax()]
    columns = [*groups, *KIND, "seed", "layer", "head", "accuracy_drop", "drop_standard_error"]
    return {"jobs": jobs, "cells": cells, "learning": learning,
            "top_heads": top[columns].reset_index(drop=True)}


def with_groups(frame: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """The frame with "-" for a field that a job does not have: pandas leaves out such groups."""
    values = frame[names].astype(object)
    return frame.assign(**values.where(values.notna(), "-"))


def main() -> None:
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    try:
        with open_source(sys.argv[1]) as source:
            frames = look(source, sys.argv[2] if len(sys.argv) == 3 else None)
    except pelab.PelabError as error:
        sys.exit(f"first_look: {error}")
    cells = frames["cells"]
    varied = cells.columns.get_loc("metric")
    for values, (_, row) in zip(cells.iloc[:, :varied].itertuples(index=False), cells.iterrows()):
        group = " ".join(f"{value!s:12}" for value in values)
        gaps = "" if row["complete"] else f"  ({row['missing']} missing, {row['failed']} failed)"
        width = "" if pd.isna(row["half_width"]) else f" ± {row['half_width']:.4f}"
        print(f"{group} {row['mean']:.4f}{width}  n={row['n']}{gaps}")
    print("\nmean test accuracy, last epochs\n", frames["learning"].tail(3).round(4).to_string(),
          sep="")
    print("\nthe head that costs most\n", frames["top_heads"].round(4).to_string(index=False),
          sep="")


if __name__ == "__main__":
    main()
