"""Models whose fate is known, and what `viability` makes of them."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
from oracles.simulated import Simulated, Spiral

from palrnn import ALRNN, PALRNN, lorenz63, spread_starts, viability
from palrnn.data.systems import lorenz63_system, rossler_system
from palrnn.invariants import dstsp_floor
from palrnn.invariants.verdict import quick_verdict
from palrnn.model import engine

_STARTS = np.linspace(-0.5, 0.5, 10)[:, None]
# time units that Rössler's flow takes at c = 3.5, where its cycle has two turns
_TWO_TURNS = 11.545218


def _scalar(left, right, offset):
    """z' = left z + offset for z < 0, right z + offset for z > 0."""
    return ALRNN([left], [[right - left]], [offset], [[1.0]], 1)


def _rotation(modulus, angle=0.7):
    """A linear spiral whose radius changes by ``modulus`` per step, observed in its first coordinate."""
    c, s = modulus * math.cos(angle), modulus * math.sin(angle)
    return ALRNN([0.0, 0.0], [[c, -s], [s, c]], [0.0, 0.0], [[1.0], [0.0]], 0)


def _turning(*turns, size=(1.0, 0.5)):
    """Two linear oscillations, of so many steps a turn, and starts on one path of both: a loop or a torus."""
    W = np.zeros((4, 4))
    for i, period in enumerate(turns):
        c, s = math.cos(2 * math.pi / period), math.sin(2 * math.pi / period)
        W[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = [[c, -s], [s, c]]
    starts = np.tile([[size[0], 0.0, size[1], 0.0]], (10, 1))
    return ALRNN(np.zeros(4), W, np.zeros(4), np.eye(4), 0), starts


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
    model = _scalar(0.4, -163.0, 1.0)
    found = viability(model, _STARTS, 20_000)
    assert found.counts == {"cycle": 10}
    assert {fate.period for fate in found.fates} == {7}
    # chaos comes before, for up to thousands of steps; every second state is kept
    runs = engine.advance(model, model.embed(_STARTS), 20_000)[:, :, 0]
    for fate, run in zip(found.fates, runs.T, strict=True):
        away = np.flatnonzero(np.abs(run[:-7] - run[7:]) > 0.1 * np.ptp(run[-7:]))
        assert abs(fate.step - (away[-1] + 8)) <= 10
    assert max(fate.step for fate in found.fates) > 1000


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
    found = viability(Simulated(lorenz63_system(), 0.01), spread_starts(x), data=x)
    assert found.viable
    assert found.verdict == "moves on for 100,000 steps from 10 of 10 starts"


def test_the_true_rossler_system_moves_on_and_a_periodic_one_is_a_cycle():
    chaotic, periodic = rossler_system(), rossler_system(c=2.5)
    starts = chaotic.simulate(1000, dt=0.05)[::100]
    assert viability(Simulated(chaotic, 0.05), starts).viable
    found = viability(Simulated(periodic, 0.05), starts, 50_000)
    assert found.counts == {"cycle": 10}
    # the limit cycle at c = 2.5 has period 5.75 time units, in steps of 0.05
    assert all(abs(fate.period - 115) <= 2 for fate in found.fates)


@pytest.mark.parametrize("period", [7, 499, 505, 1028, 3000, 7000])
def test_the_cycle_of_a_flow_is_seen_however_finely_it_is_sampled(period):
    # in seven steps a run jumps about, and is none of a flow: the cycle of a map stands for it
    flow = rossler_system(c=3.5)
    if period > 7:
        starts = flow.simulate(3000, dt=0.05, discard=10_000)[::300]
        found = viability(Simulated(flow, _TWO_TURNS / (period + 0.37)), starts)
        assert found.counts == {"cycle": 10}
        assert all(abs(fate.period - period) <= 1 for fate in found.fates)
        assert max(fate.step for fate in found.fates) < 1000
        return
    found = viability(_scalar(0.4, -163.0, 1.0), _STARTS)
    assert {fate.period for fate in found.fates} == {7}


@pytest.mark.parametrize("period", [499, 1028, 3000, 7000])
def test_a_loop_of_many_turns_is_seen(period):
    # 7 turns of one oscillation take as long as 24 of the other, as in a series that was learned by heart
    length = period + 0.37
    found = viability(*_turning(length / 7, length / 24))
    assert found.counts == {"cycle": 10}
    assert all(abs(fate.period - period) <= 1 for fate in found.fates)
    assert {fate.step for fate in found.fates} == {0}


@pytest.mark.parametrize("part", [0.5, 0.2])
@pytest.mark.parametrize("turn", [50, 300])
@pytest.mark.parametrize("ratio", [(1 + math.sqrt(5)) / 2, math.sqrt(2), math.e, 3.001])
def test_a_run_on_a_torus_is_on_no_cycle(ratio, turn, part):
    """It comes near to its start again and again, each time a little beside it."""
    assert viability(*_turning(turn, turn * ratio, size=(1.0, part))).viable


def test_chaos_is_no_cycle_however_finely_it_is_sampled():
    """Over a long turn it passes near every place of its attractor, at other times."""
    for system, steps in ((lorenz63_system(), (0.002, 0.01, 0.03)), (rossler_system(), (0.005, 0.05, 0.2))):
        starts = system.simulate(1000, dt=0.05, discard=5000)[::100]
        for dt in steps:
            assert viability(Simulated(system, dt), starts).viable


def test_a_slow_spiral_into_rest_is_on_no_cycle_before_it_is_there():
    starts = np.tile([[1.0]], (10, 1))
    for halved in (2000, 20_000, 70_000):
        found = viability(_rotation(0.5 ** (1 / halved), 0.05), starts, 50_000)
        assert set(found.counts) <= {"moves on", "rests"}
    # one that shrinks by a thousandth of itself goes round
    assert viability(_rotation(0.999 ** (1 / 50_000), 0.05), starts, 50_000).counts == {"cycle": 10}


def test_the_step_is_that_from_which_on_a_run_stays_on_its_loop():
    model = Spiral(1e-4)
    found = viability(model, np.tile([[0.5, 0.0]], (10, 1)))
    assert found.counts == {"cycle": 10}
    assert abs(found.fates[0].period - 300) <= 1
    # within a twentieth of its size, which is two radii
    assert model.radius(0.5, found.fates[0].step) == pytest.approx(0.9, abs=0.01)


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
    assert grade(Simulated(lorenz63_system(), 0.01), spread_starts(x)) == "good"


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
