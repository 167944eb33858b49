"""Teacher forcing written plainly in JAX, for automatic differentiation: no folding, no batching tricks."""

from __future__ import annotations

import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)


def loss(parameters, x, gated, tau, alpha):
    """The loss of one sequence x (T, N) under parameters (A, W, h, E)."""
    A, W, h, E = parameters
    dim, seen = E.shape

    def phi(z):
        return jnp.concatenate([z[: dim - gated], jnp.where(z[dim - gated :] > 0, z[dim - gated :], 0.0)])

    z = jnp.concatenate([x[0], (E @ x[0])[seen:]])
    total = 0.0
    for t in range(x.shape[0] - 1):
        if t > 0 and t % tau == 0:
            z = z.at[:seen].set((1 - alpha) * z[:seen] + alpha * x[t])
        z = A * z + W @ phi(z) + h
        total = total + jnp.sum((z[:seen] - x[t + 1]) ** 2)
    return total / (x.shape[0] - 1)


def batch_loss(parameters, x, gated, tau, alpha):
    """The mean loss of sequences x (B, T, N)."""
    return sum(loss(parameters, sequence, gated, tau, alpha) for sequence in x) / x.shape[0]
