"""`palrnn.reconstruct`: choices that suit the data, and answers equal to those of the rooms."""

from __future__ import annotations

import json
import math
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from tiny_reconstruction import SIZES, TINY, tiny_reconstruction

import palrnn
from palrnn.cli.main import main
from palrnn.data import Standardizer, lorenz63, suggest_tau
from palrnn.forcing import itf_loss
from palrnn.geometry import curvature_gap, itf_fisher, observed_information
from palrnn.invariants import dstsp, lyapunov_spectrum, symbolic_dynamics
from palrnn.model import ALRNN, checkpoint_from_bytes, load_checkpoint
from palrnn.runs import inferring, judging, learning
from palrnn.tuning import saem

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
        ("dt must be given where system is", {"system": "lorenz63"}),
        ("x must have the 3 columns of system", {"system": "lorenz63", "x": lorenz63(400, seed=3)[:, :2]}),
        ("lyapunov must be a finite number", {"lyapunov": "0.9"}),
        ("lags must be >= 1", {"lags": 0}),
        ("gated must be at most latent_dim", {"gated": 99}),
        ("momentum is not a known setting", {"momentum": 1}),
    ],
)
def test_errors_name_what_is_wrong_before_training(words, settings, monkeypatch):
    settings = {"x": lorenz63(400, seed=3), "updates": 1} | SIZES | settings
    monkeypatch.setattr(learning, "train", _refused)
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
    assert found.simulated == "lorenz63"
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


@pytest.mark.parametrize("latent", [4, 8])
def test_a_forced_prediction_that_diverges_leaves_a_gap(latent, tmp_path):
    # the last unit more than doubles at every step and moves the others; forcing sets back the observed ones
    seen, rng = 3 if latent == 4 else 2, np.random.default_rng(0)
    weights = 0.01 * rng.standard_normal((latent, latent))
    model = ALRNN(np.r_[np.full(latent - 1, 0.5), 2.5], weights, np.ones(latent), np.zeros((latent, seen)), 0)
    held = rng.standard_normal((1000, seen))
    scale = Standardizer(np.zeros(seen), np.ones(seen))
    found = judging.forecast(model, held, scale, tau=8)
    lost = np.isnan(found.forced).all(axis=1)
    first = int(lost.argmax())
    # a state counts as diverged from 1e10 on, which is about 2.5 to the 25th
    assert 20 < first < 40
    assert lost[first:].all()
    assert np.isfinite(found.forced[:first]).all()
    whole = palrnn.Reconstruction(model, scale, held)
    whole.report(tmp_path / "report.html", TINY, progress=palrnn.engine.progress.quiet)
    page = (tmp_path / "report.html").read_text()
    assert f"without the {1000 - first} steps, from step {first} on, at which it diverges" in page
    assert "the forced rollout diverges on these steps" in page


def test_forcing_brings_a_fully_observed_model_back():
    model = ALRNN([3.0], [[0.0]], [0.0], np.zeros((1, 1)), 0)
    x = np.ones((201, 1))
    found = judging.forecast(model, x, Standardizer([0.0], [1.0]), tau=50).forced[:, 0]
    # 3^20 is below 1e10, 3^21 above
    np.testing.assert_allclose(found[[20, 51, 70]], [3.0**20, 3.0, 3.0**20])
    assert np.isnan(found[[21, 50, 71]]).all()


