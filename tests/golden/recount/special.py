"""The error function of arrays, which numpy lacks."""
import math

import numpy as np

_STEP, _END = 1 / 256, 6.0  # erf(6) is 1 - 2e-17
_GRID = np.array([math.erf(i * _STEP) for i in range(int(_END / _STEP) + 1)])


def erf(x):
    """Taylor's series to the fifth order about the nearest of a grid of exact values: within
    1e-15."""
    size = np.minimum(np.abs(x), _END)
    place = np.rint(size / _STEP).astype(np.int64)
    at = place * _STEP
    h = size - at
    slope = 2 / math.sqrt(math.pi) * np.exp(-at * at)
    series = 1 + h * (-at
                      + h * ((4 * at**2 - 2) / 6 + h * ((12 * at - 8 * at**3) / 24 +
                                                        h * (16 * at**4 - 48 * at**2 + 12) / 120)))
    return np.sign(x) * (_GRID[place] + slope * h * series)
