"""Rank statistics with confidence intervals, as in the paper's fixed-Q table.

Spearman r    the correlation of ranks, with the p-value of the t distribution with n - 2 degrees of freedom
partial r     the correlation of what is left of both ranks after a linear regression on the ranks of others
interval      the 2.5 and 97.5 percentiles over bootstrap resamples (Efron, 1979)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palrnn.engine.checks import Floats, as_int, as_shape
from palrnn.engine.seeds import generator


class Interval(NamedTuple):
    """A number with its 95 % confidence interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3g} [{self.low:.3g}, {self.high:.3g}]"


UNKNOWN = Interval(math.nan, math.nan, math.nan)


class Association(NamedTuple):
    """How two quantities go together: Spearman r with its interval and p, and partial r with its interval."""

    spearman: Interval
    p: float
    partial: Interval


def spearman(a: ArrayLike, b: ArrayLike) -> tuple[float, float]:
    """Return the rank correlation of ``a (n,)`` and ``b (n,)`` and its p-value; NaN where one is constant."""
    from scipy.stats import rankdata
    from scipy.stats import t as student

    a, b = _pair(a, b)
    r = float(_correlations(rankdata(a), rankdata(b)))
    if not math.isfinite(r) or abs(r) >= 1:
        return r, 0.0 if math.isfinite(r) else math.nan
    freedom = len(a) - 2
    return r, float(2 * student.sf(abs(r) * math.sqrt(freedom / (1 - r * r)), freedom))


def partial_spearman(a: ArrayLike, b: ArrayLike, *controls: ArrayLike) -> float:
    """Return the correlation of the ranks of ``a`` and ``b`` after regressing both on those of ``controls``.

    NaN where the controls explain one of them completely.
    """
    from scipy.stats import rankdata

    a, b = _pair(a, b)
    ranks = [rankdata(as_shape(control, "control", a.shape)) for control in controls]
    others = np.column_stack([np.ones(len(a)), *ranks])
    left = []
    for values in (rankdata(a), rankdata(b)):
        residual = values - others @ np.linalg.lstsq(others, values, rcond=None)[0]
        left.append(_without_rounding(residual))
    return float(_correlations(*left))


def superiority(
    values: ArrayLike,
    chosen: ArrayLike,
    strata: ArrayLike | None = None,
    *,
    resamples: int = 2000,
    seed: int = 0,
) -> Interval:
    """Return the probability that a chosen one has the larger of two ``values (n,)``, ties counting a half.

    Pairs are of one ``chosen (n,)`` and one other, of the same stratum if ``strata (n,)`` are given (Mann and
    Whitney, 1947). NaN without a pair.
    """
    numbers, mark = np.asarray(values, dtype=np.float64), np.asarray(chosen, dtype=bool)
    if not len(numbers):
        return UNKNOWN
    pairs = mark[:, None] & ~mark
    if strata is not None:
        labels = np.asarray(strata)
        pairs = pairs & (labels[:, None] == labels)
    above, below = numbers[:, None], numbers[None, :]
    larger = pairs * np.where(above == below, 0.5, above > below)
    draws = _resamples(len(numbers), resamples, seed)
    # how often each was drawn; the first row is the sample itself
    weights = np.stack([np.bincount(draw, minlength=len(numbers)) for draw in (range(len(numbers)), *draws)])
    wins, count = (((weights @ table) * weights).sum(axis=1) for table in (larger, pairs.astype(float)))
    shares = np.where(count > 0, wins / np.where(count > 0, count, 1.0), np.nan)
    return _percentiles(float(shares[0]), shares[1:])


def association(
    a: ArrayLike, b: ArrayLike, control: ArrayLike, *, resamples: int = 2000, seed: int = 0
) -> Association:
    """Return Spearman and partial r of ``a`` and ``b (n,)`` given ``control (n,)``, with intervals.

    All are NaN for fewer than three pairs.
    """
    from scipy.stats import rankdata

    if np.size(a) < 3:
        return Association(UNKNOWN, math.nan, UNKNOWN)
    a, b = _pair(a, b)
    third = as_shape(control, "control", a.shape)
    r, p = spearman(a, b)
    draws = _resamples(len(a), resamples, seed)
    plain = _correlations(rankdata(a[draws], axis=1), rankdata(b[draws], axis=1))
    partial = _partials(a[draws], b[draws], third[draws])
    return Association(_percentiles(r, plain), p, _percentiles(partial_spearman(a, b, third), partial))


