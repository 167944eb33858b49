"""SOAP (Vyas et al., 2024): Adam in the eigenbasis of Shampoo's preconditioners, for matrices of weights.

Units that move together make gradients that are nearly collinear, and Adam, which scales one parameter at a
time, crawls along the valley that they leave. Here each block of weights is turned so that rows and columns
of its gradient are uncorrelated, and scaled there. `palrnn.forcing.soap` turns the bases, between kernels.
"""

from __future__ import annotations

import math

from palrnn.engine.kernel import kernel
from palrnn.engine.products import product

#: Of the first and the second moment, and of the second moments of rows and columns.
BETA1, BETA2, BETA_BASIS, EPSILON = 0.9, 0.95, 0.95, 1e-8


@kernel
def soap_step(theta, first, second, blocks, gradient, step, rate, tiny):
    """One step, in place; ``step`` counts from 1. Of each block, with G (m, n) the gradient of its weights,

        L += (1 - b3)(G G^T - L),   R += (1 - b3)(G^T G - R),   g = QL^T G QR,
        m += (1 - b1)(g - m),   v += (1 - b2)(g^2 - v),
        weights -= rate QL [m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps)] QR^T.

    ``blocks`` are tuples of the places of the weights in ``theta``, ``(m, n)``, the second moments L and R,
    their bases QL and QR, and four matrices ``(m, n)``, ``(m, m)``, ``(n, n)``, ``(m, n)`` to work in; a side
    whose basis is empty is not turned. ``first`` and ``second`` hold the moments m and v of turned gradients,
    at the same places as the weights. Parameters that belong to no matrix are a block of one row without
    bases, which is Adam. Moments below ``tiny`` are set to zero.
    """
    number, zero = theta.dtype.type, theta.dtype.type(0.0)
    size = rate / (1.0 - BETA1**step) * math.sqrt(1.0 - BETA2**step)
    eps = EPSILON * math.sqrt(1.0 - BETA2**step)
    for places, L, R, QL, QR, G, across, down, turned in blocks:
        m, n = places.shape
        for i in range(m):
            for j in range(n):
                G[i, j] = gradient[places[i, j]]
        if QL.shape[0] > 0:
            product(G, G.T, across)
            for i in range(m):
                for j in range(m):
                    L[i, j] += (1.0 - BETA_BASIS) * (across[i, j] - L[i, j])
        if QR.shape[0] > 0:
            product(G.T, G, down)
            for i in range(n):
                for j in range(n):
                    R[i, j] += (1.0 - BETA_BASIS) * (down[i, j] - R[i, j])
        turn(G, QL.T, QR, turned)
        for i in range(m):
            for j in range(n):
                k = places[i, j]
                moment = number(first[k] + (1.0 - BETA1) * (G[i, j] - first[k]))
                square = number(second[k] + (1.0 - BETA2) * (G[i, j] * G[i, j] - second[k]))
                first[k] = zero if abs(moment) < tiny else moment
                second[k] = zero if square < tiny else square
                G[i, j] = size * first[k] / (math.sqrt(second[k]) + eps)
        turn(G, QL, QR.T, turned)
        for i in range(m):
            for j in range(n):
                theta[places[i, j]] -= number(G[i, j])


@kernel
def turn(G, left, right, turned):
    """``G = left G right``, in place; an empty side is left out."""
    if left.shape[0] > 0:
        product(left, G, turned)
        for i in range(G.shape[0]):
            for j in range(G.shape[1]):
                G[i, j] = turned[i, j]
    if right.shape[0] > 0:
        product(G, right, turned)
        for i in range(G.shape[0]):
            for j in range(G.shape[1]):
                G[i, j] = turned[i, j]
