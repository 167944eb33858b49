"""Random AL-RNNs for property-based tests, and the map written out unit by unit."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from palrnn.model import ALRNN


def random_network(latent_dim: int, observed_dim: int, gated: int, seed: int = 0, gain: float = 1.0) -> ALRNN:
    """A network with entries of order ``gain``; with a small gain it contracts."""
    rng = np.random.default_rng(seed)
    A = gain * rng.uniform(-1, 1, latent_dim)
    W = gain * rng.standard_normal((latent_dim, latent_dim)) / np.sqrt(latent_dim)
    return ALRNN(
        A, W, rng.standard_normal(latent_dim), rng.standard_normal((latent_dim, observed_dim)), gated
    )


@st.composite
def networks(draw, largest: int = 7):
    """Every M, N <= M and P from 0 to M."""
    latent_dim = draw(st.integers(1, largest))
    observed_dim = draw(st.integers(1, latent_dim))
    gated = draw(st.integers(0, latent_dim))
    return random_network(latent_dim, observed_dim, gated, draw(st.integers(0, 1000)))


def plain_step(model: ALRNN, z: np.ndarray) -> np.ndarray:
    """z' = A z + W phi*(z) + h, with phi* the ReLU on the last P units."""
    dim = len(model.h)
    phi = [z[j] if j < dim - model.gated else max(z[j], 0.0) for j in range(dim)]
    after = np.empty(dim)
    for i in range(dim):
        after[i] = model.A[i] * z[i] + model.h[i] + sum(model.W[i, j] * phi[j] for j in range(dim))
    return after
