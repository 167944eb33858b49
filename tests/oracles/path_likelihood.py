"""The likelihood of a gate path in JAX, so that its derivatives in theta come for free: a textbook Kalman
filter.

Any noise, any observation map, NaN where nothing was observed, and gate inputs as further observations.
"""

from __future__ import annotations

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm

from palrnn import ALRNN

jax.config.update("jax_enable_x64", True)


def pieces(drift):
    """Return a function of theta that gives J(c), b(c) of a code, and G, g, written down once more."""
    dim, gated = drift.latent_dim, drift.gated
    if isinstance(drift, ALRNN):

        def alrnn(theta):
            A, W, h = jnp.split(theta, [dim, dim + dim * dim])
            free = jnp.ones(dim - gated)

            def affine(code):
                return jnp.diag(A) + W.reshape(dim, dim) * jnp.concatenate([free, code]), h

            return affine, jnp.eye(dim)[dim - gated :], jnp.zeros(gated)

        return alrnn

    def shallow(theta):
        sizes = np.cumsum([drift.A.size, drift.W1.size, drift.W2.size, drift.h1.size])
        A, W1, W2, h1, h2 = jnp.split(theta, sizes)
        W1, W2 = W1.reshape(drift.W1.shape), W2.reshape(drift.W2.shape)

        if gated == len(h2):

            def affine(code):
                return jnp.diag(A) + (W1 * code) @ W2, (W1 * code) @ h2 + h1

            return affine, W2, h2

        def clipped(code):
            shifted, plain = jnp.split(code, 2)
            return jnp.diag(A) + (W1 * (shifted - plain)) @ W2, (W1 * shifted) @ h2 + h1

        return clipped, jnp.concatenate([W2, W2]), jnp.concatenate([h2, jnp.zeros(len(h2))])

    return shallow


def whitened(model, x):
    """Return rows H (T-1, N, M), values (T-1, N) with independent noise of variance 1, and a constant.

    What was not observed becomes a row of zeros with the value 0, whose density the constant takes back.
    """
    reads, R = model.observation_map, model.observation_covariance
    H, y, constant = np.zeros((len(x) - 1, *reads.B.shape)), np.zeros((len(x) - 1, len(R))), 0.0
    for t, row in enumerate(x[1:]):
        seen = np.flatnonzero(~np.isnan(row))
        root = np.linalg.cholesky(R[np.ix_(seen, seen)])
        H[t, : len(seen)] = np.linalg.solve(root, reads.B[seen])
        y[t, : len(seen)] = np.linalg.solve(root, (row - reads.d)[seen])
        constant += 0.5 * (len(R) - len(seen)) * np.log(2 * np.pi) - np.log(np.diag(root)).sum()
    return H, y, constant


def log_likelihood(model, x, with_inputs=False, with_gates=False, inputs=None):
    """Return f(theta, codes, u): log p(x_2, ..., x_T [, gate inputs u] [, codes] | x_1, codes).

    ``inputs (T, K)`` drive the model through C, the last entries of theta. ``with_gates`` counts the
    integrated probits of the paper's target as well. Beliefs are conditioned on one number after the other,
    so that no matrix is solved with.
    """
    build, Q = pieces(model.drift), jnp.asarray(model.process_covariance)
    start = (jnp.asarray(model.drift.embed(x[0])), jnp.asarray(model.initial_covariance))
    H, y, constant = whitened(model, x)
    dim = model.drift.latent_dim
    driving = jnp.zeros((len(x) - 1, 0)) if inputs is None else jnp.asarray(inputs)[:-1]
    own = model.drift.theta.size - dim * driving.shape[1]

    def conditioned(mean, cov, row, value, variance):
        seen = cov @ row
        s, error = row @ seen + variance, value - row @ mean
        density = -0.5 * (jnp.log(2 * jnp.pi * s) + error**2 / s)
        return mean + seen * (error / s), cov - jnp.outer(seen, seen) / s, density

    def f(theta, codes, inputs):
        affine, G, g = build(theta[:own])
        pushes = driving @ theta[own:].reshape(dim, driving.shape[1]).T

        def step(belief, given):
            (mean, cov), (code, u, rows, values, push) = belief, given
            total = 0.0
            if with_gates:
                psi = (G @ mean + g) / jnp.sqrt(((G @ cov) * G).sum(axis=1) + model.gate_std**2)
                total += norm.logcdf(jnp.where(code > 0, psi, -psi)).sum()
            for j in range(len(g) if with_inputs else 0):
                mean, cov, density = conditioned(mean, cov, G[j], u[j] - g[j], model.gate_std**2)
                total += density
            J, b = affine(code)
            mean, cov = J @ mean + b + push, J @ cov @ J.T + Q
            for n in range(rows.shape[0]):
                mean, cov, density = conditioned(mean, cov, rows[n], values[n], 1.0)
                total += density
            return (mean, cov), total

        return jax.lax.scan(step, start, (codes, inputs, H, y, pushes))[1].sum() + constant

    return f


def all_codes(steps, gated):
    """Every gate path, ``(2^(P (T-1)), T-1, P)``."""
    return np.array(list(product((0.0, 1.0), repeat=steps * gated))).reshape(-1, steps, gated)


def grid_of_inputs(steps, gated, points=5, reach=4.0):
    """Gate inputs on a grid ``(n, T-1, P)`` and the log of their weights: Gauss-Legendre on either side of
    0."""
    nodes, weights = np.polynomial.legendre.leggauss(points)
    half, share = reach * (nodes + 1) / 2, reach * weights / 2
    line, share = np.concatenate([-half, half]), np.concatenate([share, share])
    inputs = np.array(list(product(line, repeat=steps * gated))).reshape(-1, steps, gated)
    logs = np.array([sum(w) for w in product(np.log(share), repeat=steps * gated)])
    return inputs, logs


# compiled without optimising, which takes longer than what it saves here
_QUICKLY = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
# central differences of order eight: with this step truncation and rounding are both below 1e-12 here
_STEP, _WEIGHTS = 0.004, np.array([4 / 5, -1 / 5, 4 / 105, -1 / 280])


def derivatives(f, theta):
    """Return value, gradient and minus the Hessian of f at theta.

    The Hessian takes differences of the automatic gradient, which compiles in half the time that a second
    automatic derivative takes.
    """
    theta = jnp.asarray(theta)
    both = jax.jit(jax.vmap(jax.value_and_grad(f)))
    away = np.concatenate([[0, k, -k] if k == 1 else [k, -k] for k in range(1, len(_WEIGHTS) + 1)])
    moved = [theta + k * _STEP * e for e in np.eye(len(theta)) for k in away]
    moved = jnp.stack(moved)
    values, gradients = both.lower(moved).compile(compiler_options=_QUICKLY)(moved)
    gradients = np.asarray(gradients).reshape(len(theta), len(away), -1)
    differences = gradients[:, 1::2] - gradients[:, 2::2]
    return float(values[0]), gradients[0, 0], -np.tensordot(differences, _WEIGHTS, (1, 0)) / _STEP
