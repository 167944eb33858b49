"""Steps of all sequences forwards and backwards: a small product with its aftermath, in one loop.

Rows are sequences and columns are units, padded with zeros to ``width``, a whole number of lanes; the first
``dim`` columns count. Eight rows at a time go through the columns in tiles (`lanes`), four rows of two
vectors, and eight of the last one where their number is odd. Rows that are left over go one by one. External
inputs stand in the columns after ``dim``, so that [W C] [phi*(z); s] is one product. Per column, ``slope`` is
A on gated units and 0 on free ones, and ``low`` is 0 on gated and -inf on free ones: phi*(z) = max(z, low).
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
    load,
    load_broadcast,
    load_pair,
    load_span,
    load_tile,
    maximum,
    mul,
    store,
    store_tile,
    tile,
    where_greater,
)


@kernel
def _advance_tile(at, c, old, new, z, inner, matrix, bias, slope, low, phi, states):
    """A tile of a step (see `advance`), ``at`` elements after ``old``, ``new`` and ``z``.

    These are where phi*(z_t), phi*(z_{t+1}) and z_t begin; ``c`` is the first column. ``bias``, ``slope`` and
    ``low`` are spans.
    """
    _, batch, width = states.shape
    sums = tile(bias)
    for k in range(inner):
        sums = fma_column(phi, old + at - c + k, width, load_span(matrix, k * width + c, bias), sums)
    value = fma(slope, load_tile(states, z + at, width, bias), sums)
    store_tile(states, z + batch * width + at, width, bias, value)
    store_tile(phi, new + at, width, bias, maximum(value, low))


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
    inner, paired = dim + drive.shape[1], width // (2 * lanes) * (2 * lanes)
    for t in range(begin, end):
        old, new, z = (t % 2) * size, ((t + 1) % 2) * size, t * size
        for row in range(0, eights, 8):
            for c in range(0, paired, 2 * lanes):
                b, s, l = load_pair(bias, c), load_pair(slope, c), load_pair(low, c)
                for half in range(row, row + 8, 4):
                    at = half * width + c
                    _advance_tile(at, c, old, new, z, inner, matrix, b, s, l, phi, states)
            for c in range(paired, width, lanes):
                at, b, s, l = row * width + c, load(bias, c), load(slope, c), load(low, c)
                _advance_tile(at, c, old, new, z, inner, matrix, b, s, l, phi, states)
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
def _retreat_tile(at, c, now, after, dim, matrix, nothing, slope, low, tiny, states, adjoint, dh, dA):
    """A tile of an adjoint step without its errors (see `retreat`), ``at`` elements after ``now``, ``after``.

    These are where t and t + 1 begin; ``c`` is the first column. ``nothing``, ..., ``tiny`` are spans.
    """
    width, sums = states.shape[2], tile(nothing)
    for k in range(dim):
        sums = fma_column(adjoint, after + at - c + k, width, load_span(matrix, k * width + c, low), sums)
    ahead, state = load_tile(adjoint, after + at, width, low), load_tile(states, now + at, width, low)
    through = fma(slope, ahead, where_greater(state, low, sums))
    store_tile(adjoint, now + at, width, low, flush_small(through, tiny))
    store_tile(states, now + at, width, low, maximum(state, low))
    store(dh, c, add_rows(load_span(dh, c, low), ahead))
    store(dA, c, add_rows(load_span(dA, c, low), mul(ahead, state)))


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
    paired = width // (2 * lanes) * (2 * lanes)
    for t in range(end - 1, begin - 1, -1):
        now, after = t * size, (t + 1) * size
        for row in range(0, eights, 8):
            for c in range(0, paired, 2 * lanes):
                o, s = load_pair(nothing, c), load_pair(slope, c)
                l, e = load_pair(low, c), load_pair(tiny, c)
                for half in range(row, row + 8, 4):
                    at = half * width + c
                    _retreat_tile(at, c, now, after, dim, matrix, o, s, l, e, states, adjoint, dh, dA)
            for c in range(paired, width, lanes):
                o, s, l, e = load(nothing, c), load(slope, c), load(low, c), load(tiny, c)
                at = row * width + c
                _retreat_tile(at, c, now, after, dim, matrix, o, s, l, e, states, adjoint, dh, dA)
        for row in range(eights, batch):
            for c in range(0, width, lanes):
                total, at = load(nothing, c), row * width + c
                for k in range(dim):
                    total = fma(
                        load_broadcast(adjoint, after + row * width + k), load(matrix, k * width + c), total
                    )
                ahead, state, l = load(adjoint, after + at), load(states, now + at), load(low, c)
                through = fma(load(slope, c), ahead, where_greater(state, l, total))
                store(adjoint, now + at, flush_small(through, load(tiny, c)))
                store(states, now + at, maximum(state, l))
                store(dh, c, add(load(dh, c), ahead))
                store(dA, c, fma(ahead, state, load(dA, c)))
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


@kernel
def _outer_tile(at, i, c, later, earlier, rows, nothing, adjoint, states, out):
    """A tile of `add_outer`: rows of ``out`` from ``i``, columns from ``c`` on; ``at`` is where it begins."""
    width, sums = out.shape[0], tile(nothing)
    for k in range(0, rows * width, width):
        sums = fma_column(adjoint, later + k + i, 1, load_span(states, earlier + k + c, nothing), sums)
    store_tile(out, at, width, nothing, add(load_tile(out, at, width, nothing), sums))


@kernel
def add_outer(begin, end, dim, nothing, adjoint, states, out):
    """out += sum_t lambda_{t+1}^T phi*(z_t) for t = begin .. end - 1, of all sequences.

    ``adjoint`` and ``states (T, B, width)`` hold lambda and phi*(z), ``out (width, width)`` the sums, whose
    rows after ``dim`` are of no use; ``nothing`` is zeros (width,). BLAS takes longer for so narrow matrices.
    """
    _, batch, width = states.shape
    lanes, rows = lane_count(states), (end - begin) * batch
    later, earlier = (begin + 1) * batch * width, begin * batch * width
    paired = width // (2 * lanes) * (2 * lanes)
    for c in range(0, paired, 2 * lanes):
        for i in range(0, dim, 4):
            o = load_pair(nothing, c)
            _outer_tile(i * width + c, i, c, later, earlier, rows, o, adjoint, states, out)
    for c in range(paired, width, lanes):
        for i in range(0, dim, 8):
            o = load(nothing, c)
            _outer_tile(i * width + c, i, c, later, earlier, rows, o, adjoint, states, out)
