"""The M-step: the parameters that the smoothing samples speak for.

The drift minimises the expected complete-data loss per step,

    1/2 mean |z' - F(z, c)|^2_Q + ridge kappa / 2 |theta - theta^0|^2,      kappa = the mean of 1 / Q,

in closed form where it is linear in theta (`rows` for the AL-RNN, `samples` for other families), otherwise by
steps that lower it. The noises are then the mean squared errors of that drift, no smaller than the floor.
"""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch
from typing import Any

import numpy as np

from palrnn.engine.checks import Floats
from palrnn.model import PALRNN, Noise
from palrnn.tuning.statistics import GATE_STDS, Statistics


@singledispatch
def drift_solution(
    statistics: Statistics, model: PALRNN, *, ridge: float, towards: Floats | None = None, steps: int = 50
) -> Any:
    """Return the drift of the M-step, pulled ``towards (p,)`` or to zero by the ridge.

    ``steps`` bounds the steps of a family that has no closed form.
    """
    raise TypeError(f"no M-step for {type(statistics).__name__}")


@singledispatch
def process_residuals(statistics: Statistics, drift: Any) -> Floats:
    """Return the mean squared one-step error of each unit under ``drift``, ``(M,)``."""
    raise TypeError(f"no residuals for {type(statistics).__name__}")


@singledispatch
def process_moments(statistics: Statistics, drift: Any) -> Floats:
    """Return the mean outer product of one-step errors under ``drift``, ``(M, M)``."""
    raise TypeError(f"no residuals for {type(statistics).__name__}")


def noise_solution(
    statistics: Statistics, drift: Any, *, kind: str, tied_start: bool, floor: float
) -> tuple[Noise, Noise]:
    """Return the process and observation noise, "isotropic", "diagonal" or "full".

    Where the start law follows the process noise (``PALRNN.initial`` is None), first states are draws from
    the same noise and count with the transitions (``tied_start``).
    """
    count = statistics.transitions
    if kind == "full":
        total = process_moments(statistics, drift) * count
        if tied_start:
            total, count = total + statistics.spread, count + statistics.starts
        # rows with gaps are left out; where all have some, nothing is known of the covariance of two entries
        known = statistics.whole > 0
        misfit = statistics.misfit / statistics.whole if known else np.diag(_misfits(statistics))
        return Noise.full(_floored(total / count, floor)), Noise.full(_floored(misfit, floor))
    total = process_residuals(statistics, drift) * count
    if tied_start:
        total, count = total + statistics.start, count + statistics.starts
    process = total / count
    if kind == "diagonal":
        variances = process, _misfits(statistics)
        deviations = (np.sqrt(np.maximum(variance, floor**2)) for variance in variances)
        return tuple(Noise.diagonal(std) for std in deviations)  # type: ignore[return-value]
    observation = statistics.residual.sum() / max(statistics.observed.sum(), 1.0)
    return (
        Noise.isotropic(float(np.sqrt(max(process.mean(), floor**2)))),
        Noise.isotropic(float(np.sqrt(max(observation, floor**2)))),
    )


def _misfits(statistics: Statistics) -> Floats:
    """Return the mean squared error of the observations that were made, ``(N,)``.

    A coordinate that was never observed says nothing about its noise: it takes the others' mean.
    """
    pooled = statistics.residual.sum() / max(statistics.observed.sum(), 1.0)
    each = statistics.residual / np.maximum(statistics.observed, 1.0)
    return np.where(statistics.observed > 0, each, pooled)


def _floored(covariance: Floats, floor: float) -> Floats:
    """Return ``covariance`` with no direction of a deviation below ``floor``."""
    values, vectors = np.linalg.eigh(0.5 * (covariance + covariance.T))
    kept = (vectors * np.maximum(values, floor**2)) @ vectors.T
    return np.asarray(0.5 * (kept + kept.T))


def gate_solution(statistics: Statistics) -> float:
    """Return the gate deviation of greatest likelihood, by a spline through its values at ``GATE_STDS``.

    The log likelihood, sum of log Phi(+-u / gate_std), is concave in 1 / gate_std, so it has one maximum.
    """
    from scipy.interpolate import CubicSpline
    from scipy.optimize import brentq

    best = int(np.argmax(statistics.gates))
    if best in (0, GATE_STDS.size - 1):
        return float(GATE_STDS[best])
    slope = CubicSpline(np.log(GATE_STDS), statistics.gates).derivative()
    return float(np.exp(brentq(slope, *np.log(GATE_STDS[[best - 1, best + 1]]))))


def blended(model: PALRNN, provisional: PALRNN, step: float) -> PALRNN:
    """Return ``(1 - step) model + step provisional``: drift entries, and deviations or full covariances."""
    drift = model.drift
    if provisional.drift is not drift:
        drift = drift.with_theta(_mixed(drift.theta, provisional.drift.theta, step))
    return replace(
        provisional,
        drift=drift,
        process=_mixed_noise(model.process, provisional.process, step, drift.latent_dim),
        observation=_mixed_noise(model.observation, provisional.observation, step, drift.observed_dim),
        gate_std=float(_mixed(model.gate_std, provisional.gate_std, step)),
        initial=model.initial,
    )


def _mixed_noise(old: Noise, new: Noise, step: float, dim: int) -> Noise:
    if new.is_diagonal and old.is_diagonal:
        mixed = _mixed(old.std, new.std, step)
        return Noise.isotropic(float(mixed)) if np.ndim(mixed) == 0 else Noise.diagonal(mixed)
    return Noise.full(_mixed(old.covariance(dim), new.covariance(dim), step))


def _mixed(old: Any, new: Any, step: float) -> Any:
    return new if step == 1.0 else old + step * (np.asarray(new) - old)
