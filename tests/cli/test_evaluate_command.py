"""`palrnn evaluate`: what it compares with, what it prints, and how it refuses."""

from __future__ import annotations

import json

import numpy as np
import pytest
from command_line import call

from palrnn import ALRNN, PALRNN, Standardizer, lorenz63, save_checkpoint
from palrnn.invariants import scorecard

QUICK = ("--steps", "800", "--discard", "50", "--pairs", "2")


def _lorenz_model():
    rng = np.random.default_rng(0)
    return ALRNN(
        np.full(5, 0.5), 0.1 * rng.standard_normal((5, 5)), np.ones(5), rng.standard_normal((5, 3)), 2
    )


def _tent():
    return ALRNN([1.7], [[-3.4]], [1.0], [[1.0]], 1)


@pytest.fixture
def lorenz_file(tmp_path):
    file = tmp_path / "model.safetensors"
    told = {"data": {"system": "lorenz63", "dt": 0.01, "process_std": 0.1}}
    save_checkpoint(
        file, _lorenz_model(), standardizer=Standardizer.fit(lorenz63(2000)), dt=0.01, training=told
    )
    return file


@pytest.fixture
def tent_files(tmp_path):
    save_checkpoint(tmp_path / "tent.safetensors", _tent(), dt=1.0)
    np.save(tmp_path / "truth.npy", _tent().rollout([0.2], 3000).states)
    return tmp_path / "tent.safetensors", tmp_path / "truth.npy"


def test_the_system_of_the_training_data_is_the_default_reference(lorenz_file, capsys):
    code, out, _ = call(capsys, "evaluate", lorenz_file, *QUICK)
    assert code == 0
    for words in (
        "D_stsp",
        "2 pairs of 800 steps",
        "Lyapunov exponent λ₃",
        "Fixed points",
        "a simulation of lorenz63",
    ):
        assert words in out
    # the reference column holds Lorenz-63's own third exponent
    assert "−14.6" in out


def test_json_is_the_score_card(tent_files, capsys):
    model, truth = tent_files
    code, out, err = call(
        capsys, "evaluate", model, "--reference", truth, "--lyapunov", 0.5306, "--json", *QUICK
    )
    assert (code, err) == (0, "")
    found = json.loads(out)
    card = scorecard(_tent(), np.load(truth), dt=1.0, steps=800, discard=50, pairs=2, lyapunov=0.5306, k=1)
    assert {name: found[name] for name in card.to_dict()} == json.loads(json.dumps(card.to_dict()))
    assert found["reference"] == str(truth)


def test_a_run_folder_tells_its_system_or_its_file(tmp_path, tent_files, capsys):
    model, truth = tent_files
    run = tmp_path / "run"
    run.mkdir()
    model.rename(run / "checkpoint.safetensors")
    (run / "config.toml").write_text(f'[data]\nseries = "{truth}"\ntest_fraction = 0.5\n')
    code, out, _ = call(capsys, "evaluate", run, "--json", *QUICK)
    assert code == 0
    found = json.loads(out)
    assert found["reference"] == "the held-out data"
    # half of the 1500 held-out steps
    assert found["steps"] == 750
    # what training kept beside the model wins: it knows columns, delays and trials
    np.save(run / "reference.npy", np.load(truth)[:600])
    code, out, _ = call(capsys, "evaluate", run, "--json", *QUICK)
    assert (code, json.loads(out)["steps"]) == (0, 300)


def test_a_palrnn_has_a_column_for_its_samples(tmp_path, tent_files, capsys):
    _, truth = tent_files
    save_checkpoint(tmp_path / "noisy.safetensors", PALRNN(_tent(), 0.01, 0.1, 0.02), dt=1.0)
    code, out, _ = call(capsys, "evaluate", tmp_path / "noisy.safetensors", "--reference", truth, *QUICK)
    assert code == 0
    assert out.splitlines()[0].startswith("verdict: ")
    assert "Sampled" in out.splitlines()[2]


def test_a_model_that_diverges_is_told_so(tmp_path, tent_files, capsys):
    _, truth = tent_files
    save_checkpoint(tmp_path / "wild.safetensors", ALRNN([2.0], [[0.0]], [0.1], [[1.0]], 0))
    code, out, err = call(capsys, "evaluate", tmp_path / "wild.safetensors", "--reference", truth, *QUICK)
    assert code == 0
    assert "diverged after" in out
    assert "the time step is not known" in err


def test_figures_are_drawn_where_asked(tmp_path, tent_files, capsys):
    model, truth = tent_files
    code, _, err = call(
        capsys, "evaluate", model, "--reference", truth, "--figures", tmp_path / "figures", *QUICK
    )
    assert code == 0
    names = {file.name for file in (tmp_path / "figures").iterdir()}
    drawn = {f"{name}.png" for name in ("lyapunov", "convergence", "attractor", "spectra", "transitions")}
    assert names == drawn | {"evaluate.toml", "palrnn.json"}  # and the settings that made them
    assert "wrote" in err


def test_mistakes_are_one_sentence(tmp_path, lorenz_file, tent_files, capsys):
    model, truth = tent_files
    for words, message in [
        ((model,), "tent: has no held-out series; give one as reference"),
        ((lorenz_file, "--reference", truth), "reference must have 3 columns"),
        ((model, "--reference", truth, "--system", "lorenz63"), "not both"),
        ((model, "--system", "henon"), "system must be one of lorenz63"),
        ((model, "--system", "lorenz63"), "has 3 coordinates, got 1"),
        ((tmp_path / "none.safetensors",), "no such file"),
        ((model, "--reference", truth, "--protocol", "mine"), "protocol must be one of paper"),
    ]:
        code, out, err = call(capsys, "evaluate", *words)
        assert (code, out) == (1, "")
        assert message in err
        assert err.count("\n") == 1 or "time step" in err
