"""What the paper says, claim by claim, and the rule that decides each from seeds.

Each claim is judged under each named protocol by itself. A claim whose encodings a sweep lacks is not judged; one of which
seeds are missing is judged on those that are there, and its n says so. Layers count from 0 here, from 1 in the paper.

The rules, by kind:
- order: first - second, paired by seed (same data, same order), 95 % t interval. Holds where it is all above 0, fails where
  it is all below. Of a chain or "above each of", every part must hold; one that fails is enough to fail.
- near: the interval of the paired difference lies within 5 points (holds), all outside (fails).
- unsolved: below half of RoPE's accuracy on the same data, paired (accuracy - rope/2 below 0).
- band: the mean's interval lies in the band (holds), all outside (fails). Only at paper size under published: the figures
  of another size mean something else.
- most seeds: in at least 80 % of at least three seeds (holds), at most 20 % (fails). Few seeds carry no useful interval for
  a share; Clopper-Pearson's is printed beside it.
- ever: in at least one seed (holds); in none of at least three (fails).
Seeds of which the deposit indices are undefined (accuracy within 5 standard errors of chance) count nowhere.
"""
from typing import Callable, NamedTuple

from verdict import statistics as st

PAPER_SIZE = {
    "model.d_model": 256, "model.d_ff": 512, "model.heads": 16, "model.layers": 6, "task.length": 128,
    "task.vocabulary": 574, "model.max_len": 128, "train.lr": 1e-4,
}
PAPER_EXAMPLES = {"distance": 70000, "counting": 35000}
NOT_COMPARABLE = "other size"
OTHERS = ("absolute", "random", "relative", "alibi", "nope")


class Absent(Exception):
    """The sweep lacks what a claim is about."""


class Outcome(NamedTuple):
    verdict: str
    ours: str


class Claim(NamedTuple):
    figure: str
    text: str
    paper: str  # its figure, or how it is said
    judge: Callable  # View -> Outcome


def percent(value):
    """A mean with its interval, in per cent."""
    if value is None:
        return "no seeds"
    return f"{100 * value.mean:.1f}" + ("" if value.half is None else f" ± {100 * value.half:.1f}")


def points(difference):
    """The same of a difference, with its sign."""
    return percent(difference) if difference is None or difference.mean < 0 else f"+{percent(difference)}"


class View:
    """The cells of one protocol."""

    def __init__(self, cells, protocol):
        self.protocol = protocol
        self._cells = {(cell.task, cell.pe): cell for cell in cells if cell.named and cell.protocol == protocol}

    def cell(self, task, pe):
        """By label; partial_rope[k] is the one with the first k heads, partial_rope[all] the one with all."""
        if pe.startswith("partial_rope["):
            wanted = pe[len("partial_rope["):-1]
            for (its_task, _), cell in self._cells.items():
                spec = cell.jobs[0].spec
                if its_task == task and spec.get("pe.name") == "partial_rope" and spec.get("pe.select", "first") == "first":
                    heads = spec.get("pe.heads", 1)
                    if str(heads) == wanted or (wanted == "all" and heads == spec["model.heads"]):
                        return cell
            raise Absent
        try:
            return self._cells[task, pe]
        except KeyError:
            raise Absent from None


def _order(task, pairs, values):
    """All of: first above second, for each pair."""
    def judge(view):
        verdicts, ours = [], []
        for first, second in pairs:
            difference = st.paired(values(view.cell(task, first)), values(view.cell(task, second)))
            verdicts.append(st.above(difference))
            ours.append(f"{first} − {second}: {points(difference)}")
        return Outcome(st.all_of(verdicts), "; ".join(ours))
    return judge


def chain(task, *pes):
    return _order(task, list(zip(pes, pes[1:])), lambda cell: cell.test)


def best(task, pe, others):
    return _order(task, [(pe, other) for other in others], lambda cell: cell.test)


def worst(task, pe, others):
    return _order(task, [(other, pe) for other in others], lambda cell: cell.test)