def test_switching_codes_need_no_square_of_their_number():
    count = 4000
    found = symbolic_dynamics((np.arange(count)[:, None] >> np.arange(12)) % 2 == 1)
    assert len(found.codes) == count
    tracemalloc.start()
    shown = judging._symbols(found, np.zeros((count, 3)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # the whole matrix of transitions would take 128 MB
    assert peak < 10e6
    assert shown.distinct == count


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


def test_negative_directions_are_counted_even_if_the_trace_is_negative(result):
    few = {"particles": 2, "paths": 2, "states_per_path": 2, "steps": 40}
    found = result.with_noise(observation_std=3.0, process_std=0.02).geometry(**few)
    assert found.trace_itf + found.trace_observed < 0
    assert found.gap is None
    # what four samples say is missing has rank three, their mean being taken off, and is far too large there
    assert found.negative == 3
    assert len(found.eigenvalues_observed) == found.dimension


def test_without_matrices_no_directions_are_counted(result, monkeypatch):
    dense = result.geometry(TINY.geometry)
    monkeypatch.setattr("palrnn.geometry.summary.MOST_DENSE", 10)
    x = result.standardizer.transform(result.reference)
    light = inferring.compared(result.probabilistic, x, result.tau, TINY.geometry)
    assert light.negative is None
    assert light.eigenvalues_itf == ()
    assert light.trace_itf == pytest.approx(dense.trace_itf, rel=1e-9)
    # by Lanczos, the same subspaces
    assert light.overlap[0][1] == pytest.approx(dict(dense.overlap)[50], rel=1e-6)


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


def test_anchored_tuning_holds_on_to_the_forcing_of_training(result, monkeypatch):
    seen = []

    def noted(model, x, config, **settings):
        seen.append(config.tau)
        return saem(model, x, config, **settings)

    monkeypatch.setattr(inferring, "saem", noted)
    quiet = palrnn.engine.progress.quiet
    result.tune("anchored", TINY.tune, progress=quiet)
    result.tuning(TINY.tune, configurations=("anchored",), progress=quiet)
    assert seen == [8, 8, 8]


def test_a_saved_run_keeps_its_noise(result, tmp_path):
    calibrated = result.tune("calib", TINY.tune, progress=palrnn.engine.progress.quiet)
    calibrated.save(tmp_path / "calibrated")
    again = palrnn.Reconstruction.load(tmp_path / "calibrated")
    assert again.noise == calibrated.noise != result.noise
    np.testing.assert_array_equal(again.model.theta, result.model.theta)
    # a deviation of which the root mean square is not the same to the last bit
    result.with_noise(process_std=0.03).save(tmp_path / "told")
    assert palrnn.Reconstruction.load(tmp_path / "told").noise == result.noise.changed(process_std=0.03)


def test_saving_where_it_was_trained_keeps_the_training(tmp_path):
    begun = tiny_reconstruction(updates=200, run=tmp_path)
    trained = (tmp_path / "checkpoint.safetensors").read_bytes()
    palrnn.Reconstruction.load(tmp_path).save(tmp_path)
    assert (tmp_path / "checkpoint.safetensors").read_bytes() == trained
    begun.with_noise(process_std=0.03).named("renamed").save(tmp_path)
    again = palrnn.Reconstruction.load(tmp_path)
    assert (again.noise.process_std, again.about.name) == (0.03, "renamed")
    state, before = load_checkpoint(tmp_path / "checkpoint.safetensors"), checkpoint_from_bytes(trained)
    assert state.training == before.training
    assert state.arrays.keys() == before.arrays.keys()
    for name, array in before.arrays.items():
        np.testing.assert_array_equal(state.arrays[name], array)


def test_an_interrupted_training_continues_after_saving(tmp_path):
    def interrupt(done, total, figures):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tiny_reconstruction(updates=200, run=tmp_path, progress=interrupt)
    half = palrnn.Reconstruction.load(tmp_path, reference=lorenz63(100, seed=3))
    half.with_noise(process_std=0.03).save(tmp_path)
    assert load_checkpoint(tmp_path / "checkpoint.safetensors").training["done"] == 100
    whole = tiny_reconstruction(updates=200, run=tmp_path)
    np.testing.assert_array_equal(whole.model.theta, tiny_reconstruction(updates=200).model.theta)


def test_saving_leaves_the_settings_by_which_a_command_continues(tmp_path):
    words = ["train", "lorenz63", "--steps", "1000", "--updates", "20", "-q", "-o", str(tmp_path)]
    sizes = ["--latent-dim", "6", "--gated", "2", "--sequence-length", "20"]
    with pytest.raises(SystemExit) as left:
        main([*words, *sizes])
    assert not left.value.code
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    palrnn.Reconstruction.load(tmp_path).save(tmp_path)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_saving_does_not_overwrite_the_training_of_another_model(result, tmp_path):
    tiny_reconstruction(updates=1, run=tmp_path)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    with pytest.raises(ValueError, match="another model was trained or tuned there") as caught:
        result.save(tmp_path)
    assert str(tmp_path) in str(caught.value)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


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
