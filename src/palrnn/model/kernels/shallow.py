"""The map of the shallow PLRNN and its rollout."""

from __future__ import annotations

import numpy as np

from palrnn.engine.kernel import kernel


@kernel
def step(A, W1, W2, h1, h2, clipped, z, y, out):
    """z_{t+1} = A z_t + W1 y + h1, y = relu(W2 z_t + h2), less relu(W2 z_t) where ``clipped``.

    A (M,), W1 (M, H), W2 (H, M), h1 (M,), h2 (H,), z (M,) -> y (H,), out (M,).
    """
    dim, hidden = W1.shape
    for k in range(hidden):
        total = 0.0
        for j in range(dim):
            total += W2[k, j] * z[j]
        y[k] = max(total + h2[k], 0.0)
        if clipped:
            y[k] -= max(total, 0.0)
    for i in range(dim):
        total = 0.0
        for k in range(hidden):
            total += W1[i, k] * y[k]
        out[i] = A[i] * z[i] + total + h1[i]


@kernel
def rollout(A, W1, W2, biases, h2, clipped, start, discard, bound, out):
    """Fill ``out (steps, M)`` with z_{discard+1}, z_{discard+2}, ... where z_1 = ``start (M,)``.

    ``biases`` is h1, ``(1, M)``, or h1 + C s_t of each state, ``(discard + steps, M)``.
    Return the number of steps taken from ``start`` when the state first left ``bound``, or -1.
    """
    steps, dim = out.shape
    z, after, y = start.copy(), np.empty(dim), np.empty(h2.shape[0])
    moves = min(1, biases.shape[0] - 1)
    for t in range(discard + steps):
        for i in range(dim):
            if not abs(z[i]) <= bound:
                return t
        if t >= discard:
            for i in range(dim):  # an assignment of arrays takes seconds to compile
                out[t - discard, i] = z[i]
        step(A, W1, W2, biases[t * moves], h2, clipped, z, y, after)
        z, after = after, z
    return -1


@kernel
def advance(A, W1, W2, biases, h2, clipped, starts, out):
    """Fill ``out (steps, S, M)`` with the states that follow each of ``starts (S, M)``.

    ``biases`` is h1, or h1 + C s_t of each step and run: ``(1 or steps, 1 or S, M)``.
    """
    y = np.empty(h2.shape[0])
    moves, differ = min(1, biases.shape[0] - 1), min(1, biases.shape[1] - 1)
    for s in range(starts.shape[0]):
        for t in range(out.shape[0]):
            bias = biases[t * moves, s * differ]
            step(A, W1, W2, bias, h2, clipped, starts[s] if t == 0 else out[t - 1, s], y, out[t, s])
