"""The same jobs computed twice, with one thread and with two: how far the results differ, beside
how far seeds differ. A key names an experiment and not its bits (docs/formats.md, "What a key
says"), so the second run has a database of its own."""

import contextlib
import math
import sqlite3
import statistics


def pairs_of(one, two):
    """{encoding: [(test accuracy in the first database, in the second one)]} of the jobs that both
    have trained, in the order of their seeds."""
    with contextlib.closing(sqlite3.connect(one)) as connection:
        connection.execute("ATTACH ? AS two", (str(two),))
        found = {}
        for pe, *pair in connection.execute(
                "SELECT a.pe_label, a.test_accuracy, b.test_accuracy FROM v_jobs AS a JOIN "
                "two.v_jobs AS b USING (key) WHERE a.trained AND b.trained "
                "ORDER BY a.pe_label, a.seed"):
            found.setdefault(pe, []).append(tuple(pair))
    return found


def spreads(pairs):
    """(standard deviation over seeds, that of a seed's two executions). The first is the mean of
    both executions; the second comes from the differences, which have twice the variance."""
    seeds = statistics.fmean(statistics.variance(column) for column in zip(*pairs))
    executions = statistics.fmean((a - b) ** 2 / 2 for a, b in pairs)
    return math.sqrt(seeds), math.sqrt(executions)


def table(one, two, best="rope"):
    """Markdown lines, one for each encoding."""
    all_pairs = pairs_of(one, two)
    lines = [f"| encoding | seeds | accuracy with 1 and 2 threads | sd over seeds | sd of the two "
             f"runs of a seed | largest difference | seeds whose order with {best} changes |",
             "|---|---:|---:|---:|---:|---:|---:|"]
    for pe, pairs in sorted(all_pairs.items(), key=lambda entry: -statistics.fmean(
            sum(pair) for pair in entry[1])):
        means = [100 * statistics.fmean(column) for column in zip(*pairs)]
        seeds, runs = (100 * spread for spread in spreads(pairs))
        most = 100 * max(abs(a - b) for a, b in pairs)
        changed = "–" if pe == best else str(changes(all_pairs[best], pairs))
        lines.append(f"| {pe} | {len(pairs)} | {means[0]:.1f} %, {means[1]:.1f} % | {seeds:.1f} | "
                     f"{runs:.1f} | {most:.1f} | {changed} |")
    return "\n".join(lines) + "\n"


def changes(ours, theirs):
    """For how many seeds another encoding is the better one in the second execution."""
    def sign(value):
        return (value > 0) - (value < 0)
    return sum(sign(a[0] - b[0]) != sign(a[1] - b[1]) for a, b in zip(ours, theirs, strict=True))
