from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palrnn import ALRNN, PALRNN, initial_alrnn
from palrnn.invariants import cycles, fixed_points


def _map1d(left, right, h):
    """z' = left z + h for z <= 0, right z + h for z > 0."""
    return ALRNN([left], [[right - left]], [h], [[1.0]], 1)


def test_one_admissible_and_one_virtual_fixed_point():
    # right: z = 0.5 z + 1 has z = 2 > 0, admissible; left: z = 0.25 z + 1 has z = 4 / 3 > 0, virtual
    model = _map1d(0.25, 0.5, 1.0)
    result = fixed_points(model)
    np.testing.assert_allclose(result.points, [[2.0]])
    np.testing.assert_array_equal(result.codes, [[True]])
    np.testing.assert_allclose(result.eigenvalues, [[0.5]])
    assert result.stable[0]
    both = fixed_points(model, virtual=True)
    np.testing.assert_allclose(both.points, [[4 / 3], [2.0]])
    np.testing.assert_array_equal(both.admissible, [False, True])


def test_the_tent_map_has_two_unstable_fixed_points():
    result = fixed_points(_map1d(1.5, -1.5, 1.0))
    # z = 1.5 z + 1 and z = -1.5 z + 1
    np.testing.assert_allclose(np.sort(result.points[:, 0]), [-2.0, 0.4])
    assert not result.stable.any()
    np.testing.assert_array_equal(result.unstable_directions, [1, 1])


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_every_fixed_point_stays_and_none_is_missed(seed):
    rng = np.random.default_rng(seed)
    gated = 4
    model = ALRNN(
        rng.uniform(-0.9, 0.9, 5),
        rng.standard_normal((5, 5)),
        rng.standard_normal(5),
        rng.standard_normal((5, 2)),
        gated,
    )
    result = fixed_points(model)
    # solutions of random 5 x 5 systems: conditioning rarely beyond 1e4
    np.testing.assert_allclose(model.step(result.points), result.points, rtol=1e-8, atol=1e-8)
    np.testing.assert_array_equal(model.codes(result.points), result.codes)
    # one region at a time, by the model's own Jacobian at a state with that code
    count = 0
    for number in range(2**gated):
        state = np.ones(5)
        state[1:] = [1.0 if number >> bit & 1 else -1.0 for bit in range(gated)]
        J = model.jacobian(state)
        point = np.linalg.inv(np.eye(5) - J) @ model.h
        if np.array_equal(model.codes(point), model.codes(state)):
            count += 1
            nearest = np.argmin(np.abs(result.points - point).sum(axis=1))
            np.testing.assert_allclose(result.points[nearest], point, rtol=1e-6, atol=1e-8)
            expected = np.sort(np.abs(np.linalg.eigvals(J)))[::-1]
            np.testing.assert_allclose(np.abs(result.eigenvalues[nearest]), expected, rtol=1e-8)
    assert len(result) == count


def test_all_regions_of_fourteen_gates_are_solved():
    rng = np.random.default_rng(5)
    A, h = rng.uniform(0.2, 0.6, 30), rng.standard_normal(30)
    model = ALRNN(A, 0.05 * rng.standard_normal((30, 30)), h, rng.standard_normal((30, 3)), 14)
    result = fixed_points(model)
    assert result.regions == 2**14
    assert result.singular == 0
    # the map contracts, so there is exactly one fixed point, and rollouts end there
    assert len(result) == 1
    assert result.stable[0]
    np.testing.assert_allclose(
        model.rollout(np.zeros(3), 1, discard=2000).states[0], result.points[0], atol=1e-10
    )


def test_singular_regions_are_counted_not_hidden():
    # left of zero the map is z' = z + 1: no fixed point; right of it z' = 0.5 z + 1
    result = fixed_points(_map1d(1.0, 0.5, 1.0))
    assert result.singular == 1
    np.testing.assert_allclose(result.points, [[2.0]])
    # singular up to rounding: 0.1 + 0.2 - 0.3 is not 0
    wobbly = ALRNN([0.1 + 0.2 + 0.7], [[-0.5]], [1.0], [[1.0]], 1)
    assert fixed_points(wobbly, virtual=True).singular == 1


