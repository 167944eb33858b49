"""The shallow PLRNN goes the whole way, from the command line to the report."""

from __future__ import annotations

import numpy as np
import pytest
from command_line import call, run
from tiny_reconstruction import TINY

import palrnn
from palrnn.engine.progress import quiet
from palrnn.runs import Reconstruction

pytestmark = [
    pytest.mark.filterwarnings("ignore::palrnn.geometry.IndefiniteInformationWarning"),
    pytest.mark.filterwarnings("ignore::palrnn.inference.FewPathsWarning"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("shallow")
    np.save(path / "x.npy", palrnn.lorenz63(3000, seed=3))
    for family, hidden, updates in (("shallow", 6, 800), ("clipped-shallow", 3, 5)):
        words = ("--family", family, "--hidden", hidden, "--updates", updates, "--tau", 8)
        more = ("--dt", 0.01, "--sequence-length", 40, "--learning-rate", 0.01, "-q")
        assert run("train", path / "x.npy", "-o", path / family, *words, *more) == 0
    TINY.to_toml(path / "tiny.toml")
    return path


def test_a_shallow_model_has_as_many_units_as_columns_and_a_gate_per_hidden_unit(folder):
    found, clipped = Reconstruction.load(folder / "shallow"), Reconstruction.load(folder / "clipped-shallow")
    assert isinstance(found.drift, palrnn.ShallowPLRNN)
    assert (found.drift.latent_dim, found.drift.hidden, found.drift.gated) == (3, 6, 6)
    assert isinstance(clipped.drift, palrnn.ClippedShallowPLRNN)
    assert (clipped.drift.latent_dim, clipped.drift.hidden, clipped.drift.gated) == (3, 3, 6)
    assert found.losses[-1][1] < 0.5 * found.losses[0][1]


def test_every_question_has_an_answer(folder):
    found = Reconstruction.load(folder / "shallow")
    assert found.invariants(TINY.invariants).hard.dstsp is not None
    assert found.diagnostics(TINY.filter).steps == 40
    assert np.isfinite(found.evidence(8, windows=4, particles=8, progress=quiet).mean)
    tuned = found.tune("full", TINY.tuning.task, progress=quiet)
    assert isinstance(tuned.drift, palrnn.ShallowPLRNN)
    assert not np.array_equal(tuned.drift.theta, found.drift.theta)


def test_states_and_gates_are_smoothed(folder):
    found = Reconstruction.load(folder / "shallow")
    filtered = palrnn.rbpf(found.probabilistic, found.x[:30], particles=32, target="exact", seed=1)
    smoothed = palrnn.smooth(filtered, paths=8, states_per_path=2, seed=1)
    assert np.isfinite(smoothed.states).all()


def test_commands_know_it(folder, tmp_path, capsys):
    code, out, err = call(
        capsys, "evaluate", folder / "shallow", "--steps", 200, "--discard", 20, "--pairs", 2
    )
    assert code == 0, err
    assert "State-space divergence" in out
    assert run("filter", folder / "shallow", "--steps", 20, "--particles", 8, "-o", tmp_path / "f", "-q") == 0
