"""The forced rollout and its adjoint: teacher-forced loss and gradient in closed form.

Layout. All arrays are C-contiguous and of one dtype (float32 in training, float64 otherwise). States are
``(time, batch, unit)``, so that one step is one product ``(B, M) (M, M)`` and the weight gradient is a
product over time and batch. The parameters are one vector ``theta = [A, W row-major, h, E row-major]``.

Two observations make a step cheap. On a free (ungated) unit z = phi*(z), so ``A`` folds into the diagonal of
``W``; and with ``low = -inf`` on free and 0 on gated units, phi*(z) = max(z, low) is one flat loop over batch
and units. Loops are kept apart on purpose: each touches few arrays, so that the compiler can prove or check
that they do not overlap, and vectorises.
"""

from __future__ import annotations

import numpy as np

from palrnn.engine.kernel import kernel


@kernel
def fold(theta, dim, gated, ahead, back, wide):
    """Lay out ``theta`` for the time loops.

    With W' = W + diag(A) on free units: ``ahead (M, M)`` = W'^T for a step, ``back (M, M)`` = W' for an
    adjoint step, and, repeated for each sequence of the batch, ``wide (3, B M)`` = h, A on gated units
    (else 0), low.
    """
    number = theta.dtype.type
    free = dim - gated
    for i in range(dim):
        for j in range(dim):
            weight = theta[dim + i * dim + j]
            back[i, j] = weight
            ahead[j, i] = weight
        if i < free:
            back[i, i] += theta[i]
            ahead[i, i] = back[i, i]
    for k in range(wide.shape[1]):
        i = k % dim
        wide[0, k] = theta[dim + dim * dim + i]
        wide[1, k] = number(0.0) if i < free else theta[i]
        wide[2, k] = number(-np.inf) if i < free else number(0.0)


@kernel
def read_inputs(series, starts, noise, tau, inputs):
    """The observations that enter the network: ``inputs (K, B, N)`` at steps 0, tau, 2 tau, ...

    Sequence b starts at row ``starts[b]`` of ``series (T, N)``; ``noise (K, B, N)`` is added (K = 0: none).
    """
    for k in range(inputs.shape[0]):
        for b in range(inputs.shape[1]):
            row = starts[b] + k * tau
            for n in range(inputs.shape[2]):
                inputs[k, b, n] = series[row, n]
    if noise.shape[0] > 0:
        inputs += noise


