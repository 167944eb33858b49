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
