"""Where runs end: the exact place, how fast it attracts, and how that changes with the parameters."""

from __future__ import annotations

import numpy as np
import pytest

from palrnn.invariants import viability
from palrnn.invariants.sinks import Sink, growth_gradient, sink_at, sinks_of
from palrnn.model import ALRNN, ShallowPLRNN


def resting(seed=0):
    """An AL-RNN of 5 units with a stable fixed point in the region of code (1, 0)."""
    rng = np.random.default_rng(seed)
    W = rng.standard_normal((5, 5))
    model = ALRNN(np.full(5, 0.3), 0.2 * W, np.zeros(5), np.zeros((5, 2)), gated=2)
    place = np.array([0.4, -0.8, 0.1, 0.9, -0.7])
    J, _ = model.affine(np.array([True, False]))
    return ALRNN(model.A, model.W, place - J @ place, model.E, gated=2), place


def test_a_fixed_point_is_found_where_it_was_put():
    model, place = resting()
    sink = sink_at(model, place + 0.02)
    largest = np.abs(np.linalg.eigvals(model.affine(np.array([True, False]))[0])).max()
    # Newton's method is exact in a region: rounding only
    np.testing.assert_allclose(sink.states[0], place, rtol=0, atol=1e-12)
    assert sink.growth == pytest.approx(np.log(largest), abs=1e-12)
    assert sink.stable
    assert str(sink).startswith("fixed point with growth -")


def differences(model, growth, size=1e-6):
    theta, found = model.theta, np.empty(model.theta.size)
    for i in range(theta.size):
        step = np.zeros(theta.size)
        step[i] = size
        found[i] = (growth(model.with_theta(theta + step)) - growth(model.with_theta(theta - step))) / (
            2 * size
        )
    return found


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_gradient_of_a_fixed_points_growth_agrees_with_central_differences(seed):
    model, place = resting(seed)
    sink = sink_at(model, place)
    # the errors of central differences are size^2 and rounding / size, both about 1e-10 here
    expected = differences(model, lambda moved: sink_at(moved, sink.states[0]).growth)
    np.testing.assert_allclose(growth_gradient(model, sink), expected, rtol=0, atol=2e-8)


def test_a_cycle_of_period_2_has_the_growth_and_gradient_of_its_two_slopes():
    A, W = 0.5, -2.0  # slopes 0.5 below zero and -1.5 above
    model = ALRNN(np.array([A]), np.array([[W]]), np.ones(1), np.ones((1, 1)), gated=1)
    sink = sink_at(model, np.array([0.8]), 2)
    np.testing.assert_allclose(np.sort(sink.states[:, 0]), [-2 / 7, 6 / 7], rtol=0, atol=1e-12)
    assert sink.growth == pytest.approx(np.log(0.75) / 2, abs=1e-12)
    exact = [(1 / A + 1 / (A + W)) / 2, 1 / (A + W) / 2, 0.0]
    np.testing.assert_allclose(growth_gradient(model, sink), exact, rtol=0, atol=1e-12)


def across_growth(model, codes, along):
    product = np.eye(model.latent_dim)
    for J in model.affine(codes)[0]:
        product = J @ product
    if along is not None:
        side = np.eye(len(along)) - np.outer(along, along)
        product = side @ product @ side
    return np.log(np.abs(np.linalg.eigvals(product)).max()) / len(codes)


@pytest.mark.parametrize("family", ["alrnn", "shallow"])
@pytest.mark.parametrize("loop", [False, True])
def test_the_gradient_along_many_codes_agrees_with_central_differences(family, loop):
    rng = np.random.default_rng(3)
    if family == "alrnn":
        model = ALRNN(
            rng.uniform(0.5, 0.9, 6), 0.3 * rng.standard_normal((6, 6)), np.zeros(6), np.zeros((6, 2)), 3
        )
    else:
        W1, W2 = 0.3 * rng.standard_normal((3, 7)), 0.5 * rng.standard_normal((7, 3))
        model = ShallowPLRNN(rng.uniform(0.5, 0.9, 3), W1, W2, np.zeros(3), np.zeros(7), np.eye(3))
    codes = rng.random((300, model.gated)) > 0.5
    along = rng.standard_normal(model.latent_dim)
    along = along / np.linalg.norm(along) if loop else None
    sink = Sink(np.zeros((300, model.latent_dim)), codes, 0.0, along)
    expected = differences(model, lambda moved: across_growth(moved, codes, along))
    np.testing.assert_allclose(growth_gradient(model, sink), expected, rtol=0, atol=1e-6)


def test_ends_of_runs_are_told_once_each():
    model, place = resting()
    starts = np.random.default_rng(1).standard_normal((10, 2))
    (sink,) = sinks_of(model, viability(model, starts, 1000))
    np.testing.assert_allclose(sink.states[0], place, rtol=0, atol=1e-9)


def test_an_orbit_that_leaves_every_bound_is_no_sink():
    model = ALRNN(np.array([2.0]), np.zeros((1, 1)), np.ones(1), np.ones((1, 1)), gated=1)
    assert sink_at(model, np.array([1e9]), 40) is None
