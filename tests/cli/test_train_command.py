"""`palrnn train`: what it writes, how it continues, and how it refuses."""

from __future__ import annotations

import json
import tomllib

import numpy as np
import pytest
from command_line import run

import palrnn
from palrnn.data import lorenz63, suggest_tau
from palrnn.forcing.polishing import Life, Polished
from palrnn.invariants import Fate, Viability
from palrnn.model import load_checkpoint

QUICK = (
    *("--latent-dim", "8", "--gated", "3", "--tau", "5", "--updates", "200"),
    *("--batch-size", "4", "--sequence-length", "30", "--learning-rate", "0.005"),
)


def test_a_simulated_system_becomes_a_model_and_a_history(tmp_path, capsys):
    folder = tmp_path / "run"
    assert (
        run("train", "lorenz63", "--steps", 6000, "--observation-std", 0.1, *QUICK, "-o", folder, "--json")
        == 0
    )
    result = json.loads(capsys.readouterr().out)
    checkpoint = load_checkpoint(folder / "checkpoint.safetensors")
    assert checkpoint.model.latent_dim == 8
    assert checkpoint.dt == 0.01
    assert checkpoint.training["done"] == result["updates"] == 200
    lines = (folder / "history.csv").read_text().splitlines()
    assert lines[0].startswith("update,loss,gradient_norm,learning_rate")
    assert len(lines) == 201
    settings = tomllib.loads((folder / "config.toml").read_text())
    assert settings["data"]["observation_std"] == 0.1
    assert settings["training"]["forcing"] == {"policy": "identity", "interval": 5}
    # what it prints is what `evaluate` prints
    assert run("evaluate", folder, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    for name in (
        "verdict",
        "viability",
        "hard",
        "dstsp_floor",
        "spectrum_floor",
        "reference_exponents",
        "steps",
    ):
        assert result[name] == found[name]
    assert result["system"] == found["system"] == "lorenz63"
    # 200 updates make no model, and it is told so, with what to try
    assert result["verdict"]["grade"] == "not usable"
    assert result["verdict"]["advice"]
    assert result["viability"]["starts"] == 10


def test_what_polishing_did_is_said_and_kept(tmp_path, capsys, monkeypatch):
    def polish(model, x, config, *, rounds, progress):
        assert rounds == 2
        before = Life(Viability((Fate("rests", 5),) * 10, 1000), np.ones(10), 10)
        return Polished(model, False, before, (), "500 more updates made no model that lives")

    monkeypatch.setattr("palrnn.forcing.trainer.polish", polish)
    folder = tmp_path / "run"
    how = ("--steps", 6000, *QUICK, "--polish", 2, "-o", folder)
    assert run("train", "lorenz63", *how) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "polishing: 500 more updates made no model that lives" in printed
    settings = tomllib.loads((folder / "config.toml").read_text())
    assert settings["training"]["polish"] == 2
    assert settings["run"]["polish"] == "500 more updates made no model that lives"
    # the same command again knows it, and without polishing it is another run
    monkeypatch.setattr("palrnn.forcing.trainer.polish", None)
    assert run("train", "lorenz63", *how, "--json") == 0
    assert json.loads(capsys.readouterr().out)["polish"].startswith("500 more updates")
    assert run("train", "-o", folder, "--polish", 0) != 0


def test_a_file_is_standardised_by_its_training_part(tmp_path):
    x = lorenz63(3000, seed=2)
    np.save(tmp_path / "x.npy", x)
    assert run("train", tmp_path / "x.npy", *QUICK, "--test-fraction", 0.5, "-o", tmp_path / "run", "-q") == 0
    standardizer = load_checkpoint(tmp_path / "run" / "checkpoint.safetensors").standardizer
    np.testing.assert_allclose(standardizer.mean, x[:1500].mean(axis=0), rtol=1e-12)


def test_the_same_command_or_the_folder_alone_continues(tmp_path, capsys):
    x = lorenz63(3000, seed=2)
    np.save(tmp_path / "x.npy", x)
    words = ("train", tmp_path / "x.npy", *QUICK, "-o", tmp_path / "run", "-q")
    assert run(*words) == 0
    before = (tmp_path / "run" / "checkpoint.safetensors").read_bytes()
    assert run(*words) == 0
    assert run("train", "-o", tmp_path / "run", "-q") == 0
    assert (tmp_path / "run" / "checkpoint.safetensors").read_bytes() == before


def test_a_settings_file_is_read_and_the_command_line_wins(tmp_path, capsys):
    (tmp_path / "settings.toml").write_text(
        '[data]\nseries = "rossler"\nsteps = 3000\n[training]\nlatent_dim = 5\ngated = 2\n'
    )
    words = ("--updates", 20, "--sequence-length", 30, "--gated", 1, "-o", tmp_path / "run")
    assert run("train", "--config", tmp_path / "settings.toml", *words, "-q") == 0
    model = load_checkpoint(tmp_path / "run" / "checkpoint.safetensors").model
    assert (model.latent_dim, model.gated) == (5, 1)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["lorenz63", "--latent-dim", "30", "--gated", "31"], "gated must be at most latent_dim"),
        (["lorenz63", "--preset", "published"], "preset must be one of paper"),
        (["lorenz63", "--keep", "first"], "keep"),
        (["nothing.csv"], "no such file"),
        (["x.npy", "--process-std", "0.1"], "process_std is for simulated systems"),
        ([], "x must be given: a series, a file, or the name of a system"),
        (["lorenz63", "--steps", "100"], "must leave 40 steps"),
        (["lorenz63", "--steps", "1000", "--sequence-length", "900"], "sequence_length"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_1(tmp_path, capsys, words, message):
    assert run("train", *words, "-o", tmp_path / "run") == 1
    error = capsys.readouterr().err.splitlines()
    assert error[-1].startswith("palrnn: error: ")
    assert message in error[-1]


def test_another_setting_in_the_same_folder_is_refused(tmp_path, capsys):
    words = ("train", "lorenz63", "--steps", 3000, *QUICK, "-o", tmp_path / "run", "-q")
    assert run(*words) == 0
    assert run(*words, "--observation-std", 0.1) == 1
    assert "observation_std" in capsys.readouterr().err


def test_divergence_is_an_error_that_says_what_to_try(tmp_path, capsys):
    wild = ("--learning-rate", 1e4, "--final-learning-rate", 1e4, "--tau", 1000)
    assert run("train", "lorenz63", "--steps", 3000, *QUICK, *wild, "-o", tmp_path / "run", "-q") == 1
    assert "Try a smaller gradient_clip" in capsys.readouterr().err
    assert load_checkpoint(tmp_path / "run" / "checkpoint.safetensors").training["done"] == 0


def test_the_held_out_part_is_kept_raw_for_later_analyses(tmp_path):
    x = lorenz63(3000, seed=2)
    np.save(tmp_path / "x.npy", x)
    assert run("train", tmp_path / "x.npy", *QUICK, "-o", tmp_path / "run", "-q") == 0
    np.testing.assert_array_equal(np.load(tmp_path / "run" / "reference.npy"), x[2400:])


def test_tau_of_a_file_is_chosen_from_its_data_and_told(tmp_path):
    x = lorenz63(6000, seed=2)
    np.save(tmp_path / "x.npy", x)
    words = [word for word in QUICK if word not in ("--tau", "5")]
    assert run("train", tmp_path / "x.npy", *words, "-o", tmp_path / "run", "-q") == 0
    settings = tomllib.loads((tmp_path / "run" / "config.toml").read_text())
    assert settings["training"]["forcing"]["interval"] == suggest_tau(x[:4800])
    # the same from Python, of the same file
    sizes = {"latent_dim": 8, "gated": 3, "updates": 1, "sequence_length": 30}
    assert palrnn.reconstruct(tmp_path / "x.npy", **sizes).tau == suggest_tau(x[:4800])
    # the same bytes from the file that tells it
    again = ("train", "--config", tmp_path / "run" / "config.toml", "-o", tmp_path / "again", "-q")
    assert run(*again) == 0
    first, second = (load_checkpoint(tmp_path / name / "checkpoint.safetensors") for name in ("run", "again"))
    np.testing.assert_array_equal(first.model.theta, second.model.theta)
    assert (tmp_path / "again" / "config.toml").read_bytes() == (
        tmp_path / "run" / "config.toml"
    ).read_bytes()


def test_a_table_with_trials_trains_on_all_but_the_last(tmp_path):
    trials = [lorenz63(steps, seed=seed) for seed, steps in enumerate((300, 250, 400))]
    lines = ["time,trial,u,v,w"]
    for number, trial in enumerate(trials):
        lines += [f"{i},{number},{u!r},{v!r},{w!r}" for i, (u, v, w) in enumerate(trial.tolist())]
    (tmp_path / "x.csv").write_text("\n".join(lines))
    assert run("train", tmp_path / "x.csv", *QUICK, "-o", tmp_path / "run", "-q") == 0
    standardizer = load_checkpoint(tmp_path / "run" / "checkpoint.safetensors").standardizer
    np.testing.assert_allclose(standardizer.mean, np.concatenate(trials[:2]).mean(axis=0), rtol=1e-12)
    np.testing.assert_array_equal(np.load(tmp_path / "run" / "reference.npy"), trials[2])
    settings = tomllib.loads((tmp_path / "run" / "config.toml").read_text())
    assert settings["data"]["columns"] == ["u", "v", "w"]


def test_columns_that_are_left_out_are_told_and_kept(tmp_path, capsys):
    x = lorenz63(600, seed=2)
    lines = ["YEAR,u,v,w"] + [f"{1900 + i},{u!r},{v!r},{w!r}" for i, (u, v, w) in enumerate(x.tolist())]
    (tmp_path / "x.csv").write_text("\n".join(lines))
    assert run("train", tmp_path / "x.csv", *QUICK, "-o", tmp_path / "run") == 0
    told = capsys.readouterr().err
    assert "3 used: u, v, w" in told
    assert "YEAR" in told
    settings = tomllib.loads((tmp_path / "run" / "config.toml").read_text())
    assert list(settings["run"]["left_out"]) == ["YEAR"]


def test_one_coordinate_with_its_past_becomes_several(tmp_path):
    x = lorenz63(3000, seed=2)[:, :1]
    np.save(tmp_path / "x.npy", x)
    words = ("train", tmp_path / "x.npy", *QUICK, "--lags", 3, "--delay", 7, "-o", tmp_path / "run", "-q")
    assert run(*words) == 0
    assert load_checkpoint(tmp_path / "run" / "checkpoint.safetensors").model.observed_dim == 3
    reference = np.load(tmp_path / "run" / "reference.npy")
    np.testing.assert_array_equal(reference[14:, 2], reference[:-14, 0])


def test_training_says_what_it_chose_from_the_data_and_why(tmp_path, capsys):
    x = lorenz63(600, seed=2)
    trials = np.repeat(["a", "b", "c", "d"], 150)
    rows = "\n".join(f"{t},{r[0]},{r[1]}" for t, r in zip(trials, x, strict=True))
    (tmp_path / "x.csv").write_text(f"trial,u,v\n{rows}\n")
    words = ("--latent-dim", "6", "--gated", "2", "--updates", "2")
    assert run("train", tmp_path / "x.csv", *words, "-o", tmp_path / "run") == 0
    told = capsys.readouterr().err
    tau = load_checkpoint(tmp_path / "run" / "checkpoint.safetensors").forcing.interval
    assert f"every {tau} steps (tau): as long as the part to train on remembers itself" in told
    assert "150 rows per sequence, the shortest trial, instead of 200" in told
    assert "600 in 4 trials: 450 to train on, 150 held out" in told
    assert run("train", "lorenz63", "--steps", "1500", "--tau", "3", *words, "-o", tmp_path / "given") == 0
    told = capsys.readouterr().err
    assert "every 3 steps (tau)\n" in told
    assert "rows per sequence" not in told


@pytest.mark.parametrize(
    ("shape", "words", "message"),
    [
        ((64, 5000), [], "Is time in columns? Then save the transpose, (5000, 64)"),
        ((600, 64), ["--latent-dim", "30"], "give latent_dim = 64 or more (--latent-dim 64)"),
    ],
)
def test_series_of_the_wrong_shape_are_told_what_to_do(tmp_path, capsys, shape, words, message):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).standard_normal(shape))
    assert run("train", tmp_path / "x.npy", *words, "-o", tmp_path / "run") == 1
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("palrnn: error: ")
    assert message in error
    assert not (tmp_path / "run").exists()
