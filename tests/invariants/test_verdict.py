"""The verdict on models whose quality is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from palrnn import ALRNN
from palrnn.invariants import Fate, Viability, scorecard
from palrnn.invariants.over_starts import StartScores


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


def test_a_cycle_is_an_end_only_where_the_reference_has_none(card):
    cyclic = _with(card, *[Fate("cycle", 100, 70)] * 10)
    assert cyclic.verdict.grade == "not usable"
    assert "falls onto a cycle of period 70" in str(cyclic.verdict)
    # a periodic reference: no positive exponent is known, and the loop fills its bins
    assert replace(cyclic, lyapunov=None).verdict.good
    assert not _scored(replace(cyclic, lyapunov=None), 9.0).verdict.good


def test_the_score_is_read_against_its_floor(card):
    floor = card.dstsp_floor.median
    assert _scored(card, floor + 0.4).verdict.good
    assert _scored(card, max(floor + 1.0, card.dstsp_floor.high + 0.1)).verdict.grade == "fair"
    found = _scored(card, floor + 5.0).verdict
    assert found.grade == "not usable"
    assert found.causes == ("score",)
    assert f"{floor:.2g}" in str(found)


def test_a_wrong_exponent_is_said(card):
    found = replace(card, lyapunov=0.2).verdict
    assert found.grade == "fair"
    assert found.causes == ("exponent",)
    assert "the true one 0.2" in str(found)


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
