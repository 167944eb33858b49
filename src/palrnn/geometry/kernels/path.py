"""One gate path: the posterior of the states and of the weighted residuals, by a Kalman filter and smoother.

Given its gates the model is linear and Gaussian,

    z_{t+1} = J_t z_t + b_t + N(0, Q),   x_t = B z_t + d + N(0, R),   u_t = G z_t + g + N(0, r I) where given,

and everything that the score needs is linear in the states. With the residuals e_t = z_{t+1} - J_t z_t - b_t,
and below them u_t - G z_t - g where the gates have parameters, the *weighted residuals* are eps_t = Lambda e_t
with Lambda = diag(Q^{-1}, I / r), E rows in all.

The posterior of the states is a Markov chain backwards in time: given z_{t+1}, neither z_t nor eps_t depends on
what comes later. Write P_t, P_{t+1|t} and V_t for the filtered, predicted and smoothed covariances. Then

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


@kernel
def condition(mean, cov, H, noise, innovation):
    """Condition N(m, P) on y = H z + N(0, noise), in place; return log p(y).

    ``mean (M,)``, ``cov (M, M)``, ``H (n, M)``, ``noise (n, n)``, ``innovation (n,)`` = y - E y. The covariance
    becomes (I - K H) P (I - K H)^T + K noise K^T, a sum of squares, so that it stays positive.
    """
    size, dim = H.shape
    HP = np.dot(H, cov)
    S = np.dot(HP, H.T) + noise
    root = np.linalg.cholesky(0.5 * (S + S.T))
    half = np.linalg.solve(root, np.ascontiguousarray(np.concatenate((HP, innovation.reshape(size, 1)), 1)))
    gain = np.linalg.solve(root.T, np.ascontiguousarray(half[:, :dim])).T
    mean += np.dot(gain, innovation)
    left = np.eye(dim) - np.dot(gain, H)
    cov[:] = np.dot(np.dot(left, cov), left.T) + np.dot(np.dot(gain, noise), gain.T)
    loglik = -0.5 * size * math.log(2.0 * math.pi)
    for i in range(size):
        loglik -= math.log(root[i, i]) + 0.5 * half[i, dim] ** 2
    return loglik


@kernel
def symmetrise(matrix):
    """Replace ``matrix (M, M)`` by the mean of itself and its transpose: products round their triangles apart."""
    for i in range(matrix.shape[0]):
        for j in range(i):
            matrix[i, j] = matrix[j, i] = 0.5 * (matrix[i, j] + matrix[j, i])


@kernel
def filter_path(path, inputs, filtered, predicted, covs, ahead):
    """Run the Kalman filter along ``path`` (see `LinearPath`); return log p(x_{2:T}, u | x_1, codes).

    ``filtered (T, M)``, ``covs (T, M, M)`` are filled with the belief before each transition, ``predicted
    (T, M)`` and ``ahead (T, M, M)`` with that after it, before x. Where ``inputs (T-1, P)`` are given (P > 0)
    the belief is conditioned on them first.
    """
    times, seen = path.x.shape
    steps, gated = times - 1, inputs.shape[1]
    mean, cov = path.start.copy(), path.spread.copy()
    gate_noise = path.gate_variance * np.eye(gated)
    loglik = 0.0
    for t in range(steps):
        if gated > 0:
            innovation = inputs[t] - np.dot(path.G, mean) - path.g
            loglik += condition(mean, cov, path.G, gate_noise, innovation)
            symmetrise(cov)
        filtered[t], covs[t] = mean, cov
        mean[:] = np.dot(path.J[t], mean) + path.b[t]
        cov[:] = np.dot(np.dot(path.J[t], cov), path.J[t].T) + path.Q
        symmetrise(cov)
        predicted[t + 1], ahead[t + 1] = mean, cov
        known = np.empty(seen, np.int64)
        count = 0
        for i in range(seen):
            if not math.isnan(path.x[t + 1, i]):
                known[count] = i
                count += 1
        if count > 0:
            at = known[:count]
            H, noise, innovation = path.B[at], np.empty((count, count)), np.empty(count)
            for i in range(count):
                innovation[i] = path.x[t + 1, at[i]] - np.dot(H[i], mean) - path.d[at[i]]
                for j in range(count):
                    noise[i, j] = path.R[at[i], at[j]]
            loglik += condition(mean, cov, H, noise, innovation)
            symmetrise(cov)
    filtered[steps], covs[steps] = mean, cov
    return loglik


@kernel
def smooth_path(path, filtered, predicted, covs, ahead, moments):
    """Fill ``moments`` (see `PathMoments`) from the belief that `filter_path` left; E = M rows of residuals.

    V_t = K_t V_{t+1} K_t^T + (I - K_t J_t) P_t (I - K_t J_t)^T + K_t Q K_t^T, a sum of squares.
    """
    times, dim = filtered.shape
    moments.mean[times - 1], moments.cov[times - 1] = filtered[times - 1], covs[times - 1]
    for t in range(times - 2, -1, -1):
        precision = np.linalg.inv(ahead[t + 1])
        symmetrise(precision)
        JP = np.dot(path.J[t], covs[t])
        gain = np.dot(JP.T, precision)
        left = np.eye(dim) - np.dot(gain, path.J[t])
        rest = np.dot(np.dot(left, covs[t]), left.T) + np.dot(np.dot(gain, path.Q), gain.T)
        moments.cov[t] = np.dot(np.dot(gain, moments.cov[t + 1]), gain.T) + rest
        symmetrise(moments.cov[t])
        change = moments.mean[t + 1] - predicted[t + 1]
        moments.mean[t] = filtered[t] + np.dot(gain, change)
        drop = np.dot(precision, ahead[t + 1] - moments.cov[t + 1])
        moments.gain[t] = gain
        moments.residual[t, :dim] = np.dot(precision, change)
        moments.slope[t, :dim] = precision
        moments.cross[t, :dim] = -np.dot(drop, gain.T)
        moments.known[t, :dim, :dim] = np.dot(drop, precision)
        symmetrise(moments.known[t, :dim, :dim])


@kernel
def gate_moments(path, inputs, moments):
    """Fill the rows of the gates, eps = (u_t - G z_t - g) / r, below those of the drift in ``moments``."""
    dim = moments.mean.shape[1]
    G = path.G / path.gate_variance
    for t in range(inputs.shape[0]):
        off = (inputs[t] - path.g) / path.gate_variance
        moments.residual[t, dim:] = off - np.dot(G, moments.mean[t])
        moments.slope[t, dim:] = -np.dot(G, moments.gain[t])
        moments.cross[t, dim:] = -np.dot(G, moments.cov[t])
        both = np.dot(moments.cross[t], G.T)
        moments.known[t, :, dim:] = both
        moments.known[t, dim:, :dim] = both[:dim].T
        for i in range(G.shape[0]):
            moments.known[t, dim + i, dim + i] += 1.0 / path.gate_variance
