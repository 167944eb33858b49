"""Smoothed gates and states against enumeration, exact moments and plain simulation."""

import numpy as np
import pytest
from oracles.gate_paths import (
    probit_smoothed_means,
    simulated,
    with_integrated_probit,
    with_orthant_probabilities,
)
from oracles.small_models import drawn_series, gated_model

from palrnn import path_posterior, rbpf, smooth
from palrnn.inference.config import SampleConfig
from palrnn.inference.smoothing import drawn_paths


@pytest.fixture(scope="module")
def tiny():
    model = gated_model(2, seed=8)
    return model, drawn_series(model, 4)


@pytest.mark.parametrize(
    ("target", "enumerated"), [("paper", with_integrated_probit), ("exact", with_orthant_probabilities)]
)
def test_smoothed_gate_marginals_equal_enumeration(tiny, target, enumerated):
    model, x = tiny
    filtered = rbpf(model, x, particles=20_000, target=target)
    codes = smooth(filtered, paths=10_000, seed=1, method="ancestors").codes
    # 10,000 draws from 20,000 weighted particles: standard error about 0.007, four of them
    np.testing.assert_allclose(codes.mean(axis=0), enumerated(model, x).gate_marginals, atol=0.028)


def test_smoothed_states_of_the_paper_are_the_mixture_of_smoothed_paths(tiny):
    model, x = tiny
    states = smooth(rbpf(model, x, particles=20_000), paths=10_000, seed=1).states
    # states have deviations below 0.7: standard error about 0.01, four of them
    np.testing.assert_allclose(states.mean(axis=(0, 1)), probit_smoothed_means(model, x), atol=0.04)


def test_smoothed_states_of_the_exact_target_are_those_of_the_simulated_model(tiny):
    model, x = tiny
    filtered = rbpf(model, x, particles=20_000, target="exact")
    states = smooth(filtered, paths=10_000, seed=1, method="ancestors").states
    runs = simulated(model, x, 1_000_000, seed=0)
    weights = runs.likelihood / runs.likelihood.sum()
    mean = np.tensordot(weights, runs.states, axes=1)
    spread = np.tensordot(weights, (runs.states - mean) ** 2, axes=1)
    # as above; the simulation has an effective size of tens of thousands
    np.testing.assert_allclose(states.mean(axis=(0, 1)), mean, atol=0.04)
    np.testing.assert_allclose(states.var(axis=(0, 1)), spread, atol=0.04)


def test_states_given_a_path_have_the_moments_of_the_rts_smoother():
    model = gated_model(3, observed=2, latent=6, seed=4)
    x = drawn_series(model, 12)
    drawn = smooth(rbpf(model, x, particles=50), paths=2, states_per_path=20_000, seed=3)
    for codes, states in zip(drawn.codes, drawn.states, strict=True):
        exact = path_posterior(model, x, codes)
        scale = np.sqrt(np.einsum("tii->ti", exact.cov))
        # 20,000 draws: 4.5 standard errors of a mean and of a correlation-like quantity, over 72 x 6 entries
        np.testing.assert_allclose((states.mean(axis=0) - exact.mean) / scale, 0.0, atol=0.032)
        centred = (states - exact.mean) / scale
        cov = np.einsum("kti,ktj->tij", centred, centred) / len(centred)
        np.testing.assert_allclose(cov, exact.cov / scale[:, :, None] / scale[:, None, :], atol=0.045)
        lag = np.einsum("kti,ktj->tij", centred[:, :-1], centred[:, 1:]) / len(centred)
        np.testing.assert_allclose(lag, exact.lag_cov / scale[:-1, :, None] / scale[1:, None, :], atol=0.045)


def test_hard_gates_have_the_sign_of_their_smoothed_states():
    # with gate_std = 0 the exact target conditions z_gated on itself: drawn states agree with their gates
    model = gated_model(3, observed=2, latent=6, gate_std=0.0, seed=4)
    drawn = smooth(rbpf(model, drawn_series(model, 20), target="exact"), paths=16, states_per_path=4, seed=3)
    for k in range(4):
        np.testing.assert_array_equal(drawn.states[:, k, :-1, 3:] > 0, drawn.codes)


def test_distinct_paths_coalesce_and_are_counted():
    model = gated_model(2)
    filtered = rbpf(model, drawn_series(model, 60), particles=40)
    drawn = smooth(filtered, paths=200, seed=0)
    for t in range(59):
        prefixes = {tuple(lineage[: t + 1]) for lineage in drawn.lineages}
        assert drawn.distinct[t] == len(prefixes)
    assert (np.diff(drawn.distinct) >= 0).all()
    assert drawn.distinct[0] < drawn.distinct[-1] <= 40
    assert f"at least {drawn.distinct[0]} paths differ" in repr(drawn)


def test_paths_that_share_a_past_are_the_same_as_walked_alone():
    # the walk reuses what neighbouring paths have in common; a path drawn alone must give the same states
    model = gated_model(2, observed=2, latent=5)
    filtered = rbpf(model, drawn_series(model, 25), particles=30, target="exact")
    one, many = (
        drawn_paths(filtered, SampleConfig(paths=paths, seed=4, method="ancestors")) for paths in (1, 64)
    )
    assert (one.lineages[0] == many.lineages[0]).all()
    np.testing.assert_array_equal(one.states[0], many.states[0])


def test_smoothing_is_reproducible_and_depends_on_the_seed():
    model = gated_model(2)
    filtered = rbpf(model, drawn_series(model, 10))
    first, again, other = (smooth(filtered, paths=5, states_per_path=2, seed=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(first.states, again.states)
    assert not np.array_equal(first.states, other.states)
    assert first.codes.shape == (5, 9, 2)
    assert first.states.shape == (5, 2, 10, 3)


def test_settings_are_handed_on_whole_or_one_by_one():
    model = gated_model(2)
    filtered = rbpf(model, drawn_series(model, 10), particles=16)
    config = SampleConfig(paths=3, states_per_path=2, seed=5)
    one, other = smooth(filtered, config), smooth(filtered, paths=3, states_per_path=2, seed=5)
    np.testing.assert_array_equal(one.states, other.states)
    assert smooth(filtered, config, paths=4).states.shape[:2] == (4, 2)
    with pytest.raises(ValueError, match="config must be a SampleConfig"):
        smooth(filtered, 3)


def test_smoothing_names_what_is_wrong():
    model = gated_model(1)
    filtered = rbpf(model, drawn_series(model, 5), particles=4)
    with pytest.raises(ValueError, match="paths: input should be greater than or equal to 1, got 0"):
        smooth(filtered, paths=0)
    with pytest.raises(ValueError, match="filtered must be what rbpf returns, got PALRNN"):
        smooth(model)
