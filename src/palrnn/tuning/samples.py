"""The M-step of any family, on the sampled transitions (z, c, z') themselves.

The drift minimises, over weighted transitions,

    f(theta) = mean [ 1/2 (z' - F)^T Q^-1 (z' - F) - sum_j log Phi(+-u_j / gate_std) ]
               + ridge kappa / 2 |theta - theta^0|^2,                   F = J(c) z + b(c) + C s,  u = G z + g,

where kappa is the mean of the precisions 1 / Q, so that the ridge is that of `rows` under isotropic noise.
The second term is there only where the gates have parameters (``gate_pullback``). A family that is linear in
theta given the codes, as its own ``pullback`` shows, is solved by its normal equations; any other takes steps
of L-BFGS from the current drift, which never raise f: a generalised EM step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from palrnn.engine.checks import Floats
from palrnn.model import PALRNN
from palrnn.model.engine import gate_inputs
from palrnn.model.inputs import input_pullback
from palrnn.tuning.mstep import drift_solution, process_moments, process_residuals
from palrnn.tuning.statistics import Statistics, drift_statistics, statistics_kind

# numbers in the derivatives that are held at once: 64 MB
_HELD = 8_000_000
# parameters up to which normal equations are built and solved
_DENSE = 1000
# samples that say whether a family is linear in theta, and how well its derivatives must agree
_PROBED, _AGREE = 16, 1e-9
# an average forgets samples that weigh less than this against a new one
_FORGOTTEN = 1e-3


@dataclass(frozen=True, eq=False, repr=False)
class SampleStatistics(Statistics):
    """The transitions: ``before (n, M + K)``, ``codes (n, P)``, ``after (n, M)``, and their ``weights (n,)``.

    What was before is the state, and beside it the inputs that drove the model, if it takes any.
    """

    before: Floats
    codes: NDArray[np.bool_]
    after: Floats
    weights: Floats

    @classmethod
    def of(
        cls,
        drift: Any,
        codes: NDArray[np.bool_],
        states: Floats,
        common: dict[str, Any],
        inputs: Floats | None = None,
    ) -> Self:
        """Return the statistics of ``codes (S, T-1, P)`` and ``states (S, K, T, M)``."""
        paths, draws, times, dim = states.shape
        shape = (paths, draws, times - 1, codes.shape[-1])
        before = states[:, :, :-1].reshape(-1, dim)
        if inputs is not None:
            before = np.hstack([before, np.tile(inputs[:-1], (paths * draws, 1))])
        return cls(
            **common,
            before=before,
            codes=np.broadcast_to(codes[:, None], shape).reshape(-1, codes.shape[-1]),
            after=states[:, :, 1:].reshape(-1, dim),
            weights=np.ones(len(before)),
        )

    def averaged(self, new: Statistics, step: float) -> Self:
        """Return ``(1 - step) self + step new``: all transitions, weighed; the lightest are forgotten."""
        mixed = self._scaled(1.0 - step) + self._with(new.arrays())._scaled(step)
        kept = mixed.weights >= _FORGOTTEN * mixed.weights.max()
        arrays = mixed.arrays()
        return self._with(arrays | {name: arrays[name][kept] for name in _SAMPLES})

    def _scaled(self, factor: float) -> Self:
        arrays = self.arrays()
        kept = {name: arrays[name] for name in _SAMPLES if name != "weights"}
        return self._with({name: factor * value for name, value in arrays.items() if name not in kept} | kept)

    def _joined(self, name: str, one: Floats, other: Floats) -> Floats:
        return np.concatenate([one, other]) if name in _SAMPLES else one + other


_SAMPLES = ("before", "codes", "after", "weights")
drift_statistics.register(object, SampleStatistics.of)
statistics_kind.register(object, lambda drift: SampleStatistics)


@drift_solution.register
def _(
    statistics: SampleStatistics,
    model: PALRNN,
    *,
    ridge: float,
    towards: Floats | None = None,
    steps: int = 50,
) -> Any:
    from scipy.optimize import minimize

    objective = expected_loss(statistics, model, ridge, towards)
    if _is_linear(statistics, model.drift) and model.drift.theta.size <= _DENSE:
        return model.drift.with_theta(_normal_solution(statistics, model, ridge, towards))
    found = minimize(
        objective, model.drift.theta, jac=True, method="L-BFGS-B", options={"maxiter": steps, "maxcor": 20}
    )
    better = found.fun <= objective(model.drift.theta)[0]
    return model.drift.with_theta(found.x) if better else model.drift


def expected_loss(
    statistics: SampleStatistics, model: PALRNN, ridge: float, towards: Floats | None
) -> Callable[[Floats], tuple[float, Floats]]:
    """Return f and its gradient as a function of theta (see the module)."""
    from scipy.special import log_ndtr

    drift, total = model.drift, statistics.weights.sum()
    precision = np.linalg.inv(model.process_covariance)
    kappa = ridge * np.trace(precision) / drift.latent_dim
    origin = np.zeros_like(drift.theta) if towards is None else towards
    gates_learn = hasattr(drift, "gate_pullback")
    if gates_learn and model.gate_std == 0.0:
        raise ValueError("gate_std must be above 0 to tune a family whose gates have parameters, got 0")

    def objective(theta: Floats) -> tuple[float, Floats]:
        moved, away = drift.with_theta(theta), theta - origin
        value, slope = 0.5 * kappa * float(away @ away), kappa * away
        with np.errstate(over="ignore", invalid="ignore"):  # a line search that ran too far
            for before, codes, after, weights in _pieces(statistics, theta.size):
                error = after - _advanced(moved, before, codes)
                pull = weights[:, None] * (error @ precision)
                value += 0.5 * float((pull * error).sum()) / total
                slope = slope - _pullback(moved, before, codes, pull).sum(axis=0) / total
                if gates_learn:
                    z = before[:, : drift.latent_dim]
                    signs = np.where(codes, 1.0, -1.0) / model.gate_std
                    scaled = signs * gate_inputs(moved, z)
                    value -= float(weights @ log_ndtr(scaled).sum(axis=1)) / total
                    hazard = np.exp(-0.5 * scaled**2 - 0.5 * np.log(2 * np.pi) - log_ndtr(scaled))
                    pulled = moved.gate_pullback(z, weights[:, None] * signs * hazard)
                    slope[: pulled.shape[1]] -= pulled.sum(axis=0) / total
        # any finite value above the start makes the search turn back
        return (value, slope) if np.isfinite(value) else (1e30, np.zeros_like(slope))

    return objective


@process_residuals.register
def _(statistics: SampleStatistics, drift: Any) -> Floats:
    return np.diagonal(process_moments(statistics, drift)).copy()


@process_moments.register
def _(statistics: SampleStatistics, drift: Any) -> Floats:
    total = np.zeros((drift.latent_dim, drift.latent_dim))
    for before, codes, after, weights in _pieces(statistics, drift.theta.size):
        error = after - _advanced(drift, before, codes)
        total += (weights[:, None] * error).T @ error
    return total / statistics.weights.sum()


def _normal_solution(
    statistics: SampleStatistics, model: PALRNN, ridge: float, towards: Floats | None
) -> Floats:
    """Return the theta at which f, quadratic here, is least.

    With F = F_0 + Phi theta, where row i of Phi ``(M, p)`` is the pullback of the i-th unit vector.
    """
    drift, unit = model.drift, np.eye(model.drift.latent_dim)
    size, total = drift.theta.size, statistics.weights.sum()
    whiten = np.linalg.inv(model.process.root(drift.latent_dim))
    gram, cross = np.zeros((size, size)), np.zeros(size)
    for before, codes, after, weights in _pieces(statistics, size * drift.latent_dim):
        rows = (np.broadcast_to(r, after.shape) for r in unit)
        slopes = np.stack([_pullback(drift, before, codes, r) for r in rows], axis=1)
        base = after - _advanced(drift, before, codes) + slopes @ drift.theta
        scale = np.sqrt(weights)[:, None, None]
        left = (scale * (whiten @ slopes)).reshape(-1, size)
        right = (scale * (whiten @ base[..., None])).ravel()
        gram += left.T @ left
        cross += left.T @ right
    kappa = ridge * float(np.sum(whiten**2)) / drift.latent_dim
    gram, cross = gram / total + kappa * np.eye(size), cross / total
    if towards is not None:
        cross = cross + kappa * towards
    if ridge == 0:
        return np.asarray(np.linalg.lstsq(gram, cross, rcond=None)[0])
    return np.asarray(np.linalg.solve(gram, cross))


def _is_linear(statistics: SampleStatistics, drift: Any) -> bool:
    """Whether F is linear in theta given the codes: its derivative is the same at another theta."""
    if hasattr(drift, "gate_pullback"):
        return False
    some = np.linspace(0, len(statistics.weights) - 1, _PROBED).astype(np.int64)
    z, codes, r = statistics.before[some], statistics.codes[some], statistics.after[some]
    z = z[:, : drift.latent_dim]  # what inputs add is linear in C
    here = drift.pullback(z, codes, r)
    there = drift.with_theta(1.5 * drift.theta + 0.25).pullback(z, codes, r)
    return bool(np.abs(here - there).max() <= _AGREE * (1.0 + np.abs(here).max()))


def _pieces(
    statistics: SampleStatistics, size: int
) -> Iterator[tuple[Floats, NDArray[np.bool_], Floats, Floats]]:
    """Yield the transitions, as many at a time as derivatives by ``size`` numbers each allow."""
    count = max(1, _HELD // size)
    for first in range(0, len(statistics.weights), count):
        part = slice(first, first + count)
        yield tuple(getattr(statistics, name)[part] for name in _SAMPLES)


def _advanced(drift: Any, before: Floats, codes: NDArray[np.bool_]) -> Floats:
    """Return J(c) z + b(c) + C s for ``before (n, M + K)``, z beside s, and ``codes (n, P)``."""
    z, s = before[:, : drift.latent_dim], before[:, drift.latent_dim :]
    J, b = drift.affine(codes)
    after = np.asarray((J @ z[..., None])[..., 0] + b)
    return after + s @ drift.C.T if s.shape[1] else after


def _pullback(drift: Any, before: Floats, codes: NDArray[np.bool_], r: Floats) -> Floats:
    """Return r^T d(F + C s)/dtheta for ``before (n, M + K)``, ``codes (n, P)`` and ``r (n, M)``."""
    z, s = before[:, : drift.latent_dim], before[:, drift.latent_dim :]
    own = drift.pullback(z, codes, r)
    return np.concatenate([own, input_pullback(s, r)], axis=-1) if s.shape[1] else own
