"""The conditional particle filter with ancestor sampling: one particle is told which path to take.

A particle filter in which one of the particles follows a given path, and in which the past of that path is
drawn anew at every step, leaves the smoothing distribution as it is, however few the particles (Andrieu,
Doucet and Holenstein, 2010; Lindsten, Jordan and Schon, 2014): if the given path is a draw from it, so is the
path that comes out. The past is drawn as in backward simulation, by the agreement of beliefs with the message
of the given future, which is Gaussian. Given its gates and their noisy inputs u, a path is a linear Gaussian
chain, in which u_t = z_gated,t + gate noise is an observation like x_t. Up to a factor without z_t,

    p(u_t, u_{t+1}, ..., x_{t+1}, ..., x_T | z_t) = exp(-z_t^T Omega_t z_t / 2 + lambda_t^T z_t),

and (Omega, lambda) is carried from t + 1 to t (the backward information filter of Mayne, 1966, and Fraser and
Potter, 1969). It exists where the future says nothing, as at the end, Omega = 0; a covariance does not.
Matrices are padded to D, a multiple of 8 (see `PathArrays`).
"""

from __future__ import annotations

import math

import numpy as np

from palrnn.engine.kernel import kernel
from palrnn.engine.products import copy, product
from palrnn.engine.vector_code import LANES
from palrnn.inference.kernels import beliefs as bundle
from palrnn.inference.kernels.filter_loop import refill, reweigh
from palrnn.inference.kernels.match import agreement, in_coordinates, line, precision_form
from palrnn.inference.kernels.noise import GATES, RESAMPLING, fill_normals, fill_uniforms, stream_key
from palrnn.inference.kernels.one_belief import WORD, bias, transition
from palrnn.inference.kernels.resampling import cumulated, multinomial, pick, settle
from palrnn.inference.kernels.smoothing import factorise, solve_transposed

# the least variance of the gate noise, as a share of the process noise: hard gates would say infinitely much
LEAST_GATE = 1e-8


@kernel
def look_back(system, t, words, x, inputs, Omega, vector, Jt, S, Y, K):
    """Carry the message ``Omega (D, D)``, ``vector (D,)`` from t + 1 to t, in place.

    First x_{t+1} joins, ``x (N,)``, NaN where it was not observed; then z_{t+1} = J z_t + h_t + N(0, Q) is
    integrated out, with J given by the code in ``words`` and h_t by `bias`; then u_t joins, ``inputs (P,)``,
    NaN where gates say nothing about the state:

        Omega <- J^T Q^(-1/2) (I - S^(-1)) Q^(-1/2) J,    S = I + Q^(1/2) Omega Q^(1/2),
        lambda <- J^T Q^(-1/2) S^(-1) Q^(1/2) (lambda - Omega h_t).

    ``Jt, S, Y, K (D, D)`` are scratch.
    """
    dim, latent, gated = Omega.shape[0], system.latent_dim, system.gate.shape[0]
    for n in range(x.shape[0]):
        if not math.isnan(x[n]):
            Omega[n, n] += 1.0 / system.observation[n]
            vector[n] += x[n] / system.observation[n]
    transition(system, words, Jt)
    one, other = np.empty(dim), np.empty(dim)
    product(Omega, bias(system, t), one)
    for i in range(dim):
        vector[i] -= one[i]
        # Q^(1/2) = Q Q^(-1/2)
        root = system.process[i] * system.precision[i]
        vector[i] *= root
        for j in range(dim):
            S[i, j] = root * Omega[i, j] * system.process[j] * system.precision[j]
            Y[i, j] = 0.0
            Jt[i, j] *= system.precision[j]
        S[i, i] += 1.0
        Y[i, i] = 1.0
    factorise(S)
    # S^(-1) = Y^T Y
    solve_transposed(S, Y)
    product(Y.T, Y, K)
    product(K, vector, one)
    product(Jt, one, other)
    copy(other, vector)
    for i in range(dim):
        for j in range(dim):
            K[i, j] = -K[i, j]
        K[i, i] += 1.0
    product(Jt, K, Y)
    product(Y, Jt.T, Omega)
    for i in range(dim):
        # a product may round its two triangles differently
        for j in range(i):
            Omega[i, j] = Omega[j, i]
    for j in range(gated):
        if not math.isnan(inputs[j]):
            k = latent - gated + j
            variance = max(system.gate[j], LEAST_GATE * system.process[k])
            Omega[k, k] += 1.0 / variance
            vector[k] += inputs[j] / variance


