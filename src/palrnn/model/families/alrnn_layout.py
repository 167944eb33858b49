"""Where the parameters of an AL-RNN stand in theta, and which of them no data can tell apart.

A_ii and W_ii of an ungated unit act on the same input, so e(A_ii) - e(W_ii) is a null direction of every
information matrix: one for each of the M - P ungated units. ``inputs`` is the number K of external inputs;
p = M^2 + 2 M + M K.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from palrnn.engine.checks import Floats

if TYPE_CHECKING:
    from scipy.sparse import csc_array


def row_indices(dim: int, inputs: int = 0) -> NDArray[np.int64]:
    """Return ``(M, M+2+K)``: where [A_i, W_i, h_i, C_i] of each latent row i stand in theta."""
    rows = np.arange(dim)[:, None]
    after = dim + dim * dim + rows
    C = 2 * dim + dim * dim + rows * inputs + np.arange(inputs)
    return np.concatenate([rows, dim + rows * dim + np.arange(dim), after, C], axis=1)


def units_of(size: int, inputs: int = 0) -> int:
    """Return M of an AL-RNN with ``size`` drift parameters, p = M (M + 2 + K); 0 where there is none."""
    half = 2 + inputs
    dim = (math.isqrt(half * half + 4 * size) - half) // 2
    return dim if dim * (dim + half) == size else 0


def null_units(*matrices: Floats, inputs: int = 0) -> NDArray[np.int64]:
    """Return the units i for which every matrix ``(p, p)`` annihilates e(A_ii) - e(W_ii), up to rounding.

    With p = M^2 + 2 M + M K these are the ungated units, and gated ones that were open all the time. Empty
    where p is not of that form.
    """
    size = len(matrices[0])
    dim = units_of(size, inputs)
    if dim < 1:
        return np.zeros(0, dtype=np.int64)
    a = np.arange(dim)
    w = dim + a * dim + a
    null = np.ones(dim, dtype=np.bool_)
    for matrix in matrices:
        left = np.abs(matrix[:, a] - matrix[:, w]).max(axis=0)
        null &= left <= 1e-8 * np.abs(matrix).max()
    return np.flatnonzero(null)


def identifiable_basis(size: int, units: NDArray[np.int64], inputs: int = 0) -> csc_array:
    """Return an orthonormal, sparse basis ``(p, p - n)`` of all but the null directions of ``units (n,)``."""
    from scipy.sparse import csc_array

    dim = units_of(size, inputs)
    a, w = units, dim + units * dim + units
    kept = np.setdiff1d(np.arange(size), w)
    half = math.sqrt(0.5)
    values = np.concatenate([np.where(np.isin(kept, a), half, 1.0), np.full(len(w), half)])
    columns = np.concatenate([np.arange(len(kept)), np.searchsorted(kept, a)])
    return csc_array((values, (np.concatenate([kept, w]), columns)), shape=(size, len(kept)))
