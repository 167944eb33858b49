"""A run with external inputs, from a file through every analysis, in Python and in the shell."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from command_line import call

import palrnn
from palrnn import Reconstruction, reconstruct
from palrnn.data import Dataset
from palrnn.engine.progress import quiet

SMALL = {"latent_dim": 4, "gated": 2, "updates": 60, "sequence_length": 30, "tau": 5}


def pushed(length=700, seed=0):
    """A damped rotation that is pushed at random."""
    rng = np.random.default_rng(seed)
    s, x = rng.standard_normal((length, 1)), np.zeros((length, 2))
    turn = 0.9 * np.array([[np.cos(0.5), -np.sin(0.5)], [np.sin(0.5), np.cos(0.5)]])
    for t in range(length - 1):
        x[t + 1] = turn @ x[t] + s[t] * [0.5, 0.0]
    return x, 3.0 + 2.0 * s


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    x, s = pushed()
    file = tmp_path_factory.mktemp("driven") / "series.csv"
    pd.DataFrame({"x": x[:, 0], "y": x[:, 1], "push": s[:, 0]}).to_csv(file, index=False)
    return file


@pytest.fixture(scope="module")
def run(table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    return reconstruct(table, inputs=["push"], run=folder, progress=quiet, **SMALL)


def test_the_model_is_driven_and_the_folder_keeps_its_inputs(run, table):
    assert run.model.input_dim == 1
    assert run.record.data.inputs == ("push",)
    loaded = Reconstruction.load(run.folder.path)
    np.testing.assert_array_equal(loaded.inputs, run.inputs)
    np.testing.assert_array_equal(loaded.s, run.s)
    assert loaded.fingerprint() == run.fingerprint()
    again = reconstruct(run=run.folder.path, progress=quiet)
    np.testing.assert_array_equal(again.model.theta, run.model.theta)


def test_free_runs_follow_the_inputs_they_are_given(run):
    made = run.generate(50)
    np.testing.assert_array_equal(made, run.generate(50, inputs=run.inputs[:50]))
    other = run.generate(50, inputs=run.inputs[:50] + 1.0)
    np.testing.assert_array_equal(other[0], made[0])
    assert np.abs(other - made).max() > 1e-3
    # by hand: standardise, step, and back
    z, states = run.drift.embed(run.x[0]), []
    for t in range(50):
        states.append(z)
        z = run.drift.step(z, inputs=run.s[t])
    np.testing.assert_allclose(made, run.standardizer.inverse(np.array(states)[:, :2]), atol=1e-9)


def test_every_analysis_of_a_driven_run(run):
    card = run.invariants(steps=60, discard=10, pairs=2, long_steps=1000)
    assert np.isfinite(card.hard.lyapunov.largest)
    assert card.prediction.mse[0] > 0
    assert run.verdict(steps=60, discard=10, pairs=2, long_steps=1000) is not None
    assert len(run.filter(particles=16, steps=20).increments) == 20
    assert np.isfinite(run.evidence(10, windows=3, particles=16, progress=quiet).mean)
    found = run.geometry(steps=20, particles=16, paths=4)
    assert np.isfinite(found.to_dict()["trace_itf"])
    assert len(run.tracking(40).free) == 40
    x = run.held[:30].copy()
    x[10:15] = np.nan
    filled = run.impute(x, inputs=run.inputs[:30], paths=4, particles=16)
    assert np.isfinite(filled.values).all()
    ahead = run.forecast(run.held[:30], 10, inputs=run.inputs[:40], paths=5, particles=16)
    assert ahead.paths.shape == (5, 10, 2)


def test_tuning_a_driven_run_moves_its_input_map(run, tmp_path):
    how = {"iterations": 1, "windows": 4, "length": 10, "particles": 16, "paths": 2, "heldout_windows": 2}
    tuned = run.tune("full", run=tmp_path / "tuned", progress=quiet, threads=1, **how)
    assert not np.array_equal(tuned.drift.C, run.drift.C)
    loaded = Reconstruction.load(tmp_path / "tuned")
    np.testing.assert_array_equal(loaded.s, run.s)


def test_other_data_come_with_their_inputs(run, table, tmp_path):
    x, s = pushed(200, seed=5)
    file = tmp_path / "other.csv"
    pd.DataFrame({"push": s[:, 0], "y": x[:, 1], "x": x[:, 0]}).to_csv(file, index=False)
    from_file = Reconstruction.load(run.folder.path, reference=file)
    from_arrays = Reconstruction.load(run.folder.path, reference=x, inputs=s)
    np.testing.assert_allclose(from_file.x, from_arrays.x, rtol=1e-12)
    np.testing.assert_allclose(from_file.s, from_arrays.s, rtol=1e-12)
    with pytest.raises(ValueError, match=r"inputs must be given, \(200, 1\)"):
        Reconstruction.load(run.folder.path, reference=x)
    with pytest.raises(ValueError, match="inputs must come with the reference"):
        Reconstruction.load(run.folder.path, inputs=s)


def test_inputs_in_memory_train_in_a_folder_and_are_asked_for_again(tmp_path):
    x, s = pushed(400)
    first = reconstruct(x, inputs=s, run=tmp_path / "run", progress=quiet, **SMALL)
    with pytest.raises(ValueError, match="inputs must be given, again"):
        reconstruct(x, run=tmp_path / "run", progress=quiet)
    again = reconstruct(x, inputs=s, run=tmp_path / "run", progress=quiet)
    np.testing.assert_array_equal(again.model.theta, first.model.theta)
    data = Dataset.prepare(x, inputs=s)
    from_data = reconstruct(data, progress=quiet, **SMALL)
    np.testing.assert_array_equal(from_data.model.theta, first.model.theta)
    saved = from_data.save(tmp_path / "saved")
    np.testing.assert_array_equal(Reconstruction.load(saved.folder.path).s, from_data.s)


def test_what_a_driven_run_lacks_is_named(run):
    with pytest.raises(
        ValueError, match=r"inputs must be given, \(500, 1\): the held-out part has those of 140"
    ):
        run.generate(500)
    with pytest.raises(ValueError, match=r"inputs must be \(20, 1\), one row .* got \(19, 1\)"):
        run.generate(20, inputs=run.inputs[:19])
    with pytest.raises(ValueError, match=r"inputs must be given, \(20, 1\)"):
        run.generate(20, x1=run.held[3])
    with pytest.raises(ValueError, match=r"inputs must be given, \(40, 1\)"):
        run.forecast(run.held[:30], 10)


def test_the_commands_take_a_driven_run(table, tmp_path, capsys):
    folder = tmp_path / "run"
    sizes = ["--latent-dim", "4", "--gated", "2", "--updates", "40", "--sequence-length", "30", "--tau", "5"]
    code, _, err = call(capsys, "train", table, "--inputs", "push", *sizes, "-o", folder, "--json")
    assert code == 0, err
    assert palrnn.load_checkpoint(folder / "checkpoint.safetensors").drift.input_dim == 1
    code, out, err = call(
        capsys, "evaluate", folder, "--steps", "60", "--discard", "10", "--pairs", "2", "--json"
    )
    assert code == 0, err
    assert json.loads(out)["hard"]["dstsp"] is not None
    code, _, err = call(capsys, "train", table, "--inputs", "push,wind", *sizes, "-o", tmp_path / "b")
    assert code != 0
    assert "no column 'wind'" in err
