"""Delay embedding puts the right past beside each present."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial import cKDTree

from palrnn.data import Standardizer, add_observation_noise, delay_embed, lorenz63, rossler, suggest_lags


@given(st.integers(1, 5), st.integers(1, 6), st.integers(1, 3), st.integers(2, 20))
def test_each_row_holds_the_present_and_its_past(lags, delay, dim, kept):
    steps = (lags - 1) * delay + kept
    x = np.random.default_rng(0).standard_normal((steps, dim))
    embedded = delay_embed(x, lags, delay)
    assert embedded.shape == (kept, lags * dim)
    for row in range(kept):
        now = row + (lags - 1) * delay
        expected = np.concatenate([x[now - k * delay] for k in range(lags)])
        np.testing.assert_array_equal(embedded[row], expected)


def test_one_lag_is_the_series_itself_and_a_vector_is_one_coordinate():
    np.testing.assert_array_equal(delay_embed(np.arange(4.0), 1), [[0], [1], [2], [3]])
    np.testing.assert_array_equal(delay_embed(np.arange(4.0), 3), [[2, 1, 0], [3, 2, 1]])


def test_gaps_are_carried_along():
    x = np.array([0.0, np.nan, 2.0, 3.0])
    np.testing.assert_array_equal(delay_embed(x, 2), [[np.nan, 0], [2, np.nan], [3, 2]])


@pytest.mark.parametrize(
    ("lags", "delay", "message"),
    [
        (0, 1, "lags must be >= 1"),
        (2, 0, "delay must be >= 1"),
        (4, 3, r"x must be \(T, N\) with T >= 11, got \(9,\)"),
    ],
)
def test_impossible_embeddings_are_named(lags, delay, message):
    with pytest.raises(ValueError, match=message):
        delay_embed(np.zeros(9), lags, delay)


def test_three_delays_of_one_lorenz_coordinate_tell_the_other_two():
    # Takens: the embedding determines the state, so its nearest neighbours predict the unobserved coordinates
    x = Standardizer.fit(full := lorenz63(6000, seed=2)).transform(full)

    def unexplained(lags):
        points = delay_embed(x[:, 0], lags, 9)
        hidden = x[len(x) - len(points) :, 1:]
        _, neighbours = cKDTree(points[:5000]).query(points[5000:])
        return np.mean((hidden[neighbours] - hidden[5000:]) ** 2)

    assert unexplained(1) > 0.1
    assert unexplained(3) < 0.01


def _henon(steps):
    x = np.zeros((steps, 2))
    for t in range(steps - 1):
        x[t + 1] = 1.0 - 1.4 * x[t, 0] ** 2 + x[t, 1], 0.3 * x[t, 0]
    return x[:, 0]


def _logistic(steps):
    x = np.full(steps, 0.3)
    for t in range(steps - 1):
        x[t + 1] = 3.9 * x[t] * (1.0 - x[t])
    return x


def _white(steps, memory=0.0):
    x = np.random.default_rng(3).standard_normal(steps)
    for t in range(steps - 1):
        x[t + 1] += memory * x[t]
    return x


@pytest.mark.parametrize(
    ("x", "delay", "lags"),
    [
        (lorenz63(12_000, seed=0)[:, 0], None, 3),  # a flow of dimension 2.06, its delay space of 3
        (add_observation_noise(lorenz63(12_000, seed=0), 0.05, seed=1)[:, 0], None, 3),
        (lorenz63(12_000, seed=0), None, 1),  # the whole state needs no past
        (rossler(12_000, seed=0)[:, 0], None, 3),
        (_henon(3000), None, 2),  # a map of the plane, told by its last two values
        (_logistic(3000), None, 1),  # a map of the line, which has no memory that is linear
        (np.sin(0.05 * np.arange(4000)), None, 2),
        (_white(3000), None, 1),
        (_white(3000, 0.9), 3, 1),  # an autoregression of order one
        ([_henon(800)[:, None], np.arange(4.0)[:, None], _henon(900)[:, None]], None, 2),
        (_white(30), 10, 1),  # too short to tell
        (np.zeros(500), 1, 1),
    ],
)
def test_as_many_lags_as_the_state_asks_for(x, delay, lags):
    assert suggest_lags(x, delay=delay) == lags


def test_lags_are_chosen_from_rows_whose_past_has_no_gap():
    x = _henon(3000)
    x[np.random.default_rng(0).random(3000) < 0.1] = np.nan
    assert suggest_lags(x) == 2
