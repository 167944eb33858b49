"""Teacher forcing of the shallow PLRNN: the forced rollout and its adjoint.

Layout. There are few latent units and many hidden ones, so the sequences of a batch go side by side, one per
lane: states are ``(time, M, width)``, where ``width`` is the batch rounded up to whole registers. What is
left over repeats the last sequence and has no error. Products go in tiles (`lanes`), whose rows are hidden or
latent units and whose columns are sequences: four rows of two vectors, or eight of one. Weights have zeros
after their last row, up to whole tiles (`fold`). Hidden units are computed again on the way back: only
states are kept. The parameters are one vector ``theta
= [A, W1, W2, h1, h2, C, E]``, matrices row-major; external inputs are ``pushes (time, K, width)``, K = 0
for none. ``gaps`` is as in `rollout`.
"""

from __future__ import annotations

import math

import numpy as np

from palrnn.engine.kernel import kernel
from palrnn.engine.lanes import (
    EIGHT,
    add,
    broadcast,
    flush_small,
    fma,
    fma_column,
    fma_lanes,
    lane_count,
    load,
    load_broadcast,
    load_span,
    maximum,
    pair_rows,
    store,
    store_tile,
    tile,
    twice,
    where_greater,
)
from palrnn.forcing.kernels.rollout import predictions, sum_of_squares, whole_lanes


@kernel
def parts(theta, dim, hidden, count, seen):
    """Views of ``theta``: A (M,), W1 (M, H), W2 (H, M), h1 (M,), h2 (H,), C (M, K), E (M, N)."""
    a, b = dim, dim + dim * hidden
    c = b + dim * hidden
    d, e = c + dim, c + dim + hidden
    f = e + dim * count
    W1, W2 = theta[a:b].reshape((dim, hidden)), theta[b:c].reshape((hidden, dim))
    C, E = theta[e:f].reshape((dim, count)), theta[f:].reshape((dim, seen))
    return theta[:a], W1, W2, theta[c:d], theta[d:e], C, E


@kernel
def read_inputs(series, starts, noise, tau, inputs):
    """The observations that enter the network: ``inputs (K, N, width)`` at steps 0, tau, 2 tau, ...

    ``noise (K, B, N)`` is added (K = 0: none).
    """
    batch = starts.shape[0]
    for k in range(inputs.shape[0]):
        for n in range(inputs.shape[1]):
            for b in range(inputs.shape[2]):
                each = min(b, batch - 1)
                inputs[k, n, b] = series[starts[each] + k * tau, n]
                if noise.shape[0] > 0:
                    inputs[k, n, b] += noise[k, each, n]


@kernel
def read_drive(drive, starts, pushes):
    """The external inputs of each step, ``pushes (T, K, width)``, from ``drive (rows, K)``."""
    batch = starts.shape[0]
    for t in range(pushes.shape[0]):
        for k in range(pushes.shape[1]):
            for b in range(pushes.shape[2]):
                pushes[t, k, b] = drive[starts[min(b, batch - 1)] + t, k]


@kernel
def fold(theta, dim, hidden, count, seen, weights):
    """Copy the weights into arrays whose rows fill whole tiles, with zeros after the last one.

    ``weights`` are W2 (H', M), h2 (H',), W1 (M', H), W1^T (H', M) and W2^T (M', H).
    """
    into, bias, out, back, through = weights
    _, W1, W2, _, h2, _, _ = parts(theta, dim, hidden, count, seen)
    zero = theta.dtype.type(0.0)
    for k in range(into.shape[0]):
        bias[k] = h2[k] if k < hidden else zero
        for j in range(dim):
            into[k, j] = W2[k, j] if k < hidden else zero
            back[k, j] = W1[j, k] if k < hidden else zero
    for i in range(out.shape[0]):
        for k in range(hidden):
            out[i, k] = W1[i, k] if i < dim else zero
            through[i, k] = W2[k, i] if i < dim else zero


@kernel
def _inputs_of(k, now, zero, into, states):
    """The tile W2 z_t of hidden units from ``k`` on, of the sequences at ``now`` in ``states``."""
    _, dim, width = states.shape
    u = tile(zero)
    for j in range(dim):
        u = fma_column(into, k * dim + j, dim, load_span(states, now + j * width, zero), u)
    return u


