"""The teacher-forced loss and its closed-form gradient, against complex steps and finite differences.

`test_gaps` compares with automatic differentiation.
"""

from __future__ import annotations

import numpy as np
import pytest
from families.plain_alrnn import PlainALRNN
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import complex_steps
from oracles import teacher_forcing as plain

from palrnn.forcing import itf_gradient, itf_loss
from palrnn.forcing.kernels.rollout import sum_of_squares
from palrnn.model import ALRNN, Forcing


def random_model(rng, dim, seen, gated):
    # entries of order 1/sqrt(M) keep rollouts of the sizes used here within a few orders of magnitude
    W = rng.standard_normal((dim, dim)) / np.sqrt(dim)
    return ALRNN(
        rng.uniform(-0.9, 0.9, dim), W, rng.standard_normal(dim), rng.standard_normal((dim, seen)), gated
    )


def by_complex_steps(model, x, tau, alpha):
    def loss(parameters):
        return plain.batch_loss(parameters, x, model.gated, tau, alpha, np=np)

    return complex_steps.gradients(loss, (model.A, model.W, model.h, model.E))


def assert_same_gradient(model, x, tau, alpha):
    expected_loss, expected = by_complex_steps(model, x, tau, alpha)
    # both are exact up to rounding in float64; the scale is that of the largest entry
    scale = max(float(np.abs(part).max()) for part in expected) + 1e-12
    for each in (model, PlainALRNN(model)):
        found_loss, found = itf_gradient(each, x, Forcing.generalised(alpha, tau))
        assert found_loss == pytest.approx(float(expected_loss), rel=1e-10)
        for name, part in zip("AWhE", expected, strict=True):
            np.testing.assert_allclose(getattr(found, name), part, rtol=1e-9, atol=1e-9 * scale, err_msg=name)


@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_gradient_equals_complex_steps_for_any_size_and_forcing(data):
    dim = data.draw(st.integers(1, 6), "M")
    seen = data.draw(st.integers(1, dim), "N")
    gated = data.draw(st.integers(0, dim), "P")
    length = data.draw(st.integers(2, 9), "T")
    batch = data.draw(st.integers(1, 3), "B")
    tau = data.draw(st.integers(1, length + 1), "tau")
    alpha = data.draw(st.sampled_from([0.0, 0.3, 1.0]), "alpha")
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1), "seed"))
    model = random_model(rng, dim, seen, gated)
    assert_same_gradient(model, rng.standard_normal((batch, length, seen)), tau, alpha)


@pytest.mark.parametrize("gated", [0, 3, 7])
def test_gradient_equals_complex_steps_over_many_forcing_steps(gated):
    rng = np.random.default_rng(gated)
    model = random_model(rng, 7, 2, gated)
    assert_same_gradient(model, rng.standard_normal((2, 40, 2)), tau=4, alpha=1.0)


@pytest.mark.parametrize("batch", [8, 11, 16])
def test_gradient_equals_complex_steps_for_whole_and_broken_blocks_of_rows_and_lanes(batch):
    # eight sequences go together and the rest one by one; 19 units fill registers of 4, 8 or 16 lanes in part
    rng = np.random.default_rng(batch)
    model = random_model(rng, 19, 3, 6)
    assert_same_gradient(model, rng.standard_normal((batch, 12, 3)), tau=4, alpha=0.7)


def test_gradient_equals_finite_differences():
    # needs no other package: central differences at step 1e-6 are good to about 1e-7 relative
    rng = np.random.default_rng(1)
    model = random_model(rng, 5, 2, 2)
    x = rng.standard_normal((30, 2))
    _, gradient = itf_gradient(model, x, 3)
    for k in range(model.theta.size):
        nudge = np.zeros(model.theta.size)
        nudge[k] = 1e-6
        up, down = (itf_loss(model.with_theta(model.theta + sign * nudge), x, 3) for sign in (1, -1))
        assert gradient.theta[k] == pytest.approx(
            (up - down) / 2e-6, rel=1e-4, abs=1e-6 * np.abs(gradient.theta).max()
        )