def widest_gap(task, pe, others):
    """Training less test accuracy."""
    return _order(task, [(pe, other) for other in others], lambda cell: cell.gap)


def narrowest_gap(task, pe, others):
    return _order(task, [(other, pe) for other in others], lambda cell: cell.gap)


def fastest(task, pe, others):
    """By the mean of test accuracy over the epochs."""
    return _order(task, [(pe, other) for other in others], lambda cell: cell.values(lambda job: job.speed))


def near(task, first, second, values=lambda cell: cell.test, margin=0.05):
    def judge(view):
        difference = st.paired(values(view.cell(task, first)), values(view.cell(task, second)))
        return Outcome(st.inside(difference, -margin, margin), f"{first} − {second}: {points(difference)}")
    return judge


def unsolved(task, *pes):
    def judge(view):
        rope, verdicts, ours = view.cell(task, "rope").test, [], []
        for pe in pes:
            cell = view.cell(task, pe)
            below = st.paired({seed: value / 2 for seed, value in rope.items()}, cell.test)
            verdicts.append(st.above(below))
            ours.append(f"{pe}: {percent(st.interval(cell.test.values()))} %")
        return Outcome(st.all_of(verdicts), "; ".join(ours) + f" (rope {percent(st.interval(rope.values()))} %)")
    return judge


def _at_paper_size(cell):
    spec = cell.jobs[0].spec
    return (all(spec.get(name) == value for name, value in PAPER_SIZE.items()) and
            spec.get("task.train_examples") == PAPER_EXAMPLES[cell.task])


def _band(cell, value, low, high, view):
    text = percent(value)
    if view.protocol != "published" or not _at_paper_size(cell):
        return Outcome(NOT_COMPARABLE if not _at_paper_size(cell) else "clean: not the paper's setting", text)
    return Outcome(st.inside(value, low, high), text)


def band(task, pe, low, high):
    """Test accuracy, in points."""
    def judge(view):
        cell = view.cell(task, pe)
        return _band(cell, st.interval(cell.test.values()), low / 100, high / 100, view)
    return judge


def drop_band(task, pe, low, high):
    def judge(view):
        cell = view.cell(task, pe)
        drops = [found.max_drop for found in cell.deposits().values() if found.defined]
        return _band(cell, st.interval(drops), low / 100, high / 100, view)
    return judge


def _seeds(rule, cell, happens, variant=None):
    """A count over the seeds whose indices are defined."""
    found = cell.deposits(variant)
    defined = [deposits for deposits in found.values() if deposits.defined]
    k, n = sum(map(bool, map(happens, defined))), len(defined)
    undefined = len(found) - n
    note = f" ({undefined} undefined)" if undefined else ""
    if n == 0:
        return Outcome(st.UNDECIDED, f"0 of 0 seeds{note}")
    low, high = st.share_interval(k, n)
    return Outcome(rule(k, n), f"{k} of {n} seeds{note}; share {low:.2f} to {high:.2f}")


def deposit(task, pe, rule=st.often, shallow=False):
    """Seeds with a deposit in any layer, or in the first half of the layers."""
    def judge(view):
        cell = view.cell(task, pe)
        half = cell.jobs[0].spec["model.layers"] / 2
        return _seeds(rule, cell, lambda found: any(not shallow or layer < half for layer in found.layers))
    return judge


def deposit_in(task, pe, layers, rule=st.often, needs_paper_heads=False):
    """Seeds with a deposit in each of these layers."""
    def judge(view):
        cell = view.cell(task, pe)
        if needs_paper_heads and cell.jobs[0].spec["model.heads"] != PAPER_SIZE["model.heads"]:
            raise Absent
        if max(layers) >= cell.jobs[0].spec["model.layers"]:
            raise Absent
        return _seeds(rule, cell, lambda found: found.layers >= set(layers))
    return judge


