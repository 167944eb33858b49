"""The shallow PLRNN: its equation, and loss, gradient and Fisher against complex steps."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.complex_steps import jacobian, relu
from oracles.shallow_family import random_shallow

import palrnn
from palrnn import ClippedShallowPLRNN, Forcing, ShallowPLRNN, TrainConfig, itf_gradient
from palrnn.engine.progress import quiet
from palrnn.model import engine

both_forms = pytest.mark.parametrize("clipped", [False, True], ids=["plain", "clipped"])


def mapped(theta, model, z):
    """The map, written down once more, also for complex numbers."""
    M, H = model.latent_dim, model.hidden
    A, W1, W2, h1, h2 = np.split(theta, np.cumsum([M, M * H, M * H, M]))
    u = z @ W2.reshape(H, M).T
    y = relu(u + h2)
    if isinstance(model, ClippedShallowPLRNN):
        y = y - relu(u)
    return A * z + y @ W1.reshape(M, H).T + h1


def forced_errors(vector, model, x, tau, alpha):
    """The errors of the forced predictions, (B, T-1, N), and 0 where nothing was seen."""
    size, seen = model.theta.size, model.observed_dim
    theta, E = vector[:size], vector[size:].reshape(model.latent_dim, seen)
    known, x = ~np.isnan(x), np.nan_to_num(x)
    z = np.concatenate([x[:, 0], (x[:, 0] @ E.T)[:, seen:]], axis=1)
    errors = []
    for t in range(x.shape[1] - 1):
        if t > 0 and t % tau == 0:
            forced = np.where(known[:, t], (1 - alpha) * z[:, :seen] + alpha * x[:, t], z[:, :seen])
            z = np.concatenate([forced, z[:, seen:]], axis=1)
        z = mapped(theta, model, z)
        errors.append(np.where(known[:, t + 1], z[:, :seen] - x[:, t + 1], 0.0))
    return np.stack(errors, axis=1)


def series(gaps, shape=(3, 9, 2)):
    rng = np.random.default_rng(4)
    x = rng.standard_normal(shape)
    lost = rng.random(shape) < 0.3
    lost[:, 0] = False
    return np.where(lost & gaps, np.nan, x)


@both_forms
@pytest.mark.parametrize("gaps", [False, True], ids=["whole", "gaps"])
@pytest.mark.parametrize(("tau", "alpha"), [(3, 1.0), (1, 0.3)])
def test_loss_and_gradient_equal_complex_steps(clipped, gaps, tau, alpha):
    model, x = random_shallow(3, 2, 11, seed=3, clipped=clipped), series(gaps)
    vector = np.concatenate([model.theta, model.embedding])

    def loss(vector):
        errors = forced_errors(vector, model, x, tau, alpha)
        return (errors**2).sum() * 2 / np.count_nonzero(~np.isnan(x[:, 1:]))

    expected_loss, expected = jacobian(loss, vector)
    found_loss, found = itf_gradient(model, x, Forcing.generalised(alpha, tau))
    assert found_loss == pytest.approx(float(expected_loss), rel=1e-12)
    # both are exact up to rounding
    whole = np.concatenate([found.theta, found.embedding])
    np.testing.assert_allclose(whole, expected, rtol=0, atol=1e-9 * float(np.abs(expected).max()))
    assert found.W2.shape == (11, 3)


@both_forms
@pytest.mark.parametrize("gaps", [False, True], ids=["whole", "gaps"])
def test_the_fisher_equals_the_gauss_newton_matrix_of_complex_steps(clipped, gaps):
    model, x = random_shallow(3, 2, 6, seed=5, clipped=clipped), series(gaps)[:1]
    vector, size, std = np.concatenate([model.theta, model.embedding]), model.theta.size, np.array([0.2, 0.5])
    rows = jacobian(lambda v: forced_errors(v, model, x, 3, 0.6), vector)[1][0, ..., :size]
    rows = (rows / std[:, None]).reshape(-1, size)
    expected = rows.T @ rows / (x.shape[1] - 1)
    operator = palrnn.ITFOperator(model, x[0], Forcing.generalised(0.6, 3), std)
    allowed = 1e-9 * np.abs(expected).max()
    np.testing.assert_allclose(operator.dense(), expected, rtol=0, atol=allowed)
    np.testing.assert_allclose(operator @ np.eye(size), expected, rtol=0, atol=allowed)
    assert operator.trace() == pytest.approx(np.trace(expected), rel=1e-9)


@both_forms
def test_steps_and_rollouts_are_those_of_its_equation(clipped):
    model = random_shallow(4, 2, 9, seed=6, clipped=clipped)
    z = np.random.default_rng(6).standard_normal((50, 4))
    np.testing.assert_allclose(model.step(z), mapped(model.theta, model, z), rtol=0, atol=1e-13)
    fast = engine.rollout_from(model, z[0], 40, 3)
    plain = engine.rollout_from.dispatch(object)(model, z[0], 40, 3)
    # the same sums in another order
    np.testing.assert_allclose(fast.states, plain.states, rtol=0, atol=1e-12)
    many, apart = (f(model, z[:7], 30) for f in (engine.advance, engine.advance.dispatch(object)))
    np.testing.assert_allclose(many, apart, rtol=0, atol=1e-12)
    wild = model.with_theta(np.concatenate([3.0 + 0 * model.A, model.theta[4:]]))
    fast, plain = (f(wild, z[0], 100, 2) for f in (engine.rollout_from, engine.rollout_from.dispatch(object)))
    assert fast.diverged_at == plain.diverged_at is not None


def test_the_clipped_form_is_bounded_where_the_linear_part_contracts():
    rng = np.random.default_rng(7)
    A, W1, W2 = rng.uniform(-0.9, 0.9, 3), 50 * rng.standard_normal((3, 8)), 50 * rng.standard_normal((8, 3))
    h1, h2 = rng.standard_normal(3), rng.standard_normal(8)
    # |z'| <= |A| |z| + |W1| |h2| + |h1|, whatever W2
    bound = (np.abs(W1) @ np.abs(h2) + np.abs(h1)) / (1 - np.abs(A))
    states = ClippedShallowPLRNN(A, W1, W2, h1, h2).rollout(np.zeros(3), 2000).states
    assert (np.abs(states) <= bound).all()
    assert ShallowPLRNN(A, W1, W2, h1, h2).rollout(np.zeros(3), 2000).diverged


def test_fixed_points_are_found_in_its_regions():
    # one hidden unit that closes at z = 1: z' = 0.5 z + 2 relu(1 - z) has its fixed point where it is open
    model = ShallowPLRNN([0.5], [[2.0]], [[-1.0]], [0.0], [1.0])
    (point,) = palrnn.fixed_points(model).points
    assert point == pytest.approx([2 / 2.5])


def test_hidden_units_are_its_gates():
    assert TrainConfig(family="shallow", hidden=50).gated == 50
    assert TrainConfig(family="clipped-shallow", hidden=50).gated == 100
    again = TrainConfig(**TrainConfig(family="shallow", hidden=50).model_dump())
    assert (again.hidden, again.gated) == (50, 50)
    with pytest.raises(ValueError, match="hidden is of the shallow families, not of 'alrnn'"):
        TrainConfig(hidden=50)


@both_forms
def test_training_from_a_random_start_learns(clipped):
    x = palrnn.lorenz63(3000, seed=1)
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    config = TrainConfig(
        family="clipped-shallow" if clipped else "shallow",
        latent_dim=3,
        hidden=20,
        updates=1000,
        sequence_length=30,
        forcing=Forcing.generalised(0.2),
        learning_rate=1e-2,
    )
    result = palrnn.train(x, config, progress=quiet)
    assert (result.model.latent_dim, result.model.hidden) == (3, 20)
    assert result.history.loss[-20:].mean() < 0.1 * result.history.loss[:5].mean()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"A": []}, "A must hold at least one unit"),
        ({"W1": np.ones((2, 4))}, r"W1 must have shape \(3, any\)"),
        ({"W2": np.ones((3, 4))}, r"W2 must have shape \(4, 3\)"),
        ({"h2": np.ones(3)}, r"h2 must have shape \(4,\)"),
        ({"E": np.ones((3, 4))}, r"E must be \(M, N\) with 1 <= N <= M = 3"),
        ({"W1": np.full((3, 4), np.nan)}, "W1 must be finite"),
    ],
)
def test_wrong_arrays_are_named(wrong, words):
    right = {
        "A": np.ones(3),
        "W1": np.ones((3, 4)),
        "W2": np.ones((4, 3)),
        "h1": np.ones(3),
        "h2": np.ones(4),
    }
    with pytest.raises(ValueError, match=words):
        ShallowPLRNN(**(right | wrong))
