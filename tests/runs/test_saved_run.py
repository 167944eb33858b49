"""A reconstruction in its folder: saved and loaded with its noise, its training and its findings."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import numpy as np
import pytest
from tiny_reconstruction import SIZES, TINY, tiny_reconstruction

import palrnn
from palrnn import initial_alrnn
from palrnn.data import lorenz63
from palrnn.engine.progress import quiet
from palrnn.model import ALRNN, PALRNN, Forcing, Noise, checkpoint_from_bytes, load_checkpoint
from palrnn.runs import Reconstruction, RunFolder, SearchTable, reconstruction

pytestmark = [
    pytest.mark.filterwarnings("ignore::palrnn.geometry.IndefiniteInformationWarning"),
    pytest.mark.filterwarnings("ignore::palrnn.inference.FewPathsWarning"),
]


@pytest.fixture(scope="module")
def result():
    return tiny_reconstruction()


def test_full_noise_is_kept(result, tmp_path):
    root = np.tril(np.full((3, 3), 0.02)) + 0.1 * np.eye(3)
    full = result.with_noise(observation=Noise.full(root @ root.T))
    full.save(tmp_path / "full")
    again = Reconstruction.load(tmp_path / "full")
    assert again.model.observation == full.model.observation
    assert again.filter(TINY.filter).log_evidence == full.filter(TINY.filter).log_evidence


def test_a_saved_run_keeps_its_noise(result, tmp_path):
    calibrated = result.tune("calib", TINY.tuning.task, progress=quiet)
    calibrated.save(tmp_path / "calibrated")
    again = Reconstruction.load(tmp_path / "calibrated")
    assert again.model.process == calibrated.model.process != result.probabilistic.process
    assert again.model.observation == calibrated.model.observation
    np.testing.assert_array_equal(again.drift.theta, result.model.theta)
    assert again.forcing == result.forcing
    result.with_noise(process=0.03).save(tmp_path / "given")
    assert Reconstruction.load(tmp_path / "given").model.process == Noise.isotropic(0.03)


def test_saving_where_it_was_trained_keeps_the_training(tmp_path):
    begun = tiny_reconstruction(updates=200, run=tmp_path / "run")
    file = tmp_path / "run" / "checkpoint.safetensors"
    before = {entry.name: entry.read_bytes() for entry in (tmp_path / "run").iterdir()}
    Reconstruction.load(tmp_path / "run").save(tmp_path / "run")
    assert {entry.name: entry.read_bytes() for entry in (tmp_path / "run").iterdir()} == before
    begun.with_noise(process=0.03).with_name("renamed").save(tmp_path / "run")
    again = Reconstruction.load(tmp_path / "run")
    assert (again.model.process, again.name) == (Noise.isotropic(0.03), "renamed")
    state, trained = load_checkpoint(file), checkpoint_from_bytes(before[file.name])
    assert state.training == trained.training
    assert state.arrays.keys() == trained.arrays.keys()
    for name, array in trained.arrays.items():
        np.testing.assert_array_equal(state.arrays[name], array)


def test_an_interrupted_training_continues_after_saving(tmp_path):
    def interrupt(done, total, figures):
        raise KeyboardInterrupt

    run = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        tiny_reconstruction(updates=200, run=run, progress=interrupt)
    # the held-out part is there from the start
    half = Reconstruction.load(run)
    np.testing.assert_array_equal(half.reference, lorenz63(5000, seed=3)[4000:])
    half.with_noise(process=0.03).save(run)
    assert load_checkpoint(run / "checkpoint.safetensors").training["done"] == 100
    whole = tiny_reconstruction(updates=200, run=run)
    np.testing.assert_array_equal(whole.drift.theta, tiny_reconstruction(updates=200).model.theta)


def test_settings_that_are_not_given_again_are_those_of_the_folder(tmp_path):
    first = tiny_reconstruction(updates=20, lags=2, delay=3, run=tmp_path / "run")
    again = palrnn.reconstruct(lorenz63(5000, seed=3), run=tmp_path / "run", progress=quiet)
    np.testing.assert_array_equal(again.drift.theta, first.drift.theta)
    assert again.record == first.record
    with pytest.raises(ValueError, match="x must be given, again: the run was trained on data in memory"):
        palrnn.reconstruct(run=tmp_path / "run")


def test_saving_does_not_overwrite_the_training_of_another_model(result, tmp_path):
    run = tmp_path / "run"
    tiny_reconstruction(updates=1, run=run)
    before = {file.name: file.read_bytes() for file in run.iterdir()}
    with pytest.raises(ValueError, match="another model was trained or tuned there") as caught:
        result.save(run)
    assert str(run) in str(caught.value)
    # nor if it was trained just now, after the first look
    found = load_checkpoint(result.save(tmp_path / "saved").folder.checkpoint)
    with pytest.raises(ValueError, match="another model was trained or tuned there"):
        RunFolder(run).remove_other(found)
    assert {file.name: file.read_bytes() for file in run.iterdir()} == before


def test_another_saved_run_is_replaced_as_a_whole(result, tmp_path):
    run = tmp_path / "run"
    table = SearchTable([{"rank": 1, "candidate": 0, "updates": 1, "grade": 0}], "the only one")
    replace(result, search=table).save(run)
    assert Reconstruction.load(run).losses
    other = Reconstruction(initial_alrnn(5, 3, 2, seed=1), result.standardizer, name="bare")
    other.save(run)
    again = Reconstruction.load(run)
    assert again.reference is None
    assert again.record.data is None
    assert (again.search, again.losses) == (None, [])
    np.testing.assert_array_equal(again.drift.theta, other.drift.theta)


def test_the_same_model_saved_again_keeps_what_the_folder_tells_of_it(result, tmp_path):
    result.save(tmp_path / "run")
    before = Reconstruction.load(tmp_path / "run")
    bare = Reconstruction(result.model, result.standardizer, dt=result.dt)
    bare.with_noise(process=0.03).save(tmp_path / "run")
    again = Reconstruction.load(tmp_path / "run")
    assert again.model.process == Noise.isotropic(0.03)
    np.testing.assert_array_equal(again.reference, before.reference)
    assert again.losses == before.losses


@pytest.mark.parametrize("chosen", [True, False])
def test_saving_does_not_mix_with_a_comparison_of_tunings(result, tmp_path, chosen):
    run = tmp_path / "compared"
    result.tuning(TINY.tuning, configurations=("baseline",), run=run, progress=quiet)
    if chosen:  # as the command writes the model that it has chosen
        palrnn.save_checkpoint(run / "checkpoint.safetensors", initial_alrnn(5, 3, 2, seed=1))
    before = {file: file.read_bytes() for file in run.rglob("*") if file.is_file()}
    with pytest.raises(ValueError, match="another model was trained or tuned there; choose another folder"):
        result.save(run)
    assert {file: file.read_bytes() for file in run.rglob("*") if file.is_file()} == before


def test_a_saved_run_comes_back_with_its_findings(result, tmp_path, monkeypatch):
    result.save(tmp_path / "run")
    again = Reconstruction.load(tmp_path / "run")
    np.testing.assert_array_equal(again.generate(50), result.generate(50))
    assert (again.tau, again.dt, again.columns) == (result.tau, result.dt, result.columns)
    health, found = again.diagnostics(TINY.filter), again.geometry(TINY.geometry)
    stages = again.tuning(TINY.tuning, progress=quiet)
    monkeypatch.setattr(reconstruction, "rbpf", _refused)
    monkeypatch.setattr(reconstruction, "compare_geometries", _refused)
    monkeypatch.setattr(sys.modules["palrnn.tuning.saem"], "_iterate", _refused)
    fresh = Reconstruction.load(tmp_path / "run")
    assert fresh.diagnostics(TINY.filter).to_dict() == health.to_dict()
    assert fresh.geometry(TINY.geometry).to_dict() == found.to_dict()
    kept = fresh.tuning(TINY.tuning, progress=quiet)
    assert kept.to_dict() == stages.to_dict()
    np.testing.assert_array_equal(
        kept.results["full"].model.drift.theta, stages.results["full"].model.drift.theta
    )
    with pytest.raises(AssertionError, match="computed again"):
        fresh.diagnostics(TINY.filter, particles=17)
    with pytest.raises(AssertionError, match="computed again"):
        fresh.with_noise(process=0.2).geometry(TINY.geometry)
    with pytest.raises(AssertionError, match="computed again"):
        replace(fresh, forcing=Forcing.identity(5)).geometry(TINY.geometry)


def test_an_edited_or_damaged_finding_is_computed_again(result, tmp_path):
    run = result.save(tmp_path / "run")
    honest = run.diagnostics(TINY.filter).to_dict()
    file = tmp_path / "run" / "findings" / "diagnostics.json"
    text = file.read_text()
    kept = json.loads(text)
    edits = [
        "{",
        json.dumps([1]),
        json.dumps(kept | {"found": {"steps": "many"}}),
        json.dumps(kept | {"found": kept["found"] | {"log_evidence": 1e9}}),
        json.dumps(kept | {"found": kept["found"] | {"ess": []}}),
        text.replace("log_evidence", "log_evidenze", 1),
        "[" * 100_000,
        "\x00\xff",
    ]
    for edited in edits:
        file.write_text(edited)
        assert Reconstruction.load(tmp_path / "run").diagnostics(TINY.filter).to_dict() == honest
        assert json.loads(file.read_text()) == kept
    file.write_bytes(b"\xff\xfe")
    Reconstruction.load(tmp_path / "run").report(tmp_path / "report.html", TINY, progress=quiet)


def test_findings_belong_to_their_noise(result):
    noisier = result.with_noise(observation=0.3)
    assert noisier.diagnostics(TINY.filter).log_evidence != result.diagnostics(TINY.filter).log_evidence
    with pytest.raises(ValueError, match="observation"):
        result.with_noise(observation=-1.0)


def test_a_run_folder_says_what_it_lacks(result, tmp_path):
    with pytest.raises(ValueError, match="no such folder"):
        Reconstruction.load(tmp_path / "none")
    result.save(tmp_path / "run")
    (tmp_path / "run" / "reference.npy").unlink()
    bare = Reconstruction.load(tmp_path / "run")
    with pytest.raises(ValueError, match="run: has no held-out series; give one as reference"):
        bare.invariants(TINY.invariants)
    whole = Reconstruction.load(tmp_path / "run", reference=result.reference)
    np.testing.assert_array_equal(whole.generate(5), result.generate(5))
    np.save(tmp_path / "run" / "reference.npy", result.reference[:, :2])
    with pytest.raises(ValueError, match="has 2 columns, the model observes 3"):
        Reconstruction.load(tmp_path / "run")


def test_a_checkpoint_alone_is_a_model_in_raw_coordinates(tmp_path):
    model = PALRNN(ALRNN([0.5], [[0.0]], [0.1], [[1.0]], 0), 0.1, 0.2, 0.0)
    palrnn.save_checkpoint(tmp_path / "model.safetensors", model)
    found = Reconstruction.load(tmp_path / "model.safetensors", reference=np.ones((60, 1)))
    assert found.name == "model"
    assert found.forcing == Forcing.identity(16)
    np.testing.assert_allclose(found.generate(2)[:, 0], [1.0, 0.6])


def test_past_values_are_added_to_a_series_that_is_given(tmp_path):
    run = palrnn.reconstruct(
        lorenz63(2000, seed=3)[:, :1], lags=3, delay=4, updates=1, run=tmp_path / "run", **SIZES
    )
    other = lorenz63(100, seed=4)[:, :1]
    found = Reconstruction.load(tmp_path / "run", reference=other)
    assert found.reference.shape == (92, 3)
    np.testing.assert_array_equal(found.reference[:, 0], other[8:, 0])
    assert found.columns == run.columns


def _refused(*_, **__):
    raise AssertionError("computed again")
