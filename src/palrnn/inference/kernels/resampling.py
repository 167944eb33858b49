"""The compiled resampling schemes, all with the signature of `palrnn.inference.resampling`.

``weights (K,)`` need not be normalised; ``uniforms (n,)`` are used up; ``ancestors (n,)`` are filled.
"""

from __future__ import annotations

import math

import numpy as np

from palrnn.engine.kernel import kernel

# the number of a scheme that only Python can call
OUTSIDE = -1


@kernel
def pick(cumulative, position):
    """The first k with ``position < cumulative_k (K,)``, by bisection."""
    low, high = 0, cumulative.shape[0] - 1
    while low < high:
        middle = (low + high) // 2
        if position < cumulative[middle]:
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def cumulated(weights):
    """Cumulative sums scaled to end at 1; trailing zero weights cannot be picked."""
    total, last, mass = np.empty_like(weights), weights.shape[0] - 1, 0.0
    for k in range(last + 1):
        mass += weights[k]
        total[k] = mass
    for k in range(last + 1):
        total[k] /= mass
    while last > 0 and weights[last] == 0.0:
        last -= 1
    total[last] = 2.0
    return total


@kernel
def multinomial(weights, uniforms, ancestors):
    """n independent draws: the paper's scheme, and the noisiest."""
    cumulative = cumulated(weights)
    for i in range(ancestors.shape[0]):
        ancestors[i] = pick(cumulative, uniforms[i])


@kernel
def systematic(weights, uniforms, ancestors):
    """One uniform number shared by n evenly spaced positions (Kitagawa, 1996)."""
    cumulative = cumulated(weights)
    n = ancestors.shape[0]
    for i in range(n):
        ancestors[i] = pick(cumulative, (i + uniforms[0]) / n)


@kernel
def stratified(weights, uniforms, ancestors):
    """One uniform position in each of n equal strata."""
    cumulative = cumulated(weights)
    n = ancestors.shape[0]
    for i in range(n):
        ancestors[i] = pick(cumulative, (i + uniforms[i]) / n)


@kernel
def residual(weights, uniforms, ancestors):
    """floor(n w) copies of each index for certain, multinomial for what is left (Liu and Chen, 1998)."""
    n = ancestors.shape[0]
    total = 0.0
    for k in range(weights.shape[0]):
        total += weights[k]
    rest = np.empty(weights.shape[0])
    filled = 0
    for k in range(weights.shape[0]):
        expected = n * weights[k] / total
        copies = math.floor(expected)
        rest[k] = expected - copies
        for _ in range(min(copies, n - filled)):
            ancestors[filled] = k
            filled += 1
    if filled < n:
        multinomial(rest, uniforms[filled:], ancestors[filled:])


COMPILED = (multinomial, systematic, stratified, residual)


@kernel
def resample(number, weights, uniforms, ancestors):
    """Scheme ``COMPILED[number]`` (a number, because Numba cannot cache functions that take functions)."""
    if number == 0:
        multinomial(weights, uniforms, ancestors)
    elif number == 1:
        systematic(weights, uniforms, ancestors)
    elif number == 2:
        stratified(weights, uniforms, ancestors)
    else:
        residual(weights, uniforms, ancestors)


@kernel
def settle(ancestors):
    """Reorder ``ancestors (n,)`` in place so that every survivor keeps its slot; return how many survive.

    Particles have no order, so this changes nothing but what must be copied: only slots of the dead are
    refilled.
    """
    n = ancestors.shape[0]
    offspring = np.zeros(n, dtype=np.int64)
    for i in range(n):
        offspring[ancestors[i]] += 1
    survivors, donor = 0, 0
    for i in range(n):
        if offspring[i] > 0:
            survivors += 1
            ancestors[i] = i
            offspring[i] -= 1
        else:
            ancestors[i] = -1
    for i in range(n):
        if ancestors[i] < 0:
            while offspring[donor] == 0:
                donor += 1
            ancestors[i] = donor
            offspring[donor] -= 1
    return survivors
