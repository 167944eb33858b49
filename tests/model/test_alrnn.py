"""The AL-RNN map against its equation, for every size and number of gates."""

from __future__ import annotations

import copy
import pickle
import time
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.networks import networks, plain_step, random_network

from palrnn.model import ALRNN, initial_alrnn


def _states(model, count, seed):
    return 3 * np.random.default_rng(seed).standard_normal((count, model.latent_dim))


@given(networks(), st.integers(0, 1000))
def test_a_step_is_the_equation(model, seed):
    for z in _states(model, 3, seed):
        # a dozen products of numbers of order ten
        np.testing.assert_allclose(model.step(z), plain_step(model, z), atol=1e-12)


@given(networks(), st.integers(0, 1000))
def test_a_step_is_affine_in_the_region_of_its_code(model, seed):
    z = _states(model, 1, seed)[0]
    D = np.diag(np.concatenate([np.ones(model.latent_dim - model.gated), model.codes(z).astype(float)]))
    np.testing.assert_array_equal(model.gates(z), np.diagonal(D))
    affine = (np.diag(model.A) + model.W @ D) @ z + model.h
    np.testing.assert_allclose(model.step(z), affine, atol=1e-12)
    np.testing.assert_allclose(model.jacobian(z), np.diag(model.A) + model.W @ D, atol=1e-15)


@given(networks(), st.integers(0, 1000))
def test_the_jacobian_equals_finite_differences_away_from_the_kinks(model, seed):
    z = _states(model, 1, seed)[0]
    z = np.where(np.abs(z) < 0.1, 0.1, z)
    nudges = 0.05 * np.eye(model.latent_dim)
    # the map is linear within the region, so the differences have no error but rounding
    differences = (model.step(z + nudges) - model.step(z - nudges)).T / 0.1
    np.testing.assert_allclose(model.jacobian(z), differences, atol=1e-11)


@given(networks(), st.integers(0, 1000))
def test_codes_say_which_gated_units_are_positive(model, seed):
    z = _states(model, 4, seed)
    codes = model.codes(z)
    assert codes.dtype == np.bool_
    assert codes.shape == (4, model.gated)
    for row, code in zip(z, codes, strict=True):
        assert code.tolist() == [
            bool(row[model.latent_dim - model.gated + j] > 0) for j in range(model.gated)
        ]


@given(networks(), st.integers(0, 1000))
def test_the_embedding_keeps_the_observation_and_fills_the_rest(model, seed):
    x = np.random.default_rng(seed).standard_normal(model.observed_dim)
    B = np.eye(model.observed_dim, model.latent_dim)
    z = model.E @ x
    z = z + B.T @ (x - B @ z)
    np.testing.assert_allclose(model.embed(x), z, atol=1e-12)
    np.testing.assert_array_equal(model.embed(x)[: model.observed_dim], x)


@given(networks(), st.sampled_from([(1,), (5,), (0,), (2, 3), (2, 1, 2)]), st.integers(0, 1000))
def test_a_batch_is_every_state_by_itself(model, leading, seed):
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((*leading, model.latent_dim))
    x = rng.standard_normal((*leading, model.observed_dim))
    calls = [(model.step, z), (model.jacobian, z), (model.codes, z), (model.gates, z), (model.embed, x)]
    for call, batch in calls:
        together = call(batch)
        assert together.shape[: len(leading)] == leading
        for index in np.ndindex(*leading):
            np.testing.assert_allclose(together[index], call(batch[index]), atol=1e-13)


def test_at_the_kink_a_gate_is_shut():
    model = random_network(3, 1, 3)
    assert not model.codes(np.zeros(3)).any()
    assert not model.codes(-np.zeros(3)).any()
    np.testing.assert_array_equal(model.jacobian(np.zeros(3)), np.diag(model.A))
    np.testing.assert_array_equal(model.step(np.zeros(3)), model.h)


