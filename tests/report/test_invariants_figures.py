"""Figures of invariants hold the numbers they are drawn from, and draw every case without a warning."""

from __future__ import annotations

import numpy as np
import pytest

from palrnn import ALRNN, PALRNN, lorenz63, lyapunov_spectrum, symbolic_dynamics
from palrnn.data.systems import lorenz63_system
from palrnn.engine.style import save_figure
from palrnn.invariants import scorecard
from palrnn.report.invariants_figures import (
    attractor_figure,
    convergence_figure,
    lyapunov_figure,
    save_invariant_figures,
    spectra_figure,
    transitions_figure,
)


def _tent(slope=1.7):
    return ALRNN([slope], [[-2 * slope]], [1.0], [[1.0]], 1)


def test_the_exponents_are_where_the_spectrum_says():
    truth = lyapunov_spectrum(lorenz63_system(), steps=2000)
    figure = lyapunov_figure(truth, truth)
    drawn = [line.get_ydata() for line in figure.axes[0].lines if len(line.get_ydata()) == 3]
    assert any(np.array_equal(values, truth.exponents) for values in drawn)
    low, high = figure.axes[0].get_ylim()
    assert low < truth.exponents.min()
    assert high > truth.exponents.max()


def test_minus_infinity_is_left_out_and_the_rest_drawn(tmp_path):
    J = np.array([[0.9, 0.3], [1.8, 0.6]])
    flat = lyapunov_spectrum(ALRNN(np.zeros(2), J, np.zeros(2), np.eye(2), 0), np.zeros(2), steps=100)
    assert flat.exponents[1] == -np.inf
    lyapunov_figure(flat)
    figure = convergence_figure(flat)
    assert len(figure.axes) == 2


def test_the_convergence_trace_ends_at_the_estimate():
    spectrum = lyapunov_spectrum(_tent(), [0.1], steps=500, dt=1.0)
    line = convergence_figure(spectrum, k=1).axes[0].lines[0]
    assert line.get_ydata()[-1] == spectrum.largest


@pytest.mark.parametrize("dim", [1, 2, 3, 5])
def test_attractors_and_spectra_of_any_dimension(dim, tmp_path):
    x = np.random.default_rng(0).standard_normal((300, dim)).cumsum(axis=0)
    y = np.random.default_rng(1).standard_normal((300, dim)).cumsum(axis=0)
    assert len(attractor_figure(y, x).axes) == (1 if dim <= 2 else 2)
    assert len(spectra_figure(y, x, most=2).axes) == min(dim, 2)


def test_the_transition_graph_draws_each_move_between_codes():
    x = lorenz63(400)
    codes = np.zeros((400, 2), dtype=bool)
    codes[100:200, 0] = True
    codes[200:300, 1] = True
    figure = transitions_figure(symbolic_dynamics(codes), x)
    axes = figure.axes[0]
    # 00 -> 10 -> 01 -> 00: three arrows, three circles at the mean places
    assert len(axes.patches) == 3
    places = axes.collections[0].get_offsets()
    assert len(places) == 3
    assert "3 codes" in axes.get_title(loc="left")


def test_one_code_only_is_a_graph_of_one_circle_and_no_arrow(tmp_path):
    x = lorenz63(50)
    figure = transitions_figure(symbolic_dynamics(np.ones((50, 3), dtype=bool)), x)
    axes = figure.axes[0]
    assert axes.get_title(loc="left") == "1 codes, 0.00 bits per step"
    assert len(axes.patches) == 0
    shown = [int(label.strip("$x_")) - 1 for label in (axes.get_xlabel(), axes.get_ylabel())]
    np.testing.assert_allclose(axes.collections[0].get_offsets(), [x[:, shown].mean(axis=0)])
    save_figure(figure, tmp_path / "one.svg")
    assert "mean dwell time (steps)" in (tmp_path / "one.svg").read_text()


def test_all_figures_of_a_score_card_are_written(tmp_path):
    model = PALRNN(_tent(), 0.01, 0.1, 0.02)
    card = scorecard(model, np.asarray(model.drift.rollout([0.2], 1000).states), dt=1.0, discard=10, pairs=1)
    paths = save_invariant_figures(card, tmp_path / "new", kind="svg")
    assert [path.stem for path in paths] == [
        "lyapunov", "convergence", "attractor", "spectra", "transitions", "attractor-sampled",
    ]  # fmt: skip
    assert all(path.read_text().lstrip().startswith("<?xml") for path in paths)


def test_a_diverged_model_has_no_figures(tmp_path):
    card = scorecard(ALRNN([2.0], [[0.0]], [0.1], [[1.0]], 0), np.sin(np.arange(100.0)), pairs=1)
    assert save_invariant_figures(card, tmp_path) == []
