"""The forced rollout and its derivatives in theta = [A, W, h, C] (paper: ITF-aligned curvature proxy).

Time is 0-based: ``x[0]`` embeds, step i maps the (forced) state at i to i + 1. Forcing has a strength for
each step and coordinate, 0 where nothing is forced; ``keep (T-1, N)`` is 1 - strength. ``scale (T-1, N)``
multiplies predictions: 1 / deviation, and 0 where there is nothing to compare with. The initial condition is
fixed, so its sensitivity is zero. ``inputs (T-1, K)`` drive the map through C, K = 0 where there are none.
"""

from __future__ import annotations

import numpy as np

from palrnn.engine.kernel import kernel
from palrnn.engine.products import copy, product


@kernel
def forced_states(A, W, h, gated, start, x, strengths, bound, states):
    """Fill ``states (T-1, M)`` with zbar_i, the states that the map is applied to along the forced rollout.

        z_{i+1} = A zbar_i + W phi*(zbar_i) + h_i,   zbar_i = z_i, except where the strength alpha > 0:
        zbar_i[n] = (1 - alpha) z_i[n] + alpha x_i[n]   (eq. itf_rollout; eq. gtf_mix for alpha < 1)

    A (M,), W (M, M), start (M,), x (T, N), strengths (T-1, N); h (1, M), or (T, M) with what inputs add to
    each step. Return the step where the rollout left ``bound``, or -1.
    """
    steps, dim = states.shape
    seen = x.shape[1]
    moves = 1 if h.shape[0] > 1 else 0
    z = start.copy()
    for t in range(steps):
        for n in range(seen):
            alpha = strengths[t, n]
            if alpha > 0.0:
                z[n] = (1.0 - alpha) * z[n] + alpha * x[t, n]
        for i in range(dim):
            if not abs(z[i]) <= bound:
                return t
            states[t, i] = z[i]
        for i in range(dim):
            total = A[i] * states[t, i] + h[t * moves, i]
            for j in range(dim - gated):
                total += W[i, j] * states[t, j]
            for j in range(dim - gated, dim):
                total += W[i, j] * max(states[t, j], 0.0)
            z[i] = total
    for i in range(dim):
        if not abs(z[i]) <= bound:
            return steps
    return -1


@kernel
def _jacobian(A, W, gated, z, out):
    """J = A + W D(c) at the state ``z (M,)``, zero slope at the kink (eq. stepjacobian) -> out (M, M)."""
    dim = z.shape[0]
    for i in range(dim):
        for j in range(dim - gated):
            out[i, j] = W[i, j]
        for j in range(dim - gated, dim):
            out[i, j] = W[i, j] if z[j] > 0.0 else 0.0
        out[i, i] += A[i]


@kernel
def _advance(A, W, gated, z, inputs, keep, J, S, out):
    """S_{t+1} = J_t Sbar_t + V_t, with Sbar_t = S_t and its first N rows times ``keep (N,)``.

    V_t = [diag(z), I kron phi*(z)^T, I, I kron s^T] at ``z (M,)``, s = ``inputs (K,)``. S (M, p) is changed
    by the reset -> out (M, p).
    """
    dim = z.shape[0]
    for n in range(keep.shape[0]):
        if keep[n] != 1.0:
            for q in range(S.shape[1]):
                S[n, q] *= keep[n]
    _jacobian(A, W, gated, z, J)
    product(J, S, out)
    for i in range(dim):
        out[i, i] += z[i]
        first = dim + i * dim
        for j in range(dim - gated):
            out[i, first + j] += z[j]
        for j in range(dim - gated, dim):
            out[i, first + j] += max(z[j], 0.0)
        out[i, dim + dim * dim + i] += 1.0
        for k in range(inputs.shape[0]):
            out[i, dim * (dim + 2) + i * inputs.shape[0] + k] += inputs[k]


@kernel
def sensitivity_rows(A, W, gated, states, inputs, begin, keep, scale, S, rows):
    """Advance S over the steps ``begin, begin + 1, ...`` and keep the scaled rows of B S_{t+1} (eq. tfgn).

    states (T-1, M); inputs (T-1, K); keep and scale (T-1, N); S (M, p) is the sensitivity at ``begin`` on
    entry, at the end on return; rows (steps, N, p) gets scale_tn dz_{t+1,n} / dtheta per step.
    """
    steps, seen = rows.shape[:2]
    dim = states.shape[1]
    J, after = np.empty((dim, dim)), np.empty_like(S)
    for k in range(steps):
        t = begin + k
        _advance(A, W, gated, states[t], inputs[t], keep[t], J, S, after)
        copy(after, S)
        for n in range(seen):
            for q in range(S.shape[1]):
                rows[k, n, q] = scale[t, n] * S[n, q]


