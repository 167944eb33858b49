"""The picture of a training run shows the numbers of its history."""

from __future__ import annotations

import numpy as np

from palrnn.engine.style import save_figure
from palrnn.forcing import Evaluation, History
from palrnn.report.training_figures import training_figure


def history(updates, evaluations=()):
    loss = np.linspace(2.0, 0.1, updates)
    ones = np.ones(updates)
    return History(loss, 3 * loss, 1e-3 * ones, ones, 1e-4 * ones, evaluations)


def test_the_mean_loss_is_drawn_over_the_updates():
    figure = training_figure(history(1000))
    assert len(figure.axes) == 2
    x, y = figure.axes[0].lines[0].get_data()
    assert x[-1] == 1000
    # the last of 400 pieces holds the last two updates
    np.testing.assert_allclose(y[-1], np.linspace(2.0, 0.1, 1000)[-2:].mean(), rtol=1e-12)


def test_evaluations_and_their_references_are_drawn_and_divergence_is_marked():
    measured = (Evaluation(50, 3.0, 0.0, 0.5), Evaluation(100, np.inf, 1.0, np.nan))
    figure = training_figure(history(100, measured), floor=0.7, lyapunov=0.9056)
    state_space, exponent = figure.axes[2], figure.axes[3]
    assert state_space.lines[0].get_ydata()[0] == 3.0
    assert state_space.lines[1].get_xdata().tolist() == [100]
    assert "diverged" in state_space.get_title(loc="left")
    assert state_space.lines[2].get_ydata()[0] == 0.7
    assert exponent.lines[1].get_ydata()[0] == 0.9056


def test_the_same_history_gives_the_same_bytes(tmp_path):
    for name in ("a.png", "b.png"):
        save_figure(training_figure(history(300)), tmp_path / name)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