@kernel
def forced_rollout(theta, ahead, wide, series, starts, inputs, tau, alpha, phi, states, errors):
    """Run the forced rollout (eqs. itf_rollout, gtf_mix) and return its loss (eq. tf_loss).

    z_0 = embed(x_0); at steps t = tau, 2 tau, ... the observed coordinates become (1 - alpha) z_t + alpha x_t
    before the state is advanced; z_{t+1} = A z_t + W phi*(z_t) + h. Fills ``states (T, B, M)`` with the
    states that are advanced and ``errors (T, B, N)`` with B z_t - x_t *before* forcing. ``phi (B, M)`` is
    scratch. Loss: the squared error summed over N, averaged over the T - 1 predictions and the batch.
    """
    length, batch, dim = states.shape
    seen, size = series.shape[1], batch * dim
    bias, slope, low = wide[0], wide[1], wide[2]
    keep = theta.dtype.type(1.0) - alpha
    E = theta[dim * dim + 2 * dim :].reshape((dim, seen))
    for b in range(batch):
        for i in range(dim):
            total = theta.dtype.type(0.0)
            for n in range(seen):
                total += E[i, n] * inputs[0, b, n]
            states[0, b, i] = total
        for n in range(seen):
            states[0, b, n] = inputs[0, b, n]
    before, flat = states[0].reshape(size), phi.reshape(size)
    for k in range(size):
        flat[k] = low[k] if before[k] < low[k] else before[k]
    for t in range(1, length):
        np.dot(phi, ahead, states[t])
        now = states[t].reshape(size)
        for k in range(size):
            now[k] = now[k] + bias[k] + slope[k] * before[k]
        for k in range(size):
            flat[k] = low[k] if now[k] < low[k] else now[k]
        for b in range(batch):
            row = starts[b] + t
            for n in range(seen):
                errors[t, b, n] = now[b * dim + n] - series[row, n]
        if t % tau == 0:
            for b in range(batch):
                for n in range(seen):
                    mixed = keep * now[b * dim + n] + alpha * inputs[t // tau, b, n]
                    now[b * dim + n] = mixed
                    flat[b * dim + n] = low[n] if mixed < low[n] else mixed
        before = now
    total = 0.0
    every = errors.reshape(errors.size)
    for k in range(batch * seen, every.size):
        total += np.float64(every[k]) * np.float64(every[k])
    return total / ((length - 1) * batch)


@kernel
def forced_adjoint(back, wide, gated, inputs, tau, alpha, tiny, states, errors, adjoint, gradient):
    """The gradient of the loss along a forced rollout, into ``gradient`` (laid out as theta).

    With lambda_t = dL/dz_t before forcing and e_t = 2 (B z_t - x_t) / ((T - 1) B), backwards in time,

        lambda_t = F_t (D(c_t) W^T + A) lambda_{t+1} + B^T e_t,   F_t = I, with 1 - alpha where forced,
        dW = sum_t lambda_{t+1} phi*(z_t)^T,   dA = sum_t lambda_{t+1} z_t,   dh = sum_t lambda_{t+1},
        dE = lambda_0 x_0^T below the observed rows, which the embedding overwrites.

    ``states (T, B, M)`` becomes phi*(states) on the way; ``adjoint (T, B, M)`` receives lambda. Adjoints of
    units that stay closed shrink geometrically: below ``tiny`` they are set to zero before they reach
    denormal numbers, which would slow every product.
    """
    length, batch, dim = states.shape
    seen, size, free = errors.shape[2], batch * dim, dim - gated
    number = states.dtype.type
    zero, keep = number(0.0), number(1.0) - alpha
    scale = number(2.0 / ((length - 1) * batch))
    slope, low = wide[1], wide[2]
    dh, dA = np.zeros(size, states.dtype), np.zeros(size, states.dtype)
    part = np.empty((dim, dim), states.dtype)
    gradient[:] = zero
    dW = gradient[dim : dim + dim * dim].reshape((dim, dim))
    # the BLAS is fastest on products of up to about a million multiplications
    steps = max(1, 600_000 // (dim * dim * batch))
    adjoint[length - 1] = zero
    for b in range(batch):
        for n in range(seen):
            adjoint[length - 1, b, n] = scale * errors[length - 1, b, n]
    after, end = adjoint[length - 1].reshape(size), length - 1
    for t in range(length - 2, -1, -1):
        np.dot(adjoint[t + 1], back, adjoint[t])
        now, z = adjoint[t].reshape(size), states[t].reshape(size)
        for k in range(size):
            dh[k] += after[k]
        for k in range(size):
            dA[k] += after[k] * z[k]
        for k in range(size):
            through, state, gate = now[k], z[k], low[k]
            value = slope[k] * after[k] + (through if state > gate else zero)
            now[k] = zero if abs(value) < tiny else value
        for k in range(size):
            z[k] = low[k] if z[k] < low[k] else z[k]
        if t > 0:
            if t % tau == 0:
                for b in range(batch):
                    for n in range(seen):
                        now[b * dim + n] *= keep
            for b in range(batch):
                for n in range(seen):
                    now[b * dim + n] += scale * errors[t, b, n]
        after = now
        if end - t == steps or t == 0:
            rows = (end - t) * batch
            np.dot(adjoint[t + 1 : end + 1].reshape((rows, dim)).T, states[t:end].reshape((rows, dim)), part)
            for i in range(dim):
                for j in range(dim):
                    dW[i, j] += part[i, j]
            end = t
    for k in range(size):
        gradient[k % dim] += dA[k]
        gradient[dim + dim * dim + k % dim] += dh[k]
    for i in range(free):
        gradient[i] = dW[i, i]
    dE = gradient[dim * dim + 2 * dim :].reshape((dim, seen))
    for b in range(batch):
        for i in range(seen, dim):
            for n in range(seen):
                dE[i, n] += adjoint[0, b, i] * inputs[0, b, n]


@kernel
def loss_and_gradient(theta, dim, gated, series, starts, length, tau, alpha, tiny, gradient):
    """Return the loss of sequences ``series[starts[b] : starts[b] + length]``, and fill ``gradient``.

    A ``gradient`` of length 0 asks for the loss alone.
    """
    batch, seen, kind = starts.shape[0], series.shape[1], theta.dtype
    ahead, back = np.empty((dim, dim), kind), np.empty((dim, dim), kind)
    wide, phi = np.empty((3, batch * dim), kind), np.empty((batch, dim), kind)
    inputs = np.empty(((length - 1) // tau + 1, batch, seen), kind)
    states, errors = np.empty((length, batch, dim), kind), np.zeros((length, batch, seen), kind)
    fold(theta, dim, gated, ahead, back, wide)
    read_inputs(series, starts, np.empty((0, batch, seen), kind), tau, inputs)
    loss = forced_rollout(theta, ahead, wide, series, starts, inputs, tau, alpha, phi, states, errors)
    if gradient.shape[0] > 0:
        adjoint = np.empty((length, batch, dim), kind)
        forced_adjoint(back, wide, gated, inputs, tau, alpha, tiny, states, errors, adjoint, gradient)
    return loss
