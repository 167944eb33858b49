"""The evidence of tiny PAL-RNNs by summing over all gate paths, and by plain simulation."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np
from oracles.plain_kalman import given_gates, log_normal, start, step, transition
from scipy.stats import multivariate_normal, norm


class Paths(NamedTuple):
    codes: np.ndarray  # (2^(P (T-1)), T-1, P)
    joint: np.ndarray  # p(x, path) of each

    @property
    def evidence(self) -> float:
        return float(self.joint.sum())

    @property
    def gate_marginals(self) -> np.ndarray:
        """P(c_{t,j} = 1 | x), (T-1, P)."""
        return np.tensordot(self.joint, self.codes, axes=1) / self.evidence


def all_codes(model, x) -> np.ndarray:
    shape = (len(x) - 1, model.drift.gated)
    return np.array(list(product((0, 1), repeat=shape[0] * shape[1]))).reshape(-1, *shape)


def with_integrated_probit(model, x) -> Paths:
    """The paper's target: bits are independent with Phi(mu / sqrt(nu + s^2)); the belief ignores the draw."""
    codes = all_codes(model, x)
    return Paths(codes, np.array([_probit_path(model, x, path) for path in codes]))


def _probit_path(model, x, path) -> float:
    free = model.drift.latent_dim - model.drift.gated
    (mean, cov), total = start(model, x), 1.0
    for t, code in enumerate(path):
        opened = norm.cdf(mean[free:] / np.sqrt(np.diag(cov)[free:] + model.gate_std**2))
        total *= np.prod(np.where(code == 1, opened, 1 - opened))
        mean, cov, loglik = step(model, mean, cov, code, x[t + 1])
        total *= np.exp(loglik)
    return total


def with_orthant_probabilities(model, x) -> Paths:
    """The model itself: p(x, c) = N(x; J(c)) P(sign of u is c | x; J(c)), u = z_gated + gate noise.

    The joint Gaussian of all states is written out in full; no filter is involved.
    """
    codes = all_codes(model, x)
    return Paths(codes, np.array([_orthant_path(model, x, path) for path in codes]))


def _orthant_path(model, x, path) -> float:
    drift = model.drift
    M, N, P, T = drift.latent_dim, drift.observed_dim, drift.gated, len(x)
    mean, root = np.zeros(T * M), np.zeros((T * M, T * M))
    mean[:M], root[:M, :M] = drift.embed(x[0]), np.diag(np.sqrt(model.initial_variances))
    for t in range(T - 1):
        J, now, after = transition(model, path[t]), slice(t * M, t * M + M), slice(t * M + M, t * M + 2 * M)
        mean[after] = J @ mean[now] + drift.h
        root[after] = J @ root[now]
        root[after, after] += np.diag(np.sqrt(model.process_variances))
    cov = root @ root.T
    seen = np.array([t * M + n for t in range(1, T) for n in range(N)])
    gated = np.array([t * M + M - P + j for t in range(T - 1) for j in range(P)])
    S = cov[np.ix_(seen, seen)] + np.diag(np.tile(model.observation_variances, T - 1))
    gain = cov[np.ix_(gated, seen)] @ np.linalg.inv(S)
    u_mean = mean[gated] + gain @ (x[1:].ravel() - mean[seen])
    u_cov = (
        cov[np.ix_(gated, gated)] - gain @ cov[np.ix_(seen, gated)] + model.gate_std**2 * np.eye(len(gated))
    )
    sign = 2.0 * path.ravel() - 1.0
    # P(sign * u > 0) = P(-sign * (u - mean) < sign * mean)
    orthant = multivariate_normal.cdf(
        sign * u_mean, cov=sign[:, None] * u_cov * sign, allow_singular=True, abseps=1e-6, releps=1e-4
    )
    return float(np.exp(log_normal(x[1:].ravel(), mean[seen], S)) * orthant)


def probit_smoothed_means(model, x) -> np.ndarray:
    """E z_t given all of x under the paper's target: the RTS means of all paths, weighted by the paths."""
    paths = with_integrated_probit(model, x)
    means = np.array([given_gates(model, x, path).mean for path in paths.codes])
    return np.tensordot(paths.joint, means, axes=1) / paths.evidence


class Simulated(NamedTuple):
    likelihood: np.ndarray  # p(x | trajectory) of each simulated trajectory
    states: np.ndarray  # (draws, T, M)


def simulated(model, x, draws, seed) -> Simulated:
    """Trajectories of the model as it is written down, with their likelihoods: no filter, no algebra."""
    rng, drift = np.random.default_rng(seed), model.drift
    free = drift.latent_dim - drift.gated
    z = drift.embed(x[0]) + np.sqrt(model.initial_variances) * rng.standard_normal((draws, drift.latent_dim))
    states, likelihood = [z], np.ones(draws)
    for t in range(len(x) - 1):
        opened = z[:, free:] + model.gate_std * rng.standard_normal((draws, drift.gated)) > 0
        gates = np.concatenate([np.ones((draws, free)), opened], axis=1)
        noise = np.sqrt(model.process_variances) * rng.standard_normal(z.shape)
        z = drift.A * z + (gates * z) @ drift.W.T + drift.h + noise
        density = norm.pdf(x[t + 1], z[:, : drift.observed_dim], np.sqrt(model.observation_variances))
        likelihood *= density.prod(axis=1)
        states.append(z)
    return Simulated(likelihood, np.stack(states, axis=1))
