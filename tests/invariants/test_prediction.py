from __future__ import annotations

import numpy as np
import pytest

from palrnn import ALRNN, PALRNN, prediction_error, valid_prediction_time


def _model(seed=0):
    rng = np.random.default_rng(seed)
    W = 0.3 * rng.standard_normal((5, 5))
    return ALRNN(rng.uniform(0.2, 0.8, 5), W, 0.1 * rng.standard_normal(5), rng.standard_normal((5, 2)), 2)


def test_every_start_and_horizon_is_the_plain_loop():
    model = _model()
    x = np.random.default_rng(1).standard_normal((40, 2))
    total = np.zeros(6)
    for t in range(40 - 6):
        z = model.embed(x[t])
        for ahead in range(6):
            z = model.step(z)
            total[ahead] += np.mean((z[:2] - x[t + ahead + 1]) ** 2)
    # sums in another order
    np.testing.assert_allclose(prediction_error(model, x, 6).mse, total / 34, rtol=1e-12)


def test_chunks_do_not_change_the_result(monkeypatch):
    model, x = _model(), np.random.default_rng(2).standard_normal((100, 2))
    whole = prediction_error(model, x, 3).mse
    monkeypatch.setattr("palrnn.invariants.prediction._CHUNK", 7)
    np.testing.assert_allclose(prediction_error(model, x, 3).mse, whole, rtol=1e-12)


def test_the_true_model_predicts_without_error():
    model = ALRNN([0.5, 0.2], [[0.1, 0.4], [-0.6, 0.3]], [0.2, 0.1], np.eye(2), 1)
    x = model.rollout([1.0, -1.0], 60).states
    result = prediction_error(model, x, 10, lyapunov=1.0, horizon=30)
    assert result.mse.max() < 1e-28  # rounding of contracting steps
    assert result.censored == 1.0
    assert result.valid_time == pytest.approx(30 * 0.01)


def test_the_valid_time_of_a_known_error_growth():
    # truth stays on a circle of radius 1, the forecast of the zero map is 0: the error is 1 at once
    angle = 0.1 * np.arange(300)
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    zero = ALRNN(np.zeros(2), np.zeros((2, 2)), np.zeros(2), np.eye(2), 0)
    assert prediction_error(zero, circle, 5, lyapunov=1.0).valid_time == 0.0
    # the right rotation, too fast: after n steps the phase is off by 0.02 n, the error is 2 sin(0.01 n)
    c, s = np.cos(0.12), np.sin(0.12)
    fast = ALRNN(np.zeros(2), [[c, -s], [s, c]], np.zeros(2), np.eye(2), 0)
    result = prediction_error(fast, circle, 5, dt=0.5, lyapunov=0.3, threshold=0.4, horizon=200)
    # the deviation of a circle is 1 up to its incomplete last turn: 2 sin(0.01 n) > 0.4 first at n = 21
    spread = np.sqrt(circle.var(axis=0).sum())
    last = np.floor(100 * np.arcsin(0.2 * spread))
    np.testing.assert_array_equal(result.valid_steps, last)
    assert result.valid_time == pytest.approx(last * 0.5 * 0.3)


def test_an_unstable_model_has_an_infinite_error_and_no_warning():
    wild = ALRNN([1e60], [[0.0]], [0.0], [[1.0]], 0)
    result = prediction_error(wild, np.sin(np.arange(50.0)) + 2, 20)
    assert result.mse[-1] == np.inf
    assert not np.isnan(result.mse).any()
    assert result.valid_steps.max() == 0


def test_a_palrnn_is_judged_by_its_drift():
    model, x = _model(), np.random.default_rng(3).standard_normal((50, 2))
    noisy = PALRNN(model, 0.5, 0.5, 0.5)
    np.testing.assert_array_equal(prediction_error(noisy, x).mse, prediction_error(model, x).mse)


def test_errors_name_the_argument():
    x = np.zeros((10, 2))
    with pytest.raises(ValueError, match=r"x must be \(T, N\) with T >= 21"):
        prediction_error(_model(), x, 20)
    with pytest.raises(ValueError, match="lyapunov must be greater than 0"):
        prediction_error(_model(), x, 2, lyapunov=-1.0)


