"""Words of symbols up to rotation, and the derivative of many steps at once."""

from __future__ import annotations

import numpy as np

from palrnn.engine.kernel import kernel
from palrnn.engine.products import copy


@kernel
def canonical_words(symbols, starts, words, primitive):
    """Fill ``words (S, k)`` with the least rotations of ``symbols[t : t + k]``, t in ``starts (S,)``.

    Two words are the same up to rotation if their least rotations are equal. ``primitive (S,)`` tells which
    words are not a shorter word several times over.
    """
    period = words.shape[1]
    for s in range(starts.shape[0]):
        t = starts[s]
        # two candidates for the start of the least rotation; the loser skips what has been compared
        i, j, same = 0, 1, 0
        while i < period and j < period and same < period:
            a, b = symbols[t + (i + same) % period], symbols[t + (j + same) % period]
            if a == b:
                same += 1
                continue
            if a > b:
                i += same + 1
            else:
                j += same + 1
            if i == j:
                j += 1
            same = 0
        least = min(i, j)
        for n in range(period):
            words[s, n] = symbols[t + (least + n) % period]
        primitive[s] = True
        for part in range(1, period // 2 + 1):
            if period % part == 0:
                repeats = True
                for n in range(period):
                    if words[s, n] != words[s, (n + part) % period]:
                        repeats = False
                        break
                if repeats:
                    primitive[s] = False
                    break


@kernel
def orbit_derivative(A, W, h, gated, start, orbit, derivative):
    """Iterate the AL-RNN from ``start (M,)``: ``orbit (k + 1, M)``; ``derivative (M, M)`` is J_k ... J_1."""
    dim = start.shape[0]
    step, product = np.empty((dim, dim)), np.empty((dim, dim))
    derivative[:] = 0.0
    for i in range(dim):
        derivative[i, i] = 1.0
    copy(start, orbit[0])
    for t in range(orbit.shape[0] - 1):
        for i in range(dim):
            total = h[i]
            for j in range(dim):
                if j < dim - gated or orbit[t, j] > 0.0:
                    step[i, j] = W[i, j]
                else:
                    step[i, j] = 0.0
            step[i, i] += A[i]
            for j in range(dim):
                total += step[i, j] * orbit[t, j]
            orbit[t + 1, i] = total
        np.dot(step, derivative, product)
        copy(product, derivative)
