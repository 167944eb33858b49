import numpy as np
import pytest

from palrnn.data import Standardizer
from palrnn.geometry import ITFOperator, invariant_error_bars, laplace
from palrnn.invariants import quantities_of_interest
from palrnn.model import ALRNN, PALRNN


def small_model(seed=0):
    rng = np.random.default_rng(seed)
    weights = 0.3 * rng.standard_normal((3, 3))
    return ALRNN(
        rng.uniform(0.1, 0.6, 3), weights, 0.3 * rng.standard_normal(3), rng.standard_normal((3, 1)), 1
    )


def information(size, rank, seed=0):
    factor = 3.0 * np.random.default_rng(seed).standard_normal((rank, size))
    return factor.T @ factor


def test_samples_have_the_inverse_of_information_plus_prior_as_their_covariance():
    model, matrix = small_model(), information(15, 8)
    posterior = laplace(model, matrix, prior_std=0.5)
    expected = np.linalg.inv(matrix + np.eye(15) / 0.25)
    draws = posterior.sample_theta(200_000) - model.theta
    # entries of a sample covariance of n draws are off by sqrt(2 / n) of the variances, here 0.3%; five of
    # those
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    assert np.abs((np.cov(draws.T) - expected) / scale).max() < 5 * np.sqrt(2 / 200_000)
    np.testing.assert_allclose(posterior.std, np.sqrt(np.diag(expected)), rtol=1e-9)
    assert posterior.effective_dimensions == pytest.approx(np.trace(matrix @ expected), rel=1e-9)


def test_leading_eigenpairs_are_enough_when_the_rest_is_silent():
    model, rng = small_model(), np.random.default_rng(1)
    operator = ITFOperator(model, rng.standard_normal((5, 1)), 2, 0.3)
    full = laplace(model, 5 * operator.dense(), prior_std=0.2)
    values, vectors = operator.leading(operator.max_rank)
    few = laplace(model, (5 * values, vectors), prior_std=0.2)
    np.testing.assert_allclose(few.std, full.std, rtol=1e-9)
    np.testing.assert_allclose(few.sample_theta(3), full.sample_theta(3), atol=1e-9)


def test_negative_curvature_is_clipped_counted_and_left_to_the_prior():
    matrix = np.diag([4.0] * 13 + [-7.0, -1.0])
    posterior = laplace(small_model(), matrix, prior_std=0.5)
    assert posterior.clipped == 2
    np.testing.assert_allclose(posterior.std[-2:], 0.5)
    np.testing.assert_allclose(posterior.std[:13], 1 / np.sqrt(4.0 + 4.0))
    assert "2 clipped" in repr(posterior)


def test_models_are_drawn_around_the_drift_of_a_palrnn_with_its_embedding():
    drift = small_model()
    posterior = laplace(PALRNN(drift, 0.1, 0.1, 0.1), information(15, 15), prior_std=1e-3)
    models = posterior.sample(4, seed=3)
    assert len(models) == 4
    for model in models:
        assert np.array_equal(model.E, drift.E)
        assert 0 < np.abs(model.theta - drift.theta).max() < 0.01
    assert np.array_equal(models[1].theta, posterior.sample(4, seed=3)[1].theta)


def test_error_bars_are_the_invariants_of_the_drawn_models():
    model, rng = small_model(), np.random.default_rng(0)
    reference = rng.standard_normal((300, 1)) * 2.0 + 1.0
    standardizer = Standardizer.fit(reference)
    posterior = laplace(model, information(15, 6), prior_std=0.02)
    settings = {"standardizer": standardizer, "steps": 200, "discard": 10, "dt": 0.1}
    bars = invariant_error_bars(posterior, reference, draws=3, seed=2, **settings)
    for i, drawn in enumerate([model, *posterior.sample(3, seed=2)]):
        found = quantities_of_interest(drawn, reference, seed=2, **settings)
        pair = bars.at_mean if i == 0 else (bars.lyapunov[i - 1], bars.dstsp[i - 1])
        assert pair == (found.lyapunov.largest, found.dstsp.value)
    low, high = bars.interval("lyapunov", 1.0)
    assert (low, high) == (bars.lyapunov.min(), bars.lyapunov.max())
    assert bars.diverged == 0
    assert "90%" in repr(bars)


def test_sharper_curvature_gives_narrower_error_bars():
    model, rng = small_model(), np.random.default_rng(0)
    reference = rng.standard_normal((300, 1))
    widths = []
    for scale in (1.0, 1e4):
        posterior = laplace(model, scale * information(15, 15), prior_std=0.1)
        bars = invariant_error_bars(posterior, reference, draws=16, steps=200, discard=10)
        low, high = bars.interval("lyapunov")
        widths.append(high - low)
    # a hundred times smaller deviations, and the exponent of a contracting map is smooth in its parameters
    assert widths[1] < 0.1 * widths[0]


def test_draws_that_run_away_are_counted_not_averaged():
    model = ALRNN([0.95, 0.95], np.zeros((2, 2)), [0.1, 0.1], [[1.0], [1.0]], 1)
    posterior = laplace(model, np.zeros((8, 8)), prior_std=0.5)
    reference = np.random.default_rng(0).standard_normal((300, 1))
    bars = invariant_error_bars(posterior, reference, draws=20, steps=2000, discard=0)
    assert 0 < bars.diverged < 20
    assert bars.diverged == np.isnan(bars.dstsp).sum()
    assert np.isfinite(bars.interval("lyapunov")).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prior_std": 0.0}, "prior_std must be greater than 0"),
        ({"information": np.eye(3)}, r"information must be \(15, 15\)"),
        ({"information": (np.ones(2), np.ones((15, 3)))}, r"eigenvectors must be \(15, 2\)"),
    ],
)
def test_wrong_arguments_are_named(change, message):
    arguments = {"model": small_model(), "information": np.eye(15), "prior_std": 1.0} | change
    with pytest.raises(ValueError, match=message):
        laplace(**arguments)
