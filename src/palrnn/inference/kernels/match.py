"""How well many beliefs N(m, P) agree with one message, one belief per lane.

With the precision L = P^(-1), made once per belief, each agreement takes one Cholesky factor of L + Omega:

    log int N(z; m, P) exp(-z^T Omega z / 2 + lambda^T z) dz
        = (log |L| - log |L + Omega| + v^T (L + Omega)^(-1) v - m^T L m) / 2,      v = L m + lambda.

A bordered triangle holds a symmetric (M, M) matrix and a vector below it as row M: row i, from `line(i)` on,
has the entries 0, ..., i. Its Cholesky factor has the solution C^(-1) v in that row.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from palrnn.engine.kernel import kernel
from palrnn.engine.lanes import everywhere, fma, over, plus, put, repeated, root, take, times
from palrnn.inference.kernels.beliefs import place
from palrnn.inference.kernels.tiles import LANES

# pivots whose product is taken before its logarithm: few enough not to overflow
_PIVOTS = 6


@njit(inline="always", error_model="numpy")
def line(i):
    """Where row i of a triangle of lanes begins."""
    return i * (i + 1) // 2 * LANES


@kernel
def factorise_bordered(rows, dim):
    """Replace the bordered triangle ``rows`` by C, of which C C^T is the matrix, and C^(-1) v, in place.

    The diagonal of C is left as its inverse, by which everything is divided.
    """
    one, minus = everywhere(1.0), everywhere(-1.0)
    for j in range(dim):
        own, last = line(j), j * LANES
        pivot = take(rows, own + last)
        for k in range(0, last, LANES):
            value = take(rows, own + k)
            pivot = fma(times(minus, value), value, pivot)
        inverse = over(one, root(pivot))
        put(rows, own + last, inverse)
        i = j + 1
        # four rows at a time, or each sum would wait for its own last addition
        while i + 4 <= dim + 1:
            a, b, c, d = line(i), line(i + 1), line(i + 2), line(i + 3)
            sum_a, sum_b, sum_c, sum_d = (
                take(rows, a + last), take(rows, b + last), take(rows, c + last), take(rows, d + last)
            )  # fmt: skip
            for k in range(0, last, LANES):
                value = times(minus, take(rows, own + k))
                sum_a = fma(value, take(rows, a + k), sum_a)
                sum_b = fma(value, take(rows, b + k), sum_b)
                sum_c = fma(value, take(rows, c + k), sum_c)
                sum_d = fma(value, take(rows, d + k), sum_d)
            put(rows, a + last, times(sum_a, inverse))
            put(rows, b + last, times(sum_b, inverse))
            put(rows, c + last, times(sum_c, inverse))
            put(rows, d + last, times(sum_d, inverse))
            i += 4
        while i <= dim:
            a = line(i)
            total = take(rows, a + last)
            for k in range(0, last, LANES):
                total = fma(times(minus, take(rows, own + k)), take(rows, a + k), total)
            put(rows, a + last, times(total, inverse))
            i += 1


@kernel
def half_log_determinant(rows, dim, out, at):
    """Write (log |C C^T|) / 2, from the inverse diagonal, to the lanes of ``out`` from ``at`` on."""
    put(out, at, everywhere(0.0))
    for first in range(0, dim, _PIVOTS):
        product = everywhere(1.0)
        for j in range(first, min(first + _PIVOTS, dim)):
            product = times(product, take(rows, line(j) + j * LANES))
        put(rows, line(dim) + dim * LANES, product)
        for lane in range(LANES):
            out[at + lane] -= math.log(rows[line(dim) + dim * LANES + lane])


@kernel
def precision_form(mean, cov, dim, rows, precision, own, at):
    """Fill the bordered triangle ``precision`` with P^(-1) and P^(-1) m, of a bundle of beliefs.

    The lanes ``own`` from ``at`` on receive (log |P^(-1)| - m^T P^(-1) m) / 2. ``rows`` is scratch, as long
    as ``precision``.
    """
    border = line(dim)
    for i in range(dim):
        for j in range(i + 1):
            put(rows, line(i) + j * LANES, take(cov, place(j, i)))
        put(rows, border + i * LANES, take(mean, i * LANES))
    factorise_bordered(rows, dim)
    half_log_determinant(rows, dim, own, at)
    # C^(-1), row by row, from the diagonal to the left: (C^(-1))_ij = -sum_k C_ik (C^(-1))_kj / C_ii
    for i in range(dim):
        inverse = take(rows, line(i) + i * LANES)
        for j in range(i):
            total = everywhere(0.0)
            for k in range(j, i):
                total = fma(take(rows, line(i) + k * LANES), take(precision, line(k) + j * LANES), total)
            put(precision, line(i) + j * LANES, times(times(everywhere(-1.0), inverse), total))
        put(precision, line(i) + i * LANES, inverse)
    # C^(-T) C^(-1) m and C^(-T) C^(-1), in place: entries of row i need rows from i on
    square = everywhere(0.0)
    for i in range(dim):
        half = take(rows, border + i * LANES)
        square = fma(half, half, square)
        total = everywhere(0.0)
        for k in range(i, dim):
            total = fma(take(precision, line(k) + i * LANES), take(rows, border + k * LANES), total)
        put(precision, border + i * LANES, total)
        for j in range(i + 1):
            total = everywhere(0.0)
            for k in range(i, dim):
                factor = take(precision, line(k) + i * LANES)
                total = fma(factor, take(precision, line(k) + j * LANES), total)
            put(precision, line(i) + j * LANES, total)
    put(own, at, fma(everywhere(-0.5), square, times(everywhere(-1.0), take(own, at))))


@kernel
def in_coordinates(Omega, vector, basis, latent, message, half, turned):
    """Fill the bordered triangle ``message`` with B^T Omega B and B^T lambda: the message about y, z = B y.

    ``basis (D, D)`` is B, padded; ``half`` and ``turned (D, D)`` are scratch. Entries are numbers, not lanes.
    """
    np.dot(basis.T, Omega, half)
    np.dot(half, basis, turned)
    below = np.dot(vector, basis)
    for i in range(latent):
        for j in range(i + 1):
            message[i * (i + 1) // 2 + j] = turned[i, j]
        message[latent * (latent + 1) // 2 + i] = below[i]


@kernel
def agreement(precision, own, message, dim, rows, out, at):
    """Write the agreement (see the module) of a bundle of beliefs with ``message`` to ``out`` from ``at`` on.

    ``precision`` and the lanes ``own`` from ``at`` on come from `precision_form`; ``rows`` is scratch. NaN
    where a belief is not positive definite.
    """
    border = line(dim)
    for entry in range(border // LANES + dim):
        put(rows, entry * LANES, plus(take(precision, entry * LANES), repeated(message, entry)))
    factorise_bordered(rows, dim)
    half_log_determinant(rows, dim, out, at)
    square = everywhere(0.0)
    for i in range(dim):
        half = take(rows, border + i * LANES)
        square = fma(half, half, square)
    total = fma(everywhere(0.5), square, take(own, at))
    put(out, at, fma(everywhere(-1.0), take(out, at), total))
