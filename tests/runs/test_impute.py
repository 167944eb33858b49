"""Gaps filled in by the smoother: against the Gaussian posterior, and calibrated where the model is right."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.networks import random_network

from palrnn import PALRNN, Standardizer
from palrnn.runs import Reconstruction


def linear_model():
    return PALRNN(random_network(3, 2, 0, seed=1, gain=0.5), 0.4, 0.3, 0.1)


def with_gaps(x, share, seed=0):
    lost = np.random.default_rng(seed).random(x.shape) < share
    lost[0] = False
    return np.where(lost, np.nan, x)


def gaussian_posterior(model, x):
    """Mean and deviation of what was not seen given what was, from the joint Gaussian of all observations."""
    (J, b), T, N = model.drift.affine(np.zeros(0, bool)), len(x), 2
    mean, blocks = [model.drift.embed(x[0])], [model.initial_covariance]
    for _ in range(T - 1):
        mean.append(J @ mean[-1] + b)
        blocks.append(J @ blocks[-1] @ J.T + model.process_covariance)
    cov = np.zeros((T, N, T, N))
    for t in range(T):
        part = blocks[t]
        for s in range(t, T):
            cov[s, :, t, :] = part[:N, :N]
            cov[t, :, s, :] = part[:N, :N].T
            part = J @ part
        cov[t, :, t, :] += model.observation_covariance
    centre, values = np.array(mean)[:, :N].ravel(), x.ravel()
    cov, known = cov.reshape(T * N, T * N), ~np.isnan(values)
    known[:N] = False  # the first row is where the chain starts, not an observation
    lost = np.isnan(values)
    gain = np.linalg.solve(cov[np.ix_(known, known)], cov[np.ix_(known, lost)]).T
    found = centre[lost] + gain @ (values[known] - centre[known])
    left = cov[np.ix_(lost, lost)] - gain @ cov[np.ix_(known, lost)]
    return found, np.sqrt(np.diag(left))


@pytest.mark.parametrize("observation", [0.3, [[0.25, 0.2], [0.2, 0.25]]])
def test_without_gates_gaps_get_the_gaussian_posterior(observation):
    model = linear_model().with_noise(observation=observation)
    x = with_gaps(model.sample([0.1, 0.2], 14, seed=2).observations, 0.3)
    units = Standardizer([1.0, -2.0], [2.0, 3.0])
    raw = units.inverse(x)
    found = Reconstruction(model, units, raw).impute(particles=1, paths=1, states_per_path=20_000)
    mean, std = gaussian_posterior(model, x)
    lost = np.isnan(x)
    scale = np.broadcast_to(units.std, x.shape)[lost]
    # 20,000 independent draws: four standard errors of a mean; quantiles of a normal to a few of theirs
    assert np.abs(units.transform(found.values)[lost] - mean).max() < 4 * std.max() / np.sqrt(20_000)
    np.testing.assert_allclose((found.high - found.low)[lost] / scale, 2 * 1.6449 * std, rtol=0.05)
    np.testing.assert_array_equal(found.values[~lost], raw[~lost])
    np.testing.assert_array_equal(found.low[~lost], raw[~lost])
    assert "filled in, 90% bands from 20000 draws" in repr(found)


def test_bands_hold_what_was_lost_as_often_as_they_say():
    model = PALRNN(random_network(5, 2, 2, seed=4, gain=0.6), 0.3, 0.2, 0.3)
    whole = model.sample([0.1, 0.2], 500, seed=3).observations
    x = with_gaps(whole, 0.3, seed=3)
    units = Standardizer(np.zeros(2), np.ones(2))
    found = Reconstruction(model, units, x).impute(particles=128, paths=32, states_per_path=8)
    held = (found.low <= whole) & (whole <= found.high)
    # 300 values: 90 % give or take three standard errors
    assert found.missing.sum() > 250
    assert held[found.missing].mean() == pytest.approx(0.9, abs=0.06)
    # better than the mean of what was seen
    errors = (found.values - whole)[found.missing]
    assert np.square(errors).mean() < 0.8 * np.nanvar(x, axis=0).mean()


def test_rows_before_the_first_whole_one_stay_gaps():
    model = linear_model()
    x = model.sample([0.1, 0.2], 10, seed=2).observations
    x[:3, 1] = x[6] = np.nan
    found = Reconstruction(model, Standardizer(np.zeros(2), np.ones(2)), x).impute(particles=1, paths=2)
    assert np.isnan(found.values[:3, 1]).all()
    assert np.isfinite(found.values[3:]).all()
    with pytest.raises(ValueError, match="x must have a row without gaps to start from"):
        Reconstruction(model, Standardizer(np.zeros(2), np.ones(2))).impute(x[:3])
    with pytest.raises(ValueError, match="coverage must be greater than 0"):
        Reconstruction(model, Standardizer(np.zeros(2), np.ones(2))).impute(x, coverage=0.0)
