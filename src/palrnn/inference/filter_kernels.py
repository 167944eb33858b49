"""The Rao-Blackwellised particle filter (Alg. rbpf-louis): gates are sampled, states are Gaussian beliefs."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from palrnn.engine.kernel import kernel
from palrnn.inference.kalman_kernels import WORD, bit, condition, open_units, predict
from palrnn.inference.noise_kernels import GATES, RESAMPLING, fill_normals, fill_uniforms, mixed, stream_key
from palrnn.inference.resampling_kernels import resample, settle

PAPER, EXACT = 0, 1


@kernel
def draw_gates(system, target, key, slot, mean, cov, values, scratch):
    """Draw u = z_gated + gate noise from the belief into ``values (P,)``; the gates are 1{u > 0}.

    PAPER: each u_j from its own marginal N(mu_j, nu_j + gate_std^2), so that P(u_j > 0) is the integrated
    probit Phi(mu / sqrt(nu + gate_std^2)); the belief stays as it was.

    EXACT: u jointly from N(m_g, P_gg + gate_std^2 I), and the belief is conditioned on it, because a gate
    that was drawn from z says something about z.
    """
    first = system.latent_dim - values.shape[0]
    fill_normals(key, slot, values)
    if target == EXACT:
        condition(mean, cov, first, values, system.gate, True, system.latent_dim, scratch)
    else:
        for j in range(values.shape[0]):
            k = first + j
            values[j] = mean[k] + math.sqrt(cov[k, k] + system.gate[j]) * values[j]


@kernel
def pack(values, words):
    """Write the bits 1{values_j > 0} of ``values (P,)`` into ``words (ceil(P / 64),)``, unsigned 64-bit."""
    words[:] = np.uint64(0)
    for j in range(values.shape[0]):
        words[j // WORD] |= np.uint64(values[j] > 0.0) << np.uint64(j % WORD)


@kernel
def code_entropy(words, weights):
    """-sum_c p(c) log2 p(c), p(c) = sum of ``weights (n,)`` over particles with code c = ``words (n, w)``.

    Codes of more than 64 bits are told apart by a 64-bit hash.
    """
    n = weights.shape[0]
    keys = np.empty(n, dtype=np.uint64)
    for i in range(n):
        keys[i] = words[i, 0]
        for w in range(1, words.shape[1]):
            keys[i] = mixed(keys[i]) + words[i, w]
    order = np.argsort(keys)
    entropy, mass = 0.0, 0.0
    for r in range(n):
        mass += weights[order[r]]
        if r == n - 1 or keys[order[r + 1]] != keys[order[r]]:
            if mass > 0.0:
                entropy -= mass * math.log2(mass)
            mass = 0.0
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
def filter_steps(
    system, target, scheme, threshold, schedule, key, x, start, stop, mean, cov, log_weights, scratch, out
):
    """Take transitions t = start, ..., stop - 1 of all particles; return the step at which all died, or -1.

    Each particle i draws a code c_t from its belief over z_t, predicts z_{t+1} with J = A + W D(c_t), is
    weighed by p(x_{t+1} | its past) and conditions on x_{t+1}. The increments log sum_i w_i p(x_{t+1} | i)
    sum to the log of an unbiased estimate of the evidence, whenever resampling happens: when ESS <
    ``threshold`` * n, or as ``schedule (T-1,)`` says where it is not negative; never after the last step,
    where it would only add noise.

    ``x (T, N)``; ``mean (n, D)``, ``cov (n, D, D)``, ``log_weights (n,)`` are the particles, changed in
    place; ``out`` holds one row per transition of everything that is kept (see `Record`).
    """
    particles = mean.shape[0]
    values = np.empty(system.gate.shape[0])
    loglik, weights, uniforms = np.empty(particles), np.empty(particles), np.empty(particles)
    for t in range(start, stop):
        gate_key = stream_key(key, t, GATES)
        for i in range(particles):
            draw_gates(system, target, gate_key, i, mean[i], cov[i], values, scratch)
            pack(values, out.codes[t, i])
            count = open_units(system, out.codes[t, i], scratch)
            predict(system, count, mean[i], cov[i], scratch)
            loglik[i] = condition(
                mean[i], cov[i], 0, x[t + 1], system.observation, False, system.latent_dim, scratch
            )
        increment = reweigh(log_weights, loglik, weights)
        if math.isnan(increment):
            return t
        out.increments[t] = increment
        out.ess[t] = 1.0 / np.sum(weights * weights)
        summarise(weights, mean, out.codes[t], out.mean[t + 1], out.gate_probability[t])
        out.code_entropy[t] = code_entropy(out.codes[t], weights)
        out.bit_entropy[t] = bit_entropy(out.gate_probability[t])
        if t + 1 == x.shape[0] - 1:
            break
        ancestors = out.ancestors[t + 1]
        due = out.ess[t] < threshold * particles if schedule[t] < 0 else schedule[t] > 0
        out.resampled[t] = due
        if due:
            fill_uniforms(stream_key(key, t, RESAMPLING), uniforms)
            resample(scheme, weights, uniforms, ancestors)
            out.survivors[t] = settle(ancestors)
            for i in range(particles):
                log_weights[i] = -math.log(particles)
                if ancestors[i] != i:
                    mean[i] = mean[ancestors[i]]
                    cov[i] = cov[ancestors[i]]
        else:
            out.survivors[t] = particles
            for i in range(particles):
                ancestors[i] = i
    return -1


@kernel
def summarise(weights, mean, words, mixture_mean, probability):
    """sum_i w_i m_i into ``mixture_mean (M,)`` and P(c_j = 1) into ``probability (P,)``."""
    mixture_mean[:] = 0.0
    probability[:] = 0.0
    for i in range(weights.shape[0]):
        w = weights[i]
        if w == 0.0:
            continue
        for k in range(mixture_mean.shape[0]):
            mixture_mean[k] += w * mean[i, k]
        for j in range(probability.shape[0]):
            if bit(words[i], j):
                probability[j] += w