def _parted(rate, dt, start, steps):
    """A truth at rest and a forecast whose error grows as start * exp(rate t), in three coordinates."""
    error = start * np.exp(rate * dt * np.arange(1, steps + 1))
    direction = np.array([2.0, -1.0, 2.0]) / 3.0
    return error[:, None] * direction, np.zeros((steps, 3))


@pytest.mark.parametrize(("rate", "dt", "start"), [(0.9, 0.01, 1e-3), (2.0, 0.05, 1e-2), (0.05, 1.0, 0.1)])
def test_the_valid_time_of_an_exponentially_growing_error_is_its_closed_form(rate, dt, start):
    forecast, truth = _parted(rate, dt, start, 2000)
    scale = np.array([3.0, 0.0, 4.0])
    # start exp(rate t) = 0.4 |scale| is reached at t = log(0.4 * 5 / start) / rate; the last step before it
    reached = np.log(2.0 / start) / rate
    last = np.floor(reached / dt) * dt
    how = {"dt": dt, "scale": scale}
    assert valid_prediction_time(forecast, truth, **how) == pytest.approx(last, abs=1e-9)
    assert valid_prediction_time(forecast, truth, lyapunov=rate, **how) == pytest.approx(rate * last)
    # a system whose errors grow at its own exponent is predicted for log(0.4 |scale| / start) Lyapunov times
    counted = valid_prediction_time(forecast, truth, lyapunov=rate, **how)
    assert abs(counted - np.log(2.0 / start)) <= rate * dt


def test_a_forecast_that_returns_to_the_truth_was_still_of_no_use():
    truth = np.sin(0.1 * np.arange(1, 101))[:, None]
    forecast = truth.copy()
    forecast[30] += 10.0
    assert valid_prediction_time(forecast, truth) == 30.0
    assert valid_prediction_time(truth, truth, dt=0.5) == 50.0
    assert valid_prediction_time(truth + 10.0, truth) == 0.0


def test_gaps_are_not_compared_and_what_diverged_is_of_no_use():
    truth = np.sin(0.1 * np.arange(1, 101))[:, None]
    forecast, seen = truth.copy(), truth.copy()
    forecast[30], seen[30] = 10.0, np.nan
    assert valid_prediction_time(forecast, seen) == 100.0
    forecast[60:] = np.nan
    assert valid_prediction_time(forecast, seen) == 60.0


def test_one_start_of_the_prediction_error_is_the_same_number():
    model, x = _model(3), np.random.default_rng(5).standard_normal((60, 2))
    found = prediction_error(model, x, 1, dt=0.1, lyapunov=0.7, threshold=2.0, horizon=40, starts=1)
    rollout = model.rollout(x[0], 41).states[1:, :2]
    alone = valid_prediction_time(rollout, x[1:41], dt=0.1, lyapunov=0.7, threshold=2.0, scale=x.std(axis=0))
    assert found.valid_time == pytest.approx(alone, rel=1e-12)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"forecast": np.zeros((4, 2))}, "forecast must have the shape of truth"),
        ({"truth": np.zeros(5)}, r"truth must be \(n, N\)"),
        ({"lyapunov": 0.0}, "lyapunov must be"),
        ({"threshold": -1.0}, "threshold must be"),
        ({"scale": np.ones(3)}, "scale must"),
    ],
)
def test_bad_arguments_of_the_valid_time_are_named(changes, message):
    given = {"forecast": np.zeros((5, 2)), "truth": np.zeros((5, 2)), **changes}
    with pytest.raises(ValueError, match=message):
        valid_prediction_time(**given)


def test_a_series_shorter_than_the_horizon_is_still_judged_from_many_starts():
    model = ALRNN([0.5, 0.2], [[0.1, 0.4], [-0.6, 0.3]], [0.2, 0.1], np.eye(2), 1)
    found = prediction_error(model, model.rollout([1.0, -1.0], 401).states, 10, horizon=1000)
    assert (found.horizon, len(found.valid_steps)) == (200, 200)
