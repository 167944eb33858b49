"""Observation noise: added, and estimated from a series."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from palrnn.data.standardize import mean_and_deviation
from palrnn.engine.checks import Floats, as_float, as_series, as_shape
from palrnn.engine.gaps import refuse_empty_columns
from palrnn.engine.seeds import generator


def add_observation_noise(
    x: ArrayLike, std: float, *, scale: ArrayLike | None = None, seed: int = 0
) -> Floats:
    """Return ``x + std * diag(scale) * eta`` with standard normal ``eta``, a new ``(T, N)`` array.

    ``scale (N,)`` is the deviation of the training part, so that ``std`` is in standardised units; by default
    the deviation of ``x`` itself.
    """
    series = as_series(x, min_steps=1)
    std = as_float(std, "std", least=0.0)
    spread = mean_and_deviation(series)[1] if scale is None else as_shape(scale, "scale", (series.shape[1],))
    if (spread < 0).any():
        raise ValueError(f"scale must be >= 0, got {spread.min():g}")
    # a stream of its own: with the seed that simulated x, the noises must not be the system's own again
    eta = generator(seed, "observation noise").standard_normal(series.shape)
    return series + std * spread * eta


# orders of differences that are tried; how far their correlations may be from those of white noise; and the
# part of a column that may be noise before its own motion is taken for it, as that of a map is
_ORDERS, _OFF, _MOST = 8, 0.05, 0.5
# fewer products of differences tell nothing
_LEAST = 6


def noise_level(x: ArrayLike) -> Floats:
    """Return the deviation of white observation noise in each column of ``x (T, N)``, ``(N,)``, in its units.

    Differences of order k shrink smooth motion and make white noise grow: where the correlations of the k-th
    differences at lags 1 and 2 are those of noise, ``-k/(k+1)`` and ``k(k-1)/((k+1)(k+2))``, their variance
    is ``C(2k, k)`` times that of the noise (after von Neumann, 1941). The lowest such k is taken. 0 where
    there is none: no noise, or too little to be seen. That needs a series sampled finely enough for its
    motion to be smooth: what would be more than half of a column is not believed, and 0. With gaps (NaN), the
    differences count that none of them is in.
    """
    series = as_series(x, min_steps=_ORDERS + 8, allow_nan=True)
    refuse_empty_columns([series], "x")
    return np.array([_column_level(column) for column in series.T])


def _column_level(column: Floats) -> float:
    deviation = float(np.nanstd(column))
    if deviation == 0.0:
        return 0.0
    unit = (column - np.nanmean(column)) / deviation
    for k in range(1, _ORDERS + 1):
        change = np.diff(unit, k)
        squares, once, twice = (_seen(change[j:] * change[: len(change) - j]) for j in range(3))
        if len(twice) < _LEAST:
            return 0.0
        variance = float(np.mean(squares))
        off = _OFF + 3.0 / math.sqrt(len(squares))
        first = float(np.mean(once)) + variance * k / (k + 1)
        second = float(np.mean(twice)) - variance * k * (k - 1) / ((k + 1) * (k + 2))
        if max(abs(first), abs(second)) < off * variance:
            level = math.sqrt(variance / math.comb(2 * k, k))
            return level * deviation if level <= _MOST else 0.0
    return 0.0


def _seen(values: Floats) -> Floats:
    return values[~np.isnan(values)]
