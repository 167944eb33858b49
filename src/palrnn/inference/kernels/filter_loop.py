"""The Rao-Blackwellised particle filter (Alg. rbpf-louis): gates are sampled, states are Gaussian beliefs."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from palrnn.engine.kernel import kernel
from palrnn.engine.vector_code import LANES
from palrnn.inference.kernels import beliefs
from palrnn.inference.kernels.noise import GATES, fill_normals, mixed, resampling_uniforms, stream_key
from palrnn.inference.kernels.one_belief import WORD
from palrnn.inference.kernels.resampling import OUTSIDE, resample, settle

PAPER, EXACT = 0, 1


@kernel
def pack(values, words, first):
    """Write the bits 1{values_j > 0} of ``values (P, LANES)`` into ``words (n, ceil(P / 64))`` from ``first``
    on."""
    count = min(LANES, words.shape[0] - first)
    for word in range(words.shape[1]):
        start = word * WORD
        for lane in range(count):
            bits = np.uint64(0)
            for j in range(start, min(start + WORD, values.shape[0])):
                bits |= np.uint64(values[j, lane] > 0.0) << np.uint64(j - start)
            words[first + lane, word] = bits


@kernel
def code_entropy(words, weights):
    """-sum_c p(c) log2 p(c), p(c) = sum of ``weights (n,)`` over particles with code c = ``words (n, w)``.

    Codes of more than 64 bits are told apart by a 64-bit hash. Masses are gathered in a table by open
    addressing, at most half full.
    """
    n = weights.shape[0]
    size = 2
    while size < 2 * n:
        size *= 2
    keys, masses = np.empty(size, dtype=np.uint64), np.full(size, -1.0)
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
def bit_entropy(probability):
    """The summed entropies of single gates in bits, an upper bound of the code's; ``probability (P,)``."""
    total = 0.0
    for p in probability:
        if 0.0 < p < 1.0:
            total -= p * math.log2(p) + (1.0 - p) * math.log2(1.0 - p)
    return total


# part of its caller, never a function of its own: the process that compiles a kernel and those that load it
# from the cache may otherwise run different copies of a callee, which add in a different order
@njit(inline="always", error_model="numpy")
def reweigh(log_weights, loglik, weights):
    """log w <- log w + loglik, normalised; return the log of the sum divided out, NaN if all are dead.

    ``log_weights (n,)`` in place, ``weights (n,)`` gets their exponentials. A particle whose likelihood is
    not a number is dead.
    """
    n = log_weights.shape[0]
    top = -math.inf
    for i in range(n):
        total = log_weights[i] + loglik[i]
        log_weights[i] = -math.inf if math.isnan(total) else total
        top = max(top, log_weights[i])
    if not abs(top) < math.inf:
        return math.nan
    mass = 0.0
    for i in range(n):
        weights[i] = math.exp(log_weights[i] - top)
        mass += weights[i]
    increment = top + math.log(mass)
    for i in range(n):
        weights[i] /= mass
        log_weights[i] -= increment
    return increment


