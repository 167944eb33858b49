"""What the weights and codes of particles say: entropies and gate probabilities, transition by transition."""

from __future__ import annotations

import math

import numpy as np

from palrnn.engine.kernel import kernel
from palrnn.inference.kernels.noise import mixed
from palrnn.inference.kernels.one_belief import WORD


@kernel
def code_entropy(words, weights):
    """H = -sum_c p(c) log2 p(c) (Sec. rbpf_louis_details), p(c) = sum of ``weights (n,)`` over particles with
    code c = ``words (n, w)``.

    Codes of more than 64 bits are told apart by a 64-bit hash. Masses are gathered in a table by open
    addressing, at most half full.
    """
    n = weights.shape[0]
    size = 2
    while size < 2 * n:
        size *= 2
    keys, masses = np.empty(size, dtype=np.uint64), np.empty(size)
    masses[:] = -1.0
    for i in range(n):
        key = words[i, 0]
        for w in range(1, words.shape[1]):
            key = mixed(key) + words[i, w]
        slot = np.int64(mixed(key) & np.uint64(size - 1))
        while masses[slot] >= 0.0 and keys[slot] != key:
            slot = (slot + 1) & (size - 1)
        keys[slot] = key
        masses[slot] = max(masses[slot], 0.0) + weights[i]
    entropy = 0.0
    for mass in masses:
        if mass > 0.0:
            entropy -= mass * math.log2(mass)
    return max(entropy, 0.0)


@kernel
def code_entropies(words, weights, out):
    """`code_entropy` of each transition into ``out (k,)``: ``words (k, n, w)``, ``weights (k, n)``."""
    for t in range(out.shape[0]):
        out[t] = code_entropy(words[t], weights[t])


@kernel
def gate_probabilities(words, weights, out):
    """P(c_j = 1), the weight of the particles whose gate j is open, into ``out (k, P)``, per transition."""
    for t in range(out.shape[0]):
        for j in range(out.shape[1]):
            word, shift = j // WORD, np.uint64(j % WORD)
            total = 0.0
            for i in range(weights.shape[1]):
                total += weights[t, i] * np.float64(np.int64((words[t, i, word] >> shift) & np.uint64(1)))
            out[t, j] = total
