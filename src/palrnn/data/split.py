"""Parts of a series: train and test, random subsequences, and windows with their left boundary."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike

from palrnn.engine.checks import Floats, as_float, as_int, as_series
from palrnn.engine.seeds import generator


def train_test_split(x: ArrayLike, test_fraction: float = 0.2) -> tuple[Floats, Floats]:
    """Return the first part of ``x (T, N)`` for training and the last ``test_fraction`` of it for testing.

    Each part has two steps at least.
    """
    series = as_series(x, min_steps=4, allow_nan=True)
    fraction = as_float(test_fraction, "test_fraction", above=0.0, most=0.9)
    steps = series.shape[0]
    cut = min(max(2, steps - round(fraction * steps)), steps - 2)
    return series[:cut].copy(), series[cut:].copy()


def subsequences(x: ArrayLike, count: int, length: int, *, seed: int = 0) -> Floats:
    """Return ``(count, length, N)`` contiguous stretches of ``x (T, N)``, drawn with replacement."""
    series = as_series(x, min_steps=2)
    count, length = as_int(count, "count", least=1), as_int(length, "length", least=2, most=len(series))
    starts = generator(seed, "subsequences").integers(0, len(series) - length + 1, size=count)
    return np.ascontiguousarray(series[starts[:, None] + np.arange(length)])


def windows(x: ArrayLike, length: int) -> Floats:
    """Return the non-overlapping windows of ``x (T, N)`` as ``(K, length + 1, N)``.

    Window k holds its left boundary ``x[k * length]`` followed by the ``length`` steps scored given it
    (``t_k = 1 + (k - 1) L`` with ``t_k + L <= T`` in the paper's 1-based time). NaN is kept: not observed.
    """
    length = as_int(length, "length", least=1)
    series = as_series(x, min_steps=length + 1, allow_nan=True)
    views = sliding_window_view(series, length + 1, axis=0)[::length]
    return np.ascontiguousarray(views.transpose(0, 2, 1))