@kernel
def filter_steps(arrays, target, scheme, threshold, schedule, key, x, start, stop, mean, cov, work, out):
    """Take transitions t = start, ..., stop - 1 of all particles; return the next one to take, or -1 - t if
    all died at t.

    Where resampling is due and only Python can do it (``scheme`` is OUTSIDE), return before it.

    Each particle i draws a code c_t from its belief over z_t, predicts z_{t+1} with J = A + W D(c_t), is
    weighed by p(x_{t+1} | its past) and conditions on x_{t+1}. The increments log sum_i w_i p(x_{t+1} | i)
    sum to the log of an unbiased estimate of the evidence, whenever resampling happens: when ESS <
    ``threshold`` * n, or as ``schedule (T-1,)`` says where it is not negative; never after the last step,
    where it would only add noise.

    A code is 1{u > 0} with u = z_gated + gate noise. PAPER: each u_j is drawn from its own marginal N(mu_j,
    nu_j + gate_std^2), so that P(u_j > 0) is the integrated probit Phi(mu / sqrt(nu + gate_std^2)); the
    belief stays as it was. EXACT: u is drawn jointly from N(m_g, P_gg + gate_std^2 I), and the belief is
    conditioned on it, because a gate that was drawn from z says something about z.

    ``x (T, N)``; ``mean`` and ``cov`` hold the beliefs in bundles (see `initial_bundles`) and are changed in
    place; ``out`` holds one row per transition of all that is kept (see `Record`).
    """
    log_weights = out.log_weights
    particles, bundles = log_weights.shape[0], mean.shape[0]
    observation, gate, hidden = arrays.observation, arrays.gate, arrays.hidden
    free = arrays.latent_dim - gate.shape[0]
    inputs, seen = work.gates[free:], np.empty((x.shape[1], LANES))
    loglik, weights, uniforms = np.empty(bundles * LANES), np.empty(particles), np.empty(particles)
    for t in range(start, stop):
        gate_key, codes = stream_key(key, t, GATES), out.code_words[t]
        for n in range(x.shape[1]):
            seen[n] = x[t + 1, n]
        for b in range(bundles):
            m, P = mean[b], cov[b]
            fill_normals(gate_key, b, inputs)
            if target == EXACT:
                beliefs.condition(m, P, free, inputs, gate, True, work, loglik, b * LANES)
            else:
                beliefs.draw_integrated_probit(m, P, free, inputs, gate)
            pack(inputs, codes, b * LANES)
            beliefs.predict(arrays, m, P, work)
            beliefs.condition(m, P, hidden, seen, observation, False, work, loglik, b * LANES)
        increment = reweigh(log_weights, loglik, weights)
        if math.isnan(increment):
            return -1 - t
        out.increments[t] = increment
        out.ess[t] = 1.0 / np.sum(weights * weights)
        summarise(weights, mean, codes, out.mean[t + 1], out.gate_probability[t])
        out.code_entropy[t] = code_entropy(codes, weights)
        out.bit_entropy[t] = bit_entropy(out.gate_probability[t])
        if t + 1 == x.shape[0] - 1:
            break
        ancestors = out.ancestors[t + 1]
        due = out.ess[t] < threshold * particles if schedule[t] < 0 else schedule[t] > 0
        out.resampled[t] = due
        if not due:
            for i in range(particles):
                ancestors[i] = i
        elif scheme == OUTSIDE:
            return t + 1
        else:
            resampling_uniforms(key, t, uniforms)
            resample(scheme, weights, uniforms, ancestors)
            out.survivors[t] = inherit(ancestors, mean, cov, log_weights)
    return stop


@kernel
def inherit(ancestors, mean, cov, log_weights):
    """Give every particle the belief of its ancestor, and equal weights; return how many survive.

    ``ancestors (n,)`` are reordered so that survivors keep their slots (see `settle`).
    """
    survivors = settle(ancestors)
    refill(ancestors, mean)
    refill(ancestors, cov)
    log_weights[:] = -math.log(log_weights.shape[0])
    return survivors


@kernel
def refill(ancestors, bundles):
    """Copy the lanes of ``ancestors (n,)`` to the particles whose ancestor is another one.

    ``bundles (count, size)`` holds lanes. An ancestor is its own ancestor, so that the order does not
    matter.
    """
    for i in range(ancestors.shape[0]):
        ancestor = ancestors[i]
        if ancestor != i:
            source, target = bundles[ancestor // LANES], bundles[i // LANES]
            shift = ancestor % LANES - i % LANES
            for at in range(i % LANES, target.shape[0], LANES):
                target[at] = source[at + shift]


@kernel
def summarise(weights, mean, words, mixture_mean, probability):
    """sum_i w_i m_i into ``mixture_mean (M,)`` and P(c_j = 1) into ``probability (P,)``."""
    particles = weights.shape[0]
    for k in range(mixture_mean.shape[0]):
        total = 0.0
        for b in range(mean.shape[0]):
            for lane in range(min(LANES, particles - b * LANES)):
                w = weights[b * LANES + lane]
                # the mean of a dead particle may be infinite
                total += w * mean[b, k * LANES + lane] if w > 0.0 else 0.0
        mixture_mean[k] = total
    for j in range(probability.shape[0]):
        word, shift = j // WORD, np.uint64(j % WORD)
        total = 0.0
        for i in range(particles):
            total += weights[i] * np.float64(np.int64((words[i, word] >> shift) & np.uint64(1)))
        probability[j] = total
