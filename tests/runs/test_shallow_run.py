"""The shallow PLRNN goes the whole way, from the command line to the report."""

from __future__ import annotations

import json

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


both = pytest.mark.parametrize("family", ["shallow", "clipped-shallow"])
# the clipped form differs in the model alone, which the other tests see
both_if_slow = pytest.mark.parametrize(
    "family", ["shallow", pytest.param("clipped-shallow", marks=pytest.mark.slow)]
)


@both
def test_every_question_has_an_answer(folder, family):
    found = Reconstruction.load(folder / family)
    assert found.invariants(TINY.invariants).hard.dstsp is not None
    assert found.diagnostics(TINY.filter).steps == 40
    assert np.isfinite(found.evidence(8, windows=4, particles=8, progress=quiet).mean)
    tuned = found.tune("full", TINY.tuning.task, progress=quiet)
    assert type(tuned.drift) is type(found.drift)
    assert not np.array_equal(tuned.drift.theta, found.drift.theta)


@both
def test_the_geometry_has_all_its_numbers_and_the_gates_in_them(folder, family):
    found = Reconstruction.load(folder / family)
    geometry = found.geometry(TINY.geometry, matrices=True)
    size = found.drift.theta.size
    itf, observed = geometry.informations().values()
    assert itf.shape == observed.shape == (size, size)
    assert np.isfinite(list(geometry.traces_per_step.values())).all()
    np.testing.assert_allclose(observed, observed.T, rtol=0, atol=1e-9 * np.abs(observed).max())
    # what is known of W2 and h2 is known from the gates, too, where they are open or shut
    M, H = found.drift.latent_dim, found.drift.hidden
    gates = np.r_[M * (1 + H) : M * (1 + 2 * H), 2 * M * (1 + H) : size]
    assert (np.abs(observed[gates]).max(axis=1) > 0).all()


@pytest.mark.slow
def test_a_report_leaves_out_what_takes_minutes_and_says_how_to_get_it(folder, tmp_path, capsys):
    words = ("report", folder / "shallow", "--config", folder / "tiny.toml", "-o", tmp_path / "short.html")
    assert run(*words) == 0
    assert "without gates, geometry and tuning, which take minutes (--whole)" in capsys.readouterr().err
    assert '<section id="geometry"' not in (tmp_path / "short.html").read_text()
    # and so does the same question in Python
    Reconstruction.load(folder / "shallow").report(tmp_path / "python.html", TINY, progress=quiet)
    assert '<section id="geometry"' not in (tmp_path / "python.html").read_text()


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


@both_if_slow
def test_the_geometry_command_writes_matrices_and_figures(folder, tmp_path, capsys, family):
    budget = ("--steps", 30, "--particles", 16, "--passes", 2, "--paths", 8, "--draws", 2)
    code, out, err = call(capsys, "geometry", folder / family, *budget, "-o", tmp_path / "g", "--json")
    assert code == 0, err
    assert np.isfinite(json.loads(out)["trace_itf"])
    for name in ("summary.json", "matrices.safetensors", "geometry.png"):
        assert (tmp_path / "g" / name).stat().st_size > 0


@both_if_slow
def test_the_tune_command_raises_no_error_and_its_result_loads(folder, tmp_path, capsys, family):
    sizes = ("--length", 8, "--iterations", 1, "--windows", 4, "--particles", 16, "--paths", 2)
    words = ("--configuration", "full", "--heldout-windows", 4, "-o", tmp_path / "t", "--json")
    code, _, err = call(capsys, "tune", folder / family, *sizes, *words)
    assert code == 0, err
    tuned = Reconstruction.load(tmp_path / "t")
    assert isinstance(tuned.model, palrnn.PALRNN)
    assert type(tuned.drift) is type(Reconstruction.load(folder / family).drift)


@pytest.mark.slow  # tests/runs/test_other_families.py writes a whole page of a family without kernels, too
@both
def test_the_report_has_every_section(folder, tmp_path, capsys, family):
    page = tmp_path / "page.html"
    words = ("report", folder / family, "--whole", "-o", page, "--config", folder / "tiny.toml", "-q")
    code, _, err = call(capsys, *words)
    assert code == 0, err
    text = page.read_text(encoding="utf-8")
    for key in ("attractor", "series", "training", "invariants", "symbols", "geometry", "filter", "evidence"):
        assert f'<section id="{key}"' in text
