import io

import numpy as np
import pytest

from palrnn.geometry import InvariantErrorBars, compare_geometries
from palrnn.model import ALRNN, PALRNN
from palrnn.report.geometry_figures import error_bars_figure, geometry_figure


def comparison(**settings):
    rng = np.random.default_rng(3)
    weights = 0.3 * rng.standard_normal((4, 4))
    drift = ALRNN(rng.uniform(0.2, 0.7, 4), weights, np.zeros(4), rng.standard_normal((4, 2)), 2)
    model = PALRNN(drift, 0.2, 0.2, 0.2)
    return compare_geometries(model, model.sample([0.1, 0.2], 60, seed=1).observations, 5, k=6, **settings)


def drawn(figure):
    """Return all words on a figure after drawing it."""
    figure.savefig(io.BytesIO(), format="png")
    texts = [text.get_text() for axes in figure.axes for text in (axes.title, axes.xaxis.label, *axes.texts)]
    legends = [t.get_text() for a in figure.axes if a.get_legend() for t in a.get_legend().get_texts()]
    ticks = [t.get_text() for axes in figure.axes for t in axes.get_xticklabels()]
    left = [axes.get_title(loc="left") for axes in figure.axes]
    return " | ".join([*texts, *legends, *ticks, *left])


def test_the_comparison_has_four_panels_with_its_numbers():
    found = comparison(particles=64, passes=2, paths=8)
    words = drawn(geometry_figure(found))
    for word in ("Eigenvalues", "Curvature ratio", "Overlap", "Louis", "missing:\nswitching"):
        assert word in words
    assert f"{found.mismatch.overlap:.2f} at k = 6" in words
    assert f"MIR {found.observed.mir:.3f}" in words


@pytest.mark.filterwarnings("ignore")
def test_negative_directions_are_shown_as_such():
    found = comparison(states="sampled", particles=64, passes=1, paths=3)
    assert found.mismatch.negative > 0
    words = drawn(geometry_figure(found))
    assert f"negative: absolute value ({found.mismatch.negative})" in words
    assert f"{found.mismatch.negative} negative directions left out" in words


def test_without_matrices_what_is_missing_is_still_drawn():
    figure = geometry_figure(comparison(particles=64, passes=2, paths=8, most_dense=10))
    assert len(figure.axes) == 1


def test_error_bars_say_how_many_draws_diverged():
    one = InvariantErrorBars(np.array([0.9, np.nan, 0.8]), np.array([1.0, np.nan, 2.0]), (0.9, 1.0))
    two = InvariantErrorBars(np.array([0.5, 0.6, 0.8]), np.array([1.0, 3.0, 2.0]), (0.9, 1.0))
    words = drawn(error_bars_figure({"teacher forcing": one, "observed information": two}))
    assert "teacher forcing\n1 of 3 diverged" in words
    assert "observed information\n0 of 3 diverged" in words
