"""Any switching linear-Gaussian model by enumeration: all gate paths, all states as one Gaussian vector.

Nothing here is recursive: given a path, z = (z_1, ..., z_T) is one Gaussian vector, and everything else
follows by conditioning it on what is observed. NaN is not observed.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from oracles.gate_paths import Paths
from scipy.stats import multivariate_normal, norm


class States:
    """All states given one gate path ``codes (T-1, P)``: their mean (T M,) and covariance before any data.

    ``drive (T, M)`` is C s_t of a driven model.
    """

    def __init__(self, model, x, codes, drive=None):
        drift = model.drift
        self.model, self.x, self.dim = model, x, drift.latent_dim
        M, T = self.dim, len(x)
        self.mean, root = np.zeros(T * M), np.zeros((T * M, T * M))
        self.mean[:M] = drift.embed(x[0])
        root[:M, :M] = np.linalg.cholesky(model.initial_covariance)
        noise = np.linalg.cholesky(model.process_covariance)
        for t, code in enumerate(codes):
            J, b = drift.affine(np.asarray(code, dtype=bool))
            now, after = slice(t * M, t * M + M), slice(t * M + M, t * M + 2 * M)
            self.mean[after] = J @ self.mean[now] + b + (0.0 if drive is None else drive[t])
            root[after] = J @ root[now]
            root[after, after] += noise
        self.cov = root @ root.T

    def read(self, matrix, times):
        """The rows that apply ``matrix (K, M)`` to the states of some times: (K len(times), T M)."""
        pick = np.eye(len(self.x))[list(times)]
        return np.kron(pick, matrix)

    def observed(self, until):
        """Rows, offsets, noise and values of what is seen of x_2, ..., x_until."""
        reads, times = self.model.observation_map, range(1, until)
        rows, values = self.read(reads.B, times), self.x[1:until].ravel()
        noise = np.kron(np.eye(len(times)), self.model.observation_covariance)
        seen = np.flatnonzero(~np.isnan(values))
        offset = np.tile(reads.d, len(times))
        return rows[seen], offset[seen], noise[np.ix_(seen, seen)], values[seen]

    def given(self, until):
        """The mean and covariance of all states given x_1, ..., x_until."""
        H, d, R, y = self.observed(until)
        gain = np.linalg.solve(H @ self.cov @ H.T + R, H @ self.cov).T
        return self.mean + gain @ (y - H @ self.mean - d), self.cov - gain @ H @ self.cov

    @property
    def log_density(self):
        """log p(x_2, ..., x_T | x_1, codes)."""
        H, d, R, y = self.observed(len(self.x))
        return multivariate_normal.logpdf(y, H @ self.mean + d, H @ self.cov @ H.T + R) if len(y) else 0.0


def enumerated(model, x, target, drive=None) -> Paths:
    """The joint probability p(x, path) of every gate path, under one of the filter's targets."""
    shape = (len(x) - 1, model.drift.gated)
    codes = np.array(list(product((0, 1), repeat=shape[0] * shape[1]))).reshape(-1, *shape)
    chance = {"paper": integrated_probits, "exact": orthant_probability}[target]
    joint = []
    for path in codes:
        states = States(model, x, path, drive)
        joint.append(np.exp(states.log_density) * chance(states, path))
    return Paths(codes, np.array(joint))


def integrated_probits(states, path) -> float:
    """The paper's target: each gate by itself, from the belief given the data and the path so far."""
    (G, g), M, total = states.model.drift.gate_map(), states.dim, 1.0
    for t, code in enumerate(path):
        mean, cov = states.given(t + 1)
        now = slice(t * M, t * M + M)
        spread = np.sqrt(np.diag(G @ cov[now, now] @ G.T) + states.model.gate_std**2)
        opened = norm.cdf((G @ mean[now] + g) / spread)
        total *= np.prod(np.where(code == 1, opened, 1 - opened))
    return total


def orthant_probability(states, path) -> float:
    """The model itself: all gate inputs of all times together, given all data, must have the path's signs."""
    G, g = states.model.drift.gate_map()
    times = range(len(path))
    rows = states.read(G, times)
    mean, cov = states.given(len(states.x))
    u_mean = rows @ mean + np.tile(g, len(path))
    u_cov = rows @ cov @ rows.T + states.model.gate_std**2 * np.eye(len(u_mean))
    sign = 2.0 * path.ravel() - 1.0
    return float(
        multivariate_normal.cdf(
            sign * u_mean, cov=sign[:, None] * u_cov * sign, allow_singular=True, abseps=1e-6, releps=1e-4
        )
    )


def smoothed_states(model, x, target):
    """E z_t and the gate paths' weights, (T, M): for the paper's target, the mixture over paths."""
    paths = enumerated(model, x, target)
    means = np.array([States(model, x, path).given(len(x))[0] for path in paths.codes])
    return (paths.joint @ means / paths.evidence).reshape(len(x), -1)