def test_without_gates_the_network_is_linear_and_with_all_of_them_a_relu_network():
    z = np.array([1.0, -2.0, 3.0])
    linear, full = random_network(3, 2, 0), random_network(3, 2, 3)
    np.testing.assert_allclose(linear.step(z), (np.diag(linear.A) + linear.W) @ z + linear.h, atol=1e-14)
    np.testing.assert_allclose(full.step(z), full.A * z + full.W @ np.maximum(z, 0) + full.h, atol=1e-14)
    assert linear.codes(z).shape == (0,)


@given(networks(), st.integers(0, 1000))
def test_theta_is_the_diagonal_the_rows_and_the_bias(model, seed):
    dim = model.latent_dim
    theta = model.theta
    assert theta.shape == (dim * dim + 2 * dim,)
    np.testing.assert_array_equal(theta[:dim], model.A)
    np.testing.assert_array_equal(theta[dim : dim + dim * dim].reshape(dim, dim), model.W)
    np.testing.assert_array_equal(theta[dim + dim * dim :], model.h)
    other = np.random.default_rng(seed).standard_normal(len(theta))
    moved = model.with_theta(other)
    np.testing.assert_array_equal(moved.theta, other)
    np.testing.assert_array_equal(moved.E, model.E)
    assert moved.gated == model.gated


@given(networks(largest=5), st.integers(0, 20), st.integers(1, 20))
def test_a_rollout_iterates_the_step(model, discard, steps):
    # divided by its size, so that the rounding of the two ways of summing is not blown up
    model = model.with_theta(model.theta / (2 + np.abs(model.W).sum()))
    x1 = np.ones(model.observed_dim)
    z = model.embed(x1)
    for _ in range(discard):
        z = plain_step(model, z)
    rollout = model.rollout(x1, steps, discard)
    assert rollout.states.shape == (steps, model.latent_dim)
    assert rollout.diverged_at is None
    for state in rollout.states:
        np.testing.assert_allclose(state, z, atol=1e-12)
        z = plain_step(model, z)
    np.testing.assert_array_equal(model.rollout_from(model.embed(x1), steps, discard).states, rollout.states)


def test_the_first_state_of_a_rollout_is_the_embedded_observation():
    model = random_network(5, 2, 3)
    np.testing.assert_array_equal(model.rollout([0.5, -1.0], 3).states[0], model.embed([0.5, -1.0]))


def _doubling(dim=1):
    return ALRNN(np.full(dim, 2.0), np.zeros((dim, dim)), np.zeros(dim), np.eye(dim), 0)


@pytest.mark.parametrize(("discard", "kept"), [(0, 34), (10, 24), (33, 1), (34, 0), (50, 0)])
def test_a_rollout_that_diverges_ends_before_and_tells_the_step(discard, kept):
    # 2^33 < 1e10 < 2^34: the state after 34 steps is the first beyond the bound
    rollout = _doubling().rollout([1.0], 1000, discard)
    assert rollout.diverged_at == 34
    assert rollout.states.shape == (kept, 1)
    np.testing.assert_array_equal(rollout.states[:, 0], 2.0 ** np.arange(discard, discard + kept))


def test_a_rollout_that_ends_in_time_has_not_diverged():
    assert _doubling().rollout([1.0], 34).diverged_at is None
    assert _doubling().rollout([1.0], 35).diverged_at == 34


def test_an_overflow_to_infinity_or_nan_is_a_divergence_too():
    huge = ALRNN([1e300, -1e300], [[1e300, 1e300], [1e300, -1e300]], [0.0, 0.0], np.eye(2), 1)
    rollout = huge.rollout([1.0, -1.0], 100)
    assert rollout.diverged_at == 1
    assert np.isfinite(rollout.states).all()


def test_a_state_that_is_not_a_number_is_a_divergence_too():
    # sums of +inf and of -inf, kept apart by a vectorised loop, meet in NaN
    W = np.tile([1.7e308, -1.7e308], (16, 8))
    rollout = ALRNN(np.zeros(16), W, np.zeros(16), np.eye(16), 0).rollout(np.full(16, 10.0), 100)
    assert rollout.diverged_at == 1


