"""The arrays of a PAL-RNN as the kernels of this room want them: padded, variances in place of deviations."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from palrnn.engine.checks import Floats
from palrnn.model import PALRNN

_LANES = 8


class System(NamedTuple):
    """A PAL-RNN padded with zeros from M to D, a multiple of 8: products of 32 x 32 are faster than of 30 x
    30.

    ``A (D,)``, ``W (D, D)``, ``h (D,)``, ``process (D,)`` the diagonal of Q, ``observation (N,)`` of R, and
    ``gate (P,)`` the variance of the gate noise, once per gated unit. The gated units are M-P, ..., M-1.
    """

    A: Floats
    W: Floats
    h: Floats
    process: Floats
    observation: Floats
    gate: Floats
    latent_dim: int


def padded_system(model: PALRNN) -> System:
    """Return the padded arrays of ``model``."""
    drift = model.drift
    dim = padded(drift.latent_dim)
    return System(
        grown(drift.A, (dim,)),
        grown(drift.W, (dim, dim)),
        grown(drift.h, (dim,)),
        grown(model.process_variances, (dim,)),
        model.observation_variances,
        np.full(drift.gated, model.gate_std**2),
        drift.latent_dim,
    )


def padded(dim: int) -> int:
    """Return ``dim`` rounded up to a multiple of the vector length."""
    return -(-dim // _LANES) * _LANES


def grown(array: Floats, shape: tuple[int, ...]) -> Floats:
    """Return ``array`` in the corner of zeros of ``shape``."""
    large = np.zeros(shape)
    large[tuple(slice(0, n) for n in array.shape)] = array
    return large
