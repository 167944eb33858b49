"""Smoothing in plain NumPy, for every kind of model: given a gate path all is linear and Gaussian.

Forward, a Kalman filter is run again along each path; every step leaves a backward kernel

    z_t | z_{t+1}, past ~ N(m_t + A_t (z_{t+1} - J_t m_t - b_t), F_t F_t^T),

where N(m_t, P_t) is the belief that the path's gates and the data up to t leave. With P_t = U^T U and
Q = C C^T,

    V = U J^T C^(-T),    I + V V^T = L L^T,    F^T = L^(-1) U,    A^T = C^(-T) (L^(-1) V)^T F^T .

No covariance is inverted and nothing is subtracted: the only matrix that is solved with has eigenvalues of at
least 1. Backward, states are drawn (`sampled_states`), or their moments are computed (`smoothed_moments`).
The compiled twin, for AL-RNNs, is `kernels.smoothing`; both draw the same states from the same numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palrnn.engine.checks import Floats
from palrnn.inference.record import Filtered
from palrnn.inference.reference import (
    Beliefs,
    condition,
    gate_noise,
    gates_of,
    initial_beliefs,
    observe,
    predict,
    pushed_affine,
    roots,
    times,
    transposed,
)
from palrnn.model import PALRNN


class PathBeliefs(NamedTuple):
    """What walks along S gate paths keep, per time.

    ``filtered_mean (T, S, M)``, ``filtered_cov (T, S, M, M)``: the belief over z_t given x_{1:t} and earlier
    gates. ``mean (T, S, M)``: the same given the gate of t too, where the target conditions on it.
    ``predicted (T, S, M)``: the mean of z_t before x_t. ``gain (T-1, S, M, M)`` and ``root (T, S, M, M)``: A
    and F of the backward kernels; the last root is that of the belief over z_T. ``log_likelihood (S,)``.
    """

    filtered_mean: Floats
    filtered_cov: Floats
    mean: Floats
    predicted: Floats
    gain: Floats
    root: Floats
    log_likelihood: Floats


def walk(
    model: PALRNN,
    x: Floats,
    codes: NDArray[np.bool_],
    gate_inputs: Floats | None = None,
    drive: Floats | None = None,
) -> PathBeliefs:
    """Run the Kalman filter along the gate paths ``codes (S, T-1, P)``.

    Beliefs are conditioned on the noisy ``gate_inputs (S, T-1, P)``, if there are any, as under the exact
    target; without, on nothing but the data. ``drive (T, M)`` is C s_t, if the model has inputs.
    """
    paths, steps, dim = codes.shape[0], codes.shape[1], model.drift.latent_dim
    Q, C = model.process_covariance, model.process.root(dim)
    gates, beliefs = gates_of(model), initial_beliefs(model, x[0], paths)
    mean, predicted = np.empty((2, steps + 1, paths, dim))
    gain, root = np.empty((steps, paths, dim, dim)), np.empty((steps + 1, paths, dim, dim))
    filtered, log_likelihood = [beliefs], np.zeros(paths)
    for t in range(steps):
        if gate_inputs is not None:
            beliefs, _, _ = condition(beliefs, gates.G, gates.g, gates.covariance, value=gate_inputs[:, t])
        J, b = pushed_affine(model, codes[:, t], None if drive is None else drive[t])
        mean[t] = beliefs.mean
        gain[t], root[t] = backward_kernel(beliefs, J, C)
        beliefs = predict(beliefs, J, b, Q)
        predicted[t + 1] = beliefs.mean
        beliefs, increment = observe(beliefs, model, x[t + 1])
        log_likelihood += increment
        filtered.append(beliefs)
    mean[steps], root[steps] = beliefs.mean, roots(beliefs.cov)[0]
    return PathBeliefs(
        np.stack([belief.mean for belief in filtered]),
        np.stack([belief.cov for belief in filtered]),
        mean,
        predicted,
        gain,
        root,
        log_likelihood,
    )


def traced_inputs(filtered: Filtered, lineages: NDArray[np.int32], codes: NDArray[np.bool_]) -> Floats:
    """Return the inputs ``(S, T-1, P)`` that a filter with the exact target drew along its lineages.

    ``lineages (S, T-1)`` are slots of the filter, ``codes (S, T-1, P)`` their gates. The noise is made again.
    """
    model, x, n, drive = filtered.model, filtered.x, filtered.particles, filtered.drive
    gates, beliefs = gates_of(model), initial_beliefs(model, x[0], len(lineages))
    inputs = np.empty(codes.shape)
    with np.errstate(all="ignore"):  # an explosion is noticed by those who ask for states
        for t, slots in enumerate(lineages.T):
            noise = gate_noise(filtered.key, t, n, model.drift.gated)[slots]
            beliefs, inputs[:, t], _ = condition(beliefs, gates.G, gates.g, gates.covariance, noise=noise)
            J, b = pushed_affine(model, codes[:, t], None if drive is None else drive[t])
            beliefs = predict(beliefs, J, b, model.process_covariance)
            beliefs, _ = observe(beliefs, model, x[t + 1])
    return inputs


def backward_kernel(beliefs: Beliefs, J: Floats, C: Floats) -> tuple[Floats, Floats]:
    """Return A and F of z_t | z_{t+1} ~ N(m + A (z_{t+1} - J m - b), F F^T), with Q = C C^T.

    F F^T is P - A (J P J^T + Q) A^T, and A is P J^T (J P J^T + Q)^(-1).
    """
    unit = np.eye(J.shape[-1])
    whiten = np.linalg.solve(C, unit)
    U = transposed(roots(beliefs.cov)[0])
    V = U @ transposed(J) @ whiten.T
    _, inverse = roots(unit + V @ transposed(V))
    Ft = inverse @ U
    At = whiten.T @ transposed(inverse @ V) @ Ft
    return transposed(At), transposed(Ft)


def sampled_states(path: PathBeliefs, noise: Floats) -> Floats:
    """Return draws of z_1, ..., z_T given each path, from standard normal ``noise (S, K, T, M)``.

    z_T = m_T + F_T e_T,  z_t = m_t + A_t (z_{t+1} - predicted_{t+1}) + F_t e_t.
    """
    states = np.empty_like(noise)
    times = noise.shape[2]
    for t in range(times - 1, -1, -1):
        states[:, :, t] = path.mean[t][:, None] + noise[:, :, t] @ transposed(path.root[t])
        if t + 1 < times:
            ahead = states[:, :, t + 1] - path.predicted[t + 1][:, None]
            states[:, :, t] += ahead @ transposed(path.gain[t])
    return states


def smoothed_moments(path: PathBeliefs) -> tuple[Floats, Floats, Floats]:
    """Return E z_t, Cov z_t and Cov(z_t, z_{t+1}) given each path and all data (Rauch, Tung, Striebel, 1965).

    Shapes ``(T, S, M)``, ``(T, S, M, M)``, ``(T-1, S, M, M)``; P^s_t = A P^s_{t+1} A^T + F F^T.
    """
    mean = path.mean.copy()
    cov = path.root @ transposed(path.root)
    lagged = np.empty_like(path.gain)
    for t in range(len(lagged) - 1, -1, -1):
        lagged[t] = path.gain[t] @ cov[t + 1]
        cov[t] += lagged[t] @ transposed(path.gain[t])
        mean[t] += times(path.gain[t], mean[t + 1] - path.predicted[t + 1])
    return mean, cov, lagged
