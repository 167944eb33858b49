"""The filter's figure holds the traces that it is drawn from."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.small_models import drawn_series, gated_model

from palrnn import rbpf
from palrnn.engine.style import save_figure
from palrnn.report.filter_figures import diagnostics_figure


@pytest.fixture(scope="module")
def filtered():
    model = gated_model(3, observed=2, latent=6, seed=4)
    return rbpf(model, drawn_series(model, 50), particles=32)


def test_the_traces_events_and_the_bound_are_drawn(filtered):
    ess, entropy, gates = diagnostics_figure(filtered, start=100).axes[:3]
    share, events, threshold = (line.get_ydata() for line in ess.lines)
    np.testing.assert_array_equal(share, filtered.ess / 32)
    np.testing.assert_array_equal(events, (filtered.ess / 32)[filtered.resampled])
    assert set(threshold) == {0.5}
    drawn = {line.get_label(): line.get_ydata() for line in entropy.lines}
    np.testing.assert_array_equal(drawn["full code"], filtered.code_entropy)
    assert set(drawn["log2(32) = 5.00"]) == {5.0}
    assert ess.lines[0].get_xdata()[0] == 101
    np.testing.assert_array_equal(gates.images[0].get_array(), filtered.gate_probability.T)


def test_a_model_without_gates_has_no_panel_of_gates(tmp_path):
    model = gated_model(0, observed=2, latent=4)
    figure = diagnostics_figure(rbpf(model, drawn_series(model, 10), particles=4))
    assert len(figure.axes) == 2
    save_figure(figure, tmp_path / "figure.png")
