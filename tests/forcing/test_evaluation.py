"""Measuring the free-running model during training, and keeping the best."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from palrnn.data import Standardizer, lorenz63
from palrnn.forcing import Evaluation, History, TrainConfig, free_running_evaluation, train
from palrnn.forcing.state import CHECKPOINT, TrainState
from palrnn.invariants import dstsp, lyapunov_spectrum
from palrnn.model import ALRNN, Forcing, load_checkpoint


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


def test_the_best_model_is_the_latest_of_the_lowest_scores(series):
    heldout = series[4000:]
    config = CONFIG.changed(keep="best", evaluate_every=100)
    result = train(series[:4000], config, heldout=heldout)
    best = result.history.best
    assert best is not None
    lowest = min(e.score for e in result.history.evaluations)
    equals = [e for e in result.history.evaluations if e.score <= lowest + 0.3]
    assert best is equals[-1]
    again = free_running_evaluation(
        result.model, heldout, update=best.update, steps=1100, discard=100, long_steps=1000
    )
    assert again == best


def test_of_scores_that_differ_by_noise_the_latest_counts():
    empty = np.zeros(0)
    for scores, expected in (
        ([1.0, 0.5, 0.7, 0.9], 2),
        ([1.0, 1.2, 1.5], 1),
        ([0.5, 0.9, 0.2, 0.6], 2),
        ([np.inf, np.inf], 1),
    ):
        measured = tuple(Evaluation(i, score, 0.0, 0.9, alive=1.0) for i, score in enumerate(scores))
        assert History(empty, empty, empty, empty, empty, measured).best.update == expected


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


def test_the_forcing_kept_with_the_best_model_is_the_one_it_was_trained_with(series, tmp_path):
    for forcing in (Forcing.annealed(1.0, 0.2), Forcing.adaptive(1.0, every=10, decay=0.9)):
        config = CONFIG.changed(forcing=forcing, keep="best", evaluate_every=10, updates=60)
        state = TrainState.start(config, ALRNN(np.full(3, 0.5), np.zeros((3, 3)), np.zeros(3), np.eye(3), 0))
        strengths = np.linspace(1.0, 0.2, 60, endpoint=False)
        state = replace(state, done=60, strength=strengths)
        for update, score in ((10, 3.0), (20, 0.5), (60, 2.0)):
            state = replace(state, done=update).evaluated(Evaluation(update, score, 0.0, 0.9, alive=1.0))
        assert state.forcing == Forcing.generalised(strengths[19])
        last = replace(state, config=config.changed(keep="last")).forcing
        assert last == (forcing.final if forcing.adapts_every is None else Forcing.generalised(strengths[59]))
        # nothing measured yet: the start, which is trained with what it begins or ends with
        assert replace(state, done=5, evaluations=()).forcing == forcing.final
    config = CONFIG.changed(forcing=Forcing.annealed(1.0, 0.2), keep="best", evaluate_every=10, updates=60)
    result = train(series[:1000], config, heldout=series[4000:], run=tmp_path)
    at = result.history.best.update
    expected = 1.0 * 0.2 ** ((at - 1) / 60) if at < 60 else 0.2
    assert result.forcing.strength == pytest.approx(expected, rel=1e-12)
    assert load_checkpoint(tmp_path / CHECKPOINT).forcing == result.forcing


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
