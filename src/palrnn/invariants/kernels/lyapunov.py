"""Tangent vectors carried along a rollout, kept orthonormal by Gram-Schmidt."""

from __future__ import annotations

import math

import numpy as np

from palrnn.engine.kernel import kernel
from palrnn.engine.products import copy, product


@kernel
def orthonormalize(V, logs):
    """Make the rows of ``V (k, D)`` orthonormal, adding log |R_ii| of V^T = Q R to ``logs (k,)``.

    Their means over time are the exponents (eq. lyap_growth). Modified Gram-Schmidt, a row again while
    cancellation has cost it more than half its length. A row that is a combination of those before it up to
    rounding (a singular Jacobian) has R_ii = 0: it adds -inf, and a new direction takes its place.
    """
    count, dim = V.shape
    tiny = 2.3e-16 * dim
    for i in range(count):
        v = V[i]
        whole = 0.0
        for n in range(dim):
            whole += v[n] * v[n]
        whole = math.sqrt(whole)
        left = _reduced(V, i, whole)
        if left > tiny * whole:
            logs[i] += math.log(left)
        else:
            logs[i] = -np.inf
            for axis in range(dim):
                for n in range(dim):
                    v[n] = 0.0
                v[axis] = 1.0
                left = _reduced(V, i, 1.0)
                # some axis keeps at least 1 / sqrt(D) of its length
                if left * left * dim > 0.5:
                    break
        for n in range(dim):
            v[n] /= left


@kernel
def _reduced(V, i, norm):
    """Subtract from row ``i`` of ``V (k, D)`` its parts along the orthonormal rows before it.

    ``norm`` is its length before; return its length after.
    """
    dim = V.shape[1]
    v = V[i]
    first = norm
    for _ in range(4):
        for j in range(i):
            u = V[j]
            along = 0.0
            for n in range(dim):
                along += u[n] * v[n]
            for n in range(dim):
                v[n] -= along * u[n]
        left = 0.0
        for n in range(dim):
            left += v[n] * v[n]
        left = math.sqrt(left)
        if left > 0.5 * norm or not left > 2.3e-16 * dim * first:
            return left
        norm = left
    return left


@kernel
def follow(V, speed, window):
    """Put the direction of the path in place of the first row of ``V (k, D)``.

        8 (z_{t+1} - z_{t-1}) - (z_{t+2} - z_{t-2}),    ``window (5, D)``: z_{t-2} to z_{t+2},

    is twelve times the derivative along the path but for terms of fifth order; two states alone err in the
    third, an error that shear turns into a tenth of an exponent at a hundred samples to a turn. Its length is
    in parts of the last one, ``speed (1,)``, which becomes this one: the growth of the row is that of the
    speed. At rest there is no direction.
    """
    length, size = 0.0, 0.0
    for i in range(window.shape[1]):
        along = 8.0 * (window[3, i] - window[1, i]) - (window[4, i] - window[0, i])
        length += along**2
        size += window[2, i] ** 2
    length = math.sqrt(length)
    if not length > 1e-10 * (1.0 + math.sqrt(size)):
        speed[0] = 0.0
        return
    last = speed[0] if speed[0] > 0.0 else length
    for i in range(window.shape[1]):
        V[0, i] = (8.0 * (window[3, i] - window[1, i]) - (window[4, i] - window[0, i])) / last
    speed[0] = length


@kernel
def _alrnn_step(A, WT, h, gate, z, out):
    """``out = A z + W D z + h`` ``(M,)``, with gates ``gate (M,)`` that are 0 or 1."""
    dim = z.shape[0]
    for i in range(dim):
        out[i] = A[i] * z[i] + h[i]
    for j in range(dim):
        if gate[j] > 0.0:
            for i in range(dim):
                out[i] += WT[j, i] * z[j]