@kernel
def _product(c, rows, zero, matrix, y, dim, out):
    """out (M', width) = matrix (M', H) y (H', width), for the columns of a span from ``c`` on."""
    hidden, width = matrix.shape[1], y.shape[1]
    for i in range(0, dim, rows):
        total = tile(zero)
        for k in range(hidden):
            total = fma_column(matrix, i * hidden + k, hidden, load_span(y, k * width + c, zero), total)
        store_tile(out, i * width + c, width, zero, total)


@kernel
def _advance(t, c, rows, zero, clipped, hidden, A, h1, C, pushes, weights, y, sums, states):
    """z_{t+1} = A z_t + W1 y + h1 + C s_t, y = relu(W2 z_t + h2), less relu(W2 z_t) where ``clipped``.

    Of the sequences in one span, from column ``c`` on: ``zero`` has its shape, ``rows`` those of its tiles.
    ``y (2, H', width)`` and ``sums (M', width)`` are scratch.
    """
    _, dim, width = states.shape
    into, bias, out, _, _ = weights
    now, after, count, number = t * dim * width + c, (t + 1) * dim * width + c, C.shape[1], states.dtype.type
    one, minus = add(zero, broadcast(number(1.0))), broadcast(number(-1.0))
    for k in range(0, hidden, rows):
        u = _inputs_of(k, now, zero, into, states)
        value = maximum(fma_column(bias, k, 1, one, u), zero)
        if clipped:
            value = fma(minus, maximum(u, zero), value)
        store_tile(y, k * width + c, width, zero, value)
    _product(c, rows, zero, out, y[0], dim, sums)
    for i in range(dim):
        total = add(load_span(sums, i * width + c, zero), load_broadcast(h1, i))
        total = fma(load_broadcast(A, i), load_span(states, now + i * width, zero), total)
        for k in range(count):
            push = load_span(pushes, (t * count + k) * width + c, zero)
            total = fma(load_broadcast(C, i * count + k), push, total)
        store(states, after + i * width, total)


