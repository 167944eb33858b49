"""Every fast path of a family gives what the plain engine gives, which is the definition."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.networks import random_network
from oracles.shallow_family import random_shallow

from palrnn.forcing.objective import Moments, Updates, loss_and_gradient, run_updates
from palrnn.forcing.soap import blocks_in, curvature_of
from palrnn.geometry.sensitivity import forced_states, forcing_strengths, sensitivity
from palrnn.invariants.cycles import orbit_derivative
from palrnn.invariants.lyapunov import Growth, Moving, carried
from palrnn.model import ALRNN, Forcing, engine
from palrnn.model.palrnn import sampled_states
from palrnn.model.surrogate import training_vector

MODELS = [random_network(5, 2, gated, seed=4, gain=0.5) for gated in (0, 3, 5)]
FORCING = [Forcing.identity(4), Forcing.generalised(0.3), Forcing.generalised(0.6, 3), Forcing.none()]
SHALLOW = [
    random_shallow(3, 2, 11, seed=4),
    random_shallow(4, 2, 6, seed=5, clipped=True),
    random_shallow(2, 2, 0, seed=6),
]
every_network = pytest.mark.parametrize("model", MODELS, ids=lambda model: f"{model.gated} gated")


def both(function, *arguments):
    """The fast path of the first argument's type, and the plain one, each with its own copies."""
    fast = function.dispatch(type(arguments[0]))
    assert fast is not function.dispatch(object)
    for chosen in (fast, function.dispatch(object)):
        yield chosen(*(np.array(a) if isinstance(a, np.ndarray) else a for a in arguments))


def close(one, other, tolerance=1e-12):
    # the same sums in another order
    np.testing.assert_allclose(one, other, rtol=0, atol=tolerance * (1.0 + np.abs(other).max(initial=0.0)))


@every_network
def test_steps_and_rollouts(model):
    z = np.random.default_rng(0).standard_normal((7, 5))
    close(*both(engine.step, model, z))
    close(*both(engine.gate_inputs, model, z))
    fast, plain = both(engine.rollout_from, model, z[0], 30, 4)
    close(fast.states, plain.states)
    wild = model.with_theta(4.0 * model.theta)
    fast, plain = both(engine.rollout_from, wild, z[0], 100, 2)
    assert fast.diverged_at == plain.diverged_at is not None
    close(fast.states, plain.states)


one_of_each = pytest.mark.parametrize("model", [MODELS[1], SHALLOW[0]], ids=repr)


@one_of_each
@pytest.mark.parametrize(("steps", "discard"), [(1, 0), (1, 1000), (1000, 0), (1001, 999), (700, 1500)])
def test_rollouts_that_are_longer_than_a_block(model, steps, discard):
    # slow enough that rounding does not grow, and pushed at random, so that steps are told apart
    calm, rng = model.with_theta(0.3 * model.theta), np.random.default_rng(2)
    pushes = rng.standard_normal((discard + steps, model.latent_dim))
    fast, plain = both(
        engine.rollout_from, calm, rng.standard_normal(model.latent_dim), steps, discard, pushes
    )
    assert fast.states.shape == (steps, model.latent_dim)
    close(fast.states, plain.states)


@one_of_each
@pytest.mark.parametrize("discard", [0, 10, 1200])
@pytest.mark.parametrize("step", [1, 999, 1000, 1001])
def test_rollouts_that_leave_every_bound_around_the_end_of_a_block(model, step, discard):
    calm, pushes = model.with_theta(0.3 * model.theta), np.zeros((2500, model.latent_dim))
    pushes[step - 1] = 1e11
    start = np.zeros(model.latent_dim)
    fast, plain = both(engine.rollout_from, calm, start, 2500 - discard, discard, pushes)
    assert fast.diverged_at == plain.diverged_at == step
    assert fast.states.shape == plain.states.shape == (max(0, step - discard), model.latent_dim)


@every_network
@pytest.mark.parametrize("gate_std", [0.0, 0.5])
def test_samples(model, gate_std):
    rng = np.random.default_rng(1)
    noise = 0.1 * rng.standard_normal((30, 5)), rng.random((30, model.gated))
    (states, codes, at), (plain_states, plain_codes, plain_at) = both(
        sampled_states, model, gate_std, rng.standard_normal(5), *noise
    )
    close(states, plain_states)
    np.testing.assert_array_equal(codes, plain_codes)
    assert at is None
    assert plain_at is None


def with_gaps(x, rng, share):
    """A copy with NaN in some entries; first rows stay whole."""
    return np.where((rng.random(x.shape) < share) & (np.arange(x.shape[-2])[:, None] > 0), np.nan, x)


every_kernel = pytest.mark.parametrize("model", MODELS + SHALLOW, ids=repr)


