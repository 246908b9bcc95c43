"""Cells and verdicts as Markdown."""
import collections
import json

from verdict import claims
from verdict import statistics as st
from verdict.claims import percent, points
from verdict.results import NAMED, in_words


def table(header, rows):
    """Columns after the first two that hold numbers are right-aligned by their header's trailing
    colon."""
    marks = ["---:" if name.endswith(":") else "---" for name in header]
    lines = ["| " + " | ".join(name.rstrip(":") for name in header) + " |",
             "|" + "|".join(marks) + "|"]
    return "\n".join(lines + ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in row)
                              + " |" for row in rows])


def _ordered(cells):
    tasks = list(dict.fromkeys(cell.task for cell in cells))
    return sorted(cells, key=lambda cell: ((*NAMED, "custom").index(cell.protocol), cell.name,
                                           tasks.index(cell.task)))


def _deposit_columns(cell, variant=None):
    """Max drop, deposits and the layer of the costliest head, over the seeds whose indices are
    defined."""
    found = cell.deposits(variant)
    defined = [deposits for deposits in found.values() if deposits.defined]
    if not found:
        return ["–", "–", "–"]
    undefined = len(found) - len(defined)
    count = f"{sum(bool(deposits.layers) for deposits in defined)}/{len(defined)}"
    layers = collections.Counter(deposits.top_layer
                                 for deposits in defined if deposits.top_layer is not None)
    often_first = sorted(layers.items(), key=lambda item: (-item[1], item[0]))
    return [percent(st.interval(deposits.max_drop for deposits in defined)) if defined else "–",
            count + (f" ({undefined} undefined)" if undefined else ""),
            ", ".join(f"{layer} ({times}×)" for layer, times in often_first) or "–"]


def _device(job):
    """cpu, Intel Xeon, 1 thread, LibTorch 1.13.1"""
    has = job.environment
    threads = f"{has['threads']} thread{'s' * (has['threads'] != 1)}" if "threads" in has else None
    libtorch = f"LibTorch {has['libtorch']}" if "libtorch" in has else None
    return ", ".join(part
                     for part in (job.device, has.get("device_name"), threads, libtorch) if part)


def provenance(sweeps, cells):
    jobs = [job for cell in cells if cell.asked for job in cell.jobs]
    done = [job for job in jobs if job.done]
    devices = collections.Counter(_device(job) for job in done)
    hours = sum(job.wall or 0 for job in done) / 3600
    seeds = sorted({job.seed for job in jobs})
    words = "; ".join(f"{count} on {device}" for device, count in sorted(devices.items())) or "none"
    names = ", ".join(f"`{sweep}`" for sweep in sweeps)
    return (f"Sweep{'s' * (len(sweeps) > 1)} {names}: {len(done)} of {len(jobs)} jobs succeeded "
            f"({words}), seeds {', '.join(map(str, seeds))}, {hours:.2f} hours of trainer time.")


def results(cells):
    rows = []
    for cell in _ordered([cell for cell in cells if cell.asked]):
        n, asked = len(cell.done), len(cell.jobs)
        rows.append([cell.name, cell.task, cell.pe, n if n == asked else f"{n} of {asked}",
                     percent(st.interval(cell.test.values())),
                     percent(st.interval(cell.values(lambda job: job.train).values())),
                     *_deposit_columns(cell), f"{wall.mean:.0f}"
                     if (wall := st.interval(cell.values(lambda job: job.wall).values())) else "–"])
    return table(["protocol", "task", "encoding", "n:", "test accuracy, %:",
                  "training accuracy, %:", "costliest head, points:", "seeds with a deposit:",
                  "its layer", "wall, s:"], rows)


def variants(cells):
    """The same ablation done otherwise: None where every cell has only one kind."""
    rows = []
    for cell in _ordered([cell for cell in cells if cell.asked and len(cell.variants) > 1]):
        for variant in cell.variants:
            rows.append([cell.name, cell.task, cell.pe, *variant, *_deposit_columns(cell, variant)])
    if not rows:
        return None
    return table(["protocol", "task", "encoding", "method", "hygiene", "data", "target",
                  "costliest head, points:", "seeds with a deposit:", "its layer"], rows)


