"""A bundle of Gaussian beliefs N(m, P) side by side, one per lane: predicting and conditioning them.

Every entry of a mean or covariance is a vector here, with one number per particle, and every step is the same
for all particles of the bundle. What differs between them, the gates, chooses lanes. Coordinates are those of
`BundleSystem`; a covariance lies in panels (see `tiles`), and both are flat.
"""

from __future__ import annotations

import math

from palrnn.engine.kernel import kernel
from palrnn.engine.lanes import (
    at_least,
    everywhere,
    fma,
    over,
    plus,
    put,
    repeated,
    root,
    take,
    times,
    where_above,
)
from palrnn.inference.kernels.tiles import COLUMNS, LANES, STRIDE, downdate, transition_product


@kernel
def place(i, j):
    """Where entry (i, j), i <= j, of a covariance lies."""
    panel = j // COLUMNS
    return (COLUMNS * panel * (panel + 1) // 2 + i) * STRIDE + j % COLUMNS * LANES


@kernel
def complete(cov, dim):
    """Copy the upper triangles of the blocks on the diagonal to the lower ones."""
    for first in range(0, dim, COLUMNS):
        block = place(first, first)
        for i in range(min(COLUMNS, dim - first)):
            for j in range(i):
                put(cov, block + i * STRIDE + j * LANES, take(cov, block + j * STRIDE + i * LANES))


@kernel
def take_row(cov, k, dim, row, at):
    """Copy row k of the symmetric matrix ``cov`` to ``row`` from ``at`` on."""
    above = place(0, k)
    for i in range(k):
        put(row, at + i * LANES, take(cov, above + i * STRIDE))
    for i in range(k, dim):
        put(row, at + i * LANES, take(cov, place(k, i)))


@kernel
def put_row(cov, k, dim, row, at):
    """Write ``row`` from ``at`` on over row and column k of the symmetric matrix ``cov``."""
    above = place(0, k)
    for i in range(k):
        put(cov, above + i * STRIDE, take(row, at + i * LANES))
    for i in range(k, dim):
        put(cov, place(k, i), take(row, at + i * LANES))


@kernel
def draw_marginals(mean, cov, first, values, variances):
    """y_n = m_k + sqrt(P_kk + variances_n) e_n, k = first + n; ``values (n, LANES)`` holds e, then y."""
    for n in range(values.shape[0]):
        k, at = first + n, n * LANES
        variance = plus(take(cov, place(k, k)), repeated(variances, n))
        put(values, at, fma(root(variance), take(values, at), take(mean, k * LANES)))


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
def predict(system, mean, cov, room):
    """m <- J m + h,  P <- J P J^T + Q, in place, J = A + W D(c) (eq. pwa), with c = 1{``room.gates`` > 0}.

    P is symmetric, so that J P may be written down transposed: as the right factor of J (J P)^T.
    """
    # taken out of their tuples once: each time costs as much as a small product
    J, own, mate, partner, hidden, reach = (
        system.J, system.own, system.mate, system.partner, system.hidden, system.reach
    )  # fmt: skip
    process, h, product, gates, active = system.process, system.h, room.product, room.gates, room.active
    lines, units, columns, near, bases, steps = (
        room.lines, room.units, room.columns, room.near, room.bases, room.steps
    )  # fmt: skip
    dim = J.shape[1]
    count = open_units(gates, system.gate.shape[0], active)
    for first in range(0, dim, COLUMNS):
        transition_product(
            product, first * STRIDE, columns, STRIDE, J, own, mate, partner, hidden, reach, gates, active,
            count, cov, 0, bases, steps, first // COLUMNS * dim, min(COLUMNS, dim - first), dim,
        )  # fmt: skip
    for first in range(0, dim, COLUMNS):
        transition_product(
            cov, place(0, first), lines, LANES, J, own, mate, partner, hidden, reach, gates, active, count,
            product, first * dim * LANES, lines, near, 0, min(COLUMNS, dim - first),
            min(dim, first + COLUMNS),
        )  # fmt: skip
    # only units in new coordinates have noise in common, and they are in the first panels
    common = -(-reach // COLUMNS) * COLUMNS
    for at in range(0, place(0, common), LANES):
        put(cov, at, plus(take(cov, at), repeated(process, at // LANES)))
    for k in range(common, dim):
        at = place(k, k)
        put(cov, at, plus(take(cov, at), repeated(process, at // LANES)))
    transition_product(
        product, 0, units, LANES, J, own, mate, partner, hidden, reach, gates, active, count, mean, 0, units,
        near, 0, 1, dim,
    )  # fmt: skip
    for k in range(dim):
        put(mean, k * LANES, plus(take(product, k * LANES), repeated(h, k)))


@kernel
def condition(mean, cov, first, values, variances, drawn, room, loglik, loglik_at):
    """Condition N(m, P) on y_n = z_{first+n} + N(0, variances_n), n = 0, 1, ..., in place.

    One coordinate at a time, with s = P_kk + r and the row p = P_k: m += p (y - m_k) / s and P -= p p^T / s,
    except that the row and column of k itself become p r / s, which is the same without the cancellation. A
    coordinate that is NaN in the first lane was not observed and is passed over.

    With ``drawn``, ``values (n, LANES)`` holds standard normal numbers on entry and y on exit: each y_n is
    drawn from its predictive distribution given those before it, m_k + sqrt(s) * values_n, which is drawing y
    jointly. Without, the lanes from ``loglik_at`` on of ``loglik`` receive log p(y), NaN where s is not
    positive.
    """
    rows, unit = room.rows, room.unit
    count, row, zero = values.shape[0], mean.shape[0], everywhere(0.0)
    dim = row // LANES
    for n in range(count):
        take_row(cov, first + n, dim, rows, n * row)
    if not drawn:
        put(loglik, loglik_at, zero)
    for n in range(count):
        k, at = first + n, n * row
        if not drawn and math.isnan(values[n, 0]):
            for i in range(0, row, LANES):
                put(unit, at + i, zero)
            continue
        noise = repeated(variances, n)
        s, now = plus(take(rows, at + k * LANES), noise), take(mean, k * LANES)
        scale = root(at_least(s, zero))
        inverse = over(everywhere(1.0), scale)
        if drawn:
            # nothing to learn where rounding has used up the variance of a coordinate without noise
            inverse = where_above(scale, zero, inverse)
            innovation = times(scale, take(values, n * LANES))
            put(values, n * LANES, plus(now, innovation))
        else:
            innovation = fma(everywhere(-1.0), now, take(values, n * LANES))
            put(unit, at, s)
            for lane in range(LANES):
                loglik[loglik_at + lane] -= 0.5 * math.log(2.0 * math.pi * unit[at + lane])
        gain, kept = times(innovation, inverse), times(noise, inverse)
        if not drawn:
            square = times(gain, gain)
            put(loglik, loglik_at, fma(everywhere(-0.5), square, take(loglik, loglik_at)))
        for i in range(0, row, LANES):
            p = times(take(rows, at + i), inverse)
            put(unit, at + i, p)
            put(mean, i, fma(p, gain, take(mean, i)))
            put(rows, at + i, times(p, kept))
        for m in range(count):
            if m != n:
                other = m * row
                factor = times(everywhere(-1.0), take(unit, at + (first + m) * LANES))
                for i in range(0, row, LANES):
                    put(rows, other + i, fma(factor, take(unit, at + i), take(rows, other + i)))
                put(rows, other + k * LANES, take(rows, at + (first + m) * LANES))
    downdate(cov, dim, unit, count)
    for n in range(count):
        put_row(cov, first + n, dim, rows, n * row)
    complete(cov, dim)
