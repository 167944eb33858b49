"""Every way to a posterior is called alike, and gives the same kind of thing."""

import numpy as np
import pytest

from palrnn.geometry import POSTERIORS, ModelDraws, gibbs_posterior, model_bars, parameter_posterior
from palrnn.model import ALRNN, PALRNN

TRUTH = np.array([[0.8, 0.25], [-0.3, 0.6]])


@pytest.fixture(scope="module")
def data():
    rng, x = np.random.default_rng(0), np.zeros((600, 2))
    for t in range(1, len(x)):
        x[t] = TRUTH @ x[t - 1] + 0.3 * rng.standard_normal(2)
    return x


@pytest.fixture(scope="module")
def model(data):
    regressors = np.column_stack([data[:-1], np.ones(len(data) - 1)])
    found = np.linalg.lstsq(regressors, data[1:], rcond=None)[0].T
    return ALRNN(np.zeros(2), found[:, :2], found[:, 2], np.eye(2), 0)


@pytest.mark.parametrize("method", POSTERIORS)
def test_model_and_data_in_draws_out(method, model, data):
    found = parameter_posterior(model, data, method, forcing=1)
    assert isinstance(found, ModelDraws)
    assert type(found.model) is type(model)
    assert found.std.shape == (model.theta.size,)
    assert (found.std >= 0.0).all()
    draws = found.sample_theta(400, seed=3)
    assert draws.shape == (400, model.theta.size)
    np.testing.assert_array_equal(draws, found.sample_theta(400, seed=3))
    assert (draws[:2] != found.sample_theta(2, seed=4)).any()
    np.testing.assert_array_equal([each.theta for each in found.sample(400, seed=3)], draws)
    # 400 draws know a deviation to 3.5 %, that of heavy tails less well
    seen = found.std > 1e-9
    np.testing.assert_allclose(draws.std(axis=0)[seen], found.std[seen], rtol=0.2)
    # all are about the same four numbers here, where observations are clean
    middle = found.model.theta[2:6].reshape(2, 2) + np.diag(found.model.theta[:2])
    assert np.abs(middle - TRUTH).max() < 0.12
    part = draws[:, 2:6].reshape(-1, 2, 2) + draws[:, :2, None] * np.eye(2)
    assert (part.std(axis=0) < 0.1).all()
    bars = model_bars(found, data, count=3, steps=100, discard=20, dt=1.0)
    assert np.isfinite(bars.interval("exponent 1")).all()


@pytest.mark.parametrize("method", POSTERIORS)
def test_a_model_with_noise_is_taken_as_well(method, model, data):
    known = PALRNN(model, 0.3, 0.05, 0.1)
    found = parameter_posterior(known, data, method, forcing=1)
    assert type(found.model) is type(model)
    assert len(found.sample(2)) == 2


def test_forcing_is_asked_for_where_it_matters(model, data):
    with pytest.raises(ValueError, match="forcing must be given: sandwich is of the loss"):
        parameter_posterior(model, data, "sandwich")
    # the likelihood, by default: two directions of A and W, and two deviations of next to no noise
    assert parameter_posterior(model, data).unidentified == 4
    with pytest.raises(ValueError, match="method must be one of likelihood, observed"):
        parameter_posterior(model, data, "luck")
    with pytest.raises(TypeError):
        gibbs_posterior(model, data)


def test_settings_reach_the_method(model, data):
    wide, narrow = (
        parameter_posterior(model, data, "laplace", forcing=1, prior_std=p).std.max() for p in (1.0, 0.01)
    )
    assert wide > 10 * narrow
    hidden = ALRNN(np.full(3, 0.5), np.zeros((3, 3)), np.zeros(3), np.eye(3, 2), 0)
    priors = [gibbs_posterior(each, data, forcing=1).prior_std for each in (model, hidden)]
    assert priors == [0.1, 0.01]
