"""Steps of all sequences forwards and backwards: a small product with its aftermath, in one loop.

Rows are sequences and columns are units, padded with zeros to ``width``, a whole number of lanes; the first
``dim`` columns count. Eight rows at a time keep eight sums in registers while they share each row of the
matrix; rows that are left over go one by one. External inputs stand in the columns after ``dim``, so that
[W C] [phi*(z); s] is one product. Per column, ``slope`` is A on gated units and 0 on free ones,
and ``low`` is 0 on gated and -inf on free ones, so that phi*(z) = max(z, low).
"""

from __future__ import annotations

import math

from palrnn.engine.kernel import kernel
from palrnn.engine.lanes import (
    add,
    eight,
    flush_small,
    fma,
    fma_column,
    lane_count,
    load,
    load_broadcast,
    load_rows,
    maximum,
    store,
    store_rows,
    where_greater,
)


@kernel
def advance(begin, end, dim, matrix, bias, slope, low, drive, starts, phi, states):
    """z_{t+1} = phi*(z_t) W'^T + s_t C^T + h + slope z_t, for t = begin .. end - 1.

    ``states (T, B, width)`` holds z_begin and receives the others; ``phi (2, B, width)`` holds phi*(z_t) of
    the latest two, by the parity of t. ``matrix (width, width)`` = [W C]'^T; ``bias``, ``slope`` and ``low``
    are (width,). The inputs of sequence b are rows ``starts[b]``, ... of ``drive (rows, K)``; they are put
    beside each state.
    """
    _, batch, width = states.shape
    size, lanes, eights = batch * width, lane_count(states), batch // 8 * 8
    inner = dim + drive.shape[1]
    for t in range(begin, end):
        old, new, z = (t % 2) * size, ((t + 1) % 2) * size, t * size
        for row in range(0, eights, 8):
            first = row * width
            for c in range(0, width, lanes):
                sums = eight(load(bias, c))
                for k in range(inner):
                    sums = fma_column(phi, old + first + k, width, load(matrix, k * width + c), sums)
                at = first + c
                value = fma(load(slope, c), load_rows(states, z + at, width), sums)
                store_rows(states, z + size + at, width, value)
                store_rows(phi, new + at, width, maximum(value, load(low, c)))
        for row in range(eights, batch):
            for c in range(0, width, lanes):
                total, at = load(bias, c), row * width + c
                for k in range(inner):
                    total = fma(
                        load_broadcast(phi, old + row * width + k), load(matrix, k * width + c), total
                    )
                value = fma(load(slope, c), load(states, z + at), total)
                store(states, z + size + at, value)
                store(phi, new + at, maximum(value, load(low, c)))
        for k in range(dim, inner):
            for row in range(batch):
                value = drive[starts[row] + t + 1, k - dim]
                states[t + 1, row, k] = value
                phi[(t + 1) % 2, row, k] = value


@kernel
def _return(total, after, now, slope, low, tiny, states, adjoint, dh, dA):
    """lambda_t, phi*(z_t) in place of z_t, and the sums for h and A with this row added."""
    ahead, state = load(adjoint, after), load(states, now)
    store(adjoint, now, flush_small(fma(slope, ahead, where_greater(state, low, total)), tiny))
    store(states, now, maximum(state, low))
    return add(dh, ahead), fma(ahead, state, dA)


@kernel
def retreat(
    begin,
    end,
    dim,
    tau,
    keep,
    gaps,
    inputs,
    scale,
    matrix,
    nothing,
    slope,
    low,
    tiny,
    errors,
    states,
    adjoint,
    dh,
    dA,
):
    """lambda_t = F_t (D(c_t) lambda_{t+1} W' + slope lambda_{t+1}) + B^T e_t, for t = end - 1 .. begin.

    F_t is ``keep`` on observed units at forcing times and 1 elsewhere, also where ``inputs (K, B, N)`` have a
    gap (NaN; ``gaps`` is None if there are none); e_t = ``scale`` times ``errors[t]`` ``(B, N)``, and 0 for t
    = 0. Entries of lambda_t below ``tiny`` become 0, before e_t is added. On the way, z_t in ``states (T, B,
    width)`` becomes phi*(z_t), and lambda_{t+1} and lambda_{t+1} z_t are added to ``dh`` and ``dA`` (width,).
    ``adjoint (T, B, width)`` holds lambda_end and receives the others; ``matrix`` is W' ``(width, width)``,
    ``nothing`` zeros and ``tiny`` the threshold, repeated, both (width,).
    """
    _, batch, width = states.shape
    size, lanes, eights, seen = batch * width, lane_count(states), batch // 8 * 8, errors.shape[2]
    for t in range(end - 1, begin - 1, -1):
        now, after = t * size, (t + 1) * size
        for row in range(0, eights, 8):
            first = row * width
            for c in range(0, width, lanes):
                s, l, e = load(slope, c), load(low, c), load(tiny, c)
                sums = eight(load(nothing, c))
                for k in range(dim):
                    sums = fma_column(adjoint, after + first + k, width, load(matrix, k * width + c), sums)
                h, g = load(dh, c), load(dA, c)
                for r in range(8):
                    at = first + r * width + c
                    h, g = _return(sums[r], after + at, now + at, s, l, e, states, adjoint, h, g)
                store(dh, c, h)
                store(dA, c, g)
        for row in range(eights, batch):
            for c in range(0, width, lanes):
                total, at = load(nothing, c), row * width + c
                for k in range(dim):
                    total = fma(
                        load_broadcast(adjoint, after + row * width + k), load(matrix, k * width + c), total
                    )
                s, l, e, h, g = load(slope, c), load(low, c), load(tiny, c), load(dh, c), load(dA, c)
                h, g = _return(total, after + at, now + at, s, l, e, states, adjoint, h, g)
                store(dh, c, h)
                store(dA, c, g)
        if t > 0:
            if t % tau == 0:
                for b in range(batch):
                    for n in range(seen):
                        if gaps is not None and math.isnan(inputs[t // tau, b, n]):
                            continue
                        adjoint[t, b, n] *= keep
            for b in range(batch):
                for n in range(seen):
                    adjoint[t, b, n] += scale * errors[t, b, n]
