"""What every forcing policy must do. Whoever adds one adds it to `POLICIES`."""

from __future__ import annotations

import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from oracles.networks import random_network

import palrnn
from palrnn import Forcing, TrainConfig
from palrnn.model import ALRNN, as_forcing
from palrnn.model.forcing_policy import critical_strength, policy

# a policy of one file, as anyone may add one


@policy("every other block")
@dataclass(frozen=True)
class EveryOtherBlock(Forcing):
    """Ten updates forced, ten left alone."""

    interval: int
    alpha: float = 0.5

    @property
    def strength(self):
        return self.alpha

    def strengths_of_updates(self, begin, end, updates):
        return self.alpha * ((np.arange(begin, end) // 10) % 2 == 0)


POLICIES = [
    Forcing.identity(7),
    Forcing.generalised(0.3),
    Forcing.generalised(0.0, interval=4),
    Forcing.annealed(0.5, 0.05),
    Forcing.annealed(1.0, 0.0, interval=3, schedule="linear"),
    Forcing.adaptive(start=0.8, every=4, decay=0.5),
    Forcing.none(),
    EveryOtherBlock(3),
]
every_policy = pytest.mark.parametrize("forcing", POLICIES, ids=repr)
SMALL = TrainConfig(latent_dim=6, gated=2, updates=37, batch_size=3, sequence_length=15, learning_rate=1e-2)


@every_policy
def test_it_comes_back_from_text_disk_and_other_processes(forcing, tmp_path):
    assert Forcing.from_dict(forcing.to_dict()) == forcing
    assert pickle.loads(pickle.dumps(forcing)) == forcing
    assert hash(pickle.loads(pickle.dumps(forcing))) == hash(forcing)
    config = TrainConfig(forcing=forcing)
    config.to_toml(tmp_path / "config.toml")
    assert TrainConfig.from_toml(tmp_path / "config.toml") == config
    assert TrainConfig(**config.model_dump(mode="json")).forcing == forcing
    assert [other == forcing for other in POLICIES].count(True) == 1


@every_policy
def test_its_strengths_lie_between_0_and_1_and_at_its_own_steps(forcing):
    along = forcing.strengths(20)
    forced = np.arange(20) % forcing.interval == 0
    forced[0] = False
    assert set(along[~forced]) <= {0.0}
    assert set(along[forced]) == {forcing.strength}
    updates = forcing.strengths_of_updates(0, 100, 100)
    assert ((updates >= 0) & (updates <= 1)).all()
    # however a run is cut into pieces
    parts = [forcing.strengths_of_updates(a, a + 25, 100) for a in (0, 25, 50, 75)]
    np.testing.assert_array_equal(np.concatenate(parts), updates)


@every_policy
def test_what_it_ends_with_is_constant(forcing):
    final = forcing.final
    assert (final.interval, final.strength) == (forcing.interval, forcing.strength)
    assert (final.strengths_of_updates(0, 50, 50) == forcing.strength).all()
    assert final.final == final
    model, x = random_network(4, 2, 2, gain=0.5), np.random.default_rng(0).standard_normal((20, 2))
    assert palrnn.itf_loss(model, x, forcing) == palrnn.itf_loss(model, x, final)
    np.testing.assert_array_equal(
        palrnn.itf_fisher(model, x, forcing, 0.1), palrnn.itf_fisher(model, x, final, 0.1)
    )


@every_policy
def test_training_continues_bit_for_bit_and_the_model_remembers_it(forcing, tmp_path):
    x = np.random.default_rng(1).standard_normal((80, 2))
    config = SMALL.changed(forcing=forcing, checkpoint_every=6)
    whole = palrnn.train(x, config)

    def interrupted(done, total, figures):
        if done >= 18:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        palrnn.train(x, config, run=tmp_path, progress=interrupted)
    again = palrnn.train(x, config, run=tmp_path)
    for one, other in (
        (whole.model.theta, again.model.theta),
        (whole.history.loss, again.history.loss),
        (whole.history.alpha, again.history.alpha),
    ):
        assert one.tobytes() == other.tobytes()
    kept = palrnn.load_checkpoint(tmp_path / "checkpoint.safetensors").forcing
    assert kept == whole.forcing == again.forcing
    assert kept.interval == forcing.interval
    if forcing.adapts_every is None:
        np.testing.assert_array_equal(whole.history.alpha, forcing.strengths_of_updates(0, 37, 37))
        assert kept == forcing.final
    else:
        assert kept.strength == whole.history.alpha[-1]


def test_a_number_is_the_interval_of_identity_forcing():
    assert (
        as_forcing(5) == Forcing.identity(5) == TrainConfig(tau=5).forcing == TrainConfig(forcing=5).forcing
    )
    for wrong in (0, 2.5, "often", None, True):
        with pytest.raises(ValueError, match="tau must be a Forcing or a number of steps"):
            as_forcing(wrong, "tau")


@pytest.mark.parametrize(
    ("numbers", "forcing"),
    [
        ({}, Forcing.identity(16)),
        ({"tau": 3}, Forcing.identity(3)),
        ({"tau": 1, "alpha": 0.2}, Forcing.generalised(0.2)),
        ({"tau": 1, "alpha": 0.5, "final_alpha": 0.1}, Forcing.annealed(0.5, 0.1)),
        (
            {"final_alpha": 0.0, "alpha_schedule": "linear"},
            Forcing.annealed(1.0, 0.0, interval=16, schedule="linear"),
        ),
        ({"forcing": Forcing.annealed(0.5, 0.1), "tau": 4}, Forcing.annealed(0.5, 0.1, interval=4)),
        ({"forcing": Forcing.annealed(0.5, 0.1), "alpha": 0.9}, Forcing.annealed(0.9, 0.1)),
        ({"forcing": Forcing.adaptive(decay=0.9), "tau": 4}, Forcing.adaptive(interval=4, decay=0.9)),
        ({"forcing": Forcing.none(), "tau": 4}, Forcing.generalised(0.0, 4)),
    ],
)
def test_settings_may_tell_or_change_it_by_numbers(numbers, forcing):
    config = TrainConfig(**numbers)
    assert (config.forcing, config.tau) == (forcing, forcing.interval)


def test_settings_of_the_forcing_can_be_changed_one_by_one():
    config = TrainConfig(tau=5, alpha=0.5, final_alpha=0.1)
    assert config.changed(tau=7).forcing == Forcing.annealed(0.5, 0.1, interval=7)
    assert config.changed(final_alpha=None).forcing == Forcing.generalised(0.5, 5)
    assert config.changed(forcing=Forcing.none()).forcing == Forcing.none()
    assert config.changed(updates=3).forcing == config.forcing


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Forcing.identity(0), "tau must be >= 1, got 0"),
        (lambda: Forcing.generalised(1.5), "alpha must be from 0 to 1, got 1.5"),
        (lambda: Forcing.generalised(0.5, 0), "interval must be >= 1"),
        (lambda: Forcing.annealed(0.5, -0.1), "end must be from 0 to 1"),
        (lambda: Forcing.annealed(0.5, 0.0), "cannot start or end at 0"),
        (
            lambda: Forcing.annealed(0.5, 0.1, schedule="square"),
            "schedule must be one of",
        ),
        (lambda: Forcing.adaptive(decay=2.0), "decay must be from 0 to 1"),
        (lambda: Forcing.adaptive(every=0), "every must be >= 1"),
        (lambda: Forcing.from_dict({"policy": "often"}), "the policy of forcing must be one of adaptive"),
        (lambda: Forcing.from_dict({"interval": 3}), "the policy of forcing must be one of adaptive"),
        (lambda: Forcing.from_dict({"policy": "identity", "tau": 3}), "forcing has settings that identity"),
        (lambda: policy("identity")(EveryOtherBlock), "name must be new, got 'identity'"),
    ],
)
def test_what_makes_no_policy_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def linear_model(rates):
    """A diagonal linear map."""
    return ALRNN(np.asarray(rates), np.zeros((len(rates),) * 2), np.zeros(len(rates)), np.eye(len(rates)), 0)


