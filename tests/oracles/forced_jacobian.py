"""The forced rollout in JAX, differentiated automatically: no sensitivity recursion, no structure."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)


def predictions(theta, E, gated, x, forcing):
    """Return the observed part of z_1 .. z_{T-1} along the forced rollout, (T-1, N), given theta.

    ``forcing (T-1,)`` or ``(T-1, N)`` is the strength of forcing at each step.
    """
    dim, seen = E.shape
    A, W, h = theta[:dim], theta[dim : dim + dim * dim].reshape(dim, dim), theta[dim + dim * dim :]
    free = jnp.arange(dim) < dim - gated

    def step(z, given):
        observation, strength = given
        z = jnp.concatenate([(1 - strength) * z[:seen] + strength * observation, z[seen:]])
        after = A * z + W @ jnp.where(free | (z > 0), z, 0.0) + h
        return after, after[:seen]

    start = jnp.concatenate([x[0], (E @ x[0])[seen:]])
    return jax.lax.scan(step, start, (x[:-1], forcing))[1]


@partial(jax.jit, static_argnums=2)
def _jacobian(theta, E, gated, x, forcing):
    return jax.jacfwd(predictions)(theta, E, gated, x, forcing)


def gauss_newton(model, x, tau, observation_std, alpha=1.0):
    """Return J^T Lambda^{-1} J / (T - 1) from the automatic Jacobian of all predictions.

    What is NaN in ``x`` is neither forced nor predicted.
    """
    known, given = ~np.isnan(x), np.nan_to_num(x)
    times = np.array([alpha if t > 0 and t % tau == 0 else 0.0 for t in range(len(x) - 1)])
    forcing = times[:, None] * known[:-1]
    jacobian = np.asarray(_jacobian(model.theta, model.E, model.gated, given, forcing))
    jacobian = jacobian * known[1:, :, None]
    weighted = jacobian / np.broadcast_to(observation_std, (x.shape[1],))[:, None]
    rows = weighted.reshape(-1, model.theta.size)
    return rows.T @ rows / (len(x) - 1)


def driven_gauss_newton(model, x, inputs, forcing, observation_std):
    """The same for a driven AL-RNN or shallow PLRNN under a `Forcing`; ``inputs (T, K)`` enter through C."""
    known, given = ~np.isnan(x), np.nan_to_num(x)
    every, alpha = forcing.interval, forcing.strength
    times = np.array([alpha if t > 0 and t % every == 0 else 0.0 for t in range(len(x) - 1)])
    seen, dim = x.shape[1], model.latent_dim
    own, step = model.theta.size - model.C.size, _map_of(model)

    def along(theta):
        C = theta[own:].reshape(dim, -1)

        def forced(z, row):
            observation, strength, s = row
            z = jnp.concatenate([(1 - strength) * z[:seen] + strength * observation, z[seen:]])
            after = step(theta[:own], z) + C @ s
            return after, after[:seen]

        rows = (given[:-1], times[:, None] * known[:-1], inputs[:-1])
        return jax.lax.scan(forced, jnp.asarray(model.embed(given[0])), rows)[1]

    jacobian = np.asarray(jax.jit(jax.jacfwd(along))(model.theta)) * known[1:, :, None]
    rows = (jacobian / observation_std).reshape(-1, model.theta.size)
    return rows.T @ rows / (len(x) - 1)


def _map_of(model):
    """Return F(theta, z) of a family, with rectifiers instead of codes."""
    dim = model.latent_dim
    if hasattr(model, "W"):
        free = jnp.arange(dim) < dim - model.gated

        def alrnn(theta, z):
            A, W, h = jnp.split(theta, [dim, dim + dim * dim])
            return A * z + W.reshape(dim, dim) @ jnp.where(free, z, jax.nn.relu(z)) + h

        return alrnn
    sizes = np.cumsum([model.A.size, model.W1.size, model.W2.size, model.h1.size])

    def shallow(theta, z):
        A, W1, W2, h1, h2 = jnp.split(theta, sizes)
        u = W2.reshape(model.W2.shape) @ z
        y = jax.nn.relu(u + h2) - (jax.nn.relu(u) if model.gates_per_hidden == 2 else 0.0)
        return A * z + W1.reshape(model.W1.shape) @ y + h1

    return shallow
