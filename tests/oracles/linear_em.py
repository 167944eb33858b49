"""Exact inference and one exact EM update for a linear-Gaussian state-space model, written out plainly.

z_1 ~ N(m1, P1), z_{t+1} ~ N(F z_t + h, q I), x_t ~ N(z_t[:N], r I) for t >= 2 (x_1 is given).
"""

from __future__ import annotations

import numpy as np


def kalman(x, F, h, q, r, m1, P1):
    """Return the log likelihood of x[1:], and predicted and filtered moments of every state."""
    steps, seen = x.shape
    dim = len(h)
    H = np.eye(seen, dim)
    predicted, filtered, loglik = [(m1, P1)], [(m1, P1)], 0.0
    for t in range(1, steps):
        m, P = filtered[-1]
        m, P = F @ m + h, F @ P @ F.T + q * np.eye(dim)
        predicted.append((m, P))
        S = H @ P @ H.T + r * np.eye(seen)
        e = x[t] - H @ m
        loglik -= 0.5 * (e @ np.linalg.solve(S, e) + np.linalg.slogdet(2 * np.pi * S)[1])
        K = P @ H.T @ np.linalg.inv(S)
        filtered.append((m + K @ e, P - K @ S @ K.T))
    return loglik, predicted, filtered


def smoothed_moments(x, F, h, q, r, m1, P1):
    """Return means (T, M), covariances (T, M, M) and lag-one covariances Cov(z_{t+1}, z_t) (T-1, M, M)."""
    _, predicted, filtered = kalman(x, F, h, q, r, m1, P1)
    means, covariances, lags = [filtered[-1][0]], [filtered[-1][1]], []
    for t in range(len(x) - 2, -1, -1):
        m, P = filtered[t]
        ahead, spread = predicted[t + 1]
        J = P @ F.T @ np.linalg.inv(spread)
        lags.append(covariances[-1] @ J.T)
        means.append(m + J @ (means[-1] - ahead))
        covariances.append(P + J @ (covariances[-1] - spread) @ J.T)
    return np.array(means[::-1]), np.array(covariances[::-1]), np.array(lags[::-1])


def em_update(windows, F, h, q, r, start, P1):
    """One exact EM update of (F, h, q, r) on several windows (Shumway and Stoffer's, with a bias)."""
    dim = len(h)
    S11, S10, S00 = np.zeros((dim, dim)), np.zeros((dim, dim + 1)), np.zeros((dim + 1, dim + 1))
    misfit, seen_count, steps = 0.0, 0, 0
    for x in windows:
        m, P, lag = smoothed_moments(x, F, h, q, r, start(x[0]), P1)
        seen = x.shape[1]
        for t in range(len(x) - 1):
            lifted = np.append(m[t], 1.0)
            S00 += np.outer(lifted, lifted)
            S00[:dim, :dim] += P[t]
            S10 += np.outer(m[t + 1], lifted)
            S10[:, :dim] += lag[t]
            S11 += np.outer(m[t + 1], m[t + 1]) + P[t + 1]
            misfit += np.sum((x[t + 1] - m[t + 1, :seen]) ** 2) + np.trace(P[t + 1][:seen, :seen])
            seen_count += seen
            steps += 1
    B = S10 @ np.linalg.inv(S00)
    q_new = np.trace(S11 - B @ S10.T) / (steps * dim)
    return B[:, :dim], B[:, dim], q_new, misfit / seen_count
