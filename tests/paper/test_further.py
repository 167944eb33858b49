"""Further readings: what a way changes is changed and nothing else, and the page says what it moves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from test_claims import gap_table

from palrnn.forcing import TrainConfig, train
from palrnn.geometry import itf_fisher
from palrnn.model import checkpoint_bytes
from palrnn.paper.models import Regime
from palrnn.paper.presets import load_preset, preset_file
from palrnn.paper.series import training_series
from palrnn.paper.studies.further import FurtherStudy, Way, measure_further, weighted_fisher
from palrnn.paper.studies.further.comparison import further_listing
from palrnn.paper.studies.gap import GapStudy, measure_geometry, measured_segment

SMOKE = load_preset("smoke")
REGIME = Regime(0.1, 0.5, 8, 0)


@pytest.fixture(scope="module")
def trained() -> dict[str, bytes]:
    series = training_series(SMOKE.data, 0.1, 0.5)
    config = TrainConfig.paper(latent_dim=6, gated=2, updates=100, batch_size=4, sequence_length=30, tau=8)
    made = train(series.train, config, progress=None).model
    return {"model": checkpoint_bytes(made, standardizer=series.standardizer, dt=0.01)}


def settings_of(**difference: object) -> dict[str, object]:
    study = FurtherStudy.of(SMOKE)
    way = Way(name="way", **difference)
    return dict(study.further_task(REGIME, study.readings()[0], way).settings)


def test_a_way_that_changes_nothing_gives_the_figures_of_the_curvature_study(trained) -> None:
    gap = GapStudy.of(SMOKE)
    whole = measure_geometry(dict(gap.geometry_task(REGIME, gap.settings.variants[0]).settings), trained)
    found = measure_further(settings_of(), trained)
    assert {name: whole[name] for name in found if name != "entropy_bound"} == {
        name: value for name, value in found.items() if name != "entropy_bound"
    }


def test_a_segment_begins_where_it_says_and_a_seed_is_the_filters(trained) -> None:
    _, x = measured_segment(settings_of(start=100), trained)
    np.testing.assert_array_equal(x, training_series(SMOKE.data, 0.1, 0.5).test[100:160])
    first, again = (measure_further(settings_of(again=number), trained) for number in (0, 1))
    assert settings_of(again=1)["seed"] == 1000
    assert first["trace_itf"] == again["trace_itf"]
    assert first["log_evidence"] != again["log_evidence"]


def test_own_noise_is_that_of_the_standardised_series_in_model_and_weights(trained) -> None:
    noise = training_series(SMOKE.data, 0.1, 0.5).noise
    settings = settings_of(noise="own")
    model, x = measured_segment(settings, trained)
    np.testing.assert_allclose(model.observation_variances, noise**2)
    expected = itf_fisher(model.drift, x, 8, noise)
    np.testing.assert_allclose(weighted_fisher(model, x, 8, "noise", "all"), expected, rtol=1e-12)
    assert measure_further(settings, trained)["trace_itf"] == pytest.approx(np.trace(expected), rel=1e-12)


def test_weights_of_the_loss_are_ones(trained) -> None:
    model, x = measured_segment(settings_of(), trained)
    weighted, plain = (weighted_fisher(model, x, 8, weights, "all") for weights in ("noise", "loss"))
    np.testing.assert_allclose(plain, 0.25 * weighted, rtol=1e-12, atol=1e-15)


def test_forced_rows_are_the_predictions_from_forced_states(trained) -> None:
    model, x = measured_segment(settings_of(), trained)
    found = weighted_fisher(model, x, 8, "noise", "forced")
    # a prediction that was not seen adds nothing: rows of two series differ by those after forcing
    forced = np.arange(8, len(x) - 1, 8)
    both, before = np.full_like(x, np.nan), np.full_like(x, np.nan)
    for part in (both, before):
        part[0], part[forced] = x[0], x[forced]
    both[forced + 1] = x[forced + 1]
    parts = [itf_fisher(model.drift, part, 8, 0.5) for part in (both, before)]
    expected = (len(x) - 1) * (parts[0] - parts[1]) / len(forced)
    # a difference of sums, of which each is known to 1e-15
    np.testing.assert_allclose(found, expected, atol=1e-11 * np.abs(parts[0]).max())


def test_the_listing_names_the_claims_that_a_way_moves() -> None:
    right = gap_table().drop(columns="variant")
    wrong = right.assign(gap=right["gap"] + 1, reading="mine")
    others = wrong.assign(reading="another", q90=1.0)
    ways = [
        right.assign(reading="mine", way="lower"),
        wrong.assign(way="no overlap", overlap50=0.9),
        wrong.iloc[:50].assign(way="half done"),
    ]
    made = further_listing("mine", pd.concat([others, wrong]), pd.concat(ways), 180, 50)
    assert made.columns == ["claim", "paper", "as it is", "lower", "no overlap", "half done"]
    rows = {row[0]: row[2:] for row in made.rows}
    assert rows["models"] == ["180", "180", "180", "50"]
    assert [
        cell.rpartition(": ")[2] for cell in rows["the gap ranges from about 10 up to about 1000"][:3]
    ] == [
        "**differs**",
        "agrees",
        "**differs**",
    ]
    assert "agree" not in rows["the gap ranges from about 10 up to about 1000"][3]
    assert "the gap ranges from about 10 up to about 1000" in rows["now agree"][1]
    assert rows["differ only here"][1] == ""
    assert "the leading-subspace overlap is low" in rows["differ only here"][2]
    assert rows["now agree"][2] == rows["now agree"][3] == ""
    # what agrees under the reading itself is no row of its own
    assert not any(row.startswith("q90") for row in rows)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('readings = ["16 particles, 2 tau, nominal"]', 'readings = ["mine"]', "must be names of readings"),
        ("start = 100", "start = 960", "'segment from step 100' goes beyond the 1000 steps"),
        ("tau = [8, 16]\nseeds = 1", "tau = [8, 60]\nseeds = 1", "with tau = 60 no step of a segment of 60"),
    ],
)
def test_what_cannot_be_computed_is_refused(old: str, new: str, message: str, tmp_path: Path) -> None:
    text = preset_file("smoke").read_text()
    assert text.count(old) == 1
    path = tmp_path / "wrong.toml"
    path.write_text(text.replace(old, new))
    with pytest.raises(ValueError, match=message):
        load_preset(path)
