"""The likelihood of noisy observations: its value, its bars on a linear system, and that they hold."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import multivariate_normal, norm

from palrnn.coverage.truths import identified, truth
from palrnn.geometry import gibbs_posterior, likelihood_posterior
from palrnn.geometry.kernels.gaussian_filter import innovations
from palrnn.geometry.likelihood import _Problem, with_fitted_noise
from palrnn.inference import rbpf
from palrnn.model import ALRNN, PALRNN

TRUTH = np.array([[0.8, 0.25], [-0.3, 0.6]])
ALL = np.s_[:4]


def series(seed, steps, observation, process=0.3):
    rng = np.random.default_rng(seed)
    z = np.zeros((steps + 100, 2))
    for t in range(1, len(z)):
        z[t] = TRUTH @ z[t - 1] + process * rng.standard_normal(2)
    return z[100:] + observation * rng.standard_normal((steps, 2))


def fitted(x):
    regressors = np.column_stack([x[:-1], np.ones(len(x) - 1)])
    found = np.linalg.lstsq(regressors, x[1:], rcond=None)[0].T
    return ALRNN(np.zeros(2), found[:, :2], found[:, 2], np.eye(2), 0)


def log_likelihood(model, x, deviations):
    problem = _Problem([x], model, 0.0, True)
    return problem.value(np.concatenate([model.theta, np.repeat(np.log(deviations), 2)]))


def test_the_value_is_the_joint_gaussian_of_a_linear_model():
    x, process, observation = series(0, 9, 0.2), 0.3, 0.25
    model = ALRNN([0.1, 0.0], [[0.7, 0.25], [-0.3, 0.6]], [0.1, -0.2], np.eye(2), 0)
    J = model.W + np.diag(model.A)
    steps = len(x) - 1
    # states after the first, as a linear function of the first state, noises and the shift
    mean, spread = x[0], observation**2 * np.eye(2)
    powers = [np.eye(2)]
    means, covariance = [], np.zeros((2 * steps, 2 * steps))
    for _ in range(steps):
        mean = J @ mean + model.h
        means.append(mean)
        powers.append(J @ powers[-1])
    for a in range(1, steps + 1):
        for b in range(1, steps + 1):
            block = powers[a] @ spread @ powers[b].T
            for k in range(1, min(a, b) + 1):
                block = block + process**2 * powers[a - k] @ powers[b - k].T
            covariance[2 * a - 2 : 2 * a, 2 * b - 2 : 2 * b] = block
    covariance += observation**2 * np.eye(2 * steps)
    expected = multivariate_normal(np.concatenate(means), covariance).logpdf(x[1:].ravel())
    found = log_likelihood(model, x, [process, observation])
    assert found == pytest.approx(expected, rel=1e-10)
    # what is not observed is integrated out: its rows and columns are left out of the joint law
    gaps = x.copy()
    gaps[3, 1] = gaps[5] = np.nan
    seen = ~np.isnan(gaps[1:].ravel())
    rest = multivariate_normal(np.concatenate(means)[seen], covariance[np.ix_(seen, seen)])
    found = log_likelihood(model, gaps, [process, observation])
    assert found == pytest.approx(rest.logpdf(gaps[1:].ravel()[seen]), rel=1e-10)
    # and so it is reported
    known = PALRNN(model, process, observation, 0.0)
    reported = likelihood_posterior(known, gaps, learn_noise=False, iterations=0, calibration="none")
    assert reported.log_likelihood == pytest.approx(found, rel=1e-10)


@pytest.mark.parametrize("gate_std", [0.0, 0.4])
def test_one_step_through_a_gate_has_the_exact_moments(gate_std):
    A, W, h, mean, variance = 0.4, 1.3, -0.2, 0.25, 0.6**2
    error, spread = np.empty((1, 1)), np.empty((1, 1))
    x = np.array([[mean], [0.7]])
    arguments = (np.array([A, W, h]), 1, 1, np.array([0.1, 0.6]), gate_std)
    innovations(*arguments, np.array([mean]), x, error, spread)

    def moment(power):
        def inside(z):
            chance = norm.cdf(z / gate_std) if gate_std else float(z > 0)
            shut, open_ = (A * z + h) ** power, ((A + W) * z + h) ** power
            return norm.pdf(z, mean, np.sqrt(variance)) * (chance * open_ + (1 - chance) * shut)

        return quad(inside, -6, 6, points=[0.0], epsabs=1e-12)[0]

    expected = moment(1)
    assert 0.7 - error[0, 0] == pytest.approx(expected, abs=1e-9)
    assert spread[0, 0] == pytest.approx(moment(2) - expected**2 + 0.1**2 + 0.6**2, abs=1e-9)


def test_the_gradient_and_the_scores_are_those_of_the_value():
    known = truth("alrnn")
    x = known.series(0.1, 0.1, 300, 1)
    problem = _Problem([x[:150], x[150:]], known.drift, 0.0, True)
    deviations = [0.12, 0.1, 0.11, 0.09, 0.08, 0.1]
    point = np.concatenate([1.02 * known.drift.theta, np.log(deviations)])
    here = problem.at(point, np.zeros(6, dtype=bool))
    steps = 1e-5 * np.eye(len(point))
    expected = [(problem.value(point + step) - problem.value(point - step)) / 2e-5 for step in steps]
    # central differences of 1e-4 and 1e-5 in turn
    np.testing.assert_allclose(here.gradient, expected, rtol=1e-3, atol=1e-2)
    assert np.linalg.eigvalsh(here.information)[0] > -1e-6 * np.trace(here.information)


def test_without_observation_noise_it_is_the_posterior_of_a_regression():
    x = series(3, 500, 0.0)
    model = fitted(x)
    known = PALRNN(model, 0.3, 1e-3, 0.0)
    found = likelihood_posterior(known, x, calibration="none", learn_noise=False)
    regressors = np.column_stack([x[:-1], np.ones(len(x) - 1)])
    deviations = 0.3 * np.sqrt(np.diag(np.linalg.inv(regressors.T @ regressors)))
    draws = found.sample_theta(40_000)
    linear = draws[:, 2:6].reshape(-1, 2, 2) + draws[:, :2, None] * np.eye(2)
    # 40,000 draws know a deviation to 0.4 %, five of those; the smallest noise of observation adds 1e-5
    np.testing.assert_allclose(linear.std(axis=0), np.stack([deviations[:2]] * 2), rtol=0.02)
    np.testing.assert_allclose(found.std[6:], deviations[2], rtol=1e-3)
    np.testing.assert_allclose(linear.mean(axis=0), model.W + np.diag(model.A), atol=5 * 0.03 / 200)
    assert found.unidentified == 2  # A and the diagonal of W do the same
    assert found.left < 0.1


def errors_and_draws(sets, method, **settings):
    """For each series, how far the truth and 300 draws are from the middle of the posterior."""
    found = []
    for seed in range(sets):
        x = series(seed, 600, 0.25)
        posterior = method(fitted(x), x, **settings)
        middle = identified(posterior.model)[ALL]
        draws = np.array([identified(model)[ALL] for model in posterior.sample(300, seed=seed)]) - middle
        found.append((TRUTH.ravel() - middle, draws))
    return found


def covered(found, factor=1.0):
    """The share of 90 and 50 % intervals, made longer by ``factor``, with the truth inside."""
    inside = []
    for error, draws in found:
        ends = factor * np.quantile(draws, [0.05, 0.25, 0.75, 0.95], axis=0)
        inside.append([np.mean((ends[k] < error) & (error < ends[3 - k])) for k in (0, 1)])
    return np.mean(inside, axis=0)


# four entries of a series depend on each other; taken as two, 120 have a binomial error of 0.027 and 0.046:
# two and a half of them
def holds(shares):
    return abs(shares[0] - 0.9) < 0.068 and abs(shares[1] - 0.5) < 0.115


def test_intervals_cover_the_true_parameters_of_noisy_observations_and_the_check_can_fail():
    found = errors_and_draws(60, likelihood_posterior)
    assert holds(covered(found))
    assert not holds(covered(found, 0.7))
    assert not holds(covered(found, 1.5))


def test_few_blocks_cost_one_degree_of_freedom_and_not_one_for_each_direction():
    drift = ALRNN(np.zeros(2), TRUTH, np.zeros(2), np.eye(2), 0)
    estimates, variances = [], []
    for seed in range(100):
        x = series(seed, 601, 0.0)
        known = PALRNN(drift, 0.3, 1e-3, 0.0)
        found = likelihood_posterior(known, x, learn_noise=False, block=66)
        assert found.freedom == 8
        # the two off the diagonal of W, and h: six directions in all are identified
        estimates.append(found.model.theta[[3, 4, 6, 7]])
        variances.append((found.factor[[3, 4, 6, 7]] ** 2).sum(axis=1))
    ratio = np.mean(variances, axis=0) / np.var(estimates, axis=0)
    # a variance over 100 series is known to 14 %, the mean of four to 7 %; with nine blocks for six
    # directions B / (B - k) would be 2.7 times as much
    assert ratio.mean() == pytest.approx(1.0, abs=0.2)


def test_no_spread_around_teacher_forcing_covers_them():
    assert covered(errors_and_draws(20, gibbs_posterior, forcing=1, prior_std=10.0))[0] < 0.3


@pytest.mark.slow
def test_intervals_cover_the_parameters_of_a_switching_model():
    known, inside = truth("alrnn"), []
    start = known.drift.with_theta(known.drift.theta * 0.9)
    for seed in range(30):
        x = known.series(0.1, 0.3, 2000, seed)
        posterior = likelihood_posterior(start, x)
        draws = np.array([identified(model) for model in posterior.sample(200, seed=seed)])
        low, high = np.quantile(draws, [0.05, 0.95], axis=0)
        inside.append(np.mean((low < known.values) & (known.values < high)))
    # 13 entries of 30 series, of which about four at a time are independent: 0.027, and two and a half
    assert np.mean(inside) == pytest.approx(0.9, abs=0.07)


def test_noise_alone_is_found_around_a_given_drift():
    x = series(5, 4000, 0.2)
    model = ALRNN(np.zeros(2), TRUTH, np.zeros(2), np.eye(2), 0)
    found = with_fitted_noise(model, x)
    assert found.process.typical_std == pytest.approx(0.3, rel=0.1)
    assert found.observation.typical_std == pytest.approx(0.2, rel=0.15)
    np.testing.assert_array_equal(found.drift.theta, model.theta)


def multirate(x):
    """Every third row whole, of the others only the first coordinate."""
    gaps = x.copy()
    gaps[np.arange(len(x)) % 3 > 0, 1] = np.nan
    return gaps


def test_noise_is_found_from_a_model_without_any_where_the_data_have_gaps():
    x = multirate(series(5, 4000, 0.2))
    model = ALRNN(np.zeros(2), TRUTH, np.zeros(2), np.eye(2), 0)
    found = with_fitted_noise(model, x)
    # a third of the rows, in one coordinate, are missing: a little less is known than without gaps
    assert found.process.typical_std == pytest.approx(0.3, rel=0.1)
    assert found.observation.typical_std == pytest.approx(0.2, rel=0.2)
    posterior = likelihood_posterior(model, x)
    errors = TRUTH.ravel() - identified(posterior.model)[ALL]
    spread = np.std([identified(one)[ALL] for one in posterior.sample(300)], axis=0)
    assert np.abs(errors / spread).max() < 4.0
    with pytest.raises(ValueError, match="x must start at a row without a gap"):
        with_fitted_noise(model, x[1:])


def test_errors_to_start_from_are_those_after_whole_rows():
    x = multirate(series(5, 300, 0.2))
    model = ALRNN([0.1, 0.0], TRUTH, [0.0, 0.1], np.eye(2), 0)
    stds = np.exp(_Problem([x], model, 0.0, True).start(model)[model.theta.size :])
    J = TRUTH + np.diag([0.1, 0.0])
    errors = [x[t + 1, 0] - (J @ x[t])[0] for t in range(0, 299, 3)]
    first = 0.6 * np.sqrt(np.mean(np.square(errors)))
    # the second coordinate is never seen right after a whole row: its own deviation
    np.testing.assert_allclose(stds, [first, 0.6 * np.nanstd(x[:, 1])] * 2, rtol=1e-12)


def test_the_model_found_starts_as_its_likelihood_does():
    drift = ALRNN(np.zeros(3), np.diag([0.6, 0.5, 0.4]), np.zeros(3), np.eye(3, 2), 0)
    given = PALRNN(drift, [0.3, 0.2, 0.1], [0.25, 0.15], 0.0, 0.7)
    x = given.sample(np.zeros(2), 40, seed=1).observations
    found = likelihood_posterior(given, x, learn_noise=False, iterations=0, calibration="none")
    np.testing.assert_allclose(found.palrnn.initial.std, [0.25, 0.15, 0.1], rtol=1e-12)
    # a linear model: one particle of the filter has the exact evidence, by other code
    assert found.log_likelihood == pytest.approx(rbpf(found.palrnn, x, particles=1).log_evidence, rel=1e-9)
    fitted_noise = with_fitted_noise(drift, x)
    assert fitted_noise.initial.std[0] == fitted_noise.observation.std[0]
    assert fitted_noise.initial.std[2] == fitted_noise.process.std[2]


def test_a_deviation_at_its_floor_comes_back_where_the_likelihood_rises():
    x = series(7, 2000, 0.2)
    drift = ALRNN(np.zeros(2), TRUTH, np.zeros(2), np.eye(2), 0)
    low = likelihood_posterior(PALRNN(drift, 0.4, 1e-6, 0.0), x)
    high = likelihood_posterior(PALRNN(drift, 0.2, 0.4, 0.0), x)
    # the same maximum from below and from above: steps end at a hundredth of a deviation
    assert low.log_likelihood == pytest.approx(high.log_likelihood, abs=0.01)
    np.testing.assert_allclose(low.palrnn.observation.std, high.palrnn.observation.std, rtol=0.02)
    assert low.left < 0.1
    # without any noise of observation it stays at the floor, and is no direction of its own
    clean = series(8, 2000, 0.0)
    held = likelihood_posterior(PALRNN(drift, 0.3, 1e-6, 0.0), clean)
    deviations = held.palrnn.observation.std
    assert deviations.max() < 0.1
    assert held.unidentified == 2 + (deviations > 2.001e-3 * clean.std()).sum()


def test_given_deviations_stay_however_small():
    x = series(3, 300, 0.0)
    known = PALRNN(fitted(x), 0.3, 1e-7, 0.0)
    found = likelihood_posterior(known, x, learn_noise=False).palrnn
    np.testing.assert_allclose(found.observation.std, 1e-7, rtol=1e-12)
    np.testing.assert_allclose(found.process.std, 0.3, rtol=1e-12)


def test_the_same_again_and_what_it_says():
    x = series(1, 1000, 0.2)
    found = likelihood_posterior(fitted(x), x)
    np.testing.assert_array_equal(found.sample_theta(3), found.sample_theta(3))
    assert [model.theta.shape for model in found.sample(2)] == [(8,), (8,)]
    assert "2 directions not identified" in repr(found)
    early = likelihood_posterior(fitted(x), x, iterations=0)
    np.testing.assert_array_equal(early.model.theta, fitted(x).theta)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"calibration": "hot"}, "calibration must be one of"),
        ({"block": 40}, "block must fit into x at least five times"),
        ({"least": 0.0}, "least must be"),
        ({"iterations": -1}, "iterations must be"),
        ({"learn_noise": False}, "learn_noise must be True"),
        ({"x": np.full((20, 2), np.nan)}, "x must start at a row without a gap"),
        ({"x": np.zeros((20, 3))}, "x must"),
        ({"model": 3}, "model must be an ALRNN"),
    ],
)
def test_errors_name_the_argument(change, message):
    x = series(1, 200, 0.2)
    with pytest.raises(ValueError, match=message):
        likelihood_posterior(**({"model": fitted(x), "x": x} | change))
