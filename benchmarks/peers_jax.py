"""One teacher-forced update in JAX: `lax.scan`, `value_and_grad` and optax RAdam, jitted as a whole.

`jax_update` is that of an AL-RNN, `jax_shallow_update` that of a shallow PLRNN.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import optax

from palrnn.model import ALRNN, ShallowPLRNN

Update = Callable[[np.ndarray], float]


def jax_update(model: ALRNN, series: np.ndarray, length: int, tau: int, rate: float) -> Update:
    """Return a function that trains a copy of ``model`` on the batch at given starts and returns its loss."""
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

    return _update((model.A, model.W, model.h, model.E), loss_of, series, length, rate)


def jax_shallow_update(
    model: ShallowPLRNN, series: np.ndarray, length: int, alpha: float, rate: float
) -> Update:
    """Return a function that trains a copy of ``model``, forced at every step, and returns the loss."""
    seen = model.observed_dim
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

    parts = (model.A, model.W1, model.W2, model.h1, model.h2, model.E)
    return _update(parts, loss_of, series, length, rate)


def _update(parts, loss_of, series: np.ndarray, length: int, rate: float) -> Update:
    x = jnp.asarray(series, dtype=jnp.float32)
    parameters = tuple(jnp.asarray(part, dtype=jnp.float32) for part in parts)
    optimiser = optax.radam(rate)

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
