"""The M-step against direct regressions on the samples themselves, and against exact EM on linear models."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.linear_em import em_update, kalman, smoothed_moments

from palrnn.model import ALRNN, PALRNN, Noise
from palrnn.tuning.mstep import (
    blended,
    drift_solution,
    gate_solution,
    noise_solution,
    process_residuals,
)
from palrnn.tuning.rows import RowStatistics
from palrnn.tuning.statistics import GATE_STDS, sufficient_statistics


def _around(drift):
    return PALRNN(drift, 0.4, 0.3, 0.5)


def _model(rng, dim=5, seen=2, gated=2):
    return ALRNN(
        0.3 + 0.2 * rng.random(dim),
        0.15 * rng.standard_normal((dim, dim)),
        0.2 * rng.standard_normal(dim),
        rng.standard_normal((dim, seen)),
        gated,
    )


def _samples(rng, drift, paths=3, per_path=2, steps=40):
    states = rng.standard_normal((paths, per_path, steps, drift.latent_dim))
    codes = rng.random((paths, steps - 1, drift.gated)) < 0.5
    return codes, states, rng.standard_normal((steps, drift.observed_dim))


def _direct(drift, codes, states, i):
    """The regression of unit i, laid out sample by sample."""
    design, target = [], []
    free = drift.latent_dim - drift.gated
    for s in range(states.shape[0]):
        for k in range(states.shape[1]):
            for t in range(states.shape[2] - 1):
                z = states[s, k, t]
                opened = np.concatenate([np.ones(free), codes[s, t]])
                design.append(np.concatenate([[z[i]], opened * z, [1.0]]))
                target.append(states[s, k, t + 1, i])
    return np.array(design), np.array(target)


@pytest.mark.parametrize("gated", [0, 2, 5])
def test_each_row_is_the_ridge_regression_of_its_own_samples(gated):
    rng = np.random.default_rng(1)
    drift = _model(rng, gated=gated)
    codes, states, x = _samples(rng, drift)
    statistics = sufficient_statistics(_around(drift), x, codes, states)
    ridge = 0.03
    solution = drift_solution(statistics, _around(drift), ridge=ridge).rows
    pulled = drift_solution(statistics, _around(drift), ridge=ridge, towards=drift.theta).rows
    for i in range(drift.latent_dim):
        F, y = _direct(drift, codes, states, i)
        # augmented least squares: n copies of the ridge, because the statistics are means over n transitions
        heavy = np.vstack([F, np.sqrt(ridge * len(y)) * np.eye(F.shape[1])])
        zero = np.concatenate([y, np.zeros(F.shape[1])])
        there = np.concatenate([y, np.sqrt(ridge * len(y)) * drift.rows[i]])
        # normal equations lose half the digits of a condition number of about 1e2
        np.testing.assert_allclose(solution[i], np.linalg.lstsq(heavy, zero)[0], rtol=0, atol=1e-11)
        np.testing.assert_allclose(pulled[i], np.linalg.lstsq(heavy, there)[0], rtol=0, atol=1e-11)


def test_the_collinear_pair_of_an_ungated_unit_is_shared_and_predicts_like_least_squares():
    rng = np.random.default_rng(2)
    drift = _model(rng, gated=2)
    codes, states, x = _samples(rng, drift)
    statistics = sufficient_statistics(_around(drift), x, codes, states)
    for ridge in (0.0, 1e-3):
        solution = drift_solution(statistics, _around(drift), ridge=ridge)
        np.testing.assert_allclose(solution.A[:3], np.diag(solution.W)[:3], atol=1e-10)
    free = drift_solution(statistics, _around(drift), ridge=0.0).rows
    for i in range(drift.latent_dim):
        F, y = _direct(drift, codes, states, i)
        np.testing.assert_allclose(F @ free[i], F @ np.linalg.lstsq(F, y, rcond=None)[0], atol=1e-10)


def test_noise_is_the_root_mean_squared_residual_of_the_samples():
    rng = np.random.default_rng(3)
    drift = _model(rng)
    codes, states, x = _samples(rng, drift)
    x[5, 0] = np.nan
    statistics = sufficient_statistics(_around(drift), x, codes, states)
    residuals = np.array(
        [
            np.mean((y - F @ drift.rows[i]) ** 2)
            for i in range(5)
            for F, y in [_direct(drift, codes, states, i)]
        ]
    )
    np.testing.assert_allclose(process_residuals(statistics, drift), residuals, rtol=1e-12)
    misfit = (x[1:] - states[..., 1:, :2]) ** 2
    process, observation = noise_solution(statistics, drift, kind="diagonal", tied_start=False, floor=1e-4)
    np.testing.assert_allclose(process.std, np.sqrt(residuals), rtol=1e-12)
    np.testing.assert_allclose(observation.std, np.sqrt(np.nanmean(misfit, axis=(0, 1, 2))), rtol=1e-12)
    process, observation = noise_solution(statistics, drift, kind="isotropic", tied_start=False, floor=1e-4)
    assert process.std == pytest.approx(np.sqrt(residuals.mean()), rel=1e-12)
    assert observation.std == pytest.approx(np.sqrt(np.nanmean(misfit)), rel=1e-12)
    # a start law that follows the process noise adds one draw of that noise per sample
    start = (states[:, :, 0] - drift.embed(x[0])) ** 2
    tied, _ = noise_solution(statistics, drift, kind="isotropic", tied_start=True, floor=1e-4)
    assert tied.std == pytest.approx(np.sqrt((39 * residuals.mean() + start.mean()) / 40), rel=1e-12)


def test_full_noise_of_rows_that_all_have_gaps_is_that_of_each_coordinate():
    rng = np.random.default_rng(3)
    drift = _model(rng)
    codes, states, x = _samples(rng, drift)
    x[1::2, 0] = x[2::2, 1] = np.nan  # two rates that never meet after the first row
    statistics = sufficient_statistics(_around(drift), x, codes, states)
    misfit = (x[1:] - states[..., 1:, :2]) ** 2
    _, observation = noise_solution(statistics, drift, kind="full", tied_start=False, floor=1e-4)
    expected = np.diag(np.nanmean(misfit, axis=(0, 1, 2)))
    np.testing.assert_allclose(observation.covariance(2), expected, rtol=1e-12, atol=1e-12)


def test_deviations_stop_at_the_floor():
    rng = np.random.default_rng(4)
    drift = _model(rng)
    codes = rng.random((1, 30, 2)) < 0.5
    states = np.empty((1, 1, 31, 5))
    states[0, 0, 0] = 1.0
    for t in range(30):
        opened = np.concatenate([np.ones(3), codes[0, t]])
        states[0, 0, t + 1] = drift.A * states[0, 0, t] + drift.W @ (opened * states[0, 0, t]) + drift.h
    statistics = sufficient_statistics(_around(drift), states[0, 0, :, :2], codes, states)
    floor = Noise.isotropic(1e-4)
    found = noise_solution(statistics, drift, kind="isotropic", tied_start=False, floor=1e-4)
    assert found == (floor, floor)
    process, observation = noise_solution(statistics, drift, kind="full", tied_start=False, floor=1e-4)
    # eigenvalues of a matrix of rounding errors of about 1e-15
    np.testing.assert_allclose(np.linalg.eigvalsh(process.covariance(5)), 1e-8, atol=1e-13)
    np.testing.assert_allclose(observation.covariance(2), 1e-8 * np.eye(2), atol=1e-13)


@pytest.mark.parametrize("gate_std", [0.1, 0.7])
def test_the_gate_deviation_is_recovered_from_known_states_and_codes(gate_std):
    rng = np.random.default_rng(5)
    drift = _model(rng, gated=3)
    sample = PALRNN(drift, 0.5, 0.1, gate_std).sample(np.zeros(2), 20_001, seed=1)
    statistics = sufficient_statistics(
        _around(drift),
        sample.observations,
        sample.codes[None],
        np.asarray(sample.states)[None, None],
        gate_likelihood=True,
    )
    # 60,000 gates: about 1.5 % standard error at 0.1, where only one gate in seven is in doubt
    assert gate_solution(statistics) == pytest.approx(gate_std, rel=0.05)
    # and the spline finds the true maximum of the likelihood, not only the nearest grid point
    from scipy.optimize import minimize_scalar
    from scipy.special import log_ndtr

    z = np.asarray(sample.states)[:-1, 2:]
    signed = np.where(sample.codes, z, -z)
    best = minimize_scalar(lambda u: -log_ndtr(signed / np.exp(u)).sum(), bounds=(-4, 2), method="bounded")
    assert gate_solution(statistics) == pytest.approx(np.exp(best.x), rel=1e-3)
    assert np.abs(GATE_STDS / np.exp(best.x) - 1).min() > 5e-3


def test_statistics_of_windows_add_up():
    rng = np.random.default_rng(6)
    drift = _model(rng)
    codes, states, x = _samples(rng, drift, paths=4)
    whole = sufficient_statistics(_around(drift), x, codes, states, gate_likelihood=True)
    parts = [
        sufficient_statistics(_around(drift), x, codes[s], states[s], gate_likelihood=True)
        for s in (slice(0, 1), slice(1, 4))
    ]
    for name, value in (parts[0] + parts[1]).arrays().items():
        np.testing.assert_allclose(value, getattr(whole, name), rtol=1e-12, atol=1e-12)
    half = parts[0].averaged(parts[1], 0.25)
    np.testing.assert_allclose(half.gram, 0.75 * parts[0].gram + 0.25 * parts[1].gram, rtol=1e-12)


def _exact_statistics(drift, windows, model):
    """Sufficient statistics from exact smoothing moments of a linear model (P = 0)."""
    F, h = np.diag(drift.A) + drift.W, drift.h
    dim, seen = drift.latent_dim, drift.observed_dim
    total = None
    for x in windows:
        m, P, lag = smoothed_moments(
            x,
            F,
            h,
            model.process.std**2,
            model.observation.std**2,
            drift.embed(x[0]),
            np.diag(model.initial_variances),
        )
        steps = len(x) - 1
        twice = np.hstack([m[:-1], m[:-1], np.ones((steps, 1))])
        gram, cross = twice.T @ twice, m[1:].T @ twice
        gram[: 2 * dim, : 2 * dim] += np.tile(P[:-1].sum(axis=0), (2, 2))
        cross[:, : 2 * dim] += np.tile(lag.sum(axis=0), (1, 2))
        error, first = x[1:] - m[1:, :seen], m[0] - drift.embed(x[0])
        outer = m[1:].T @ m[1:] + P[1:].sum(axis=0)
        misfit = error.T @ error + P[1:, :seen, :seen].sum(axis=0)
        begun = np.outer(first, first) + P[0]
        part = RowStatistics(
            residual=np.diagonal(misfit),
            observed=np.full(seen, float(steps)),
            misfit=misfit,
            whole=float(steps),
            start=np.diagonal(begun),
            spread=begun,
            gates=np.zeros(GATE_STDS.size),
            transitions=float(steps),
            starts=1.0,
            gram=gram,
            cross=cross,
            square=np.diagonal(outer),
            outer=outer,
        )
        total = part if total is None else total + part
    return total


def _linear_problem():
    rng = np.random.default_rng(7)
    drift = ALRNN(
        np.full(4, 0.5), 0.1 * rng.standard_normal((4, 4)), 0.1 * rng.standard_normal(4), np.zeros((4, 2)), 0
    )
    truth = PALRNN(drift, 0.3, 0.2, 0.0)
    windows = [truth.sample(rng.standard_normal(2), 60, seed=s).observations for s in range(4)]
    begin = ALRNN(drift.A, 0.5 * drift.W, np.zeros(4), drift.E, 0)
    return windows, begin


def test_the_update_of_a_linear_model_is_the_exact_em_update():
    windows, drift = _linear_problem()
    model = PALRNN(drift, 0.6, 0.5, 0.0, initial=0.4)
    statistics = _exact_statistics(drift, windows, model)
    after = drift_solution(statistics, _around(drift), ridge=0.0)
    process, observation = noise_solution(statistics, after, kind="isotropic", tied_start=False, floor=1e-4)
    F, h, q, r = em_update(
        windows, np.diag(drift.A) + drift.W, drift.h, 0.36, 0.25, drift.embed, 0.16 * np.eye(4)
    )
    np.testing.assert_allclose(np.diag(after.A) + after.W, F, atol=1e-9)
    np.testing.assert_allclose(after.h, h, atol=1e-9)
    assert process.std**2 == pytest.approx(q, rel=1e-9)
    assert observation.std**2 == pytest.approx(r, rel=1e-9)


@pytest.mark.parametrize("initial_std", [None, 0.4])
@pytest.mark.parametrize("learns_drift", [False, True])
def test_em_on_a_linear_model_never_lowers_the_exact_likelihood(initial_std, learns_drift):
    windows, drift = _linear_problem()
    model = PALRNN(drift, 0.6, 0.5, 0.0, initial_std)
    trace = []
    for _ in range(25):
        drift = model.drift
        F = np.diag(drift.A) + drift.W
        noise = model.process.std**2, model.observation.std**2
        P1 = np.diag(model.initial_variances)
        trace.append(sum(kalman(x, F, drift.h, *noise, drift.embed(x[0]), P1)[0] for x in windows))
        statistics = _exact_statistics(drift, windows, model)
        after = drift_solution(statistics, _around(drift), ridge=0.0) if learns_drift else drift
        deviations = noise_solution(
            statistics, after, kind="isotropic", tied_start=initial_std is None, floor=1e-4
        )
        model = blended(model, PALRNN(after, *deviations, 0.0, initial_std), 1.0)
    # the likelihood is a sum of 240 terms of order one: rounding stays below 1e-9
    assert np.diff(trace).min() > -1e-9
    assert trace[-1] > trace[0] + 10.0


def test_the_kalman_oracle_agrees_with_statsmodels():
    from statsmodels.tsa.statespace.mlemodel import MLEModel

    windows, drift = _linear_problem()
    x, F = windows[0], np.diag(drift.A) + drift.W
    ssm = MLEModel(x[1:], k_states=4)
    ssm["design"], ssm["obs_cov"] = np.eye(2, 4), 0.25 * np.eye(2)
    ssm["transition"], ssm["state_intercept"] = F, drift.h
    ssm["selection"], ssm["state_cov"] = np.eye(4), 0.36 * np.eye(4)
    ssm.ssm.initialize_known(F @ drift.embed(x[0]) + drift.h, F @ (0.16 * np.eye(4)) @ F.T + 0.36 * np.eye(4))
    mine = kalman(x, F, drift.h, 0.36, 0.25, drift.embed(x[0]), 0.16 * np.eye(4))[0]
    assert ssm.ssm.loglike() == pytest.approx(mine, rel=1e-10)


def test_blending_moves_deviations_and_drift_by_the_blend_factor():
    rng = np.random.default_rng(8)
    first, second = (PALRNN(_model(rng), p, o, g) for p, o, g in ((0.4, 0.2, 0.7), (0.2, 0.6, 0.3)))
    mixed = blended(first, second, 0.25)
    np.testing.assert_allclose(
        mixed.drift.theta, 0.75 * first.drift.theta + 0.25 * second.drift.theta, rtol=1e-12
    )
    assert (mixed.process.std, mixed.observation.std) == (pytest.approx(0.35), pytest.approx(0.3))
    assert mixed.gate_std == pytest.approx(0.6)
    assert mixed.initial is None
    assert blended(first, first, 0.25).drift is first.drift
