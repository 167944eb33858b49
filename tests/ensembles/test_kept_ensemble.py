"""Models that are kept in the folder of a run: for its error bars by name, and for its forecasts."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

import palrnn
from palrnn.runs import fan
from palrnn.runs.bars import ENSEMBLES, METHODS

SMALL = {"latent_dim": 8, "gated": 4, "updates": 60, "sequence_length": 50}
QUICK = {"steps": 200, "discard": 20, "gap_rows": 0}
AHEAD = {"paths": 12, "particles": 8}


@pytest.fixture(scope="module")
def series(tmp_path_factory):
    file = tmp_path_factory.mktemp("data") / "x.npy"
    np.save(file, palrnn.lorenz63(1500, seed=0))
    return file


@pytest.fixture
def run(series, tmp_path):
    return palrnn.reconstruct(series, run=tmp_path / "run", **SMALL)


def members(run):
    folder = run.folder.findings / "ensemble" / "members" / "tasks"
    return {file: file.stat().st_mtime_ns for file in folder.rglob("*.safetensors")}


@pytest.fixture(scope="module")
def longer(tmp_path_factory):
    """A run long enough that its models move on by themselves: others have nothing to train a refit on."""
    folder = tmp_path_factory.mktemp("longer")
    np.save(folder / "x.npy", palrnn.lorenz63(1500, dt=0.02, seed=0))
    how = {"latent_dim": 12, "gated": 8, "updates": 1500, "sequence_length": 50, "keep": "last"}
    palrnn.reconstruct(folder / "x.npy", evaluate_every=None, run=folder / "run", **how)
    return folder / "run"


@pytest.mark.parametrize("method", METHODS)
def test_every_method_has_bars_by_its_name(longer, method, tmp_path):
    shutil.copytree(longer, tmp_path / "run")
    run = palrnn.Reconstruction.load(tmp_path / "run")
    # the likelihood of a model with hidden units takes long by all rows
    data = np.load(longer.parent / "x.npy")[:400] if method == "likelihood" else None
    found = run.bars(method, count=4, workers=1, data=data, **QUICK)
    assert found.method == method
    assert 2 <= len(found.draws) <= 4
    assert (run.folder.findings / "bars.json").is_file()
    assert bool(members(run)) == (method in ENSEMBLES)


def test_bars_that_were_interrupted_go_on(run):
    def stop(done, total, figures):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run.bars("varied", count=4, workers=1, progress=stop, **QUICK)
    before = members(run)
    assert before
    heard = []
    how = {"count": 4, "workers": 1, "announce": heard.append} | QUICK
    found = run.bars("varied", **how)
    assert "trainings to go" in heard[0]
    after = members(run)
    assert before.items() <= after.items()
    # a model is trained once: refits come beside it, and nothing is left to announce for what is there
    again = palrnn.Reconstruction.load(run.folder.path).bars("varied", **how)
    assert again.to_dict() == found.to_dict()
    assert members(run) == after
    assert len(heard) == 1


def test_forecasts_have_the_parameters_that_are_kept_and_say_so(run, series):
    x = np.load(series)
    alone = run.forecast(x[:20], 5, **AHEAD)
    assert "state, process noise, observation noise; parameters are fixed" in repr(alone)
    found = run.ensemble("varied", models=4, workers=1)
    noisy = run.with_noise(process=0.2, observation=0.3)
    ahead = noisy.forecast(x[:20], 5, seed=3, **AHEAD)
    expected = found.around(noisy).forecast(x[:20], 5, seed=3, **AHEAD)
    np.testing.assert_array_equal(ahead.paths, expected.paths)
    assert f"parameters ({len(found.models)} models by varied)" in repr(ahead)
    np.testing.assert_array_equal(run.forecast(x[:20], 5, posterior=None, **AHEAD).paths, alone.paths)
    # the same from the folder
    loaded = palrnn.Reconstruction.load(run.folder.path).with_noise(process=0.2, observation=0.3)
    np.testing.assert_array_equal(loaded.forecast(x[:20], 5, seed=3, **AHEAD).paths, ahead.paths)
    with pytest.raises(ValueError, match="posterior must be models to draw, 'kept' or None"):
        run.forecast(x[:20], 5, posterior="luck")


def test_bands_are_calibrated_by_forecasts_of_the_same_models(run, series):
    x = np.load(series)[:400]
    run.ensemble("varied", models=4, workers=1)
    noisy = run.with_noise(process=0.1, observation=0.1)
    made = noisy.hindcasts(x, 5, origins=4, seen=10, **AHEAD)
    assert 1 <= len(made) <= 4
    for forecast, came in made:
        assert any(part.startswith("parameters (") for part in forecast.varies)
        assert came.shape == (5, 3)
        assert (came == x[:, None]).all(axis=-1).any()
    widths = palrnn.BandCalibration.fit(made)
    assert noisy.forecast(x[:20], 5, calibration=widths, **AHEAD).varies == made[0][0].varies


def test_an_ensemble_of_blocks_goes_on_from_the_state_of_the_model(run, series):
    x = np.load(series)
    found = run.ensemble("blocks", models=3, workers=1)
    ahead = run.forecast(x[:20], 5, seed=1, **AHEAD)
    np.testing.assert_array_equal(
        ahead.paths, run.forecast(x[:20], 5, seed=1, posterior=found, **AHEAD).paths
    )
    assert ahead.varies[-1] == "parameters"


def test_what_is_of_another_model_or_damaged_is_not_taken(run, series):
    x = np.load(series)
    run.ensemble("varied", models=3, workers=1)
    other = replace(run, model=run.drift.with_theta(0.9 * run.drift.theta))
    assert "parameters are fixed" in repr(other.forecast(x[:20], 5, **AHEAD))
    index = run.folder.findings / "ensemble" / "ensemble.json"
    known = json.loads(index.read_text())
    for wrong in ("nonsense", json.dumps(known | {"members": ["../../checkpoint.safetensors"]}), "{}"):
        index.write_text(wrong)
        assert "parameters are fixed" in repr(run.forecast(x[:20], 5, **AHEAD))
    index.write_text(json.dumps(known))
    assert "models by varied" in repr(run.forecast(x[:20], 5, **AHEAD))


def test_the_fan_of_a_report_has_the_models_that_are_kept(run):
    assert fan.fan(run, None).forecast.varies[-1] == "observation noise"
    found = run.ensemble("varied", models=3, workers=1)
    told = fan.fan(palrnn.Reconstruction.load(run.folder.path), None)
    assert told.forecast.varies[-1] == f"parameters ({len(found.models)} models by varied)"