def test_a_hundred_thousand_steps_of_thirty_units_take_under_a_second():
    model = initial_alrnn(30, 3, 10, seed=1)
    model.rollout(np.ones(3), 10)

    def seconds():
        start = time.process_time()
        model.rollout(np.ones(3), 100_000)
        return time.process_time() - start

    # about 0.1 s of processor time, which does not count what other processes take
    assert min(seconds() for _ in range(3)) < 1.0


def test_a_network_cannot_be_changed_nor_its_copies():
    A, W = np.ones(2), np.ones((2, 2))
    model = ALRNN(A, W, np.zeros(2), np.eye(2), 1)
    A[0], W[0, 0] = 9.0, 9.0
    for each in (model, pickle.loads(pickle.dumps(model)), copy.deepcopy(model), copy.copy(model)):
        assert each.A[0] == each.W[0, 0] == 1.0
        for name in ("A", "W", "h", "E"):
            array = getattr(each, name)
            assert array.dtype == np.float64
            assert array.flags.c_contiguous
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 5.0
        with pytest.raises(FrozenInstanceError):
            each.gated = 2


def test_results_are_the_callers_to_change():
    model = random_network(3, 2, 1)
    z = np.zeros(3)
    for result in (model.step(z), model.jacobian(z), model.embed(z[:2]), model.theta, model.gates(z)):
        result[...] = 7.0
    np.testing.assert_array_equal(z, 0.0)
    np.testing.assert_array_equal(model.step(np.zeros(3)), model.h)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"A": [[1.0]]}, r"A must have shape \(any,\), got \(1, 1\)"),
        ({"A": []}, "A must hold at least one unit"),
        ({"W": np.zeros((2, 3))}, r"W must have shape \(2, 2\), got \(2, 3\)"),
        ({"h": np.zeros(3)}, r"h must have shape \(2,\), got \(3,\)"),
        ({"E": np.zeros((3, 1))}, r"E must have shape \(2, any\), got \(3, 1\)"),
        ({"E": np.zeros((2, 3))}, r"E must be \(M, N\) with 1 <= N <= M = 2, got \(2, 3\)"),
        ({"E": np.zeros((2, 0))}, r"E must be \(M, N\) with 1 <= N <= M = 2, got \(2, 0\)"),
        ({"gated": 3}, "gated must be from 0 to 2, got 3"),
        ({"gated": -1}, "gated must be from 0 to 2, got -1"),
        ({"gated": 1.0}, "gated must be a whole number, got 1.0"),
        ({"W": [[np.nan, 0.0], [0.0, 0.0]]}, r"W must be finite, got nan at index \(0, 0\)"),
        ({"h": [0.0, np.inf]}, r"h must be finite, got inf at index \(1,\)"),
        ({"A": ["a", "b"]}, "A must be an array of real numbers"),
        ({"A": [1j, 0]}, "A must be an array of real numbers"),
    ],
)
def test_bad_parameters_are_named(change, message):
    good = {"A": np.ones(2), "W": np.zeros((2, 2)), "h": np.zeros(2), "E": np.ones((2, 1)), "gated": 1}
    with pytest.raises(ValueError, match=message):
        ALRNN(**(good | change))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.step([1.0, 2.0]), r"z must have 3 entries in its last axis, got shape \(2,\)"),
        (lambda m: m.step(1.0), r"z must have 3 entries in its last axis, got shape \(\)"),
        (lambda m: m.step([1.0, np.nan, 0.0]), r"z must be finite, got nan at index \(1,\)"),
        (lambda m: m.jacobian(np.full((2, 3), np.inf)), r"z must be finite, got inf at index \(0, 0\)"),
        (lambda m: m.codes([np.nan] * 3), "z must be finite, got nan"),
        (lambda m: m.embed([1.0]), "x must have 2 entries in its last axis"),
        (lambda m: m.embed([1.0, np.nan]), "x must be finite, got nan"),
        (lambda m: m.rollout([1.0], 5), r"x1 must have shape \(2,\), got \(1,\)"),
        (lambda m: m.rollout([1.0, np.nan], 5), "x1 must be finite"),
        (lambda m: m.rollout([1.0, 2.0], 0), "steps must be >= 1, got 0"),
        (lambda m: m.rollout([1.0, 2.0], 5, -1), "discard must be >= 0, got -1"),
        (lambda m: m.rollout_from([1.0, 2.0], 5), r"z1 must have shape \(3,\), got \(2,\)"),
        (lambda m: m.with_theta(np.zeros(3)), r"theta must have shape \(15,\), got \(3,\)"),
    ],
)
def test_bad_states_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call(random_network(3, 2, 1))


