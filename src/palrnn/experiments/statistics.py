"""Rank statistics with confidence intervals, as in the paper's fixed-Q table.

Spearman r    the correlation of ranks, with the p-value of the t distribution with n - 2 degrees of freedom
partial r     the correlation of what is left of both ranks after a linear regression on the ranks of a third
interval      the 2.5 and 97.5 percentiles over bootstrap resamples (Efron, 1979)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata, spearmanr

from palrnn.engine.checks import Floats, as_int, as_shape
from palrnn.engine.seeds import generator


class Interval(NamedTuple):
    """A number with its 95 % confidence interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3g} [{self.low:.3g}, {self.high:.3g}]"


class Association(NamedTuple):
    """How two quantities go together: Spearman r with its interval and p, and partial r with its interval."""

    spearman: Interval
    p: float
    partial: Interval


def spearman(a: ArrayLike, b: ArrayLike) -> tuple[float, float]:
    """Return the rank correlation of ``a (n,)`` and ``b (n,)`` and its p-value; NaN where one is constant."""
    a, b = _pair(a, b)
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return math.nan, math.nan
    found = spearmanr(a, b)
    return float(found.statistic), float(found.pvalue)


def partial_spearman(a: ArrayLike, b: ArrayLike, control: ArrayLike) -> float:
    """Return the correlation of the ranks of ``a`` and ``b`` after regressing both on those of ``control``.

    NaN where the control explains one of them completely.
    """
    a, b = _pair(a, b)
    design = np.column_stack([np.ones(len(a)), rankdata(as_shape(control, "control", a.shape))])
    left = []
    for values in (a, b):
        ranks = rankdata(values)
        residual = ranks - design @ np.linalg.lstsq(design, ranks, rcond=None)[0]
        # a residual of rounding size is none: ranks are whole or half numbers
        left.append(residual if np.abs(residual).max() > 1e-9 * len(a) else np.zeros(len(a)))
    norm = math.sqrt(float(left[0] @ left[0]) * float(left[1] @ left[1]))
    return float(left[0] @ left[1]) / norm if norm > 0 else math.nan


def association(
    a: ArrayLike, b: ArrayLike, control: ArrayLike, *, resamples: int = 2000, seed: int = 0
) -> Association:
    """Return Spearman and partial r of ``a`` and ``b (n,)`` given ``control (n,)``, with intervals."""
    a, b = _pair(a, b)
    third = as_shape(control, "control", a.shape)
    r, p = spearman(a, b)
    draws = _resamples(len(a), resamples, seed)
    plain = _percentiles(r, [spearman(a[k], b[k])[0] for k in draws])
    partial = _percentiles(
        partial_spearman(a, b, third), [partial_spearman(a[k], b[k], third[k]) for k in draws]
    )
    return Association(plain, p, partial)


def bootstrap(
    values: ArrayLike,
    statistic: Callable[[Floats], float],
    *,
    groups: ArrayLike | None = None,
    resamples: int = 2000,
    seed: int = 0,
) -> Interval:
    """Return ``statistic(values)`` with its bootstrap interval; rows ``(n, ...)`` are drawn with replacement.

    With ``groups (n,)``, whole groups are drawn: rows of one model are not independent of each other.
    """
    rows = np.asarray(values, dtype=np.float64)
    members = _groups(len(rows), groups)
    drawn = []
    for draw in _resamples(len(members), resamples, seed):
        drawn.append(statistic(rows[np.concatenate([members[k] for k in draw])]))
    return _percentiles(statistic(rows), drawn)


def _groups(count: int, groups: ArrayLike | None) -> list[NDArray[np.intp]]:
    if groups is None:
        return [np.array([k]) for k in range(count)]
    labels = np.asarray(groups)
    if labels.shape != (count,):
        raise ValueError(f"groups must have shape ({count},), got {labels.shape}")
    return [np.flatnonzero(labels == label) for label in np.unique(labels)]


def _resamples(count: int, resamples: int, seed: int) -> NDArray[np.int64]:
    resamples = as_int(resamples, "resamples", least=1)
    return generator(seed, "bootstrap").integers(0, count, (resamples, count))


def _percentiles(value: float, drawn: list[float]) -> Interval:
    # a resample without any variation has no correlation; it says nothing and is left out
    kept = np.array(drawn)[np.isfinite(drawn)]
    low, high = np.percentile(kept, [2.5, 97.5]) if len(kept) else (math.nan, math.nan)
    return Interval(float(value), float(low), float(high))


def _pair(a: ArrayLike, b: ArrayLike) -> tuple[Floats, Floats]:
    first = as_shape(a, "a", (None,))
    if len(first) < 3:
        raise ValueError(f"a must have at least 3 entries, got {len(first)}")
    return first, as_shape(b, "b", first.shape)