def test_a_linear_network_has_one_region():
    model = ALRNN([0.5], [[0.1]], [1.0], [[1.0]], 0)
    result = fixed_points(model)
    assert result.regions == 1
    np.testing.assert_allclose(result.points, [[2.5]])


def test_a_palrnn_is_judged_by_its_drift():
    assert len(fixed_points(PALRNN(_map1d(0.25, 0.5, 1.0), 0.1, 0.1, 0.1))) == 1


def test_too_many_regions_are_refused_by_name():
    model = ALRNN(np.zeros(20), np.zeros((20, 20)), np.zeros(20), np.zeros((20, 1)), 18)
    with pytest.raises(ValueError, match=r"model has 18 gates.*most_gated is 16"):
        fixed_points(model)


def test_a_known_period_two_map():
    # z' = 1 for z <= 0 and -2 z + 1 for z > 0: 0 -> 1 -> -1 -> 1, a stable cycle {1, -1}
    model = _map1d(0.0, -2.0, 1.0)
    found = cycles(model, model.rollout([0.3], 50).states, max_period=6)
    assert [cycle.period for cycle in found] == [2]
    np.testing.assert_allclose(np.sort(found[0].states[:, 0]), [-1.0, 1.0])
    assert found[0].stable
    np.testing.assert_allclose(found[0].multipliers, [0.0], atol=1e-15)


def test_the_tent_map_has_all_its_cycles():
    # z' = 1 - a |z| at a = 1.99: nearly the full tent, with (2^k - sum over divisors) / k cycles of period k;
    # all of them up to period 5 exist for a > 1.9 (the last kneading word of length 5 appears before 1.93)
    model = _map1d(1.99, -1.99, 1.0)
    found = cycles(model, model.rollout([0.1234], 3000).states, max_period=5)
    periods = [cycle.period for cycle in found]
    assert [periods.count(k) for k in (2, 3, 4, 5)] == [1, 2, 3, 6]
    for cycle in found:
        assert abs(cycle.multipliers[0]) == pytest.approx(1.99**cycle.period, rel=1e-12)
        assert not cycle.stable
        again = model.rollout_from(cycle.states[0], cycle.period + 1).states
        np.testing.assert_allclose(again[-1], again[0], atol=1e-12)


def test_a_word_without_an_admissible_cycle_is_not_a_cycle():
    # a contraction to a fixed point that changes its code once on the way
    model = _map1d(0.5, 0.5, 1.0)
    assert cycles(model, model.rollout([-3.0], 40).states, max_period=8) == []


@pytest.mark.parametrize(("seed", "period"), [(276, 8), (388, 9), (298, 20)])
def test_the_stable_cycle_of_a_random_network_is_found(seed, period):
    rng = np.random.default_rng(seed)
    A, W = rng.uniform(-0.3, 0.5, 6), 1.2 * rng.standard_normal((6, 6)) / np.sqrt(3)
    model = ALRNN(A, W, rng.standard_normal(6), rng.standard_normal((6, 2)), 4)
    states = model.rollout(np.zeros(2), 300, discard=3000).states
    # the attractor's own period, from the trajectory alone
    assert next(k for k in range(1, 30) if np.abs(states[k:] - states[:-k]).max() < 1e-9) == period
    found = cycles(model, states, max_period=period)
    match = [cycle for cycle in found if cycle.stable]
    assert len(match) == 1
    assert match[0].period == period
    assert np.abs(states[:, None] - match[0].states[None]).max(axis=2).min(axis=1).max() < 1e-8


def test_errors_name_the_argument():
    model = _map1d(0.0, -2.0, 1.0)
    with pytest.raises(ValueError, match="max_period must be from 2 to 9"):
        cycles(model, model.rollout([0.3], 10).states, max_period=50)
    with pytest.raises(ValueError, match="trajectory must have 1 columns"):
        cycles(model, np.zeros((10, 2)))


def test_some_regions_alone_give_the_fixed_points_in_them():
    model = initial_alrnn(6, 2, 4, init_std=0.8, seed=3)
    everywhere = fixed_points(model)
    assert len(everywhere)
    some = fixed_points(model, within=everywhere.codes[:1], most_gated=0)
    assert some.regions == 1
    np.testing.assert_array_equal(some.points, everywhere.points[:1])
    with pytest.raises(ValueError, match="within must be codes"):
        fixed_points(model, within=np.zeros((2, 3), dtype=bool))
