"""Textbook Kalman filter and RTS smoother with explicit inverses, for a PAL-RNN with its gates given."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Answer(NamedTuple):
    log_likelihood: float
    filtered_mean: np.ndarray
    filtered_cov: np.ndarray
    mean: np.ndarray
    cov: np.ndarray


def transition(model, code):
    drift = model.drift
    gate = np.concatenate([np.ones(drift.latent_dim - drift.gated), np.asarray(code, dtype=float)])
    return np.diag(drift.A) + drift.W @ np.diag(gate)


def log_normal(x, mean, cov):
    if len(x) == 0:
        return 0.0
    deviation = x - mean
    return -0.5 * (
        len(x) * np.log(2 * np.pi) + np.linalg.slogdet(cov)[1] + deviation @ np.linalg.inv(cov) @ deviation
    )


def start(model, x):
    return model.drift.embed(x[0]), np.diag(model.initial_variances)


def step(model, mean, cov, code, observation):
    """Predict with the gates of ``code``, update with ``observation`` (NaN: not observed)."""
    J = transition(model, code)
    mean, cov = J @ mean + model.drift.h, J @ cov @ J.T + np.diag(model.process_variances)
    seen = np.flatnonzero(~np.isnan(observation))
    H = np.eye(len(mean))[seen]
    S = H @ cov @ H.T + np.diag(model.observation_variances[seen])
    loglik = log_normal(observation[seen], H @ mean, S)
    gain = cov @ H.T @ np.linalg.inv(S)
    after = mean + gain @ (observation[seen] - H @ mean)
    shrunk = np.eye(len(mean)) - gain @ H
    joseph = shrunk @ cov @ shrunk.T + gain @ np.diag(model.observation_variances[seen]) @ gain.T
    return after, joseph, loglik


def given_gates(model, x, codes) -> Answer:
    mean, cov = start(model, x)
    means, covs, loglik = [mean], [cov], 0.0
    for t in range(len(x) - 1):
        mean, cov, increment = step(model, mean, cov, codes[t], x[t + 1])
        means.append(mean)
        covs.append(cov)
        loglik += increment
    smooth_mean, smooth_cov = [means[-1]], [covs[-1]]
    for t in range(len(x) - 2, -1, -1):
        J = transition(model, codes[t])
        predicted = J @ covs[t] @ J.T + np.diag(model.process_variances)
        gain = covs[t] @ J.T @ np.linalg.inv(predicted)
        smooth_mean.append(means[t] + gain @ (smooth_mean[-1] - J @ means[t] - model.drift.h))
        smooth_cov.append(covs[t] + gain @ (smooth_cov[-1] - predicted) @ gain.T)
    return Answer(
        loglik, np.array(means), np.array(covs), np.array(smooth_mean[::-1]), np.array(smooth_cov[::-1])
    )