@every_kernel
@pytest.mark.parametrize("share", [0.0, 0.4], ids=["whole", "gaps"])
@pytest.mark.parametrize("forcing", FORCING, ids=repr)
@pytest.mark.parametrize("batch", [3, 17])
def test_losses_and_gradients(model, forcing, share, batch):
    rng = np.random.default_rng(2)
    x = with_gaps(rng.standard_normal((batch, 20, 2)), rng, share)
    (loss, gradient), (plain_loss, plain_gradient) = both(loss_and_gradient, model, x, forcing, True)
    assert loss == pytest.approx(plain_loss, rel=1e-12)
    close(gradient, plain_gradient)
    assert loss_and_gradient(model, x, forcing, False)[0] == loss


@every_kernel
@pytest.mark.parametrize("share", [0.0, 0.4], ids=["whole", "gaps"])
@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("optimizer", ["radam", "soap"])
def test_updates(model, optimizer, noisy, share):
    rng = np.random.default_rng(3)
    series = with_gaps(rng.standard_normal((60, 2)), rng, share)
    possible = np.flatnonzero(~np.isnan(series[:40]).any(axis=1))
    noise = 0.1 * rng.standard_normal((12, 4, 3, 2)) if noisy else np.empty((0, 4, 3, 2))
    todo = Updates(
        done=0,
        series=series,
        whole=share == 0.0,
        drive=series[:, :0],
        starts=rng.choice(possible, (12, 3)),
        noise=noise,
        length=20,
        interval=5,
        strengths=np.linspace(1.0, 0.2, 12),
        rates=np.linspace(1e-2, 1e-3, 12),
        clip=0.5,
    )
    outcomes = []
    for chosen in (run_updates.dispatch(type(model)), run_updates.dispatch(object)):
        vector = training_vector(model)
        curvature, told = curvature_of(model), (np.empty(12), np.empty(12))
        blocks = blocks_in(model, curvature) if optimizer == "soap" else None
        moments = Moments(np.zeros_like(vector), np.zeros_like(vector), blocks)
        assert chosen(model, vector, moments, todo, told) == -1
        outcomes.append((vector, moments.first, moments.second, curvature, *told))
    for one, other in zip(*outcomes, strict=True):
        close(one, other, 1e-10)  # twelve updates pass rounding on


@every_network
@pytest.mark.parametrize("share", [0.0, 0.4], ids=["whole", "gaps"])
@pytest.mark.parametrize("forcing", FORCING, ids=repr)
def test_sensitivities(model, forcing, share):
    rng = np.random.default_rng(4)
    x = with_gaps(rng.standard_normal((25, 2)), rng, share)
    strengths = forcing_strengths(x, forcing)
    (states, at), (plain_states, plain_at) = both(forced_states, model, x, strengths)
    close(states, plain_states)
    assert at == plain_at == -1
    scale = np.where(np.isnan(x[1:]), 0.0, np.array([2.0, 0.5]))
    fast, plain = both(sensitivity, model, states, strengths, scale)
    v, r = rng.standard_normal(model.theta.size), rng.standard_normal((24, 2))
    close(fast.tangent(v), plain.tangent(v))
    close(fast.cotangent(r), plain.cotangent(r))
    assert fast.trace() == pytest.approx(plain.trace(), rel=1e-12)
    rows = []
    for each in (fast, plain):
        S, part = np.zeros((5, model.theta.size)), np.empty((24, 2, model.theta.size))
        each.rows(0, S, part[:10])
        each.rows(10, S, part[10:])
        rows.append(part)
    close(*rows)


@every_network
@pytest.mark.parametrize(("gate_std", "flow"), [(0.0, False), (0.5, False), (0.0, True)])
def test_tangents(model, gate_std, flow):
    rng = np.random.default_rng(5)
    noise = 0.1 * rng.standard_normal((40, 5)), rng.random((40, model.gated))
    steps = 40
    if flow:  # a path of its own has neither noise nor chance; near rest its direction is rounding
        steps, noise = 8, (np.empty((0, 5)), np.empty((0, model.gated)))
    outcomes = []
    for chosen in (carried.dispatch(ALRNN), carried.dispatch(object)):
        z, V, sums, speed = np.ones(5), np.eye(5)[:3].copy(), np.zeros((5, 3)), np.zeros(int(flow))
        window = np.empty((0, 5))
        if flow:
            window = np.array(model.rollout(np.ones(2), 5).states)
            z = window[2].copy()
        moving, growth = Moving(z, V, speed, window), Growth(3, 10, sums)
        assert chosen(model, (gate_std, *noise), steps, moving, growth) == -1
        outcomes.append((z, V, sums, speed, window))
    for one, other in zip(*outcomes, strict=True):
        close(one, other, 1e-9)  # orthonormal frames pass rounding on


@every_network
def test_orbits(model):
    (orbit, derivative), (plain_orbit, plain_derivative) = both(orbit_derivative, model, np.ones(5), 6)
    close(orbit, plain_orbit)
    close(derivative, plain_derivative)