def _layer_row(cell, what, drops):
    """`drops` {seed: {layer: drop}}: a mean over seeds for each of the layers."""
    layers = cell.jobs[0].spec["model.layers"]
    return [cell.name, cell.task, cell.pe, what,
            *(percent(st.interval(drop[layer] for drop in drops.values() if layer in drop))
              for layer in range(layers))]


def layers(cells):
    """What the costliest head of each layer is worth, and the whole layer; None where no cell has
    ablated layers."""
    rows = []
    for cell in _ordered([cell for cell in cells
                          if cell.asked and any(job.layer_drops for job in cell.done)]):
        for variant in cell.variants:
            found = {seed: deposits.drops
                     for seed, deposits in cell.deposits(variant).items() if deposits.defined}
            rows.append(_layer_row(cell, f"costliest head: {variant}", found))
        for method in sorted({method for job in cell.done for method in job.layer_drops}):
            found = cell.values(lambda job: job.layer_drops.get(method))
            rows.append(_layer_row(cell, f"all heads: {method}",
                                   {seed: dict(enumerate(drops)) for seed, drops in found.items()}))
    if not rows:
        return None
    most = max(map(len, rows)) - 4
    rows = [row + ["–"] * (most + 4 - len(row)) for row in rows]
    return table(["protocol", "task", "encoding", "ablated",
                  *(f"layer {layer}:" for layer in range(most))], rows)


def _halved(removals, orders):
    """Mean over seeds of the number of heads gone when half is lost; each seed's is the mean over
    its orders."""
    counts = [[removal.halved(order) for order in orders(removal)] for removal in removals]
    reached = [st.interval(count).mean for count in counts if None not in count]
    missing = len(counts) - len(reached)
    if not reached:
        return "never"
    found = st.interval(reached)
    return (f"{found.mean:.1f}" + (f" ± {found.half:.1f}" if found.half is not None else "") +
            (f" (never in {missing})" if missing else ""))


def removals(cells):
    """How fast accuracy goes as heads are removed one after another; None where no cell has removed
    any."""
    rows = []
    for cell in _ordered([cell for cell in cells if cell.asked]):
        for method in sorted({method for job in cell.done for method in job.removals}):
            found = list(cell.values(lambda job: job.removals.get(method)).values())
            first = collections.Counter(removal.first_layer for removal in found)
            rows.append([cell.name, cell.task, cell.pe, method, len(found),
                         ", ".join(f"{layer} ({times}×)" for layer, times in sorted(first.items())),
                         _halved(found, lambda removal: [removal.greedy]),
                         _halved(found, lambda removal: removal.random)])
    if not rows:
        return None
    return table(["protocol", "task", "encoding", "method", "n:", "layer of the first head to go",
                  "heads gone when half is lost, greedy:", "the same in random order:"], rows)


def verdicts(cells):
    """Claims × protocols; None where no claim applies."""
    rows = []
    for protocol in NAMED:
        for claim, outcome in claims.judge([cell for cell in cells if cell.asked], protocol):
            rows.append([claim.figure, claim.text, claim.paper, protocol, outcome.ours,
                         outcome.verdict])
    order = {(claim.figure, claim.text): at for at, claim in enumerate(claims.CLAIMS)}
    rows.sort(key=lambda row: (order[row[0], row[1]], NAMED.index(row[3])))
    header = ["figure", "claim", "the paper", "protocol", "ours (points, 95 % interval)", "verdict"]
    return table(header, rows) if rows else None


def _effect(cell, base):
    difference = st.paired(cell.test, base.test)
    verdict = st.above(difference)
    words = {st.HOLDS: "raises", st.FAILS: "lowers", st.UNDECIDED: "undecided"}[verdict]
    return difference, words


