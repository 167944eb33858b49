"""Steps of all sequences forwards and backwards: a small product with its aftermath, in one loop.

Rows are sequences and columns are units, and both fill whole tiles of pairs (`lanes`):
columns after the units and the external inputs are zeros, rows after the last sequence repeat it. External
inputs stand in the columns after ``dim``, so that [W C] [phi*(z); s] is one product. Per column, ``wide (3,
width)`` holds h, ``slope`` (A on gated units, 0 on free ones) and ``low`` (0 on gated, -inf on free ones):
phi*(z) = max(z, low).
"""

from __future__ import annotations

import math

from palrnn.engine.kernel import kernel
from palrnn.engine.lanes import (
    add,
    add_rows,
    flush_small,
    fma,
    fma_column,
    lane_count,
    load_pair,
    load_tile,
    maximum,
    mul,
    pair_rows,
    store,
    store_tile,
    tile,
    where_greater,
)


@kernel
def advance(begin, end, dim, matrix, wide, drive, starts, phi, states):
    """z_{t+1} = phi*(z_t) W'^T + s_t C^T + h + slope z_t, for t = begin .. end - 1.

    ``states (T, rows, width)`` holds z_begin and receives the others; ``phi (2, rows, width)`` holds
    phi*(z_t) of the latest two, by the parity of t. ``matrix (width, width)`` = [W C]'^T. The inputs of
    sequence b are rows ``starts[b]``, ... of ``drive (., K)``; they are put beside each state.
    """
    _, rows, width = states.shape
    size, pair, inner = rows * width, 2 * lane_count(states), dim + drive.shape[1]
    below = pair_rows(states) * width
    for t in range(begin, end):
        old, new, z = (t % 2) * size, ((t + 1) % 2) * size, t * size
        for c in range(0, width, pair):
            bias, slope = load_pair(wide, c), load_pair(wide, width + c)
            low = load_pair(wide, 2 * width + c)
            for row in range(0, size, below):
                sums = tile(bias)
                for k in range(inner):
                    sums = fma_column(phi, old + row + k, width, load_pair(matrix, k * width + c), sums)
                value = fma(slope, load_tile(states, z + row + c, width, bias), sums)
                store_tile(states, z + size + row + c, width, bias, value)
                store_tile(phi, new + row + c, width, bias, maximum(value, low))
        for k in range(dim, inner):
            for row in range(rows):
                value = drive[starts[min(row, starts.shape[0] - 1)] + t + 1, k - dim]
                states[t + 1, row, k] = value
                phi[(t + 1) % 2, row, k] = value


@kernel
def retreat(begin, end, dim, tau, keep, gaps, inputs, scale, matrix, wide, errors, states, adjoint, sums):
    """lambda_t = F_t (D(c_t) lambda_{t+1} W' + slope lambda_{t+1}) + B^T e_t, for t = end - 1 .. begin.

    F_t is ``keep`` on observed units at forcing times and 1 elsewhere, also where ``inputs (K, rows, N)``
    have a gap (NaN; ``gaps`` is None if there are none); e_t = ``scale`` times ``errors[t]`` ``(B, N)``, and
    0 for t = 0. ``sums (4, width)`` are zeros, the number below which entries of lambda_t become 0 before e_t
    is added, and the sums of lambda_{t+1} and of lambda_{t+1} z_t, to which this adds. On the way, z_t in
    ``states (T, rows, width)`` becomes phi*(z_t). ``adjoint (T, rows, width)`` holds lambda_end and receives
    the others; ``matrix`` is W' ``(width, width)``.
    """
    _, rows, width = states.shape
    size, pair, (_, batch, seen) = rows * width, 2 * lane_count(states), errors.shape
    below = pair_rows(states) * width
    for t in range(end - 1, begin - 1, -1):
        now, after = t * size, (t + 1) * size
        for c in range(0, width, pair):
            slope, low = load_pair(wide, width + c), load_pair(wide, 2 * width + c)
            nothing, least = load_pair(sums, c), load_pair(sums, width + c)
            dh, dA = load_pair(sums, 2 * width + c), load_pair(sums, 3 * width + c)
            for row in range(0, size, below):
                total = tile(nothing)
                for k in range(dim):
                    total = fma_column(
                        adjoint, after + row + k, width, load_pair(matrix, k * width + c), total
                    )
                ahead = load_tile(adjoint, after + row + c, width, low)
                state = load_tile(states, now + row + c, width, low)
                through = fma(slope, ahead, where_greater(state, low, total))
                store_tile(adjoint, now + row + c, width, low, flush_small(through, least))
                store_tile(states, now + row + c, width, low, maximum(state, low))
                dh, dA = add_rows(dh, ahead), add_rows(dA, mul(ahead, state))
            store(sums, 2 * width + c, dh)
            store(sums, 3 * width + c, dA)
        if t > 0:
            for b in range(batch):
                for n in range(seen):
                    if t % tau == 0 and (gaps is None or not math.isnan(inputs[t // tau, b, n])):
                        adjoint[t, b, n] *= keep
                    adjoint[t, b, n] += scale * errors[t, b, n]


@kernel
def add_outer(begin, end, dim, nothing, adjoint, states, out):
    """out += sum_t lambda_{t+1}^T phi*(z_t) for t = begin .. end - 1, of all sequences.

    ``adjoint`` and ``states (T, rows, width)`` hold lambda and phi*(z), ``out (width, width)`` the sums,
    whose rows after ``dim`` are of no use; ``nothing`` begins with ``width`` zeros. BLAS takes longer for so
    narrow matrices.
    """
    _, rows, width = states.shape
    later, earlier, size = (begin + 1) * rows * width, begin * rows * width, (end - begin) * rows * width
    for c in range(0, width, 2 * lane_count(states)):
        for i in range(0, dim, pair_rows(states)):
            zero, at = load_pair(nothing, c), i * width + c
            sums = tile(zero)
            for k in range(0, size, width):
                sums = fma_column(adjoint, later + k + i, 1, load_pair(states, earlier + k + c), sums)
            store_tile(out, at, width, zero, add(load_tile(out, at, width, zero), sums))
