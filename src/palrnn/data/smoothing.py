"""A series without most of its white noise: local cubics, in windows as wide as its motion allows.

Around each row a cubic is fitted by least squares to the rows of a window, and its value there is taken
(Savitzky and Golay, 1964). A wide window averages more noise away and bends what moves; the best one has the
smallest estimate of the error that is left (Mallows' C_p, 1973),

    risk(w) = mean (s_w - x)^2 - sigma^2 + 2 sigma^2 h_w,        h_w: the weight of a row in its own value,

which is unbiased for white noise of deviation sigma (`noise_level`). It needs no model, and suits motion that
is smooth between samples; where the system itself is driven by noise, a smoother that knows a model of it
(`bootstrap(method="denoised")`) leaves less.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palrnn.data.noise import noise_level
from palrnn.engine.checks import Floats, as_int, as_series
from palrnn.engine.gaps import refuse_empty_columns

# windows that are tried: odd, each about a fifth wider than the one before; a cubic has four numbers
_WINDOWS = (5, 7, 9, 11, 13, 15, 19, 23, 27, 33, 39, 47, 57, 69, 83, 101)
_DEGREE = 3
# a series has at least so many windows
_LEAST_WINDOWS = 10


def suggest_windows(x: ArrayLike) -> NDArray[np.intp]:
    """Return how many rows a window of `smoothed` should have, for each column of ``x (T, N)``: ``(N,)``.

    1, which changes nothing, where no noise is seen or none can be taken out without bending the motion.
    """
    series = as_series(x, allow_nan=True, min_steps=16)
    refuse_empty_columns([series], "x")
    levels = noise_level(series)
    found = [_window(column, float(level)) for column, level in zip(series.T, levels, strict=True)]
    return np.array(found, dtype=np.intp)


def smoothed(x: ArrayLike, *, windows: ArrayLike | None = None) -> Floats:
    """Return ``x (T, N)`` with each row's value on the cubic that fits the rows around it, a new array.

    ``windows`` are the rows of a window for each column, or one number for all, odd; 1 leaves a column as it
    is (None: `suggest_windows`). A gap (NaN) stays one; a stretch between gaps that is shorter than the
    window, which no cubic can be trusted with, stays as it is, too.
    """
    series = as_series(x, allow_nan=True)
    refuse_empty_columns([series], "x")
    sizes = suggest_windows(series) if windows is None else _sizes(windows, series.shape[1])
    return np.stack([_local_cubics(c, int(w)) for c, w in zip(series.T, sizes, strict=True)], axis=1)


def _sizes(windows: ArrayLike, columns: int) -> NDArray[np.intp]:
    given = np.atleast_1d(np.asarray(windows))
    if given.shape not in ((1,), (columns,)):
        raise ValueError(f"windows must be one number, or {columns}, one for each column, got {given.shape}")
    sizes = [as_int(size, "windows", least=1, most=10**6) for size in given.tolist()]
    wrong = [size for size in sizes if size % 2 == 0 or size == _DEGREE]
    if wrong:
        raise ValueError(f"windows must be odd, and 1 or at least {_DEGREE + 2}, got {wrong[0]}")
    return np.broadcast_to(np.array(sizes, dtype=np.intp), (columns,))


def _window(column: Floats, level: float) -> int:
    if level == 0.0:
        return 1
    from scipy.signal import savgol_coeffs

    risks = {1: level**2}
    for size in _WINDOWS:
        if size * _LEAST_WINDOWS > len(column):
            break
        own = float(savgol_coeffs(size, _DEGREE)[size // 2])
        left = _local_cubics(column, size) - column
        risks[size] = float(np.nanmean(left**2)) - level**2 + 2.0 * level**2 * own
    return min(risks, key=lambda size: risks[size])


def _local_cubics(column: Floats, size: int) -> Floats:
    if size == 1:
        return column.copy()
    # an import that takes longer than most calls
    from scipy.signal import savgol_filter

    found = column.copy()
    edges = np.flatnonzero(np.diff(np.isnan(column), prepend=True, append=True))
    for begin, end in pairwise(edges):
        if end - begin >= size and not np.isnan(column[begin]):
            found[begin:end] = savgol_filter(column[begin:end], size, _DEGREE)
    return found
