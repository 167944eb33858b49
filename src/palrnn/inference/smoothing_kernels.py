"""Given a gate path the model is linear and Gaussian: walk the path again, then draw states backwards.

Forward, each step leaves a backward kernel z_t | z_{t+1} ~ N(m_t + G_t (z_{t+1} - J_t m_t - h), F_t F_t^T),
where (m_t, P_t) is the belief that the path's gates and the data up to t leave. With P_t = L L^T and B =
Q^(-1/2) J L,

    I + B^T B = C C^T,    F = L C^(-T),    G = F (C^(-1) B^T) Q^(-1/2).

No covariance is inverted and nothing is subtracted: the only factorised matrix has eigenvalues of at least 1.
"""

from __future__ import annotations

import math

import numpy as np

from palrnn.engine.kernel import kernel
from palrnn.inference.filter_kernels import EXACT, draw_gates
from palrnn.inference.kalman_kernels import condition, open_units, predict
from palrnn.inference.noise_kernels import GATES, stream_key


@kernel
def trace(ancestors, last, lineages):
    """Fill ``lineages (S, T-1)`` with the slots that led to the final slots ``last (S,)``."""
    steps = ancestors.shape[0]
    for s in range(last.shape[0]):
        slot = last[s]
        for t in range(steps - 1, -1, -1):
            lineages[s, t] = slot
            slot = ancestors[t, slot]


@kernel
def cholesky(matrix, out):
    """Lower triangular L with L L^T = ``matrix (D, D)``; a direction without variance gives a zero column."""
    dim = matrix.shape[0]
    out[:] = 0.0
    for i in range(dim):
        row = out[i]
        for j in range(i + 1):
            other = out[j]
            total = matrix[i, j]
            for k in range(j):
                total -= row[k] * other[k]
            if i == j:
                row[i] = math.sqrt(max(total, 0.0))
            elif other[j] > 0.0:
                row[j] = total / other[j]


@kernel
def solve_lower(factor, rhs):
    """rhs <- C^(-1) rhs for lower triangular C = ``factor (D, D)`` and ``rhs (D, K)``, row by row."""
    for i in range(factor.shape[0]):
        row = rhs[i]
        for k in range(i):
            c, other = factor[i, k], rhs[k]
            for j in range(rhs.shape[1]):
                row[j] -= c * other[j]
        inverse = 1.0 / factor[i, i]
        for j in range(rhs.shape[1]):
            row[j] *= inverse


@kernel
def transition(system, count, scratch, J):
    """J = A + W D(c) (eq. pwa) written out, into ``J (D, D)``, for the units that `open_units` listed."""
    J[:] = 0.0
    for c in range(system.latent_dim - count):
        k = scratch.closed[c]
        J[k, k] = system.A[k]
    for c in range(count):
        k = scratch.active[c]
        J[:, k] = system.Ft[k]


@kernel
def backward_kernel(J, process, cov, latent, gain, factor, work):
    """G into ``gain (D, D)`` and F into ``factor (D, D)`` (see the module), from P = ``cov (D, D)``.

    ``process (D,)`` is the diagonal of Q, ``latent`` is M; ``work (5, D, D)`` is scratch.
    """
    dim = cov.shape[0]
    L, B, S, C, solved = work[0], work[1], work[2], work[3], work[4]
    cholesky(cov, L)
    np.dot(J, L, B)
    for i in range(latent):
        scale = 1.0 / math.sqrt(process[i])
        for j in range(dim):
            B[i, j] *= scale
    np.dot(B.T, B, S)
    for i in range(dim):
        S[i, i] += 1.0
    cholesky(S, C)
    for i in range(dim):
        for j in range(dim):
            S[i, j] = L[j, i]
            solved[i, j] = B[j, i]
    solve_lower(C, S)
    solve_lower(C, solved)
    for i in range(dim):
        for j in range(dim):
            factor[i, j] = S[j, i]
    np.dot(factor, solved, gain)
    for j in range(latent):
        scale = 1.0 / math.sqrt(process[j])
        for i in range(dim):
            gain[i, j] *= scale


@kernel
def walk(system, target, key, x, lineage, codes, first, scratch, path):
    """Run the Kalman filter along one gate path from transition ``first`` on; return its log likelihood from
    there.

    ``lineage (T-1,)`` gives the slots whose noise the filter used, ``codes (T-1, words)`` the gates. ``path``
    holds what is kept per time (see `Path`); what it holds before ``first`` stays valid.
    """
    steps = codes.shape[0]
    dim, latent = system.A.shape[0], system.latent_dim
    J, work = np.empty((dim, dim)), np.empty((5, dim, dim))
    values = np.empty(system.gate.shape[0])
    mean, cov = path.filtered_mean[first].copy(), path.filtered_cov[first].copy()
    loglik = 0.0
    for t in range(first, steps):
        if target == EXACT:
            draw_gates(system, target, stream_key(key, t, GATES), lineage[t], mean, cov, values, scratch)
        path.mean[t] = mean
        count = open_units(system, codes[t], scratch)
        transition(system, count, scratch, J)
        backward_kernel(J, system.process, cov, latent, path.gain[t], path.factor[t], work)
        predict(system, count, mean, cov, scratch)
        path.predicted[t] = mean
        loglik += condition(mean, cov, 0, x[t + 1], system.observation, False, latent, scratch)
        path.filtered_mean[t + 1] = mean
        path.filtered_cov[t + 1] = cov
    path.mean[steps] = mean
    cholesky(cov, path.factor[steps])
    return loglik


@kernel
def sample_states(path, states):
    """Turn standard normal ``states (K, T, M)`` into K draws of z_1, ..., z_T given the path, in place.

    z_T = m_T + F_T e_T,  z_t = m_t + G_t (z_{t+1} - predicted_t) + F_t e_t: all K draws share G and F.
    """
    count, times, latent = states.shape
    dim = path.mean.shape[1]
    noise, ahead = np.zeros((count, dim)), np.zeros((count, dim))
    drawn, carried = np.empty((count, dim)), np.empty((count, dim))
    for t in range(times - 1, -1, -1):
        noise[:, :latent] = states[:, t]
        np.dot(noise, path.factor[t].T, drawn)
        if t < times - 1:
            for k in range(count):
                for i in range(latent):
                    ahead[k, i] -= path.predicted[t, i]
            np.dot(ahead, path.gain[t].T, carried)
            drawn += carried
        for k in range(count):
            for i in range(latent):
                ahead[k, i] = drawn[k, i] + path.mean[t, i]
                states[k, t, i] = ahead[k, i]


@kernel
def smoothed_moments(path, mean, cov, lagged):
    """E z_t, Cov z_t and Cov(z_t, z_{t+1}) given the path and all data (Rauch, Tung and Striebel, 1965).

    ``mean (T, D)``, ``cov (T, D, D)``, ``lagged (T-1, D, D)`` are filled; P^s_t = G P^s_{t+1} G^T + F F^T.
    """
    times, dim = mean.shape
    work = np.empty((dim, dim))
    mean[times - 1] = path.mean[times - 1]
    np.dot(path.factor[times - 1], path.factor[times - 1].T, cov[times - 1])
    for t in range(times - 2, -1, -1):
        np.dot(path.gain[t], mean[t + 1] - path.predicted[t], mean[t])
        mean[t] += path.mean[t]
        np.dot(path.gain[t], cov[t + 1], lagged[t])
        np.dot(lagged[t], path.gain[t].T, cov[t])
        np.dot(path.factor[t], path.factor[t].T, work)
        cov[t] += work
