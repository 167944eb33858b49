"""The posterior of the exact observed information, where it is known, and what it leaves out."""

import numpy as np
import pytest

from palrnn.geometry import observed_posterior
from palrnn.model import ALRNN, PALRNN

TRUTH = np.array([[0.8, 0.25], [-0.3, 0.6]])


def series(seed, steps, process=0.3):
    rng, x = np.random.default_rng(seed), np.zeros((steps + 100, 2))
    for t in range(1, len(x)):
        x[t] = TRUTH @ x[t - 1] + process * rng.standard_normal(2)
    return x[100:]


def fitted(x):
    regressors = np.column_stack([x[:-1], np.ones(len(x) - 1)])
    found = np.linalg.lstsq(regressors, x[1:], rcond=None)[0].T
    return ALRNN(np.zeros(2), found[:, :2], found[:, 2], np.eye(2), 0)


def linear_part(theta):
    return theta[:, 2:6].reshape(-1, 2, 2) + theta[:, :2, None] * np.eye(2)


def test_of_states_without_noise_it_is_that_of_regression():
    x = series(0, 81)
    model, process = fitted(x), 0.3
    found = observed_posterior(PALRNN(model, process, 1e-4, 0.1), x, window=80, windows=1)
    # A_ii and W_ii are one parameter of an ungated unit: two of eight directions are null
    assert (len(found.values), found.negative, found.null) == (6, 0, 2)
    regressors = np.column_stack([x[:-1], np.ones(80)])
    covariance = process**2 * np.linalg.inv(regressors.T @ regressors)
    h = found.std[6:]
    np.testing.assert_allclose(h, np.sqrt(covariance[2, 2]), rtol=1e-4)
    draws = linear_part(found.sample_theta(40_000, seed=1))
    expected = np.sqrt(np.diag(covariance)[:2])
    # 40,000 draws know a deviation to 0.35 %; four of those
    np.testing.assert_allclose(draws.std(axis=0), np.tile(expected, (2, 1)), rtol=0.015)
    np.testing.assert_allclose(
        draws.mean(axis=0), linear_part(model.theta[None])[0], atol=0.02 * expected.max()
    )


def test_windows_stand_for_all_rows():
    x = series(1, 1201)
    known = PALRNN(fitted(x), 0.3, 0.05, 0.1)
    whole = observed_posterior(known, x, window=60, windows=20)
    part = observed_posterior(known, x, window=60, windows=5)
    # a quarter of the rows knows second moments to some ten per cent
    np.testing.assert_allclose(part.std, whole.std, rtol=0.3)
    gaps = x.copy()
    gaps[::7] = np.nan
    # six of seven rows are left, and a gap costs the steps to either side
    wider = observed_posterior(known, gaps, window=60, windows=20).std / whole.std
    assert (wider[2:] > 1.0).all()
    assert (wider[2:] < 1.6).all()


def test_intervals_hold_and_would_not_if_they_were_scaled():
    held = {factor: [] for factor in (0.7, 1.0, 1.5)}
    for seed in range(160):
        x = series(seed, 401)
        found = observed_posterior(PALRNN(fitted(x), 0.3, 1e-3, 0.1), x, window=50, windows=8)
        draws = linear_part(found.sample_theta(1000, seed=seed))
        middle = np.median(draws, axis=0)
        low, high = np.quantile(draws, [0.05, 0.95], axis=0) - middle
        error = TRUTH - middle
        for factor, shares in held.items():
            shares.append(((factor * low < error) & (error < factor * high)).mean())
    # four intervals of a series depend on each other; taken as two, 320 have a binomial error of 0.017
    off = {factor: abs(np.mean(shares) - 0.9) for factor, shares in held.items()}
    assert off[1.0] < 2.5 * 0.017
    assert min(off[0.7], off[1.5]) > 2.5 * 0.017


def test_a_drift_alone_is_moved_to_the_maximum_with_its_noise():
    x = series(2, 800) + 0.2 * np.random.default_rng(0).standard_normal((800, 2))
    found = observed_posterior(fitted(x), x)
    # forced models contract where observations are noisy
    assert np.abs(linear_part(found.model.theta[None]) - TRUTH).max() < 0.12
    assert found.palrnn.observation.typical_std == pytest.approx(0.2, rel=0.2)
    assert "2 null left out" in repr(found)
    np.testing.assert_array_equal(found.sample_theta(3, seed=5), found.sample_theta(3, seed=5))
    one, two = (model.theta for model in found.sample(2, seed=5))
    assert (one != two).any()


def test_directions_that_the_likelihood_bends_the_other_way_are_counted():
    # a hidden unit that nothing says anything about
    rng = np.random.default_rng(3)
    model = ALRNN(rng.uniform(0.2, 0.6, 3), 0.3 * rng.standard_normal((3, 3)), rng.standard_normal(3),
                  rng.standard_normal((3, 2)), 1)  # fmt: skip
    x = series(3, 150)
    found = observed_posterior(PALRNN(model, 0.3, 0.2, 0.1), x, window=40, windows=2)
    assert found.negative + found.null + len(found.values) == model.theta.size
    assert found.negative > 0
    assert (found.values > 1.0).all()
    # no draw moves along what is left out
    steps = found.sample_theta(20) - model.theta
    np.testing.assert_allclose(steps @ found.vectors @ found.vectors.T, steps, atol=1e-12)


def test_wrong_arguments_are_named():
    x = series(4, 120)
    with pytest.raises(ValueError, match="least must be greater than 0"):
        observed_posterior(fitted(x), x, least=0.0)
    with pytest.raises(ValueError, match="window must be"):
        observed_posterior(fitted(x), x, window=1)
    driven = ALRNN(np.zeros(2), np.eye(2) * 0.5, np.zeros(2), np.eye(2), 0, np.ones((2, 1)))
    with pytest.raises(ValueError, match="model must have noise"):
        observed_posterior(driven, x)
    empty = np.full((120, 2), np.nan)
    empty[-1] = 0.0
    with pytest.raises(ValueError, match="x must have a row without a gap"):
        observed_posterior(PALRNN(fitted(x), 0.3, 0.2, 0.1), empty)
