"""The AL-RNN in rows: given its gates, a linear regression of z_{t+1} on the features

    f_t = [z_t, D(c_t) z_t, 1, s_t]                              (2 M + 1 + K,)

in which unit i uses its own z_i only (A is diagonal), all of D(c) z, the constant and the K inputs, if the
model is driven by any. The sums of f f^T, z' f^T and z' z'^T hold everything that the drift and the process
noise depend on. Row i of the drift solves its own ridge regression on f_i = [z_i, D(c) z, 1, s] (M + 2 + K
features),

    (G_i + ridge I) theta_i = b_i + ridge theta_i^0,     G_i = mean f_i f_i^T,   b_i = mean z'_i f_i,

with theta^0 = 0 (the plain ridge) or the current parameters. A diagonal process noise does not enter: it
scales a row's equation as a whole. Under a full one the rows are solved together (`joint_solution`). For an
ungated unit z_i is both a feature of its own and an entry of D(c) z: A_ii and W_ii are collinear, and the
ridge shares the coefficient between them (ridge = 0 takes the solution of least norm).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palrnn.engine.checks import Floats
from palrnn.model import ALRNN, PALRNN
from palrnn.tuning.mstep import drift_solution, process_moments, process_residuals
from palrnn.tuning.statistics import Statistics, drift_statistics, statistics_kind

# of the equations of rows that a full process noise couples, relative: beyond rounding of the sums
_TOLERANCE = 1e-12


@dataclass(frozen=True, eq=False, repr=False)
class RowStatistics(Statistics):
    """Sufficient statistics of an AL-RNN.

    ``gram (2M+1+K, 2M+1+K)``: sum of f f^T. ``cross (M, 2M+1+K)``: sum of z' f^T. ``square (M,)`` and
    ``outer (M, M)``: sums of z'^2 and of z' z'^T.
    """

    gram: Floats
    cross: Floats
    square: Floats
    outer: Floats


@drift_statistics.register
def _(
    drift: ALRNN,
    codes: NDArray[np.bool_],
    states: Floats,
    common: dict[str, Any],
    inputs: Floats | None = None,
) -> RowStatistics:
    dim, free, size = drift.latent_dim, drift.latent_dim - drift.gated, 2 * drift.latent_dim + 1
    size += drift.input_dim
    before, after = states[:, :, :-1], states[:, :, 1:]
    features = np.empty((*before.shape[:3], size))
    features[..., :dim] = before
    features[..., dim : 2 * dim] = before
    features[..., dim + free : 2 * dim] *= codes[:, None]
    features[..., 2 * dim] = 1.0
    if inputs is not None:
        features[..., 2 * dim + 1 :] = inputs[:-1]
    f, target = features.reshape(-1, size), after.reshape(-1, dim)
    return RowStatistics(
        **common,
        gram=f.T @ f,
        cross=target.T @ f,
        square=np.square(target).sum(axis=0),
        outer=target.T @ target,
    )


@statistics_kind.register
def _(drift: ALRNN) -> type[RowStatistics]:
    return RowStatistics


def row_moments(statistics: RowStatistics) -> tuple[Floats, Floats]:
    """Return the mean Gram matrices ``(M, M+2+K, M+2+K)`` and mean cross products ``(M, M+2+K)`` by row."""
    own = _own_features(*statistics.cross.shape)
    gram = statistics.gram[own[:, :, None], own[:, None, :]] / statistics.transitions
    cross = np.take_along_axis(statistics.cross, own, axis=1) / statistics.transitions
    return gram, cross


@drift_solution.register
def _(
    statistics: RowStatistics, model: PALRNN, *, ridge: float, towards: Floats | None = None, steps: int = 50
) -> ALRNN:
    pull = None if towards is None else model.drift.with_theta(towards).rows
    theta = _row_solution(statistics, ridge, pull)
    if not model.process.is_diagonal:
        theta = joint_solution(statistics, model, ridge, pull, theta)
    return model.drift.with_rows(theta)


def _row_solution(statistics: RowStatistics, ridge: float, towards: Floats | None) -> Floats:
    gram, cross = row_moments(statistics)
    if ridge == 0:
        return np.stack([np.linalg.lstsq(G, b, rcond=None)[0] for G, b in zip(gram, cross, strict=True)])
    pull = cross if towards is None else cross + ridge * towards
    return np.asarray(np.linalg.solve(gram + ridge * np.eye(gram.shape[1]), pull[..., None])[..., 0])


def joint_solution(
    statistics: RowStatistics, model: PALRNN, ridge: float, towards: Floats | None, start: Floats
) -> Floats:
    """Return the rows under a full process noise, by conjugate gradients from ``start (M, M + 2 + K)``.

    They solve `JointEquations`; the rows solved one by one precondition it.
    """
    from scipy.sparse.linalg import LinearOperator, cg

    equations = JointEquations.of(statistics, model, ridge, towards)
    inverse, shape = np.linalg.pinv(equations.blocks), equations.right.shape
    size = equations.right.size
    operator = LinearOperator(
        (size, size), matvec=lambda flat: equations.product(flat.reshape(shape)).ravel(), dtype=np.float64
    )
    rough = LinearOperator(
        (size, size),
        matvec=lambda flat: np.einsum("ijk,ik->ij", inverse, flat.reshape(shape)).ravel(),
        dtype=np.float64,
    )
    right = equations.right.ravel()
    theta, _ = cg(operator, right, x0=start.ravel(), M=rough, rtol=_TOLERANCE, maxiter=10 * size)
    return np.asarray(theta).reshape(shape)


@dataclass(frozen=True, eq=False)
class JointEquations:
    """The equations of all rows, which a full process noise Q couples.

        sum_j (Q^-1)_ij G_ij theta_j + ridge kappa theta_i = sum_j (Q^-1)_ij b_ij + ridge kappa theta_i^0

    with G_ij = mean f_i f_j^T and b_ij = mean z'_j f_i, and kappa the mean of the precisions, so that the
    ridge is what it is under isotropic noise. ``right (M, M + 2 + K)`` is the right side, `product` the left
    one, and ``blocks (M, M + 2 + K, M + 2 + K)`` are those of single rows, j = i.
    """

    gram: Floats
    precision: Floats
    pull: float
    right: Floats
    blocks: Floats

    @classmethod
    def of(
        cls, statistics: RowStatistics, model: PALRNN, ridge: float, towards: Floats | None
    ) -> JointEquations:
        """Return those of the noise of ``model``, pulled ``towards`` these rows, or to zero."""
        precision: Floats = np.asarray(np.linalg.inv(model.process_covariance), dtype=np.float64)
        pull = ridge * float(np.trace(precision)) / len(precision)
        own = _own_features(*statistics.cross.shape)
        right = np.take_along_axis(precision @ statistics.cross / statistics.transitions, own, axis=1)
        right = right if towards is None else right + pull * towards
        gram, _ = row_moments(statistics)
        blocks = gram * np.diagonal(precision)[:, None, None] + pull * np.eye(own.shape[1])
        return cls(statistics.gram / statistics.transitions, precision, pull, right, blocks)

    def product(self, theta: Floats) -> Floats:
        """Return the left side for the rows ``theta (M, M + 2 + K)``."""
        own = _own_features(len(theta), len(self.gram))
        coupled = self.precision @ (_in_features(theta) @ self.gram)
        return np.asarray(np.take_along_axis(coupled, own, axis=1) + self.pull * theta)


@process_residuals.register
def _(statistics: RowStatistics, drift: ALRNN) -> Floats:
    gram, cross = row_moments(statistics)
    theta = drift.rows
    explained = 2.0 * np.einsum("ij,ij->i", theta, cross) - np.einsum("ij,ijk,ik->i", theta, gram, theta)
    # the two sides nearly cancel where the noise is small: rounding may leave a negative number
    return np.maximum(statistics.square / statistics.transitions - explained, 0.0)


@process_moments.register
def _(statistics: RowStatistics, drift: ALRNN) -> Floats:
    theta = _in_features(drift.rows)
    crossed = theta @ statistics.cross.T
    total = statistics.outer - crossed - crossed.T + theta @ statistics.gram @ theta.T
    return np.asarray(total / statistics.transitions)


def _own_features(dim: int, features: int) -> NDArray[np.int64]:
    """Return ``(M, M + 2 + K)``: which of the 2 M + 1 + K features each row uses."""
    return np.column_stack([np.arange(dim), np.tile(np.arange(dim, features), (dim, 1))])


def _in_features(theta: Floats) -> Floats:
    """Return rows ``(M, M + 2 + K)`` as coefficients ``(M, 2 M + 1 + K)`` of all features."""
    return np.hstack([np.diag(theta[:, 0]), theta[:, 1:]])
