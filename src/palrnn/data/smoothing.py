"""A series without most of its white noise: local cubics, in windows as wide as its motion allows.

Around each row a cubic is fitted by least squares to the rows of a window, and its value there is taken
(Savitzky and Golay, 1964). A wide window averages more noise away and bends what moves; the best one has the
smallest estimate of the error that is left (Mallows' C_p, 1973),

    risk(w) = mean (s_w - x)^2 - sigma^2 + 2 sigma^2 h_w,    h_w: the mean weight of a row in its own value,

which is unbiased for white noise of deviation sigma (`noise_level`). It needs no model, and suits motion that
is smooth between samples; where the system itself is driven by noise, a smoother that knows a model of it
(`bootstrap(method="denoised")`) leaves less.
"""

from __future__ import annotations

import functools

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
    sizes = suggest_windows(series) if windows is None else _sizes(windows, series.shape[1])
    return np.stack([_local_cubics(c, int(w)) for c, w in zip(series.T, sizes, strict=True)], axis=1)


def _sizes(windows: ArrayLike, columns: int) -> NDArray[np.intp]:
    given = list(windows) if isinstance(windows, (list, tuple, np.ndarray)) else [windows]
    if len(given) not in (1, columns):
        raise ValueError(f"windows must be one number, or {columns}, one for each column, got {len(given)}")
    sizes = [as_int(size, "windows", least=1, most=10**6) for size in given]
    wrong = [size for size in sizes if size % 2 == 0 or size == _DEGREE]
    if wrong:
        raise ValueError(f"windows must be odd, and 1 or at least {_DEGREE + 2}, got {wrong[0]}")
    return np.broadcast_to(np.array(sizes, dtype=np.intp), (columns,))


def _window(column: Floats, level: float) -> int:
    seen = ~np.isnan(column)
    if level == 0.0:
        return 1
    risks = {1: level**2}
    for size in _WINDOWS:
        if size * _LEAST_WINDOWS > seen.sum():
            break
        left = _local_cubics(column, size) - column
        weight = _weight(_stretches(column), size) / seen.sum()
        risks[size] = float(np.nanmean(left**2)) - level**2 + 2.0 * level**2 * weight
    return min(risks, key=lambda size: risks[size])


def _weight(stretches: NDArray[np.intp], size: int) -> float:
    """Return the sum of the weights of all rows in their own values: 1 for one that stays as it is."""
    lengths = stretches[:, 1] - stretches[:, 0]
    own, long = _hat(size)[size // 2, size // 2], lengths >= size
    # both ends together are a window without its middle row, and the weights in a window add up to four
    inner = float((lengths[long] - size + 1).sum()) * own + int(long.sum()) * (_DEGREE + 1 - own)
    return inner + float(lengths[~long].sum())


def _local_cubics(column: Floats, size: int) -> Floats:
    found = column.copy()
    if size == 1 or len(column) < size:
        return found
    hat, half = _hat(size), size // 2
    middle = np.convolve(column, hat[half], "valid")
    whole = ~np.isnan(middle)
    found[half : len(column) - half][whole] = middle[whole]
    stretches = _stretches(column)
    long = stretches[stretches[:, 1] - stretches[:, 0] >= size]
    # one window at each end of a stretch, whose cubic serves the rows that have none of their own
    for begins, rows in ((long[:, 0], slice(0, half)), (long[:, 1] - size, slice(half + 1, size))):
        at = begins[:, None] + np.arange(size)
        found[at[:, rows]] = column[at] @ hat[rows].T
    return found


def _stretches(column: Floats) -> NDArray[np.intp]:
    """Return where rows without a gap between them begin and end, ``(S, 2)``."""
    return np.flatnonzero(np.diff(np.isnan(column), prepend=True, append=True)).reshape(-1, 2)


@functools.cache
def _hat(size: int) -> Floats:
    """Return the matrix that takes the rows of a window to the values of the cubic fitted to them."""
    basis = np.linalg.qr(np.vander(np.linspace(-1.0, 1.0, size), _DEGREE + 1))[0]
    return np.asarray(basis @ basis.T)
