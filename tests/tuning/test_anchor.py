"""The anchored M-step: its two ends, and its minimum against another optimiser."""

from __future__ import annotations

import numpy as np
import pytest

from palrnn.forcing import itf_gradient, itf_loss
from palrnn.model import ALRNN, PALRNN
from palrnn.tuning.anchor import anchored_solution
from palrnn.tuning.mstep import drift_solution
from palrnn.tuning.rows import row_moments
from palrnn.tuning.statistics import sufficient_statistics


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    drift = ALRNN(
        np.full(4, 0.6),
        0.15 * rng.standard_normal((4, 4)),
        0.1 * rng.standard_normal(4),
        rng.standard_normal((4, 2)),
        2,
    )
    model = PALRNN(drift, np.array([0.2, 0.3, 0.4, 0.3]), 0.2, 0.5)
    sample = model.sample(np.zeros(2), 300, seed=1)
    other = drift.with_theta(drift.theta + 0.05 * rng.standard_normal(drift.theta.size))
    states = np.asarray(sample.states)[None, None]
    statistics = sufficient_statistics(
        PALRNN(other, 0.3, 0.2, 0.5), sample.observations, sample.codes[None], states
    )
    x = sample.observations[:300].reshape(6, 50, 2)
    return statistics, PALRNN(other, model.process.std, 0.2, 0.5), x


def _objective(statistics, model, x, beta, ridge, drift):
    gram, cross = row_moments(statistics)
    theta, q = drift.rows, model.process_variances
    quadratic = 0.5 * np.einsum("ij,ijk,ik->i", theta, gram, theta) + 0.5 * ridge * np.sum(theta**2, axis=1)
    return float(np.sum((quadratic - np.sum(theta * cross, axis=1)) / q)) + beta * itf_loss(drift, x, 5)


def test_without_weight_it_is_the_plain_m_step(problem):
    statistics, model, x = problem
    found = anchored_solution(statistics, model, x, forcing=5, beta=0.0, ridge=1e-2)
    np.testing.assert_allclose(found.rows, drift_solution(statistics, model, ridge=1e-2).rows, atol=1e-9)


def test_a_heavy_weight_lowers_the_forcing_loss_below_that_of_any_lighter_one(problem):
    statistics, model, x = problem
    losses = [
        itf_loss(anchored_solution(statistics, model, x, forcing=5, beta=b, ridge=1e-2, steps=200), x, 5)
        for b in (0.0, 10.0, 1000.0)
    ]
    assert losses[0] > losses[1] > losses[2]
    assert losses[2] < itf_loss(model.drift, x, 5)


def test_its_end_is_a_minimum_of_the_joint_objective(problem):
    statistics, model, x = problem
    beta, ridge = 20.0, 1e-2
    found = anchored_solution(statistics, model, x, forcing=5, beta=beta, ridge=ridge, steps=500)
    gram, cross = row_moments(statistics)
    theta, q = found.rows, model.process_variances[:, None]
    _, gradient = itf_gradient(found, x, 5)
    forcing = beta * np.column_stack([gradient.A, gradient.W, gradient.h])
    evidence = (np.einsum("ijk,ik->ij", gram, theta) + ridge * theta - cross) / q
    # the two pulls cancel up to the jumps of the forcing gradient: a rectifier's minimum lies on kinks,
    # where the slope has no value but a range (here 300 steps make each kink count)
    assert np.abs(evidence + forcing).max() < 0.2 * np.abs(forcing).max()
    # and no nearby drift is better
    rng = np.random.default_rng(3)
    here = _objective(statistics, model, x, beta, ridge, found)
    for size in np.repeat([1e-1, 1e-2, 1e-3], 20):
        near = found.with_rows(theta + size * rng.standard_normal(theta.shape))
        assert _objective(statistics, model, x, beta, ridge, near) > here


@pytest.mark.parametrize("steps", [1, 5])
def test_even_a_few_steps_never_raise_the_joint_objective(problem, steps):
    statistics, model, x = problem
    found = anchored_solution(statistics, model, x, forcing=5, beta=50.0, ridge=1e-2, steps=steps)
    before, after = (_objective(statistics, model, x, 50.0, 1e-2, d) for d in (model.drift, found))
    assert after < before


def test_it_works_without_any_ridge(problem):
    statistics, model, x = problem
    found = anchored_solution(statistics, model, x, forcing=5, beta=5.0, ridge=0.0)
    before, after = (_objective(statistics, model, x, 5.0, 0.0, d) for d in (model.drift, found))
    assert after < before


def test_correlated_process_noise_couples_the_rows_of_the_joint_objective(problem):
    statistics, model, x = problem
    rng = np.random.default_rng(5)
    root = rng.standard_normal((4, 4))
    Q = 0.02 * (root @ root.T + 0.5 * np.eye(4))
    coupled = PALRNN(model.drift, Q, 0.2, 0.5)
    # without an anchor it is the plain M-step under Q, which the rows by themselves are not
    plain = drift_solution(statistics, coupled, ridge=1e-2)
    found = anchored_solution(statistics, coupled, x, forcing=5, beta=0.0, ridge=1e-2, steps=2000)
    apart = drift_solution(statistics, model, ridge=1e-2)
    assert np.abs(apart.rows - plain.rows).max() > 1e-2
    np.testing.assert_allclose(found.rows, plain.rows, atol=1e-3)

    def objective(drift):
        """J from the covariance of all errors, with the features of all units side by side."""
        theta = np.hstack([np.diag(drift.A), drift.W, drift.h[:, None]])
        crossed = theta @ statistics.cross.T
        errors = statistics.outer - crossed - crossed.T + theta @ statistics.gram @ theta.T
        precision = np.linalg.inv(Q)
        expected = 0.5 * np.trace(precision @ errors) / statistics.transitions
        ridge = 0.5 * 1e-2 * np.mean(np.diag(precision)) * np.sum(drift.rows**2)
        return expected + ridge + 20.0 * itf_loss(drift, x, 5)

    found = anchored_solution(statistics, coupled, x, forcing=5, beta=20.0, ridge=1e-2, steps=2000)
    here = objective(found)
    assert here < objective(plain)
    for size in np.repeat([1e-1, 1e-2, 1e-3], 20):
        assert objective(found.with_rows(found.rows + size * rng.standard_normal((4, 6)))) > here
