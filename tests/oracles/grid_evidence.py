"""The exact log evidence of a tiny PAL-RNN in JAX, so that its derivatives in theta come for free.

`grid_log_evidence` integrates the states of two latent units on a grid, summing over codes at every step;
nothing is sampled and no Gaussian is conditioned. The trapezoid rule converges faster than any power of its
spacing for smooth densities that vanish at the edges, so the values are exact to about nine digits.

`linear_log_evidence` is for models without gates: the joint Gaussian density of all observations.
"""

from __future__ import annotations

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm

jax.config.update("jax_enable_x64", True)


def parts(theta, dim):
    return theta[:dim], theta[dim : dim + dim * dim].reshape(dim, dim), theta[dim + dim * dim :]


def grid_log_evidence(theta, model, x, half_width=5.5, points=45):
    """Return log p(x_2, ..., x_T | x_1) of a PAL-RNN with M = 2 units, of which the first N are observed."""
    dim, seen, gated = 2, x.shape[1], model.drift.gated
    A, W, h = parts(theta, dim)
    line = np.linspace(-half_width, half_width, points)
    cell = (line[1] - line[0]) ** 2
    grid = np.stack(np.meshgrid(line, line, indexing="ij"), axis=-1).reshape(-1, dim)
    noise, error = np.sqrt(model.process_variances), np.sqrt(model.observation_variances)
    moves = []
    for code in product((0, 1), repeat=gated):
        gates, signs = np.concatenate([np.ones(dim - gated), code]), 2.0 * np.array(code) - 1.0
        chance = jnp.prod(norm.cdf(signs * grid[:, dim - gated :] / model.gate_std), axis=1)
        mean = A * grid + (gates * grid) @ W.T + h
        first, second = (norm.pdf(line[None, :], mean[:, [i]], noise[i]) for i in range(dim))
        moves.append((first * (chance * cell)[:, None], second))

    def step(density, observation):
        moved = sum((first * density[:, None]).T @ second for first, second in moves).reshape(-1)
        after = moved * jnp.prod(norm.pdf(observation, grid[:, :seen], error), axis=1)
        mass = after.sum() * cell
        return after / mass, jnp.log(mass)

    start = jnp.prod(norm.pdf(grid, model.drift.embed(x[0]), np.sqrt(model.initial_variances)), axis=1)
    return jax.lax.scan(step, start, x[1:])[1].sum()


def linear_log_evidence(theta, model, x):
    """Return log p(x_2, ..., x_T | x_1) of a PAL-RNN with P = 0, from the joint law of all observations."""
    dim, seen, steps = model.drift.latent_dim, x.shape[1], len(x) - 1
    A, W, h = parts(theta, dim)
    J = jnp.diag(A) + W
    # z_t = J^t z_0 + sum_s J^{t-1-s} (h + noise_s): stack these maps, push the independent noises through
    powers = [jnp.eye(dim)]
    for _ in range(steps):
        powers.append(J @ powers[-1])
    zero = jnp.zeros((dim, dim))
    maps = jnp.block(
        [
            [powers[t]] + [powers[t - 1 - s] if s < t else zero for s in range(steps)]
            for t in range(1, steps + 1)
        ]
    )
    variances = np.concatenate([model.initial_variances, np.tile(model.process_variances, steps)])
    offsets = jnp.concatenate([jnp.array(model.drift.embed(x[0])), jnp.tile(h, steps)])
    keep = np.concatenate([np.arange(t * dim, t * dim + seen) for t in range(steps)])
    rows = maps[keep]
    cov = (rows * variances) @ rows.T + jnp.diag(np.tile(model.observation_variances, steps))
    return jax.scipy.stats.multivariate_normal.logpdf(jnp.array(x[1:].reshape(-1)), rows @ offsets, cov)


def derivatives(log_evidence, model, x):
    """Return the value, gradient and minus the Hessian of a log evidence at the model's theta.

    The Hessian takes central differences of the automatic gradient (error about 1e-9), which compiles in a
    fraction of the time that a second automatic derivative takes.
    """
    both = jax.jit(jax.value_and_grad(lambda theta: log_evidence(theta, model, x)))
    theta, step = model.drift.theta, 1e-5
    value, gradient = both(theta)
    columns = [(both(theta + e)[1] - both(theta - e)[1]) / (2 * step) for e in step * np.eye(len(theta))]
    return float(value), np.asarray(gradient), -np.array(columns)