@kernel
def forced_rollout(theta, hidden, clipped, series, gaps, starts, tau, alpha, room):
    """Run the forced rollout (eqs. itf_rollout, gtf_mix) and return its loss (eq. tf_loss).

    Fills ``states (T, M, width)`` with the states that are advanced, and ``errors (T, N, width)`` with B z_t
    - x_t before forcing, 0 where nothing was seen and for what only fills a register.
    """
    inputs, pushes, states, _, errors, weights, y, sums, _ = room
    length, dim, width = states.shape
    batch, seen = starts.shape[0], series.shape[1]
    A, _, _, h1, _, C, E = parts(theta, dim, hidden, pushes.shape[1], seen)
    keep, zero, lanes = theta.dtype.type(1.0) - alpha, broadcast(theta.dtype.type(0.0)), lane_count(states)
    pair, paired, rows = twice(zero), width // (2 * lanes) * (2 * lanes), pair_rows(states)
    for b in range(width):
        for i in range(dim):
            states[0, i, b] = inputs[0, i, b] if i < seen else theta.dtype.type(0.0)
        for i in range(seen, dim):
            for n in range(seen):
                states[0, i, b] += E[i, n] * inputs[0, n, b]
    for t in range(1, length):
        for c in range(0, paired, 2 * lanes):
            _advance(t - 1, c, rows, pair, clipped, hidden, A, h1, C, pushes, weights, y, sums, states)
        for c in range(paired, width, lanes):
            _advance(t - 1, c, EIGHT, zero, clipped, hidden, A, h1, C, pushes, weights, y, sums, states)
        for n in range(seen):
            for b in range(batch):
                missing = gaps is not None and math.isnan(series[starts[b] + t, n])
                errors[t, n, b] = 0.0 if missing else states[t, n, b] - series[starts[b] + t, n]
        if t % tau == 0:
            for n in range(seen):
                for b in range(width):
                    if gaps is None or not math.isnan(inputs[t // tau, n, b]):
                        states[t, n, b] = keep * states[t, n, b] + alpha * inputs[t // tau, n, b]
    total = sum_of_squares(errors.reshape(errors.size))
    if gaps is None:
        return total / ((length - 1) * batch)
    return total / predictions(series, starts, length)


@kernel
def _retreat(t, c, rows, zero, clipped, hidden, A, pushes, weights, tiny, scratch, paths):
    """lambda_t = (A + W2^T D W1^T) lambda_{t+1}, before forcing and errors, and the sums of the gradient.

    Of the sequences in one span, as in `_advance`. ``paths`` are states and ``adjoint (T, M, width)``, which
    holds lambda_{t+1} and receives lambda_t; the last of ``scratch``, ``gathered (H (2 M + 1) + 2 M + M K,
    lanes)``, are the sums of W1 and W2, both (H, M), then h2, A, h1 and C, lane by lane.
    """
    (y, sums, gathered), (states, adjoint) = scratch, paths
    _, dim, width = states.shape
    into, bias, _, back, through = weights
    lanes, number, count = lane_count(states), states.dtype.type, pushes.shape[1]
    one, minus, least = add(zero, broadcast(number(1.0))), broadcast(number(-1.0)), broadcast(tiny)
    now, after = t * dim * width + c, (t + 1) * dim * width + c
    in_W2, in_h2 = hidden * dim * lanes, 2 * hidden * dim * lanes
    in_A = in_h2 + hidden * lanes
    in_h1 = in_A + dim * lanes
    in_C, size = in_h1 + dim * lanes, y.shape[1] * width
    for k in range(0, hidden, rows):
        at, u = k * width + c, _inputs_of(k, now, zero, into, states)
        along = _inputs_of(k, after, zero, back, adjoint)
        shifted = fma_column(bias, k, 1, one, u)
        opened, value = where_greater(shifted, zero, along), maximum(shifted, zero)
        store_tile(y, 2 * size + at, width, zero, opened)
        if clipped:
            opened = fma(minus, where_greater(u, zero, along), opened)
            value = fma(minus, maximum(u, zero), value)
        store_tile(y, at, width, zero, opened)
        store_tile(y, size + at, width, zero, value)
    for k in range(hidden):
        at = k * width + c
        slope, value = load_span(y, at, zero), load_span(y, size + at, zero)
        place = in_h2 + k * lanes
        store(gathered, place, fma_lanes(load_span(y, 2 * size + at, zero), one, load(gathered, place)))
        for j in range(dim):
            place = (k * dim + j) * lanes
            ahead = load_span(adjoint, after + j * width, zero)
            store(gathered, place, fma_lanes(value, ahead, load(gathered, place)))
            place += in_W2
            state = load_span(states, now + j * width, zero)
            store(gathered, place, fma_lanes(slope, state, load(gathered, place)))
    _product(c, rows, zero, through, y[0], dim, sums)
    for j in range(dim):
        ahead, state = load_span(adjoint, after + j * width, zero), load_span(states, now + j * width, zero)
        place = j * lanes
        store(gathered, in_A + place, fma_lanes(ahead, state, load(gathered, in_A + place)))
        store(gathered, in_h1 + place, fma_lanes(ahead, one, load(gathered, in_h1 + place)))
        for k in range(count):
            place = in_C + (j * count + k) * lanes
            push = load_span(pushes, (t * count + k) * width + c, zero)
            store(gathered, place, fma_lanes(ahead, push, load(gathered, place)))
        total = fma(load_broadcast(A, j), ahead, load_span(sums, j * width + c, zero))
        store(adjoint, now + j * width, flush_small(total, least))


@kernel
def forced_adjoint(theta, hidden, clipped, batch, gaps, weight, tau, alpha, tiny, room, gradient):
    """The gradient of the loss (eq. tf_loss) along a forced rollout, into ``gradient`` (laid out as theta).

    With lambda_t = dL/dz_t before forcing, e_t = 2 (B z_t - x_t) / ((T - 1) B), and D the slopes of the
    hidden units, backwards in time,

        lambda_t = F_t (A + W2^T D W1^T) lambda_{t+1} + B^T e_t,   F_t = I, with 1 - alpha where forced,
        dW1 = sum_t lambda_{t+1} y_t^T,   dW2 = sum_t (D W1^T lambda_{t+1}) z_t^T,
        dA = sum_t lambda_{t+1} z_t,   dh1 = sum_t lambda_{t+1},   dh2 = sum_t D W1^T lambda_{t+1},
        dC = sum_t lambda_{t+1} s_t^T.

    With ``gaps``, (T - 1) B is the number ``weight`` of `predictions` instead, and F_t is I where nothing was
    seen.
    """
    inputs, pushes, states, adjoint, errors, weights, y, sums, gathered = room
    length, dim, width = states.shape
    seen, lanes, number = errors.shape[1], lane_count(states), states.dtype.type
    keep, scale = number(1.0) - alpha, number(2.0 / ((length - 1) * batch))
    if gaps is not None:
        scale = number(2.0 / weight)
    count = pushes.shape[1]
    A, _, _, _, _, _, _ = parts(theta, dim, hidden, count, seen)
    zero = broadcast(number(0.0))
    pair, paired, rows = twice(zero), width // (2 * lanes) * (2 * lanes), pair_rows(states)
    gathered[:] = number(0.0)
    # number by number: an assignment of arrays takes seconds to compile, for the words of its error
    for i in range(dim):
        for b in range(width):
            adjoint[length - 1, i, b] = scale * errors[length - 1, i, b] if i < seen else number(0.0)
    scratch, paths = (y, sums, gathered), (states, adjoint)
    for t in range(length - 2, -1, -1):
        for c in range(0, paired, 2 * lanes):
            _retreat(t, c, rows, pair, clipped, hidden, A, pushes, weights, tiny, scratch, paths)
        for c in range(paired, width, lanes):
            _retreat(t, c, EIGHT, zero, clipped, hidden, A, pushes, weights, tiny, scratch, paths)
        if t > 0:
            if t % tau == 0:
                for n in range(seen):
                    for b in range(width):
                        if gaps is None or not math.isnan(inputs[t // tau, n, b]):
                            adjoint[t, n, b] *= keep
            for n in range(seen):
                for b in range(width):
                    adjoint[t, n, b] += scale * errors[t, n, b]
    dA, dW1, dW2, dh1, dh2, dC, dE = parts(gradient, dim, hidden, count, seen)
    gradient[:] = number(0.0)
    for lane in range(lanes):
        for k in range(hidden):
            for j in range(dim):
                dW1[j, k] += gathered[k * dim + j, lane]
                dW2[k, j] += gathered[(hidden + k) * dim + j, lane]
            dh2[k] += gathered[2 * hidden * dim + k, lane]
        for j in range(dim):
            dA[j] += gathered[(2 * dim + 1) * hidden + j, lane]
            dh1[j] += gathered[(2 * dim + 1) * hidden + dim + j, lane]
            for k in range(count):
                dC[j, k] += gathered[(2 * dim + 1) * hidden + 2 * dim + j * count + k, lane]
    for i in range(seen, dim):
        for n in range(seen):
            for b in range(batch):
                dE[i, n] += adjoint[0, i, b] * inputs[0, n, b]


def workspace(theta, dim, hidden, seen, count, batch, length, tau):
    """Room for a batch: inputs, pushes, states, adjoint, errors, weights, hidden units, two kinds of sums."""
    kind, lanes, width = theta.dtype, whole_lanes(1, theta), whole_lanes(batch, theta)
    units, gates = (EIGHT * -(-number // EIGHT) for number in (dim, hidden))
    weights = (
        np.empty((gates, dim), kind),
        np.empty(gates, kind),
        np.empty((units, hidden), kind),
        np.empty((gates, dim), kind),
        np.empty((units, hidden), kind),
    )
    return (
        np.empty(((length - 1) // tau + 1, seen, width), kind),
        np.empty((length, count, width), kind),
        np.empty((length, dim, width), kind),
        np.empty((length, dim, width), kind),
        np.zeros((length, seen, width), kind),
        weights,
        np.empty((3, gates, width), kind),
        np.empty((units, width), kind),
        np.empty(((2 * dim + 1) * hidden + 2 * dim + dim * count, lanes), kind),
    )


@kernel
def evaluate(theta, hidden, clipped, series, gaps, drive, starts, noise, tau, alpha, tiny, room, gradient):
    """Return the loss of one batch and fill ``gradient``, unless that has length 0."""
    inputs, pushes, states, _, _, weights, _, _, _ = room
    fold(theta, states.shape[1], hidden, drive.shape[1], series.shape[1], weights)
    read_inputs(series, starts, noise, tau, inputs)
    read_drive(drive, starts, pushes)
    loss = forced_rollout(theta, hidden, clipped, series, gaps, starts, tau, alpha, room)
    if gradient.shape[0] > 0:
        weight = 0.0 if gaps is None else predictions(series, starts, states.shape[0])
        batch = starts.shape[0]
        forced_adjoint(theta, hidden, clipped, batch, gaps, weight, tau, alpha, tiny, room, gradient)
    return loss
