"""A bundle of Gaussian beliefs N(m, P) side by side, one per lane: gates, prediction, conditioning.

Every entry of a mean or covariance is a vector here, with one number per particle, and every step is the same
for all particles of the bundle. What differs between them, the gates, selects lanes. Coordinates are those of
`FilterArrays`; a covariance lies in panels (see `tiles`), a mean entry by entry, both flat. The same formulas
are in plain NumPy in `palrnn.inference.reference`.
"""

from __future__ import annotations

import math

from palrnn.engine.kernel import kernel
from palrnn.engine.lanes import (
    add,
    broadcast,
    div,
    fma,
    load,
    load_broadcast,
    maximum,
    mul,
    sqrt,
    store,
    where_greater,
)
from palrnn.engine.vector_code import LANES, view
from palrnn.inference.kernels.tiles import COLUMNS, STRIDE, downdate, gated_matrix, transition_product


@kernel
def place(i, j):
    """Where entry (i, j), i <= j, of a covariance lies."""
    panel = j // COLUMNS
    return (COLUMNS * panel * (panel + 1) // 2 + i) * STRIDE + j % COLUMNS * LANES


@kernel
def mirror_blocks(cov, dim):
    """Copy the upper triangles of the blocks on the diagonal to the lower ones."""
    for first in range(0, dim, COLUMNS):
        block = place(first, first)
        for i in range(min(COLUMNS, dim - first)):
            for j in range(i):
                store(cov, block + i * STRIDE + j * LANES, load(cov, block + j * STRIDE + i * LANES))


@kernel
def load_cov_row(cov, k, dim, row, at):
    """Copy row k of the symmetric matrix ``cov`` to ``row`` from ``at`` on."""
    above = place(0, k)
    for i in range(k):
        store(row, at + i * LANES, load(cov, above + i * STRIDE))
    for i in range(k, dim):
        store(row, at + i * LANES, load(cov, place(k, i)))


@kernel
def store_cov_row(cov, k, dim, row, at):
    """Write ``row`` from ``at`` on over row and column k of the symmetric matrix ``cov``."""
    above = place(0, k)
    for i in range(k):
        store(cov, above + i * STRIDE, load(row, at + i * LANES))
    for i in range(k, dim):
        store(cov, place(k, i), load(row, at + i * LANES))


@kernel
def draw_integrated_probit(mean, cov, first, inputs, variances):
    """u_j = mu_j + sqrt(nu_j + gate_std^2) e_j: then P(u_j > 0) = Phi(mu_j / sqrt(nu_j + gate_std^2)), the
    integrated probit of the paper (eq. probit; Sec. rbpf_louis_details), each gate by itself.

    mu_j = m_k and nu_j = P_kk, k = first + j. ``inputs (P, LANES)`` holds standard normal e on entry and u on
    exit, ``variances (P,)`` gate_std^2.
    """
    for j in range(inputs.shape[0]):
        k, at = first + j, j * LANES
        variance = add(load(cov, place(k, k)), load_broadcast(variances, j))
        store(inputs, at, fma(sqrt(variance), load(inputs, at), load(mean, k * LANES)))


@kernel
def open_units(gates, gated, active):
    """List the units that are open in some lane in ``active (M,)``, the ungated first; return how many."""
    dim = gates.shape[0]
    count = dim - gated
    for k in range(dim - gated, dim):
        opened = False
        for lane in range(LANES):
            opened |= gates[k, lane] > 0.0
        active[count] = k
        count += opened
    return count


@kernel
def predict(arrays, t, mean, cov, work):
    """m <- J m + h_t,  P <- J P J^T + Q, in place, J = A + W D(c) (eq. pwa), with c = 1{``work.gates`` > 0}.

    h_t is row ``t`` of the biases, or their only one. P is symmetric, so that J P may be written down
    transposed: as the right factor of J (J P)^T.
    """
    # taken out of their tuples once: each time costs as much as a small product
    process, h, reach, product = arrays.process, arrays.h, arrays.reach, work.product
    panel, transposed, symmetric, vector = work.panel, work.transposed, work.symmetric, work.vector
    dim = h.shape[1]
    bias = t * dim if h.shape[0] > 1 else 0
    matrix = gated_matrix(arrays, work, open_units(work.gates, arrays.gate.shape[0], work.active))
    for first in range(0, dim, COLUMNS):
        columns = min(COLUMNS, dim - first)
        right = view(cov, 0, symmetric, first // COLUMNS * dim)
        transition_product(view(product, first * STRIDE, transposed, 0), matrix, right, columns, dim)
    for first in range(0, dim, COLUMNS):
        columns = min(COLUMNS, dim - first)
        right = view(product, first * dim * LANES, panel, 0)
        transition_product(view(cov, place(0, first), panel, 0), matrix, right, columns, first + columns)
    # only units in new coordinates have noise in common, and they are in the first panels
    common = -(-reach // COLUMNS) * COLUMNS
    for at in range(0, place(0, common), LANES):
        store(cov, at, add(load(cov, at), load_broadcast(process, at // LANES)))
    for k in range(common, dim):
        at = place(k, k)
        store(cov, at, add(load(cov, at), load_broadcast(process, at // LANES)))
    transition_product(view(product, 0, vector, 0), matrix, view(mean, 0, vector, 0), 1, dim)
    for k in range(dim):
        store(mean, k * LANES, add(load(product, k * LANES), load_broadcast(h, bias + k)))


@kernel
def condition(mean, cov, first, values, variances, drawn, work, loglik, loglik_at):
    """Condition N(m, P) on y_n = z_{first+n} + N(0, variances_n), n = 0, 1, ..., in place: the Kalman update.

    One coordinate at a time, with s = P_kk + r and the row p = P_k: m += p (y - m_k) / s and P -= p p^T / s,
    except that the row and column of k itself become p r / s, which is the same without the cancellation. A
    coordinate that is NaN in the first lane was not observed and is passed over.

    With ``drawn``, ``values (n, LANES)`` holds standard normal numbers on entry and y on exit: each y_n is
    drawn from its predictive distribution given those before it, m_k + sqrt(s) * values_n, which is drawing y
    jointly. Without, the lanes from ``loglik_at`` on of ``loglik`` receive log p(y), NaN where s is not
    positive.
    """
    rows, unit = work.rows, work.unit
    count, row, zero = values.shape[0], mean.shape[0], broadcast(0.0)
    dim = row // LANES
    for n in range(count):
        load_cov_row(cov, first + n, dim, rows, n * row)
    if not drawn:
        store(loglik, loglik_at, zero)
    for n in range(count):
        k, at = first + n, n * row
        if not drawn and math.isnan(values[n, 0]):
            for i in range(0, row, LANES):
                store(unit, at + i, zero)
            continue
        noise = load_broadcast(variances, n)
        s, now = add(load(rows, at + k * LANES), noise), load(mean, k * LANES)
        scale = sqrt(maximum(s, zero))
        inverse = div(broadcast(1.0), scale)
        if drawn:
            # nothing to learn where rounding has used up the variance of a coordinate without noise
            inverse = where_greater(scale, zero, inverse)
            innovation = mul(scale, load(values, n * LANES))
            store(values, n * LANES, add(now, innovation))
        else:
            innovation = fma(broadcast(-1.0), now, load(values, n * LANES))
            store(unit, at, s)
            for lane in range(LANES):
                loglik[loglik_at + lane] -= 0.5 * math.log(2.0 * math.pi * unit[at + lane])
        gain, kept = mul(innovation, inverse), mul(noise, inverse)
        if not drawn:
            square = mul(gain, gain)
            store(loglik, loglik_at, fma(broadcast(-0.5), square, load(loglik, loglik_at)))
        for i in range(0, row, LANES):
            p = mul(load(rows, at + i), inverse)
            store(unit, at + i, p)
            store(mean, i, fma(p, gain, load(mean, i)))
            store(rows, at + i, mul(p, kept))
        for m in range(count):
            if m != n:
                other = m * row
                factor = mul(broadcast(-1.0), load(unit, at + (first + m) * LANES))
                for i in range(0, row, LANES):
                    store(rows, other + i, fma(factor, load(unit, at + i), load(rows, other + i)))
                store(rows, other + k * LANES, load(rows, at + (first + m) * LANES))
    downdate(cov, dim, unit, count)
    for n in range(count):
        store_cov_row(cov, first + n, dim, rows, n * row)
    mirror_blocks(cov, dim)
