"""`palrnn tune`: what it writes, how it continues, and how it refuses."""

from __future__ import annotations

import json
import tomllib

import numpy as np
import pytest
from command_line import call
from command_line import run as run_command

from palrnn.data import Standardizer
from palrnn.model import ALRNN, PALRNN, load_checkpoint, save_checkpoint
from palrnn.runs import Reconstruction
from palrnn.tuning import Comparison

QUICK = (
    "--length",
    12,
    "--iterations",
    2,
    "--windows",
    4,
    "--particles",
    8,
    "--paths",
    2,
    "--heldout-windows",
    4,
)


def made(folder):
    """Return a checkpoint, a series, and where a run may go."""
    drift = ALRNN([0.5, 0.4], [[0.1, 0.3], [-0.3, 0.1]], [0.1, 0.0], [[1.0], [0.5]], 1)
    standardizer = Standardizer([5.0], [2.0])
    save_checkpoint(folder / "model.safetensors", drift, standardizer=standardizer, dt=0.5)
    x = PALRNN(drift, 0.3, 0.2, 0.5).sample([0.0], 400, seed=1).observations
    np.save(folder / "x.npy", standardizer.inverse(x))
    return folder / "model.safetensors", folder / "x.npy", folder / "run"


@pytest.fixture
def files(tmp_path):
    return made(tmp_path)


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    """What one tuning with the usual configuration needed and left."""
    model, x, run = made(tmp_path_factory.mktemp("tuned"))
    assert run_command("tune", model, x, "-o", run, *QUICK, "-q") == 0
    return model, x, run


def test_it_writes_the_tuned_model_its_history_a_picture_and_the_settings(files, capsys):
    model, x, run = files
    code, out, _ = call(capsys, "tune", model, x, "--configuration", "calib", "-o", run, *QUICK)
    assert code == 0
    assert "Evidence" in out
    assert "calib: noise levels tuned" in out
    tuned = load_checkpoint(run / "checkpoint.safetensors")
    assert isinstance(tuned.model, PALRNN)
    assert np.array_equal(tuned.model.drift.theta, load_checkpoint(model).model.theta)
    assert tuned.standardizer.mean == [5.0]
    assert tuned.dt == 0.5
    assert len((run / "history.csv").read_text().splitlines()) == 4
    assert (run / "before_after.png").read_bytes().startswith(b"\x89PNG")
    settings = tomllib.loads((run / "config.toml").read_text())
    assert settings["tuning"]["saem"]["configuration"] == "calib"
    assert settings["tuning"]["series"] == str(x)


def test_the_same_command_again_changes_nothing_and_its_settings_file_repeats_it(tuned, capsys):
    model, x, run = tuned
    first = (run / "checkpoint.safetensors").read_bytes()
    assert call(capsys, "tune", model, x, "-o", run, *QUICK)[0] == 0
    assert (run / "checkpoint.safetensors").read_bytes() == first
    again = run.parent / "again"
    assert call(capsys, "tune", model, x, "--config", run / "config.toml", "-o", again)[0] == 0
    assert (again / "checkpoint.safetensors").read_bytes() == first


def test_an_interval_on_the_command_line_wins_over_the_forcing_of_the_settings_file(tuned, capsys):
    model, x, run = tuned
    words = ("tune", model, x, "--config", run / "config.toml", "--tau", 8, "--configuration", "baseline")
    code, _, err = call(capsys, *words, "-o", run.parent / "told")
    assert code == 0, err
    settings = tomllib.loads((run.parent / "told" / "config.toml").read_text())
    assert settings["tuning"]["saem"]["forcing"]["interval"] == 8


def test_of_a_file_with_trials_the_last_is_held_out(files, capsys):
    model, x, run = files
    raw, table = np.load(x), x.with_suffix(".csv")
    rows = [f"{i // 100},{value[0]!r}" for i, value in enumerate(raw.tolist())]
    table.write_text("\n".join(["trial,v", *rows]))
    code, out, _ = call(capsys, "tune", model, table, "--configuration", "calib", "--json", "-o", run, *QUICK)
    assert code == 0
    # the same as the last quarter of the joined series, as far as the held-out part goes
    other = run.parent / "joined"
    words = ("tune", model, x, "--configuration", "calib", "--test-fraction", 0.25, "--json", "-o", other)
    _, joined, _ = call(capsys, *words, *QUICK)
    found, expected = (json.loads(text)["rows"]["before"] for text in (out, joined))
    assert found["heldout_evidence"] == expected["heldout_evidence"]


def test_a_folder_refuses_other_settings_and_keeps_its_own(tuned, capsys):
    model, x, run = tuned
    before = {file.name: file.read_bytes() for file in run.iterdir()}
    code, _, err = call(capsys, "tune", model, x, "-o", run, *QUICK, "--ridge", 0.5)
    assert code == 1
    assert "ridge = 0.01" in err
    assert {file.name: file.read_bytes() for file in run.iterdir()} == before


