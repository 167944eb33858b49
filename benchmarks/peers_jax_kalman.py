"""The likelihood of one gate path in JAX: a Kalman filter, scanned over time, and its Hessian by autodiff."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from palrnn import PALRNN

jax.config.update("jax_enable_x64", True)


def path_hessian_product(model: PALRNN, x: np.ndarray, codes: np.ndarray):
    """Return v -> minus the Hessian of log p(x | codes) in theta times v, jitted (forward over reverse)."""
    drift = model.drift
    dim, seen = drift.latent_dim, drift.observed_dim
    gates = jnp.concatenate(
        [jnp.ones((len(codes), dim - drift.gated)), jnp.asarray(codes, dtype=float)], axis=1
    )
    Q, R = jnp.asarray(model.process_covariance), jnp.asarray(model.observation_covariance)
    start = jnp.asarray(drift.embed(x[0])), jnp.asarray(model.initial_covariance)

    def log_likelihood(theta):
        A, W, h = theta[:dim], theta[dim : dim + dim * dim].reshape(dim, dim), theta[dim + dim * dim :]

        def step(belief, given):
            (mean, cov), (gate, observation) = belief, given
            J = jnp.diag(A) + W * gate
            mean, cov = J @ mean + h, J @ cov @ J.T + Q
            root = jnp.linalg.cholesky(cov[:seen, :seen] + R)
            solve = jax.scipy.linalg.solve_triangular
            error = solve(root, observation - mean[:seen], lower=True)
            scaled = solve(root, cov[:seen], lower=True)
            mean, cov = mean + scaled.T @ error, cov - scaled.T @ scaled
            return (mean, 0.5 * (cov + cov.T)), -jnp.log(jnp.diagonal(root)).sum() - 0.5 * error @ error

        return jax.lax.scan(step, start, (gates, jnp.asarray(x[1:])))[1].sum()

    theta, gradient = jnp.asarray(drift.theta), jax.grad(log_likelihood)
    return jax.jit(lambda v: -jax.jvp(gradient, (theta,), (v,))[1])