def deposit_of_true_heads(task, pe, rule):
    """The same with each head's own output set to zero, whatever the protocol's target is."""
    def judge(view):
        cell = view.cell(task, pe)
        variant = next((have for have in cell.variants if have[:4] == ("zero", "clean", "test", "head")), None) or next(
            (have for have in cell.variants if have.method == "zero" and have.target == "head"), None)
        if variant is None:
            raise Absent
        return _seeds(rule, cell, lambda found: found.layers, variant)
    return judge


def ever(k, n):
    return st.HOLDS if k else st.FAILS if n >= 3 else st.UNDECIDED


def starts_deeper(task, pe):
    """The head that costs most sits beyond the first layer in some seed."""
    def judge(view):
        return _seeds(ever, view.cell(task, pe), lambda found: found.top_layer not in (None, 0) and found.max_drop > 0)
    return judge


def larger_drop(task, pe, others):
    def drops(cell):
        return {seed: found.max_drop for seed, found in cell.deposits().items() if found.defined}
    return _order(task, [(pe, other) for other in others], drops)


_PARTIAL = (1, 2, 3, 5, 6, 13, 15)
_LAYERS = {2: (9, (1, 2)), 3: (10, (1, 2)), 5: (11, (1, 3)), 6: (12, (1, 2)), 13: (13, (1, 2)), 15: (14, (2, 4))}

