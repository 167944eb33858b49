"""Traces of Louis' terms and their Monte Carlo errors, from sums of squares, without any matrix."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from palrnn.engine.checks import Floats


def louis_traces(
    between: Floats, within: Floats, inside: Floats, groups: NDArray[np.int64], complete: Floats, draws: int
) -> dict[str, tuple[float, float]]:
    """Return value and standard error of each trace and of the missing-information ratio.

    All arguments have one entry per path ``(S,)``: the squared deviation of its mean score from that of all
    paths, the sum of squared deviations of its ``draws`` scores from their mean, the squared deviation of
    its mean from that of the paths with the same codes, the number of these codes, and tr I_comp. The
    errors are those of the jackknife: all figures are computed again without each path.
    """
    paths = len(between)
    # without path j the squared deviations of the others from their own mean sum to b - S / (S - 1) b_j
    left = between.sum() - paths / (paths - 1) * between, within.sum() - within, complete.sum() - complete
    state, state_left = _state_traces(within, inside, groups, draws) if draws > 1 else (None, None)
    whole = _figures(between.sum(), within.sum(), complete.sum(), state, paths, draws)
    without = _figures(*left, state_left, paths - 1, draws)
    error = {name: math.sqrt(paths - 1) * float(np.std(values)) for name, values in without.items()}
    return {name: (float(value), error[name]) for name, value in whole.items()}


def _figures(
    between: Floats, within: Floats, complete: Floats, state: Floats | None, paths: int, draws: int
) -> dict[str, Floats]:
    """Return the traces from the sums over ``paths`` paths; NaN where a covariance needs more of them."""
    spread = between / (paths - 1) if paths > 1 else np.full_like(between, np.nan)
    missing, mean = spread + within / (paths * draws), complete / paths
    split = {} if state is None else {"missing_state": state, "missing_switching": missing - state}
    return {"complete": mean, "missing": missing, "observed": mean - missing, "mir": missing / mean} | split


def _state_traces(
    within: Floats, inside: Floats, groups: NDArray[np.int64], draws: int
) -> tuple[Floats, Floats]:
    """Return tr(missing_state) of all paths, and without each of them."""
    paths = len(within)
    n, d, v = (_sums(groups, values) for values in (np.ones(paths), inside, within))

    def share(n: Floats, d: Floats, v: Floats) -> Floats:
        """n tr Cov(s | c) of the codes that n paths share."""
        several = n / np.maximum(n - 1, 1) * d + v / draws
        return np.where(n > 1, several, np.where(n == 1, v / (draws - 1), 0.0))

    total = share(n, d, v)
    n, d, v, own = n[groups], d[groups], v[groups], total[groups]
    rest = share(n - 1, d - n / np.maximum(n - 1, 1) * inside, v - within)
    return total.sum() / paths, (total.sum() - own + rest) / (paths - 1)


def _sums(groups: NDArray[np.int64], values: Floats) -> Floats:
    sums: Floats = np.bincount(groups, weights=values).astype(np.float64)
    return sums
