"""`palrnn.reconstruct`: choices that suit the data, and answers equal to those of the rooms."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from tiny_reconstruction import SIZES, TINY, tiny_reconstruction

import palrnn
from palrnn.data import Standardizer, lorenz63, suggest_tau
from palrnn.engine.progress import quiet
from palrnn.forcing import itf_loss
from palrnn.geometry import (
    InformationConfig,
    compare_geometries,
    curvature_gap,
    itf_fisher,
    laplace,
    observed_information,
)
from palrnn.inference import FilterDiagnostics
from palrnn.invariants import dstsp, lyapunov_spectrum
from palrnn.model import ALRNN, PALRNN, Forcing, Noise
from palrnn.runs import Reconstruction, training
from palrnn.tuning import saem

pytestmark = [
    pytest.mark.filterwarnings("ignore::palrnn.geometry.IndefiniteInformationWarning"),
    pytest.mark.filterwarnings("ignore::palrnn.inference.FewPathsWarning"),
]


@pytest.fixture(scope="module")
def result():
    return tiny_reconstruction()


def test_the_last_part_is_held_out_and_the_rest_sets_the_scale(result):
    x = lorenz63(5000, seed=3)
    np.testing.assert_array_equal(result.reference, x[4000:])
    np.testing.assert_allclose(result.standardizer.mean, x[:4000].mean(axis=0), rtol=1e-12)
    assert result.record.run.training_steps == 4000
    assert "Reconstruction" in repr(result)


def test_training_lowers_the_loss(result):
    first, last = result.losses[0][1], np.mean([loss for _, loss in result.losses[-50:]])
    # far more than the scatter of the loss from batch to batch, which is about a tenth of it
    assert last < 0.2 * first


def test_tau_comes_from_the_training_part_unless_given():
    x = lorenz63(3000, seed=3)
    chosen = palrnn.reconstruct(x, updates=1, **SIZES)
    assert chosen.forcing == Forcing.identity(suggest_tau(x[:2400]))
    assert palrnn.reconstruct(x, updates=1, tau=5, **SIZES).tau == 5
    gentle = palrnn.reconstruct(x, updates=1, forcing=Forcing.generalised(0.1), **SIZES)
    assert gentle.forcing == Forcing.generalised(0.1)


def test_of_several_trials_the_last_is_held_out():
    trials = [lorenz63(n, seed=n) for n in (300, 200, 250)]
    found = palrnn.reconstruct(trials, updates=1, **SIZES)
    np.testing.assert_array_equal(found.reference, trials[-1])
    assert (found.record.run.trials, found.record.run.training_steps) == (3, 500)


def test_the_past_becomes_coordinates_with_names():
    found = palrnn.reconstruct(
        lorenz63(2000, seed=3)[:, :1], lags=3, delay=4, columns=["u"], updates=1, **SIZES
    )
    assert found.columns == ("u", "u, 4 steps ago", "u, 8 steps ago")
    np.testing.assert_array_equal(found.reference[4:, 1], found.reference[:-4, 0])


def test_a_data_frame_names_its_coordinates():
    frame = pd.DataFrame(lorenz63(1000, seed=3), columns=["a", "b", "c"])
    assert palrnn.reconstruct(frame, updates=1, **SIZES).columns == ("a", "b", "c")


@pytest.mark.parametrize(
    ("words", "settings"),
    [
        ("x must be given", {"x": None}),
        ("must leave 40 steps", {"x": lorenz63(50, seed=3)}),
        ("larger test_fraction", {"test_fraction": 0.01}),
        (
            "x must have a row without gaps for a training sequence of sequence_length = 40 rows",
            {"x": np.where(np.arange(400)[:, None] % 3 == np.arange(3), np.nan, lorenz63(400, seed=3))},
        ),
        ("columns must name 3 coordinates, got 2", {"columns": ["a", "b"]}),
        ("columns must be a sequence", {"columns": "abc"}),
        ("system must be one of lorenz63", {"system": "lorenz"}),
        ("dt must be given where system is", {"system": "lorenz63"}),
        ("has 3 coordinates, got 2", {"system": "lorenz63", "dt": 0.01, "x": lorenz63(400, seed=3)[:, :2]}),
        ("lyapunov: input should be", {"lyapunov": "much"}),
        ("lags: input should be", {"lags": 0}),
        ("gated must be at most latent_dim", {"gated": 99}),
        ("momentum is not a known setting", {"momentum": 1}),
    ],
)
def test_errors_name_what_is_wrong_before_training(words, settings, monkeypatch):
    settings = {"x": lorenz63(400, seed=3), "updates": 1} | SIZES | settings
    monkeypatch.setattr(training, "train", _refused)
    with pytest.raises(ValueError, match=words):
        palrnn.reconstruct(settings.pop("x"), **settings)


def test_generate_runs_freely_in_raw_coordinates(result):
    made = result.generate(100, discard=10)
    start = result.standardizer.transform(result.reference[0])
    z = result.model.embed(start)
    for _ in range(10):
        z = result.model.step(z)
    # the first state kept is the one after the discarded ones
    np.testing.assert_allclose(made[0], result.standardizer.inverse(z[:3]), rtol=1e-9)
    assert made.shape == (100, 3)
    elsewhere = result.generate(5, x1=result.reference[7])
    np.testing.assert_allclose(elsewhere[0], result.reference[7], rtol=1e-12)


def test_a_free_run_that_diverges_is_short_and_says_so():
    model = ALRNN([2.0], [[0.0]], [0.1], [[1.0]], 0)
    wild = Reconstruction(model, Standardizer([0.0], [1.0]), np.ones((50, 1)))
    with pytest.warns(RuntimeWarning, match="diverged after 3[0-9] steps"):
        assert 30 < len(wild.generate(100)) < 40


def test_invariants_are_those_of_the_room(result):
    found = result.invariants(TINY.invariants)
    made, truth = result.generate(400, discard=50), result.reference[:400]
    assert found.hard.dstsp.value == pytest.approx(dstsp(made, truth).value, rel=1e-12)
    start = result.standardizer.transform(truth[0])
    spectrum = lyapunov_spectrum(result.model, start, steps=400, discard=50, dt=0.01, flow=True)
    assert found.hard.lyapunov.largest == pytest.approx(spectrum.largest, rel=1e-9)
    assert found.hard.lyapunov.kaplan_yorke == pytest.approx(spectrum.kaplan_yorke, rel=1e-9)
    assert 4 <= len(found.hard.lyapunov.exponents) <= 8
    assert found.sampled is None
    assert found.symbols.occupancy.sum() == pytest.approx(1, abs=1e-9)
    # asked again, it is the same object
    assert result.invariants(TINY.invariants) is found


def test_a_known_system_gives_true_exponents():
    found = tiny_reconstruction(updates=1, system="lorenz63").invariants(TINY.invariants)
    assert found.system == "lorenz63"
    assert found.reference_exponents.exponents[0] == 0.9056
    # the sum of Lorenz-63's exponents is minus the trace of its linear part
    assert found.reference_exponents.exponents.sum() == pytest.approx(-(10 + 1 + 8 / 3), rel=1e-3)


@pytest.mark.parametrize("forcing", [Forcing.identity(8), Forcing.generalised(0.3, 2), Forcing.none()])
def test_the_forced_prediction_has_the_loss_of_training(result, forcing):
    forced = replace(result, forcing=forcing).tracking(300)
    x = result.standardizer.transform(result.reference[:300])
    error = (forced.forced[1:] - forced.truth[1:]) / result.standardizer.std
    loss = itf_loss(result.model, x, forcing)
    assert np.square(error).sum(axis=1).mean() == pytest.approx(loss, rel=1e-9)
    np.testing.assert_allclose(forced.free, result.generate(300), rtol=1e-9)


@pytest.mark.parametrize("latent", [4, 8])
def test_a_forced_prediction_that_diverges_leaves_a_gap(latent, tmp_path):
    # the last unit more than doubles at every step and moves the others; forcing sets back the observed ones
    seen, rng = 3 if latent == 4 else 2, np.random.default_rng(0)
    weights = 0.01 * rng.standard_normal((latent, latent))
    model = ALRNN(np.r_[np.full(latent - 1, 0.5), 2.5], weights, np.ones(latent), np.zeros((latent, seen)), 0)
    held = rng.standard_normal((1000, seen))
    scale = Standardizer(np.zeros(seen), np.ones(seen))
    whole = Reconstruction(model, scale, held, forcing=Forcing.identity(8))
    found = whole.tracking()
    lost = np.isnan(found.forced).all(axis=1)
    first = int(lost.argmax())
    # a state counts as diverged from 1e10 on, which is about 2.5 to the 25th
    assert 20 < first < 40
    assert lost[first:].all()
    assert np.isfinite(found.forced[:first]).all()
    whole.report(tmp_path / "report.html", TINY, progress=quiet)
    page = (tmp_path / "report.html").read_text()
    assert f"without the {1000 - first} steps, from step {first} on, at which it diverges" in page
    assert "the forced rollout diverges on these steps" in page


def test_forcing_brings_a_fully_observed_model_back():
    model = ALRNN([3.0], [[0.0]], [0.0], np.zeros((1, 1)), 0)
    scale = Standardizer([0.0], [1.0])
    found = (
        Reconstruction(model, scale, np.ones((201, 1)), forcing=Forcing.identity(50)).tracking().forced[:, 0]
    )
    # 3^20 is below 1e10, 3^21 above
    np.testing.assert_allclose(found[[20, 51, 70]], [3.0**20, 3.0, 3.0**20])
    assert np.isnan(found[[21, 50, 71]]).all()


def test_geometry_is_that_of_the_room(result):
    found = result.geometry(TINY.geometry)
    x = result.standardizer.transform(result.reference[:40])
    louis = observed_information(result.probabilistic, x, **_louis_settings())
    itf = itf_fisher(result.model, x, 8, 0.1)
    assert found.gap == pytest.approx(curvature_gap(itf, louis.observed, 40), rel=1e-6, nan_ok=True)
    assert found.trace_itf == pytest.approx(np.trace(itf), rel=1e-9)


def _louis_settings():
    return {
        name: value for name, value in TINY.geometry.budget.items() if name in InformationConfig.model_fields
    }


def test_geometry_anchor_and_tracking_use_the_forcing_of_the_training():
    gentle = tiny_reconstruction(updates=20, tau=3, alpha=0.4)
    assert gentle.forcing == Forcing.generalised(0.4, 3)
    x = gentle.standardizer.transform(gentle.reference[:40])
    expected = np.trace(itf_fisher(gentle.model, x, Forcing.generalised(0.4, 3), 0.1))
    found = gentle.geometry(TINY.geometry)
    assert found.trace_itf == pytest.approx(expected, rel=1e-9)
    assert found.trace_itf != pytest.approx(np.trace(itf_fisher(gentle.model, x, 3, 0.1)), rel=1e-3)
    anchored = gentle.tune("anchored", TINY.tuning.task, progress=quiet)
    assert anchored.saem.config.forcing == anchored.forcing == Forcing.generalised(0.4, 3)
    assert gentle.tracking(50).forcing == Forcing.generalised(0.4, 3)


def test_another_forcing_can_be_asked_about(result):
    x = result.standardizer.transform(result.reference[:40])
    found = result.geometry(TINY.geometry, forcing=3)
    assert found.trace_itf == pytest.approx(np.trace(itf_fisher(result.model, x, 3, 0.1)), rel=1e-9)
    assert result.geometry(TINY.geometry).trace_itf != found.trace_itf


def test_filter_and_evidence_score_held_out_data(result):
    found = result.filter(TINY.filter)
    health = result.diagnostics(TINY.filter)
    assert health.log_evidence == pytest.approx(found.log_evidence, rel=1e-12)
    assert len(found.ess) == health.steps == 40
    assert math.isfinite(result.evidence(8, windows=4, particles=16, progress=quiet).mean)
    # the whole held-out part, but for its first row
    assert len(result.filter(particles=4).ess) == 999
    with pytest.raises(ValueError, match="start 990 and steps 40 do not fit a series of 1000 rows"):
        result.filter(TINY.filter, start=990)


def test_a_short_held_out_part_is_taken_whole_unless_more_is_asked_for(result):
    short = replace(result, reference=result.reference[:60])
    few = {"particles": 4, "paths": 4}
    assert short.geometry(**few, states_per_path=2).to_dict()["steps"] == 60
    assert short.diagnostics(palrnn.ReportSettings().filter, **few).steps == 59
    assert len(short.invariants(pairs=1).prediction.mse) == 15
    with pytest.raises(ValueError, match="start 0 and steps 61 do not fit a series of 60 rows"):
        short.geometry(steps=61, **few)


def test_diagnostics_survive_their_plain_form(result):
    health = result.diagnostics(TINY.filter)
    again = FilterDiagnostics.from_dict(json.loads(json.dumps(health.to_dict())))
    assert again.to_dict() == health.to_dict()
    assert again.config == health.config


def test_tuning_keeps_the_drift_where_only_noise_is_tuned(result):
    calibrated = result.tune("calib", TINY.tuning.task, progress=quiet)
    np.testing.assert_array_equal(calibrated.drift.theta, result.model.theta)
    assert calibrated.model.process != result.probabilistic.process
    full = result.tune("full", TINY.tuning.task, progress=quiet)
    assert not np.array_equal(full.drift.theta, result.model.theta)
    stages = result.tuning(TINY.tuning, progress=quiet)
    assert list(stages.results) == ["baseline", "calib", "full"]
    assert stages.results["calib"].model.process == calibrated.model.process
    # calibration leaves the hard-gated dynamics as they are
    assert stages.row("baseline")["dstsp"] == stages.row("calib")["dstsp"]


def test_tuning_judges_by_the_second_half_of_what_was_held_out(result):
    x = result.standardizer.transform(result.reference)
    found = result.tune("calib", TINY.tuning.task, progress=quiet).saem
    expected = saem(
        result.probabilistic, x[:500], found.config, heldout=x[500:], reference=x[500:], progress=quiet
    )
    np.testing.assert_array_equal(found.history["heldout_evidence"], expected.history["heldout_evidence"])
    assert found.model.process == expected.model.process


def test_other_data_can_tune(result):
    other = lorenz63(400, seed=9)
    found = result.tune("calib", TINY.tuning.task, series=other, test_fraction=0.5, progress=quiet).saem
    x = result.standardizer.transform(other)
    expected = saem(
        result.probabilistic, x[:200], found.config, heldout=x[200:], reference=x[200:], progress=quiet
    )
    assert found.model.process == expected.model.process


def test_windows_are_no_longer_than_the_data_unless_that_is_asked_for(result):
    short = replace(result, reference=result.reference[:80])
    few = {"iterations": 1, "windows": 2, "particles": 8, "paths": 2, "progress": quiet}
    found = short.tune("calib", **few).saem.config
    assert found.length == 9
    assert found.heldout_windows == 4
    with pytest.raises(ValueError, match="too short for windows of 64 steps"):
        short.tune("calib", length=64, **few)


def test_a_tuned_model_is_the_one_that_is_asked(result):
    """Noise per coordinate and a start of its own survive tuning, saving and every analysis."""
    noisy = result.with_noise(process=np.linspace(0.05, 0.3, 8), initial=0.4)
    tuned = noisy.tune("calib", TINY.tuning.task, diagonal_noise=True, progress=quiet)
    assert tuned.model is tuned.saem.model is tuned.probabilistic
    assert tuned.model.process.kind == tuned.model.observation.kind == "diagonal"
    assert tuned.model.initial == Noise.isotropic(0.4)
    x = result.standardizer.transform(result.reference[:40])
    expected = compare_geometries(tuned.saem.model, x, result.forcing, **TINY.geometry.budget)
    assert tuned.geometry(TINY.geometry).gap == pytest.approx(expected.gap, rel=1e-12, nan_ok=True)
    assert tuned.invariants(TINY.invariants).sampled is not None


def _refused(*_, **__):
    raise AssertionError("computed again")


def test_the_report_has_all_sections(result, tmp_path):
    result.report(tmp_path / "report.html", TINY, progress=quiet)
    page = (tmp_path / "report.html").read_text()
    keys = "verdict done attractor forecast series training invariants symbols geometry filter evidence"
    for key in keys.split():
        assert f'<section id="{key}"' in page


def test_a_linear_model_and_a_single_coordinate_make_a_report(tmp_path):
    x = lorenz63(3000, seed=3)[:, :1]
    settings = SIZES | {"gated": 0}
    found = palrnn.reconstruct(x, updates=50, tau=4, progress=quiet, **settings)
    found.report(tmp_path / "report.html", TINY, progress=quiet)
    assert '<section id="symbols"' not in (tmp_path / "report.html").read_text()


def test_a_forecast_starts_from_the_rows_it_is_given_and_is_raw():
    drift = ALRNN(np.full(2, 0.9), np.zeros((2, 2)), np.zeros(2), np.zeros((2, 1)), 0)
    scale = Standardizer(np.array([100.0]), np.array([10.0]))
    result = Reconstruction(PALRNN(drift, 0.01, 0.01, 0.1), scale, np.full((20, 1), 100.0))
    x = 100.0 + 10.0 * 0.9 ** np.arange(12)[:, None]
    x[5] = np.nan
    ahead = result.forecast(x, 5, paths=400, seed=1)
    assert ahead.paths.shape == (400, 5, 1)
    # noises of 0.1 in raw units, known to a hundredth
    np.testing.assert_allclose(ahead.mean[:, 0], 100.0 + 10.0 * 0.9 ** np.arange(12, 17), atol=0.05)
    low, high = ahead.band(0.9)
    assert (high - low < 1.0).all()
    assert (high - low > 0.2).all()
    # a posterior over drifts widens the bands
    unsure = laplace(drift, np.eye(drift.theta.size), prior_std=0.05)
    wider = result.forecast(x, 5, paths=400, seed=1, posterior=unsure).band(0.9)
    assert (wider[1] - wider[0] > 1.5 * (high - low)).all()
    with pytest.raises(ValueError, match="x must have 1 column"):
        result.forecast(np.ones((5, 2)), 3)
