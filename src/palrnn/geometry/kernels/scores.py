"""The covariance of the complete-data score given one gate path, by Isserlis' theorem, without samples.

The score is a sum over time of products of Gaussian variables, the weighted residuals eps_t (E rows, see
`path`) and the features zeta_t = [z_t, 1]: s_k = sum_t eps_t^T Psi_{k,t} zeta_t. So is its covariance
(Isserlis, 1918):

    Cov(eps_i zeta_j, eps'_k zeta'_l) = <eps_i eps'_k> (<zeta_j zeta'_l> + m_j m'_l) + <eps_i zeta'_l>
    <zeta_j eps'_k>
                          + <eps_i zeta'_l> m_j mu'_k + mu_i <zeta_j eps'_k> m'_l + mu_i mu'_k <zeta_j
                          zeta'_l>

with < > posterior covariances, at times t and t'. There are T^2 / 2 pairs of times, but no need to visit
them: the states are a Markov chain backwards in time, so that all later scores act on time t through the
covariance of their sum with y_{t+1} and with its square alone, y the state less its smoothed mean. Those are
carried from the end to the start, once:

    H_t = Cov(sum_{t' >= t} s_{t'}, y_t y_t^T) = K_t H_{t+1} K_t^T + Cov(s_t, y_t y_t^T)

The kernels give the *observed* information of a path, minus the Hessian of log p(x | path): the largest part
of the missing information, Lambda times the moments of zeta, equals the complete information and is left out
of both.
"""

from __future__ import annotations

import numpy as np

from palrnn.engine.kernel import kernel
from palrnn.engine.products import copy, product

# pairs of times that are handled together: few enough for the second-level cache
GROUP = 16


@kernel
def later_covariance(moments, rows, cols, weights, first, count, out):
    """Fill ``out (p, n)``: Cov(s_t[l], S_{>t}[k]) summed over t, and half of what is at the same time.

    For scores of one product each, s_k = sum_t weights[t, k] eps_{t, rows[k]} zeta_{t, cols[k]}, where
    ``cols[k] == M`` means the constant; k runs over ``n = count`` parameters from ``first``, l over all p.
    The observed information is -(out + out^T) when all columns are there. Cost per parameter and time: 3
    products of M x M.

    Parameters are the last axis, so that a bundle of them is carried by few large products and all else is
    vectorised over them.
    """
    steps, size, dim = moments.slope.shape
    n, p = count, rows.shape[0]
    H, right = np.zeros((dim, dim, n)), np.zeros((dim, dim, n))
    left, both = np.empty((size + dim, dim)), np.zeros((size + dim, dim * n))
    linear, later, ahead = np.zeros((dim, n)), np.zeros((dim, n)), np.zeros((size, n))
    eps, zeta, lost, shared = np.empty((dim, n)), np.empty((dim, n)), np.empty((size, n)), np.empty((size, n))
    mean, mu = np.empty(dim + 1), np.empty(size)
    mean[dim] = 1.0
    own_mean, own_mu = np.empty(n), np.empty(n)
    for t in range(steps - 1, -1, -1):
        copy(moments.mean[t], mean[:dim])
        copy(moments.residual[t], mu)
        if t < steps - 1:
            for a in range(dim):
                product(moments.gain[t], H[a], right[a])
            copy(moments.slope[t], left[:size])
            copy(moments.gain[t], left[size:])
            product(left, right.reshape((dim, dim * n)), both)
            product(moments.slope[t], linear, ahead)
            product(moments.gain[t], linear, later)
        # what each parameter of the bundle adds at this time, from its own residual and feature
        for k in range(n):
            i, j, w = rows[first + k], cols[first + k], weights[t, first + k]
            own_mean[k], own_mu[k] = mean[j], w * mu[i]
            for a in range(dim):
                eps[a, k] = w * moments.cross[t, i, a]
                zeta[a, k] = moments.cov[t, j, a] if j < dim else 0.0
            for a in range(size):
                lost[a, k] = -0.5 * w * moments.known[t, a, i]
                shared[a, k] = 0.5 * moments.cross[t, a, j] if j < dim else 0.0
        for a in range(dim):
            for k in range(n):
                once = eps[a, k] * own_mean[k] + own_mu[k] * zeta[a, k]
                linear[a, k] = later[a, k] + once
                later[a, k] += 0.5 * once
        for a in range(size):
            for k in range(n):
                ahead[a, k] += lost[a, k] * own_mean[k] + shared[a, k] * own_mu[k]
        X = both.reshape((size + dim, dim, n))
        for r in range(p):
            i, j, w = rows[r], cols[r], weights[t, r]
            if w == 0.0:
                continue
            if j == dim:
                for k in range(n):
                    out[r, k] += w * ahead[i, k]
                continue
            for k in range(n):
                square = X[i, j, k] + lost[i, k] * zeta[j, k] + shared[i, k] * eps[j, k]
                out[r, k] += w * (square + ahead[i, k] * mean[j] + mu[i] * later[j, k])
        for a in range(dim):
            for c in range(dim):
                for k in range(n):
                    H[a, c, k] = X[size + a, c, k] + eps[a, k] * zeta[c, k] + zeta[a, k] * eps[c, k]


