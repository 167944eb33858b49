"""The M-step: the parameters that the smoothing samples speak for, in closed form.

Row i of the drift solves its own ridge regression on f_i = [z_i, D(c) z, 1] (M + 2 features),

    (G_i + ridge I) theta_i = b_i + ridge theta_i^0,     G_i = mean f_i f_i^T,   b_i = mean z'_i f_i,

with theta^0 = 0 (the plain ridge) or the current parameters. The process variance does not enter: it scales
a row's equation as a whole. For an ungated unit z_i is both a feature of its own and an entry of D(c) z: A_ii
and W_ii are collinear, and the ridge shares the coefficient between them (ridge = 0 takes the solution of
least norm).

The deviations are the root mean squared residuals of that drift, no smaller than the floor.
"""

from __future__ import annotations

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq

from palrnn.engine.checks import Floats
from palrnn.model import ALRNN, PALRNN
from palrnn.tuning.statistics import GATE_STDS, Statistics


def rows(drift: ALRNN) -> Floats:
    """Return the drift as ``(M, M + 2)`` rows theta_i = [A_i, W_i, h_i]."""
    return drift.rows


def from_rows(theta: Floats, drift: ALRNN) -> ALRNN:
    """Return ``drift`` with the rows ``theta (M, M + 2)``."""
    return drift.with_rows(theta)


def row_moments(statistics: Statistics) -> tuple[Floats, Floats]:
    """Return the mean Gram matrices G ``(M, M+2, M+2)`` and mean cross products b ``(M, M+2)`` by row."""
    dim = statistics.square.shape[0]
    own = np.column_stack([np.arange(dim), np.tile(np.arange(dim, 2 * dim + 1), (dim, 1))])
    gram = statistics.gram[own[:, :, None], own[:, None, :]] / statistics.transitions
    cross = np.take_along_axis(statistics.cross, own, axis=1) / statistics.transitions
    return gram, cross


def drift_solution(
    statistics: Statistics, drift: ALRNN, *, ridge: float, towards: Floats | None = None
) -> ALRNN:
    """Return the drift that solves every row's ridge regression, pulled ``towards (M, M+2)`` or to zero."""
    gram, cross = row_moments(statistics)
    if ridge == 0:
        theta = np.stack([np.linalg.lstsq(G, b, rcond=None)[0] for G, b in zip(gram, cross, strict=True)])
    else:
        pull = cross if towards is None else cross + ridge * towards
        theta = np.linalg.solve(gram + ridge * np.eye(gram.shape[1]), pull[..., None])[..., 0]
    return from_rows(theta, drift)


def process_residuals(statistics: Statistics, drift: ALRNN) -> Floats:
    """Return the mean squared one-step error of each unit under ``drift``, ``(M,)``."""
    gram, cross = row_moments(statistics)
    theta = rows(drift)
    explained = 2.0 * np.einsum("ij,ij->i", theta, cross) - np.einsum("ij,ijk,ik->i", theta, gram, theta)
    # the two sides nearly cancel where the noise is small: rounding may leave a negative number
    return np.maximum(statistics.square / statistics.transitions - explained, 0.0)


def noise_solution(
    statistics: Statistics, drift: ALRNN, *, diagonal: bool, tied_start: bool, floor: float
) -> tuple[float | Floats, float | Floats]:
    """Return the process and observation deviations, one each or one per coordinate.

    Where the start law follows the process noise (``PALRNN.initial`` is None), first states are draws
    from the same noise and count with the transitions (``tied_start``).
    """
    total, count = process_residuals(statistics, drift) * statistics.transitions, statistics.transitions
    if tied_start:
        total, count = total + statistics.start, count + statistics.starts
    process = total / count
    seen = statistics.observed > 0
    if diagonal:
        # a coordinate that was never observed says nothing about its noise: it takes the others' mean
        pooled = statistics.residual.sum() / max(statistics.observed.sum(), 1.0)
        observation = np.where(seen, statistics.residual / np.maximum(statistics.observed, 1.0), pooled)
        return np.sqrt(np.maximum(process, floor**2)), np.sqrt(np.maximum(observation, floor**2))
    observation = statistics.residual.sum() / max(statistics.observed.sum(), 1.0)
    return float(np.sqrt(max(process.mean(), floor**2))), float(np.sqrt(max(observation, floor**2)))


def gate_solution(statistics: Statistics) -> float:
    """Return the gate deviation of greatest likelihood, by a spline through its values at ``GATE_STDS``.

    The log likelihood, sum of log Phi(+-z / gate_std), is concave in 1 / gate_std, so it has one maximum.
    """
    best = int(np.argmax(statistics.gates))
    if best in (0, GATE_STDS.size - 1):
        return float(GATE_STDS[best])
    slope = CubicSpline(np.log(GATE_STDS), statistics.gates).derivative()
    return float(np.exp(brentq(slope, *np.log(GATE_STDS[[best - 1, best + 1]]))))


def blended(model: PALRNN, provisional: PALRNN, step: float) -> PALRNN:
    """Return ``(1 - step) model + step provisional``, on drift entries and on deviations."""
    drift = model.drift
    if provisional.drift is not drift:
        drift = drift.with_theta(_mixed(drift.theta, provisional.drift.theta, step))
    return PALRNN(
        drift,
        _mixed(model.process.std, provisional.process.std, step),
        _mixed(model.observation.std, provisional.observation.std, step),
        float(_mixed(model.gate_std, provisional.gate_std, step)),
        model.initial,
    )


def _mixed(old: float | Floats, new: float | Floats, step: float) -> float | Floats:
    return new if step == 1.0 else old + step * (np.asarray(new) - old)
