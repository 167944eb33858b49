"""One run, asked from the shell, from Python and by the report: the same answer, and the right one."""

from __future__ import annotations

import json

import numpy as np
import pytest
from command_line import call
from oracles.forced_jacobian import gauss_newton
from tiny_reconstruction import TINY

from palrnn.data import Standardizer, lorenz63
from palrnn.model import Forcing, initial_alrnn
from palrnn.runs import Reconstruction
from palrnn.runs.view import LONG, left_out

pytestmark = [
    pytest.mark.filterwarnings("ignore::palrnn.geometry.IndefiniteInformationWarning"),
    pytest.mark.filterwarnings("ignore::palrnn.inference.FewPathsWarning"),
]
SIZES = ("--latent-dim", 6, "--gated", 2, "--updates", 200, "--sequence-length", 20, "--batch-size", 4)


@pytest.fixture
def run(tmp_path, capsys):
    """A model that was trained by generalised forcing: every third step, four tenths of the way."""
    np.save(tmp_path / "x.npy", lorenz63(3000, seed=2))
    words = ("train", tmp_path / "x.npy", *SIZES, "--tau", 3, "--alpha", 0.4, "-o", tmp_path / "run", "-q")
    assert call(capsys, *words)[0] == 0
    return tmp_path / "run"


def asked(capsys, *words):
    code, out, err = call(capsys, *words, "--json")
    assert code == 0, err
    return json.loads(out)


def test_geometry_is_one_object_with_the_forcing_of_the_training(run, tmp_path, capsys):
    few = ("--steps", 40, "--particles", 16, "--paths", 8, "--draws", 0)
    shell = asked(capsys, "geometry", run, *few, "-o", tmp_path / "geometry")
    python = Reconstruction.load(run).geometry(steps=40, particles=16, paths=8)
    assert python.forcing == Forcing.generalised(0.4, 3)
    assert {name: shell[name] for name in python.to_dict()} == json.loads(json.dumps(python.to_dict()))
    model = Reconstruction.load(run)
    x = model.standardizer.transform(model.reference[:40])
    by_jax = gauss_newton(model.drift, x, 3, 0.1, 0.4)
    # both are exact up to rounding, which sensitivities of forty steps amplify a little
    assert shell["trace_itf"] == pytest.approx(np.trace(by_jax), rel=1e-8)
    assert shell["trace_itf"] != pytest.approx(np.trace(gauss_newton(model.drift, x, 3, 0.1)), rel=0.01)


def test_the_report_shows_what_the_commands_print(run, tmp_path, capsys):
    TINY.to_toml(tmp_path / "tiny.toml")
    words = ("report", run, "--no-tune", "--config", tmp_path / "tiny.toml", "-o", tmp_path / "page.html")
    page = asked(capsys, *words)["runs"][0]
    card = asked(capsys, "evaluate", run, "--steps", 400, "--discard", 50, "--pairs", 2)
    for name in ("hard", "dstsp_floor", "spectrum_floor", "codes_visited", "steps"):
        assert page["invariants"][name] == card[name]
    few = ("--steps", 40, "--particles", 16)
    health = asked(capsys, "filter", run, *few, "-o", tmp_path / "filter")
    for name in ("log_evidence", "mean_ess", "code_entropy_bits", "particles", "gate_std"):
        assert page["diagnostics"][name] == health[name]
    assert page["geometry"]["forcing"] == {"policy": "generalised", "alpha": 0.4, "interval": 3}
    assert page["facts"]["Model"]["forcing"] == "Forcing.generalised(0.4, interval=3)"


def test_a_tuned_model_is_reported_with_its_own_noise(run, tmp_path, capsys):
    quick = ("--length", 8, "--iterations", 2, "--windows", 4, "--particles", 16, "--heldout-windows", 4)
    (tmp_path / "tune.toml").write_text("[tuning.saem]\ndiagonal_noise = true\n")
    words = ("tune", run, "--config", tmp_path / "tune.toml", "--configuration", "calib", *quick)
    asked(capsys, *words, "-o", tmp_path / "tuned")
    tuned = Reconstruction.load(tmp_path / "tuned")
    assert tuned.model.process.kind == "diagonal"
    assert tuned.forcing == Forcing.generalised(0.4, 3)
    np.testing.assert_array_equal(tuned.reference, Reconstruction.load(run).reference)
    few = ("--steps", 40, "--particles", 16)
    shell = asked(capsys, "filter", tmp_path / "tuned", *few, "-o", tmp_path / "filter")
    assert shell["log_evidence"] == tuned.filter(steps=40, particles=16).log_evidence
    assert shell["process_std"] == tuned.model.process.typical_std
    TINY.to_toml(tmp_path / "tiny.toml")
    page = ("report", tmp_path / "tuned", "--no-tune", "--config", tmp_path / "tiny.toml")
    found = asked(capsys, *page, "-o", tmp_path / "page.html")["runs"][0]
    assert found["diagnostics"]["log_evidence"] == shell["log_evidence"]
    assert found["invariants"]["sampled"] is not None
    assert "diagonal" in found["facts"]["Model"]["process noise"]


def test_shell_and_python_have_one_set_of_defaults(run, tmp_path, capsys):
    model = Reconstruction.load(run)
    card = asked(capsys, "evaluate", run)
    assert card["hard"] == json.loads(json.dumps(model.invariants().to_dict()))["hard"]
    health = asked(capsys, "filter", run, "-o", tmp_path / "filter")
    assert health["log_evidence"] == model.filter().log_evidence
    assert (health["process_std"], health["observation_std"], health["gate_std"]) == (0.1, 0.1, 0.7)


@pytest.mark.parametrize(("units", "kept"), [(40, True), (60, False)])
def test_a_report_of_a_large_model_leaves_out_what_takes_minutes_unless_asked_for(units, kept):
    data = lorenz63(500, seed=0)
    model = initial_alrnn(units, 3, 10)
    large = Reconstruction(model, Standardizer(np.zeros(3), np.ones(3)), data, dt=0.01)
    assert left_out(large, None) == (() if kept else LONG)
    assert left_out(large, True) == ()
    assert left_out(large, False) == LONG
