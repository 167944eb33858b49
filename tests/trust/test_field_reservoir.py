"""The echo-state networks of benchmarks/field against reservoirpy's own, where that is installed."""

from __future__ import annotations

import numpy as np
import pytest

nodes = pytest.importorskip("reservoirpy.nodes", reason="needs the extra field", exc_type=ImportError)

from benchmarks.field.reservoir import WASHOUT, built, fitted  # noqa: E402
from palrnn import lorenz63  # noqa: E402
from palrnn.model.engine import advance  # noqa: E402

SETTINGS = {
    "units": 60.0,
    "radius": 0.9,
    "leak": 0.6,
    "input_scale": 0.5,
    "ridge": 1e-4,
    "input_noise": 0.0,
}


@pytest.fixture(scope="module")
def series() -> np.ndarray:
    x = lorenz63(1500, seed=3)
    return (x - x.mean(axis=0)) / x.std(axis=0)


def _node() -> nodes.Reservoir:
    return nodes.Reservoir(
        units=60, sr=0.9, lr=0.6, input_scaling=0.5, rc_connectivity=1 / 6, input_connectivity=1.0, seed=5
    )


def test_units_are_those_of_the_package(series):
    found = built(SETTINGS, 3, 5).listen(series)
    np.testing.assert_allclose(found, _node().run(series), atol=1e-10)


def test_the_readout_is_that_of_its_ridge_regression(series):
    network = fitted(built(SETTINGS, 3, 5), [series], SETTINGS, 0)
    states = _node().run(series[:-1])[WASHOUT:]
    # theirs penalises the sum of squares, ours the mean, and ours the bias, too: the same by hand
    features = np.column_stack([np.ones(len(states)), states])
    penalty = SETTINGS["ridge"] * len(states)
    rows = np.concatenate([features, np.sqrt(penalty) * np.eye(features.shape[1])])
    target = np.concatenate([series[1 + WASHOUT :], np.zeros((features.shape[1], 3))])
    np.testing.assert_allclose(network.W_out.T, np.linalg.lstsq(rows, target, rcond=None)[0], atol=1e-6)


def test_several_trials_are_one_regression_and_each_begins_at_rest(series):
    together = fitted(built(SETTINGS, 3, 5), [series[:700], series[700:]], SETTINGS, 0)
    alone = built(SETTINGS, 3, 5)
    states = np.concatenate([alone.listen(part[:-1])[WASHOUT:] for part in (series[:700], series[700:])])
    ahead = np.concatenate([part[1 + WASHOUT :] for part in (series[:700], series[700:])])
    left = ahead - together.read(states)
    # the gradient of the mean squared error is that of the penalty
    np.testing.assert_allclose(
        states.T @ left / len(states), SETTINGS["ridge"] * together.W_out[:, 1:].T, atol=1e-9
    )


def test_exponents_are_those_of_two_runs_side_by_side(series):
    network = fitted(built(SETTINGS, 3, 5), [series], SETTINGS, 0).remember(series)
    largest = network.exponents(series[400], 4000, 1)[0]
    state = advance(network, network.embed(series[400]), 1000)[-1]
    gains, nudge = [], 1e-7 * state / np.linalg.norm(state)
    for _ in range(400):
        pair = advance(network, np.concatenate([state, state + nudge]), 10)[-1]
        apart = pair[1] - pair[0]
        gains.append(np.log(np.linalg.norm(apart) / 1e-7) / 10)
        state, nudge = pair[:1], 1e-7 * apart / np.linalg.norm(apart)
    assert np.mean(gains) == pytest.approx(largest, abs=0.01)
