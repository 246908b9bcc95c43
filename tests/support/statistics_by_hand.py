"""Intervals of means over seeds, by hand: Student's t quantiles from the incomplete beta function.

For t >= 0 and v degrees of freedom P(T <= t) = 1 - I_{v/(v+t^2)}(v/2, 1/2) / 2, inverted by
bisection; I is evaluated by its continued fraction (DLMF 8.17.22, modified Lentz). Pure functions.
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
