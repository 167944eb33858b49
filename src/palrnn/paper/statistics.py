"""Rank statistics with confidence intervals, as in the paper's fixed-Q table.

Spearman r    the correlation of ranks, with the p-value of the t distribution with n - 2 degrees of freedom
partial r     the correlation of what is left of both ranks after a linear regression on the ranks of others
interval      the 2.5 and 97.5 percentiles over bootstrap resamples (Efron, 1979)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
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


# resamples that are looked at together: a few megabytes of a usual table
_STACK = 250
UNKNOWN = Interval(math.nan, math.nan, math.nan)


class Association(NamedTuple):
    """How two quantities go together: Spearman r with its interval and p, and partial r with its interval."""

    spearman: Interval
    p: float
    partial: Interval


def spearman(a: ArrayLike, b: ArrayLike) -> tuple[float, float]:
    """Return the rank correlation of ``a (n,)`` and ``b (n,)`` and its p-value; NaN where one is constant."""
    from scipy.stats import t as student

    a, b = _pair(a, b)
    r = float(rank_correlations(a, b))
    if not math.isfinite(r) or abs(r) >= 1:
        return r, 0.0 if math.isfinite(r) else math.nan
    freedom = len(a) - 2
    return r, float(2 * student.sf(abs(r) * math.sqrt(freedom / (1 - r * r)), freedom))


def partial_spearman(a: ArrayLike, b: ArrayLike, *controls: ArrayLike) -> float:
    """Return the correlation of the ranks of ``a`` and ``b`` after regressing both on those of ``controls``.

    NaN where the controls explain one of them completely.
    """
    a, b = _pair(a, b)
    return float(rank_correlations(a, b, *(as_shape(control, "control", a.shape) for control in controls)))


def rank_correlations(a: Floats, b: Floats, *controls: Floats) -> Floats:
    """Return the correlation of ranks of each row of ``a`` and ``b (..., n)`` given those of ``controls``.

    NaN where a row is constant, or explained by the controls completely.
    """
    return _partials(*(_ranks(values) for values in (a, b, *controls)))


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
    if np.size(a) < 3:
        return Association(UNKNOWN, math.nan, UNKNOWN)
    a, b = _pair(a, b)
    third = as_shape(control, "control", a.shape)
    r, p = spearman(a, b)
    draws = _resamples(len(a), resamples, seed)
    ranks = [_ranks(values[draws]) for values in (a, b, third)]
    plain, partial = _partials(*ranks[:2]), _partials(*ranks)
    return Association(_percentiles(r, plain), p, _percentiles(partial_spearman(a, b, third), partial))


def bootstrap(
    values: ArrayLike,
    statistic: Callable[[Floats], Floats],
    *,
    groups: ArrayLike | None = None,
    resamples: int = 2000,
    seed: int = 0,
) -> Interval:
    """Return a statistic of ``values (n, ...)`` with its bootstrap interval: rows drawn with replacement.

    ``statistic`` maps a stack of samples ``(m, n, ...)`` to their values ``(m,)``. With ``groups (n,)``,
    whole groups are drawn: rows of one model are not independent of each other. Without rows all is NaN.
    """
    rows = np.asarray(values, dtype=np.float64)
    if not len(rows):
        return UNKNOWN
    members = list(np.arange(len(rows))[:, None]) if groups is None else _groups(len(rows), groups)
    draws = _resamples(len(members), resamples, seed)
    if len({len(each) for each in members}) == 1:
        table = np.stack(members)
        parts = np.array_split(draws, -(-len(draws) // _STACK))
        stacks = [table[part].reshape(len(part), -1) for part in parts]
    else:
        stacks = [np.concatenate([members[k] for k in draw])[None] for draw in draws]
    drawn = [value for stack in stacks for value in statistic(rows[stack])]
    return _percentiles(float(statistic(rows[None])[0]), drawn)


def median(values: ArrayLike, *, groups: ArrayLike | None = None, resamples: int = 2000) -> Interval:
    """Return the median with its bootstrap interval."""
    return bootstrap(values, lambda rows: np.median(rows, axis=1), groups=groups, resamples=resamples)


def _groups(count: int, groups: ArrayLike) -> list[NDArray[np.intp]]:
    labels = np.asarray(groups)
    if labels.shape != (count,):
        raise ValueError(f"groups must have shape ({count},), got {labels.shape}")
    return [np.flatnonzero(labels == label) for label in np.unique(labels)]


def _resamples(count: int, resamples: int, seed: int) -> NDArray[np.int64]:
    resamples = as_int(resamples, "resamples", least=1)
    return generator(seed, "bootstrap").integers(0, count, (resamples, count))


def _ranks(values: Floats) -> Floats:
    from scipy.stats import rankdata

    ranks: Floats = rankdata(values, axis=-1)
    return ranks


def _partials(a: Floats, b: Floats, *controls: Floats) -> Floats:
    """Return the correlation of each row of ``a`` and ``b (..., n)``, both regressed on ``controls``."""
    bases: list[Floats] = []
    for control in controls:
        bases.append(_residuals(control, bases))
    return _correlations(*(_residuals(values, bases) for values in (a, b)))


def _residuals(ranks: Floats, bases: Sequence[Floats]) -> Floats:
    """Return what regressions of each row of ``ranks (..., n)`` on orthogonal ``bases`` leave."""
    rest = ranks - ranks.mean(axis=-1, keepdims=True)
    for base in bases:
        power = (base * base).sum(axis=-1, keepdims=True)
        slope = (base * rest).sum(axis=-1, keepdims=True) / np.where(power > 0, power, 1.0)
        rest = rest - slope * base
    return _without_rounding(rest)


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