@kernel
def alrnn_tangents(
    A, WT, h, gated, gate_std, process, uniforms, steps, bound, z, V, speed, window, first, block, sums, room
):
    """Carry ``z (M,)`` and the tangent rows ``V (k, M)`` through ``steps`` steps of an AL-RNN, in place.

        v <- J_t v,   J_t = A + W D(c_t) (eq. a1:stepjacobian),   z <- J_t z + h + process_t

    ``WT (M, M)`` is W transposed. ``uniforms (steps, P)`` decide probit gates of width ``gate_std`` (hard
    ones if it is 0, or if uniforms has no rows); ``process (steps, M)`` is scaled noise and what inputs add,
    or has no rows. Step t adds its log |R_ii| to row ``(first + t) // block`` of ``sums (., k)``. With a
    ``speed (1,)`` the first tangent follows the path (`follow`): ``window (5, M)`` are the states around z,
    from two steps before to two after, whose last one takes the step. Return the step at which z left
    ``bound``, or -1. ``room`` is scratch: twice (k, M), ones (M,), and (M,). The state is not a row of the
    product: its rounding, and so its way, would depend on how many tangents there are.
    """
    dim = z.shape[0]
    free = dim - gated
    passed, across, gate, state = room
    for t in range(steps):
        for i in range(dim):
            if not abs(z[i]) <= bound:
                return t
        for j in range(free, dim):
            if uniforms.shape[0] > 0 and gate_std > 0.0:
                chance = 0.5 * math.erfc(-z[j] / (gate_std * math.sqrt(2.0)))
                gate[j] = 1.0 if uniforms[t, j - free] < chance else 0.0
            else:
                gate[j] = 1.0 if z[j] > 0.0 else 0.0
        for r in range(V.shape[0]):
            for i in range(dim):
                passed[r, i] = gate[i] * V[r, i]
        product(passed, WT, across)
        for r in range(V.shape[0]):
            for i in range(dim):
                V[r, i] = A[i] * V[r, i] + across[r, i]
        if speed.shape[0] > 0:
            for j in range(free, dim):
                gate[j] = 1.0 if window[4, j] > 0.0 else 0.0
            _alrnn_step(A, WT, h, gate, window[4], state)
            for k in range(4):
                copy(window[k + 1], window[k])
            copy(state, window[4])
            copy(window[2], state)
            follow(V, speed, window)
        else:
            _alrnn_step(A, WT, h, gate, z, state)
            if process.shape[0] > 0:
                for i in range(dim):
                    state[i] += process[t, i]
        copy(state, z)
        orthonormalize(V, sums[(first + t) // block])
    return -1


@kernel
def system_tangents(field, field_jacobian, p, dt, steps, bound, z, V, first, block, sums, room):
    """Carry ``z (D,)`` and tangent rows ``V (k, D)`` through ``steps`` RK4 steps of a system, in place.

    The tangent map is the derivative of the RK4 map itself: with stages k_s = f(z_s), K_s = J(z_s) V_s,
    z_{s+1} = z + a_s dt k_s and V_{s+1} = V + a_s dt K_s, it adds dt/6 (K_1 + 2 K_2 + 2 K_3 + K_4).
    ``sums`` and the return value as in `alrnn_tangents`. ``room`` is scratch: (D, D), three (D,), three
    (k, D).
    """
    dim = z.shape[0]
    ahead, weight = (0.5, 0.5, 1.0, 0.0), (1.0, 2.0, 2.0, 1.0)
    jacobian, k, mid, total, K, Mid, Total = room
    for t in range(steps):
        for i in range(dim):
            if not abs(z[i]) <= bound:
                return t
        copy(z, mid)
        copy(z, total)
        copy(V, Mid)
        copy(V, Total)
        for s in range(4):
            field(mid, p, k)
            field_jacobian(mid, p, jacobian)
            product(Mid, jacobian.T, K)
            for i in range(dim):
                total[i] += weight[s] * dt / 6.0 * k[i]
                mid[i] = z[i] + ahead[s] * dt * k[i]
            for r in range(V.shape[0]):
                for i in range(dim):
                    Total[r, i] += weight[s] * dt / 6.0 * K[r, i]
                    Mid[r, i] = V[r, i] + ahead[s] * dt * K[r, i]
        copy(total, z)
        copy(Total, V)
        orthonormalize(V, sums[(first + t) // block])
    return -1
