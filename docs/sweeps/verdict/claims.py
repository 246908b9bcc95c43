"""What the paper says, claim by claim, and the rule that decides each from seeds.

The claims, the paper's figures and the rules in words are in claims.json, which `pelab report`
reads too; here is what each kind of rule does. Claims are judged under each named protocol by
themselves; one whose encodings a sweep lacks is not judged.
"""
import json
import pathlib
from typing import Callable, NamedTuple

from verdict import statistics as st

_FILE = json.loads(pathlib.Path(__file__).with_name("claims.json").read_text(encoding="utf-8"))
PAPER_SIZE = _FILE["paper_size"]
PAPER_EXAMPLES = _FILE["paper_examples"]
NOT_COMPARABLE = "other size"


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
    return (percent(difference) if difference is None
            or difference.mean < 0 else f"+{percent(difference)}")


class View:
    """The cells of one protocol."""

    def __init__(self, cells, protocol):
        self.protocol = protocol
        self._cells = {(cell.task, cell.pe): cell
                       for cell in cells if cell.named and cell.protocol == protocol}

    def cell(self, task, pe):
        """By label; partial_rope[k] is the one with the first k heads, partial_rope[all] the one
        with all."""
        if pe.startswith("partial_rope["):
            wanted = pe[len("partial_rope["):-1]
            for (its_task, _), cell in self._cells.items():
                spec = cell.jobs[0].spec
                if (its_task == task and spec.get("pe.name") == "partial_rope"
                    and spec.get("pe.select", "first") == "first"):
                    heads = spec.get("pe.heads", 1)
                    if str(heads) == wanted or (wanted == "all" and heads == spec["model.heads"]):
                        return cell
            raise Absent
        try:
            return self._cells[task, pe]
        except KeyError:
            raise Absent from None


# What a rule is about: {seed: value} of a cell.
_VALUES = {
    "test": lambda cell: cell.test,
    "train": lambda cell: cell.values(lambda job: job.train),
    "gap": lambda cell: cell.gap,  # training less test accuracy
    "speed": lambda cell: cell.values(lambda job: job.speed),  # mean test accuracy over the epochs
    "max_drop": lambda cell: {seed: found.max_drop
                              for seed, found in cell.deposits().items() if found.defined},
}


def _order(task, rule):
    """First above second, for each pair."""
    values = _VALUES[rule["of"]]

    def judge(view):
        verdicts, ours = [], []
        for first, second in rule["above"]:
            difference = st.paired(values(view.cell(task, first)), values(view.cell(task, second)))
            verdicts.append(st.above(difference))
            ours.append(f"{first} − {second}: {points(difference)}")
        return Outcome(st.all_of(verdicts), "; ".join(ours))
    return judge


def _near(task, rule):
    (first, second), values, margin = rule["pair"], _VALUES[rule["of"]], rule["margin"] / 100

    def judge(view):
        difference = st.paired(values(view.cell(task, first)), values(view.cell(task, second)))
        return Outcome(st.inside(difference, -margin, margin),
                       f"{first} − {second}: {points(difference)}")
    return judge


def _unsolved(task, rule):
    """Below half of RoPE's accuracy."""
    def judge(view):
        rope, verdicts, ours = view.cell(task, "rope").test, [], []
        for pe in rule["pes"]:
            cell = view.cell(task, pe)
            below = st.paired({seed: value / 2 for seed, value in rope.items()}, cell.test)
            verdicts.append(st.above(below))
            ours.append(f"{pe}: {percent(st.interval(cell.test.values()))} %")
        return Outcome(st.all_of(verdicts),
                       "; ".join(ours) + f" (rope {percent(st.interval(rope.values()))} %)")
    return judge


def _at_paper_size(cell):
    spec = cell.jobs[0].spec
    return (all(spec.get(name) == value for name, value in PAPER_SIZE.items()) and
            spec.get("task.train_examples") == PAPER_EXAMPLES[cell.task])


def _band(task, rule):
    """The mean in a band, in points."""
    def judge(view):
        cell = view.cell(task, rule["pe"])
        value = st.interval(_VALUES[rule["of"]](cell).values())
        if not _at_paper_size(cell):
            return Outcome(NOT_COMPARABLE, percent(value))
        if view.protocol != "published":
            return Outcome("clean: not the paper's setting", percent(value))
        return Outcome(st.inside(value, rule["low"] / 100, rule["high"] / 100), percent(value))
    return judge


def _ever(k, n):
    return st.HOLDS if k else st.FAILS if n >= 3 else st.UNDECIDED


_MUST = {"often": st.often, "rarely": st.rarely, "ever": _ever}


def _true_heads(cell):
    """The ablation that sets each head's own output to zero, whatever the protocol's target is."""
    variant = (next((have for have in cell.variants
                     if have[:4] == ("zero", "clean", "test", "head")), None) or next(
                         (have for have in cell.variants
                          if have.method == "zero" and have.target == "head"), None))
    if variant is None:
        raise Absent
    return variant


def _seeds(task, rule):
    """In how many seeds something happens: a deposit in any layer (`shallow`: in the first half of
    them), in each of `layers`, or that the head that costs most sits beyond the first layer."""
    def happens(found, spec):
        if rule["of"] == "starts_deeper":
            return found.top_layer not in (None, 0) and found.max_drop > 0
        if "layers" in rule:
            return found.layers >= set(rule["layers"])
        return any(not rule.get("shallow") or layer < spec["model.layers"] / 2
                   for layer in found.layers)

    def judge(view):
        cell = view.cell(task, rule["pe"])
        spec = cell.jobs[0].spec
        if rule.get("paper_heads") and spec["model.heads"] != PAPER_SIZE["model.heads"]:
            raise Absent
        if max(rule.get("layers", [0])) >= spec["model.layers"]:
            raise Absent
        found = cell.deposits(_true_heads(cell) if rule.get("true_heads") else None)
        defined = [deposits for deposits in found.values() if deposits.defined]
        k, n = sum(bool(happens(deposits, spec)) for deposits in defined), len(defined)
        note = f" ({len(found) - n} undefined)" if len(found) > n else ""
        if n == 0:
            return Outcome(st.UNDECIDED, f"0 of 0 seeds{note}")
        low, high = st.share_interval(k, n)
        return Outcome(_MUST[rule["must"]](k, n),
                       f"{k} of {n} seeds{note}; share {low:.2f} to {high:.2f}")
    return judge


_KINDS = {"order": _order, "near": _near, "unsolved": _unsolved, "band": _band, "seeds": _seeds}


def judge_of(task, rule):
    """View -> Outcome, which raises Absent where the view lacks what the rule is about."""
    return _KINDS[rule["kind"]](task, rule)


CLAIMS = [Claim(entry["figure"], entry["claim"], entry["paper"],
                judge_of(entry["task"], entry["rule"])) for entry in _FILE["claims"]]


def judge(cells, protocol):
    """[(claim, outcome)] of the claims whose encodings are there."""
    view, judged = View(cells, protocol), []
    for claim in CLAIMS:
        try:
            judged.append((claim, claim.judge(view)))
        except Absent:
            pass
    return judged