def test_loss_is_summed_over_coordinates_and_averaged_over_time_and_batch():
    # a network that always predicts zero has the mean squared length of what it should predict
    model = ALRNN(np.zeros(3), np.zeros((3, 3)), np.zeros(3), np.zeros((3, 2)), 1)
    x = np.random.default_rng(2).standard_normal((4, 6, 2))
    assert itf_loss(model, x, 2) == pytest.approx(np.mean(np.sum(x[:, 1:] ** 2, axis=2)), rel=1e-12)


def test_forcing_at_every_step_makes_an_observed_network_predict_from_data_alone():
    rng = np.random.default_rng(3)
    model = random_model(rng, 2, 2, 1)
    x = rng.standard_normal((50, 2))
    expected = np.mean(np.sum((model.step(x[:-1]) - x[1:]) ** 2, axis=1))
    assert itf_loss(model, x, 1) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("tau", "alpha"), [(1000, 1.0), (20, 1.0), (3, 0.0)])
def test_no_forcing_is_the_free_run(tau, alpha):
    rng = np.random.default_rng(4)
    model = random_model(rng, 4, 2, 2)
    x = rng.standard_normal((20, 2))
    free = model.rollout(x[0], 20).states[:, :2]
    expected = np.mean(np.sum((free[1:] - x[1:]) ** 2, axis=1))
    assert itf_loss(model, x, Forcing.generalised(alpha, tau)) == pytest.approx(expected, rel=1e-12)


def test_a_batch_is_the_mean_of_its_sequences():
    rng = np.random.default_rng(5)
    model = random_model(rng, 5, 2, 2)
    x = rng.standard_normal((3, 12, 2))
    assert itf_loss(model, x, 4) == pytest.approx(np.mean([itf_loss(model, s, 4) for s in x]), rel=1e-12)


def test_free_units_have_equal_gradients_in_A_and_on_the_diagonal_of_W():
    rng = np.random.default_rng(6)
    _, gradient = itf_gradient(random_model(rng, 6, 2, 2), rng.standard_normal((30, 2)), 5)
    np.testing.assert_array_equal(gradient.A[:4], np.diag(gradient.W)[:4])
    assert (gradient.A[4:] != np.diag(gradient.W)[4:]).all()


@pytest.mark.parametrize(
    ("x", "forcing", "words"),
    [
        (np.zeros((5, 3)), 2, "x must be"),
        (np.zeros((1, 2)), 2, "x must be"),
        (np.full((5, 2), np.nan), 2, r"x\[0\] must have no gaps, it starts the rollout; column 0 is NaN"),
        (np.array([[0.0, 0.0], [np.nan, np.nan]]), 2, "x must hold a value after its first row, all are NaN"),
        (np.array([[[0.0, 0.0]] * 3, [[0.0, np.nan]] * 3]), 2, r"x\[1\]\[0\] must have no gaps.* column 1"),
        (np.full((5, 2), np.inf), 2, "x must be finite"),
        (np.zeros((5, 2)), 0, "forcing must be a Forcing or a number of steps: forcing must be >= 1, got 0"),
        (np.zeros((5, 2)), 0.5, "forcing must be a Forcing or a number of steps"),
    ],
)
def test_wrong_arguments_are_named(x, forcing, words):
    model = random_model(np.random.default_rng(0), 4, 2, 2)
    with pytest.raises(ValueError, match=words):
        itf_loss(model, x, forcing)


@pytest.mark.parametrize("count", [0, 1, 7, 8, 1023])
def test_squares_are_summed_whatever_their_number(count):
    values = np.random.default_rng(count).standard_normal(count).astype(np.float32)
    # a thousand sums in float64
    assert sum_of_squares(values) == pytest.approx(float(np.sum(values.astype(np.float64) ** 2)), rel=1e-13)
