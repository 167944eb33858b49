"""`palrnn.reconstruct`: choices that suit the data, and answers equal to those of the rooms."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest
from tiny_reconstruction import SIZES, TINY, tiny_reconstruction

import palrnn
from palrnn.data import lorenz63, suggest_tau
from palrnn.facade import judging
from palrnn.forcing import itf_loss
from palrnn.geometry import curvature_gap, itf_fisher, observed_information
from palrnn.invariants import dstsp, lyapunov_spectrum

pytestmark = pytest.mark.filterwarnings("ignore::palrnn.geometry.IndefiniteInformationWarning")


@pytest.fixture(scope="module")
def result():
    return tiny_reconstruction()


def test_the_last_part_is_held_out_and_the_rest_sets_the_scale(result):
    x = lorenz63(5000, seed=3)
    np.testing.assert_array_equal(result.reference, x[4000:])
    np.testing.assert_allclose(result.standardizer.mean, x[:4000].mean(axis=0), rtol=1e-12)
    assert result.about.training_steps == 4000
    assert "Reconstruction" in repr(result)


def test_training_lowers_the_loss(result):
    first, last = result.losses[0][1], np.mean([loss for _, loss in result.losses[-50:]])
    # far more than the scatter of the loss from batch to batch, which is about a tenth of it
    assert last < 0.2 * first


def test_tau_comes_from_the_training_part_unless_given():
    x = lorenz63(3000, seed=3)
    chosen = palrnn.reconstruct(x, updates=1, **SIZES)
    assert chosen.tau == suggest_tau(x[:2400])
    assert palrnn.reconstruct(x, updates=1, tau=5, **SIZES).tau == 5


def test_of_several_trials_the_last_is_held_out():
    trials = [lorenz63(n, seed=n) for n in (300, 200, 250)]
    found = palrnn.reconstruct(trials, updates=1, **SIZES)
    np.testing.assert_array_equal(found.reference, trials[-1])
    assert (found.about.trials, found.about.training_steps) == (3, 500)


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
        ("at least|T >= 40", {"x": np.zeros((5, 2))}),
        ("larger test_fraction", {"test_fraction": 0.01}),
        ("columns must name 3 coordinates, got 2", {"columns": ["a", "b"]}),
        ("columns must be a sequence", {"columns": "abc"}),
        ("system must be one of lorenz63, rossler", {"system": "lorenz"}),
        ("lags must be >= 1", {"lags": 0}),
        ("gated must be at most latent_dim", {"gated": 99}),
        ("momentum is not a known setting", {"momentum": 1}),
    ],
)
def test_errors_name_what_is_wrong(words, settings):
    settings = {"x": lorenz63(400, seed=3), "updates": 1} | SIZES | settings
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


def test_invariants_are_those_of_the_room(result):
    found = result.invariants(TINY.judge)
    made, truth = result.generate(400, discard=50), result.reference[:400]
    assert found.dstsp == pytest.approx(dstsp(made, truth).value, rel=1e-12)
    start = result.standardizer.transform(truth[0])
    spectrum = lyapunov_spectrum(result.model, start, steps=400, discard=50, dt=0.01)
    assert found.exponents[0] == pytest.approx(spectrum.largest, rel=1e-9)
    assert len(found.exponents) == 8
    assert found.symbols is not None
    assert sum(found.symbols.occupancy) == pytest.approx(1, abs=1e-9)
    for i in {start for start, _, _ in found.symbols.transitions}:
        # given that a code is left, the next one is some code; only rare moves (below 0.5 %) are left out
        leaving = sum(p for start, _, p in found.symbols.transitions if start == i)
        assert 0.9 < leaving <= 1 + 1e-9


def test_a_known_system_gives_true_exponents():
    found = tiny_reconstruction(updates=1, system="lorenz63").invariants(TINY.judge)
    # the literature's 0.9056 (Sparrow, 1982), with the error of 100,000 steps
    assert found.reference_exponents[0] == pytest.approx(0.9056, abs=0.03)
    # the sum of Lorenz-63's exponents is minus the trace of its linear part
    assert sum(found.reference_exponents) == pytest.approx(-(10 + 1 + 8 / 3), rel=1e-3)


def test_the_forced_prediction_has_the_loss_of_training(result):
    x = result.standardizer.transform(result.reference[:300])
    found = judging.forecast(result.model, x, result.standardizer, tau=8)
    error = (found.forced[1:] - found.truth[1:]) / result.standardizer.std
    assert np.square(error).sum(axis=1).mean() == pytest.approx(itf_loss(result.model, x, 8), rel=1e-9)
    np.testing.assert_allclose(found.free, result.generate(300), rtol=1e-9)


def test_geometry_is_that_of_the_room(result):
    found, s = result.geometry(TINY.geometry), TINY.geometry
    x = result.standardizer.transform(result.reference[:40])
    louis = observed_information(
        result.probabilistic, x, particles=s.particles, paths=s.paths, states_per_path=s.states_per_path
    )
    itf = itf_fisher(result.model, x, 8, 0.1)
    gap = curvature_gap(itf, louis.observed, 40)
    assert (found.gap is None) == math.isnan(gap)
    if found.gap is not None:
        assert found.gap == pytest.approx(gap, rel=1e-6)
    assert found.trace_itf == pytest.approx(np.trace(itf), rel=1e-9)
    parts = found.trace_observed + found.trace_state + found.trace_switching
    assert parts == pytest.approx(found.trace_complete, rel=1e-9)
    assert found.dimension == len(found.eigenvalues_itf) == 80


def test_filter_and_evidence_score_held_out_data(result):
    found = result.filter(TINY.filter)
    assert result.filtering(TINY.filter).log_evidence == pytest.approx(found.log_evidence, rel=1e-12)
    assert len(found.ess) == 39
    assert math.isfinite(
        result.evidence(8, windows=4, particles=16, progress=palrnn.engine.progress.quiet).mean
    )


def test_tuning_keeps_the_drift_where_only_noise_is_tuned(result):
    quiet = palrnn.engine.progress.quiet
    calibrated = result.tune("calib", TINY.tune, progress=quiet)
    np.testing.assert_array_equal(calibrated.model.theta, result.model.theta)
    assert calibrated.noise != result.noise
    full = result.tune("full", TINY.tune, progress=quiet)
    assert not np.array_equal(full.model.theta, result.model.theta)
    stages = result.tuning(TINY.tune, progress=quiet).stages
    assert [stage.name for stage in stages] == ["baseline", "calib", "full"]
    assert stages[1].process_std == pytest.approx(calibrated.noise.process_std, rel=1e-12)
    # calibration leaves the hard-gated dynamics as they are
    assert stages[0].dstsp == stages[1].dstsp


def test_a_saved_run_comes_back_with_its_findings(result, tmp_path, monkeypatch):
    result.save(tmp_path / "run")
    again = palrnn.Reconstruction.load(tmp_path / "run")
    np.testing.assert_array_equal(again.generate(50), result.generate(50))
    assert (again.tau, again.dt, again.columns) == (result.tau, result.dt, result.columns)
    found = again.invariants(TINY.judge)
    monkeypatch.setattr(judging, "scorecard", _refused)
    fresh = palrnn.Reconstruction.load(tmp_path / "run")
    assert fresh.invariants(TINY.judge) == found
    with pytest.raises(AssertionError, match="computed again"):
        fresh.invariants(TINY.judge, pairs=1)
    file = tmp_path / "run" / "findings" / "invariants.json"
    kept = json.loads(file.read_text())
    for damaged in ("{", json.dumps(kept | {"found": {"steps": "many"}}), json.dumps([1])):
        file.write_text(damaged)
        with pytest.raises(AssertionError, match="computed again"):
            palrnn.Reconstruction.load(tmp_path / "run").invariants(TINY.judge)


def _refused(*_, **__):
    raise AssertionError("computed again")


def test_findings_belong_to_their_noise(result):
    noisier = result.with_noise(observation_std=0.3)
    assert noisier.filtering(TINY.filter).log_evidence != result.filtering(TINY.filter).log_evidence
    with pytest.raises(ValueError, match="observation_std"):
        result.with_noise(observation_std=-1)


def test_a_run_folder_says_what_it_lacks(result, tmp_path):
    with pytest.raises(ValueError, match="no such folder"):
        palrnn.Reconstruction.load(tmp_path / "none")
    result.save(tmp_path / "run")
    (tmp_path / "run" / "reference.npy").unlink()
    with pytest.raises(ValueError, match=r"reference.npy: no such file; give the held-out series"):
        palrnn.Reconstruction.load(tmp_path / "run")
    np.save(tmp_path / "run" / "reference.npy", result.reference[:, :2])
    with pytest.raises(ValueError, match="has 2 columns, the model observes 3"):
        palrnn.Reconstruction.load(tmp_path / "run")


def test_the_report_has_all_sections(result, tmp_path):
    result.report(tmp_path / "report.html", TINY, progress=palrnn.engine.progress.quiet)
    page = (tmp_path / "report.html").read_text()
    keys = "glance done attractor series training invariants symbols geometry filter evidence"
    for key in keys.split():
        assert f'<section id="{key}"' in page


def test_a_linear_model_and_a_single_coordinate_make_a_report(tmp_path):
    x = lorenz63(3000, seed=3)[:, :1]
    settings = SIZES | {"gated": 0}
    found = palrnn.reconstruct(x, updates=50, tau=4, **settings)
    found.report(tmp_path / "report.html", TINY, progress=palrnn.engine.progress.quiet)
    assert '<section id="symbols"' not in (tmp_path / "report.html").read_text()
