"""One teacher-forced update in JAX: `lax.scan`, `value_and_grad` and optax RAdam, jitted as a whole."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import optax

from palrnn.model import ALRNN


def jax_update(
    model: ALRNN, series: np.ndarray, length: int, tau: int, rate: float
) -> Callable[[np.ndarray], float]:
    """Return a function that trains a copy of ``model`` on the batch at given starts and returns its loss."""
    x = jnp.asarray(series, dtype=jnp.float32)
    parameters = tuple(jnp.asarray(part, dtype=jnp.float32) for part in (model.A, model.W, model.h, model.E))
    optimiser = optax.radam(rate)
    free, seen = model.latent_dim - model.gated, model.observed_dim
    times = jnp.arange(length - 1)
    forced = (times > 0) & (times % tau == 0)

    def loss_of(parameters, batch):
        A, W, h, E = parameters
        start = jnp.concatenate([batch[0], (batch[0] @ E.T)[:, seen:]], axis=1)

        def step(z, inputs):
            force, now, after = inputs
            z = jnp.where(force, jnp.concatenate([now, z[:, seen:]], axis=1), z)
            z = A * z + jnp.concatenate([z[:, :free], jax.nn.relu(z[:, free:])], axis=1) @ W.T + h
            return z, jnp.sum((z[:, :seen] - after) ** 2)

        _, squares = jax.lax.scan(step, start, (forced, batch[:-1], batch[1:]))
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
