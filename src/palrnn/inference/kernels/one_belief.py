"""One Gaussian belief N(m, P): predicting it through a gated linear step and conditioning it on coordinates.

This is what `smooth` walks a gate path with. The filter has the same steps for many beliefs at once in
`beliefs`. Arrays are padded with zeros to D, a multiple of 8 (see `PathArrays`).
"""

from __future__ import annotations

import math

import numpy as np

from palrnn.engine.kernel import kernel
from palrnn.engine.lanes import broadcast, fma, lane_count, load, mul, store
from palrnn.engine.products import copy, product

WORD = 64


@kernel
def bit(words, j):
    """Bit j of the packed code ``words (ceil(P / 64),)``."""
    return (words[j // WORD] >> np.uint64(j % WORD)) & np.uint64(1)


@kernel
def transition(arrays, words, Jt):
    """The transpose of J = A + W D(c) (eq. pwa) into ``Jt (D, D)``, for the code c in ``words``."""
    latent, gated = arrays.latent_dim, arrays.gate.shape[0]
    copy(arrays.Ft, Jt)
    for j in range(gated):
        if not bit(words, j):
            k = latent - gated + j
            Jt[k, :] = 0.0
            Jt[k, k] = arrays.A[k]


@kernel
def bias(arrays, t):
    """The bias h_t = h + C s_t of transition ``t``; without inputs there is one for all."""
    return arrays.h[t if arrays.h.shape[0] > 1 else 0]


@kernel
def predict(arrays, t, Jt, B, mean, cov):
    """m <- J m + h_t,  P <- J P J^T + Q, in place, given ``B (D, D)`` = U J^T, where P = U^T U."""
    product(B.T, B, cov)
    for i in range(arrays.latent_dim):
        cov[i, i] += arrays.process[i]
        # a product may round its two triangles differently
        for j in range(i):
            cov[i, j] = cov[j, i]
    moved, h = np.empty_like(mean), bias(arrays, t)
    product(mean, Jt, moved)
    for i in range(mean.shape[0]):
        mean[i] = moved[i] + h[i]


@kernel
def combine(out, at, a, left, left_at, b, right, right_at, dim):
    """out[j] = a left[j] + b right[j] for j < dim, a multiple of 8, from the given position of each array."""
    x, y = broadcast(a), broadcast(b)
    for j in range(0, dim, lane_count(out)):
        store(out, at + j, fma(x, load(left, left_at + j), mul(y, load(right, right_at + j))))


@kernel
def condition(mean, cov, first, values, variances, drawn, latent):
    """Condition N(m, P) on y_n = z_{first+n} + N(0, variances_n), n = 0, 1, ..., in place; return log p(y).

    One coordinate at a time, with s = P_kk + r and the row p = P_k: m += p (y - m_k) / s and P -= p p^T / s,
    except that the row and column of k itself become p r / s, which is the same without the cancellation. A
    value that is NaN was not observed and is passed over.

    With ``drawn``, ``values`` holds standard normal numbers on entry and y on exit: each y_n is drawn from
    its predictive distribution given those before it, m_k + sqrt(s) * values_n, which is drawing y jointly.

    ``mean (D,)``, ``cov (D, D)``, ``values (n,)``, ``variances (n,)``; ``latent`` is M.
    """
    dim, loglik = mean.shape[0], 0.0
    unit = np.empty(dim)
    for n in range(values.shape[0]):
        k = first + n
        s = cov[k, k] + variances[n]
        scale = math.sqrt(max(s, 0.0))
        if drawn:
            innovation = scale * values[n]
            values[n] = mean[k] + innovation
        else:
            innovation = values[n] - mean[k]
        # not observed; or known already: a noiseless gate on a coordinate whose variance rounding used up
        if math.isnan(values[n]) or (drawn and scale == 0.0):
            continue
        if not s > 0.0:
            return math.nan
        loglik -= 0.5 * (math.log(2.0 * math.pi * s) + innovation * innovation / s)
        combine(unit, 0, 1.0 / scale, cov, k * dim, 0.0, cov, k * dim, dim)
        combine(mean, 0, 1.0, mean, 0, innovation / scale, unit, 0, dim)
        for i in range(latent):
            combine(cov, i * dim, 1.0, cov, i * dim, -unit[i], unit, 0, dim)
        for i in range(latent):
            cov[k, i] = cov[i, k] = unit[i] * (variances[n] / scale)
    return loglik
