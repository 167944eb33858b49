"""A training run goes on from its own state only: whatever else is in the file is named and refused."""

from __future__ import annotations

import shutil
import threading

import numpy as np
import pytest

from palrnn.data import Standardizer, lorenz63
from palrnn.engine.locks import FolderInUseError, folder_lock
from palrnn.engine.progress import quiet
from palrnn.forcing import TrainConfig, train
from palrnn.forcing.state import updates_measured
from palrnn.model import initial_alrnn, load_checkpoint, save_checkpoint

CONFIG = TrainConfig(
    latent_dim=5,
    gated=2,
    tau=4,
    updates=12,
    batch_size=2,
    sequence_length=10,
    checkpoint_every=4,
    evaluate_every=4,
    evaluate_steps=100,
    evaluate_discard=10,
    evaluate_long_steps=1000,
)
SIZE = 5 + 25 + 5 + 15


class Stop(Exception):
    pass


@pytest.fixture(scope="module")
def series():
    x = lorenz63(300, seed=1)
    return Standardizer.fit(x).transform(x)


@pytest.fixture
def run(series, tmp_path):
    """A run that stopped after 8 of 12 updates."""

    def stop(done, total, figures):
        if done >= 8:
            raise Stop

    with pytest.raises(Stop):
        train(series, CONFIG, run=tmp_path, heldout=series, progress=stop)
    return tmp_path


def resumed(series, run):
    return train(series, CONFIG, run=run, heldout=series, progress=quiet)


def rewrite(run, *, model=None, arrays=None, notes=None, without=()):
    file = run / "checkpoint.safetensors"
    there = load_checkpoint(file)
    kept = {name: value for name, value in (there.arrays | (arrays or {})).items() if name not in without}
    training = {
        name: value for name, value in (there.training | (notes or {})).items() if name not in without
    }
    save_checkpoint(file, model or there.model, training=training, arrays=kept)


@pytest.mark.parametrize("name", ["theta", "first_moment", "second_moment", "best_theta"])
@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.zeros(3, np.float32), r"must have shape \(50,\), has \(3,\)"),
        (np.zeros(0, np.float32), r"must have shape \(50,\), has \(0,\)"),
        (np.zeros((5, 10), np.float32), r"must have shape \(50,\), has \(5, 10\)"),
        (np.zeros(SIZE), "must hold float32, holds float64"),
        (np.zeros(SIZE, np.int32), "must hold float32, holds int32"),
        (np.full(SIZE, np.nan, np.float32), "must be finite, holds nan"),
        (np.full(SIZE, np.inf, np.float32), "must be finite, holds inf"),
    ],
)
def test_parameters_and_moments_that_do_not_fit_are_refused(series, run, name, value, words):
    rewrite(run, arrays={name: value})
    with pytest.raises(ValueError, match=rf"checkpoint\.safetensors: .*: {name} {words}"):
        resumed(series, run)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("second_moment", np.full(SIZE, -1, np.float32), "second_moment must be at least 0, holds -1"),
        ("curvature", np.zeros(10), r"curvature must have shape \(122,\), has \(10,\)"),
        ("curvature", np.full(122, np.nan), "curvature must be finite"),
        ("loss", np.ones(7), r"loss must have shape \(8,\), has \(7,\)"),
        ("loss", np.full(8, np.nan), "loss must be finite"),
        ("loss", np.ones(8, np.float32), "loss must hold float64"),
        ("gradient_norm", np.ones(80), r"gradient_norm must have shape \(8,\)"),
        ("seconds", -np.ones(8), "seconds must be at least 0"),
        ("evaluations", np.zeros((2, 3)), r"evaluations must have shape \(2, 5\)"),
        ("evaluations", np.zeros((0, 5)), r"evaluations must have shape \(2, 5\)"),
        ("evaluations", np.full((2, 5), 8.0), r"updates in evaluations must be \[4, 8\]"),
        (
            "evaluations",
            np.array([[4.0, np.nan, 0, 0, 1], [8.0, 1, 0, 0, 1]]),
            "D_stsp in evaluations must be",
        ),
    ],
)
def test_a_history_that_does_not_fit_is_refused(series, run, name, value, words):
    rewrite(run, arrays={name: value})
    with pytest.raises(ValueError, match=rf"checkpoint\.safetensors: .*{words}"):
        resumed(series, run)


@pytest.mark.parametrize("done", [-1, 13, 10**30, 8.0, "8", None, True, [8]])
def test_a_count_of_updates_that_makes_no_sense_is_refused(series, run, done):
    rewrite(run, notes={"done": done})
    with pytest.raises(ValueError, match=r"checkpoint\.safetensors: .*done must be"):
        resumed(series, run)


