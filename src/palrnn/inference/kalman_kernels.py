"""One Gaussian belief N(m, P): predicting it through a gated linear step and conditioning it on coordinates.

All observations here are single coordinates of the state with independent noise, so conditioning goes one
coordinate at a time and needs no matrix inverse. Arrays are padded with zeros to D, a multiple of 8 (see
`system`). The upper triangle of P is what counts; `condition` ends by copying it to the lower one.
"""

from __future__ import annotations

import math

import numpy as np

from palrnn.engine.kernel import kernel
from palrnn.inference.tile_kernels import combine, product

WORD = 64


@kernel
def open_units(system, words, scratch):
    """Sort the gated units into ``scratch.active`` (open) and ``scratch.closed`` by the code in ``words``.

    J = A + W D(c) (eq. pwa) has the column A_j + W_j for an open unit j, and only A_jj on the diagonal for a
    closed one. The ungated units stand at the head of ``active``, always. Returns how many units are active.
    """
    gated = system.gate.shape[0]
    free = system.latent_dim - gated
    active, closed = free, 0
    for j in range(gated):
        opened = np.int64(bit(words, j))
        # both are written, one of them counts: the bits are random, so a branch would be mispredicted
        scratch.active[active] = free + j
        scratch.closed[closed] = free + j
        active += opened
        closed += 1 - opened
    return active


@kernel
def bit(words, j):
    """Bit j of the packed code ``words (ceil(P / 64),)``."""
    return (words[j // WORD] >> np.uint64(j % WORD)) & np.uint64(1)


@kernel
def predict(system, count, mean, cov, scratch):
    """m <- J m + h,  P <- J P J^T + Q, in place, for the units that `open_units` listed and counted.

    ``mean (D,)``, ``cov (D, D)``: all of P is read, its upper triangle is written.
    """
    latent, dim = system.latent_dim, mean.shape[0]
    JP, A, after = scratch.product, system.A, scratch.after
    active, closed, shut = scratch.active, scratch.closed, latent - count
    product(JP, dim, system.Ft, 0, 1, dim, cov, active, count, latent, True, False)
    for c in range(shut):
        k = closed[c]
        combine(JP, k * dim, 1.0, JP, k * dim, A[k], cov, k * dim, dim)
    product(cov, dim, JP, 0, dim, 1, system.Ft, active, count, latent, True, True)
    for c in range(shut):
        k = closed[c]
        for i in range(k + 1):
            cov[i, k] += JP[i, k] * A[k]
    for i in range(latent):
        cov[i, i] += system.process[i]
    product(after, dim, mean, 0, 0, 1, system.Ft, active, count, 1, True, False)
    for c in range(shut):
        k = closed[c]
        after[k] += A[k] * mean[k]
    combine(mean, 0, 1.0, after, 0, 1.0, system.h, 0, dim)


@kernel
def condition(mean, cov, first, values, variances, drawn, latent, scratch):
    """Condition N(m, P) on y_n = z_{first+n} + N(0, variances_n), n = 0, 1, ..., in place; return log p(y).

    One coordinate at a time, with s = P_kk + r and the row p = P_k: m += p (y - m_k) / s and P -= p p^T / s,
    except that the row and column of k itself become p r / s, which is the same without the cancellation. A
    value that is NaN was not observed and is passed over.

    With ``drawn``, ``values`` holds standard normal numbers on entry and y on exit: each y_n is drawn from
    its predictive distribution given those before it, m_k + sqrt(s) * values_n, which is drawing y jointly.

    ``mean (D,)``, ``cov (D, D)``, ``values (n,)``, ``variances (n,)``; ``latent`` is M. The upper triangle
    of P is read, all of it is written.
    """
    count, dim = values.shape[0], mean.shape[0]
    rows, unit, minus, order = scratch.rows, scratch.unit, scratch.minus, scratch.order
    loglik = 0.0
    for n in range(count):
        k = first + n
        combine(rows, n * dim, 1.0, cov, k * dim, 0.0, cov, k * dim, dim)
        for i in range(k):
            rows[n, i] = cov[i, k]
    for n in range(count):
        k = first + n
        s = rows[n, k] + variances[n]
        root = math.sqrt(max(s, 0.0))
        if drawn:
            innovation = root * values[n]
            values[n] = mean[k] + innovation
        else:
            innovation = values[n] - mean[k]
        # not observed; or known already: a noiseless gate on a coordinate whose variance rounding used up
        if math.isnan(values[n]) or (drawn and root == 0.0):
            unit[n, :] = 0.0
            minus[n, :] = 0.0
            continue
        if not s > 0.0:
            return math.nan
        loglik -= 0.5 * (math.log(2.0 * math.pi * s) + innovation * innovation / s)
        inverse, at = 1.0 / root, n * dim
        combine(unit, at, inverse, rows, at, 0.0, rows, at, dim)
        combine(minus, at, -inverse, rows, at, 0.0, rows, at, dim)
        combine(mean, 0, 1.0, mean, 0, innovation * inverse, unit, at, dim)
        combine(rows, at, variances[n] * inverse, unit, at, 0.0, unit, at, dim)
        for m in range(count):
            if m != n:
                combine(rows, m * dim, 1.0, rows, m * dim, minus[n, first + m], unit, at, dim)
                rows[m, k] = rows[n, first + m]
    product(cov, dim, minus, 0, 1, dim, unit, order, count, latent, False, True)
    for n in range(count):
        k = first + n
        combine(cov, k * dim, 1.0, rows, n * dim, 0.0, rows, n * dim, dim)
        for i in range(k):
            cov[i, k] = rows[n, i]
    for i in range(latent):
        for j in range(i):
            cov[i, j] = cov[j, i]
    return loglik
