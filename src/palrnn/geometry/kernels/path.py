"""One gate path: the posterior of the states and of the weighted residuals, by a Kalman filter and smoother.

Given its gates the model is linear and Gaussian,

    z_{t+1} = J_t z_t + b_t + N(0, Q),   x_t = B z_t + d + N(0, R),   u_t = G z_t + g + N(0, r I) where given,

and everything that the score needs is linear in the states. With the residuals e_t = z_{t+1} - J_t z_t - b_t,
and below them u_t - G z_t - g where the gates have parameters, the *weighted residuals* are eps_t = Lambda
e_t with Lambda = diag(Q^{-1}, I / r), E rows in all.

The posterior of the states is a Markov chain backwards in time: given z_{t+1}, neither z_t nor eps_t depends
on what comes later. Write P_t, P_{t+1|t} and V_t for the filtered, predicted and smoothed covariances. Then

    E[z_t   | z_{t+1}, x] = m_t  + K_t (z_{t+1} - m_{t+1}),       K_t = P_t J_t^T P_{t+1|t}^{-1}
    E[eps_t | z_{t+1}, x] = mu_t + P_{t+1|t}^{-1} (z_{t+1} - m_{t+1})
    Cov(eps_t, z_t | x)   = -P_{t+1|t}^{-1} D_t K_t^T,            D_t = P_{t+1|t} - V_{t+1}
    Lambda - Var(eps_t | x) = P_{t+1|t}^{-1} D_t P_{t+1|t}^{-1}

(Rauch, Tung and Striebel, 1965; de Jong, 1989). The last line is what the data say about the residuals; it is
computed as it stands, not as a difference of two large matrices.
"""

from __future__ import annotations

import math

import numpy as np

from palrnn.engine.kernel import kernel
from palrnn.engine.products import copy, product


@kernel
def sandwich(A, P, added, out, work):
    """out = A P A^T + added, symmetric, for ``A (n, M)`` and ``P (M, M)``; ``work (n, M)`` becomes A P."""
    product(A, P, work)
    product(work, A.T, out)
    for i in range(out.shape[0]):
        # products round their triangles apart
        for j in range(i):
            out[i, j] = out[j, i] = 0.5 * (out[i, j] + out[j, i]) + added[i, j]
        out[i, i] += added[i, i]


@kernel
def condition(mean, cov, H, noise, innovation, left, work):
    """Condition N(m, P) on y = H z + N(0, noise), in place; return log p(y), or NaN where P explodes.

    ``mean (M,)``, ``cov (M, M)``, ``H (n, M)``, ``noise (n, n)``, ``innovation (n,)`` = y - E y is used up.
    The covariance becomes (I - K H) P (I - K H)^T + K noise K^T, a sum of squares, so that it stays positive.
    ``left (M, M)`` and ``work (M, M)`` are scratch.
    """
    size, dim = H.shape
    S, rows = np.empty((size, size)), np.empty((size, dim))
    sandwich(H, cov, noise, S, rows)
    loglik = -0.5 * size * math.log(2.0 * math.pi)
    # S = L L^T in place; rows = L^{-1} H P and innovation = L^{-1} (y - E y)
    for i in range(size):
        for k in range(i):
            for j in range(i, size):
                S[j, i] -= S[j, k] * S[i, k]
        if not S[i, i] > 0.0:
            return math.nan
        scale = 1.0 / math.sqrt(S[i, i])
        for j in range(i, size):
            S[j, i] *= scale
        for k in range(i):
            innovation[i] -= S[i, k] * innovation[k]
            for a in range(dim):
                rows[i, a] -= S[i, k] * rows[k, a]
        innovation[i] *= scale
        loglik += math.log(scale) - 0.5 * innovation[i] ** 2
        for a in range(dim):
            rows[i, a] *= scale
            mean[a] += rows[i, a] * innovation[i]
    # K^T = L^{-T} rows
    for i in range(size - 1, -1, -1):
        for k in range(i + 1, size):
            for a in range(dim):
                rows[i, a] -= S[k, i] * rows[k, a]
        for a in range(dim):
            rows[i, a] /= S[i, i]
    product(rows.T, H, work)
    for a in range(dim):
        for b in range(dim):
            left[a, b] = (1.0 if a == b else 0.0) - work[a, b]
    weighted, spread, again = np.empty_like(rows), np.empty_like(cov), cov.copy()
    product(noise, rows, weighted)
    product(rows.T, weighted, spread)
    sandwich(left, again, spread, cov, work)
    return loglik


