"""What every family must do. Whoever adds one adds it to `FAMILIES`: the plain engine does the rest."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from families.plain_alrnn import PlainALRNN
from families.setar import SETAR, limit_cycle, two_dimensional
from oracles.networks import random_network
from oracles.shallow_family import random_shallow

import palrnn
from palrnn import Forcing, TrainConfig
from palrnn.model import family, family_name
from palrnn.model.engine import codes, jacobian, step
from palrnn.model.surrogate import training_vector, with_training_vector

FAMILIES = {
    "AL-RNN": random_network(5, 2, 3, seed=2, gain=0.4),
    "AL-RNN without gates": random_network(3, 1, 0, seed=3, gain=0.4),
    "AL-RNN without fast paths": PlainALRNN(random_network(5, 2, 3, seed=2, gain=0.4)),
    "shallow PLRNN": random_shallow(3, 2, 5, seed=1),
    "clipped shallow PLRNN": random_shallow(3, 2, 4, seed=2, clipped=True),
    "SETAR": limit_cycle(),
    "SETAR in two dimensions": two_dimensional(),
}
QUICK = TrainConfig(updates=60, batch_size=4, sequence_length=15, learning_rate=1e-2, forcing=5)
every_family = pytest.mark.parametrize("model", FAMILIES.values(), ids=FAMILIES)


def series_of(model, length=200):
    return palrnn.PALRNN(model, 0.1, 0.1, 0.2).sample(np.full(model.observed_dim, 0.1), length).observations


@every_family
def test_it_keeps_the_contract(model):
    palrnn.check_surrogate(model)
    assert isinstance(model, palrnn.Surrogate)
    assert family(family_name(model)) is type(model)


@every_family
def test_it_travels_between_processes_and_to_disk(model, tmp_path):
    again = pickle.loads(pickle.dumps(model))
    palrnn.save_checkpoint(tmp_path / "a", palrnn.PALRNN(model, 0.1, 0.2, 0.3), forcing=Forcing.none())
    loaded = palrnn.load_checkpoint(tmp_path / "a")
    assert loaded.forcing == Forcing.none()
    for each in (again, loaded.drift):
        assert type(each) is type(model)
        assert training_vector(each).tobytes() == training_vector(model).tobytes()


@every_family
def test_a_rollout_iterates_the_map(model):
    states = model.rollout(np.full(model.observed_dim, 0.3), 30, discard=5).states
    # the kernels sum in another order
    np.testing.assert_allclose(step(model, states[:-1]), states[1:], rtol=0, atol=1e-12)
    np.testing.assert_array_equal(model.codes(states), codes(model, states))
    np.testing.assert_array_equal(model.jacobian(states), jacobian(model, states))


@every_family
@pytest.mark.parametrize("forcing", [Forcing.identity(4), Forcing.generalised(0.3), Forcing.none()], ids=repr)
def test_the_gradient_of_the_loss_agrees_with_finite_differences(model, forcing):
    x = np.random.default_rng(0).standard_normal((3, 12, model.observed_dim))
    _, gradient = palrnn.itf_gradient(model, x, forcing)
    vector, size = training_vector(model), 1e-6
    for k in range(vector.size):
        change = np.zeros(vector.size)
        change[k] = size
        up, down = (
            palrnn.itf_loss(with_training_vector(model, vector + s * change), x, forcing) for s in (1, -1)
        )
        found = np.concatenate([gradient.theta, gradient.embedding])[k]
        # central differences of step 1e-6 on losses of order 1
        assert found == pytest.approx((up - down) / (2 * size), abs=1e-6)


@every_family
def test_the_itf_fisher_is_that_of_numerical_jacobians(model):
    x, forcing = series_of(model, 15), Forcing.generalised(0.4, 2)
    predictions = _forced_predictions(model, x, forcing)
    theta, size = model.theta, 1e-6
    columns = []
    for k in range(theta.size):
        change = np.zeros(theta.size)
        change[k] = size
        up, down = (_forced_predictions(model.with_theta(theta + s * change), x, forcing) for s in (1, -1))
        columns.append(((up - down) / (2 * size)).ravel())
    rows = np.stack(columns, axis=1) / 0.2
    expected = rows.T @ rows / len(predictions)
    operator = palrnn.ITFOperator(model, x, forcing, 0.2)
    dense, allowed = operator.dense(), 1e-6 * np.abs(expected).max()
    np.testing.assert_allclose(dense, expected, rtol=0, atol=allowed)
    assert operator.trace() == pytest.approx(np.trace(dense), rel=1e-10)
    v = np.random.default_rng(1).standard_normal(theta.size)
    np.testing.assert_allclose(operator @ v, dense @ v, rtol=0, atol=1e-9 * np.abs(dense @ v).max())


def _forced_predictions(model, x, forcing):
    z, predictions, seen = model.embed(x[0]), [], model.observed_dim
    for t, strength in enumerate(forcing.strengths(len(x) - 1)):
        z = np.concatenate([(1 - strength) * z[:seen] + strength * x[t], z[seen:]])
        z = step(model, z)
        predictions.append(z[:seen])
    return np.array(predictions)


@every_family
def test_training_lowers_the_loss_and_continues_bit_for_bit(model, tmp_path):
    x = series_of(model)
    start = model.with_theta(model.theta + 0.03)
    whole = palrnn.train(x, QUICK, model=start)
    # measured: to between 0.46 and 0.96 of what it was, close to the loss of the model that made the data
    assert palrnn.itf_loss(whole.model, x, 5) < palrnn.itf_loss(start, x, 5)
    assert (whole.config.family, whole.config.gated) == (family_name(model), model.gated)

    def interrupted(done, total, figures):
        if done >= 30:
            raise KeyboardInterrupt

    config = QUICK.changed(checkpoint_every=10)
    with pytest.raises(KeyboardInterrupt):
        palrnn.train(x, config, model=start, run=tmp_path, progress=interrupted)
    assert palrnn.load_checkpoint(tmp_path / "checkpoint.safetensors").training["done"] == 30
    again = palrnn.train(x, config, model=start, run=tmp_path)
    assert training_vector(again.model).tobytes() == training_vector(whole.model).tobytes()
    assert again.history.loss.tobytes() == whole.history.loss.tobytes()
    with pytest.raises(ValueError, match="was started on other data"):
        palrnn.train(x, config, model=model, run=tmp_path)


@pytest.mark.parametrize("name", ["alrnn", "setar", "shallow", "clipped-shallow"])
def test_a_family_with_a_random_start_can_be_named_in_the_settings(name):
    x = np.random.default_rng(0).standard_normal((100, 2))
    result = palrnn.train(x, QUICK.changed(family=name, latent_dim=4, gated=2, updates=3))
    assert family_name(result.model) == name
    assert (result.model.latent_dim, result.model.gated) == (4, 2)


@every_family
def test_all_invariants_are_there(model):
    x1 = np.full(model.observed_dim, 0.3)
    reference = model.rollout(x1, 400, discard=100).states[:, : model.observed_dim]
    reference = reference + 0.01 * np.random.default_rng(0).standard_normal(reference.shape)
    found = palrnn.quantities_of_interest(model, reference, discard=50)
    assert found.diverged_at is None
    assert np.isfinite(found.numbers()["lyapunov"])
    sampled = palrnn.quantities_of_interest(palrnn.PALRNN(model, 0.1, 0.1, 0.2), reference, discard=50)
    assert np.isfinite(list(sampled.numbers().values())).all()
    assert palrnn.prediction_error(model, reference, 5, horizon=20).mse.shape == (5,)
    points = palrnn.fixed_points(model, virtual=True)
    np.testing.assert_allclose(
        step(model, points.points[points.admissible]), points.points[points.admissible]
    )
    symbols = palrnn.symbolic_dynamics(codes(model, found.states))
    assert symbols.occupancy.sum() == pytest.approx(1.0)


def test_the_cycle_of_a_threshold_autoregression_is_found_and_stable():
    model = limit_cycle()
    (cycle,) = palrnn.cycles(model, model.rollout([0.1], 200).states, max_period=8)
    # x: 1, 5/7, -1/7 and the same with the other sign; both regimes have the multipliers of z^2 - 1.2 z + 0.6
    assert sorted(cycle.states[:, 0]) == pytest.approx(np.array([-7, -5, -1, 1, 5, 7]) / 7)
    assert np.abs(cycle.multipliers) == pytest.approx(np.full(2, 0.6**3))
    assert len(palrnn.fixed_points(model)) == 0


class Broken(SETAR):
    """A family of which one thing at a time is wrong."""


palrnn.register_family("broken", Broken)


def _broken(**wrong):
    """A class of its own, because the contract looks at classes."""
    cls = type("Broken", (Broken,), wrong | {"__module__": Broken.__module__, "__qualname__": "Broken"})
    palrnn.register_family("broken", cls)
    good = two_dimensional()
    return cls(good.Phi, good.phi, good.thresholds, good.delay)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            {"pullback": lambda s, z, c, r: 1.01 * SETAR.pullback(s, z, c, r)},
            "pullback disagrees with",
        ),
        ({"pullback": lambda s, z, c, r: SETAR.pullback(s, z, c, r)[..., 1:]}, "pullback must have shape"),
        ({"gate_pullback": lambda s, z, r: -SETAR.gate_pullback(s, z, r)}, "gate_pullback disagrees"),
        ({"embed": lambda s, x: 2.0 * SETAR.embed(s, x)}, r"first N entries of embed\(x\) must be x"),
        (
            {"affine": lambda s, c: (SETAR.affine(s, c)[0].swapaxes(-1, -2), SETAR.affine(s, c)[1])},
            "pullback",
        ),
        (
            {"gate_map": lambda s: (SETAR.gate_map(s)[0].T, SETAR.gate_map(s)[1])},
            "G of gate_map must have shape",
        ),
        ({"with_theta": lambda s, theta: s}, "with_theta"),
        (
            {"arrays": lambda s: SETAR.arrays(replace(s, phi=0 * s.phi))},
            r"from_arrays\(arrays\(\)\) is an",
        ),
        ({"observed_dim": property(lambda s: 7)}, "observed_dim must be from 1 to latent_dim = 6, is 7"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_family_that_breaks_the_contract_is_told_how(wrong, message):
    model = _broken(**wrong)
    with pytest.raises(palrnn.SurrogateError, match=message):
        palrnn.check_surrogate(model)


def test_gates_with_parameters_need_their_derivative():
    # a gate_pullback that hides itself
    def hidden(self):
        raise AttributeError("gate_pullback")

    with pytest.raises(palrnn.SurrogateError, match=r"it needs gate_pullback\(z, r\)"):
        palrnn.check_surrogate(_broken(gate_pullback=property(hidden)))


def test_a_family_may_inherit_the_fields_of_another():
    heir = type("Heir", (palrnn.ALRNN,), {"__module__": __name__})
    palrnn.register_family("heir", heir)
    assert family("heir") is heir
    assert not hasattr(heir, "gated")  # a field without a default: only instances have it
    start = heir.from_arrays(palrnn.initial_alrnn(4, 3, 2).arrays())
    assert type(start.with_theta(start.theta + 1.0)) is type(start.with_rows(start.rows)) is heir
    x = np.random.default_rng(0).standard_normal((60, 3))
    config = palrnn.TrainConfig(updates=3, sequence_length=10)
    assert type(palrnn.train(x, config, model=start).model) is heir


def test_a_class_that_takes_the_protocol_alone_lacks_its_members():
    with pytest.raises(ValueError, match=r"lacks .*theta"):
        palrnn.register_family("nothing", type("Nothing", (palrnn.Surrogate,), {}))


def test_a_class_that_is_no_surrogate_and_a_name_that_is_taken_are_refused():
    with pytest.raises(ValueError, match="Surrogate class"):
        palrnn.register_family("nothing", dict)
    with pytest.raises(ValueError, match="name must be new, got 'setar'"):
        palrnn.register_family("setar", palrnn.ALRNN)
    with pytest.raises(ValueError, match=r"family must be one of .*setar"):
        family("unknown")
    with pytest.raises(palrnn.SurrogateError, match="it has no latent_dim"):
        palrnn.check_surrogate("model")
    unregistered = type("Unregistered", (SETAR,), {})
    good = two_dimensional()
    with pytest.raises(palrnn.SurrogateError, match="registered family, got Unregistered"):
        palrnn.check_surrogate(unregistered(good.Phi, good.phi, good.thresholds))
