"""Small PAL-RNNs whose gates matter, with data drawn from them."""

from __future__ import annotations

import numpy as np

from palrnn import ALRNN, PALRNN


def gated_model(
    gated, *, observed=1, latent=None, gate_std=0.5, process_std=0.5, observation_std=0.4, seed=3
):
    """A stable network in which opening a gate changes the next state by about the size of the noise."""
    rng = np.random.default_rng(seed)
    latent = gated + observed if latent is None else latent
    W = 0.8 * rng.standard_normal((latent, latent)) / np.sqrt(max(1, latent / 2))
    W *= min(1.0, 0.5 / max(abs(np.linalg.eigvals(W))))
    h, E = 0.3 * rng.standard_normal(latent), 0.5 * rng.standard_normal((latent, observed))
    drift = ALRNN(np.full(latent, 0.4), W, h, E, gated)
    return PALRNN(drift, process_std, observation_std, gate_std, initial=0.7)


def drawn_series(model, times, seed=5):
    return model.sample(np.full(model.drift.observed_dim, 0.3), times, seed=seed).observations