def test_a_network_introduces_itself():
    assert repr(random_network(5, 2, 3)) == "ALRNN(latent_dim=5, observed_dim=2, gated=3)"


@pytest.mark.parametrize(("dim", "seen", "gated"), [(30, 3, 10), (1, 1, 0), (5, 5, 5), (4, 1, 0)])
def test_the_random_start_is_the_one_specified(dim, seen, gated):
    model = initial_alrnn(dim, seen, gated, seed=3)
    rng = np.random.default_rng(3)
    R = rng.standard_normal((dim, dim))
    K = np.einsum("ki,kj->ij", R, R) / dim + np.identity(dim)
    largest = max(abs(np.linalg.eigvals(K)))
    # the same matrix by another product and another eigenvalue routine
    np.testing.assert_allclose(model.A, np.diagonal(K) / largest, rtol=1e-12)
    np.testing.assert_array_equal(model.W, 0.01 * rng.standard_normal((dim, dim)))
    np.testing.assert_array_equal(model.h, np.zeros(dim))
    np.testing.assert_array_equal(model.E, rng.uniform(-1, 1, (dim, seen)) / np.sqrt(seen))
    assert (model.latent_dim, model.observed_dim, model.gated) == (dim, seen, gated)


def test_the_random_start_has_the_specified_laws():
    model = initial_alrnn(120, 3, 10, seed=5)
    entries = 120 * 120
    # four standard errors of a mean and of a deviation
    assert abs(model.W.mean()) < 4 * 0.01 / np.sqrt(entries)
    assert abs(model.W.std() / 0.01 - 1) < 4 / np.sqrt(2 * entries)
    assert np.abs(model.E).max() <= 1 / np.sqrt(3)
    # the variance of U(-a, a) is a^2 / 3; that of its square is 4 a^4 / 45
    assert abs(model.E.var() - 1 / 9) < 4 * np.sqrt(4 / 45) / 3 / np.sqrt(360)
    assert model.A.min() > 0
    assert model.A.max() <= 1


def test_the_random_start_depends_on_its_seed_and_its_spread():
    one = initial_alrnn(6, 2, 3, seed=1)
    np.testing.assert_array_equal(initial_alrnn(6, 2, 3, seed=1).theta, one.theta)
    assert not np.array_equal(initial_alrnn(6, 2, 3, seed=2).theta, one.theta)
    np.testing.assert_allclose(initial_alrnn(6, 2, 3, init_std=0.1, seed=1).W, 10 * one.W, rtol=1e-15)
    assert not initial_alrnn(6, 2, 3, init_std=0.0).W.any()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 1, 0), "latent_dim must be >= 1"),
        ((3, 4, 0), "observed_dim must be from 1 to 3"),
        ((3, 1, 4), "gated must be from 0 to 3"),
    ],
)
def test_impossible_sizes_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        initial_alrnn(*arguments)
    with pytest.raises(ValueError, match="init_std must be >= 0"):
        initial_alrnn(3, 1, 1, init_std=-1.0)
