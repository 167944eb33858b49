"""The forced rollout and its adjoint: teacher-forced loss and gradient in closed form.

Layout. All arrays are C-contiguous and of one dtype (float32 in training, float64 otherwise). States are
``(time, rows, width)``: sequences and units fill whole tiles (`steps`), columns after the last unit with
zeros, rows after the last sequence by repeating it, without an error. One step is one product ``(B, M) (M,
M)``, and the weight gradient one over time and batch; `steps` has all of them. The parameters are one vector
``theta = [A, W row-major, h, C row-major, E row-major]``.

External inputs s_t are ``drive (rows, K)``, K = 0 where there are none. They stand beside the units, in
columns M .. M + K - 1 of the states, so that a step is one product with [W C], and its gradient another.

On a free (ungated) unit z = phi*(z), so ``A`` folds into the diagonal of ``W``: W' = W + diag(A) there.

A gap is NaN. It has no error and forces nothing, and the loss is the mean over what was seen. ``gaps`` is
None where nothing is missing, and True where something may be: kernels are compiled for each, so that whoever
has all data does not pay for looking.
"""

from __future__ import annotations

import math

import numpy as np

from palrnn.engine.kernel import kernel
from palrnn.engine.lanes import rows_of_pairs
from palrnn.engine.products import clear
from palrnn.engine.vector_code import REGISTER_BYTES
from palrnn.forcing.kernels.steps import add_outer, advance, retreat

#: Rows of adjoints and states that fit into the nearest cache, to be used again before they leave it.
NEAR_ROWS = 64


def whole_lanes(dim, array, vectors=1):
    """``dim`` rounded up to fill so many vectors of the array's dtype; for use outside of kernels."""
    lanes = vectors * REGISTER_BYTES // array.itemsize
    return (dim + lanes - 1) // lanes * lanes


@kernel
def fold(theta, dim, gated, count, ahead, back, wide):
    """Lay out ``theta``, with ``count`` inputs, for the time loops, padded with zeros.

    ``ahead (width, width)`` = [W C]'^T for a step, ``back (width, width)`` = W' for an adjoint step, and
    ``wide (3, width)`` = h, slope (A on gated units, else 0), low (0 on gated units, else -inf).
    """
    number = theta.dtype.type
    free, width = dim - gated, ahead.shape[0]
    clear(ahead)
    clear(back)
    for i in range(dim):
        for j in range(dim):
            weight = theta[dim + i * dim + j]
            back[i, j] = weight
            ahead[j, i] = weight
        if i < free:
            back[i, i] += theta[i]
            ahead[i, i] = back[i, i]
        for k in range(count):
            ahead[dim + k, i] = theta[dim * dim + 2 * dim + i * count + k]
    for i in range(width):
        closing = i >= free and i < dim
        wide[0, i] = theta[dim + dim * dim + i] if i < dim else number(0.0)
        wide[1, i] = theta[i] if closing else number(0.0)
        wide[2, i] = number(0.0) if closing else number(-np.inf)


@kernel
def read_inputs(series, starts, noise, tau, inputs):
    """The observations that enter the network: ``inputs (K, rows, N)`` at steps 0, tau, 2 tau, ...

    Sequence b starts at row ``starts[b]`` of ``series (T, N)``; ``noise (K, B, N)`` is added (K = 0: none).
    """
    for k in range(inputs.shape[0]):
        for b in range(inputs.shape[1]):
            each = min(b, starts.shape[0] - 1)
            for n in range(inputs.shape[2]):
                inputs[k, b, n] = series[starts[each] + k * tau, n]
                if noise.shape[0] > 0:
                    inputs[k, b, n] += noise[k, each, n]


@kernel
def predictions(series, starts, length):
    """The number of predictions that the loss is averaged over: the entries seen after the start, over N."""
    batch, seen, count = starts.shape[0], series.shape[1], 0
    for b in range(batch):
        for t in range(starts[b] + 1, starts[b] + length):
            for n in range(seen):
                count += not math.isnan(series[t, n])
    return count / seen


