"""A family that lives in tests only goes the whole way, from `reconstruct` to the report."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from command_line import call, run
from families.setar import SETAR, limit_cycle
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
    """A run of a threshold autoregression, from a start near the one that made its data."""
    model = limit_cycle()
    x = palrnn.PALRNN(model, 0.05, 0.05, 0.2).sample(np.full(model.observed_dim, 0.1), 600).observations
    path = tmp_path_factory.mktemp("setar") / "run"
    start = model.with_theta(model.theta + 0.02)
    palrnn.reconstruct(x, model=start, tau=5, updates=60, sequence_length=20, run=path, progress=quiet)
    TINY.to_toml(path.parent / "tiny.toml")
    return path


def test_it_is_loaded_as_what_it_is(folder):
    found = Reconstruction.load(folder)
    assert isinstance(found.drift, SETAR)
    assert found.record.training.family == "setar"
    assert found.generate(50).shape == (50, found.drift.observed_dim)


def test_training_goes_on_where_it_stopped(folder):
    before = (folder / "checkpoint.safetensors").read_bytes()
    kept = Reconstruction.load(folder)
    model = limit_cycle()
    start = model.with_theta(model.theta + 0.02)
    x = palrnn.PALRNN(model, 0.05, 0.05, 0.2).sample(np.full(model.observed_dim, 0.1), 600).observations
    again = palrnn.reconstruct(x, model=start, run=folder, progress=quiet)
    np.testing.assert_array_equal(again.drift.theta, kept.drift.theta)
    assert (folder / "checkpoint.safetensors").read_bytes() == before


def test_invariants_and_filter_know_it(folder):
    found = Reconstruction.load(folder)
    assert found.invariants(TINY.invariants).hard.dstsp is not None
    assert found.diagnostics(TINY.filter).steps == 40
    assert np.isfinite(found.evidence(8, windows=4, particles=8, progress=quiet).mean)


def test_geometry_knows_it(folder, tmp_path):
    found = Reconstruction.load(folder)
    compared = found.geometry(TINY.geometry, matrices=True)
    assert isinstance(compared.observed, palrnn.ObservedInformation)
    assert {compared.figures[name] for name in ("states", "target")} == {"exact"}
    names = ("gap", "trace_observed", "mir", "overlap", "logdet_gap", "q90")
    assert all(np.isfinite(compared.figures[f"{name}{of}"]) for name in names for of in ("", "_stderr"))
    assert set(found.error_bars(compared, draws=2)) == {"teacher forcing", "observed information"}
    small = ("--steps", 20, "--particles", 8, "--passes", 2, "--paths", 4, "--draws", 0)
    assert run("geometry", folder, *small, "-o", tmp_path / "geometry", "-q") == 0


def test_tuning_knows_it(folder):
    found = Reconstruction.load(folder)
    tuned = found.tune("full", TINY.tuning.task, progress=quiet)
    assert isinstance(tuned.drift, SETAR)
    assert not np.array_equal(tuned.drift.theta, found.drift.theta)


def test_evaluate_and_filter_know_it(folder, tmp_path, capsys):
    small = ("--steps", 200, "--discard", 20, "--pairs", 2)
    code, out, err = call(capsys, "evaluate", folder, *small)
    assert code == 0, err
    assert "State-space divergence" in out
    assert run("filter", folder, "--steps", 20, "--particles", 8, "-o", tmp_path / "filter", "-q") == 0


@pytest.mark.slow
def test_the_tune_command_knows_it_and_goes_on_where_it_stopped(folder, tmp_path):
    tuned = tmp_path / "tuned"
    sizes = {"length": 8, "iterations": 2, "windows": 4, "particles": 8, "paths": 2, "heldout-windows": 4}
    command = ["tune", folder, "-o", tuned, "-q", *(part for k, v in sizes.items() for part in (f"--{k}", v))]
    assert run(*command) == 0
    found, before = Reconstruction.load(tuned), (tuned / "checkpoint.safetensors").read_bytes()
    assert isinstance(found.model, palrnn.PALRNN)
    assert isinstance(found.drift, SETAR)
    assert not np.array_equal(found.drift.theta, Reconstruction.load(folder).drift.theta)
    assert run(*command) == 0
    assert (tuned / "checkpoint.safetensors").read_bytes() == before


def test_the_report_knows_it(folder, tmp_path):
    page = tmp_path / "setar.html"
    assert run("report", folder, "--whole", "--config", folder.parent / "tiny.toml", "-o", page, "-q") == 0
    text = page.read_text()
    assert "SETAR" in text
    for key in ("invariants", "symbols", "geometry", "filter", "evidence"):
        assert f'<section id="{key}"' in text


def test_no_line_of_it_is_in_the_package():
    package = Path(palrnn.__file__).parent
    assert [file for file in package.rglob("*.py") if "setar" in file.read_text().lower()] == []
