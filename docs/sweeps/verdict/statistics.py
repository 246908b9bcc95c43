"""Intervals over seeds, and what an interval says about a claim. Pure functions.

Seeds are replicates: the unit of every interval is one trained model, never one test example. n is
small (3 to 5), so intervals are wide and "undecided" is a frequent and honest answer.

Student's t quantiles come from the incomplete beta function: for t >= 0 and v degrees of freedom
P(T <= t) = 1 - I_{v/(v+t^2)}(v/2, 1/2) / 2, inverted by bisection; I is evaluated by its continued
fraction (DLMF 8.17.22, modified Lentz). Clopper-Pearson limits for k of n invert the same function:
the lower limit is the p with I_p(k, n-k+1) = 2.5 %, the upper one the p with I_p(k+1, n-k) = 97.5
%.
"""
import math
from typing import NamedTuple, Optional

CONFIDENCE = 0.95


def incomplete_beta(a, b, x):
    """The regularised incomplete beta function I_x(a, b), for a, b > 0 and 0 <= x <= 1."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):  # the fraction converges fast on the other side only
        return 1 - incomplete_beta(b, a, 1 - x)
    front = (math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x)
                      + b * math.log1p(-x)) / a)
    tiny = 1e-300
    f, c, d = 1.0, 1.0, 0.0
    for step in range(1000):
        m = step // 2
        if step == 0:
            term = 1.0
        elif step % 2 == 0:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        else:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1 + term * d
        d = 1 / (d if abs(d) > tiny else tiny)
        c = 1 + term / c
        c = c if abs(c) > tiny else tiny
        f *= c * d
        if abs(1 - c * d) < 1e-15:
            break
    return front * (f - 1)


def _bisect(function, low, high):
    """The x where the increasing `function` passes zero."""
    for _ in range(200):
        middle = (low + high) / 2
        if function(middle) < 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def t_cdf(t, degrees):
    tail = incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t)) / 2
    return 1 - tail if t >= 0 else tail


def t_quantile(p, degrees):
    """The t with P(T <= t) = p, for 0.5 <= p < 1."""
    high = 1.0
    while t_cdf(high, degrees) < p:
        high *= 2
    return _bisect(lambda t: t_cdf(t, degrees) - p, 0.0, high)


class Interval(NamedTuple):
    """A mean over seeds; `half` is None where one seed says nothing about spread."""

    mean: float
    half: Optional[float]
    n: int

    @property
    def low(self):
        return -math.inf if self.half is None else self.mean - self.half

    @property
    def high(self):
        return math.inf if self.half is None else self.mean + self.half


def interval(values):
    """mean ± t(97.5 %, n - 1) sd / sqrt(n), sd with n - 1 below; None of no values."""
    values = list(values)
    n = len(values)
    if n == 0:
        return None
    mean = math.fsum(values) / n
    if n == 1:
        return Interval(mean, None, 1)
    sd = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    return Interval(mean, t_quantile((1 + CONFIDENCE) / 2, n - 1) * sd / math.sqrt(n), n)


def paired(first, second):
    """The interval of first - second over the seeds that both have; each a map from seed to
    value."""
    return interval(first[seed] - second[seed] for seed in sorted(first.keys() & second.keys()))


def share_interval(k, n):
    """Clopper-Pearson's limits for the share behind k of n."""
    tail = (1 - CONFIDENCE) / 2
    low = 0.0 if k == 0 else _bisect(lambda p: incomplete_beta(k, n - k + 1, p) - tail, 0.0, 1.0)
    high = 1.0 if k == n else _bisect(lambda p: incomplete_beta(k + 1, n - k, p) - (1 - tail), 0.0,
                                      1.0)
    return low, high


HOLDS, FAILS, UNDECIDED = "holds", "fails", "undecided"


def above(difference):
    """Whether a difference is above zero: its interval decides."""
    if difference is None:
        return UNDECIDED
    return HOLDS if difference.low > 0 else FAILS if difference.high < 0 else UNDECIDED


def inside(value, low, high):
    """Whether a mean lies in a band: holds where all of its interval does, fails where none of it
    does."""
    if value is None:
        return UNDECIDED
    if value.low >= low and value.high <= high:
        return HOLDS
    return FAILS if value.high < low or value.low > high else UNDECIDED


def often(k, n):
    """Whether something happens in most seeds: 80 % of at least three; fails at 20 % or less."""
    if n < 3:
        return UNDECIDED
    return HOLDS if k >= 0.8 * n else FAILS if k <= 0.2 * n else UNDECIDED


def rarely(k, n):
    return {HOLDS: FAILS, FAILS: HOLDS, UNDECIDED: UNDECIDED}[often(k, n)]


def all_of(verdicts):
    """Of a claim with several parts: fails where one fails, holds where all hold."""
    verdicts = list(verdicts)
    if FAILS in verdicts:
        return FAILS
    return HOLDS if verdicts and all(verdict == HOLDS for verdict in verdicts) else UNDECIDED
