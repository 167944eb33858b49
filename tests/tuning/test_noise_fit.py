"""The noise of the highest evidence: against the maximum of a Kalman filter's likelihood, and its errors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from statsmodels.tsa.statespace.mlemodel import MLEModel

from palrnn import ALRNN, PALRNN
from palrnn.engine.checks import Floats
from palrnn.inference import windowed_evidence
from palrnn.tuning import NoiseFitConfig, fit_noise

LENGTH = 25


@pytest.fixture(scope="module")
def linear() -> PALRNN:
    """A model whose single gate changes nothing: its likelihood is a Kalman filter's."""
    drift = ALRNN([0.9, 0.8, 0.7], np.zeros((3, 3)), [0.05, 0.0, 0.1], np.eye(3, 2), 1)
    return PALRNN(drift, 0.2, 0.3, 0.1)


def kalman_log_likelihood(model: PALRNN, windows: list[Floats], process: float, observation: float) -> float:
    """Sum over windows of log p(x_2.. | x_1), by statsmodels; a window starts at its first row."""
    drift, total = model.drift, 0.0
    matrix = np.diag(drift.A) + drift.W * np.array([1.0, 1.0, 0.0])
    for window in windows:
        kalman = MLEModel(window[1:], k_states=3, k_posdef=3)
        kalman["design"] = np.eye(2, 3)
        kalman["transition"], kalman["selection"] = matrix, np.eye(3)
        kalman["state_intercept"] = drift.h
        kalman["state_cov"] = np.eye(3) * process**2
        kalman["obs_cov"] = np.eye(2) * observation**2
        start = np.array([*window[0], 0.0])
        first = matrix @ start + drift.h
        spread = matrix @ matrix.T * process**2 + np.eye(3) * process**2
        kalman.initialize_known(first, spread)
        total += kalman.loglike([])
    return total


def test_it_is_the_maximum_of_the_kalman_likelihood(linear: PALRNN) -> None:
    x = linear.sample([0.0, 0.0], 500, seed=3).observations
    starts = range(0, len(x) - LENGTH, LENGTH)
    windows = [x[start : start + LENGTH + 1] for start in starts]

    def loss(levels: Floats) -> float:
        return -kalman_log_likelihood(linear, windows, *np.exp(levels))

    wanted = np.exp(minimize(loss, np.log([0.2, 0.3]), method="Nelder-Mead", options={"xatol": 1e-3}).x)
    start = linear.with_noise(process=0.6, observation=0.05)
    config = NoiseFitConfig(length=LENGTH, tolerance=0.002, evaluations=200)
    made = fit_noise(start, x, config, target="exact", particles=1)
    found = made.model
    levels = [found.process_variances.mean() ** 0.5, found.observation_variances.mean() ** 0.5]
    np.testing.assert_allclose(levels, wanted, rtol=0.01)
    assert found.gate_std == linear.gate_std
    # the result knows that it is there, and what it is worth
    assert made.converged
    assert 10 < made.evaluations < 200
    evidence = windowed_evidence(found, x, LENGTH, target="exact", particles=1).mean
    assert made.evidence == pytest.approx(evidence, rel=1e-12)


def test_a_second_climb_from_the_maximum_stays_and_takes_fewer_passes(linear: PALRNN) -> None:
    x = linear.sample([0.0, 0.0], 500, seed=3).observations
    how = {"target": "exact", "particles": 1}
    first = fit_noise(
        linear.with_noise(process=0.6, observation=0.05), x, NoiseFitConfig(length=LENGTH), **how
    )
    again = fit_noise(first.model, x, NoiseFitConfig(length=LENGTH, step=0.1), **how)
    assert again.converged
    assert again.evaluations < first.evaluations
    assert again.evidence >= first.evidence
    for levels in ("process_variances", "observation_variances"):
        np.testing.assert_allclose(getattr(again.model, levels), getattr(first.model, levels), rtol=0.08)


def test_gate_noise_of_a_switching_model_is_found() -> None:
    drift = ALRNN([0.3, 0.5], [[0.0, -1.6], [0.4, 0.9]], [0.3, 0.4], np.eye(2), 1)
    truth = PALRNN(drift, 0.1, 0.1, 0.4)
    x = truth.sample([0.0, 0.0], 1200, seed=1).observations
    start, how = truth.with_noise(gate_std=1.5), {"target": "exact", "particles": 16}
    found = fit_noise(start, x, NoiseFitConfig(length=60, gate=True), **how).model
    evidence = [windowed_evidence(model, x, 60, **how).mean for model in (found, truth, start)]
    assert evidence == sorted(evidence, reverse=True)
    assert 0.4 / 1.6 < found.gate_std < 0.4 * 1.6
    assert found.process_variances.mean() ** 0.5 == pytest.approx(0.1, rel=0.2)


def test_gate_noise_must_be_there_to_be_fitted(linear: PALRNN) -> None:
    model = linear.with_noise(gate_std=0.0)
    with pytest.raises(ValueError, match="model must start with gate noise above 0"):
        fit_noise(model, np.zeros((50, 2)), NoiseFitConfig(length=10, gate=True), target="exact")


def test_a_fit_that_is_cut_short_says_so(linear: PALRNN) -> None:
    x = linear.sample([0.0, 0.0], 60, seed=1).observations
    with pytest.warns(UserWarning, match="after evaluations=5; allow more"):
        made = fit_noise(linear, x, NoiseFitConfig(length=20, evaluations=5), target="exact", particles=1)
    assert not made.converged
    assert made.evaluations == 5
    assert "still moved after 5 evaluations" in repr(made)