@pytest.mark.slow
def test_a_comparison_has_a_folder_for_each_configuration_and_can_be_repeated(files, capsys):
    model, x, run = files
    words = ("--configuration", "compare", "--beta", 10, "--beta", 100, "--json")
    code, out, _ = call(capsys, "tune", model, x, "-o", run, *words, *QUICK)
    assert code == 0
    found = json.loads(out)
    assert list(found["rows"]) == ["baseline", "calib", "full", "beta-10", "beta-100"]
    assert (run / "beta-10" / "before_after.png").is_file()
    assert (run / "tradeoff.png").is_file()
    assert (run / "comparison.csv").is_file()
    again = run.parent / "again"
    code, _, err = call(capsys, "tune", "--config", run / "config.toml", "-o", again, "-q")
    assert code == 0, err
    for name in ("comparison.csv", "full/checkpoint.safetensors", "beta-10/checkpoint.safetensors"):
        assert (again / name).read_bytes() == (run / name).read_bytes()


@pytest.mark.slow
def test_the_chosen_model_is_judged_on_the_scale_that_it_was_tuned_on(files, capsys, monkeypatch):
    model, x, run = files
    monkeypatch.setattr(Comparison, "chosen", "beta-100")  # whatever its dynamics
    # the scale of the data is nothing like that of the checkpoint
    np.save(x, 40.0 * np.load(x))
    start = model.parent / "start"
    Reconstruction.load(model, reference=x).save(start)
    words = ("--configuration", "compare", "--standardize", "pooled", "--beta", 100, "--json")
    code, out, err = call(capsys, "tune", start, x, "-o", run, *words, *QUICK)
    assert code == 0, err
    found = json.loads(out)
    kept = Reconstruction.load(run)
    assert kept.standardizer.std[0] > 10 * load_checkpoint(model).standardizer.std[0]
    assert found["verdict"] == json.loads(json.dumps(kept.invariants().verdict.to_dict()))
    assert not (start / "findings").exists()  # what was found of the tuned model is not the untuned one's


def test_a_comparison_that_cannot_be_made_leaves_no_folder(files, capsys):
    model, x, run = files
    raw = np.load(x)
    raw[len(raw) // 2 :] = np.nan
    np.save(x, raw)
    code, _, err = call(capsys, "tune", model, x, "--configuration", "compare", "-o", run, *QUICK)
    assert code == 1
    assert "must have a row without gaps that 12 rows follow, has none" in err
    assert not run.exists()


def test_a_model_with_noise_keeps_it_unless_told_otherwise(files, capsys):
    model, x, run = files
    drift = load_checkpoint(model).model
    save_checkpoint(model, PALRNN(drift, 0.33, 0.22, 0.11))
    call(capsys, "tune", model, x, "-o", run, "--configuration", "baseline", "--process-std", 0.5, *QUICK)
    kept = load_checkpoint(run / "checkpoint.safetensors").model
    assert (kept.process.std, kept.observation.std, kept.gate_std) == (0.5, 0.22, 0.11)


def test_the_anchor_is_forced_as_in_training_unless_told_otherwise(files, capsys):
    model, x, run = files
    trained = load_checkpoint(model)
    how = {"standardizer": trained.standardizer, "dt": trained.dt}
    save_checkpoint(model, trained.model, training={"config": {"tau": 7}}, **how)
    words = ("--configuration", "baseline", *QUICK)

    def tau(checkpoint, output, *more):
        assert call(capsys, "tune", checkpoint, x, "-o", output, *words, *more)[0] == 0
        return tomllib.loads((output / "config.toml").read_text())["tuning"]["saem"]["forcing"]["interval"]

    assert tau(model, run) == 7
    assert tau(model, run.parent / "told", "--tau", 5) == 5
    # a tuned model remembers it
    assert tau(run, run.parent / "again") == 7
    save_checkpoint(model, trained.model, **how)
    assert tau(model, run.parent / "unknown") == 16


def test_the_data_of_the_paper_needs_no_file(tmp_path, capsys):
    drift = ALRNN(np.full(4, 0.5), 0.1 * np.eye(4), np.zeros(4), np.ones((4, 3)), 1)
    save_checkpoint(tmp_path / "model.safetensors", drift)
    words = ("--configuration", "calib", "--json", *QUICK)
    code, out, _ = call(
        capsys, "tune", tmp_path / "model.safetensors", "lorenz63", "-o", tmp_path / "run", *words
    )
    assert code == 0
    # a contracting model: its exponent is far below Lorenz-63's 0.9056
    assert json.loads(out)["rows"]["calib"]["lyapunov_error"] < -10


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--configuration", "best"), "configuration"),
        (("--beta", 1, "--beta", 2), "several --beta are for --configuration compare"),
        (("--blend", 0), "blend"),
        (("--length", 5000), "too short for windows of 5000 steps"),
    ],
)
def test_wrong_settings_are_refused_in_one_line(files, capsys, words, message):
    model, x, run = files
    code, out, err = call(capsys, "tune", model, x, "-o", run, *words)
    assert code == 1
    assert out == ""
    assert message in err
    assert len(err.strip().splitlines()) == 1
