"""A Gaussian filter through the gates: what is expected of each observation, and how surely."""

from __future__ import annotations

import math

import numpy as np

from palrnn.engine.kernel import kernel
from palrnn.engine.products import copy

_ROOT = math.sqrt(2.0 * math.pi)


@kernel
def innovations(theta, units, gated, deviations, gate_std, start, x, error, variance):
    """Filter ``x (T, N)``; write the errors of its predictions and their variances, ``(T-1, N)`` each.

    ``theta`` is A (M,), W (M, M), h (M,), ``deviations (M + N,)`` those of the process in each unit and of
    the observation in each coordinate, ``start (M,)`` the mean of the first state, which has the variance of
    an observation in units that are observed, and of the process in others. With z ~ N(m, V), a gated unit of
    mean mu and variance nu, s^2 = nu + gate_std^2, alpha = mu / s and beta = nu / s^2,

        E[c z]   = mu Phi + beta s phi
        E[c z^2] = (mu^2 + nu) Phi + 2 mu beta s phi - beta^2 s mu phi
        a        = Cov(z, c z) / nu,   v = Var(c z)
        m' = A m + W E[c z] + h,       V' = F V F^T + W diag(v - a^2 nu) W^T + Q,   F = A + W diag(a)

    which are the exact moments for one gate; the covariance of two gated units is a_i a_j V_ij to first
    order. Coordinates of a row are taken one after the other; one that is NaN says nothing, and has error 0
    and variance 1.
    """
    M = units
    noise = deviations * deviations
    m, V = start.copy(), np.zeros((M, M))
    _begin(noise, x.shape[1], V)
    F, FV, parts = np.empty((M, M)), np.empty((M, M)), np.empty((4, M))
    for t in range(x.shape[0] - 1):
        _predict(theta, M, gated, noise, gate_std, m, V, F, FV, parts)
        _condition(x[t + 1], noise, m, V, parts[3], error[t], variance[t])


@kernel
def filtered(theta, units, gated, deviations, gate_std, start, x, means, covs, maps, coming, spreads):
    """Filter ``x (T, N)`` as `innovations` does; write beliefs and the linear maps between them.

    ``means (T, M)`` and ``covs (T, M, M)`` are those given each row and those before, ``coming``, ``spreads``
    the same before the row is seen (nothing at 0), and ``maps (T-1, M, M)`` the F of each step.
    """
    M = units
    noise = deviations * deviations
    m, V = start.copy(), np.zeros((M, M))
    _begin(noise, x.shape[1], V)
    F, FV, parts = np.empty((M, M)), np.empty((M, M)), np.empty((4, M))
    error, variance = np.empty(x.shape[1]), np.empty(x.shape[1])
    copy(m, means[0])
    copy(V, covs[0])
    for t in range(x.shape[0] - 1):
        _predict(theta, M, gated, noise, gate_std, m, V, F, FV, parts)
        copy(F, maps[t])
        copy(m, coming[t + 1])
        copy(V, spreads[t + 1])
        _condition(x[t + 1], noise, m, V, parts[3], error, variance)
        copy(m, means[t + 1])
        copy(V, covs[t + 1])


@kernel
def _begin(noise, seen, V):
    """Write the covariance of the first state."""
    M = V.shape[0]
    for i in range(M):
        V[i, i] = noise[M + i] if i < seen else noise[i]


@kernel
def _predict(theta, units, gated, noise, gate_std, m, V, F, FV, parts):
    """Bring the belief ``m (M,)``, ``V (M, M)`` a step on; write its map ``F``; the rest is scratch."""
    M = units
    A, h = theta[:M], theta[M + M * M :]
    W = theta[M : M + M * M].reshape(M, M)
    a, y, extra, new = parts[0], parts[1], parts[2], parts[3]
    for i in range(M):
        a[i], y[i], extra[i] = 1.0, m[i], 0.0
        if i >= M - gated:
            mu, nu = m[i], max(V[i, i], 1e-300)
            s = math.sqrt(nu + gate_std * gate_std)
            alpha, beta = mu / s, nu / (s * s)
            chance = 0.5 * math.erfc(-alpha * 0.7071067811865476)
            density = math.exp(-0.5 * alpha * alpha) / _ROOT
            y[i] = mu * chance + beta * s * density
            square = (mu * mu + nu) * chance + 2.0 * mu * beta * s * density
            square -= beta * beta * s * mu * density
            a[i] = (square - mu * y[i]) / nu
            extra[i] = max(square - y[i] * y[i] - a[i] * a[i] * nu, 0.0)
    for i in range(M):
        total = A[i] * m[i] + h[i]
        for j in range(M):
            total += W[i, j] * y[j]
            F[i, j] = W[i, j] * a[j]
        F[i, i] += A[i]
        new[i] = total
    for i in range(M):
        m[i] = new[i]
        for j in range(M):
            total = 0.0
            for k in range(M):
                total += F[i, k] * V[k, j]
            FV[i, j] = total
    for i in range(M):
        for j in range(i + 1):
            total = 0.0
            for k in range(M):
                total += FV[i, k] * F[j, k]
            for k in range(M - gated, M):
                total += W[i, k] * extra[k] * W[j, k]
            V[i, j] = total
            V[j, i] = total
        V[i, i] += noise[i]


@kernel
def _condition(row, noise, m, V, new, error, variance):
    """Condition the belief on a row, one coordinate after the other; write errors and their variances."""
    M = m.shape[0]
    for n in range(row.shape[0]):
        error[n], variance[n] = 0.0, 1.0
        if math.isnan(row[n]):
            continue
        s = V[n, n] + noise[M + n]
        e = row[n] - m[n]
        error[n], variance[n] = e, s
        for i in range(M):
            new[i] = V[i, n] / s
        for i in range(M):
            m[i] += new[i] * e
        for i in range(M):
            for j in range(i + 1):
                V[i, j] -= new[i] * new[j] * s
                V[j, i] = V[i, j]


@kernel
def innovation_derivatives(
    theta, units, gated, logs, gate_std, start, x, steps, error, variance, derror, dvariance
):
    """Write errors and variances, and their derivatives ``(p + M + N, T-1, N)`` by central differences.

    The parameters are theta and ``logs (M + N,)``, the logarithms of the deviations; ``steps (p + M + N,)``
    are half the differences taken in them. A step of 0 leaves a derivative at zero.
    """
    size = theta.size
    innovations(theta, units, gated, np.exp(logs), gate_std, start, x, error, variance)
    up, down = theta.copy(), theta.copy()
    lower, above, below = np.empty_like(error), np.empty_like(error), np.empty_like(error)
    high, low = logs.copy(), logs.copy()
    for k in range(size + logs.size):
        step = steps[k]
        if step == 0.0:
            derror[k] = 0.0
            dvariance[k] = 0.0
            continue
        if k < size:
            up[k] += step
            down[k] -= step
        else:
            high[k - size] += step
            low[k - size] -= step
        innovations(up, units, gated, np.exp(high), gate_std, start, x, derror[k], above)
        innovations(down, units, gated, np.exp(low), gate_std, start, x, lower, below)
        for t in range(error.shape[0]):
            for n in range(error.shape[1]):
                derror[k, t, n] = (derror[k, t, n] - lower[t, n]) / (2.0 * step)
                dvariance[k, t, n] = (above[t, n] - below[t, n]) / (2.0 * step)
        if k < size:
            up[k] = theta[k]
            down[k] = theta[k]
        else:
            high[k - size] = logs[k - size]
            low[k - size] = logs[k - size]