CLAIMS = [
    Claim("Table 1", "distance: RoPE above MLA above NoPE", "92.64, 88.34, 3.51 %",
          chain("distance", "rope", "mla", "nope")),
    Claim("Table 1", "counting: MLA above NoPE above RoPE", "97.41, 77.69, 69.43 %",
          chain("counting", "mla", "nope", "rope")),
    Claim("Table 1", "distance, RoPE in 88.6 to 96.6 %", "92.64 %", band("distance", "rope", 88.6, 96.6)),
    Claim("Table 1", "distance, MLA in 82 to 94 %", "88.34 %", band("distance", "mla", 82, 94)),
    Claim("Table 1", "distance, NoPE in 1.4 to 5.4 % (length alone gives 5.37)", "3.51 %",
          band("distance", "nope", 1.4, 5.4)),
    Claim("Table 1", "counting, MLA in 94 to 100 %", "97.41 %", band("counting", "mla", 94, 100)),
    Claim("Table 1", "counting, NoPE in 70 to 86 %", "77.69 %", band("counting", "nope", 70, 86)),
    Claim("Table 1", "counting, RoPE in 59 to 79 %", "69.43 %", band("counting", "rope", 59, 79)),

    Claim("Fig. 2", "distance: RoPE has the best test accuracy", "curve", best("distance", "rope", OTHERS)),
    Claim("Fig. 2", "distance: RoPE learns fastest (mean test accuracy over the epochs)", "curve",
          fastest("distance", "rope", OTHERS)),
    Claim("Fig. 2", "distance: RoPE's gap between training and test is smaller than Absolute's and Random's", "curve",
          narrowest_gap("distance", "rope", ("absolute", "random"))),
    Claim("Fig. 2", "distance: Absolute is second", "curve", best("distance", "absolute", OTHERS[1:])),
    Claim("Fig. 2", "distance: Random fits the training set as well as Absolute (within 5 points)", "curve",
          near("distance", "random", "absolute", lambda cell: cell.values(lambda job: job.train))),
    Claim("Fig. 2", "distance: Random overfits more than Absolute", "curve",
          widest_gap("distance", "random", ("absolute",))),
    Claim("Fig. 2", "distance: NoPE and Relative do not learn it (below half of RoPE)", "curve",
          unsolved("distance", "nope", "relative")),
    Claim("Fig. 2", "distance: ALiBi is poor (below half of RoPE)", "curve", unsolved("distance", "alibi")),

    Claim("Fig. 3", "counting: Absolute costs something against NoPE", "curve", chain("counting", "nope", "absolute")),
    Claim("Fig. 3", "counting: RoPE costs less than Absolute", "text; Table 1 puts RoPE below NoPE",
          chain("counting", "rope", "absolute")),
    Claim("Fig. 3", "counting: Random has the widest gap between training and test", "curve",
          widest_gap("counting", "random", ("absolute", "relative", "alibi", "nope", "rope"))),
    Claim("Fig. 3", "counting: Relative equals NoPE (within 5 points)", "curve", near("counting", "relative", "nope")),
    Claim("Fig. 3", "counting: ALiBi is worst", "curve",
          worst("counting", "alibi", ("absolute", "random", "relative", "nope", "rope"))),

    Claim("Fig. 4", "RoPE on distance has a deposit in a shallow layer (the first half of them)", "violin",
          deposit("distance", "rope", shallow=True)),
    Claim("Fig. 4", "that head is worth 40 to 80 points", "about 60 points", drop_band("distance", "rope", 40, 80)),
    Claim("Fig. 4", "RoPE on counting has no deposit", "violin", deposit("counting", "rope", st.rarely)),
    Claim("Fig. 4", "NoPE on distance has no deposit", "violin", deposit("distance", "nope", st.rarely)),

    Claim("Fig. 5", "distance: one rotated head comes within 5 points of all (ICLR version)", "about 90 against 92.64 %",
          near("distance", "partial_rope[1]", "rope")),
    Claim("Fig. 5", "distance: two rotated heads come within 5 points of all (ICLR version)", "above 90 against 92.64 %",
          near("distance", "partial_rope[2]", "rope")),
    Claim("Fig. 5", "distance: one rotated head falls short of all (v1 text)", "curve",
          chain("distance", "rope", "partial_rope[1]")),
    Claim("Fig. 5", "counting: one rotated head costs something against NoPE (v1 text)", "curve",
          chain("counting", "nope", "partial_rope[1]")),

    Claim("Fig. 6", "RoPE + absolute on distance: no deposit in the first layer", "violin",
          deposit_in("distance", "rope_abs", (0,), st.rarely)),
    Claim("Fig. 6", "RoPE + absolute on distance: a deposit in the second layer", "violin",
          deposit_in("distance", "rope_abs", (1,))),

    Claim("Fig. 7", "MLA on distance has no deposit, ablated as the protocol does", "violin",
          deposit("distance", "mla", st.rarely)),
    Claim("Fig. 7", "MLA on distance has no deposit, true heads ablated", "not measured by the authors' code",
          deposit_of_true_heads("distance", "mla", st.rarely)),

    Claim("Fig. 8", "ALiBi on distance has no deposit", "violin", deposit("distance", "alibi", st.rarely)),
    Claim("Fig. 8", "Relative on distance has no deposit", "violin", deposit("distance", "relative", st.rarely)),
    Claim("Fig. 8", "Absolute on distance: some heads matter more than any of ALiBi's or Relative's", "violin",
          larger_drop("distance", "absolute", ("alibi", "relative"))),
    Claim("Fig. 8", "RoPE's costliest head on distance costs more than Absolute's", "violins",
          larger_drop("distance", "rope", ("absolute",))),
]
CLAIMS += [Claim(f"Figs. 9–14, k = {k}", f"distance, first {k} head{'s' * (k > 1)} rotated: the costliest head is beyond "
                 "the first layer in some seed", "in some cases", starts_deeper("distance", f"partial_rope[{k}]"))
           for k in _PARTIAL]
CLAIMS += [Claim(f"Fig. {figure}", f"distance, first {k} heads rotated: deposits in layers {first - 1} and {second - 1} "
                 f"(l = {first}, {second} in the caption)", "line graph",
                 deposit_in("distance", f"partial_rope[{k}]", (first - 1, second - 1), needs_paper_heads=True))
           for k, (figure, (first, second)) in _LAYERS.items()]


def judge(cells, protocol):
    """[(claim, outcome)] of the claims whose encodings are there."""
    view, judged = View(cells, protocol), []
    for claim in CLAIMS:
        try:
            judged.append((claim, claim.judge(view)))
        except Absent:
            pass
    return judged
