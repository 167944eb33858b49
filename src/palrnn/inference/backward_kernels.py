"""Rao-Blackwellised backward simulation: gate paths that need not follow the filter's family tree.

Tracing ancestors keeps to the paths that survived resampling, of which the early part is soon one and the
same. Backward simulation draws anew, at every time, which particle's past the drawn future belongs to, in
proportion to

    w_t^i  int N(z; m_t^i, P_t^i) p(u_t, ..., u_{T-1}, x_{t+1}, ..., x_T | z_t = z) dz,

the particle's weight times the agreement of its belief with the message of the future (Lindsten, Bunch,
Sarkka, Schon and Godsill, 2016). The state is integrated out on both sides: only gates and their inputs are
drawn.
"""

from __future__ import annotations

import math

import numpy as np

from palrnn.engine.kernel import kernel
from palrnn.inference import bundle_kernels as bundle
from palrnn.inference.filter_kernels import EXACT, refill, reweigh
from palrnn.inference.match_kernels import agreement, in_coordinates, line, precision_form
from palrnn.inference.message_kernels import look_back
from palrnn.inference.noise_kernels import GATES, fill_normals, stream_key
from palrnn.inference.resampling_kernels import cumulated, pick
from palrnn.inference.tile_kernels import LANES


@kernel
def replay(system, target, key, x, start, stop, resampled, ancestors, mean, cov, log_weights, room, kept):
    """Take transitions t = start, ..., stop - 1 of all particles once more, as the filter did.

    ``mean``, ``cov`` and ``log_weights`` are changed in place (see `filter_steps`); ``kept`` receives the
    inputs drawn in each transition, and beliefs and weights after it, before resampling (see `Kept`), as far
    as it has room.
    """
    particles, bundles = log_weights.shape[0], mean.shape[0]
    observation, gate, hidden = system.observation, system.gate, system.hidden
    free = system.J.shape[1] - gate.shape[0]
    inputs, seen = room.gates[free:], np.empty((x.shape[1], LANES))
    loglik, weights = np.empty(bundles * LANES), np.empty(particles)
    for t in range(start, stop):
        keeping, gate_key = t - start < kept.mean.shape[0], stream_key(key, t, GATES)
        for n in range(x.shape[1]):
            seen[n] = x[t + 1, n]
        for b in range(bundles):
            m, P = mean[b], cov[b]
            fill_normals(gate_key, b, inputs)
            if target == EXACT:
                bundle.condition(m, P, free, inputs, gate, True, room, loglik, b * LANES)
            else:
                bundle.draw_marginals(m, P, free, inputs, gate)
            if keeping:
                kept.inputs[t - start, b] = inputs
            bundle.predict(system, m, P, room)
            bundle.condition(m, P, hidden, seen, observation, False, room, loglik, b * LANES)
            if keeping:
                kept.mean[t - start, b] = m
                kept.cov[t - start, b] = P
        reweigh(log_weights, loglik, weights)
        if keeping:
            kept.log_weights[t - start] = log_weights
        if resampled[t]:
            log_weights[:] = -math.log(particles)
            refill(ancestors[t + 1], mean)
            refill(ancestors[t + 1], cov)


@kernel
def simulate_back(system, basis, x, codes, start, stop, kept, uniforms, lineages, inputs, Omega, vector):
    """Draw the slots of transitions t = stop - 1, ..., start of S paths, given what follows.

    ``lineages (S, T-1)`` and ``inputs (S, T-1, P)`` are filled from ``stop`` - 1 down; ``Omega (S, D, D)``
    and ``vector (S, D)`` hold the message of what follows z_{stop+1}, and then that of what follows
    z_{start+1}. ``codes (T-1, n, words)`` are the filter's, ``uniforms (S, T-1)`` decide.
    """
    paths, steps = lineages.shape
    bundles, dim = kept.mean.shape[1], Omega.shape[1]
    latent = system.latent_dim
    Jt, S, Y, K = np.empty((dim, dim)), np.empty((dim, dim)), np.empty((dim, dim)), np.empty((dim, dim))
    size = line(latent + 1)
    precision, rows, own = np.empty(size), np.empty(size), np.empty(bundles * LANES)
    messages, scores = np.empty((paths, size // LANES)), np.zeros((paths, bundles * LANES))
    for t in range(stop - 1, start - 1, -1):
        at = t - start
        if t + 1 < steps:
            for s in range(paths):
                words = codes[t + 1, lineages[s, t + 1]]
                look_back(system, words, x[t + 2], inputs[s, t + 1], Omega[s], vector[s], Jt, S, Y, K)
                in_coordinates(Omega[s], vector[s], basis, latent, messages[s], Y, K)
            for b in range(bundles):
                precision_form(kept.mean[at, b], kept.cov[at, b], latent, rows, precision, own, b * LANES)
                for s in range(paths):
                    agreement(precision, own, messages[s], latent, rows, scores[s], b * LANES)
        for s in range(paths):
            slot = drawn(scores[s], kept.log_weights[at], uniforms[s, t])
            lineages[s, t] = slot
            inputs[s, t] = kept.inputs[at, slot // LANES, :, slot % LANES]


@kernel
def drawn(scores, log_weights, uniform):
    """An index i with probability proportional to exp(scores_i + log_weights_i), or 0 where that is NaN."""
    particles, top = log_weights.shape[0], -math.inf
    weights = np.empty(particles)
    for i in range(particles):
        weights[i] = scores[i] + log_weights[i]
        if weights[i] > top:
            top = weights[i]
    for i in range(particles):
        chance = math.exp(weights[i] - top)
        weights[i] = chance if chance >= 0.0 else 0.0
    return pick(cumulated(weights), uniform)
