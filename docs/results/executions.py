"""The same jobs computed by several executions: how far their results differ, beside how far seeds
differ. A key names an experiment and not its bits (docs/formats.md, "What a key says"), so each
execution has a database of its own."""

import contextlib
import math
import sqlite3
import statistics


def pairs_of(one, other):
    """{encoding: {seed: (test accuracy in the first database, in the other one)}} of the jobs that
    both have trained."""
    with contextlib.closing(sqlite3.connect(one)) as connection:
        connection.execute("ATTACH ? AS other", (str(other),))
        found = {}
        for pe, seed, *pair in connection.execute(
                "SELECT a.pe_label, a.seed, a.test_accuracy, b.test_accuracy FROM v_jobs AS a JOIN "
                "other.v_jobs AS b USING (key) WHERE a.trained AND b.trained"):
            found.setdefault(pe, {})[seed] = pair
    return found


def table(one, others, best="rope"):
    """Markdown lines, one for each encoding. `others` has the databases by what they are called.
    The accuracy and its spread over seeds are those of the first database."""
    pairs = {name: pairs_of(one, other) for name, other in others.items()}
    columns = ["encoding", "seeds", "accuracy", "sd over seeds"]
    for name in others:
        columns += [f"{name}: sd of a seed", "largest difference", f"order with {best} changes"]
    lines = [f"| {' | '.join(columns)} |", f"|---|{'---:|' * (len(columns) - 1)}"]
    first = {pe: [pair[0] for pair in by_seed.values()]
             for pe, by_seed in next(iter(pairs.values())).items()}
    for pe, accuracies in sorted(first.items(), key=lambda entry: -statistics.fmean(entry[1])):
        cells = [pe, str(len(accuracies)), f"{100 * statistics.fmean(accuracies):.1f} %",
                 f"{100 * statistics.stdev(accuracies):.1f}"]
        for of_other in pairs.values():
            differences = [100 * abs(a - b) for a, b in of_other[pe].values()]
            cells += [f"{spread(differences):.1f}", f"{max(differences):.1f}",
                      "–" if pe == best else changes(of_other[best], of_other[pe])]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def spread(differences):
    """The standard deviation of a value, from differences of two, which have twice its variance."""
    return math.sqrt(statistics.fmean(difference ** 2 for difference in differences) / 2)


def changes(ours, theirs):
    """For how many of the common seeds the order of two encodings depends on the execution."""
    def sign(value):
        return (value > 0) - (value < 0)
    seeds = set(ours) & set(theirs)
    changed = sum(len({sign(a - b) for a, b in zip(ours[seed], theirs[seed])}) > 1
                  for seed in seeds)
    return f"{changed} of {len(seeds)}"