@pytest.mark.parametrize(
    "name",
    [
        "theta",
        "first_moment",
        "second_moment",
        "best_theta",
        "curvature",
        "loss",
        "evaluations",
        "done",
        "data",
    ],
)
def test_what_is_missing_is_named(series, run, name):
    rewrite(run, without=(name,))
    with pytest.raises(ValueError, match=r"checkpoint\.safetensors: "):
        resumed(series, run)


@pytest.mark.parametrize("config", [3, None, [], "x"])
def test_settings_that_are_no_table_are_refused(series, run, config):
    rewrite(run, notes={"config": config})
    with pytest.raises(ValueError, match=r"checkpoint\.safetensors: holds a model but no training run"):
        resumed(series, run)


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ((6, 3, 2), "latent_dim must be 5, is 6"),
        ((5, 2, 2), "observed_dim must be 3, is 2"),
        ((5, 3, 1), "gated must be 2, is 1"),
    ],
)
def test_a_model_of_another_size_is_refused(series, run, sizes, words):
    rewrite(run, model=initial_alrnn(*sizes, seed=1))
    with pytest.raises(ValueError, match=rf"checkpoint\.safetensors: .*{words}"):
        resumed(series, run)


def test_a_model_that_is_not_that_of_its_state_is_refused(series, run):
    rewrite(run, model=initial_alrnn(5, 3, 2, seed=99))
    with pytest.raises(ValueError, match="the model is not that of its training state"):
        resumed(series, run)


def test_a_file_from_when_there_was_radam_alone_goes_on_with_it(series, tmp_path):
    def stop(done, total, figures):
        if done >= 8:
            raise Stop

    radam = CONFIG.changed(optimizer="radam")
    with pytest.raises(Stop):
        train(series, radam, run=tmp_path, heldout=series, progress=stop)
    assert "curvature" not in load_checkpoint(tmp_path / "checkpoint.safetensors").arrays
    settings = load_checkpoint(tmp_path / "checkpoint.safetensors").training["config"]
    rewrite(tmp_path, notes={"config": {name: v for name, v in settings.items() if name != "optimizer"}})
    with pytest.raises(ValueError, match="optimizer"):
        train(series, CONFIG.changed(optimizer="soap"), run=tmp_path, heldout=series, progress=quiet)
    whole = train(series, radam, heldout=series, progress=quiet)
    continued = resumed(series, tmp_path)  # with settings that leave the optimiser open
    assert continued.model.theta.tobytes() == whole.model.theta.tobytes()


@pytest.mark.parametrize("optimizer", ["soap", "radam"])
def test_a_run_that_stops_between_turns_ends_as_if_it_had_not(series, tmp_path, optimizer):
    def stop(done, total, figures):
        if done >= 150:  # bases are turned after every 100 updates
            raise Stop

    config = CONFIG.changed(updates=330, checkpoint_every=50, evaluate_every=None, optimizer=optimizer)
    with pytest.raises(Stop):
        train(series, config, run=tmp_path, progress=stop)
    continued = train(series, config, run=tmp_path, progress=quiet)
    whole = train(series, config.changed(checkpoint_every=110), progress=quiet)
    assert continued.model.theta.tobytes() == whole.model.theta.tobytes()


def test_an_untouched_file_is_continued(series, run):
    rewrite(run)
    assert len(resumed(series, run).history) == 12


@pytest.mark.parametrize(
    ("every", "updates", "done", "expected"),
    [
        (4, 12, 8, [4, 8]),
        (4, 12, 12, [4, 8, 12]),
        (5, 12, 12, [5, 10, 12]),
        (5, 12, 4, []),
        (None, 12, 12, []),
    ],
)
def test_the_updates_after_which_a_run_measures(every, updates, done, expected):
    config = CONFIG.changed(evaluate_every=every, updates=updates)
    assert updates_measured(config, done) == expected


def test_one_run_at_a_time_writes_to_a_folder(series, run):
    refused = []

    def attempt():
        try:
            resumed(series, run)
        except FolderInUseError as error:
            refused.append(str(error))

    with folder_lock(run, "something else"):
        thread = threading.Thread(target=attempt)
        thread.start()
        thread.join()
    assert len(refused) == 1
    assert "something else" in refused[0]


def test_a_folder_that_is_removed_meanwhile_is_an_error_and_not_made_again(series, tmp_path):
    folder = tmp_path / "run"

    def remove(done, total, figures):
        shutil.rmtree(folder, ignore_errors=True)

    with pytest.raises(ValueError, match=r"the folder .*run does not exist"):
        train(series, CONFIG, run=folder, heldout=series, progress=remove)
    assert not folder.exists()
