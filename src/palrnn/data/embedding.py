"""Delay embedding: past values as further coordinates, for systems that are observed in part only."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from palrnn.data.timescale import suggest_tau
from palrnn.engine.checks import Floats, as_int, as_series, as_trials
from palrnn.engine.gaps import whole_rows

# neighbours that predict, how many rows are searched and how many predicted, of which part at the end
_NEIGHBOURS, _SEARCHED, _PREDICTED, _JUDGED = 10, 20_000, 2000, 0.2
# another lag must lower the error by so much of itself, and of the variance of the series
_WORTH, _NEGLIGIBLE = 0.5, 1e-4
# of a trial, the part that its past may take
_PAST = 0.1


def delay_embed(x: ArrayLike, lags: int, delay: int = 1) -> Floats:
    """Return ``x (T, N)`` with its past beside it: ``(T - (lags - 1) * delay, lags * N)``.

    Row t holds ``x_t, x_{t-delay}, ..., x_{t-(lags-1)*delay}``, the present first, so that the first N
    columns are the observations themselves. By the theorem of Takens (1981) such vectors are, for almost
    every smooth observation, coordinates of the whole state as soon as ``lags`` exceeds twice the dimension
    of the attractor, and often earlier. A common choice of ``delay`` is where the autocorrelation has fallen
    to two thirds or a half (`suggest_tau` gives the latter). NaN (not observed) is carried along.
    """
    lags, delay = as_int(lags, "lags", least=1), as_int(delay, "delay", least=1)
    lost = (lags - 1) * delay
    series = as_series(x, min_steps=lost + 2, allow_nan=True)
    kept = len(series) - lost
    return np.concatenate([series[lost - k * delay :][:kept] for k in range(lags)], axis=1)


def usual_delay(x: ArrayLike | Sequence[ArrayLike]) -> int:
    """Return two thirds of the forcing interval of `suggest_tau`, at least 1.

    Of Lorenz-63 and Roessler from one coordinate, clean and noisy, neighbours at such delays predict best.
    """
    return max(1, round(2 * suggest_tau(x) / 3))


def suggest_lags(x: ArrayLike | Sequence[ArrayLike], *, delay: int | None = None, most: int = 7) -> int:
    """Return how many lags, ``delay`` apart, tell the future of ``x`` about as well as more of them would.

    With 1 to ``most`` lags, the last fifth of the series is predicted ``delay`` steps ahead by the mean of
    the ten nearest neighbours among the other rows (simplex projection; Sugihara and May, 1990). Too few lags
    take states for neighbours that are none, too many find no near ones, and noise hurts all alike. The
    answer is the smallest number whose error is at most half as large again as the best (or 0.01 % of the
    variance above it), since every lag is one more coordinate to learn; where nothing predicts, as of white
    noise, it is 1. ``x`` is a series ``(T, N)`` or several trials; rows whose
    past has gaps are left out. ``delay=None`` takes two thirds of `suggest_tau`.
    """
    most = as_int(most, "most", least=1)
    trials = as_trials(x, min_steps=4, allow_nan=True)
    delay = usual_delay(trials) if delay is None else as_int(delay, "delay", least=1)
    longest = max(map(len, trials))
    most = min(most, 1 + int(_PAST * longest) // delay)
    lost = (most - 1) * delay
    pasts, futures = [], []
    for trial in trials:
        if len(trial) > lost + delay + 1:
            pasts.append(delay_embed(trial, most, delay)[:-delay])
            futures.append(trial[lost + delay :])
    if most == 1 or not pasts:
        return 1
    past, future = np.concatenate(pasts), np.concatenate(futures)
    whole = whole_rows(past) & whole_rows(future)
    past, future = past[whole][-_SEARCHED:], future[whole][-_SEARCHED:]
    judged = int(_JUDGED * len(past))
    known = len(past) - judged - lost - delay  # what lies between shares rows with what is predicted
    variance = float(np.var(future, axis=0).sum())
    if min(judged, known) < _NEIGHBOURS or variance == 0.0:
        return 1
    asked = np.linspace(len(past) - judged, len(past) - 1, min(judged, _PREDICTED)).astype(int)
    dim = trials[0].shape[1]
    errors = [
        _neighbour_error(past[:, : lags * dim], future, known, asked) / variance
        for lags in range(1, most + 1)
    ]
    good = np.array(errors) <= (1.0 + _WORTH) * min(errors) + _NEGLIGIBLE
    return int(good.argmax()) + 1


def _neighbour_error(past: Floats, future: Floats, known: int, asked: Floats) -> float:
    """Return the squared error of the mean future of the nearest of ``known`` rows, over rows ``asked``."""
    from scipy.spatial import KDTree

    _, nearest = KDTree(past[:known]).query(past[asked], k=_NEIGHBOURS)
    predicted = future[nearest].mean(axis=1)
    return float(((predicted - future[asked]) ** 2).sum(axis=1).mean())
