"""A run that is stopped at any moment and continued gives the same bytes as one that never stopped."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import numpy as np
import pytest
from oracles.full_checkpoint import version_1
from safetensors.numpy import save as library_bytes

from palrnn.data import Standardizer, lorenz63
from palrnn.engine.progress import quiet
from palrnn.forcing import TrainConfig, TrainingDivergedError, train
from palrnn.model import Forcing, load_checkpoint


@pytest.fixture(scope="module")
def series():
    x = lorenz63(3000, seed=1)
    return Standardizer.fit(x).transform(x)


# input noise, clipping and annealing take part, so that each of their states must survive
CONFIG = TrainConfig(
    latent_dim=6,
    gated=2,
    tau=5,
    updates=430,
    batch_size=3,
    sequence_length=25,
    input_noise=0.05,
    gradient_clip=1.0,
    final_alpha=0.5,
    checkpoint_every=130,
)


def bytes_of(model):
    return b"".join(part.tobytes() for part in (model.A, model.W, model.h, model.E))


class Stop(Exception):
    pass


def stopping_at(update):
    def progress(done, total, figures):
        if done >= update:
            raise Stop

    return progress


@pytest.mark.parametrize("update", [1, 130, 200, 390, 429])
def test_a_run_stopped_by_an_exception_continues_to_the_same_bytes(series, tmp_path, update):
    whole = train(series, CONFIG)
    with pytest.raises(Stop):
        train(series, CONFIG, run=tmp_path, progress=stopping_at(update))
    continued = train(series, CONFIG, run=tmp_path)
    assert bytes_of(continued.model) == bytes_of(whole.model)
    assert continued.history.loss.tobytes() == whole.history.loss.tobytes()
    assert continued.history.gradient_norm.tobytes() == whole.history.gradient_norm.tobytes()


def test_an_interruption_from_the_keyboard_saves_where_it_is(series, tmp_path):
    def press(done, total, figures):
        if done == 200:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(series, CONFIG, run=tmp_path, progress=press)
    assert load_checkpoint(tmp_path / "checkpoint.safetensors").training["done"] == 200
    assert bytes_of(train(series, CONFIG, run=tmp_path).model) == bytes_of(train(series, CONFIG).model)


def test_results_do_not_depend_on_how_often_checkpoints_are_written(series, tmp_path):
    often = train(series, CONFIG.changed(checkpoint_every=7), run=tmp_path)
    assert bytes_of(often.model) == bytes_of(train(series, CONFIG).model)


KILLED = """
import sys, time, numpy as np
from palrnn.forcing import TrainConfig, train
x = np.load(sys.argv[1])
def progress(done, total, figures):
    print(done, flush=True)
    if done >= int(sys.argv[4]):
        time.sleep(300)
config = TrainConfig.from_toml(sys.argv[2])
train(x, config, run=sys.argv[3], progress=progress)
"""


def test_a_run_killed_without_warning_continues_to_the_same_bytes(series, tmp_path):
    # kill -9 twice, at moments nobody chose: while the process computes or writes, as it happens; a process
    # that gets far ahead of its killer waits for it
    config = CONFIG.changed(updates=30_000, checkpoint_every=150)
    config.to_toml(tmp_path / "config.toml")
    np.save(tmp_path / "x.npy", series)
    files = [str(tmp_path / name) for name in ("x.npy", "config.toml", "run")]
    seen = []
    for enough, most in ((1000, 10_000), (12_000, 20_000)):
        words = [sys.executable, "-c", KILLED, *files, str(most)]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            reached = next((int(line) for line in process.stdout if int(line) >= enough), None)
            process.kill()
        assert reached is not None
        assert process.returncode == -signal.SIGKILL
        seen.append(load_checkpoint(tmp_path / "run" / "checkpoint.safetensors").training["done"])
        assert enough - config.checkpoint_every < seen[-1] <= most
    assert seen[0] < seen[1] < config.updates
    continued = train(series, config, run=tmp_path / "run", progress=quiet)
    assert bytes_of(continued.model) == bytes_of(train(series, config, progress=quiet).model)


def test_a_finished_run_is_returned_as_it_is(series, tmp_path):
    first = train(series, CONFIG, run=tmp_path)
    before = (tmp_path / "checkpoint.safetensors").read_bytes()
    again = train(series, CONFIG, run=tmp_path, progress=stopping_at(0))
    assert bytes_of(again.model) == bytes_of(first.model)
    assert (tmp_path / "checkpoint.safetensors").read_bytes() == before


def test_another_setting_in_the_same_folder_is_refused_by_name(series, tmp_path):
    train(series, CONFIG, run=tmp_path)
    with pytest.raises(
        ValueError, match=r"forcing = Forcing.annealed\(1, 0.5, interval=5.* asked for .*interval=6"
    ):
        train(series, CONFIG.changed(tau=6), run=tmp_path)


def test_other_data_in_the_same_folder_are_refused(series, tmp_path):
    train(series, CONFIG, run=tmp_path)
    with pytest.raises(ValueError, match="other data"):
        train(series[1:], CONFIG, run=tmp_path)


def test_divergence_leaves_the_last_good_checkpoint(series, tmp_path):
    config = CONFIG.changed(
        gradient_clip=None, learning_rate=1e4, final_learning_rate=1e4, tau=100, checkpoint_every=1
    )
    with pytest.raises(TrainingDivergedError, match=r"last good checkpoint is .*safetensors") as caught:
        train(series, config, run=tmp_path)
    kept = load_checkpoint(tmp_path / "checkpoint.safetensors")
    # checkpoints after every update: the last holds the update just before the one that failed
    assert kept.training["done"] == caught.value.update - 1
    assert bytes_of(kept.model) == bytes_of(caught.value.model)


def test_the_checkpoint_is_an_ordinary_model_file(series, tmp_path):
    scale = Standardizer(np.zeros(3), np.ones(3))
    result = train(series, CONFIG, run=tmp_path, standardizer=scale, dt=0.01)
    checkpoint = load_checkpoint(tmp_path / "checkpoint.safetensors")
    assert bytes_of(checkpoint.model) == bytes_of(result.model)
    assert checkpoint.dt == 0.01
    assert checkpoint.standardizer is not None


def test_a_run_begun_in_format_1_continues_to_the_same_bytes(series, tmp_path):
    with pytest.raises(Stop):
        train(series, CONFIG, run=tmp_path, progress=stopping_at(200))
    file = tmp_path / "checkpoint.safetensors"
    held, text = version_1(file.read_bytes())
    # the strengths were left to the settings then, and these told them by numbers
    del held["extra.strength"]
    header = json.loads(text["header"])
    for name in ("forcing", "family"):
        del header["training"]["config"][name]
    header["training"]["config"] |= {
        "tau": 5,
        "alpha": 1.0,
        "final_alpha": 0.5,
        "alpha_schedule": "exponential",
    }
    file.write_bytes(library_bytes(held, metadata=text | {"header": json.dumps(header)}))
    continued = train(series, CONFIG, run=tmp_path)
    whole = train(series, CONFIG)
    assert bytes_of(continued.model) == bytes_of(whole.model)
    assert continued.history.alpha.tobytes() == whole.history.alpha.tobytes()
    assert load_checkpoint(file).forcing == Forcing.generalised(0.5, 5)
