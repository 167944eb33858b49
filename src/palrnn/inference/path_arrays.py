"""The arrays of a PAL-RNN as the kernels that walk a gate path want them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from palrnn.engine.checks import Floats
from palrnn.model import PALRNN

_MULTIPLE, _LINE = 8, 64


class PathArrays(NamedTuple):
    """A PAL-RNN padded with zeros from M to D, a multiple of 8: every row is a whole number of vectors.

    These are the model's own coordinates, in which Q is diagonal, as the backward kernels of a path want it;
    in those of `FilterArrays` it is not.

    ``A (D,)``, ``Ft (D, D)`` the transpose of A + W, ``h (1, D)`` the bias, or ``(T, D)`` that of each
    transition, h + C s_t, ``process (D,)`` the diagonal of Q,
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


def path_arrays(model: PALRNN, drive: Floats | None = None) -> PathArrays:
    """Return the padded arrays of ``model``; ``drive (T, M)`` is C s_t, None without inputs."""
    drift = model.drift
    dim, latent = padded(drift.latent_dim), drift.latent_dim
    A, process, precision = (aligned((dim,)) for _ in range(3))
    A[:latent], process[:latent] = drift.A, model.process_variances
    h = aligned((1 if drive is None else len(drive), dim))
    h[:, :latent] = drift.h if drive is None else drift.h + drive
    precision[:latent] = 1.0 / np.sqrt(process[:latent])
    Ft = aligned((dim, dim))
    Ft[:latent, :latent] = (drift.W + np.diag(drift.A)).T
    gate = np.full(drift.gated, model.gate_std**2)
    return PathArrays(A, Ft, h, process, precision, model.observation_variances, gate, latent)


def padded(dim: int) -> int:
    """Return ``dim`` rounded up to a multiple of the vector length."""
    return -(-dim // _MULTIPLE) * _MULTIPLE


def aligned(shape: tuple[int, ...]) -> Floats:
    """Return zeros that start on a cache line, so that no vector load straddles two."""
    size = int(np.prod(shape))
    room: NDArray[Any] = np.zeros(size + _LINE // 8)
    skip = -room.ctypes.data % _LINE // 8
    return room[skip : skip + size].reshape(shape)
