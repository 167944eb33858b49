"""Teacher forcing of the shallow PLRNN: the forced rollout and its adjoint.

Layout. There are few latent units and many hidden ones, so the sequences of a batch go side by side, one per
lane: states are ``(time, M, width)``, where ``width`` is the batch rounded up to whole registers. What is
left over repeats the last sequence and has no error. Weights are read as one number for all lanes; hidden
units are computed again on the way back, so that only states are kept. The parameters are one vector ``theta
= [A, W1, W2, h1, h2, C, E]``, matrices row-major; external inputs are ``pushes (time, K, width)``, K = 0
for none. ``gaps`` is as in `rollout`.
"""

from __future__ import annotations

import math

import numpy as np

from palrnn.engine.kernel import kernel
from palrnn.engine.lanes import (
    add,
    broadcast,
    flush_small,
    fma,
    lane_count,
    load,
    load_broadcast,
    maximum,
    store,
    where_greater,
)
from palrnn.forcing.kernels.rollout import predictions, whole_lanes


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
def _advance(t, clipped, A, W1, W2, h1, h2, C, pushes, y, states):
    """z_{t+1} = A z_t + W1 y + h1 + C s_t, y = relu(W2 z_t + h2), less relu(W2 z_t) where ``clipped``.

    ``y (H, lanes)`` is scratch.
    """
    _, dim, width = states.shape
    hidden, count, lanes, number = h2.shape[0], C.shape[1], lane_count(states), states.dtype.type
    size, zero, minus = dim * width, broadcast(number(0.0)), broadcast(number(-1.0))
    for c in range(0, width, lanes):
        now = t * size + c
        for k in range(hidden):
            u = zero
            for j in range(dim):
                u = fma(load_broadcast(W2, k * dim + j), load(states, now + j * width), u)
            value = maximum(add(u, load_broadcast(h2, k)), zero)
            if clipped:
                value = fma(minus, maximum(u, zero), value)
            store(y, k * lanes, value)
        for i in range(dim):
            total = fma(load_broadcast(A, i), load(states, now + i * width), load_broadcast(h1, i))
            for k in range(count):
                total = fma(
                    load_broadcast(C, i * count + k), load(pushes, (t * count + k) * width + c), total
                )
            other = zero  # two sums side by side wait less for each other
            for k in range(0, hidden - 1, 2):
                total = fma(load_broadcast(W1, i * hidden + k), load(y, k * lanes), total)
                other = fma(load_broadcast(W1, i * hidden + k + 1), load(y, (k + 1) * lanes), other)
            if hidden % 2 == 1:
                total = fma(load_broadcast(W1, i * hidden + hidden - 1), load(y, (hidden - 1) * lanes), total)
            store(states, now + size + i * width, add(total, other))


