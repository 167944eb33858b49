"""Delay embedding: past values as further coordinates, for systems that are observed in part only."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from palrnn.engine.checks import Floats, as_int, as_series


def delay_embed(x: ArrayLike, lags: int, delay: int = 1) -> Floats:
    """Return ``x (T, N)`` with its past beside it: ``(T - (lags - 1) * delay, lags * N)``.

    Row t holds ``x_t, x_{t-delay}, ..., x_{t-(lags-1)*delay}``, the present first, so that the first N
    columns are the observations themselves. By the theorem of Takens (1981) such vectors are, for almost
    every smooth observation, coordinates of the whole state as soon as ``lags`` exceeds twice the dimension
    of the attractor, and often earlier. A common choice of ``delay`` is where the autocorrelation has fallen
    to about a half or a third (`suggest_tau` gives the former). NaN (not observed) is carried along.
    """
    lags, delay = as_int(lags, "lags", least=1), as_int(delay, "delay", least=1)
    lost = (lags - 1) * delay
    series = as_series(x, min_steps=lost + 2, allow_nan=True)
    kept = len(series) - lost
    return np.concatenate([series[lost - k * delay :][:kept] for k in range(lags)], axis=1)