def switches(cells):
    """What each departure from a named set changes, largest first; None where there is none."""
    named = {(cell.protocol, cell.task, cell.pe): cell for cell in cells if cell.named}
    rows = [(cell, in_words(cell.departed), named[cell.protocol, cell.task, cell.pe])
            for cell in cells if cell.departed and (cell.protocol, cell.task, cell.pe) in named]
    for task, pe in sorted({(base.task, base.pe)
                            for _, _, base in rows if base.protocol == "published"}):
        if ("clean", task, pe) in named:
            rows.append((named["clean", task, pe], "every switch: clean",
                         named["published", task, pe]))
    if not rows:
        return None
    lines = []
    for cell, departure, base in rows:
        difference, words = _effect(cell, base)
        size = -1 if difference is None else abs(difference.mean)
        lines.append((NAMED.index(base.protocol), cell.task, cell.pe, -size, [
            base.protocol, cell.task, cell.pe, departure, 0 if difference is None else difference.n,
            percent(st.interval(base.test.values())), percent(st.interval(cell.test.values())),
            points(difference), words, *_deposit_columns(base)[:2], *_deposit_columns(cell)[:2]]))
    lines.sort(key=lambda line: line[:4])
    header = ["from", "task", "encoding", "switched", "n:", "accuracy before, %:", "after, %:",
              "change, points:", "accuracy", "costliest head before:", "deposits before:",
              "costliest head after:", "deposits after:"]
    return table(header, [line[4] for line in lines])


def settings(cells):
    """Cells of one protocol, task and encoding that some other setting tells apart, against the
    first of them; None where there are no such cells."""
    groups = collections.defaultdict(list)
    for cell in cells:
        if cell.asked:
            groups[cell.name, cell.task, cell.jobs[0].pe_label].append(cell)
    rows = []
    for first, *others in groups.values():
        for cell in others:
            difference, words = _effect(cell, first)
            rows.append([cell.name, cell.task, first.pe, cell.pe,
                         0 if difference is None else difference.n, points(difference), words])
    header = ["protocol", "task", "from", "to", "n:", "change, points:", "accuracy"]
    return table(header, rows) if rows else None


def _outside_the_encoding(spec):
    return {name: value for name, value in spec.items() if not name.startswith("pe.")}


def matched(cells):
    """MLA against RoPE where nothing but the encoding differs; None where there is no such pair."""
    groups = collections.defaultdict(list)
    for cell in cells:
        groups[json.dumps(_outside_the_encoding(cell.jobs[0].spec), sort_keys=True)].append(cell)
    rows = []
    for group in groups.values():
        homes = sorted({f"published {cell.pe}" if cell.protocol == "published" else cell.protocol
                        for cell in group if cell.named and cell.jobs[0].pe in ("rope", "mla")})
        for mla in (cell for cell in group if cell.jobs[0].pe == "mla"):
            for rope in (cell for cell in group if cell.jobs[0].pe in ("rope", "rope_abs")):
                difference = st.paired(mla.test, rope.test)
                words = {st.HOLDS: "mla is above",
                         st.FAILS: "mla is below"}.get(st.above(difference), st.UNDECIDED)
                rows.append([mla.task, ", ".join(homes) or "another", _pe_in_words(mla),
                             _pe_in_words(rope), 0 if difference is None else difference.n,
                             percent(st.interval(mla.test.values())),
                             percent(st.interval(rope.test.values())), points(difference), words])
    rows.sort(key=lambda row: row[:4])
    header = ["task", "backbone of", "mla", "rope", "n:", "mla, %:", "rope, %:",
              "difference, points:", "so"]
    return table(header, rows) if rows else None


def _pe_in_words(cell):
    """The encoding with what departs in it from its protocol's."""
    departed = {name[3:]: value for name, value in cell.departed.items() if name.startswith("pe.")}
    return cell.pe + (f" ({in_words(departed)})" if departed else "")


def document(sweeps, cells):
    """The whole section."""
    parts = [provenance(sweeps, cells), results(cells)]
    for title, part in (("Verdicts", verdicts(cells)),
                        ("Switches, one at a time (change paired by seed)", switches(cells)),
                        ("Other settings (change paired by seed)", settings(cells)),
                        ("MLA against RoPE with everything else equal", matched(cells)),
                        ("The same ablations done otherwise", variants(cells)),
                        ("Layer by layer (points lost)", layers(cells)),
                        ("Removing heads one after another", removals(cells))):
        if part:
            parts += [f"**{title}**", part]
    return "\n\n".join(parts) + "\n"
