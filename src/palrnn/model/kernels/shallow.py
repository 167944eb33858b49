"""The map of the shallow PLRNN, along runs."""

from __future__ import annotations

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
def advance(A, W1, W2, biases, h2, clipped, starts, y, out):
    """Fill ``out (steps, S, M)`` with the states that follow each of ``starts (S, M)``.

    ``biases`` is h1, or h1 + C s_t of each step and run: ``(1 or steps, 1 or S, M)``. ``y (H,)`` is scratch.
    """
    moves, differ = min(1, biases.shape[0] - 1), min(1, biases.shape[1] - 1)
    for s in range(starts.shape[0]):
        for t in range(out.shape[0]):
            bias = biases[t * moves, s * differ]
            step(A, W1, W2, bias, h2, clipped, starts[s] if t == 0 else out[t - 1, s], y, out[t, s])
