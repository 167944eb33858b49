"""The Rao-Blackwellised particle filter (Alg. rbpf-louis): gates are sampled, states are Gaussian beliefs.

The same in plain NumPy, formula by formula, is `palrnn.inference.reference`. Here particles are stepped in
bundles of `LANES` (see `beliefs`), and the loop over transitions is compiled with all that it calls.
"""

from __future__ import annotations

import math

import numpy as np

from palrnn.engine.kernel import kernel
from palrnn.engine.vector_code import LANES
from palrnn.inference.kernels import beliefs
from palrnn.inference.kernels.noise import GATES, fill_normals, resampling_uniforms, stream_key
from palrnn.inference.kernels.one_belief import WORD
from palrnn.inference.kernels.resampling import OUTSIDE, resample, settle

PAPER, EXACT = 0, 1


@kernel
def store_codes(inputs, words, first):
    """Write the bits c_j = 1{u_j > 0} of ``inputs (P, LANES)`` to ``words (n, ceil(P / 64))`` from ``first``
    on."""
    count = min(LANES, words.shape[0] - first)
    for word in range(words.shape[1]):
        start = word * WORD
        for lane in range(count):
            bits = np.uint64(0)
            for j in range(start, min(start + WORD, inputs.shape[0])):
                bits |= np.uint64(inputs[j, lane] > 0.0) << np.uint64(j - start)
            words[first + lane, word] = bits


@kernel
def reweigh(log_weights, loglik, weights):
    """w_i <- w_i p(x | i) / sum_j w_j p(x | j) (Alg. rbpf-louis); return the log of the sum, NaN if all are
    dead.

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
def effective_sample_size(weights):
    """ESS = 1 / sum_i w_i^2 (eq. rbpf_ess)."""
    total = 0.0
    for i in range(weights.shape[0]):
        total += weights[i] * weights[i]
    return 1.0 / total


@kernel
def filter_steps(arrays, how, x, start, stop, mean, cov, work, weights, record):
    """Take transitions t = start, ..., stop - 1 of all particles (Alg. rbpf-louis).

    Each particle i draws a code c_t from its belief over z_t, predicts z_{t+1} with J = A + W D(c_t), is
    weighed by p(x_{t+1} | its past) and conditions on x_{t+1}. The increments log sum_i w_i p(x_{t+1} | i)
    sum to the log of an unbiased estimate of the evidence, whenever resampling happens: when ESS <
    ``how.threshold`` * n, or as ``how.schedule (T-1,)`` says where it is not negative; never after the last
    step, where it would only add noise.

    A code is 1{u > 0} with u = z_gated + gate noise. PAPER: each u_j is drawn from its own marginal, by the
    integrated probit (`draw_integrated_probit`); the belief stays as it was. EXACT: u is drawn jointly from
    N(m_g, P_gg + gate_std^2 I), and the belief is conditioned on it (`condition`), because a gate that was
    drawn from z says something about z.

    ``how`` is a `Plan`, ``x (T, N)``; ``mean`` and ``cov`` hold the beliefs in bundles (see
    `initial_bundles`) and are changed in place; row t - start of ``weights (stop - start, n)`` receives the
    weights of t, ``record`` what is kept of a pass (see `Record`).

    Random numbers are counted from transition ``how.origin`` on, where ``x`` begins later than its series.
    Return the next transition to take; -1 - t if all particles died at t. Where resampling is due and only
    Python can do it (``how.scheme`` is OUTSIDE), return before it.
    """
    target, scheme, key, log_weights = how.target, how.scheme, how.key, record.log_weights
    particles, bundles = log_weights.shape[0], mean.shape[0]
    observation, gate, hidden = arrays.observation, arrays.gate, arrays.hidden
    free = arrays.latent_dim - gate.shape[0]
    inputs, seen = work.gates[free:], np.empty((x.shape[1], LANES))
    loglik, uniforms = np.empty(bundles * LANES), np.empty(particles)
    for t in range(start, stop):
        gate_key = stream_key(key, how.origin + t, GATES)
        words, now = record.code_words[t], weights[t - start]
        for n in range(x.shape[1]):
            seen[n] = x[t + 1, n]
        for b in range(bundles):
            m, P = mean[b], cov[b]
            fill_normals(gate_key, b, inputs)
            if target == EXACT:
                beliefs.condition(m, P, free, inputs, gate, True, work, loglik, b * LANES)
            else:
                beliefs.draw_integrated_probit(m, P, free, inputs, gate)
            store_codes(inputs, words, b * LANES)
            beliefs.predict(arrays, t, m, P, work)
            beliefs.condition(m, P, hidden, seen, observation, False, work, loglik, b * LANES)
        increment = reweigh(log_weights, loglik, now)
        if math.isnan(increment):
            return -1 - t
        record.increments[t] = increment
        record.ess[t] = effective_sample_size(now)
        mixture_mean(now, mean, record.mean[t + 1])
        if t + 1 == x.shape[0] - 1:
            break
        asked = how.schedule[t]
        due = record.ess[t] < how.threshold * particles if asked < 0 else asked > 0
        record.resampled[t] = due
        if not due:
            continue
        if scheme == OUTSIDE:
            return t + 1
        ancestors = record.ancestors[t + 1]
        resampling_uniforms(key, how.origin + t, uniforms)
        resample(scheme, now, uniforms, ancestors)
        inherit(ancestors, mean, cov, log_weights)
    return stop


@kernel
def inherit(ancestors, mean, cov, log_weights):
    """Give every particle the belief of its ancestor, and equal weights.

    ``ancestors (n,)`` are reordered so that survivors keep their slots (see `settle`).
    """
    settle(ancestors)
    refill(ancestors, mean)
    refill(ancestors, cov)
    log_weights[:] = -math.log(log_weights.shape[0])


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
def mixture_mean(weights, mean, out):
    """sum_i w_i m_i into ``out (M,)``, of beliefs whose means are in bundles."""
    particles = weights.shape[0]
    for k in range(out.shape[0]):
        total = 0.0
        for b in range(mean.shape[0]):
            for lane in range(min(LANES, particles - b * LANES)):
                w = weights[b * LANES + lane]
                # the mean of a dead particle may be infinite
                total += w * mean[b, k * LANES + lane] if w > 0.0 else 0.0
        out[k] = total
