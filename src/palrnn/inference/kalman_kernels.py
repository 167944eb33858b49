"""One Gaussian belief N(m, P): predicting it through a gated linear step and conditioning it on coordinates.

All observations here are single coordinates of the state with independent noise, so conditioning goes one
coordinate at a time and needs no matrix inverse. Arrays are padded with zeros to D, a multiple of 8 (see
`system`).
"""

from __future__ import annotations

import math

import numpy as np

from palrnn.engine.kernel import kernel


@kernel
def transition(system, gate, J):
    """J = A + W D(c) (eq. pwa), into ``J (D, D)``; ``gate (D,)`` is the diagonal of D(c)."""
    A, W = system.A, system.W
    dim = W.shape[0]
    for i in range(dim):
        for j in range(dim):
            J[i, j] = W[i, j] * gate[j]
        J[i, i] += A[i]


@kernel
def predict(system, J, mean, cov, work):
    """m <- J m + h,  P <- J P J^T + Q, in place; ``mean (D,)``, ``cov (D, D)``, ``work (D, D)`` scratch."""
    dim = mean.shape[0]
    np.dot(J, cov, work)
    np.dot(work, J.T, cov)
    for i in range(dim):
        # the product is symmetric but for rounding, which unstable directions of J would amplify step by step
        for j in range(i):
            cov[j, i] = cov[i, j]
        cov[i, i] += system.process[i]
    after = work[0]
    np.dot(J, mean, after)
    for i in range(dim):
        mean[i] = after[i] + system.h[i]


@kernel
def condition(mean, cov, first, values, variances, drawn, rows, scaled):
    """Condition N(m, P) on y_n = z_{first+n} + N(0, variances_n), n = 0, 1, ..., in place; return log p(y).

    One coordinate at a time, with s = P_kk + r and the row p = P_k: m += p (y - m_k) / s and P -= p p^T / s,
    except that the row and column of k itself become p r / s, which is the same without the cancellation. A
    value that is NaN was not observed and is passed over.

    With ``drawn``, ``values`` holds standard normal numbers on entry and y on exit: y itself is drawn from
    its predictive distribution, y_n = m_k + sqrt(s) * values_n. Drawing and conditioning in turn is drawing y
    jointly.

    ``mean (D,)``, ``cov (D, D)``, ``values (n,)``, ``variances (n,)``; ``rows (n, D)`` and ``scaled (n4, D)``
    are scratch, n4 being n rounded up to a multiple of 4 and the rows of ``scaled`` beyond n zero.
    """
    count, dim = values.shape[0], mean.shape[0]
    loglik = 0.0
    for n in range(count):
        for i in range(dim):
            rows[n, i] = cov[first + n, i]
    for n in range(count):
        k = first + n
        row, unit = rows[n], scaled[n]
        s = row[k] + variances[n]
        if drawn:
            # zero only where the coordinate is known already and its gate is noiseless
            root = math.sqrt(max(s, 0.0))
            innovation = root * values[n]
            values[n] = mean[k] + innovation
        else:
            innovation = values[n] - mean[k]
            root = math.sqrt(s)
        if math.isnan(values[n]) or (drawn and root == 0.0):
            unit[:] = 0.0
            continue
        loglik -= 0.5 * (math.log(2.0 * math.pi * s) + innovation * innovation / s)
        gain, shrink = innovation / s, variances[n] / s
        for i in range(dim):
            unit[i] = row[i] / root
            mean[i] += gain * row[i]
            row[i] *= shrink
        for m in range(count):
            if m != n:
                other, factor = rows[m], unit[first + m]
                for i in range(dim):
                    other[i] -= factor * unit[i]
                other[k] = row[first + m]
    downdate(cov, scaled)
    for n in range(count):
        for i in range(dim):
            cov[first + n, i] = rows[n, i]
            cov[i, first + n] = rows[n, i]
    return loglik


@kernel
def downdate(cov, scaled):
    """P -= V^T V for ``scaled = V (n4, D)``, four rows at a time to pass over P less often."""
    dim = cov.shape[0]
    for n in range(0, scaled.shape[0], 4):
        v0, v1, v2, v3 = scaled[n], scaled[n + 1], scaled[n + 2], scaled[n + 3]
        for i in range(dim):
            a, b, c, d = v0[i], v1[i], v2[i], v3[i]
            row = cov[i]
            for j in range(dim):
                row[j] -= (a * v0[j] + b * v1[j]) + (c * v2[j] + d * v3[j])