@kernel
def forced_rollout(theta, hidden, clipped, series, gaps, starts, tau, alpha, room):
    """Run the forced rollout (eqs. itf_rollout, gtf_mix) and return its loss (eq. tf_loss).

    Fills ``states (T, M, width)`` with the states that are advanced, and ``errors (T, N, width)`` with B z_t
    - x_t before forcing, 0 where nothing was seen and for what only fills a register.
    """
    inputs, pushes, states, _, errors, y, _ = room
    length, dim, width = states.shape
    batch, seen = starts.shape[0], series.shape[1]
    A, W1, W2, h1, h2, C, E = parts(theta, dim, hidden, pushes.shape[1], seen)
    keep = theta.dtype.type(1.0) - alpha
    for b in range(width):
        for i in range(dim):
            states[0, i, b] = inputs[0, i, b] if i < seen else theta.dtype.type(0.0)
        for i in range(seen, dim):
            for n in range(seen):
                states[0, i, b] += E[i, n] * inputs[0, n, b]
    total = 0.0
    for t in range(1, length):
        _advance(t - 1, clipped, A, W1, W2, h1, h2, C, pushes, y, states)
        for n in range(seen):
            for b in range(width):
                value, truth = states[t, n, b], series[starts[min(b, batch - 1)] + t, n]
                if gaps is not None and math.isnan(truth):
                    errors[t, n, b] = 0.0
                    continue
                errors[t, n, b] = value - truth if b < batch else 0.0
                total += np.float64(errors[t, n, b]) * np.float64(errors[t, n, b])
                if t % tau == 0:
                    states[t, n, b] = keep * value + alpha * inputs[t // tau, n, b]
    if gaps is None:
        return total / ((length - 1) * batch)
    return total / predictions(series, starts, length)


@kernel
def _retreat(t, clipped, A, W1, W2, h2, pushes, tiny, along, states, adjoint, sums):
    """lambda_t = (A + W2^T D W1^T) lambda_{t+1}, before forcing and errors, and the sums of the gradient.

    ``adjoint (T, M, width)`` holds lambda_{t+1} and receives lambda_t; ``sums (H (2 M + 1) + 2 M + M K,
    lanes)`` are those of W1 and W2, both (H, M), then h2, A, h1 and C, lane by lane. ``along (H, lanes)`` is
    scratch.
    """
    _, dim, width = states.shape
    hidden, lanes, number = h2.shape[0], lane_count(states), states.dtype.type
    size, zero, minus, least = dim * width, broadcast(number(0.0)), broadcast(number(-1.0)), broadcast(tiny)
    in_W2, in_h2 = hidden * dim * lanes, 2 * hidden * dim * lanes
    in_A = in_h2 + hidden * lanes
    in_h1 = in_A + dim * lanes
    in_C, count = in_h1 + dim * lanes, pushes.shape[1]
    for c in range(0, width, lanes):
        now, after = t * size + c, (t + 1) * size + c
        for k in range(hidden):
            u, back = zero, zero
            for j in range(dim):
                u = fma(load_broadcast(W2, k * dim + j), load(states, now + j * width), u)
                back = fma(load_broadcast(W1, j * hidden + k), load(adjoint, after + j * width), back)
            shifted = add(u, load_broadcast(h2, k))
            opened, value = where_greater(shifted, zero, back), maximum(shifted, zero)
            slope = opened
            if clipped:
                slope = fma(minus, where_greater(u, zero, back), opened)
                value = fma(minus, maximum(u, zero), value)
            store(along, k * lanes, slope)
            store(sums, in_h2 + k * lanes, add(load(sums, in_h2 + k * lanes), opened))
            for j in range(dim):
                at = (k * dim + j) * lanes
                store(sums, at, fma(value, load(adjoint, after + j * width), load(sums, at)))
                store(sums, in_W2 + at, fma(slope, load(states, now + j * width), load(sums, in_W2 + at)))
        for j in range(dim):
            ahead = load(adjoint, after + j * width)
            at = j * lanes
            store(sums, in_A + at, fma(ahead, load(states, now + j * width), load(sums, in_A + at)))
            store(sums, in_h1 + at, add(load(sums, in_h1 + at), ahead))
            for k in range(count):
                place = in_C + (j * count + k) * lanes
                push = load(pushes, (t * count + k) * width + c)
                store(sums, place, fma(ahead, push, load(sums, place)))
            total, other = fma(load_broadcast(A, j), ahead, zero), zero
            for k in range(0, hidden - 1, 2):
                total = fma(load_broadcast(W2, k * dim + j), load(along, k * lanes), total)
                other = fma(load_broadcast(W2, (k + 1) * dim + j), load(along, (k + 1) * lanes), other)
            if hidden % 2 == 1:
                total = fma(
                    load_broadcast(W2, (hidden - 1) * dim + j), load(along, (hidden - 1) * lanes), total
                )
            store(adjoint, now + j * width, flush_small(add(total, other), least))


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
    inputs, pushes, states, adjoint, errors, y, sums = room
    length, dim, width = states.shape
    seen, lanes, number = errors.shape[1], lane_count(states), states.dtype.type
    keep, scale = number(1.0) - alpha, number(2.0 / ((length - 1) * batch))
    if gaps is not None:
        scale = number(2.0 / weight)
    count = pushes.shape[1]
    A, W1, W2, _, h2, _, _ = parts(theta, dim, hidden, count, seen)
    sums[:] = number(0.0)
    # number by number: an assignment of arrays takes seconds to compile, for the words of its error
    for i in range(dim):
        for b in range(width):
            adjoint[length - 1, i, b] = scale * errors[length - 1, i, b] if i < seen else number(0.0)
    for t in range(length - 2, -1, -1):
        _retreat(t, clipped, A, W1, W2, h2, pushes, tiny, y, states, adjoint, sums)
        if t > 0:
            for n in range(seen):
                for b in range(width):
                    if t % tau == 0 and not (gaps is not None and math.isnan(inputs[t // tau, n, b])):
                        adjoint[t, n, b] *= keep
                    adjoint[t, n, b] += scale * errors[t, n, b]
    dA, dW1, dW2, dh1, dh2, dC, dE = parts(gradient, dim, hidden, count, seen)
    gradient[:] = number(0.0)
    for lane in range(lanes):
        for k in range(hidden):
            for j in range(dim):
                dW1[j, k] += sums[k * dim + j, lane]
                dW2[k, j] += sums[(hidden + k) * dim + j, lane]
            dh2[k] += sums[2 * hidden * dim + k, lane]
        for j in range(dim):
            dA[j] += sums[(2 * dim + 1) * hidden + j, lane]
            dh1[j] += sums[(2 * dim + 1) * hidden + dim + j, lane]
            for k in range(count):
                dC[j, k] += sums[(2 * dim + 1) * hidden + 2 * dim + j * count + k, lane]
    for i in range(seen, dim):
        for n in range(seen):
            for b in range(batch):
                dE[i, n] += adjoint[0, i, b] * inputs[0, n, b]


def workspace(theta, dim, hidden, seen, count, batch, length, tau):
    """Room for the evaluation of a batch: inputs, pushes, states, adjoint, errors, hidden units, sums."""
    kind, lanes, width = theta.dtype, whole_lanes(1, theta), whole_lanes(batch, theta)
    return (
        np.empty(((length - 1) // tau + 1, seen, width), kind),
        np.empty((length, count, width), kind),
        np.empty((length, dim, width), kind),
        np.empty((length, dim, width), kind),
        np.zeros((length, seen, width), kind),
        np.empty((hidden, lanes), kind),
        np.empty(((2 * dim + 1) * hidden + 2 * dim + dim * count, lanes), kind),
    )


@kernel
def evaluate(theta, hidden, clipped, series, gaps, drive, starts, noise, tau, alpha, tiny, room, gradient):
    """Return the loss of one batch and fill ``gradient``, unless that has length 0."""
    inputs, pushes, states, _, _, _, _ = room
    read_inputs(series, starts, noise, tau, inputs)
    read_drive(drive, starts, pushes)
    loss = forced_rollout(theta, hidden, clipped, series, gaps, starts, tau, alpha, room)
    if gradient.shape[0] > 0:
        weight = 0.0 if gaps is None else predictions(series, starts, states.shape[0])
        batch = starts.shape[0]
        forced_adjoint(theta, hidden, clipped, batch, gaps, weight, tau, alpha, tiny, room, gradient)
    return loss
