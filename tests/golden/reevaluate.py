#!/usr/bin/env python3
"""Counts a stored job's results once more, from its kept weights and its data: numpy, in float64,
no code of pelab's.

    reevaluate.py --db FILE [--job N ...] --trainer PATH      jobs of a database; all that
                                                              succeeded, if none is named
    reevaluate.py --db FILE --job N --data DATA.safetensors   with data that `pelab-trainer dataset`
                                                              wrote before
    reevaluate.py --weights FILE --data FILE [--method mean]  two files alone: prints the figures,
                                                              compares nothing

Each stored count may differ from the one found here by as many examples as have less than 1e-4
between their two largest logits; mean losses by 2e-5 (relative above 1 nat); deposit indices follow
from the stored counts exactly.

Exit status: 0 if all agree, 1 if something disagrees, 2 if something cannot be read.
"""
import argparse
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from recount import deposits, report, stored  # noqa: E402
from recount.ablation import Ablation, Intact  # noqa: E402
from recount.decoder import Decoder  # noqa: E402

SCORE_BYTES = 1 << 27  # of one array of attention logits


def chunk_size(spec):
    return max(1, SCORE_BYTES // (8 * spec["model"]["heads"] * spec["task"]["length"] ** 2))


def intact_of(spec, tensors, data):
    return Intact(Decoder(spec, tensors), data, chunk_size(spec))


def compare_ablation(spec, model, analysis, rows):
    """One stored analysis: every entry, then the indices."""
    ablation = Ablation(model, analysis["parameters"], spec["task"]["data_seed"])
    intact, entries = ablation.run()
    name = " ".join(str(analysis["parameters"][part])
                    for part in ("method", "target", "hygiene", "data"))
    nll = next((row["nll"] - row["nll_drop"]
                for row in analysis["matrix"].values() if row["nll"] is not None), None)
    rows.intact(f"{name}: intact", analysis["intact_correct"], analysis["total"], nll, intact)
    heads = ablation.decoder.heads
    rows.equal(f"{name}: matrix", "entries", sorted(analysis["matrix"]),
               [(layer, head) for layer in range(ablation.decoder.layers) for head in range(heads)])
    for (layer, head), row in sorted(analysis["matrix"].items()):
        where = f"{name}: layer {layer} head {head}"
        if head < ablation.entries:
            rows.entry(where, row, entries[layer][head], intact)
        else:
            rows.equal(where, "null", [row[part] for part in ("correct", "lost", "gained", "nll")],
                       [None] * 4)
        rows.real(where, "chance", row["chance"], stored.chance(spec["task"]), report.EXACT)
    compare_deposits(name, analysis, stored.chance(spec["task"]), ablation.decoder, rows)


def compare_deposits(name, analysis, chance, decoder, rows):
    pairs = [[(row["lost"], row["gained"]) if row["lost"] is not None else None
              for row in (analysis["matrix"][layer, head] for head in range(decoder.heads))]
             for layer in range(decoder.layers)]
    own = deposits.deposits(pairs, analysis["intact_correct"], analysis["total"], chance)
    rows.equal(f"{name}: deposits", "layers", sorted(map(str, analysis["deposits"])),
               sorted(map(str, own)))
    for layer, indices in own.items():
        where = f"{name}: " + ("all layers" if layer is None else f"layer {layer}")
        for index, value in indices.items():
            found = analysis["deposits"][layer][index]
            if isinstance(value, float):
                rows.real(where, index, found, value, report.EXACT * max(1.0, abs(value)))
            else:
                rows.equal(where, index, found, value)
    for (layer, head), row in sorted(analysis["matrix"].items()):
        if row["lost"] is None:
            continue
        mean, error = deposits.drop(row["lost"], row["gained"], analysis["total"])
        where = f"{name}: layer {layer} head {head}"
        rows.real(where, "accuracy_drop", row["accuracy_drop"], mean, report.EXACT)
        rows.real(where, "drop_standard_error", row["drop_standard_error"], error, report.EXACT)


def train_sample(spec):
    """How many training examples are evaluated after an epoch (docs/formats.md, v_curves)."""
    examples = spec["task"]["train_examples"]
    return min(examples, max(250, min(1000, examples // 10)))


def check_job(store, job_id, data_of):
    """(the job, its rows). `data_of(spec)` gives the data and their SHA-256."""
    job = store.job(job_id)
    spec = json.loads(job["spec_json"])
    _, tensors = stored.read_weights(store.weights(job_id), spec)
    data, sha256 = data_of(spec)
    rows = report.Rows()
    rows.equal("data", "sha256", sorted(store.data_sha256(job_id)), [sha256])
    model = intact_of(spec, tensors, data)
    rows.intact("test set", job["test_correct"], job["test_total"], store.last_test_loss(job_id),
                model.of(data.train_examples, len(data.classes)))
    if job["train_eval_total"] is not None:
        fit = model.of(0, train_sample(spec))
        rows.equal("training sample", "total", job["train_eval_total"], len(fit.right))
        rows.count("training sample", "correct", job["train_eval_correct"], fit.right.sum(), fit)
    for analysis in store.ablations(job_id):
        compare_ablation(spec, model, analysis, rows)
    return job, rows


def label(job):
    return f"{job['pe_label']} {job['task']} {job['protocol']} seed {job['seed']}"


def check(arguments):
    store = stored.Store(arguments.db)
    jobs = arguments.job or store.jobs()
    if not jobs:
        raise stored.Wrong(f"{arguments.db}: no job has succeeded")
    if arguments.data and len(jobs) != 1:
        raise stored.Wrong("--data is one job's data; name the job with --job, or give --trainer")
    if not arguments.data and not arguments.trainer:
        raise stored.Wrong("give the job's data with --data, or --trainer to make them")

    def data_of(spec):
        return (stored.read_data(arguments.data, spec) if arguments.data
                else stored.make_data(arguments.trainer, spec))
    found = [check_job(store, job_id, data_of) for job_id in jobs]
    if arguments.output == "json":
        print(json.dumps([{"job_id": job["job_id"], "label": label(job),
                           "agrees": all(row.agrees for row in rows),
                           "figures": [vars(row) for row in rows]} for job, rows in found]))
    else:
        print_check(found)
    return 0 if all(row.agrees for _, rows in found for row in rows) else 1


def print_check(found):
    """One job's figures, or a line for each of many; what disagrees always."""
    for job, rows in found:
        shown = rows if len(found) == 1 else [row for row in rows if not row.agrees]
        if shown:
            print(f"job {job['job_id']}: {label(job)}")
            print(report.table(["where", "figure", "stored", "recounted", "allowed", ""],
                               [[row.where, row.figure, shorten(row.stored), shorten(row.own),
                                 row.allowed, "" if row.agrees else "DISAGREES"] for row in shown]))
    if len(found) > 1:
        print(report.table(["job", "what", "close", "verdict"],
                           [[job["job_id"], label(job), max(int(row.allowed or 0) for row in rows),
                             report.verdict(rows)] for job, rows in found]))
    print(report.verdict([row for _, rows in found for row in rows]))


def shorten(value):
    return f"{str(value)[:24]}…" if isinstance(value, list) and len(str(value)) > 25 else value


def recount(arguments):
    """The file form."""
    spec, tensors = stored.read_weights(arguments.weights)
    data, _ = stored.read_data(arguments.data, spec)
    parameters = {"method": arguments.method, "target": arguments.target,
                  "hygiene": arguments.hygiene,
                  "data": arguments.examples, "max_examples": arguments.max_examples}
    model = intact_of(spec, tensors, data)
    scores = model.of(data.train_examples, len(data.classes))
    ablation = Ablation(model, parameters, spec["task"]["data_seed"])
    intact, entries = ablation.run()
    rows = [["test set", *figures(scores, scores)], ["intact", *figures(intact, intact)]]
    rows += [[f"layer {layer} head {head}", *figures(entry, intact)]
             for layer, row in enumerate(entries) for head, entry in enumerate(row)]
    header = ["where", "correct", "total", "lost", "gained", "nll", "close"]
    if arguments.output == "json":
        print(json.dumps([dict(zip(header, row)) for row in rows]))
    else:
        print(report.table(header, rows))
    return 0


def figures(scores, intact):
    return [int(scores.right.sum()), len(scores.right), int((intact.right & ~scores.right).sum()),
            int((~intact.right & scores.right).sum()), float(scores.nll.mean()),
            report.close(scores, intact)]


def parse(words):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--db", help="the coordinator's or `pelab run`'s database")
    parser.add_argument("--job", type=int, nargs="+",
                        help="job ids of --db; default: all that succeeded")
    parser.add_argument("--trainer", help="pelab-trainer, to make the data with")
    parser.add_argument("--data", help="what `pelab-trainer dataset` wrote")
    parser.add_argument("--weights", help="a kept weights.safetensors, in the place of --db")
    parser.add_argument("--output", choices=["table", "json"], default="table")
    alone = parser.add_argument_group("the ablation of --weights")
    alone.add_argument("--method", choices=["zero", "mean", "resample"], default="zero")
    alone.add_argument("--target", choices=["head", "authors"], default="head")
    alone.add_argument("--hygiene", choices=["clean", "authors"], default="clean")
    alone.add_argument("--examples", choices=["test", "all"], default="test")
    alone.add_argument("--max-examples", type=int, default=0,
                       help="the first so many of them; 0: all")
    arguments = parser.parse_args(words)
    if (arguments.db is None) == (arguments.weights is None):
        parser.error("give either --db or --weights")
    if arguments.weights and not arguments.data:
        parser.error("--weights needs --data")
    return arguments


def main(words):
    arguments = parse(words)
    try:
        return check(arguments) if arguments.db else recount(arguments)
    except (stored.Wrong, OSError) as error:
        print(f"reevaluate.py: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
