"""The paper's filter in JAX with our outputs, scanned over time and jitted, with its Kalman step in two ways.

`textbook` is written for one particle and vectorised by `vmap`, as one writes it first: predict, gain,
update, log density. `batched` is the fastest form we found: all particles in each array, and one triangular
factor for both the update and the density.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from palrnn import PALRNN

jax.config.update("jax_enable_x64", True)

Advance = Callable[[Any, Any, Any, Any], tuple[Any, Any, Any]]


def textbook(model: PALRNN) -> Advance:
    """The Kalman step of one particle, vectorised."""
    dim, seen = model.drift.latent_dim, model.drift.observed_dim
    A, W, h, Q, R = _parameters(model)
    H = jnp.eye(seen, dim)

    def advance(gate, mean, cov, observation):
        J = jnp.diag(A) + W * gate
        mean, cov = J @ mean + h, J @ cov @ J.T + Q
        S = H @ cov @ H.T + R
        factor = jax.scipy.linalg.cho_factor(S, lower=True)
        gain = jax.scipy.linalg.cho_solve(factor, H @ cov).T
        density = jax.scipy.stats.multivariate_normal.logpdf(observation, H @ mean, S)
        mean = mean + gain @ (observation - H @ mean)
        cov = cov - gain @ S @ gain.T
        return mean, 0.5 * (cov + cov.T), density

    return jax.vmap(advance, in_axes=(0, 0, 0, None))


def batched(model: PALRNN) -> Advance:
    """The Kalman step of all particles at once."""
    seen = model.drift.observed_dim
    A, W, h, Q, R = _parameters(model)
    constant, solve = seen * jnp.log(2 * jnp.pi), partial(jax.scipy.linalg.solve_triangular, lower=True)

    def advance(gate, mean, cov, observation):
        J = W[None] * gate[:, None, :] + jnp.diag(A)[None]
        mean = jnp.einsum("pij,pj->pi", J, mean) + h
        cov = J @ cov @ J.transpose(0, 2, 1) + Q
        root = jnp.linalg.cholesky(cov[:, :seen, :seen] + R)
        error = solve(root, (observation - mean[:, :seen])[..., None])[..., 0]
        scaled = solve(root, cov[:, :seen])
        mean = mean + jnp.einsum("pni,pn->pi", scaled, error)
        cov = cov - scaled.transpose(0, 2, 1) @ scaled
        cov = 0.5 * (cov + cov.transpose(0, 2, 1))
        logdet = 2 * jnp.log(jnp.diagonal(root, axis1=1, axis2=2)).sum(1)
        return mean, cov, -0.5 * (constant + logdet + (error**2).sum(1))

    return advance


def jax_filter(model: PALRNN, x: np.ndarray, particles: int, advance: Advance):
    """Return the filter as a function of a key, giving increments, ESS, entropy, means, codes and so on."""
    drift = model.drift
    dim, gated = drift.latent_dim, drift.gated
    weight_of_bit = 2 ** jnp.arange(gated)

    def step(carry, inputs):
        mean, cov, logw = carry
        key, observation = inputs
        gate_key, pick_key = jax.random.split(key)
        nu = jnp.diagonal(cov, axis1=1, axis2=2)[:, dim - gated :]
        opened = jax.scipy.stats.norm.cdf(mean[:, dim - gated :] / jnp.sqrt(nu + model.gate_std**2))
        code = jax.random.uniform(gate_key, opened.shape) < opened
        gate = jnp.concatenate([jnp.ones((particles, dim - gated)), code.astype(jnp.float64)], axis=1)
        mean, cov, density = advance(gate, mean, cov, observation)
        logw = logw + density
        increment = jax.scipy.special.logsumexp(logw)
        logw = logw - increment
        w = jnp.exp(logw)
        ess = 1 / (w**2).sum()
        mass = jnp.zeros(2**gated).at[(code * weight_of_bit).sum(1)].add(w)
        entropy = -jnp.where(mass > 0, mass * jnp.log2(jnp.where(mass > 0, mass, 1)), 0).sum()
        kept = (increment, ess, entropy, w @ mean, w @ code, code)

        def resampled(state):
            mean, cov, logw = state
            index = jax.random.categorical(pick_key, logw, shape=(particles,))
            return (mean[index], cov[index], jnp.full(particles, -jnp.log(particles))), index

        def left(state):
            return state, jnp.arange(particles)

        carry, ancestors = jax.lax.cond(ess < 0.5 * particles, resampled, left, (mean, cov, logw))
        return carry, (*kept, ancestors)

    start = jnp.tile(jnp.asarray(drift.embed(x[0])), (particles, 1))
    spread = jnp.tile(jnp.diag(jnp.asarray(model.initial_variances)), (particles, 1, 1))

    @jax.jit
    def run(key):
        carry = (start, spread, jnp.full(particles, -jnp.log(particles)))
        return jax.lax.scan(step, carry, (jax.random.split(key, len(x) - 1), jnp.asarray(x[1:])))[1]

    return run


def _parameters(model: PALRNN) -> tuple[Any, ...]:
    drift = model.drift
    noises = (jnp.diag(jnp.asarray(v)) for v in (model.process_variances, model.observation_variances))
    return *(jnp.asarray(a) for a in (drift.A, drift.W, drift.h)), *noises