@kernel
def filter_path(path, inputs, filtered, predicted, covs, ahead):
    """Run the Kalman filter along ``path`` (see `LinearPath`); return log p(x_{2:T}, u | x_1, codes).

    ``filtered (T, M)``, ``covs (T, M, M)`` are filled with the belief before each transition, ``predicted
    (T, M)`` and ``ahead (T, M, M)`` with that after it, before x. Where ``inputs (T-1, P)`` are given (P > 0)
    the belief is conditioned on them first. NaN is returned where covariances are no longer positive.
    """
    times, seen = path.x.shape
    steps, gated, dim = times - 1, inputs.shape[1], path.start.shape[0]
    mean, cov = path.start.copy(), path.spread.copy()
    left, work = np.empty((dim, dim)), np.empty((dim, dim))
    H, noise, innovation = np.empty((seen, dim)), np.empty((seen, seen)), np.empty(seen)
    gate_noise, gates = np.zeros((gated, gated)), np.empty(gated)
    for j in range(gated):
        gate_noise[j, j] = path.gate_variance
    loglik = 0.0
    for t in range(steps):
        if gated > 0:
            product(path.G, mean, gates)
            for j in range(gated):
                gates[j] = inputs[t, j] - gates[j] - path.g[j]
            loglik += condition(mean, cov, path.G, gate_noise, gates, left, work)
        copy(mean, filtered[t])
        copy(cov, covs[t])
        product(path.J[t], filtered[t], mean)
        bias = path.b[t]
        for i in range(dim):
            mean[i] += bias[i]
        sandwich(path.J[t], covs[t], path.Q, cov, work)
        copy(mean, predicted[t + 1])
        copy(cov, ahead[t + 1])
        count = 0
        for i in range(seen):
            if not math.isnan(path.x[t + 1, i]):
                copy(path.B[i], H[count])
                innovation[count] = path.x[t + 1, i] - path.d[i]
                other = 0
                for j in range(i + 1):
                    if not math.isnan(path.x[t + 1, j]):
                        noise[count, other] = noise[other, count] = path.R[i, j]
                        other += 1
                for a in range(dim):
                    innovation[count] -= path.B[i, a] * mean[a]
                count += 1
        if count > 0:
            # contiguous, so that they are the same kind of array whether or not all was observed
            part = np.empty((count, count))
            copy(noise[:count, :count], part)
            loglik += condition(mean, cov, H[:count], part, innovation[:count], left, work)
    copy(mean, filtered[steps])
    copy(cov, covs[steps])
    return loglik


@kernel
def smooth_path(path, filtered, predicted, covs, ahead, moments):
    """Fill ``moments`` (see `PathMoments`) from the belief that `filter_path` left; E = M rows of residuals.

    V_t = K_t V_{t+1} K_t^T + (I - K_t J_t) P_t (I - K_t J_t)^T + K_t Q K_t^T, a sum of squares.
    """
    times, dim = filtered.shape
    work, left = np.empty((dim, dim)), np.empty((dim, dim))
    rest, total = np.empty((dim, dim)), np.empty((dim, dim))
    change = np.empty(dim)
    copy(filtered[times - 1], moments.mean[times - 1])
    copy(covs[times - 1], moments.cov[times - 1])
    for t in range(times - 2, -1, -1):
        precision = np.linalg.inv(ahead[t + 1])
        for i in range(dim):
            for j in range(i):
                precision[i, j] = precision[j, i] = 0.5 * (precision[i, j] + precision[j, i])
        gain, drop = moments.gain[t], np.empty((dim, dim))
        product(covs[t], path.J[t].T, work)
        product(work, precision, gain)
        product(gain, path.J[t], work)
        for i in range(dim):
            for j in range(dim):
                left[i, j] = (1.0 if i == j else 0.0) - work[i, j]
                drop[i, j] = ahead[t + 1, i, j] - moments.cov[t + 1, i, j]
                total[i, j] = 0.0
        sandwich(gain, path.Q, total, rest, work)
        sandwich(left, covs[t], rest, total, work)
        sandwich(gain, moments.cov[t + 1], total, moments.cov[t], work)
        for i in range(dim):
            change[i] = moments.mean[t + 1, i] - predicted[t + 1, i]
        product(gain, change, moments.mean[t])
        mean = moments.mean[t]
        for i in range(dim):
            mean[i] += filtered[t, i]
        product(precision, change, moments.residual[t, :dim])
        copy(precision, moments.slope[t, :dim])
        product(precision, drop, work)
        product(work, gain.T, left)
        product(work, precision, rest)
        for i in range(dim):
            for j in range(dim):
                moments.cross[t, i, j] = -left[i, j]
                moments.known[t, i, j] = 0.5 * (rest[i, j] + rest[j, i])


@kernel
def gate_moments(path, inputs, moments):
    """Fill the rows of the gates, eps = (u_t - G z_t - g) / r, below those of the drift in ``moments``."""
    dim, gated = moments.mean.shape[1], inputs.shape[1]
    r = path.gate_variance
    size = dim + gated
    slope, cross, both = np.empty((gated, dim)), np.empty((gated, dim)), np.empty((size, gated))
    for t in range(inputs.shape[0]):
        product(path.G, moments.gain[t], slope)
        product(path.G, moments.cov[t], cross)
        for j in range(gated):
            moments.residual[t, dim + j] = (inputs[t, j] - path.g[j]) / r
            for a in range(dim):
                moments.residual[t, dim + j] -= path.G[j, a] * moments.mean[t, a] / r
                moments.slope[t, dim + j, a] = -slope[j, a] / r
                moments.cross[t, dim + j, a] = -cross[j, a] / r
        product(moments.cross[t], path.G.T, both)
        for i in range(size):
            for j in range(gated):
                moments.known[t, i, dim + j] = moments.known[t, dim + j, i] = both[i, j] / r
        for j in range(gated):
            moments.known[t, dim + j, dim + j] += 1.0 / r
