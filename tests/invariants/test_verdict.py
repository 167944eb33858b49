"""The verdict on models whose quality is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from oracles.simulated import Simulated

from palrnn import ALRNN, Standardizer, lorenz63, spread_starts, viability
from palrnn.data.systems import lorenz63_system
from palrnn.invariants import Fate, Floor, LyapunovSpectrum, Viability, dstsp, dstsp_floor, scorecard
from palrnn.invariants.floors import score_floors
from palrnn.invariants.over_starts import StartScores, scores_over_starts
from palrnn.invariants.verdict import quick_verdict


def _tent(slope=1.8):
    return ALRNN([slope], [[-2 * slope]], [1.0], [[1.0]], 1)


@pytest.fixture(scope="module")
def card():
    """The true map against its own series."""
    model = _tent()
    series = np.asarray(model.rollout([0.2], 4000).states)
    how = {"dt": 1.0, "discard": 50, "pairs": 5, "lyapunov": np.log(1.8), "long_steps": 2000}
    return scorecard(model, series, **how)


def _with(card, *fates):
    return replace(card, viability=Viability(fates, 100_000))


def _scored(card, value):
    scores = np.full(10, value)
    return replace(card, over_starts=StartScores(scores, np.zeros(10), 2000))


def test_the_true_map_is_good(card):
    assert card.viability.viable
    assert str(card.verdict) == "good"
    assert card.verdict.good
    assert card.to_dict()["verdict"] == {"grade": "good", "reasons": [], "advice": []}


def test_a_model_that_comes_to_rest_is_not_usable_however_it_scores(card):
    moves, rests = Fate("moves on"), Fate("rests", 12_000)
    found = _with(card, *[moves] * 4, rests, *[Fate("rests", 50_000)] * 5).verdict
    assert found.grade == "not usable"
    assert str(found) == "not usable: comes to rest after 12,000 steps (6 of 10 starts); the data never do"
    # one of ten is a blemish
    assert _with(card, *[moves] * 9, rests).verdict.grade == "fair"


def test_one_run_that_diverges_is_enough(card):
    found = _with(card, *[Fate("moves on")] * 9, Fate("diverges", 289)).verdict
    assert str(found) == "not usable: diverges after 289 steps (1 of 10 starts)"
    assert found.causes == ("diverges",)


def test_a_cycle_is_an_end_unless_it_is_that_of_the_reference(card):
    cyclic = replace(_with(card, *[Fate("cycle", 100, 70)] * 10), lyapunov=None)
    assert cyclic.verdict.grade == "not usable"
    assert "falls onto a cycle of period 70" in str(cyclic.verdict)
    wave = np.sin(2 * np.pi * np.arange(2000) / 70)[:, None]
    assert replace(cyclic, reference=wave).verdict.good
    assert not _scored(replace(cyclic, reference=wave), 9.0).verdict.good
    assert not replace(_with(cyclic, *[Fate("cycle", 100, 30)] * 10), reference=wave).verdict.good


def test_noise_in_many_columns_hides_a_cycle_from_the_score_but_not_from_the_verdict():
    rng, columns, level = np.random.default_rng(0), 20, 0.45
    x = lorenz63(20_000, discard=2000)
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    # a loop of Lorenz-63 that closes to 0.006 deviations, followed again and again
    loop = np.tile(x[3227 : 3227 + 612], (8, 1))[:4500]
    mixing = rng.standard_normal((3, columns))
    mixing /= np.linalg.norm(mixing, axis=0)
    series, cycle = (each @ mixing + level * rng.standard_normal((len(each), columns)) for each in (x, loop))
    floor = dstsp_floor(series[:9000], length=4500, pairs=5)
    score = dstsp(cycle, series[:4500]).value
    assert score < floor.median + 0.5
    moves, turns = Viability((Fate("moves on"),) * 10, 1000), Viability((Fate("cycle", 0, 612),) * 10, 1000)
    assert quick_verdict(turns, score, floor, series[:9000]).causes == ("cycle",)
    assert quick_verdict(turns, score, floor, series[:9000]).grade == "not usable"
    assert quick_verdict(moves, score, floor, series[:9000]).good
    # the same run is right where the data are that cycle
    assert quick_verdict(turns, score, floor, cycle).good


def test_the_score_is_read_against_its_floor(card):
    floor = card.dstsp_floor.median
    assert _scored(card, floor + 0.4).verdict.good
    assert _scored(card, max(floor + 1.0, card.dstsp_floor.high + 0.1)).verdict.grade == "fair"
    found = _scored(card, floor + 5.0).verdict
    assert found.grade == "not usable"
    assert found.causes == ("score",)
    assert f"{floor:.2g}" in str(found)


def test_a_score_that_a_model_at_rest_would_have_says_nothing(card):
    assert card.dstsp_at_rest > card.dstsp_floor.median + 2
    blind = replace(card, dstsp_at_rest=card.dstsp_floor.median + 1.9)
    assert blind.verdict.grade == "fair"
    assert blind.verdict.causes == ("blind",)
    # what is bad anyway is called what it is
    assert _scored(blind, 9.0).verdict.causes == ("score",)


def test_thirty_rows_are_too_few_to_call_a_model_good():
    # two tents beside each other, whose square thirty points do not fill: the true map itself is only fair
    model = ALRNN([1.8] * 2, -3.6 * np.eye(2), [1.0] * 2, np.eye(2), 2)
    series = np.asarray(model.rollout([0.2, -0.3], 8000).states)
    how = {"dt": 1.0, "discard": 50, "pairs": 3, "long_steps": 1000}
    short = scorecard(model, series[:60], **how).verdict
    assert (short.grade, short.causes) == ("fair", ("blind",))
    assert scorecard(model, series, **how).verdict.good


def test_a_wrong_exponent_is_said(card):
    found = replace(card, lyapunov=0.2).verdict
    assert found.grade == "fair"
    assert found.causes == ("exponent",)
    assert "the true one 0.2" in str(found)


@pytest.mark.parametrize(("second", "believed"), [(-0.02, True), (-0.2, False), (0.2, False)])
def test_a_flow_must_have_an_exponent_of_zero(card, second, believed):
    exponents, errors = np.array([0.5, second, -3.0]), np.full(3, 0.01)
    spectrum = LyapunovSpectrum(exponents, errors, np.empty((1, 3)), np.array([90.0]), 3)
    flow = replace(card, lyapunov=None, flow=True, hard=replace(card.hard, map_lyapunov=spectrum))
    assert flow.verdict.good == believed
    if not believed:
        assert flow.verdict.causes == ("exponent",)
        assert f"of the model's map the nearest is {second}" in str(flow.verdict)
    # neither a map nor a driven system has one, and a known exponent tells more: that of the flow is right
    assert replace(flow, flow=False).verdict.good
    # of coarse samples there are none but the map's
    coarse = replace(flow.hard, lyapunov=spectrum, map_lyapunov=None)
    assert replace(flow, hard=coarse).verdict.good == believed
    assert flow.hard.lyapunov is not None
    assert replace(flow, lyapunov=flow.hard.lyapunov.largest).verdict.good
    # the second exponent of a run too short to tell it from zero
    unsure = replace(flow.hard, map_lyapunov=replace(spectrum, stderr=np.full(3, 0.1)))
    assert replace(flow, hard=unsure).verdict.good


def test_the_right_places_at_another_pace_are_not_good(card):
    """Lorenz-63 itself, at its own pace, twice and half of it, where no exponent is known."""
    source = lorenz63(40_000, discard=5000)
    x, starts = source[:9000], spread_starts(source)
    floors = score_floors(source, length=9000, pairs=12, bins=30, smoothing=1e-5, protocol="paper")
    unit = Standardizer(np.zeros(3), np.ones(3))
    for dt, grade in ((0.01, "good"), (0.02, "fair"), (0.005, "fair")):
        model = Simulated(lorenz63_system(), dt)
        life = viability(model, starts, data=x)
        runs = scores_over_starts(model, starts, x, standardizer=unit, discard=1000)
        pace = float(np.median(runs.spectrum_distance))
        quick = quick_verdict(life, float(np.median(runs.dstsp)), floors[0], x, spectrum=(pace, floors[1]))
        whole = replace(
            card,
            reference=x,
            viability=life,
            over_starts=runs,
            dstsp_floor=floors[0],
            spectrum_floor=floors[1],
            lyapunov=None,
        ).verdict
        for found in (quick, whole):
            assert found.grade == grade
            assert ("spectrum" in found.causes) == (dt != 0.01)
            # in half of the time it has been to fewer places; in twice the time D_stsp sees nothing
            assert "score" not in found.causes or dt == 0.005
    assert str(quick) == str(whole)
    assert f"D_H is {pace:.2g} where the reference differs from itself by {floors[1].median:.2g}" in str(
        quick
    )


def test_the_pace_is_read_against_its_floor(card):
    def with_pace(value, floor):
        runs = StartScores(card.over_starts.dstsp, np.full(10, value), 2000)
        return replace(card, over_starts=runs, spectrum_floor=Floor(np.array(floor), 2000)).verdict

    assert with_pace(0.14, [0.05]).good
    assert with_pace(0.16, [0.05]).causes == ("spectrum",)
    # stretches of the reference differ as much
    assert with_pace(0.16, [0.04, 0.05, 0.17]).good
    # half of the runs have no spectrum: that they rest is said elsewhere
    assert with_pace(1.0, [0.05]).good


def test_the_pace_of_noisy_data_is_that_of_runs_with_noise(card):
    slow = replace(card, over_starts=StartScores(card.over_starts.dstsp, np.full(10, 0.9), 2000))
    assert slow.verdict.causes == ("spectrum",)
    assert replace(slow, over_starts_with_noise=card.over_starts).verdict.good


def _two_rotations(first, second):
    """A linear network of two oscillations of so many steps a turn, with exponents of zero."""
    W = np.zeros((4, 4))
    for i, turn in enumerate((first, second)):
        c, s = np.cos(2 * np.pi / turn), np.sin(2 * np.pi / turn)
        W[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = [[c, -s], [s, c]]
    return ALRNN(np.zeros(4), W, np.zeros(4), np.eye(4), 0)


_NO_CHAOS = {
    # of 100,000 steps, a loop of 30,000 is not seen as one
    "loop": _two_rotations(30_000.4 / 101, 30_000.4 / 703),
    "torus": _two_rotations(50.0, 50 * (1 + 5**0.5) / 2),
}


@pytest.mark.parametrize("model", _NO_CHAOS.values(), ids=_NO_CHAOS.keys())
def test_a_loop_or_torus_is_not_good_for_data_that_do_not_repeat_themselves(model):
    x = lorenz63(8000, discard=2000)
    x = np.concatenate([x, x[:, :1] * x[:, 1:2]], axis=1)
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    how = {"dt": 1.0, "pairs": 3, "bins": 8}
    card = scorecard(model, x, **how)
    assert card.viability.viable
    assert card.chaotic is False
    assert "not chaotic" in card.verdict.causes
    nothing = StartScores(np.zeros(10), np.zeros(10), 4000)
    blind = replace(card, over_starts=nothing, over_starts_with_noise=None).verdict
    assert (blind.grade, blind.causes) == ("fair", ("not chaotic",))
    assert "loop or quasi-periodic" in str(blind)
    # of data like that it is the true model; a known exponent tells more than this
    own = np.asarray(model.rollout([1.0, 0.0, 0.5, 0.0], 12_000).states)
    assert scorecard(model, own, **how).verdict.good
    assert scorecard(model, x, lyapunov=0.0, **how).chaotic is None


def test_a_cycle_that_the_data_have_needs_no_chaos():
    c, s = np.cos(0.11), np.sin(0.11)
    circle = ALRNN([0.0, 0.0], [[c, -s], [s, c]], [0.0, 0.0], np.eye(2), 0)
    card = scorecard(circle, np.asarray(circle.rollout([1.4, 0.0], 8000).states), dt=1.0, pairs=5)
    assert card.viability.counts == {"cycle": 10}
    assert card.verdict.good


def test_a_slow_growth_is_told_from_none_by_a_longer_run():
    # e^4 in 22 steps, which a cycle may show for a while
    model = _tent(1.2)
    series = np.asarray(model.rollout([0.2], 44).states)
    card = scorecard(model, series, dt=1.0, discard=50, pairs=3, long_steps=2000)
    assert 3.0 < card.hard.lyapunov.largest * 22 < 5.0
    assert card.chaotic


def test_samples_of_a_flow_are_told_from_points_of_a_map():
    how = {"dt": 1.0, "discard": 50, "pairs": 3, "long_steps": 1000}
    map_ = np.asarray(_tent().rollout([0.2], 2000).states)
    assert not scorecard(_tent(), map_, **how).flow
    assert scorecard(_tent(), lorenz63(2000)[:, :1], **how).flow


def test_a_real_model_that_decays_is_told_from_its_data():
    series = np.asarray(_tent().rollout([0.2], 2000).states)
    still = ALRNN([0.5], [[0.0]], [0.1], [[1.0]], 1)
    found = scorecard(still, series, dt=1.0, discard=50, pairs=3, long_steps=1000).verdict
    assert found.grade == "not usable"
    assert found.causes[:1] == ("rests",)
    wild = scorecard(ALRNN([2.0], [[0.0]], [0.0], [[1.0]], 0), series, dt=1.0, pairs=3, long_steps=1000)
    assert wild.verdict.grade == "not usable"
    assert "diverges" in wild.verdict.causes


def test_scores_over_starts_spread_and_hold_the_score_of_the_first(card):
    found = card.over_starts
    assert len(found.dstsp) == 10
    assert found.length == 2000
    # the first start is that of the score itself; runs side by side round otherwise, and chaos does the rest
    assert abs(found.dstsp[0] - card.hard.dstsp.value) < 0.3
    assert found.dstsp.max() > found.dstsp.min()
    assert found.to_dict()["dstsp"]["starts"] == 10
