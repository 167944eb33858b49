"""Models whose fate is known, and what `viability` makes of them."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest

from palrnn import ALRNN, PALRNN, lorenz63, spread_starts, viability
from palrnn.data import kernels
from palrnn.data.systems import lorenz63_system, rossler_system
from palrnn.invariants import dstsp_floor
from palrnn.invariants.verdict import quick_verdict
from palrnn.model import engine
from palrnn.model.engine import PiecewiseAffine

_STARTS = np.linspace(-0.5, 0.5, 10)[:, None]


def _scalar(left, right, offset):
    """z' = left z + offset for z < 0, right z + offset for z > 0."""
    return ALRNN([left], [[right - left]], [offset], [[1.0]], 1)


def _rotation(modulus, angle=0.7):
    """A linear spiral whose radius changes by ``modulus`` per step, observed in its first coordinate."""
    c, s = modulus * math.cos(angle), modulus * math.sin(angle)
    return ALRNN([0.0, 0.0], [[c, -s], [s, c]], [0.0, 0.0], [[1.0], [0.0]], 0)


class _Flow(PiecewiseAffine):
    """A simulated flow in the place of a model; only the members that a free run needs do anything."""

    gated = 0
    theta = np.zeros(0)

    def __init__(self, system, dt):
        self.system, self.dt = system, dt
        self.latent_dim = self.observed_dim = system.dim

    def embed(self, x):
        return np.array(x)

    def _nothing(self, *arguments):
        raise NotImplementedError

    with_theta = arrays = from_arrays = gate_map = affine = pullback = _nothing


@engine.advance.register
def _advance(model: _Flow, z, steps):
    states = np.empty((steps, *z.shape))
    nothing, parameters = np.empty((0, z.shape[1])), np.array(model.system.parameters)
    for s, start in enumerate(z):
        run, room = np.empty((steps, z.shape[1])), np.empty((5, z.shape[1]))
        kernels.simulate(model.system.field, start.copy(), parameters, model.dt, nothing, steps, room, run)
        states[:, s] = run
    return states


def test_a_run_into_a_fixed_point_comes_to_rest_when_the_closed_form_says():
    # z_t = 10 + (z_0 - 10) 0.9^t
    found = viability(_scalar(0.9, 0.9, 1.0), _STARTS, 5000)
    assert found.counts == {"rests": 10}
    for fate, start in zip(found.fates, _STARTS[:, 0], strict=True):
        expected = math.log(0.01 / (10 - start)) / math.log(0.9)
        assert fate.step == math.ceil(expected)
    assert found.alive == 0
    assert "comes to rest after" in found.verdict


def test_a_cycle_of_period_seven_is_counted():
    # from 1 the map goes to -162, and climbs by z' = 0.4 z + 1 until it is above 0 again
    found = viability(_scalar(0.4, -163.0, 1.0), _STARTS, 20_000)
    assert found.counts == {"cycle": 10}
    assert {fate.period for fate in found.fates} == {7}
    assert max(fate.step for fate in found.fates) < 200


def test_a_transient_of_twenty_thousand_steps_is_told_from_motion():
    modulus = 0.01 ** (1 / 20_000)
    starts = np.tile([[1.0]], (10, 1))
    found = viability(_rotation(modulus), starts)
    assert found.counts == {"rests": 10}
    # every tenth state is kept, and the larger coordinate of some is 2 % less than the radius: 90 steps
    assert abs(found.fates[0].step - 20_000) <= 100
    # as long as it lasts, it moves
    assert viability(_rotation(modulus), starts, 15_000).counts.get("rests") is None


def test_a_diverging_map_is_told_with_its_step():
    # z_t = (z_0 + 10) 1.1^t - 10 leaves 1e10
    found = viability(_scalar(1.1, 1.1, 1.0), _STARTS, 2000)
    assert found.counts == {"diverges": 10}
    expected = math.log(1e10 / (_STARTS[0, 0] + 10)) / math.log(1.1)
    assert found.fates[0].step == math.ceil(expected)
    assert "diverges" in found.verdict


def test_one_run_that_diverges_does_not_hide_the_others():
    # |z| < 1 is a chaotic tent; beyond its repelling fixed point at -1/0.8 runs leave
    tent = _scalar(1.8, -1.8, 1.0)
    starts = np.concatenate([np.linspace(-0.5, 0.5, 9), [-2.0]])[:, None]
    found = viability(tent, starts, 20_000)
    assert found.counts == {"moves on": 9, "diverges": 1}
    assert found.fates[-1].outcome == "diverges"
    assert not found.viable
    assert found.alive == 9


def test_the_true_lorenz_system_moves_on_from_everywhere():
    x = lorenz63(20_000, discard=5000)
    found = viability(_Flow(lorenz63_system(), 0.01), spread_starts(x), data=x)
    assert found.viable
    assert found.verdict == "moves on for 100,000 steps from 10 of 10 starts"


