"""Resampling keeps expected numbers of offspring; the schemes differ in noise only."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from palrnn import resample
from palrnn.inference.kernels.resampling import settle

SCHEMES = ("multinomial", "systematic", "stratified", "residual")


def offspring(weights, n, rng, scheme):
    return np.bincount(resample(weights, n, rng, scheme=scheme), minlength=len(weights))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_expected_number_of_offspring_is_proportional_to_the_weight(scheme):
    rng = np.random.default_rng(0)
    weights = np.array([0.0, 0.31, 0.02, 0.5, 0.17, 0.0])
    counts = np.array([offspring(weights, 10, rng, scheme) for _ in range(20_000)])
    # the variance of a count is at most n w (1 - w); four standard errors of the mean over 20,000 runs
    np.testing.assert_array_less(
        abs(counts.mean(axis=0) - 10 * weights), 4 * np.sqrt(10 * weights * (1 - weights) / 20_000) + 1e-12
    )


@pytest.mark.parametrize("scheme", ["systematic", "residual"])
def test_whole_shares_are_met(scheme):
    rng = np.random.default_rng(1)
    weights = rng.dirichlet(np.ones(20))
    for _ in range(200):
        assert (offspring(weights, 50, rng, scheme) >= np.floor(50 * weights - 1e-9)).all()


def test_the_other_schemes_are_less_noisy_than_multinomial():
    weights = np.random.default_rng(1).dirichlet(np.ones(20))
    noise = {}
    for scheme in SCHEMES:
        rng = np.random.default_rng(2)
        noise[scheme] = np.var([offspring(weights, 20, rng, scheme) for _ in range(2000)], axis=0).sum()
    assert all(noise[scheme] < 0.8 * noise["multinomial"] for scheme in SCHEMES[1:])


@given(
    weights=arrays(np.float64, st.integers(1, 30), elements=st.floats(0.0, 1e3)).filter(
        lambda w: w.sum() > 0
    ),
    n=st.integers(1, 60),
    scheme=st.sampled_from(SCHEMES),
    seed=st.integers(0, 1000),
)
def test_only_indices_with_weight_are_drawn(weights, n, scheme, seed):
    ancestors = resample(weights, n, np.random.default_rng(seed), scheme=scheme)
    assert ancestors.shape == (n,)
    assert (weights[ancestors] > 0).all()


@given(st.lists(st.integers(0, 19), min_size=20, max_size=20))
def test_settling_keeps_the_offspring_and_leaves_survivors_in_place(parents):
    before = np.array(parents, dtype=np.int32)
    after = before.copy()
    survivors = settle(after)
    np.testing.assert_array_equal(np.sort(after), np.sort(before))
    assert survivors == len(set(parents))
    assert all(after[k] == k for k in set(parents))


def test_bad_arguments_are_named():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="weights must be non-negative with a positive sum"):
        resample([0.0, 0.0], 3, rng)
    with pytest.raises(ValueError, match=r"scheme must be one of multinomial, .*got 'bootstrap'"):
        resample([1.0], 3, rng, scheme="bootstrap")
