"""A tuning run goes on from its own state only: whatever else is in the file is named and refused."""

from __future__ import annotations

import numpy as np
import pytest

from palrnn.engine.progress import quiet
from palrnn.model import PALRNN, initial_alrnn, load_checkpoint, save_checkpoint
from palrnn.tuning import SAEMConfig, saem

CONFIG = SAEMConfig(
    length=6, iterations=3, windows=3, particles=8, paths=2, heldout_windows=2, robbins_monro=True
)


class Stop(Exception):
    pass


def _model(latent_dim=4, observed_dim=2, gated=2, seed=0, **noise):
    drift = initial_alrnn(latent_dim, observed_dim, gated, seed=seed)
    return PALRNN(drift, **({"process": 0.3, "observation": 0.2, "gate_std": 0.5} | noise))


MODEL = _model()
DATA = np.random.default_rng(0).standard_normal((2, 60, 2))


@pytest.fixture
def run(tmp_path):
    """A run that stopped after 2 of 3 iterations."""

    def stop(done, total, figures):
        if done == 2:
            raise Stop

    with pytest.raises(Stop):
        saem(MODEL, DATA, CONFIG, run=tmp_path, progress=stop)
    return tmp_path


def resumed(run):
    return saem(MODEL, DATA, CONFIG, run=run, progress=quiet)


def rewrite(run, *, model=None, arrays=None, notes=None, without=()):
    file = run / "checkpoint.safetensors"
    there = load_checkpoint(file)
    kept = {name: value for name, value in (there.arrays | (arrays or {})).items() if name not in without}
    saem_notes = there.training["saem"] | notes if isinstance(notes, dict) else there.training["saem"]
    training = {"saem": notes if notes is not None and not isinstance(notes, dict) else saem_notes}
    save_checkpoint(file, model or there.model, training=training, arrays=kept)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (_model(latent_dim=6), "latent_dim must be 4, is 6"),
        (_model(observed_dim=1), "observed_dim must be 2, is 1"),
        (_model(gated=1), "gated must be 2, is 1"),
        (_model(seed=5), "E must be that of the model"),
        (_model(gate_std=0.6), "gate_std must be 0.5, is 0.6"),
        (_model(initial=0.1), "whether initial is given"),
        (MODEL.drift, "must hold a PAL-RNN, holds an ALRNN"),
    ],
)
def test_a_model_that_tuning_cannot_have_made_is_refused(run, model, words):
    rewrite(run, model=model)
    with pytest.raises(ValueError, match=rf"checkpoint\.safetensors: .*{words}"):
        resumed(run)


@pytest.mark.parametrize("iteration", [-1, 4, 2.0, "2", None, True, 10**40])
def test_an_iteration_that_makes_no_sense_is_refused(run, iteration):
    rewrite(run, notes={"iteration": iteration})
    with pytest.raises(ValueError, match=r"checkpoint\.safetensors: .*iteration must be"):
        resumed(run)


@pytest.mark.parametrize("notes", [3, [], "x"])
def test_notes_that_are_no_table_are_refused(run, notes):
    rewrite(run, notes=notes)
    with pytest.raises(ValueError, match=r"checkpoint\.safetensors: .*saem must be a table"):
        resumed(run)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("history.iteration", np.arange(2.0), r"history.iteration must have shape \(3,\), has \(2,\)"),
        ("history.iteration", np.array([0.0, 2.0, 1.0]), r"history.iteration must be \[0, 1, 2\]"),
        ("history.evidence", np.zeros((3, 1)), r"history.evidence must have shape \(3,\)"),
        ("history.dstsp", np.zeros(3, np.float32), "history.dstsp must hold float64, holds float32"),
        ("average.gram", np.zeros((8, 8)), r"average.gram must have shape \(9, 9\)"),
        ("average.square", np.full(4, np.nan), "average.square must be finite"),
        ("average.cross", np.full((4, 9), 1e300), r"average.cross must be within ±1e\+150"),
        ("average.square", -np.ones(4), "average.square must be at least 0"),
        ("average.transitions", np.zeros(1), r"average.transitions must have shape \(\), has \(1,\)"),
    ],
)
def test_a_history_or_statistics_that_do_not_fit_are_refused(run, name, value, words):
    rewrite(run, arrays={name: value})
    with pytest.raises(ValueError, match=rf"checkpoint\.safetensors: .*{words}"):
        resumed(run)


@pytest.mark.parametrize("name", ["history.gate_std", "average.cross"])
def test_what_is_missing_is_named(run, name):
    rewrite(run, without=(name,))
    with pytest.raises(ValueError, match=rf"checkpoint\.safetensors: .*has no array {name}"):
        resumed(run)


def test_statistics_that_the_settings_do_not_keep_are_refused(tmp_path):
    config = CONFIG.changed(robbins_monro=False)
    saem(MODEL, DATA, config, run=tmp_path, progress=quiet)
    rewrite(tmp_path, arrays={"average.gram": np.zeros((9, 9))})
    with pytest.raises(ValueError, match=r"has an array average\.gram, which this run does not keep"):
        saem(MODEL, DATA, config, run=tmp_path, progress=quiet)


def test_an_untouched_file_is_continued(run):
    rewrite(run)
    assert len(resumed(run).history) == 4