def test_the_true_rossler_system_moves_on_and_a_periodic_one_is_a_cycle():
    chaotic, periodic = rossler_system(), rossler_system(c=2.5)
    starts = chaotic.simulate(1000, dt=0.05)[::100]
    assert viability(_Flow(chaotic, 0.05), starts).viable
    found = viability(_Flow(periodic, 0.05), starts, 50_000)
    assert found.counts == {"cycle": 10}
    # the limit cycle at c = 2.5 has period 5.75 time units, in steps of 0.05
    assert all(abs(fate.period - 115) <= 2 for fate in found.fates)


def test_where_the_score_is_blind_only_the_model_that_lives_is_good():
    """Twelve columns of noise, and in each a little of Lorenz-63: a score at its floor says nothing."""
    rng, x = np.random.default_rng(0), lorenz63(5000, discard=5000)
    noisy = x @ rng.standard_normal((3, 12)) / 20 + rng.standard_normal((5000, 12))
    floor = dstsp_floor(noisy, length=2500, pairs=3)

    def grade(model, starts, steps=100_000):
        return quick_verdict(viability(model, starts, steps), floor.median, floor, noisy).grade

    assert grade(_scalar(0.9, 0.9, 1.0), _STARTS, 5000) == "not usable"
    assert grade(_scalar(0.4, -163.0, 1.0), _STARTS, 20_000) == "not usable"
    assert grade(_rotation(0.01 ** (1 / 20_000)), np.tile([[1.0]], (10, 1))) == "not usable"
    assert grade(_scalar(1.1, 1.1, 1.0), _STARTS, 2000) == "not usable"
    assert grade(_Flow(lorenz63_system(), 0.01), spread_starts(x)) == "good"


def test_a_run_beside_the_data_leaves_their_region():
    # two chaotic tents, one above the other: the data live in the lower one
    shift = 5.0
    tent = ALRNN([1.8], [[-3.6]], [1.0], [[1.0]], 1)
    data = np.asarray(tent.rollout([0.2], 2000).states)
    shifted = ALRNN(
        [0.0, 1.8], [[0.0, 0.0], [0.0, -3.6]], [shift, 1.0], [[1.0], [0.2]], 1
    )  # the first unit jumps to the shift and stays, while the second is chaotic
    found = viability(shifted, data[:10], 5000, data=data)
    assert found.counts == {"leaves": 10}
    assert found.fates[0].step <= 1
    assert viability(shifted, data[:10], 5000).viable


def test_noise_is_left_out_and_the_plain_engine_agrees():
    tent = _scalar(1.8, -1.8, 1.0)
    noisy = viability(PALRNN(tent, 0.1, 0.1, 0.5), _STARTS, 2000)
    assert noisy.fates == viability(tent, _STARTS, 2000).fates
    z = np.linspace(-0.5, 0.5, 4)[:, None]
    fast, plain = engine.advance(tent, z, 20), engine.advance.dispatch(object)(tent, z, 20)
    # 0.6 nats a step over 20 steps make 1e-16 at most 1e-11
    np.testing.assert_allclose(fast, plain, atol=1e-10)


def test_the_answer_is_plain_values_and_the_arguments_are_checked():
    found = viability(_scalar(0.9, 0.9, 1.0), _STARTS, 1000).to_dict()
    assert found["alive"] == 0
    assert found["starts"] == 10
    assert found["fates"][0]["outcome"] == "rests"
    model = _scalar(0.9, 0.9, 1.0)
    with pytest.raises(ValueError, match="starts"):
        viability(model, _STARTS[:3])
    with pytest.raises(ValueError, match="steps"):
        viability(model, _STARTS, 10)
    with pytest.raises(ValueError, match="data"):
        viability(model, _STARTS, data=np.zeros((5, 2)))


def test_starts_are_spread_over_the_series():
    x = np.arange(101.0)[:, None]
    assert spread_starts(x, 11)[:, 0].tolist() == list(range(0, 101, 10))


def test_large_models_run_in_groups_with_the_same_fates(monkeypatch):
    tent = _scalar(1.8, -1.8, 1.0)
    starts = np.concatenate([np.linspace(-0.5, 0.5, 9), [-2.0]])[:, None]
    whole = viability(tent, starts, 2000).fates
    # the function has taken the place of its module
    monkeypatch.setattr(sys.modules["palrnn.invariants.viability"], "_UNITS", 3)
    assert viability(tent, starts, 2000).fates == whole


def test_a_cycle_whose_period_fits_the_block_is_not_taken_for_rest():
    """A rotation by a ninth of a turn is back after 9 steps, and after 999."""
    found = viability(_rotation(1.0, 2 * np.pi / 9), np.tile([[1.0]], (10, 1)), 3001)
    assert found.counts == {"cycle": 10}
    assert found.fates[0].period == 9
