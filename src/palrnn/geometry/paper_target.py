"""What the paper's recipe leaves out: the derivatives of its own filter's evidence, given a gate path.

Under ``target="paper"`` a path c has the weight

    log w(c) = log p(x | c) + sum_tj log Phi(+-psi_tj),    psi_tj = (G_j m_t + g_j) / sqrt(G_j P_t G_j^T +
    gate_std^2)

with the filtered belief N(m_t, P_t), which depends on theta; the evidence of that filter is Z = sum_c w(c),
and

    grad log Z = E_c[grad log w],     -Hess log Z = E_c[-Hess log w] - Cov_c(grad log w),     E_c over w / Z.

The paper's score is that of log p(x | c) alone (`path_information`): the gates count as if they had no
parameters, though their probabilities have them through the belief. So its recipe is not the Hessian of its
evidence. Under ``target="exact"`` a gate depends on the state alone, nothing is left out, and Louis'
identity is exact.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palrnn.engine.checks import Floats, as_shape
from palrnn.geometry.path_moments import LinearPath, filtered_beliefs, linear_path
from palrnn.geometry.score_map import has_gate_parameters, score_map
from palrnn.inference.particle_filter import checked_series
from palrnn.model import PALRNN
from palrnn.model.inputs import checked_inputs


@dataclass(frozen=True, eq=False)
class PaperPathDerivatives:
    """``log_weight`` of a gate path under the paper's target, and its derivatives in theta.

    ``gradient (p,)`` is exact; ``information (p, p)``, minus the Hessian, is built when asked for, from 4 p
    gradients (differences of the fourth order, good to about 1e-9): a second for 30 parameters, minutes for
    960.
    """

    model: PALRNN = field(repr=False)
    x: Floats = field(repr=False)
    codes: NDArray[np.bool_] = field(repr=False)
    log_weight: float
    gradient: Floats = field(repr=False)
    inputs: Floats | None = field(default=None, repr=False)

    @cached_property
    def information(self) -> Floats:
        """Minus the Hessian of ``log_weight``, ``(p, p)``."""
        drift, step = self.model.drift, 1e-3
        rows = np.zeros((drift.theta.size, drift.theta.size))
        for k, unit in enumerate(np.eye(len(rows))):
            for size, share in ((1.0, 2.0 / 3.0), (-1.0, -2.0 / 3.0), (2.0, -1.0 / 12.0), (-2.0, 1.0 / 12.0)):
                moved = self.model.with_drift(drift.with_theta(drift.theta + size * step * unit))
                rows[k] -= share / step * _weight_and_gradient(moved, self.x, self.codes, self.inputs)[1]
        return 0.5 * (rows + rows.T)


def paper_path_derivatives(
    model: PALRNN, x: ArrayLike, codes: ArrayLike, *, inputs: ArrayLike | None = None
) -> PaperPathDerivatives:
    """Return the log weight of the gates ``codes (T-1, P)`` under the paper's target, and its derivatives.

    Unlike `path_information` it counts how the probabilities of the gates move with theta. ``x (T, N)`` may
    have NaN; a driven model needs its ``inputs (T, K)``.
    """
    series = checked_series(model, x)
    given = checked_inputs(model, inputs, len(series))
    if model.drift.gated and not model.gate_std > 0:
        raise ValueError("gate_std must be greater than 0: hard gates have no derivatives, got 0")
    gates = as_shape(codes, "codes", (len(series) - 1, model.drift.gated)) > 0
    weight, gradient = _weight_and_gradient(model, series, gates, given)
    return PaperPathDerivatives(model, series, gates, weight, gradient, given)


def _weight_and_gradient(
    model: PALRNN, x: Floats, codes: NDArray[np.bool_], inputs: Floats | None
) -> tuple[float, Floats]:
    """Return log w(c) and its gradient, by one Kalman filter and its adjoint.

    The adjoint carries (a, A), the derivatives of what follows in mean and covariance of the belief,
    backwards.
    """
    from scipy.special import log_ndtr

    path = linear_path(model, x, codes, inputs)
    weight, (means, _, covs, ahead) = filtered_beliefs(path)
    dim, with_gates = means.shape[1], has_gate_parameters(model.drift)
    slopes = np.zeros((len(codes), dim + (len(path.G) if with_gates else 0), dim + 1))
    a, A = np.zeros(dim), np.zeros((dim, dim))
    for t in range(len(codes) - 1, -1, -1):
        a, A = _before_observation(path, t + 1, means, ahead[t + 1], a, A)
        J, m, P = path.J[t], means[t], covs[t]
        slopes[t, :dim, :dim] = np.outer(a, m) + 2.0 * A @ J @ P
        slopes[t, :dim, dim] = a
        a, A = J.T @ a, J.T @ A @ J
        variance = np.einsum("ji,ik,jk->j", path.G, P, path.G) + path.gate_variance
        psi, sign = (path.G @ m + path.g) / np.sqrt(variance), np.where(codes[t], 1.0, -1.0)
        weight += float(log_ndtr(sign * psi).sum())
        # d log Phi(s psi) / d psi = s phi(psi) / Phi(s psi), in logs because both underflow
        hazard = sign * np.exp(-0.5 * psi**2 - 0.5 * np.log(2.0 * np.pi) - log_ndtr(sign * psi))
        first, second = hazard / np.sqrt(variance), hazard * psi / variance
        if with_gates:
            slopes[t, dim:, :dim] = first[:, None] * m - second[:, None] * (path.G @ P)
            slopes[t, dim:, dim] = first
        a = a + first @ path.G
        A = A - 0.5 * (path.G.T * second) @ path.G
    driving = None if inputs is None else inputs[:-1]
    return weight, score_map(model.drift, codes, with_gates, driving).pull(slopes)


def _before_observation(
    path: LinearPath, t: int, means: Floats, P: Floats, a: Floats, A: Floats
) -> tuple[Floats, Floats]:
    """Return the adjoint of the prediction N(J m + b, P) of z_t, from that of the belief after x_t."""
    seen = np.flatnonzero(~np.isnan(path.x[t]))
    if not len(seen):
        return a, A
    H = path.B[seen]
    precision = np.linalg.inv(H @ P @ H.T + path.R[np.ix_(seen, seen)])
    predicted = path.J[t - 1] @ means[t - 1] + path.b[t - 1]
    b = H.T @ precision @ (path.x[t, seen] - H @ predicted - path.d[seen])
    left = np.eye(len(P)) - P @ H.T @ precision @ H
    back = left.T @ a
    mixed = 0.5 * (np.outer(back, b) + np.outer(b, back) + np.outer(b, b) - H.T @ precision @ H)
    return back + b, left.T @ A @ left + mixed
