"""Parts of a series keep order, contiguity and the paper's window boundaries."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palrnn.data import subsequences, train_test_split, windows


def _series(steps, dim=2):
    return np.arange(steps * dim, dtype=float).reshape(steps, dim)


@given(st.integers(4, 300), st.floats(0.01, 0.9))
def test_the_split_keeps_every_step_once_and_in_order(steps, fraction):
    x = _series(steps)
    train, test = train_test_split(x, fraction)
    np.testing.assert_array_equal(np.concatenate([train, test]), x)
    assert min(len(train), len(test)) >= 2
    assert abs(len(test) - fraction * steps) <= 2


def test_the_default_split_is_four_to_one():
    train, test = train_test_split(_series(1000))
    assert (len(train), len(test)) == (800, 200)


def test_the_parts_are_copies():
    x = _series(10)
    train, _ = train_test_split(x)
    train[0, 0] = 99
    assert x[0, 0] == 0


@pytest.mark.parametrize("fraction", [0.0, 0.95, -1, np.nan])
def test_a_fraction_outside_its_range_is_named(fraction):
    with pytest.raises(ValueError, match="test_fraction must be"):
        train_test_split(_series(10), fraction)


@given(st.integers(2, 60), st.integers(1, 59))
def test_windows_are_the_papers(steps, length):
    x = _series(steps)
    if length >= steps:
        with pytest.raises(ValueError, match=rf"x must be \(T, N\) with T >= {length + 1}"):
            windows(x, length)
        return
    found = windows(x, length)
    # t_k = 1 + (k - 1) L with t_k + L <= T, in 1-based time
    starts = [t for t in range(1, steps + 1, length) if t + length <= steps]
    assert found.shape == (len(starts), length + 1, 2)
    for window, start in zip(found, starts, strict=True):
        np.testing.assert_array_equal(window, x[start - 1 : start + length])
    # every scored step belongs to one window
    scored = found[:, 1:].reshape(-1, 2)
    np.testing.assert_array_equal(scored, x[1 : 1 + len(starts) * length])


def test_missing_values_stay_in_their_windows():
    x = _series(7)
    x[3] = np.nan
    assert np.isnan(windows(x, 3)[:, -1]).tolist() == [[True, True], [False, False]]
    assert np.isnan(windows(x, 3)[1, 0]).all()


def test_subsequences_are_contiguous_stretches_drawn_uniformly():
    x = _series(20)
    drawn = subsequences(x, 8000, 5, seed=3)
    assert drawn.shape == (8000, 5, 2)
    starts = (drawn[:, 0, 0] / 2).astype(int)
    np.testing.assert_array_equal(drawn, np.stack([x[s : s + 5] for s in starts]))
    counts = np.bincount(starts, minlength=16)
    assert len(counts) == 16  # the last stretch is reached, and none beyond
    # chi-squared with 15 degrees of freedom exceeds 40 with probability 5e-4
    assert ((counts - 500) ** 2 / 500).sum() < 40


def test_subsequences_depend_on_the_seed():
    x = _series(50)
    one = subsequences(x, 10, 5, seed=1)
    assert subsequences(x, 10, 5, seed=1).tobytes() == one.tobytes()
    assert not np.array_equal(subsequences(x, 10, 5, seed=2), one)


def test_a_subsequence_may_be_the_whole_series():
    np.testing.assert_array_equal(subsequences(_series(6), 2, 6), np.stack([_series(6)] * 2))


@pytest.mark.parametrize(
    ("count", "length", "message"),
    [
        (0, 3, "count must be >= 1"),
        (3, 1, "length must be from 2 to 6"),
        (3, 7, "length must be from 2 to 6, got 7"),
    ],
)
def test_impossible_subsequences_are_named(count, length, message):
    with pytest.raises(ValueError, match=message):
        subsequences(_series(6), count, length)


def test_subsequences_for_training_have_no_gaps():
    x = _series(6)
    x[2, 0] = np.nan
    with pytest.raises(ValueError, match="x must be finite, got nan"):
        subsequences(x, 2, 3)
