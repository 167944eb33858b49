"""The conditional particle filter with ancestor sampling in plain NumPy, for every kind of model.

A path is an array of noisy gate inputs u, ``(T-1, P)``. Given a path all is linear and Gaussian, and the
inputs are observations: what follows z_t on it is a message about z_t (see `kernels.message`),

    p(u_t, u_{t+1}, ..., x_{t+1}, ..., x_T | z_t) = exp(-z_t^T Omega_t z_t / 2 + lambda_t^T z_t)  up to a
    factor.

The compiled twin, for AL-RNNs, is `kernels.conditional`; both draw the same path from the same numbers.
"""

from __future__ import annotations

import numpy as np

from palrnn.engine.checks import Floats
from palrnn.inference.kernels.conditional import LEAST_GATE
from palrnn.inference.kernels.resampling import cumulated, multinomial, pick, settle
from palrnn.inference.record import FilterDiedError
from palrnn.inference.reference import (
    Beliefs,
    condition,
    gate_noise,
    gates_of,
    initial_beliefs,
    observe,
    predict,
    pushed_affine,
    resampling_noise,
    reweigh,
    roots,
    times,
    transposed,
)
from palrnn.model import PALRNN


class ConditionalFilter:
    """The conditional filter of ``model`` on ``x (T, N)``, with some ``particles``; ``drive`` is C s_t."""

    def __init__(self, model: PALRNN, x: Floats, particles: int, drive: Floats | None = None) -> None:
        self._model, self._x, self._particles, self._drive = model, x, particles, drive

    def sweep(self, path: Floats, key: int) -> Floats:
        """Return the path that follows ``path (T-1, P)`` in the chain, with the random stream ``key``."""
        model, x, n, drive = self._model, self._x, self._particles, self._drive
        gates, messages = gates_of(model), path_messages(model, x, path, drive)
        beliefs, log_weights = initial_beliefs(model, x[0], n), np.zeros(n)
        inputs, ancestors = np.empty((len(path), n, path.shape[1])), np.zeros((len(path), n), dtype=np.int32)
        slot = 0
        for t, given in enumerate(path):
            if t > 0:
                uniforms = resampling_noise(key, t - 1, n + 1)
                parent = drawn(agreement(beliefs, *messages[t]) + log_weights, uniforms[n])
                multinomial(np.exp(log_weights), uniforms[:n], ancestors[t])
                ancestors[t, 0] = parent
                settle(ancestors[t])
                # children of one parent are alike: any of them may take the path
                slot = int(np.argmax(ancestors[t] == parent))
                beliefs = Beliefs(beliefs.mean[ancestors[t]], beliefs.cov[ancestors[t]])
                log_weights = np.zeros(n)
            noise = gate_noise(key, t, n, path.shape[1]).copy()
            S = gates.G @ beliefs.cov[slot] @ gates.G.T + gates.covariance
            noise[slot] = roots(S[None])[1][0] @ (given - gates.G @ beliefs.mean[slot] - gates.g)
            beliefs, inputs[t], _ = condition(beliefs, gates.G, gates.g, gates.covariance, noise=noise)
            inputs[t, slot] = given  # the same up to rounding, which must not change a sign
            J, b = pushed_affine(model, inputs[t] > 0, None if drive is None else drive[t])
            beliefs = predict(beliefs, J, b, model.process_covariance)
            beliefs, log_likelihood = observe(beliefs, model, x[t + 1])
            log_weights, increment = reweigh(log_weights, log_likelihood)
            if np.isnan(increment):
                raise FilterDiedError.at(t, len(path), n)
        slot = drawn(log_weights, resampling_noise(key, len(path) - 1, 1)[0])
        after = np.empty_like(path)
        for t in range(len(path) - 1, -1, -1):
            after[t], slot = inputs[t, slot], ancestors[t, slot]
        return after


def path_messages(
    model: PALRNN, x: Floats, path: Floats, drive: Floats | None = None
) -> list[tuple[Floats, Floats]]:
    """Return Omega_t ``(M, M)`` and lambda_t ``(M,)`` for each transition of a path, u_t included."""
    dim, gates = model.drift.latent_dim, gates_of(model)
    B, d, R = model.observation_map.B, model.observation_map.d, model.observation_covariance
    C = model.process.root(dim)
    # hard gates would say infinitely much
    least = LEAST_GATE * np.einsum("jk,kl,jl->j", gates.G, model.process_covariance, gates.G)
    precise = 1.0 / np.maximum(gates.variance, least)
    Omega, vector = np.zeros((dim, dim)), np.zeros(dim)
    messages = []
    for t in range(len(path) - 1, -1, -1):
        seen = np.flatnonzero(~np.isnan(x[t + 1]))
        gain = np.linalg.solve(R[np.ix_(seen, seen)], B[seen]).T
        Omega, vector = Omega + gain @ B[seen], vector + gain @ (x[t + 1, seen] - d[seen])
        J, b = pushed_affine(model, path[t] > 0, None if drive is None else drive[t])
        # (Omega^(-1) + Q)^(-1) = Omega - Omega C S^(-1) C^T Omega with S = I + C^T Omega C, Q = C C^T
        left = Omega @ C
        kept = np.linalg.solve(np.eye(dim) + C.T @ left, left.T)
        vector = vector - Omega @ b
        vector = J.T @ (vector - kept.T @ (C.T @ vector))
        Omega = J.T @ (Omega - left @ kept) @ J
        Omega = 0.5 * (Omega + Omega.T) + (gates.G.T * precise) @ gates.G
        vector = vector + gates.G.T @ (precise * (path[t] - gates.g))
        messages.append((Omega, vector))
    return messages[::-1]


def agreement(beliefs: Beliefs, Omega: Floats, vector: Floats) -> Floats:
    """Return log int N(z; m, P) exp(-z^T Omega z / 2 + lambda^T z) dz for each belief, ``(n,)``.

    With P = L L^T, S = I + L^T Omega L and a = L^T (lambda - Omega m) it is

        lambda^T m - m^T Omega m / 2 + a^T S^(-1) a / 2 - log |S| / 2.
    """
    mean, L = beliefs.mean, roots(beliefs.cov)[0]
    root, inverse = roots(np.eye(len(vector)) + transposed(L) @ Omega @ L)
    a = times(inverse, times(transposed(L), vector - mean @ Omega))
    value = mean @ vector - 0.5 * np.einsum("ni,ij,nj->n", mean, Omega, mean) + 0.5 * (a * a).sum(axis=-1)
    return np.asarray(value - np.log(np.diagonal(root, axis1=-2, axis2=-1)).sum(axis=-1))


def drawn(scores: Floats, uniform: float) -> int:
    """Return an index i with probability proportional to exp(scores_i), or 0 where that is NaN."""
    weights = np.nan_to_num(np.exp(scores - np.nanmax(scores)), nan=0.0)
    return int(pick(cumulated(weights), uniform))