def bootstrap(
    values: ArrayLike,
    statistic: Callable[[Floats], float],
    *,
    groups: ArrayLike | None = None,
    resamples: int = 2000,
    seed: int = 0,
) -> Interval:
    """Return ``statistic(values)`` with its bootstrap interval; rows ``(n, ...)`` are drawn with replacement.

    With ``groups (n,)``, whole groups are drawn: rows of one model are not independent of each other. Without
    rows all is NaN.
    """
    rows = np.asarray(values, dtype=np.float64)
    if not len(rows):
        return UNKNOWN
    if groups is None:
        drawn = [statistic(rows[draw]) for draw in _resamples(len(rows), resamples, seed)]
    else:
        members = _groups(len(rows), groups)
        draws = _resamples(len(members), resamples, seed)
        drawn = [statistic(rows[np.concatenate([members[k] for k in draw])]) for draw in draws]
    return _percentiles(statistic(rows), drawn)


def median(values: ArrayLike, *, groups: ArrayLike | None = None, resamples: int = 2000) -> Interval:
    """Return the median with its bootstrap interval."""
    return bootstrap(values, lambda rows: float(np.median(rows)), groups=groups, resamples=resamples)


def _groups(count: int, groups: ArrayLike) -> list[NDArray[np.intp]]:
    labels = np.asarray(groups)
    if labels.shape != (count,):
        raise ValueError(f"groups must have shape ({count},), got {labels.shape}")
    return [np.flatnonzero(labels == label) for label in np.unique(labels)]


def _resamples(count: int, resamples: int, seed: int) -> NDArray[np.int64]:
    resamples = as_int(resamples, "resamples", least=1)
    return generator(seed, "bootstrap").integers(0, count, (resamples, count))


def _partials(a: Floats, b: Floats, control: Floats) -> Floats:
    """Return the partial rank correlation of each row ``(..., n)``."""
    from scipy.stats import rankdata

    ranks = rankdata(control, axis=-1)
    left = [_residuals(rankdata(values, axis=-1), ranks) for values in (a, b)]
    return _correlations(*left)


def _residuals(ranks: Floats, control: Floats) -> Floats:
    """Return what a linear regression of each row of ``ranks (..., n)`` on ``control (..., n)`` leaves."""
    y, x = (values - values.mean(axis=-1, keepdims=True) for values in (ranks, control))
    power = (x * x).sum(axis=-1, keepdims=True)
    slope = (x * y).sum(axis=-1, keepdims=True) / np.where(power > 0, power, 1.0)
    return _without_rounding(y - slope * x)


def _without_rounding(residual: Floats) -> Floats:
    # ranks are whole or half numbers: a residual of rounding size is none
    size = np.abs(residual).max(axis=-1, keepdims=True)
    return np.where(size > 1e-9 * residual.shape[-1], residual, 0.0)


def _correlations(a: Floats, b: Floats) -> Floats:
    """Return Pearson's correlation of each row of ``a`` and ``b (..., n)``; NaN where one is constant."""
    a, b = (values - values.mean(axis=-1, keepdims=True) for values in (a, b))
    power = (a * a).sum(axis=-1) * (b * b).sum(axis=-1)
    cross = (a * b).sum(axis=-1)
    return np.where(power > 0, cross / np.sqrt(np.where(power > 0, power, 1.0)), np.nan)


def _percentiles(value: float, drawn: ArrayLike) -> Interval:
    # a resample without any variation has no correlation; it says nothing and is left out
    values = np.asarray(drawn, dtype=np.float64)
    kept = values[np.isfinite(values)]
    low, high = np.percentile(kept, [2.5, 97.5]) if len(kept) else (math.nan, math.nan)
    return Interval(float(value), float(low), float(high))


def _pair(a: ArrayLike, b: ArrayLike) -> tuple[Floats, Floats]:
    first = as_shape(a, "a", (None,))
    if len(first) < 3:
        raise ValueError(f"a must have at least 3 entries, got {len(first)}")
    return first, as_shape(b, "b", first.shape)
