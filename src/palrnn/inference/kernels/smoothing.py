"""Given a gate path the model is linear and Gaussian: walk the path again, then draw states backwards.

Forward, each step leaves a backward kernel z_t | z_{t+1} ~ N(m_t + G_t (z_{t+1} - J_t m_t - h), F_t F_t^T),
where (m_t, P_t) is the belief that the path's gates and the data up to t leave. With P_t = U^T U,

    B = U J^T Q^(-1/2),    I + B B^T = V^T V,    F^T = V^(-T) U,    G^T = Q^(-1/2) (V^(-T) B)^T F^T.

No covariance is inverted and nothing is subtracted: the only matrix that is solved with has eigenvalues of at
least 1. States are rows here, hence the transposes.
"""

from __future__ import annotations

import math

import numpy as np

from palrnn.engine.kernel import kernel
from palrnn.engine.lanes import lane_count, load, mul, store
from palrnn.engine.products import copy, product
from palrnn.engine.vector_code import LANES, emitted
from palrnn.inference.kernels.noise import GATES, fill_normals, stream_key
from palrnn.inference.kernels.one_belief import combine, condition, predict, transition

# draws that are carried backwards together: few enough for the first-level cache
GROUP = 64
# the vectors of a row that are summed side by side in registers
COLUMNS = 8


@kernel
def trace(ancestors, last, lineages):
    """Fill ``lineages (S, T-1)`` with the slots that led to the final slots ``last (S,)``."""
    steps = ancestors.shape[0]
    for s in range(last.shape[0]):
        slot = last[s]
        for t in range(steps - 1, -1, -1):
            lineages[s, t] = slot
            slot = ancestors[t, slot]


@emitted
def _reduce_tile(code, matrix, width, row, first, columns, factors, size):
    """Some vectors of `reduce_row`, from number ``first`` of the row on."""
    above, column = code.at(matrix, first), code.at(factors, row)
    place = code.at(above, code.product(row, width))

    def write(_, tile_columns):
        def term(k, running):
            factor = code.broadcast(code.entry(column, code.product(k, size)))
            ahead = code.load_row(code.at(above, code.product(k, width)), LANES, tile_columns)
            return [[code.subtract_product(s, factor, x) for s, x in zip(running[0], ahead, strict=True)]]

        sums = [code.load_row(place, LANES, tile_columns)]
        code.store_row(code.accumulate(sums, row, term)[0], place, LANES)

    code.for_each_size(1, columns, [1] * COLUMNS, write)


