"""Measuring the free-running model during training, and keeping the best."""

from __future__ import annotations

import numpy as np
import pytest

from palrnn.data import Standardizer, lorenz63
from palrnn.forcing import Evaluation, History, TrainConfig, free_running_evaluation, train
from palrnn.invariants import dstsp, lyapunov_spectrum
from palrnn.model import ALRNN


@pytest.fixture(scope="module")
def series():
    x = lorenz63(6000, discard=5000, seed=1)
    return Standardizer.fit(x).transform(x)


CONFIG = TrainConfig(
    latent_dim=10,
    gated=4,
    tau=8,
    updates=1500,
    batch_size=4,
    sequence_length=40,
    learning_rate=5e-3,
    evaluate_every=400,
    evaluate_steps=1100,
    evaluate_discard=100,
    evaluate_long_steps=1000,
)


def bytes_of(model):
    return b"".join(part.tobytes() for part in (model.A, model.W, model.h, model.E))


def test_evaluations_come_every_so_often_and_at_the_end(series):
    result = train(series[:4000], CONFIG, heldout=series[4000:], dt=0.01)
    assert [e.update for e in result.history.evaluations] == [400, 800, 1200, 1500]


def test_an_evaluation_is_what_the_invariants_say(series):
    heldout = series[4000:]
    result = train(series[:4000], CONFIG, heldout=heldout, dt=0.01)
    last = result.history.evaluations[-1]
    states = result.model.rollout(heldout[0], 1000, discard=100).states
    assert last.dstsp == dstsp(states[:, :3], heldout[:1000]).value
    spectrum = lyapunov_spectrum(result.model, heldout[0], steps=1000, discard=100, dt=0.01, k=1)
    assert last.lyapunov == spectrum.largest


def test_measuring_does_not_change_what_is_learned(series):
    measured = train(series[:4000], CONFIG, heldout=series[4000:])
    plain = train(series[:4000], CONFIG.changed(evaluate_every=None))
    assert bytes_of(measured.model) == bytes_of(plain.model)


def test_the_best_model_is_the_one_of_the_lowest_score(series):
    heldout = series[4000:]
    config = CONFIG.changed(keep="best", evaluate_every=100)
    result = train(series[:4000], config, heldout=heldout)
    best = result.history.best
    assert best is not None
    assert best.score == min(e.score for e in result.history.evaluations)
    again = free_running_evaluation(
        result.model, heldout, update=best.update, steps=1100, discard=100, long_steps=1000
    )
    assert again == best


def test_a_model_that_lives_is_preferred_to_a_closer_one_that_ends():
    """D_stsp of 1 and alive from everywhere is better than 0.4 with two runs of ten at rest."""
    empty = np.zeros(0)
    ends, lives = Evaluation(10, 0.4, 0.0, 0.9, alive=0.8), Evaluation(20, 1.0, 0.0, 0.9, alive=1.0)
    history = History(empty, empty, empty, empty, empty, (ends, lives))
    assert history.best is lives
    # but not at any price: this one lives somewhere else
    elsewhere = Evaluation(20, 8.0, 0.9, 0.9, alive=1.0)
    assert History(empty, empty, empty, empty, empty, (ends, elsewhere)).best is ends


def test_the_measured_part_that_lives_is_that_of_viability(series):
    rests = ALRNN(np.full(3, 0.5), np.zeros((3, 3)), np.zeros(3), np.eye(3), 0)
    found = free_running_evaluation(rests, series, steps=1100, discard=100, long_steps=1000)
    assert found.alive == 0.0
    assert found.score == found.dstsp + 10


def test_best_and_evaluations_survive_an_interruption(series, tmp_path):
    config, heldout = CONFIG.changed(keep="best", evaluate_every=100, checkpoint_every=350), series[4000:]
    whole = train(series[:4000], config, heldout=heldout)

    def stop(done, total, figures):
        if done >= 1100:
            raise RuntimeError

    with pytest.raises(RuntimeError):
        train(series[:4000], config, heldout=heldout, run=tmp_path, progress=stop)
    continued = train(series[:4000], config, heldout=heldout, run=tmp_path)
    assert continued.history.evaluations == whole.history.evaluations
    assert bytes_of(continued.model) == bytes_of(whole.model)


def test_a_model_that_diverges_has_an_infinite_divergence():
    model = ALRNN(np.full(3, 1.5), np.zeros((3, 3)), np.ones(3), np.eye(3), 1)
    evaluation = free_running_evaluation(
        model, np.random.default_rng(0).standard_normal((500, 3)), steps=500, discard=0
    )
    assert evaluation.dstsp == np.inf
    assert np.isnan(evaluation.lyapunov)


def test_evaluation_without_heldout_data_is_refused(series):
    with pytest.raises(ValueError, match="heldout must be given"):
        train(series, CONFIG)


def test_history_as_csv_has_a_line_per_update_and_the_evaluations_in_place(series, tmp_path):
    history = train(series[:4000], CONFIG, heldout=series[4000:]).history
    history.to_csv(tmp_path / "history.csv")
    table = np.genfromtxt(tmp_path / "history.csv", delimiter=",", names=True)
    assert len(table) == 1500
    np.testing.assert_allclose(table["loss"], history.loss, rtol=1e-6)
    assert np.flatnonzero(~np.isnan(table["dstsp"])).tolist() == [399, 799, 1199, 1499]
