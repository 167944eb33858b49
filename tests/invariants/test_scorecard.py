from __future__ import annotations

import json

import numpy as np
import pytest

from palrnn import ALRNN, PALRNN, Standardizer, lorenz63
from palrnn.data.systems import lorenz63_system
from palrnn.invariants import dstsp_floor, quantities_of_interest, scorecard
from palrnn.invariants.lyapunov import reference_spectrum


def _tent(slope=1.7):
    return ALRNN([slope], [[-2 * slope]], [1.0], [[1.0]], 1)


def _lorenz_model():
    """Not a good model: it decays to a fixed point. Good enough to be scored."""
    rng = np.random.default_rng(0)
    return ALRNN(
        np.full(5, 0.5), 0.1 * rng.standard_normal((5, 5)), np.ones(5), rng.standard_normal((5, 3)), 2
    )


def test_against_a_series_every_number_is_the_one_of_its_own_function():
    model = _tent()
    series = np.asarray(model.rollout([0.2], 4000).states)
    card = scorecard(model, series, dt=1.0, steps=9000, discard=50, lyapunov=np.log(1.7), pairs=3)
    # a series gives half of itself as the reference, so that the rest can tell the floor
    assert len(card.reference) == 2000
    # one coordinate is compared in its delay space; a map remembers itself for a step
    again = quantities_of_interest(model, series[:2000], dt=1.0, discard=50, k=1, delay=1)
    assert card.hard.dstsp == again.dstsp
    np.testing.assert_array_equal(
        card.dstsp_floor.values, dstsp_floor(series, length=2000, pairs=3, delay=1).values
    )
    assert card.lyapunov == np.log(1.7)
    assert card.reference_exponents is None
    assert len(card.symbols.codes) == 2
    assert len(card.fixed_points) == 2
    assert card.sampled is None
    # the true map forecasts itself, at least until chaos has grown rounding: 0.53 nats a step from 1e-16
    assert card.prediction.mse[0] < 1e-25
    assert card.prediction.valid_steps.min() > 40


def test_the_exponents_of_a_system_that_the_literature_does_not_know_are_computed():
    # 0.9056, with a parameter that is not the usual one to the last bit; and with a step that is too long
    for system, dt in ((lorenz63_system(rho=28.0 + 1e-12), 0.01), (lorenz63_system(), 0.02)):
        found = reference_spectrum(system, np.array([1.0, 2.0, 20.0]), steps=100_000, dt=dt)
        assert 0 < found.stderr[0] < 0.02
        assert abs(found.largest - 0.9056) < 4 * found.stderr[0]


def test_against_a_system_the_reference_exponents_are_those_of_the_literature():
    x = lorenz63(4000)
    card = scorecard(
        _lorenz_model(), lorenz63_system(), standardizer=Standardizer.fit(x), steps=1000, discard=100, pairs=2
    )
    assert card.lyapunov == 0.9056
    # Sprott (2003): the Kaplan-Yorke dimension of these exponents is 2.062
    assert card.reference_exponents.kaplan_yorke == pytest.approx(2.0621, abs=1e-4)
    assert (card.reference_exponents.stderr == 0).all()
    # a fixed point is in one bin, and has no spectrum
    assert card.hard.dstsp.value > 5
    assert card.hard.spectrum_distance == 1.0
    assert card.hard.lyapunov.largest < 0
    assert card.fixed_points.stable.any()


def test_it_survives_json_with_infinities_and_divergence():
    flat = ALRNN(np.zeros(2), np.zeros((2, 2)), np.zeros(2), [[1.0], [0.0]], 1)
    series = np.sin(0.1 * np.arange(400.0))
    found = json.loads(json.dumps(scorecard(flat, series, pairs=1, discard=5).to_dict(), allow_nan=False))
    assert found["hard"]["exponents"] == [None, None]
    wild = scorecard(ALRNN([2.0], [[0.0]], [0.0], [[1.0]], 0), series + 2, pairs=1).to_dict()
    json.dumps(wild, allow_nan=False)
    assert wild["hard"]["diverged_at"] > 0
    assert wild["hard"]["dstsp"] is None
    assert wild["codes_visited"] is None
    assert wild["prediction_mse"][-1] > 1


def test_a_palrnn_is_scored_twice():
    model = PALRNN(_tent(), 0.01, 0.1, 0.02)
    card = scorecard(model, np.asarray(model.drift.rollout([0.2], 1000).states), dt=1.0, discard=10, pairs=1)
    assert card.sampled.dstsp.value != card.hard.dstsp.value
    assert card.to_dict()["sampled"]["exponents"] is not None


def test_a_system_of_another_dimension_is_refused():
    with pytest.raises(ValueError, match="reference must have 1 coordinates, lorenz63 has 3"):
        scorecard(_tent(), lorenz63_system())


def _printed(runs, floor, length):
    spread = f"{runs.min():.3g} to {runs.max():.3g}, 10 starts, {length:,} steps"
    return f"{np.median(runs):.3g} ({spread}; floor {floor.median:.3g})"


def test_scores_are_printed_with_spread_length_and_floor():
    model = _tent()
    series = np.asarray(model.rollout([0.2], 2000).states)
    how = {"dt": 1.0, "discard": 50, "pairs": 2, "long_steps": 1000}
    card = scorecard(model, series, **how)
    facts, runs = dict(card.facts()), card.over_starts
    assert facts["D_stsp, hard-gated"] == _printed(runs.dstsp, card.dstsp_floor, 1000)
    assert facts["D_H, hard-gated"] == _printed(runs.spectrum_distance, card.spectrum_floor, 1000)
    assert facts["D_stsp, hard-gated"] in str(card)
    # the sampled model runs once
    sampled = dict(scorecard(PALRNN(model, 0.01, 0.1, 0.02), series, **how).facts())
    assert "(one run, 1,000 steps; floor" in sampled["D_stsp, sampled"]


def test_noisy_data_are_compared_with_noise_of_their_own_level():
    """A perfect model of a circle, against data with 10 % of noise, which no noise-free run can look like."""
    c, s = np.cos(0.11), np.sin(0.11)
    circle = ALRNN([0.0, 0.0], [[c, -s], [s, c]], [0.0, 0.0], np.eye(2), 0)
    clean = np.asarray(circle.rollout([1.4, 0.0], 8000).states)
    data = clean + 0.1 * np.random.default_rng(0).standard_normal(clean.shape)
    how = {"dt": 1.0, "pairs": 5, "long_steps": 2000, "lyapunov": 0.0}
    card = scorecard(circle, data, **how)
    np.testing.assert_allclose(card.noise, 0.1, rtol=0.06)
    plain, noisy = (np.median(x.dstsp) for x in (card.over_starts, card.over_starts_with_noise))
    assert plain > card.dstsp_floor.median + 1
    assert noisy < card.dstsp_floor.median + 0.5
    assert card.verdict.good
    assert card.to_dict()["over_starts_with_noise"]["dstsp"]["starts"] == 10
    told = dict(card.facts())["D_stsp, noise added"]
    assert told == _printed(card.over_starts_with_noise.dstsp, card.dstsp_floor, 4000)
    # of clean data there is nothing to add
    assert scorecard(circle, clean, **how).over_starts_with_noise is None