@kernel
def sum_of_squares(values):
    """The sum of the squares of ``values (n,)`` in float64, in four parts that do not wait for each other."""
    a = b = c = d = 0.0
    whole = values.shape[0] // 4 * 4
    for k in range(0, whole, 4):
        a += np.float64(values[k]) * np.float64(values[k])
        b += np.float64(values[k + 1]) * np.float64(values[k + 1])
        c += np.float64(values[k + 2]) * np.float64(values[k + 2])
        d += np.float64(values[k + 3]) * np.float64(values[k + 3])
    for k in range(whole, values.shape[0]):
        a += np.float64(values[k]) * np.float64(values[k])
    return a + b + c + d


@kernel
def forced_rollout(theta, dim, series, gaps, drive, starts, tau, alpha, room):
    """Run the forced rollout (eqs. itf_rollout, gtf_mix) and return its loss (eq. tf_loss).

    z_0 = embed(x_0); at steps t = tau, 2 tau, ... the observed coordinates become (1 - alpha) z_t + alpha x_t
    before the state is advanced; z_{t+1} = A z_t + W phi*(z_t) + h + C s_t. Fills ``states (T, rows, width)``
    with the states that are advanced and ``errors (T, B, N)`` with B z_t - x_t *before* forcing, 0 where x_t
    is not seen. ``phi (2, rows, width)`` is scratch. Loss: the squared error summed over N, averaged over the
    T - 1 predictions and the batch, or over as many as were seen (`predictions`).
    """
    ahead, _, wide, phi, inputs, states, _, errors, _, _, (E, every, _, _, _) = room
    length, rows, width = states.shape
    batch, seen, count = starts.shape[0], series.shape[1], drive.shape[1]
    keep = theta.dtype.type(1.0) - alpha
    clear(states[0])
    for b in range(rows):
        for i in range(seen, dim):
            for n in range(seen):
                states[0, b, i] += E[i, n] * inputs[0, b, n]
        for n in range(seen):
            states[0, b, n] = inputs[0, b, n]
        for k in range(count):
            states[0, b, dim + k] = drive[starts[min(b, batch - 1)], k]
        for i in range(width):
            phi[0, b, i] = wide[2, i] if states[0, b, i] < wide[2, i] else states[0, b, i]
    for begin in range(0, length - 1, tau):
        end = min(begin + tau, length - 1)
        advance(begin, end, dim, ahead, wide, drive, starts, phi, states)
        for t in range(begin + 1, end + 1):
            for b in range(batch):
                for n in range(seen):
                    missing = gaps is not None and math.isnan(series[starts[b] + t, n])
                    errors[t, b, n] = 0.0 if missing else states[t, b, n] - series[starts[b] + t, n]
        if end % tau == 0:
            for b in range(rows):
                for n in range(seen):
                    if gaps is None or not math.isnan(inputs[end // tau, b, n]):
                        mixed = keep * states[end, b, n] + alpha * inputs[end // tau, b, n]
                        states[end, b, n] = mixed
                        phi[end % 2, b, n] = wide[2, n] if mixed < wide[2, n] else mixed
    total = sum_of_squares(every)  # the first row stays zero
    if gaps is None:
        return total / ((length - 1) * batch)
    return total / predictions(series, starts, length)


@kernel
def forced_adjoint(dim, gated, count, gaps, weight, tau, alpha, tiny, room, gradient):
    """The gradient of the loss (eq. tf_loss) along a forced rollout, into ``gradient`` (laid out as theta).

    With lambda_t = dL/dz_t before forcing and e_t = 2 (B z_t - x_t) / ((T - 1) B), backwards in time,

        lambda_t = F_t (D(c_t) W^T + A) lambda_{t+1} + B^T e_t,   F_t = I, with 1 - alpha where forced,
        dW = sum_t lambda_{t+1} phi*(z_t)^T,   dA = sum_t lambda_{t+1} z_t,   dh = sum_t lambda_{t+1},
        dE = lambda_0 x_0^T below the observed rows, which the embedding overwrites,
        dC = sum_t lambda_{t+1} s_t^T, with the ``count`` inputs that stand beside the states.

    With ``gaps``, (T - 1) B is the number ``weight`` of `predictions` instead, and F_t is I where nothing was
    seen. Without them ``weight`` is not looked at.

    ``states (T, rows, width)`` becomes phi*(states) on the way; ``adjoint (T, rows, width)`` receives lambda.
    Adjoints of units that stay closed shrink geometrically: below ``tiny`` they are set to zero before they
    reach denormal numbers, which would slow every product.
    """
    _, back, wide, _, inputs, states, adjoint, errors, part, sums, (_, _, dW, dC, dE) = room
    length, rows, width = states.shape
    (_, batch, seen), free, number = errors.shape, dim - gated, states.dtype.type
    keep, scale = number(1.0) - alpha, number(2.0 / ((length - 1) * batch))
    if gaps is not None:
        scale = number(2.0 / weight)
    clear(sums)
    clear(gradient)
    clear(part)
    clear(adjoint[length - 1])
    for i in range(width):
        sums[1, i] = tiny
    for b in range(batch):
        for n in range(seen):
            adjoint[length - 1, b, n] = scale * errors[length - 1, b, n]
    steps, end = max(1, NEAR_ROWS // rows), length - 1
    while end > 0:
        begin = max(0, end - steps)
        retreat(begin, end, dim, tau, keep, gaps, inputs, scale, back, wide, errors, states, adjoint, sums)
        add_outer(begin, end, dim, sums, adjoint, states, part)
        end = begin
    for i in range(dim):
        for j in range(dim):
            dW[i, j] = part[i, j]
        for k in range(count):
            dC[i, k] = part[i, dim + k]
    for i in range(dim):
        # on a free unit z = phi*(z): the two derivatives are one
        gradient[i] = dW[i, i] if i < free else sums[3, i]
        gradient[dim + dim * dim + i] = sums[2, i]
    for b in range(batch):
        for i in range(seen, dim):
            for n in range(seen):
                dE[i, n] += adjoint[0, b, i] * inputs[0, b, n]


def workspace(theta, gradient, dim, seen, count, batch, length, tau):
    """Room for a batch: ahead, back, wide, phi, inputs, states, adjoint, errors, part, sums, and views.

    The views are E in ``theta``, all errors in one row, and dW, dC and dE in ``gradient``. All is made
    outside of kernels: what makes arrays need not be compiled then.
    """
    embedding, across = dim * (dim + 2 + count), dim * (dim + 2)
    errors = np.zeros((length, batch, seen), theta.dtype)
    views = (
        theta[embedding:].reshape((dim, seen)),
        errors.reshape(-1),
        gradient[dim : dim + dim * dim].reshape((dim, dim)),
        gradient[across:embedding].reshape((dim, count)),
        gradient[embedding:].reshape((dim, seen)),
    )
    kind, width, many = theta.dtype, whole_lanes(dim + count, theta, 2), rows_of_pairs(theta.dtype)
    rows = -(-batch // many) * many
    return (
        np.empty((width, width), kind),
        np.empty((width, width), kind),
        np.empty((3, width), kind),
        np.empty((2, rows, width), kind),
        np.empty(((length - 1) // tau + 1, rows, seen), kind),
        np.empty((length, rows, width), kind),
        np.empty((length, rows, width), kind),
        errors,
        np.empty((width, width), kind),
        np.empty((4, width), kind),
        views,
    )


@kernel
def evaluate(theta, dim, gated, series, gaps, drive, starts, noise, tau, alpha, tiny, room, gradient):
    """Return the loss of one batch and fill ``gradient``, unless that has length 0."""
    ahead, back, wide, _, inputs, states, _, _, _, _, _ = room
    count = drive.shape[1]
    fold(theta, dim, gated, count, ahead, back, wide)
    read_inputs(series, starts, noise, tau, inputs)
    loss = forced_rollout(theta, dim, series, gaps, drive, starts, tau, alpha, room)
    if gradient.shape[0] > 0:
        weight = 0.0 if gaps is None else predictions(series, starts, states.shape[0])
        forced_adjoint(dim, gated, count, gaps, weight, tau, alpha, tiny, room, gradient)
    return loss
