"""Teacher forcing written plainly, for automatic differentiation or complex steps: nothing folded or fused.

Each function takes the module whose arrays it is given, ``jax.numpy`` or ``numpy``.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)


def batch_loss(parameters, x, gated, tau, alpha, s=None, np: Any = jnp):
    """The loss of sequences x (B, T, N) under parameters (A, W, h, E); NaN is not observed.

    With inputs s (B, T, K) the parameters are (A, W, h, C, E).
    """
    A, W, h, *C, E = parameters
    free = E.shape[0] - gated

    def step(z):
        rectified = np.concatenate([z[:, :free], _relu(z[:, free:], np)], axis=1)
        return A * z + rectified @ W.T + h

    return _loss(step, C, E, x, tau, alpha, s, np)


def shallow_batch_loss(parameters, x, clipped, tau, alpha, s=None, np: Any = jnp):
    """The same for a shallow PLRNN: parameters (A, W1, W2, h1, h2, E), or (..., C, E)."""
    A, W1, W2, h1, h2, *C, E = parameters

    def step(z):
        hidden = _relu(z @ W2.T + h2, np) - (_relu(z @ W2.T, np) if clipped else 0.0)
        return A * z + hidden @ W1.T + h1

    return _loss(step, C, E, x, tau, alpha, s, np)


def _relu(z, np):
    return np.where(z.real > 0, z, 0.0)


def _loss(step, C, E, x, tau, alpha, s, np):
    seen, known = E.shape[1], ~np.isnan(x)
    x = np.where(known, x, 0.0)
    z = np.concatenate([x[:, 0], (x[:, 0] @ E.T)[:, seen:]], axis=1)
    total = 0.0
    for t in range(x.shape[1] - 1):
        if t > 0 and t % tau == 0:
            mixed = np.where(known[:, t], (1 - alpha) * z[:, :seen] + alpha * x[:, t], z[:, :seen])
            z = np.concatenate([mixed, z[:, seen:]], axis=1)
        z = step(z)
        if s is not None:
            z = z + s[:, t] @ C[0].T
        total = total + np.sum(known[:, t + 1] * (z[:, :seen] - x[:, t + 1]) ** 2)
    return total * seen / np.sum(known[:, 1:])
