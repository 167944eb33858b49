"""How parameters enter the score: the map Psi of each family, found from its pullback.

Given the gates, the complete-data score of any `Surrogate` is bilinear in the weighted residuals and the
features zeta = [z, 1]:

    s_k = sum_t eps_t^T Psi_k(c_t) zeta_t,      Psi_k(c) = d[J(c), b(c)] / dtheta_k      (M rows, M+1 columns)

and, where the gates have parameters and their noisy inputs u are given, P more rows d[G, g] / dtheta_k: the
score of log N(u; G z + g, gate_std^2) (the paper's remark after its proposition). For the families of this
field Psi is sparse: a parameter of the AL-RNN has one entry. Driven by inputs, z' = F(z) + C s_t, the
parameter C_ik has the entry s_tk in row i and the column of the constant, whatever the family.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from palrnn.engine.checks import Floats
from palrnn.model import ALRNN, Surrogate
from palrnn.model.inputs import input_parameters

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Codes = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ScoreMap:
    """Psi along a gate path: ``matrix (C E (M+1), p)`` for its C different codes, and ``which (T-1,)`` code
    it is when.

    ``shape`` is (C, E, M+1). The entries of the input map come after those of the ``matrix``; ``inputs (T-1,
    K)`` are what they multiply, None where there are none.
    """

    matrix: csr_array
    which: NDArray[np.int64]
    shape: tuple[int, int, int]
    inputs: Floats | None = None

    @property
    def size(self) -> int:
        """p, the number of parameters."""
        return self._own + (0 if self.inputs is None else self._dim * self.inputs.shape[1])

    @property
    def _own(self) -> int:
        return int(self.matrix.shape[1])

    @property
    def _dim(self) -> int:
        return self.shape[2] - 1

    def push(self, v: Floats) -> Floats:
        """Return sum_k v_k Psi_k(c_t) for ``v (p,)``: ``(T-1, E, M+1)``."""
        pushed = np.asarray((self.matrix @ v[: self._own]).reshape(self.shape)[self.which])
        if self.inputs is not None:
            pushed[:, : self._dim, self._dim] += self.inputs @ v[self._own :].reshape(self._dim, -1).T
        return pushed

    def pull(self, weights: Floats) -> Floats:
        """Return sum_t <Psi_k(c_t), weights[t]> for ``weights (T-1, E, M+1)``: ``(p,)``."""
        pulled = np.asarray(self.matrix.T @ self.by_code(weights).ravel())
        if self.inputs is None:
            return pulled
        return np.concatenate([pulled, (weights[:, : self._dim, self._dim].T @ self.inputs).ravel()])

    def block(self, c: int) -> csr_array:
        """Return Psi of the code numbered ``c`` on the features [z, 1, s]: ``(E (M+1+K), p)``."""
        from scipy.sparse import csr_array

        columns, block = self.shape[2], int(np.prod(self.shape[1:]))
        psi = self.matrix[c * block : (c + 1) * block]
        if self.inputs is None:
            return psi
        more, own = self.inputs.shape[1], psi.tocoo()
        rows, features = np.divmod(own.row, columns)
        units, which = np.divmod(np.arange(self._dim * more), more)
        place = np.concatenate(
            [rows * (columns + more) + features, units * (columns + more) + columns + which]
        )
        parameter = np.concatenate([own.col, self._own + np.arange(len(units))])
        values = np.concatenate([own.data, np.ones(len(units))])
        return csr_array((values, (place, parameter)), shape=(self.shape[1] * (columns + more), self.size))

    def by_code(self, weights: Floats) -> Floats:
        """Return the sum of ``weights (T-1, E, M+1)`` over the times of each code, ``(C, E, M+1)``."""
        sums = np.zeros(self.shape)
        np.add.at(sums, self.which, weights)
        return sums


def has_gate_parameters(drift: Surrogate) -> bool:
    """Whether the gates of ``drift`` depend on theta."""
    return hasattr(drift, "gate_pullback")


@singledispatch
def score_map(
    drift: Surrogate, codes: Codes, with_gates: bool = False, inputs: Floats | None = None
) -> ScoreMap:
    """Return Psi of ``drift`` along the gates ``codes (T-1, P)``; ``with_gates`` appends the rows of the
    gates, ``inputs (T-1, K)`` are those of a driven model.

    Each entry is one call of the pullback: r^T dF/dtheta at a unit state and for a unit row r, less that at
    zero.
    """
    from scipy.sparse import vstack

    different, which = np.unique(codes, axis=0, return_inverse=True)
    parts = [_probed(drift, code, with_gates) for code in different]
    rows = drift.latent_dim + (drift.gated if with_gates else 0)
    shape = (len(parts), rows, drift.latent_dim + 1)
    return ScoreMap(vstack(parts, format="csr"), which.ravel(), shape, inputs)


@score_map.register
def _(drift: ALRNN, codes: Codes, with_gates: bool = False, inputs: Floats | None = None) -> ScoreMap:
    """d/dA_i: (i, i); d/dW_ij: (i, j) where the gate of j is open; d/dh_i: (i, 1)."""
    from scipy.sparse import csr_array

    different, which = np.unique(codes, axis=0, return_inverse=True)
    rows, columns, weights = entries(drift, different)
    dim, size = drift.latent_dim, len(rows)
    place = rows * (dim + 1) + columns + (dim * (dim + 1) * np.arange(len(different)))[:, None]
    shape = (len(different), dim, dim + 1)
    parameter = np.tile(np.arange(size), len(different))
    triplets = (weights.ravel(), (place.ravel(), parameter))
    matrix = csr_array(triplets, shape=(int(np.prod(shape)), size))
    matrix.eliminate_zeros()
    return ScoreMap(matrix, which.ravel(), shape, inputs)


def entries(
    drift: ALRNN, codes: Codes, inputs: Floats | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
    """Return row, column and weight ``(T-1, p)`` of the only entry of Psi that each parameter of an AL-RNN
    has; with ``inputs (T-1, K)`` those of C, too."""
    dim = drift.latent_dim
    units, gates = np.arange(dim), open_units(drift, codes)
    rows = np.concatenate([units, np.repeat(units, dim), units])
    columns = np.concatenate([units, np.tile(units, dim), np.full(dim, dim)])
    always = np.ones((len(codes), dim))
    weights = np.concatenate([always, np.tile(gates, (1, dim)), always], axis=1)
    if inputs is None:
        return rows, columns, weights
    count = inputs.shape[1]
    rows = np.concatenate([rows, np.repeat(units, count)])
    columns = np.concatenate([columns, np.full(dim * count, dim)])
    return rows, columns, np.concatenate([weights, np.tile(inputs, (1, dim))], axis=1)


def open_units(drift: ALRNN, codes: Codes) -> Floats:
    """Return the diagonals of D(c_t), ``(T-1, M)`` (eq. Dc)."""
    free = np.ones((len(codes), drift.latent_dim - drift.gated))
    return np.concatenate([free, codes.astype(np.float64)], axis=1)


@singledispatch
def is_linear(drift: Surrogate) -> bool:
    """Whether J(c) and b(c) are known to be linear in theta, so that the map has no second derivatives."""
    return False


@is_linear.register
def _(drift: ALRNN) -> bool:
    return True


def bend(drift: Surrogate, codes: Codes, weights: Floats, with_gates: bool, v: Floats) -> Floats:
    """Return sum_c <dPsi_k(c)/dtheta . v, weights[c]> for ``codes (C, P)``, ``weights (C, E, M+1)``:
    ``(p,)``.

    With E[eps zeta^T] as weights it is what the second derivatives of the map take from the complete
    information; nothing, if the map is linear in its parameters. By central differences of the pullback,
    which are exact for a polynomial of up to the fifth degree in theta, as those of all families of this
    field are. The input map is linear in its own entries, and nothing else depends on them.
    """
    own = drift.theta.size - input_parameters(drift)
    v = np.where(np.arange(len(v)) < own, v, 0.0)
    if not v.any():
        return np.zeros(drift.theta.size)
    size = 0.01 * max(1.0, float(np.abs(drift.theta).max())) / float(np.abs(v).max())
    total = np.zeros(drift.theta.size)
    for step, share in ((1.0, 2.0 / 3.0), (2.0, -1.0 / 12.0)):
        for sign in (1.0, -1.0):
            moved = drift.with_theta(drift.theta + sign * step * size * v)
            total[:own] += sign * share / size * _pulled(moved, codes, weights, with_gates)
    return total


def _pulled(drift: Any, codes: Codes, weights: Floats, with_gates: bool) -> Floats:
    """Return sum_c <Psi_k(c), weights[c]>, ``(p,)``, from the pullback at unit states."""
    dim = drift.latent_dim
    points = np.tile(np.concatenate([np.eye(dim), np.zeros((1, dim))]), (len(codes), 1, 1))
    # a unit state also has the constant feature, which the last point takes back
    rows = np.moveaxis(weights, 2, 1).copy()
    rows[:, dim] -= rows[:, :dim].sum(axis=1)
    every = np.repeat(codes[:, None], dim + 1, axis=1)
    total = drift.pullback(points, every, rows[..., :dim]).sum(axis=(0, 1))
    if with_gates:
        total = total + drift.gate_pullback(points, rows[..., dim:]).sum(axis=(0, 1))
    return np.asarray(total)


def _probed(drift: Any, code: Codes, with_gates: bool) -> csr_array:
    """Return Psi(c) of one code, ``(E (M+1), p)``."""
    from scipy.sparse import csr_array

    dim, gated = drift.latent_dim, drift.gated
    points = np.concatenate([np.eye(dim), np.zeros((1, dim))])

    def rows(count: int) -> tuple[Floats, Floats]:
        """Every point beside every unit row; families need not broadcast."""
        return np.tile(points, (count, 1, 1)), np.repeat(np.eye(count)[:, None], dim + 1, axis=1)

    z, r = rows(dim)
    found = np.array(drift.pullback(z, np.tile(code, (*z.shape[:-1], 1)), r))
    if with_gates:
        found = np.concatenate([found, drift.gate_pullback(*rows(gated))])
    found[:, :dim] -= found[:, dim:]
    return csr_array(found.reshape(-1, found.shape[-1]))
