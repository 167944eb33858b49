"""What the future of a gate path says about the present state: a Gaussian message in information form.

Given its gates and their noisy inputs u, a path is a linear Gaussian chain, in which u_t = z_gated,t + gate
noise is an observation like x_t. Up to a factor that does not depend on z_t,

    p(u_t, u_{t+1}, ..., x_{t+1}, ..., x_T | z_t) = exp(-z_t^T Omega_t z_t / 2 + lambda_t^T z_t),

and (Omega, lambda) is carried from t + 1 to t (the backward information filter of Mayne, 1966, and Fraser and
Potter, 1969). It exists where the future says nothing, as at the end, Omega = 0; a covariance does not.
Matrices are padded to D, a multiple of 8 (see `PathArrays`).
"""

from __future__ import annotations

import math

import numpy as np

from palrnn.engine.kernel import kernel
from palrnn.inference.kernels.one_belief import bias, transition
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
    vector -= np.dot(Omega, bias(system, t))
    for i in range(dim):
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
    np.dot(Y.T, Y, K)
    vector[:] = np.dot(Jt, np.dot(K, vector))
    for i in range(dim):
        for j in range(dim):
            K[i, j] = -K[i, j]
        K[i, i] += 1.0
    np.dot(Jt, K, Y)
    np.dot(Y, Jt.T, Omega)
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
