"""The filter row by row is the filter of the whole series; its forecasts are those of the model."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from oracles.shallow_family import shallow_model
from oracles.small_models import drawn_series, gated_model

from palrnn import ALRNN, PALRNN, FilterDiedError, Forecast, Stepper, rbpf


@pytest.fixture(params=["fast", "plain"])
def example(request):
    model = gated_model(3, observed=2, latent=6, seed=4) if request.param == "fast" else shallow_model(seed=1)
    return model, drawn_series(model, 40)


@pytest.mark.parametrize("target", ["paper", "exact"])
@pytest.mark.parametrize("resampling", ["multinomial", "systematic"])
def test_row_by_row_is_the_whole_series_to_the_last_bit(example, target, resampling):
    model, x = example
    x = x.copy()
    x[7], x[11, 0] = np.nan, np.nan
    how = {"particles": 33, "seed": 5, "target": target, "resampling": resampling, "ess_threshold": 0.99}
    whole = rbpf(model, x, **how)
    assert whole.resampled.sum() > 5
    stepper = Stepper(model, x[0], **how)
    np.testing.assert_array_equal(stepper.mean, whole.mean[0])
    for t in range(len(x) - 1):
        assert stepper.update(x[t + 1]) == whole.increments[t]
        np.testing.assert_array_equal(stepper.gate_probability, whole.gate_probability[t])
        np.testing.assert_array_equal(stepper.mean, whole.mean[t + 1])
        assert stepper.ess == whole.ess[t]
    assert stepper.rows == len(x)
    assert stepper.log_evidence == whole.log_evidence


def linear_model(M=3, N=2, seed=0):
    """A linear model: no gates, so that forecasts are Gaussian, with moments of their own."""
    rng = np.random.default_rng(seed)
    W = 0.4 * rng.standard_normal((M, M))
    drift = ALRNN(
        A=np.full(M, 0.5), W=W - np.diag(np.diag(W)), h=0.1 * np.ones(M), E=np.zeros((M, N)), gated=0
    )
    return PALRNN(drift, 0.3, 0.2, 0.1)


def test_forecasts_of_a_linear_model_have_the_moments_of_kalman():
    model = linear_model()
    drift, x = model.drift, drawn_series(model, 30)
    stepper = Stepper(model, x[0], particles=1)
    J, B = np.diag(drift.A) + drift.W, np.eye(2, 3)
    Q, R = 0.09 * np.eye(3), 0.04 * np.eye(2)
    m, P = drift.embed(x[0]), model.initial_covariance
    for row in x[1:]:
        stepper.update(row)
        m, P = J @ m + drift.h, J @ P @ J.T + Q
        K = P @ B.T @ np.linalg.inv(B @ P @ B.T + R)
        m, P = m + K @ (row - B @ m), P - K @ B @ P
    paths = stepper.forecast(5, paths=20_000, seed=1).paths
    for t in range(5):
        m, P = J @ m + drift.h, J @ P @ J.T + Q
        S = B @ P @ B.T + R
        error = np.sqrt(np.diag(S) / len(paths))
        assert (np.abs(paths[:, t].mean(axis=0) - B @ m) < 4 * error).all()
        # a variance has a relative error of sqrt(2 / S)
        np.testing.assert_allclose(np.cov(paths[:, t].T), S, atol=5 * np.sqrt(2 / len(paths)) * S.max())


def test_bands_of_the_true_model_are_calibrated_and_would_not_be_if_they_were_scaled(example):
    model, _ = example
    series, held = 160, {0.7: [], 1.0: [], 1.5: []}
    for seed in range(series):
        x = model.sample(np.zeros(model.drift.observed_dim), 24, seed=seed).observations
        stepper = Stepper(model, x[0], particles=60, seed=seed, target="exact")
        for row in x[1:20]:
            stepper.update(row)
        ahead = stepper.forecast(4, paths=200, seed=seed)
        assert np.isfinite(ahead.crps(x[20:])).all()
        middle = ahead.quantile(0.5)
        for factor, shares in held.items():
            scaled = Forecast(middle + factor * (ahead.paths - middle))
            shares.append(scaled.coverage(x[20:], 0.8).mean())
    # rows of one series depend on each other; taken as one try each, a share has an error of 0.032
    off = {factor: abs(np.mean(shares) - 0.8) for factor, shares in held.items()}
    assert off[1.0] < 2.5 * np.sqrt(0.16 / series)
    assert min(off[0.7], off[1.5]) > 2.5 * np.sqrt(0.16 / series)


def test_drifts_take_turns(example):
    model, x = example
    still = model.drift.with_theta(0.0 * model.drift.theta)
    stepper = Stepper(model, x[0], particles=10)
    stepper.update(x[1])
    own, mixed = (stepper.forecast(6, paths=10, drifts=d).paths for d in (None, [model.drift, still]))
    np.testing.assert_array_equal(own[::2], mixed[::2])
    assert (own[1::2] != mixed[1::2]).all()


def test_memory_does_not_grow_and_a_dead_filter_stays_dead():
    model = gated_model(2, observed=2, latent=4, seed=1)
    stepper = Stepper(model, np.zeros(2), particles=8)
    tracemalloc.start()
    for k in range(3000):
        stepper.update(np.full(2, np.nan))  # nothing is seen: the evidence of nothing is 1
        if k == 100:
            early, _ = tracemalloc.get_traced_memory()
    late, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert late - early < 20_000  # bytes; one row of eight particles alone would be 500,000
    assert stepper.log_evidence == 0.0
    assert repr(stepper) == "Stepper(3001 rows, log evidence 0, 8 of 8 particles effective)"
    for _ in range(2):
        with pytest.raises(FilterDiedError, match=r"x\[3001\]"):
            stepper.update(np.full(2, 1e200))


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_a_million_rows_take_no_more_memory_than_the_first():
    model = gated_model(2, observed=2, latent=4, seed=1)
    x = model.sample(np.zeros(2), 2000, seed=1).observations
    stepper = Stepper(model, x[0], particles=8)
    sizes = []
    for k in range(1, 1_000_001):
        stepper.update(x[k % len(x)])
        if k % 100_000 == 0:
            sizes.append(int(Path("/proc/self/statm").read_text().split()[1]))
    # pages of 4 KB: a state of eight particles kept per row would be 250,000 of them
    assert sizes[-1] - sizes[0] < 500
    assert stepper.rows == 1_000_001


def test_bad_rows_are_refused(example):
    model, x = example
    with pytest.raises(ValueError, match="x0 must"):
        Stepper(model, np.full(model.drift.observed_dim, np.nan))
    stepper = Stepper(model, x[0], particles=4)
    with pytest.raises(ValueError, match="x must have shape"):
        stepper.update(np.zeros(7))
    with pytest.raises(ValueError, match="steps must"):
        stepper.forecast(0)
