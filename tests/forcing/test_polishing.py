"""Polishing: a run that rests where the data do not is made to move, and what lives stays as it is."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from palrnn.forcing import TrainConfig, itf_loss, polish, train, trainer
from palrnn.invariants.sinks import sink_at
from palrnn.invariants.viability import viability
from palrnn.model import ALRNN, load_checkpoint

PLACE, TURN, OUTSIDE = np.array([0.2, 0.5]), 0.3, 0.5


def focus(growth):
    """An AL-RNN of 2 units, the second gated: a focus at `PLACE` where it is open, contraction elsewhere.

    With ``growth`` above zero it turns on a cycle around the focus, with less it rests there.
    """
    sine, cosine = np.sin(TURN), np.cos(TURN)
    inside = np.exp(growth) * np.array([[cosine, -sine], [sine, cosine]])
    A = np.array([0.0, OUTSIDE])
    h = PLACE - inside @ PLACE
    return ALRNN(A, inside - np.diag(A), h, np.eye(2), gated=1)


@pytest.fixture(scope="module")
def series():
    """What the model that turns does, from the cycle on."""
    return focus(0.02).rollout(np.array([0.3, 0.3]), 4000, discard=1000).states


CONFIG = TrainConfig(
    latent_dim=2, gated=1, tau=5, batch_size=4, sequence_length=50, input_noise=0.0, precision="double"
)
HOW = {"updates": 100, "rate": 1e-3, "margin": 0.02, "steps": 10_000}
PENALTY = HOW | {"rounds": 6}


def test_a_stable_fixed_point_becomes_unstable_and_the_loss_no_larger(series):
    model = focus(-0.02)
    before = sink_at(model, PLACE)
    assert before.growth == pytest.approx(-0.02, abs=1e-12)
    found = polish(model, series, CONFIG, **PENALTY)
    assert found.changed
    assert "it lives" in repr(found)
    # the margin to first order, and ten updates in between
    assert sink_at(found.model, PLACE).growth == pytest.approx(0.02, abs=5e-3)
    assert itf_loss(found.model, series, 5) <= itf_loss(model, series, 5)
    assert viability(found.model, series[:1000:100], 10_000).counts == {"cycle": 10}
    assert found.before.ended == 20
    assert found.after.ended == 0
    assert found.updates == 100 * len(found.rounds)


def test_without_the_penalty_the_same_updates_leave_it_at_rest(series):
    model = focus(-0.02)
    found = polish(model, series, CONFIG, **(PENALTY | {"margin": None, "rate": 1e-7}))
    assert not found.changed
    assert found.model is model
    assert found.updates == 600
    assert [each.life.ended for each in found.rounds] == [20] * 6


def test_a_model_that_lives_is_returned_as_it_is(series):
    model = focus(0.02)
    found = polish(model, series, CONFIG, **PENALTY)
    assert found.model is model
    assert not found.changed
    assert found.rounds == ()
    assert found.after is found.before


def test_the_same_call_gives_the_same_model(series):
    first, second = (polish(focus(-0.02), series, CONFIG, **PENALTY).model for _ in range(2))
    assert first.theta.tobytes() == second.theta.tobytes()


@pytest.fixture
def quick(monkeypatch):
    """Polishing at the end of training that suits the little model."""
    monkeypatch.setattr(trainer, "polish", partial(polish, **HOW))


# one update that moves nothing: the model to polish is the one that was given
STILL = CONFIG.changed(updates=1, learning_rate=1e-12, final_learning_rate=1e-12, keep="last")


def test_training_ends_with_polishing_and_a_finished_run_is_not_polished_again(
    series, quick, tmp_path, monkeypatch
):
    config = STILL.changed(polish=6)
    result = train(series, config, model=focus(-0.02), run=tmp_path / "run")
    assert "it lives" in result.polish
    assert sink_at(result.model, PLACE).growth > 0.0
    kept = load_checkpoint(tmp_path / "run" / "checkpoint.safetensors")
    assert kept.training["polish"] == result.polish
    assert kept.drift.theta.tobytes() == result.model.theta.tobytes()

    def refused(*_, **__):
        raise AssertionError("polished again")

    monkeypatch.setattr(trainer, "polish", refused)
    again = train(series, config, model=focus(-0.02), run=tmp_path / "run")
    assert (again.polish, again.model.theta.tobytes()) == (result.polish, result.model.theta.tobytes())


def test_an_interrupted_polishing_is_done_again_to_the_same_bytes(series, quick, tmp_path, monkeypatch):
    config = STILL.changed(polish=6)
    whole = train(series, config, model=focus(-0.02), run=tmp_path / "whole")

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(trainer, "polish", interrupted)
        with pytest.raises(KeyboardInterrupt):
            train(series, config, model=focus(-0.02), run=tmp_path / "cut")
    again = train(series, config, model=focus(-0.02), run=tmp_path / "cut")
    assert again.model.theta.tobytes() == whole.model.theta.tobytes()
    assert again.polish == whole.polish


def test_a_model_that_lives_is_trained_to_the_same_bytes_with_and_without(series, quick):
    start, config = focus(0.02), CONFIG.changed(updates=20, learning_rate=1e-5)
    with_it, without = (train(series, config.changed(polish=n), model=start) for n in (6, 0))
    assert with_it.model.theta.tobytes() == without.model.theta.tobytes()
    assert with_it.polish == ""


def test_a_driven_model_is_refused(series):
    model = focus(-0.02)
    driven = ALRNN(model.A, model.W, model.h, model.E, 1, C=np.ones((2, 1)))
    with pytest.raises(ValueError, match="model must be autonomous"):
        polish(driven, series, CONFIG, **PENALTY)
