"""The anchored M-step: evidence and teacher forcing together.

A generalised-Bayes posterior may hold more than one loss. With weight beta per step, the M-step minimises

    J(theta) = sum_i [theta_i^T H_i theta_i / 2 - g_i^T theta_i] + beta * L_ITF(theta),
    H_i = (G_i + ridge I) / q_i,    g_i = (b_i + ridge theta_i^0) / q_i,

the expected complete-data loss per step (rows and moments as in `mstep`, q_i the process variance of unit i)
plus the teacher-forcing loss per step. Under a full process noise the rows are coupled, and theta^T H theta
has the H and g of `JointEquations`. Read as a Gaussian likelihood of the forced predictions, beta is 1 /
(2 std^2). Without the second term the minimum is the plain M-step.

L_ITF is not quadratic, so J is minimised by L-BFGS from the current drift, in the coordinates in which the
first term is |phi|^2 / 2 (phi_i = C_i^T theta_i, H_i = C_i C_i^T): the quadratic part, stiff along the latent
directions that hardly vary, is solved at once, and only the curvature of the forcing loss is left to learn
(and, where rows are coupled, that between them: H_i is then the block of a single row).
The step never raises J, which is all that a generalised EM step needs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import Any

import numpy as np

from palrnn.engine.checks import Floats
from palrnn.forcing import itf_gradient
from palrnn.model import ALRNN, PALRNN, Forcing
from palrnn.tuning.rows import JointEquations, RowStatistics, row_moments
from palrnn.tuning.samples import SampleStatistics, expected_loss
from palrnn.tuning.statistics import Statistics

# the least curvature of a row's coordinates, relative to its mean: keeps them regular without any ridge
_JITTER = 1e-10


def anchored_solution(
    statistics: Statistics,
    model: PALRNN,
    x: Floats,
    *,
    forcing: Forcing | int,
    beta: float,
    ridge: float,
    towards: Floats | None = None,
    steps: int = 50,
    inputs: Floats | None = None,
) -> Any:
    """Return the drift after at most ``steps`` steps on J; ``x (B, T, N)`` are stretches to force on.

    ``inputs (B, T, K)`` are those of the stretches, where the model takes any.
    """

    def anchor(drift: Any) -> tuple[float, Floats]:
        """Return beta L_ITF and its gradient in theta; infinite where the model cannot be run."""
        try:
            loss, gradient = itf_gradient(drift, x, forcing, inputs=inputs)
        except (ArithmeticError, ValueError):
            return np.inf, np.zeros_like(drift.theta)
        return beta * loss, beta * gradient.theta

    return _anchored(statistics, model, anchor, ridge, towards, steps)


Anchor = Callable[[Any], tuple[float, Floats]]


@singledispatch
def _anchored(
    statistics: Statistics, model: PALRNN, anchor: Anchor, ridge: float, towards: Floats | None, steps: int
) -> Any:
    raise TypeError(f"no M-step for {type(statistics).__name__}")


@_anchored.register
def _(
    statistics: SampleStatistics,
    model: PALRNN,
    anchor: Anchor,
    ridge: float,
    towards: Floats | None,
    steps: int,
) -> Any:
    drift, expected = model.drift, expected_loss(statistics, model, ridge, towards)

    def objective(theta: Floats) -> tuple[float, Floats]:
        value, slope = expected(theta)
        loss, pull = anchor(drift.with_theta(theta))
        return (value + loss, slope + pull) if np.isfinite(loss) else (1e30, 0.0 * slope)

    found = _minimum(objective, drift.theta, steps)
    return drift.with_theta(found) if objective(found)[0] <= objective(drift.theta)[0] else drift


@_anchored.register
def _(
    statistics: RowStatistics,
    model: PALRNN,
    anchor: Anchor,
    ridge: float,
    towards: Floats | None,
    steps: int,
) -> ALRNN:
    drift = model.drift
    origin = None if towards is None else drift.with_theta(towards).rows
    product, g, H = _quadratic(statistics, model, ridge, origin)
    floor = _JITTER * np.trace(H, axis1=1, axis2=2)[:, None, None] / H.shape[1]
    C = np.linalg.cholesky(H + floor * np.eye(H.shape[1]))

    def theta_of(phi: Floats) -> Floats:
        return _solved(C, phi.reshape(g.shape), transpose=True)

    def objective(phi: Floats) -> tuple[float, Floats]:
        theta = theta_of(phi)
        curved = product(theta)
        value, slope = float(np.sum(theta * (0.5 * curved - g))), curved - g
        loss, pull = anchor(drift.with_rows(theta))
        if not np.isfinite(loss):
            # a line search that ran too far: any finite value above the start makes it turn back
            return 1e30, np.zeros_like(phi)
        slope = slope + drift.with_theta(pull).rows
        return value + loss, _solved(C, slope, transpose=False).ravel()

    start = np.einsum("ikj,ik->ij", C, drift.rows)
    return drift.with_rows(theta_of(_minimum(objective, start.ravel(), steps)))


def _quadratic(
    statistics: RowStatistics, model: PALRNN, ridge: float, origin: Floats | None
) -> tuple[Callable[[Floats], Floats], Floats, Floats]:
    """Return the product with H, g ``(M, M+2+K)``, and the blocks of H on single rows."""
    if not model.process.is_diagonal:
        equations = JointEquations.of(statistics, model, ridge, origin)
        return equations.product, equations.right, equations.blocks
    gram, cross = row_moments(statistics)
    weight = 1.0 / model.process_variances
    H = (gram + ridge * np.eye(gram.shape[1])) * weight[:, None, None]
    g = (cross if origin is None else cross + ridge * origin) * weight[:, None]
    return lambda theta: np.asarray(np.einsum("ijk,ik->ij", H, theta)), g, H


def _minimum(objective: Callable[[Floats], tuple[float, Floats]], start: Floats, steps: int) -> Floats:
    from scipy.optimize import minimize

    options = {"maxiter": steps, "maxcor": 20, "ftol": 1e-12}
    return np.asarray(minimize(objective, start, jac=True, method="L-BFGS-B", options=options).x)


def _solved(C: Floats, right: Floats, *, transpose: bool) -> Floats:
    """Return C_i^{-1} r_i, or C_i^{-T} r_i, for every row i."""
    from scipy.linalg import solve_triangular

    pairs = zip(C, right, strict=True)
    return np.stack([solve_triangular(c, r, lower=True, trans=int(transpose)) for c, r in pairs])
