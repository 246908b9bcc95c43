"""Compares our speed with the other systems', from the results of one run of run.sh.

  compare.py DIR     DIR holds dispatch.json, results.json and peers.jsonl; missing ones are skipped

Standard library only.
"""

import json
import pathlib
import sys

DISPATCH = ("dispatch.json", "jobs a second, assigned to ended, durable")
CURVES = ("results.json", "all curves read in one process", "epochs/s")
# Our measurement, the start of the peer's name, the start of its measurement's name, and the
# target. If a peer has several matching measurements, the best one counts.
COMPARISONS = [
    (DISPATCH, "Celery", "dispatch", 5),
    (DISPATCH, "RQ", "dispatch", None),
    (DISPATCH, "Dask", "dispatch", None),
    (DISPATCH, "Slurm", "dispatch", 10),
    (DISPATCH, "beanstalkd", "put", None),
    (CURVES, "Optuna", "all curves read", 20),
]


def ours(folder, file, what, unit=None):
    path = folder / file
    if not path.exists():
        return None
    for figure in json.loads(path.read_text())["figures"]:
        if figure["what"] == what and unit in (None, figure["unit"]):
            return figure["value"]
    return None


def main(folder):
    lines = ((folder / "peers.jsonl").read_text().splitlines() if (folder / "peers.jsonl").exists()
             else [])
    peers = [figure for figure in map(json.loads, lines) if "value" in figure]
    for figure, name, what, asked in COMPARISONS:
        mine = ours(folder, *figure)
        theirs = [peer for peer in peers
                  if peer["peer"].startswith(name) and peer["what"].startswith(what)]
        if mine is None or not theirs:
            continue
        best = max(theirs, key=lambda peer: peer["value"])
        ratio = mine / best["value"]
        verdict = ("" if asked is None
                   else f"  asked: {asked}{'' if ratio >= asked else ', NOT MET'}")
        print(f"{ratio:8.1f} times {best['peer']}, {best['what']}: {mine:,.0f} to "
              f"{best['value']:,.0f} {best['unit']}{verdict}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]))
