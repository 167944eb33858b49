"""The arrays of a PAL-RNN as the kernels of this room want them, and the scratch that they work in."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from palrnn.engine.checks import Floats
from palrnn.model import PALRNN

_LANES, _LINE = 8, 64


class System(NamedTuple):
    """A PAL-RNN padded with zeros from M to D, a multiple of 8: every row is a whole number of vectors.

    ``A (D,)``, ``Ft (D, D)`` the transpose of A + W, ``h (D,)``, ``process (D,)`` the diagonal of Q,
    ``precision (D,)`` that of Q^(-1/2), ``observation (N,)`` that of R, and ``gate (P,)`` the variance of the
    gate noise, once per gated unit. The gated units are M-P, ..., M-1; ``latent_dim`` is M.
    """

    A: Floats
    Ft: Floats
    h: Floats
    process: Floats
    precision: Floats
    observation: Floats
    gate: Floats
    latent_dim: int


class Scratch(NamedTuple):
    """What one belief needs while it is stepped: ``product (D, D)``, ``after (D,)``, the indices of
    ``active`` and ``closed`` units, ``order (n,)`` = 0, 1, ..., and ``rows``, ``unit``, ``minus (n, D)``,
    with n = max(N, P)."""

    product: Floats
    after: Floats
    active: NDArray[np.int64]
    closed: NDArray[np.int64]
    order: NDArray[np.int64]
    rows: Floats
    unit: Floats
    minus: Floats


def padded_system(model: PALRNN) -> System:
    """Return the padded arrays of ``model``."""
    drift = model.drift
    dim, latent = padded(drift.latent_dim), drift.latent_dim
    A, h, process, precision = (aligned((dim,)) for _ in range(4))
    A[:latent], h[:latent], process[:latent] = drift.A, drift.h, model.process_variances
    precision[:latent] = 1.0 / np.sqrt(process[:latent])
    Ft = aligned((dim, dim))
    Ft[:latent, :latent] = (drift.W + np.diag(drift.A)).T
    gate = np.full(drift.gated, model.gate_std**2)
    return System(A, Ft, h, process, precision, model.observation_variances, gate, latent)


def scratch_for(model: PALRNN) -> Scratch:
    """Return fresh scratch; two threads must not share one."""
    dim = padded(model.drift.latent_dim)
    count = max(model.drift.observed_dim, model.drift.gated)
    rows, unit, minus = (aligned((count, dim)) for _ in range(3))
    active, closed, order = (np.arange(size, dtype=np.int64) for size in (dim + 1, dim + 1, count))
    return Scratch(aligned((dim, dim)), aligned((dim,)), active, closed, order, rows, unit, minus)


def padded(dim: int) -> int:
    """Return ``dim`` rounded up to a multiple of the vector length."""
    return -(-dim // _LANES) * _LANES


def aligned(shape: tuple[int, ...]) -> Floats:
    """Return zeros that start on a cache line, so that no vector load straddles two."""
    size = int(np.prod(shape))
    room: NDArray[Any] = np.zeros(size + _LINE // 8)
    skip = -room.ctypes.data % _LINE // 8
    return room[skip : skip + size].reshape(shape)
