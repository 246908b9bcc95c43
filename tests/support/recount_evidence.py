"""E-values, e-BH and the chance that a claim is still decided, for sheet_recount.py: from the
formulas alone, in numpy."""

import functools
import math

import numpy as np


def log_choose(n, k):
    k = np.asarray(k, dtype=float)
    lgamma = np.vectorize(math.lgamma)
    return math.lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


@functools.cache
def log_es(n):
    """For every k: e(k, n) = sum over j <= k of C(n + 1, j), divided by (n + 1) C(n, k)."""
    sums = np.logaddexp.accumulate(log_choose(n + 1, np.arange(n + 1)))
    return sums - math.log(n + 1) - log_choose(n, np.arange(n + 1))


def log_e(k, n):
    return float(log_es(n)[k])


def log_mean(logs):
    return float(np.logaddexp.reduce(logs) - math.log(len(logs)))


def e_bh(logs, rate):
    """Which hypotheses are rejected, and the thresholds of the last one and of a further one."""
    ordered = np.sort(logs)[::-1]
    count = len(ordered)
    needed = np.log(count / (rate * np.arange(1, count + 1)))
    passing = np.flatnonzero(ordered >= needed)
    rejected = int(passing[-1]) + 1 if len(passing) else 0
    met = needed[max(rejected, 1) - 1]
    further = needed[min(rejected + 1, count) - 1]
    return [rejected > 0 and log >= met for log in logs], met, further


def chance_of_reaching(threshold, k, n, most):
    """By the posterior predictive of a uniform prior, each number of successes by itself."""
    if log_e(k, n) >= threshold:
        return 1.0
    alive, reached = np.zeros(n + 1), 0.0  # the chance of each number of successes
    alive[k] = 1.0
    for trials in range(n, most):
        success = np.arange(1, trials + 2) / (trials + 2)
        following = np.append(alive * (1 - success), 0.0)
        following[1:] += alive * success
        there = log_es(trials + 1) >= threshold
        reached += float(following[there].sum())
        alive = np.where(there, 0.0, following)
    return reached
