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
    free, seen, length = E.shape[0] - gated, E.shape[1], x.shape[1]
    known = ~jnp.isnan(x)
    x = jnp.where(known, x, 0.0)
    z = jnp.concatenate([x[:, 0], (x[:, 0] @ E.T)[:, seen:]], axis=1)
    total = 0.0
    for t in range(length - 1):
        if t > 0 and t % tau == 0:
            mixed = jnp.where(known[:, t], (1 - alpha) * z[:, :seen] + alpha * x[:, t], z[:, :seen])
            z = jnp.concatenate([mixed, z[:, seen:]], axis=1)
        rectified = jnp.concatenate([z[:, :free], jax.nn.relu(z[:, free:])], axis=1)
        z = A * z + rectified @ W.T + h
        if s is not None:
            z = z + s[:, t] @ C[0].T
        total = total + jnp.sum(known[:, t + 1] * (z[:, :seen] - x[:, t + 1]) ** 2)
    return total * seen / jnp.sum(known[:, 1:])
