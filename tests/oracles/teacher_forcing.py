"""Teacher forcing written plainly in JAX, for automatic differentiation: no folding, no fused loops."""

from __future__ import annotations

import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)


def batch_loss(parameters, x, gated, tau, alpha, s=None):
    """The loss of sequences x (B, T, N) under parameters (A, W, h, E); NaN is not observed.

    With inputs s (B, T, K) the parameters are (A, W, h, C, E).
    """
    A, W, h, *C, E = parameters
    free = E.shape[0] - gated

    def step(z):
        rectified = jnp.concatenate([z[:, :free], jax.nn.relu(z[:, free:])], axis=1)
        return A * z + rectified @ W.T + h

    return _loss(step, C, E, x, tau, alpha, s)


def shallow_batch_loss(parameters, x, clipped, tau, alpha, s=None):
    """The same for a shallow PLRNN: parameters (A, W1, W2, h1, h2, E), or (..., C, E)."""
    A, W1, W2, h1, h2, *C, E = parameters

    def step(z):
        hidden = jax.nn.relu(z @ W2.T + h2) - (jax.nn.relu(z @ W2.T) if clipped else 0.0)
        return A * z + hidden @ W1.T + h1

    return _loss(step, C, E, x, tau, alpha, s)


def _loss(step, C, E, x, tau, alpha, s):
    seen, known = E.shape[1], ~jnp.isnan(x)
    x = jnp.where(known, x, 0.0)
    z = jnp.concatenate([x[:, 0], (x[:, 0] @ E.T)[:, seen:]], axis=1)
    total = 0.0
    for t in range(x.shape[1] - 1):
        if t > 0 and t % tau == 0:
            mixed = jnp.where(known[:, t], (1 - alpha) * z[:, :seen] + alpha * x[:, t], z[:, :seen])
            z = jnp.concatenate([mixed, z[:, seen:]], axis=1)
        z = step(z)
        if s is not None:
            z = z + s[:, t] @ C[0].T
        total = total + jnp.sum(known[:, t + 1] * (z[:, :seen] - x[:, t + 1]) ** 2)
    return total * seen / jnp.sum(known[:, 1:])
