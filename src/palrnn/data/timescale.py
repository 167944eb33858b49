"""How long a series remembers itself, and the forcing interval that follows from it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palrnn.data.standardize import Standardizer
from palrnn.engine.checks import Floats, as_float, as_int, as_trials

# of how many parts of a period tau covers one; below and above which part of its first value an
# autocorrelation has forgotten, and comes back
_PARTS, _FORGOTTEN, _RETURNED = 8, 0.2, 0.3
#: Autocorrelation at lag 1 of samples of a flow: eight to the turn of its fastest oscillation have 0.7.
_SMOOTH = 0.5


def autocorrelation(x: ArrayLike | Sequence[ArrayLike], lags: int) -> Floats:
    """Return the autocorrelation of each coordinate at lags ``0 .. lags``, ``(lags + 1, N)``.

        r_i(k) = mean_t (x_{t,i} - m_i)(x_{t+k,i} - m_i) / mean_t (x_{t,i} - m_i)^2

    ``x`` is a series (T, N) or several trials with a common mean; pairs never reach over the end of a trial,
    and pairs with NaN are left out. Where no pair is left, the result is 0.
    """
    trials = as_trials(x, allow_nan=True)
    lags = as_int(lags, "lags", most=max(len(trial) for trial in trials) - 1)
    standard = Standardizer.fit(trials)
    products, pairs = np.zeros((lags + 1, standard.dim)), np.zeros((lags + 1, standard.dim))
    for trial in trials:
        seen = ~np.isnan(trial)
        products += _lagged(np.where(seen, standard.transform(trial), 0.0), lags)
        pairs += _pairs(seen, lags)
    covariance = products / np.maximum(pairs, 1.0)
    return covariance / covariance[0]


def is_smooth(x: ArrayLike | Sequence[ArrayLike]) -> bool:
    """Return whether ``x`` looks like samples of a flow: each coordinate is much like itself a step later."""
    return bool((autocorrelation(x, 1)[1] > _SMOOTH).all())


def suggest_tau(x: ArrayLike | Sequence[ArrayLike], *, level: float = 0.5, most: int = 100) -> int:
    """Return a forcing interval tau for training on ``x``, in steps: how far the present still tells.

    The rule: the half-life of the autocorrelation, the first lag at which its mean over coordinates has
    fallen below ``level`` times its value at lag 1; but at least an eighth of the period, where the series
    comes back to itself; at least 1, at most ``most``. Over that time the present still says something about
    the future, yet a free-running model has to carry the dynamics itself. The reference is lag 1, not lag 0,
    because observation noise lowers all lags but 0. The period counts for series of short events: a spike is
    forgotten after its own width, a step or two, and forcing that often would teach nothing about the time
    between spikes. On Lorenz-63 sampled at 0.01 the rule gives 16 or 17, and the paper trains with 16. A
    series without memory (a map far from continuous time, or noise) gets 1.

    It is a starting point: for a chaotic system the useful range ends where errors outgrow the attractor, a
    few times ``ln 2 / largest Lyapunov exponent`` (Mikhaeil et al., 2022), which `lyapunov_spectrum` measures
    once there is a model.
    """
    level, most = as_float(level, "level", above=0.0, most=0.99), as_int(most, "most", least=1)
    trials = as_trials(x, min_steps=4, allow_nan=True)
    longest = max(len(trial) for trial in trials)
    near, far = min(most, longest // 2), min(_PARTS * most, longest // 2)
    memory = autocorrelation(trials, max(near, far)).mean(axis=1)
    noise = 2.0 / np.sqrt(sum(len(trial) for trial in trials))
    if memory[1] <= noise:
        return 1
    fallen = memory[1 : near + 1] < level * memory[1]
    half_life = int(fallen.argmax()) + 1 if fallen.any() else near
    return min(most, max(half_life, _period(memory) // _PARTS))


def _period(memory: Floats) -> int:
    """Return the lag of the first return of an autocorrelation, the top of its first bump; 0 without one."""
    forgotten = memory < _FORGOTTEN * memory[1]
    back = memory >= _RETURNED * memory[1]
    fall = int(forgotten.argmax())
    rise = fall + int(back[fall:].argmax())
    if not forgotten[fall] or not back[rise]:
        return 0
    end = rise + int(forgotten[rise:].argmax()) if forgotten[rise:].any() else len(memory)
    return rise + int(memory[rise:end].argmax())


def _pairs(seen: NDArray[np.bool_], lags: int) -> Floats:
    """Return how many pairs of rows are seen at each lag, ``(lags + 1, N)``, or ``(lags + 1, 1)`` if all."""
    if seen.all():
        return np.maximum(len(seen) - np.arange(lags + 1.0), 0.0)[:, None]
    return np.round(_lagged(seen.astype(np.float64), lags))


def _lagged(x: Floats, lags: int) -> Floats:
    """Return ``sum_t x_t x_{t+k}`` per column for ``k = 0 .. lags``, zero beyond the length of ``x``."""
    length = 1 << (2 * len(x) - 1).bit_length()
    sums = np.fft.irfft(np.abs(np.fft.rfft(x, length, axis=0)) ** 2, length, axis=0)
    result = np.zeros((lags + 1, x.shape[1]))
    kept = min(lags + 1, len(x))
    result[:kept] = sums[:kept]
    return result
