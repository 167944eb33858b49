"""Windowed evidence: the mean over windows of what the filter says, whatever the number of threads."""

import numpy as np
import pytest
from oracles.plain_kalman import given_gates
from oracles.small_models import drawn_series, gated_model

from palrnn import FilterDiedError, windowed_evidence


@pytest.fixture(scope="module")
def example():
    model = gated_model(3, observed=2, latent=6, seed=4)
    return model, drawn_series(model, 101)


def test_without_gates_it_is_the_kalman_likelihood_of_each_window():
    model = gated_model(0, observed=2, latent=5)
    x = drawn_series(model, 34)
    evidence = windowed_evidence(model, x, 8, particles=3)
    # 33 steps hold 4 windows of 8, each with its left boundary
    expected = [
        given_gates(model, x[8 * k : 8 * k + 9], np.zeros((8, 0))).log_likelihood / (8 * 2) for k in range(4)
    ]
    np.testing.assert_allclose(evidence.per_window, expected, atol=1e-12)
    assert evidence.mean == pytest.approx(np.mean(expected))
    assert evidence.stderr == pytest.approx(np.std(expected, ddof=1) / 2)
    assert "4 windows of length 8" in repr(evidence)


def test_the_number_of_threads_changes_nothing(example):
    model, x = example
    runs = [windowed_evidence(model, x, 10, particles=32, threads=n).per_window for n in (1, 2, 5)]
    for run in runs[1:]:
        np.testing.assert_array_equal(runs[0], run)


def test_picked_windows_keep_their_values(example):
    model, x = example
    everything = windowed_evidence(model, x, 10, particles=32, seed=2).per_window
    some = windowed_evidence(model, x, 10, windows=4, particles=32, seed=2).per_window
    assert len(everything) == 10
    assert len(some) == 4
    assert set(some) <= set(everything)
    assert len(set(some)) == 4


def test_several_sequences_are_pooled(example):
    model, x = example
    stacked = windowed_evidence(model, np.stack([x[:41], x[60:]]), 10, particles=8).per_window
    listed = windowed_evidence(model, [x[:41], x[60:]], 10, particles=8).per_window
    np.testing.assert_array_equal(stacked, listed)
    assert len(stacked) == 8


def test_a_window_that_cannot_be_explained_is_named(example):
    model, x = example
    sure = type(model)(model.drift, 1e-5, 1e-5, 0.5)
    wild = x.copy()
    wild[37] = 1e150
    with pytest.raises(FilterDiedError, match=r"window 3: all 8 particles died at step 7 of 10"):
        windowed_evidence(sure, wild, 10, particles=8)


def test_a_window_starts_at_the_next_row_without_a_gap(example):
    model, x = example
    gap = x.copy()
    gap[20, 0] = gap[33] = np.nan
    found = windowed_evidence(model, gap, 10, particles=16)
    # windows from rows 0, 10, 21, 31, 41, ...: the one of row 20 starts a row later, and with it all after it
    starts = [0, 10, *range(21, len(x) - 10, 10)]
    alone = [windowed_evidence(model, gap[t : t + 11], 10, particles=16).mean for t in starts]
    assert len(found.per_window) == len(starts)
    # the first window has the same random stream alone
    assert found.per_window[0] == alone[0]
    assert np.isfinite(found.per_window).all()


def test_bad_arguments_are_named(example):
    model, x = example
    gap = np.where(np.arange(x.shape[1]) == 0, np.nan, x)
    cases = {
        r"sequences must have a row without gaps that 10 rows follow, has none": ((model, gap, 10), {}),
        "windows must be from 1 to 10, got 11": ((model, x, 10), {"windows": 11}),
        "threads must be >= 1": ((model, x, 10), {"threads": 0}),
        r"sequences must be \(T, N\) with T >= 11": ((model, [], 10), {}),
        "length must be >= 1": ((model, x, 0), {}),
        r"sequences\[1\] must be \(T, N\) with T >= 11": ((model, [x, x[:5]], 10), {}),
    }
    for message, (arguments, options) in cases.items():
        with pytest.raises(ValueError, match=message):
            windowed_evidence(*arguments, **options)