@kernel
def path_messages(system, basis, x, path, messages):
    """Fill ``messages (T-1, size)``: row t has the message about z_t of u_t, x_{t+1}, u_{t+1}, ... on a path.

    ``path (T-1, P)`` has the inputs u; the message is about the filter's coordinates (see `in_coordinates`).
    """
    dim, latent = basis.shape[0], system.latent_dim
    Jt, S, Y, K = np.empty((dim, dim)), np.empty((dim, dim)), np.empty((dim, dim)), np.empty((dim, dim))
    Omega, vector = np.zeros((dim, dim)), np.zeros(dim)
    gated = path.shape[1]
    words = np.empty(max(1, -(-gated // WORD)), dtype=np.uint64)
    for t in range(messages.shape[0] - 1, -1, -1):
        words[:] = 0
        for j in range(gated):
            words[j // WORD] |= np.uint64(path[t, j] > 0.0) << np.uint64(j % WORD)
        look_back(system, t, words, x[t + 1], path[t], Omega, vector, Jt, S, Y, K)
        in_coordinates(Omega, vector, basis, latent, messages[t], Y, K)


@kernel
def whiten(mean, cov, lane, first, values, variances, out):
    """Write e to lane ``lane`` of ``out (n, LANES)`` such that drawing with e gives ``values (n,)``.

    y = m + C e, where C C^T is the covariance of y_n = z_{first+n} + N(0, variances_n) in that lane.
    """
    count = values.shape[0]
    C = np.empty((count, count))
    for i in range(count):
        e = values[i] - mean[(first + i) * LANES + lane]
        for j in range(i + 1):
            total = cov[bundle.place(first + j, first + i) + lane]
            if i == j:
                total += variances[i]
            for k in range(j):
                total -= C[i, k] * C[j, k]
            C[i, j] = total / C[j, j] if i > j else math.sqrt(max(total, 0.0))
        for k in range(i):
            e -= C[i, k] * out[k, lane]
        out[i, lane] = e / C[i, i] if C[i, i] > 0.0 else 0.0


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


@kernel
def sweep(system, key, x, messages, mean, cov, room, inputs, ancestors, path):
    """Filter with one particle on ``path (T-1, P)``, and put a path drawn from the outcome in its place.

    Every transition begins with resampling: n - 1 ancestors by weight, and one, that of the given path, by
    weight and agreement with ``messages (T-1, size)`` (see `path_messages`). ``mean`` and ``cov`` hold the
    beliefs about z_1 in bundles (see `initial_bundles`) and are changed in place; ``inputs (T-1, bundles, P,
    LANES)`` and ``ancestors (T-1, n)`` receive the filter's draws. Return whether some particle lived.
    """
    steps, particles = ancestors.shape
    bundles, dim = mean.shape[0], system.latent_dim
    observation, gate, hidden = system.observation, system.gate, system.hidden
    free, size = dim - gate.shape[0], line(dim + 1)
    gates, seen = room.gates[free:], np.empty((x.shape[1], LANES))
    loglik, own, scores = np.empty(bundles * LANES), np.empty(bundles * LANES), np.empty(bundles * LANES)
    precision, rows = np.empty(size), np.empty(size)
    weights, log_weights, uniforms = np.empty(particles), np.zeros(particles), np.empty(particles + 1)
    slot = 0
    for t in range(steps):
        if t > 0:
            fill_uniforms(stream_key(key, t - 1, RESAMPLING), uniforms)
            for b in range(bundles):
                precision_form(mean[b], cov[b], dim, rows, precision, own, b * LANES)
                agreement(precision, own, messages[t], dim, rows, scores, b * LANES)
            multinomial(weights, uniforms[:particles], ancestors[t])
            parent = drawn(scores, log_weights, uniforms[particles])
            ancestors[t, 0] = parent
            settle(ancestors[t])
            # children of one parent are alike: any of them may take the path
            slot = 0
            while ancestors[t, slot] != parent:
                slot += 1
            refill(ancestors[t], mean)
            refill(ancestors[t], cov)
            log_weights[:] = 0.0
        gate_key = stream_key(key, t, GATES)
        for n in range(x.shape[1]):
            seen[n] = x[t + 1, n]
        for b in range(bundles):
            fill_normals(gate_key, b, gates)
            if slot // LANES == b:
                whiten(mean[b], cov[b], slot % LANES, free, path[t], gate, gates)
            bundle.condition(mean[b], cov[b], free, gates, gate, True, room, loglik, b * LANES)
            if slot // LANES == b:
                # the same up to rounding, which must not change a sign
                copy(path[t], gates[:, slot % LANES])
            copy(gates, inputs[t, b])
            bundle.predict(system, t, mean[b], cov[b], room)
            bundle.condition(mean[b], cov[b], hidden, seen, observation, False, room, loglik, b * LANES)
        if math.isnan(reweigh(log_weights, loglik, weights)):
            return False
    fill_uniforms(stream_key(key, steps - 1, RESAMPLING), uniforms)
    slot = pick(cumulated(weights), uniforms[0])
    for t in range(steps - 1, -1, -1):
        copy(inputs[t, slot // LANES, :, slot % LANES], path[t])
        slot = ancestors[t, slot]
    return True
