"""The forecasts of a report: noise from what was seen, bands that hold, words where there is none."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from made_runs import channels, growing, tent

from palrnn.data import Standardizer
from palrnn.model import ALRNN, PALRNN
from palrnn.runs import Reconstruction, fan
from palrnn.runs.bars import RULES
from palrnn.runs.view import _kept_bars


def spiral(process=0.03, observation=0.1, rows=900):
    """A damped rotation driven by noise, with its own series."""
    c, s = 0.99 * np.cos(0.2), 0.99 * np.sin(0.2)
    drift = ALRNN(np.zeros(2), [[c, -s], [s, c]], np.zeros(2), np.eye(2), 0)
    rng = np.random.default_rng(1)
    z, seen = np.array([0.2, 0.0]), []
    for _ in range(rows):
        z = drift.step(z) + process * rng.standard_normal(2)
        seen.append(z + observation * rng.standard_normal(2))
    return Reconstruction(
        model=drift, standardizer=Standardizer(np.zeros(2), np.ones(2)), reference=np.array(seen), dt=1.0
    )


@pytest.fixture(scope="module")
def found():
    return fan.fan(spiral(), None)


def test_the_noise_is_that_of_the_data(found):
    assert fan.likeliest_noise(spiral(), slice(0, 300)) == (0.03, 0.1)
    assert "the likeliest for the rows seen" in found.noise


def test_what_comes_after_has_no_say_in_it(found):
    run = spiral()
    changed = run.held.copy()
    changed[510:] *= 3.0
    other = fan.fan(dataclasses.replace(run, reference=changed), None)
    assert other.noise == found.noise
    np.testing.assert_array_equal(other.forecast.paths, found.forecast.paths)


def test_bands_hold_about_as_much_as_they_say(found):
    # 6 x 300 x 2 values, correlated over some 50 steps: about 70 that are independent, so 0.9 +- 0.11 at
    # three standard errors
    assert found.coverage[0.9] == pytest.approx(0.9, abs=0.11)
    assert found.coverage[0.5] == pytest.approx(0.5, abs=0.18)
    assert (found.past.shape, found.truth.shape) == ((60, 2), (300, 2))
    np.testing.assert_array_equal(found.past, spiral().held[450:510])
    np.testing.assert_array_equal(found.truth, spiral().held[510:810])


def test_bands_are_as_wide_as_the_first_half_asks_for():
    run = spiral()
    narrow = dataclasses.replace(run, model=PALRNN(run.model, 0.01, 0.03, 0.7))
    own = narrow.forecast(run.held[450:510], 300, particles=32)
    wider = fan.fan(narrow, None)
    # noise a third of the true one: bands of their own hold half of it, and need three times the width
    assert own.coverage(run.held[510:810], 0.9).mean() < 0.6
    assert wider.coverage[0.9] > 0.8
    assert "times as wide, and so they are" in wider.noise
    # in a short series the first half has no room for a forecast
    short = dataclasses.replace(narrow, reference=run.held[:500])
    assert fan.fan(short, None).noise == "that of the model itself"


def test_a_probabilistic_model_keeps_its_noise():
    run = spiral()
    own = dataclasses.replace(run, model=PALRNN(run.model, 0.03, 0.1, 0.7))
    assert fan.fan(own, None).noise.startswith("that of the model itself")


@pytest.mark.parametrize("make", [growing, tent, lambda: channels(20)])
def test_every_kind_of_model_has_a_forecast_or_words(make):
    made = fan.fan(make(), None)
    assert isinstance(made, str) or made.forecast.paths.shape[1:] == made.truth.shape


def test_a_series_too_short_or_all_gaps_is_said():
    run = spiral()
    gaps = run.held.copy()
    gaps[:, 1] = np.nan
    words = fan.fan(dataclasses.replace(run, reference=gaps), None)
    assert isinstance(words, str)
    assert "none without gaps" in words


def test_error_bars_count_only_for_the_model_they_are_of(tmp_path):
    run = spiral().save(tmp_path / "run")
    assert _kept_bars(run) is None
    figures = {"exponent 1": {"value": 0.1, "low": 0.0, "high": 0.2, "draws": []}}
    kept = {
        "key": {"model": run.fingerprint(), "rules": RULES},
        "found": {"method": "seeds", "models": 2, "figures": figures},
    }
    run.folder.findings.mkdir(exist_ok=True)
    file = run.folder.findings / "bars.json"
    file.write_text(json.dumps(kept))
    assert _kept_bars(run) == kept["found"]
    assert _kept_bars(run.with_dt(2.0)) is None
    # of figures that were measured otherwise, exponents of the map for one
    file.write_text(json.dumps(kept | {"key": {"model": run.fingerprint()}}))
    assert _kept_bars(run) is None
    file.write_text("{")
    assert _kept_bars(run) is None
