"""Delay embedding puts the right past beside each present."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial import cKDTree

from palrnn.data import Standardizer, delay_embed, lorenz63


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