@kernel
def pair_trace(moments, gates, constants, lags, later, crossed):
    """Return tr of an AL-RNN's observed information given the path, from pairs of times up to ``lags`` apart.

    Louis' identity (eq. louis) for the state alone. ``gates (T-1, M)`` is the diagonal of D(c_t): the
    features of row i are [z_i, D z, 1, s], the last ones known: ``constants (T-1, 1+K)``. A trace needs the
    diagonal of each pair only, so that a pair costs 3 products of M x M, as much as one parameter and time in
    `later_covariance`: all pairs cost less than that up to a length of some 2 M^2. ``later (T-1, M, M)`` and
    ``crossed (T-1, M, M)`` are scratch: Cov(z_{t+1}, z_s) and Cov(z_{t+1}, eps_s), transposed, for s > t.
    """
    steps, dim = gates.shape
    total = 0.0
    slope, gain = np.empty((dim, dim)), np.empty((dim, dim))
    forth, zetas, back = np.empty((GROUP, dim, dim)), np.empty((GROUP, dim, dim)), np.empty((GROUP, dim, dim))
    ours, theirs = np.empty(dim), np.empty(dim)
    for t in range(steps - 1, -1, -1):
        mean, mu = moments.mean[t], moments.residual[t]
        known, cross, cov = moments.known[t], moments.cross[t], moments.cov[t]
        shared, constant = 0.0, 0.0
        for k in range(constants.shape[1]):
            constant += constants[t, k] * constants[t, k]
        for j in range(dim):
            shared += gates[t, j] * (cov[j, j] + mean[j] ** 2)
        for i in range(dim):
            total += known[i, i] * (constant + shared + cov[i, i] + mean[i] ** 2)
            total -= (mu[i] ** 2 * cov[i, i]) + cross[i, i] * (cross[i, i] + 2.0 * mu[i] * mean[i])
            for j in range(dim):
                mixed = cross[i, j] * (cross[i, j] + 2.0 * mu[i] * mean[j]) + mu[i] ** 2 * cov[j, j]
                total -= gates[t, j] * mixed
        copy(moments.slope[t].T, slope)
        copy(moments.gain[t].T, gain)
        stop = min(steps, t + 1 + lags)
        for first in range(t + 1, stop, GROUP):
            count = min(GROUP, stop - first)
            rows = later[first : first + count].reshape((count * dim, dim))
            product(rows, slope, forth[:count].reshape((count * dim, dim)))
            product(rows, gain, zetas[:count].reshape((count * dim, dim)))
            rows = crossed[first : first + count].reshape((count * dim, dim))
            product(rows, gain, back[:count].reshape((count * dim, dim)))
            for c in range(count):
                s = first + c
                other, nu = moments.mean[s], moments.residual[s]
                shared, zeta, residuals, constant = 0.0, 0.0, 0.0, 0.0
                for k in range(constants.shape[1]):
                    constant += constants[t, k] * constants[s, k]
                for j in range(dim):
                    both = gates[t, j] * gates[s, j]
                    ours[j], theirs[j] = both * mean[j], both * other[j]
                    shared += both * (zetas[c, j, j] + mean[j] * other[j])
                    zeta += both * zetas[c, j, j]
                pair = 0.0
                for i in range(dim):
                    residuals += mu[i] * nu[i]
                    again = 0.0
                    for a in range(dim):
                        again += moments.slope[t, i, a] * crossed[s, i, a]
                    # the row of A_i, and what is known
                    single = zetas[c, i, i] + mean[i] * other[i]
                    there, here = forth[c, i, i], back[c, i, i]
                    pair += again * (constant + shared + single) + there * (here + mean[i] * nu[i])
                    pair += mu[i] * (here * other[i] + nu[i] * zetas[c, i, i])
                    for j in range(dim):
                        pair += mu[i] * back[c, i, j] * theirs[j]
                for j in range(dim):
                    both, own = gates[t, j] * gates[s, j], ours[j]
                    if both == 0.0:
                        continue
                    for i in range(dim):
                        pair += forth[c, j, i] * (both * back[c, i, j] + own * nu[i])
                total -= 2.0 * (pair + residuals * zeta)
                copy(zetas[c], later[s])
                copy(back[c], crossed[s])
        copy(cov, later[t])
        copy(cross, crossed[t])
    return total