@kernel
def sensitivity_trace(A, W, gated, states, inputs, keep, scale):
    """Return sum_t sum_n scale_tn^2 |dz_{t+1,n} / dtheta|^2 (eq. tfgn), holding only one S (M, p)."""
    steps, dim = states.shape
    seen = scale.shape[1]
    J = np.empty((dim, dim))
    size = dim * (dim + 2 + inputs.shape[1])
    S, after = np.zeros((dim, size)), np.empty((dim, size))
    total = 0.0
    for t in range(steps):
        _advance(A, W, gated, states[t], inputs[t], keep[t], J, S, after)
        S, after = after, S
        for n in range(seen):
            square = 0.0
            for q in range(S.shape[1]):
                square += S[n, q] * S[n, q]
            total += scale[t, n] * scale[t, n] * square
    return total


@kernel
def tangent(A, W, gated, states, inputs, keep, scale, v, out):
    """out_{t,n} = scale_tn dz_{t+1,n} / dtheta . v, by carrying s_t = S_t v (M,) forward: O(M^2) per step.

    states (T-1, M), inputs (T-1, K), keep and scale (T-1, N), v (p,) -> out (T-1, N).
    """
    steps, dim = states.shape
    seen = scale.shape[1]
    more = inputs.shape[1]
    s, after = np.zeros(dim), np.empty(dim)
    for t in range(steps):
        for n in range(seen):
            s[n] *= keep[t, n]
        for i in range(dim):
            first = dim + i * dim
            total = A[i] * s[i] + v[i] * states[t, i] + v[dim + dim * dim + i]
            for j in range(dim - gated):
                total += W[i, j] * s[j] + v[first + j] * states[t, j]
            for j in range(dim - gated, dim):
                if states[t, j] > 0.0:
                    total += W[i, j] * s[j] + v[first + j] * states[t, j]
            for k in range(more):
                total += v[dim * (dim + 2) + i * more + k] * inputs[t, k]
            after[i] = total
        s, after = after, s
        for n in range(seen):
            out[t, n] = scale[t, n] * s[n]


@kernel
def cotangent(A, W, gated, states, inputs, keep, scale, r, out):
    """out = sum_{t,n} r_{t,n} scale_tn dz_{t+1,n} / dtheta, by carrying the adjoint back: O(M^2) per step.

        l_t = B^T (scale r_t) + reset_{t+1} J_{t+1}^T l_{t+1},   out = sum_t V_t^T l_t

    states (T-1, M), inputs (T-1, K), keep, scale and r (T-1, N) -> out (p,).
    """
    steps, dim = states.shape
    seen = scale.shape[1]
    adjoints, rectified = np.zeros((steps, dim)), states.copy()
    back = np.zeros(dim)
    for t in range(steps - 1, -1, -1):
        for i in range(dim):
            adjoints[t, i] = back[i]
        for n in range(seen):
            adjoints[t, n] += scale[t, n] * r[t, n]
        for j in range(dim):
            back[j] = A[j] * adjoints[t, j]
        for i in range(dim):
            for j in range(dim - gated):
                back[j] += W[i, j] * adjoints[t, i]
            for j in range(dim - gated, dim):
                if states[t, j] > 0.0:
                    back[j] += W[i, j] * adjoints[t, i]
        for n in range(seen):
            back[n] *= keep[t, n]
        for j in range(dim - gated, dim):
            rectified[t, j] = max(states[t, j], 0.0)
    weights = np.dot(adjoints.T, rectified)
    for i in range(dim):
        out[i] = 0.0
        out[dim + dim * dim + i] = 0.0
        for j in range(dim):
            out[dim + i * dim + j] = weights[i, j]
    more = inputs.shape[1]
    if more > 0:
        driven = np.dot(adjoints.T, inputs)
        for i in range(dim):
            for k in range(more):
                out[dim * (dim + 2) + i * more + k] = driven[i, k]
    for t in range(steps):
        for i in range(dim):
            out[i] += adjoints[t, i] * states[t, i]
            out[dim + dim * dim + i] += adjoints[t, i]
