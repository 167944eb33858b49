"""Scores and bands of sampled forecasts."""

import numpy as np
import pytest
from scipy import integrate, stats

from palrnn import BandCalibration, Forecast


@pytest.fixture
def forecast():
    return Forecast(np.random.default_rng(0).standard_normal((50, 4, 2)))


def test_crps_is_the_integral_over_the_distribution_function(forecast):
    truth = np.random.default_rng(1).standard_normal((4, 2))
    scores = forecast.crps(truth)
    for t, n in np.ndindex(4, 2):
        ordered = np.sort(forecast.paths[:, t, n])
        edges = np.sort(np.append(ordered, truth[t, n]))
        middle = 0.5 * (edges[1:] + edges[:-1])
        F = np.searchsorted(ordered, middle) / 50
        integral = np.sum(np.diff(edges) * (F - (middle >= truth[t, n])) ** 2)
        assert scores[t, n] == pytest.approx(integral, abs=1e-13)


def test_crps_of_many_gaussian_draws_is_the_closed_form():
    # Gneiting and Raftery (2007): y (2 Phi(y) - 1) + 2 phi(y) - 1 / sqrt(pi)
    draws = Forecast(stats.norm.ppf((np.arange(20_000) + 0.5) / 20_000)[:, None, None])
    for y in (-1.5, 0.0, 0.7):
        closed = y * (2 * stats.norm.cdf(y) - 1) + 2 * stats.norm.pdf(y) - 1 / np.sqrt(np.pi)
        assert draws.crps([[y]])[0, 0] == pytest.approx(closed, abs=1e-4)
    error, _ = integrate.quad(lambda v: stats.norm.cdf(v) ** 2, -12, 0)
    assert draws.crps([[0.0]])[0, 0] == pytest.approx(2 * error, abs=1e-4)


def test_quantiles_are_those_of_numpy(forecast):
    for q in (0.0, 0.05, 0.5, 0.93, 1.0):
        np.testing.assert_allclose(forecast.quantile(q), np.quantile(forecast.paths, q, axis=0), atol=1e-15)
    np.testing.assert_allclose(forecast.mean, forecast.paths.mean(axis=0), atol=1e-15)


def test_diverged_paths_are_counted_and_not_hidden(forecast):
    paths = forecast.paths.copy()
    paths[3, 2:] = np.nan
    broken = Forecast(paths)
    assert broken.diverged == 1
    assert "1 diverged" in repr(broken)
    np.testing.assert_allclose(broken.quantile(0.3), np.nanquantile(paths, 0.3, axis=0), atol=1e-15)
    score = broken.crps(np.zeros((4, 2)))
    assert np.isfinite(score[:2]).all()
    assert np.isposinf(score[2:]).all()
    gone = Forecast(np.full((5, 2, 1), np.nan))
    assert np.isnan(gone.mean).all()
    np.testing.assert_array_equal(gone.coverage([[0.0], [np.nan]]), [[0.0], [np.nan]])


def test_what_paths_vary_by_is_said_and_stays_in_bands_that_are_calibrated(forecast):
    assert repr(forecast) == "Forecast(50 paths of 4 steps, 2 coordinates)"
    one = Forecast(forecast.paths, ("state", "process noise"))
    assert repr(one).endswith("2 coordinates; they vary by state, process noise; parameters are fixed)")
    many = Forecast(forecast.paths, ("state", "parameters (3 models by varied)"))
    assert repr(many).endswith("; they vary by state, parameters (3 models by varied))")
    wider = BandCalibration(np.full(4, 2.0), 0.9, 10)(many)
    assert wider.varies == many.varies


def test_bad_truth_is_refused(forecast):
    with pytest.raises(ValueError, match=r"truth must have shape \(4, 2\)"):
        forecast.crps(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="level must"):
        forecast.band(1.5)


def test_crps_is_that_of_scoringrules(forecast):
    import scoringrules  # takes seconds, which other tests need not wait for

    truth = np.random.default_rng(2).standard_normal((4, 2))
    ensemble = np.moveaxis(forecast.paths, 0, -1)
    expected = scoringrules.crps_ensemble(truth, ensemble, estimator="nrg", backend="numpy")
    np.testing.assert_allclose(forecast.crps(truth), expected, rtol=1e-10)


def test_the_valid_time_is_that_of_the_mean_over_paths():
    # two paths at distance 0.1 exp(0.5 t) on one side of a truth at rest, and at a third of that
    error = 0.1 * np.exp(0.5 * 0.1 * np.arange(1, 101))
    found = Forecast(np.stack([error, error / 3.0])[:, :, None])
    # the mean is off by (2/3) of it, which is 0.4 at t = log(0.6 / 0.1) / 0.5
    last = np.floor(np.log(6.0) / 0.5 / 0.1) * 0.1
    truth = np.zeros((100, 1))
    assert found.valid_time(truth, dt=0.1, scale=[1.0]) == pytest.approx(last)
    assert found.valid_time(truth, 0.5, 0.1, scale=[1.0]) == pytest.approx(0.5 * last)
    with pytest.raises(ValueError, match="lyapunov must be"):
        found.valid_time(truth, -0.5, 0.1)