@kernel
def products(moments, pushed, out):
    """Fill ``out (T-1, E, M+1)`` with what the scores s_t have in common with a combination of all of them.

    ``pushed (T-1, E, M+1)`` is Psi_t = sum_k v_k Psi_{k,t} for a vector v: sigma = v^T s = sum_t eps_t^T
    Psi_t zeta_t. ``out[t]`` is what (observed information) v is made of, (I v)_k = sum_t <Psi_{k,t},
    out[t]>: minus Cov(eps_t zeta_t^T, sigma), without the part that the complete information takes away.
    Later times come backwards as in `later_covariance`, earlier ones forwards: E[sigma_{<t} | z_t] is a
    quadratic function of z_t, whose coefficients are carried on with K_t^T F K_t. Any map Psi will do, of
    any family.
    """
    steps, size, dim = moments.slope.shape
    H, F = np.zeros((dim, dim)), np.zeros((dim, dim))
    h, f = np.zeros(dim), np.zeros(dim)
    for t in range(steps - 1, -1, -1):
        gain, slope, cross, cov = moments.gain[t], moments.slope[t], moments.cross[t], moments.cov[t]
        mean, mu, known = moments.mean[t], moments.residual[t], moments.known[t]
        psi = np.ascontiguousarray(pushed[t, :, :dim])
        constant = np.ascontiguousarray(pushed[t, :, dim])
        # E[sigma_t | eps_t] and E[sigma_t | z_t], to first order
        by_eps, by_zeta = np.dot(psi, mean) + constant, np.dot(mu, psi)
        HK = np.dot(H, gain.T)
        carried = np.dot(gain, h)
        zeta = np.dot(psi, cov)
        # same time, to second order; then later times
        square = np.dot(known, zeta) - np.dot(np.dot(cross, psi.T), cross) - np.dot(slope, HK)
        ahead = np.dot(known, by_eps) - np.dot(cross, by_zeta) - np.dot(slope, h)
        later = np.dot(cross.T, by_eps) + np.dot(cov, by_zeta) + carried
        for i in range(size):
            for j in range(dim):
                out[t, i, j] = square[i, j] + ahead[i] * mean[j] - mu[i] * later[j]
            out[t, i, dim] = ahead[i]
        source = np.dot(cross.T, zeta)
        H = np.dot(gain, HK) + source + source.T
        h = later
    for t in range(steps):
        gain, slope, cross, cov = moments.gain[t], moments.slope[t], moments.cross[t], moments.cov[t]
        mean, mu = moments.mean[t], moments.residual[t]
        square = np.dot(np.dot(cross, F), cov)
        ahead, later = np.dot(cross, f), np.dot(cov, f)
        for i in range(size):
            for j in range(dim):
                out[t, i, j] -= square[i, j] + ahead[i] * mean[j] + mu[i] * later[j]
            out[t, i, dim] -= ahead[i]
        psi = np.ascontiguousarray(pushed[t, :, :dim])
        constant = np.ascontiguousarray(pushed[t, :, dim])
        by_eps, by_zeta = np.dot(psi, mean) + constant, np.dot(mu, psi)
        source = np.dot(slope.T, np.dot(psi, gain))
        F = np.dot(gain.T, np.dot(F, gain)) + source + source.T
        f = np.dot(gain.T, f) + np.dot(slope.T, by_eps) + np.dot(gain.T, by_zeta)
