"""One teacher-forced update of a shallow PLRNN in JAX: `lax.scan`, `value_and_grad`, optax RAdam, jitted."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import optax

from palrnn.model import ShallowPLRNN


def jax_update(
    model: ShallowPLRNN, series: np.ndarray, length: int, alpha: float, rate: float
) -> Callable[[np.ndarray], float]:
    """Return a function that trains a copy of ``model``, forced at every step, and returns the loss."""
    x = jnp.asarray(series, dtype=jnp.float32)
    parts = (model.A, model.W1, model.W2, model.h1, model.h2, model.E)
    parameters = tuple(jnp.asarray(part, dtype=jnp.float32) for part in parts)
    optimiser, seen = optax.radam(rate), model.observed_dim
    strengths = jnp.where(jnp.arange(length - 1) > 0, alpha, 0.0).astype(jnp.float32)

    def loss_of(parameters, batch):
        A, W1, W2, h1, h2, E = parameters
        start = jnp.concatenate([batch[0], (batch[0] @ E.T)[:, seen:]], axis=1)

        def step(z, inputs):
            strength, now, after = inputs
            forced = (1 - strength) * z[:, :seen] + strength * now
            z = jnp.concatenate([forced, z[:, seen:]], axis=1)
            z = A * z + jax.nn.relu(z @ W2.T + h2) @ W1.T + h1
            return z, jnp.sum((z[:, :seen] - after) ** 2)

        _, squares = jax.lax.scan(step, start, (strengths, batch[:-1], batch[1:]))
        return jnp.sum(squares) / ((length - 1) * batch.shape[1])

    @jax.jit
    def whole(parameters, state, starts):
        batch = x[(starts[:, None] + jnp.arange(length)).T]
        loss, gradient = jax.value_and_grad(loss_of)(parameters, batch)
        changes, state = optimiser.update(gradient, state, parameters)
        return optax.apply_updates(parameters, changes), state, loss

    now = {"parameters": parameters, "state": optimiser.init(parameters)}

    def update(starts: np.ndarray) -> float:
        now["parameters"], now["state"], loss = whole(now["parameters"], now["state"], jnp.asarray(starts))
        return float(loss)

    return update
