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

from palrnn.engine.kernel import kernel
from palrnn.engine.lanes import add, broadcast, div, fma, load, load_broadcast, mul, sqrt, store
from palrnn.engine.products import product
from palrnn.engine.vector_code import LANES
from palrnn.inference.kernels.beliefs import place

# pivots whose product is taken before its logarithm: few enough not to overflow
_PIVOTS = 6


@kernel
def line(i):
    """Where row i of a triangle of lanes begins."""
    return i * (i + 1) // 2 * LANES


@kernel
def factorise_bordered(rows, dim):
    """Replace the bordered triangle ``rows`` by C, of which C C^T is the matrix, and C^(-1) v, in place.

    The diagonal of C is left as its inverse, by which everything is divided.
    """
    one, minus = broadcast(1.0), broadcast(-1.0)
    for j in range(dim):
        own, last = line(j), j * LANES
        pivot = load(rows, own + last)
        for k in range(0, last, LANES):
            value = load(rows, own + k)
            pivot = fma(mul(minus, value), value, pivot)
        inverse = div(one, sqrt(pivot))
        store(rows, own + last, inverse)
        i = j + 1
        # four rows at a time, or each sum would wait for its own last addition
        while i + 4 <= dim + 1:
            a, b, c, d = line(i), line(i + 1), line(i + 2), line(i + 3)
            sum_a, sum_b, sum_c, sum_d = (
                load(rows, a + last), load(rows, b + last), load(rows, c + last), load(rows, d + last)
            )  # fmt: skip
            for k in range(0, last, LANES):
                value = mul(minus, load(rows, own + k))
                sum_a = fma(value, load(rows, a + k), sum_a)
                sum_b = fma(value, load(rows, b + k), sum_b)
                sum_c = fma(value, load(rows, c + k), sum_c)
                sum_d = fma(value, load(rows, d + k), sum_d)
            store(rows, a + last, mul(sum_a, inverse))
            store(rows, b + last, mul(sum_b, inverse))
            store(rows, c + last, mul(sum_c, inverse))
            store(rows, d + last, mul(sum_d, inverse))
            i += 4
        while i <= dim:
            a = line(i)
            total = load(rows, a + last)
            for k in range(0, last, LANES):
                total = fma(mul(minus, load(rows, own + k)), load(rows, a + k), total)
            store(rows, a + last, mul(total, inverse))
            i += 1


@kernel
def half_log_determinant(rows, dim, out, at):
    """Write (log |C C^T|) / 2, from the inverse diagonal, to the lanes of ``out`` from ``at`` on."""
    store(out, at, broadcast(0.0))
    for first in range(0, dim, _PIVOTS):
        product = broadcast(1.0)
        for j in range(first, min(first + _PIVOTS, dim)):
            product = mul(product, load(rows, line(j) + j * LANES))
        store(rows, line(dim) + dim * LANES, product)
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
            store(rows, line(i) + j * LANES, load(cov, place(j, i)))
        store(rows, border + i * LANES, load(mean, i * LANES))
    factorise_bordered(rows, dim)
    half_log_determinant(rows, dim, own, at)
    # C^(-1), row by row, from the diagonal to the left: (C^(-1))_ij = -sum_k C_ik (C^(-1))_kj / C_ii
    for i in range(dim):
        inverse = load(rows, line(i) + i * LANES)
        for j in range(i):
            total = broadcast(0.0)
            for k in range(j, i):
                total = fma(load(rows, line(i) + k * LANES), load(precision, line(k) + j * LANES), total)
            store(precision, line(i) + j * LANES, mul(mul(broadcast(-1.0), inverse), total))
        store(precision, line(i) + i * LANES, inverse)
    # C^(-T) C^(-1) m and C^(-T) C^(-1), in place: entries of row i need rows from i on
    square = broadcast(0.0)
    for i in range(dim):
        half = load(rows, border + i * LANES)
        square = fma(half, half, square)
        total = broadcast(0.0)
        for k in range(i, dim):
            total = fma(load(precision, line(k) + i * LANES), load(rows, border + k * LANES), total)
        store(precision, border + i * LANES, total)
        for j in range(i + 1):
            total = broadcast(0.0)
            for k in range(i, dim):
                factor = load(precision, line(k) + i * LANES)
                total = fma(factor, load(precision, line(k) + j * LANES), total)
            store(precision, line(i) + j * LANES, total)
    store(own, at, fma(broadcast(-0.5), square, mul(broadcast(-1.0), load(own, at))))


@kernel
def in_coordinates(Omega, vector, basis, latent, message, half, turned):
    """Fill the bordered triangle ``message`` with B^T Omega B and B^T lambda: the message about y, z = B y.

    ``basis (D, D)`` is B, padded; ``half`` and ``turned (D, D)`` are scratch. Entries are numbers, not lanes.
    """
    below = np.empty_like(vector)
    product(basis.T, Omega, half)
    product(half, basis, turned)
    product(vector, basis, below)
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
        store(rows, entry * LANES, add(load(precision, entry * LANES), load_broadcast(message, entry)))
    factorise_bordered(rows, dim)
    half_log_determinant(rows, dim, out, at)
    square = broadcast(0.0)
    for i in range(dim):
        half = load(rows, border + i * LANES)
        square = fma(half, half, square)
    total = fma(broadcast(0.5), square, load(own, at))
    store(out, at, fma(broadcast(-1.0), load(out, at), total))
