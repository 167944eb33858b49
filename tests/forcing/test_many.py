"""Several models in several processes: the same results for any number of workers."""

from __future__ import annotations

import multiprocessing
import time

import numpy as np
import pytest

from palrnn.data import Standardizer, lorenz63
from palrnn.forcing import TrainConfig, TrainingDivergedError, train, train_many
from palrnn.model import load_checkpoint


@pytest.fixture(scope="module")
def series():
    x = lorenz63(3000, seed=1)
    return Standardizer.fit(x).transform(x)


CONFIG = TrainConfig(latent_dim=6, gated=2, tau=5, updates=300, batch_size=3, sequence_length=25)


def bytes_of(model):
    return b"".join(part.tobytes() for part in (model.A, model.W, model.h, model.E))


def test_results_do_not_depend_on_the_number_of_workers(series):
    configs = [CONFIG.changed(seed=0), CONFIG.changed(seed=1, tau=7), CONFIG.changed(seed=2, latent_dim=9)]
    reported = []
    alone = [bytes_of(train(series, config).model) for config in configs]
    one = train_many(series, configs, workers=1)
    two = train_many(
        series, configs, workers=2, progress=lambda done, total, _: reported.append((done, total))
    )
    assert [bytes_of(result.model) for result in one] == alone
    assert [bytes_of(result.model) for result in two] == alone
    assert reported[-1] == (900, 900)


def test_a_model_that_diverges_is_named_after_the_others_are_done(series, tmp_path):
    wild = CONFIG.changed(learning_rate=1e4, final_learning_rate=1e4, tau=100)
    folders = [tmp_path / "wild", tmp_path / "tame"]
    with pytest.raises(TrainingDivergedError, match="diverged at update") as caught:
        train_many(series, [wild, CONFIG], workers=1, runs=folders)
    assert caught.value.__notes__ == ["this was configuration 0 of 2"]
    assert load_checkpoint(folders[1] / "checkpoint.safetensors").training["done"] == 300


def test_divergence_errors_travel_between_processes(series):
    import pickle

    with pytest.raises(TrainingDivergedError) as caught:
        train(series, CONFIG.changed(learning_rate=1e4, final_learning_rate=1e4, tau=100))
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), copy.update) == (str(caught.value), caught.value.update)
    assert np.array_equal(copy.model.W, caught.value.model.W)


def test_runs_must_be_one_folder_each(series, tmp_path):
    with pytest.raises(ValueError, match="one folder per configuration"):
        train_many(series, [CONFIG, CONFIG], runs=[tmp_path])
    with pytest.raises(ValueError, match="different folders"):
        train_many(series, [CONFIG, CONFIG], runs=[tmp_path, tmp_path])


def test_an_interruption_stops_the_models_that_train_and_begins_no_other(series, tmp_path):
    # minutes of work, of which an interruption leaves a fraction of a second
    long = CONFIG.changed(updates=200_000, checkpoint_every=200_000)
    folders = [tmp_path / str(i) for i in range(4)]

    def interrupt(done, total, figures):
        if done > 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_many(series, [long] * 4, workers=2, runs=folders, progress=interrupt)
    deadline = time.monotonic() + 60
    while multiprocessing.active_children() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not multiprocessing.active_children()
    reached = [
        load_checkpoint(folder / "checkpoint.safetensors").training["done"] if folder.exists() else None
        for folder in folders
    ]
    # each worker has saved how far it came
    assert any(done for done in reached[:2])
    assert all(done is None or done < long.updates for done in reached[:2])
    assert reached[2:] == [None, None]


def test_workers_can_be_counted_where_the_system_does_not_tell(series, monkeypatch):
    monkeypatch.delattr("os.sched_getaffinity")
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    assert len(train_many(series, [CONFIG.changed(updates=1)] * 2)) == 2
