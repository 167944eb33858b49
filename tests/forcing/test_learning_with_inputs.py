"""Learning with external inputs: against complex steps, and against learning without them."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import complex_steps
from oracles import teacher_forcing as plain
from oracles.networks import random_network
from oracles.shallow_family import random_shallow

import palrnn
from palrnn import Forcing, TrainConfig, itf_gradient, itf_loss
from palrnn.engine.progress import quiet
from palrnn.forcing.objective import Moments, Updates, loss_and_gradient, run_updates
from palrnn.forcing.soap import blocks_in, curvature_of
from palrnn.model.inputs import driven
from palrnn.model.surrogate import training_vector

QUICK = TrainConfig(latent_dim=6, gated=2, updates=60, batch_size=8, sequence_length=20, forcing=4)
C = np.random.default_rng(9).standard_normal((5, 2))
FAMILIES = {
    "alrnn": driven(random_network(5, 2, 3, seed=1, gain=0.6), C),
    "shallow": driven(random_shallow(5, 2, 7, seed=3), C),
    "clipped": driven(random_shallow(5, 2, 7, seed=3, clipped=True), C),
}
every_family = pytest.mark.parametrize("model", FAMILIES.values(), ids=FAMILIES.keys())
either = pytest.mark.parametrize("share", [0.0, 0.4], ids=["whole", "gaps"])


def data(batch, length, share, seed=0):
    rng = np.random.default_rng(seed)
    x, s = rng.standard_normal((batch, length, 2)), rng.standard_normal((batch, length, 2))
    lost = rng.random(x.shape) < share
    lost[:, 0] = False
    return np.where(lost, np.nan, x), s


@either
@pytest.mark.parametrize(("tau", "alpha"), [(3, 1.0), (1, 0.3), (20, 1.0)])
def test_the_gradient_equals_complex_steps(share, tau, alpha):
    # nine sequences: eight that go together, and one by itself
    model = FAMILIES["alrnn"]
    x, s = data(9, 10, share)
    parameters = (model.A, model.W, model.h, model.C, model.E)
    expected_loss, expected = complex_steps.gradients(
        lambda parts: plain.batch_loss(parts, x, model.gated, tau, alpha, s, np), parameters
    )
    scale = max(float(np.abs(part).max()) for part in expected)
    loss, gradient = itf_gradient(model, x, Forcing.generalised(alpha, tau), inputs=s)
    assert loss == pytest.approx(float(expected_loss), rel=1e-12)
    assert itf_loss(model, x, Forcing.generalised(alpha, tau), inputs=s) == loss
    for name, part in zip("AWhCE", expected, strict=True):
        # both are exact up to rounding in float64
        np.testing.assert_allclose(getattr(gradient, name), part, rtol=0, atol=1e-9 * scale)


@either
@pytest.mark.parametrize("kind", ["shallow", "clipped"])
def test_the_gradient_of_the_shallow_family_equals_complex_steps(kind, share):
    model = FAMILIES[kind]
    x, s = data(9, 8, share)
    names = ("A", "W1", "W2", "h1", "h2", "C", "E")
    parameters = tuple(getattr(model, name) for name in names)
    expected_loss, parts = complex_steps.gradients(
        lambda parts: plain.shallow_batch_loss(parts, x, kind == "clipped", 3, 0.4, s, np), parameters
    )
    loss, gradient = loss_and_gradient(model, x, Forcing.generalised(0.4, 3), True, s)
    assert loss == pytest.approx(float(expected_loss), rel=1e-12)
    expected = np.concatenate([np.ravel(part) for part in parts])
    # both are exact up to rounding in float64
    np.testing.assert_allclose(gradient, expected, rtol=0, atol=1e-9 * np.abs(expected).max())


@every_family
@either
@pytest.mark.parametrize("batch", [3, 17])
def test_kernels_agree_with_the_plain_engine(model, share, batch):
    x, s = data(batch, 20, share, seed=2)
    forcing = Forcing.generalised(0.4, 3)
    loss, gradient = loss_and_gradient(model, x, forcing, True, s)
    plain_loss, plain_gradient = loss_and_gradient.dispatch(object)(model, x, forcing, True, s)
    assert loss == pytest.approx(plain_loss, rel=1e-12)
    np.testing.assert_allclose(gradient, plain_gradient, rtol=0, atol=1e-12 * np.abs(plain_gradient).max())


@every_family
@either
def test_the_plain_gradient_equals_differences_of_the_loss(model, share):
    x, s = data(3, 12, share, seed=4)
    loss = loss_and_gradient.dispatch(object)
    _, gradient = loss(model, x, Forcing.identity(3), True, s)
    own = model.theta.size - C.size
    for k in (own, own + 3, own + C.size - 1):  # entries of C
        step = np.zeros(model.theta.size)
        step[k] = 1e-6
        up, down = (
            loss(model.with_theta(model.theta + e), x, Forcing.identity(3), False, s)[0]
            for e in (step, -step)
        )
        assert gradient[k] == pytest.approx((up - down) / 2e-6, rel=1e-6, abs=1e-8)


@every_family
@either
def test_updates_agree_with_the_plain_engine(model, share):
    rng = np.random.default_rng(3)
    x, s = (part[0] for part in data(1, 60, share, seed=5))
    possible = np.flatnonzero(~np.isnan(x[:40]).any(axis=1))
    todo = Updates(
        done=0,
        series=x,
        whole=share == 0.0,
        drive=s,
        starts=rng.choice(possible, (12, 3)),
        noise=0.1 * rng.standard_normal((12, 4, 3, 2)),
        length=20,
        interval=5,
        strengths=np.linspace(1.0, 0.2, 12),
        rates=np.linspace(1e-2, 1e-3, 12),
        clip=0.5,
    )
    outcomes = []
    for chosen in (run_updates.dispatch(type(model)), run_updates.dispatch(object)):
        vector = training_vector(model)
        blocks = blocks_in(model, curvature_of(model))
        moments, told = (
            Moments(np.zeros_like(vector), np.zeros_like(vector), blocks),
            (np.empty(12), np.empty(12)),
        )
        assert chosen(model, vector, moments, todo, told) == -1
        outcomes.append((vector, *told))
    for one, other in zip(*outcomes, strict=True):
        # twelve updates pass rounding on
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-9 * np.abs(other).max())


def pushed(length=600, seed=0):
    """A damped rotation that is pushed at random: nothing but its input keeps it going."""
    rng = np.random.default_rng(seed)
    s, x = rng.standard_normal((length, 1)), np.zeros((length, 2))
    turn = 0.9 * np.array([[np.cos(0.5), -np.sin(0.5)], [np.sin(0.5), np.cos(0.5)]])
    for t in range(length - 1):
        x[t + 1] = turn @ x[t] + s[t] * [0.5, 0.0]
    return x, s


@pytest.mark.parametrize("family", ["alrnn", "shallow"])
def test_a_model_with_inputs_beats_one_without_in_one_step_error(family):
    x, s = pushed()
    config = QUICK.changed(family=family, updates=2000, learning_rate=1e-2, final_learning_rate=1e-3)
    config = config.changed(input_noise=0.0)
    config = config.changed(latent_dim=2, hidden=4) if family == "shallow" else config
    with_inputs = palrnn.train(x[:500], config, inputs=s[:500], progress=quiet).model
    without = palrnn.train(x[:500], config, progress=quiet).model
    errors = itf_loss(with_inputs, x[500:], 1, inputs=s[500:]), itf_loss(without, x[500:], 1)
    # the input is a quarter of the variance per step that nothing else can tell
    assert errors[0] < 0.1 * errors[1]
    assert errors[1] > 0.2
    assert with_inputs.C.shape == (config.latent_dim, 1)


def test_training_with_inputs_continues_to_the_same_bytes(tmp_path):
    x, s = pushed(200)
    whole = palrnn.train([x[:100], x[100:]], QUICK, inputs=[s[:100], s[100:]], progress=quiet).model

    def stop(done, _total, _figures):
        if done >= 25:
            raise KeyboardInterrupt

    again = QUICK.changed(checkpoint_every=25)
    with pytest.raises(KeyboardInterrupt):
        palrnn.train([x[:100], x[100:]], again, inputs=[s[:100], s[100:]], run=tmp_path, progress=stop)
    found = palrnn.train(
        [x[:100], x[100:]], again, inputs=[s[:100], s[100:]], run=tmp_path, progress=quiet
    ).model
    np.testing.assert_array_equal(found.theta, whole.theta)
    with pytest.raises(ValueError, match="was started on other data"):
        palrnn.train([x[:100], x[100:]], again, inputs=[s[:100], -s[100:]], run=tmp_path, progress=quiet)


def test_the_free_run_is_measured_along_the_held_out_inputs():
    x, s = pushed(800)
    config = QUICK.changed(updates=20, evaluate_every=20, evaluate_steps=300, evaluate_discard=50)
    config = config.changed(evaluate_long_steps=1000)
    result = palrnn.train(
        x[:400], config, inputs=s[:400], heldout=x[400:], heldout_inputs=s[400:], progress=quiet
    )
    assert np.isfinite(result.history.evaluations[0].dstsp)


def test_inputs_that_do_not_fit_are_refused_by_name():
    x, s = pushed(100)
    model, alone = FAMILIES["alrnn"], random_network(5, 2, 3, seed=1)
    with pytest.raises(ValueError, match=r"inputs must be given, \(100, 2\)"):
        itf_loss(model, x, 4)
    with pytest.raises(ValueError, match="inputs must be None"):
        itf_loss(alone, x, 4, inputs=s)
    with pytest.raises(ValueError, match=r"inputs must have shape \(2, 50, 2\)"):
        itf_gradient(model, x.reshape(2, 50, 2), 4, inputs=np.zeros((2, 49, 2)))
    with pytest.raises(ValueError, match=r"inputs must be \(100, 1\), one row .* got \(99, 1\)"):
        palrnn.train(x, QUICK, inputs=s[:99])
    with pytest.raises(ValueError, match=r"inputs must be finite, got nan at index \(3, 0\)"):
        palrnn.train(x, QUICK, inputs=np.where(np.arange(100)[:, None] == 3, np.nan, s))
    with pytest.raises(ValueError, match="inputs must hold one series for each of 2 trials"):
        palrnn.train([x[:50], x[50:]], QUICK, inputs=s)
    with pytest.raises(ValueError, match=r"heldout_inputs must be given, \(100, 1\)"):
        palrnn.train(x, QUICK, inputs=s, heldout=x)
    with pytest.raises(ValueError, match="heldout_inputs must come with heldout"):
        palrnn.train(x, QUICK, inputs=s, heldout_inputs=s)
