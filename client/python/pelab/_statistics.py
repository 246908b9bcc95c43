"""Means over seeds and their 95 % intervals, computed exactly as in core/stats."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

_TINY = 1e-300
_MAX_TERMS = 100_000


def mean(values: Sequence[float]) -> float:
    """The mean of at least one value, by compensated summation."""
    total = lost = 0.0
    for value in values:
        following = total + value
        lost += ((total - following) + value if abs(total) >= abs(value) else (value - following)
                 + total)
        total = following
    return (total + lost) / len(values)


def sample_sd(values: Sequence[float]) -> float | None:
    if len(values) < 2:
        return None
    center = mean(values)
    squares = 0.0
    for value in values:
        squares += (value - center) * (value - center)
    return math.sqrt(squares / (len(values) - 1))


def half_width(values: Sequence[float], confidence: float = 0.95) -> float | None:
    """The half-width of Student's t interval of the mean; None for fewer than two values."""
    sd = sample_sd(values)
    if sd is None:
        return None
    return t_quantile((1 + confidence) / 2, len(values) - 1) * sd / math.sqrt(len(values))


def paired_t(differences: Sequence[float]) -> tuple[float, float] | None:
    """Student's paired t test that the mean is 0: t and the two-sided p.

    None for fewer than two differences, and if all of them are equal.
    """
    sd = sample_sd(differences)
    if not sd:
        return None
    n = len(differences)
    t = mean(differences) / (sd / math.sqrt(n))
    return t, min(1.0, 2 * t_cdf(-abs(t), n - 1))


def mcnemar_p(only_a: int, only_b: int) -> float:
    """McNemar's exact two-sided test that two models are right equally often.

    The counts are the examples that only one of the models gets right.
    """
    fewer, n = min(only_a, only_b), only_a + only_b
    return min(1.0, 2 * _incomplete_beta(n - fewer, fewer + 1, 0.5, 0.5)) if n else 1.0


def _away_from_zero(value: float) -> float:
    return _TINY if abs(value) < _TINY else value


def _beta_fraction(a: float, b: float, x: float) -> float:
    c = 1.0
    d = value = 1 / _away_from_zero(1 - (a + b) * x / (a + 1))
    for m in range(1, _MAX_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1 / _away_from_zero(1 + even * d)
        c = _away_from_zero(1 + even / c)
        value *= d * c
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1 / _away_from_zero(1 + odd * d)
        c = _away_from_zero(1 + odd / c)
        value *= d * c
        if abs(d * c - 1) < 1e-16:
            break
    return value


def _lower_tail(a: float, b: float, x: float, y: float) -> float:
    front = a * math.log(x) + b * math.log(y) + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    return math.exp(front) * _beta_fraction(a, b, x) / a


def _incomplete_beta(a: float, b: float, x: float, y: float) -> float:
    """The regularized incomplete beta function I_x(a, b); y is 1 - x."""
    if x == 0 or y <= 0:
        return 0.0 if x == 0 else 1.0
    if x < (a + 1) / (a + b + 2):
        return _lower_tail(a, b, x, y)
    return 1 - _lower_tail(b, a, y, x)


def t_cdf(t: float, degrees: float) -> float:
    square = t * t
    if math.isinf(square):
        return 0.0 if t < 0 else 1.0
    tail = 0.5 * _incomplete_beta(degrees / 2, 0.5, degrees / (degrees + square),
                                  square / (degrees + square))
    return tail if t < 0 else 1 - tail


@lru_cache(maxsize=1024)
def t_quantile(p: float, degrees: float) -> float:
    """The quantile of Student's t distribution, for 0 < p < 1."""
    if p == 0.5:
        return 0.0
    tail = p if p < 0.5 else 1 - p
    low, high = -1.0, 0.0
    while t_cdf(low, degrees) > tail:
        low *= 2
    while True:
        middle = low + (high - low) / 2
        if middle <= low or middle >= high:
            break  # adjacent doubles
        if t_cdf(middle, degrees) < tail:
            low = middle
        else:
            high = middle
    return high if p < 0.5 else -high
