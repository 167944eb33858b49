"""Autocorrelation against its definition and known processes; the forcing interval it suggests."""

from __future__ import annotations

import numpy as np
import pytest
from statsmodels.tsa.stattools import acf

from palrnn.data import add_observation_noise, autocorrelation, lorenz63, rossler, suggest_tau


def test_autocorrelation_equals_statsmodels():
    x = lorenz63(500)
    found = autocorrelation(x, 60)
    for i in range(3):
        np.testing.assert_allclose(found[:, i], acf(x[:, i], nlags=60, adjusted=True), atol=1e-10)


def test_gaps_and_ends_of_trials_are_left_out():
    rng = np.random.default_rng(0)
    trials = [rng.standard_normal((40, 2)), rng.standard_normal((25, 2)) + 1.0]
    trials[0][5:9, 1] = np.nan
    mean = np.nanmean(np.concatenate(trials), axis=0)
    expected = np.zeros((31, 2))
    for lag in range(31):
        for i in range(2):
            products = [
                (trial[t, i] - mean[i]) * (trial[t + lag, i] - mean[i])
                for trial in trials
                for t in range(len(trial) - lag)
            ]
            expected[lag, i] = np.nanmean(products)
    np.testing.assert_allclose(autocorrelation(trials, 30), expected / expected[0], atol=1e-12)


def test_an_offset_of_a_billion_does_no_harm():
    x = lorenz63(400)
    # subtracting 1e9 costs nine of sixteen digits
    np.testing.assert_allclose(autocorrelation(x + 1e9, 50), autocorrelation(x, 50), atol=1e-5)


def test_the_suggestion_is_the_half_life_of_a_first_order_process():
    rng = np.random.default_rng(1)
    for half_life in (5, 20):
        decay = 0.5 ** (1 / half_life)
        x = np.zeros((60_000, 3))
        for t in range(1, len(x)):
            x[t] = decay * x[t - 1] + rng.standard_normal(3)
        # counted from lag 1; the average of three long series knows its half-life to a tenth
        assert abs(suggest_tau(x) - (half_life + 1)) <= max(1, 0.1 * half_life)


def test_on_the_papers_lorenz_series_the_suggestion_is_the_papers_interval():
    assert suggest_tau(lorenz63(80_000)) in (16, 17)
    assert 14 <= suggest_tau(lorenz63(5000, seed=3)) <= 20
    assert 12 <= suggest_tau(rossler(20_000)) <= 18


def test_twice_the_sampling_rate_is_twice_the_interval():
    assert abs(suggest_tau(lorenz63(40_000, dt=0.005)) - 2 * suggest_tau(lorenz63(40_000))) <= 2


def test_observation_noise_hardly_moves_the_suggestion():
    x = lorenz63(20_000)
    assert abs(suggest_tau(add_observation_noise(x, 0.7, seed=1)) - suggest_tau(x)) <= 1


def test_a_series_without_memory_gets_one_and_one_that_never_forgets_the_most():
    assert suggest_tau(np.random.default_rng(0).standard_normal((5000, 2))) == 1
    logistic = np.empty(3000)
    logistic[0] = 0.3
    for t in range(1, 3000):
        logistic[t] = 3.99 * logistic[t - 1] * (1 - logistic[t - 1])
    assert suggest_tau(logistic) == 1
    assert suggest_tau(np.arange(10_000.0), most=64) == 64
    assert suggest_tau(lorenz63(20_000), most=8) == 8


def test_trials_are_pooled_for_the_suggestion():
    x = lorenz63(20_000)
    assert abs(suggest_tau(np.split(x, 20)) - suggest_tau(x)) <= 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: suggest_tau(np.zeros(100)), "x must vary in every column, column 0 is constant"),
        (lambda: suggest_tau(np.full(100, 0.1)), "x must vary in every column, column 0 is constant"),
        (lambda: suggest_tau([1.0, 2.0]), r"x must be \(T, N\) with T >= 4"),
        (lambda: suggest_tau(np.arange(9.0), level=1.0), "level must be from"),
        (lambda: suggest_tau(np.arange(9.0), most=0), "most must be >= 1"),
        (lambda: autocorrelation(np.arange(9.0), 9), "lags must be from 0 to 8, got 9"),
        (lambda: autocorrelation(np.full((9, 1), np.nan), 2), "x must hold values in every column"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_spikes_do_not_make_tau_as_short_as_themselves():
    """A spike of two steps every 70 is forgotten after two, but comes back: an eighth of the period is 8."""
    rng = np.random.default_rng(0)
    spikes = (np.arange(7000) % 70 < 2).astype(float) + 0.02 * rng.standard_normal(7000)
    assert suggest_tau(spikes[:, None]) == 8
    # without a period only the width is left
    irregular = np.zeros(7000)
    irregular[np.cumsum(rng.integers(30, 200, 55))] = 1.0
    assert suggest_tau((irregular + np.roll(irregular, 1))[:, None]) <= 3


def test_a_slow_oscillation_keeps_its_half_life():
    """The half-life of a sine is a sixth of its period, longer than an eighth."""
    x = np.sin(2 * np.pi * np.arange(6000) / 60)[:, None]
    assert suggest_tau(x) == 10 + 1