@kernel
def reduce_row(matrix, row, first, factors):
    """matrix[row] -= sum_{k < row} factors[k, row] matrix[k], from number ``first`` of the row on.

    ``matrix (D, K)``, ``factors (D, D)``; the numbers of a row and ``first`` are multiples of 8.
    """
    width, size = matrix.shape[1], factors.shape[1]
    for at in range(first, width, COLUMNS * LANES):
        columns = min(COLUMNS, (width - at) // LANES)
        _reduce_tile(matrix, width, row, at, columns, factors, size)


@kernel
def factorise(matrix):
    """Replace ``matrix (D, D)`` by upper triangular U with U^T U equal to it (Cholesky), in place.

    A direction without variance gives a row of zeros. D is a multiple of 8.
    """
    dim = matrix.shape[0]
    for i in range(dim):
        # whole vectors of 8, from the one with the diagonal on
        start = i // 8 * 8
        reduce_row(matrix, i, start, matrix)
        pivot, at = matrix[i, i], i * dim + start
        scale = 1.0 / math.sqrt(pivot) if pivot > 0.0 else 0.0
        combine(matrix, at, scale, matrix, at, 0.0, matrix, at, dim - start)
    for i in range(dim):
        for j in range(i):
            matrix[i, j] = 0.0


@kernel
def solve_transposed(V, rows):
    """rows <- V^(-T) rows for upper triangular ``V (D, D)`` and ``rows (D, K)``, K a multiple of 8."""
    wide = rows.shape[1]
    for i in range(V.shape[0]):
        reduce_row(rows, i, 0, V)
        combine(rows, i * wide, 1.0 / V[i, i], rows, i * wide, 0.0, rows, i * wide, wide)


@kernel
def backward_kernel(system, U, B, S, backward):
    """F^T and G^T (see the module) into the upper and lower half of ``backward (2 D, D)``.

    ``U (D, D)`` and ``B (D, D)`` = U J^T, not scaled yet, are used up; ``S (D, D)`` is scratch.
    """
    # taken out of its tuple once: each time costs as much as a row
    dim, precision = U.shape[0], system.precision
    for i in range(dim):
        for j in range(0, dim, lane_count(B)):
            store(B, i * dim + j, mul(load(B, i * dim + j), load(precision, j)))
    product(B, B.T, S)
    for i in range(dim):
        S[i, i] += 1.0
    factorise(S)
    solve_transposed(S, U)
    solve_transposed(S, B)
    copy(U, backward[:dim])
    product(B.T, U, S)
    for i in range(system.latent_dim):
        combine(backward, (dim + i) * dim, precision[i], S, i * dim, 0.0, S, i * dim, dim)


@kernel
def walk(system, x, codes, inputs, first, path):
    """Run the Kalman filter along a gate path from transition ``first``; return the log likelihood from it.

    ``codes (T-1, words)`` are the gates, and ``inputs (T-1, P)`` their noisy inputs, on which the belief is
    conditioned where they are not NaN. ``path`` holds what is kept per time (see `Path`); what it holds
    before ``first`` stays valid.
    """
    steps = codes.shape[0]
    dim, latent, gated = system.A.shape[0], system.latent_dim, system.gate.shape[0]
    Jt, U, B, S = np.empty((dim, dim)), np.empty((dim, dim)), np.empty((dim, dim)), np.empty((dim, dim))
    mean, cov = path.filtered_mean[first].copy(), path.filtered_cov[first].copy()
    loglik = 0.0
    for t in range(first, steps):
        condition(mean, cov, latent - gated, inputs[t], system.gate, False, latent)
        copy(mean, path.mean[t])
        transition(system, codes[t], Jt)
        copy(cov, U)
        factorise(U)
        product(U, Jt, B)
        predict(system, t, Jt, B, mean, cov)
        backward_kernel(system, U, B, S, path.backward[t])
        copy(mean, path.predicted[t + 1])
        loglik += condition(mean, cov, 0, x[t + 1], system.observation, False, latent)
        copy(mean, path.filtered_mean[t + 1])
        copy(cov, path.filtered_cov[t + 1])
    copy(mean, path.mean[steps])
    factorise(cov)
    copy(cov, path.backward[steps, :dim])
    return loglik


@kernel
def trace_inputs(system, key, x, lineage, codes, mean, cov, inputs):
    """Fill ``inputs (T-1, P)`` with what the filter drew for the slots ``lineage (T-1,)``, under EXACT.

    The noise is made again, and the belief N(``mean (D,)``, ``cov (D, D)``) about z_1 carried along.
    """
    dim, latent, gated = system.A.shape[0], system.latent_dim, system.gate.shape[0]
    Jt, U, B = np.empty((dim, dim)), np.empty((dim, dim)), np.empty((dim, dim))
    for t in range(codes.shape[0]):
        fill_normals(stream_key(key, t, GATES), lineage[t], inputs[t].reshape((gated, 1)))
        condition(mean, cov, latent - gated, inputs[t], system.gate, True, latent)
        transition(system, codes[t], Jt)
        copy(cov, U)
        factorise(U)
        product(U, Jt, B)
        predict(system, t, Jt, B, mean, cov)
        condition(mean, cov, 0, x[t + 1], system.observation, False, latent)


@kernel
def sample_states(path, states):
    """Turn standard normal ``states (K, T, M)`` into K draws of z_1, ..., z_T given the path, in place.

    z_T = m_T + F_T e_T,  z_t = m_t + G_t (z_{t+1} - predicted_t) + F_t e_t: all K draws share G and F.
    """
    count, times, latent = states.shape
    dim = path.mean.shape[1]
    for first in range(0, count, GROUP):
        size = min(GROUP, count - first)
        # e_t beside z_{t+1} - predicted_t, so that one product does both
        ahead, drawn = np.zeros((size, 2 * dim)), np.empty((size, dim))
        for t in range(times - 1, -1, -1):
            for k in range(size):
                for i in range(latent):
                    ahead[k, i] = states[first + k, t, i]
            if size == 1:  # a product with a vector takes half the time
                product(ahead[0], path.backward[t], drawn[0])
            else:
                product(ahead, path.backward[t], drawn)
            for k in range(size):
                for i in range(latent):
                    value = drawn[k, i] + path.mean[t, i]
                    states[first + k, t, i] = value
                    ahead[k, dim + i] = value - path.predicted[t, i]


@kernel
def smoothed_moments(path, mean, cov, lagged):
    """E z_t, Cov z_t and Cov(z_t, z_{t+1}) given the path and all data (Rauch, Tung and Striebel, 1965).

    ``mean (T, D)``, ``cov (T, D, D)``, ``lagged (T-1, D, D)`` are filled; P^s_t = G P^s_{t+1} G^T + F F^T.
    """
    times, dim = mean.shape
    work, change, moved = np.empty((dim, dim)), np.empty(dim), np.empty(dim)
    for t in range(times - 1, -1, -1):
        Ft, Gt = path.backward[t, :dim], path.backward[t, dim:]
        product(Ft.T, Ft, cov[t])
        copy(path.mean[t], mean[t])
        if t < times - 1:
            product(Gt.T, cov[t + 1], lagged[t])
            product(lagged[t], Gt, work)
            for i in range(dim):
                change[i] = mean[t + 1, i] - path.predicted[t + 1, i]
                for j in range(dim):
                    cov[t, i, j] += work[i, j]
            product(change, Gt, moved)
            for i in range(dim):
                mean[t, i] += moved[i]