@pytest.mark.parametrize(("rates", "strength"), [([2.0, 0.3], 0.5), ([0.5, 0.9], 0.0), ([-4.0, 1.0], 0.75)])
def test_the_critical_strength_of_a_linear_map_is_that_of_its_largest_rate(rates, strength):
    x = np.random.default_rng(0).standard_normal((4, 50, 2))
    assert critical_strength(linear_model(rates), x) == pytest.approx(strength, abs=1e-12)


def test_the_critical_strength_follows_the_product_of_jacobians_along_the_worst_sequence():
    model = random_network(5, 2, 3, seed=1, gain=1.5)
    x = np.random.default_rng(0).standard_normal((3, 8, 2))
    growth = []
    for sequence in x:
        product = np.eye(5)
        for z in model.embed(sequence[:-1]):
            product = model.jacobian(z) @ product
        growth.append(np.linalg.norm(product, 2) ** (1 / 7))
    assert max(growth) > 1
    assert critical_strength(model, x) == pytest.approx(1 - 1 / max(growth), rel=1e-12)


def test_a_product_that_overflows_or_vanishes_has_a_critical_strength_too():
    x = np.ones((1, 1000, 2))
    assert critical_strength(linear_model([1e5, 1.0]), x) == pytest.approx(1 - 1e-5, rel=1e-12)
    assert critical_strength(linear_model([0.0, 0.0]), x) == 0.0


def test_an_adaptive_strength_rises_at_once_and_falls_slowly():
    forcing, x = Forcing.adaptive(decay=0.9), np.ones((1, 20, 2))
    assert forcing.adapted(0.2, linear_model([2.0, 1.0]), x) == pytest.approx(0.5)
    assert forcing.adapted(0.8, linear_model([2.0, 1.0]), x) == pytest.approx(0.9 * 0.8 + 0.1 * 0.5)
    # a start that contracts: the strength decays by the same factor at every estimate
    start = linear_model([0.5, 0.5])
    series = np.random.default_rng(0).standard_normal((60, 2))
    config = SMALL.changed(forcing=Forcing.adaptive(every=3, decay=0.9), learning_rate=1e-12, updates=9)
    alpha = palrnn.train(series, config.changed(final_learning_rate=1e-12), model=start).history.alpha
    np.testing.assert_allclose(alpha, np.repeat([0.9, 0.81, 0.729], 3), rtol=1e-12)
