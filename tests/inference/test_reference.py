"""The plain filter is the fast one, draw by draw; and it is right where the fast one does not go."""

import numpy as np
import pytest
from oracles.dense_paths import States, enumerated, smoothed_states
from oracles.shallow_family import covariance, shallow_model
from oracles.small_models import drawn_series, gated_model
from statsmodels.tsa.statespace.kalman_smoother import KalmanSmoother

from palrnn import (
    PALRNN,
    FilterDiedError,
    Noise,
    ObservationMap,
    path_posterior,
    rbpf,
    smooth,
    windowed_evidence,
)
from palrnn.inference.config import SampleConfig
from palrnn.inference.smoothing import drawn_paths

TARGETS = ("paper", "exact")
# gated, observed, latent
SIZES = [(0, 1, 1), (1, 1, 1), (2, 2, 2), (3, 2, 6), (0, 2, 11), (10, 3, 30), (5, 4, 7)]
SIZES += [pytest.param((66, 2, 71), marks=pytest.mark.slow)]


def twins(gated, observed, latent, gate_std=0.5):
    """One AL-RNN twice: with diagonal noise, and with covariance matrices that happen to be diagonal."""
    rng = np.random.default_rng(latent)
    drift = gated_model(gated, observed=observed, latent=latent, seed=latent).drift
    stds = rng.uniform(0.1, 1, latent), rng.uniform(0.1, 1, observed), rng.uniform(0.1, 1, latent)
    process, observation, initial = (Noise.full(np.diag(std**2)) for std in stds)
    fast = PALRNN(drift, stds[0], stds[1], gate_std, stds[2])
    plain = PALRNN(drift, process, observation, gate_std, initial)
    assert fast.is_standard
    assert not plain.is_standard
    return fast, plain


def steps_of(size):
    """Fewer steps of the largest, which the plain filter conditions on one gate after the other."""
    return 10 if size[2] >= 30 else 30


def with_gaps(x):
    x = x.copy()
    x[5:8] = np.nan
    x[12:20, 0] = np.nan
    return x


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("gate_std", [0.5, 0.0])
@pytest.mark.parametrize("size", SIZES)
def test_the_fast_filter_is_the_plain_one_draw_by_draw(size, gate_std, target):
    fast, plain = twins(*size, gate_std)
    x = with_gaps(drawn_series(fast, steps_of(size)))
    resampling = ("multinomial", "systematic", "stratified", "residual")[size[2] % 4]
    settings = {"particles": 37, "target": target, "resampling": resampling, "ess_threshold": 0.7, "seed": 3}
    one, other = (rbpf(model, x, **settings) for model in (fast, plain))
    for name in ("code_words", "ancestors", "resampled", "survivors"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    # thirty steps of rounding
    for name in (
        "increments",
        "ess",
        "code_entropy",
        "bit_entropy",
        "gate_probability",
        "mean",
        "log_weights",
    ):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=1e-10, err_msg=name)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("gate_std", [0.5, 0.0])
@pytest.mark.parametrize("size", SIZES)
def test_the_fast_smoother_draws_the_states_of_the_plain_one(size, gate_std, target):
    fast, plain = twins(*size, gate_std)
    x = with_gaps(drawn_series(fast, steps_of(size)))
    for method in ("ancestors", None):
        one, other = (
            drawn_paths(
                rbpf(m, x, particles=20, target=target),
                SampleConfig(paths=5, states_per_path=3, method=method),
            )
            for m in (fast, plain)
        )
        np.testing.assert_array_equal(one.lineages, other.lineages)
        np.testing.assert_array_equal(one.codes, other.codes)
        np.testing.assert_allclose(one.gate_inputs, other.gate_inputs, atol=1e-10)
        np.testing.assert_allclose(one.states, other.states, atol=1e-10)


@pytest.mark.parametrize("size", SIZES)
def test_the_fast_posterior_of_a_path_is_the_plain_one(size):
    fast, plain = twins(*size)
    x = with_gaps(drawn_series(fast, 30))
    codes = np.random.default_rng(0).random((29, size[0])) < 0.5
    one, other = (path_posterior(model, x, codes) for model in (fast, plain))
    for name, value in vars(one).items():
        np.testing.assert_allclose(value, getattr(other, name), atol=1e-10, err_msg=name)


def linear_model(latent=4, observed=2, seed=2):
    """No gates, full noises, an observation map with an offset."""
    rng = np.random.default_rng(seed)
    drift = gated_model(0, observed=observed, latent=latent, seed=seed).drift
    noises = (Noise.full(covariance(dim, 0.5, rng)) for dim in (latent, observed, latent))
    process, observation, initial = noises
    reads = ObservationMap(rng.standard_normal((observed, latent)), rng.standard_normal(observed))
    return PALRNN(drift, process, observation, 0.5, initial, reads)


@pytest.mark.parametrize("target", TARGETS)
def test_without_gates_the_evidence_is_that_of_a_normal_distribution(target):
    model = linear_model()
    x = with_gaps(drawn_series(model, 25))
    exact = States(model, x, np.zeros((24, 0)))
    filtered = rbpf(model, x, particles=3, target=target, ess_threshold=2.0)
    # one normal density of 42 numbers, by dense algebra; conditioning once costs a few digits
    assert filtered.log_evidence == pytest.approx(exact.log_density, abs=1e-9)
    np.testing.assert_allclose(filtered.mean[-1], exact.given(25)[0][-4:], atol=1e-9)


def test_without_gates_the_posterior_equals_statsmodels():
    model = linear_model(latent=6, observed=3)
    x = with_gaps(drawn_series(model, 80))
    ours = path_posterior(model, x, np.zeros((79, 0)))
    (J, h), M, N = model.drift.affine(np.zeros(0, dtype=bool)), 6, 3
    library = KalmanSmoother(k_endog=N, k_states=M, k_posdef=M)
    library.bind(np.ascontiguousarray(x[1:]))
    library["design"], library["obs_intercept"] = model.observation_map.B, model.observation_map.d[:, None]
    library["transition"], library["selection"] = J, np.eye(M)
    library["state_intercept"] = h[:, None]
    library["obs_cov"], library["state_cov"] = model.observation_covariance, model.process_covariance
    first = J @ model.initial_covariance @ J.T + model.process_covariance
    library.initialize_known(J @ model.drift.embed(x[0]) + h, first)
    theirs = library.smooth()
    # both run recursions in float64
    assert ours.log_likelihood == pytest.approx(theirs.llf, abs=1e-8)
    np.testing.assert_allclose(ours.mean[1:], theirs.smoothed_state.T, atol=1e-9)
    np.testing.assert_allclose(ours.cov[1:], theirs.smoothed_state_cov.transpose(2, 0, 1), atol=1e-9)
    np.testing.assert_allclose(
        ours.lag_cov[1:], theirs.smoothed_state_autocov.transpose(2, 1, 0)[:-1], atol=1e-9
    )


@pytest.fixture(scope="module", params=TARGETS)
def shallow(request):
    """A family that the package does not know, with everything full, and one gap."""
    model = shallow_model(seed=1)
    x = drawn_series(model, 4)
    x[2] = np.nan
    return model, x, request.param, enumerated(model, x, request.param)


def test_the_evidence_of_another_family_is_unbiased(shallow):
    model, x, target, paths = shallow
    runs = [rbpf(model, x, particles=16, target=target, seed=seed, ess_threshold=2.0) for seed in range(400)]
    ratios = np.exp([run.log_evidence for run in runs]) / paths.evidence
    # four standard errors of a Monte Carlo mean
    assert abs(ratios.mean() - 1) < 4 * ratios.std() / np.sqrt(len(ratios))
    assert ratios.std() / np.sqrt(len(ratios)) < 0.015


def test_gates_and_smoothed_gates_of_another_family_equal_enumeration(shallow):
    model, x, target, paths = shallow
    filtered = rbpf(model, x, particles=20_000, target=target, resampling="systematic")
    drawn = smooth(filtered, paths=10_000, seed=1, method="ancestors")
    # at most 0.5 / sqrt(10,000) and 0.5 / sqrt(effective 10,000): four of both together
    np.testing.assert_allclose(filtered.gate_probability[-1], paths.gate_marginals[-1], atol=0.028)
    np.testing.assert_allclose(drawn.codes.mean(axis=0), paths.gate_marginals, atol=0.028)


@pytest.mark.parametrize("gate_std", [0.5, 0.0])
def test_particle_gibbs_of_another_family_equals_enumeration(gate_std):
    model = shallow_model(gate_std=gate_std, seed=1)
    x = drawn_series(model, 4)
    x[2] = np.nan
    exact = enumerated(model, x, "exact").gate_marginals
    found = smooth(rbpf(model, x, particles=50, target="exact"), paths=480, sweeps=1)
    # 24 stretches of 20 paths, over which the chain forgets, count as independent; few numbers, 4 errors
    means = found.codes.reshape(24, 20, *exact.shape).mean(axis=1)
    error = means.std(axis=0, ddof=1) / np.sqrt(len(means))
    np.testing.assert_allclose((means.mean(axis=0) - exact) / np.maximum(error, 1e-3), 0.0, atol=4.0)


def test_smoothed_states_of_another_family_are_the_mixture_over_its_paths():
    model = shallow_model(seed=1)
    x = drawn_series(model, 4)
    drawn = smooth(rbpf(model, x, particles=20_000, resampling="systematic"), paths=10_000, seed=1)
    # deviations below 0.8: standard error about 0.01, four of them
    np.testing.assert_allclose(drawn.states.mean(axis=(0, 1)), smoothed_states(model, x, "paper"), atol=0.04)


def test_a_path_of_another_family_has_its_exact_posterior():
    model = shallow_model(latent=3, gated=4, observed=2, seed=3)
    x = with_gaps(drawn_series(model, 22))
    codes = np.random.default_rng(0).random((21, 4)) < 0.5
    ours, exact = path_posterior(model, x, codes), States(model, x, codes)
    mean, cov = exact.given(22)
    assert ours.log_likelihood == pytest.approx(exact.log_density, abs=1e-9)
    np.testing.assert_allclose(ours.mean.ravel(), mean, atol=1e-9)
    for t in range(22):
        now, after = slice(3 * t, 3 * t + 3), slice(3 * t + 3, 3 * t + 6)
        np.testing.assert_allclose(ours.cov[t], cov[now, now], atol=1e-9)
        if t < 21:
            np.testing.assert_allclose(ours.lag_cov[t], cov[now, after], atol=1e-9)


@pytest.mark.parametrize("gate_std", [0.4, 0.0])
def test_more_gates_than_units_are_filtered_exactly(gate_std):
    """With hard gates the third input is known from the other two: nothing to learn, and no density."""
    model = shallow_model(latent=2, gated=3, gate_std=gate_std, seed=5)
    x = drawn_series(model, 4)
    runs = [rbpf(model, x, particles=1000, target="exact", seed=seed).log_evidence for seed in range(40)]
    rng, draws = np.random.default_rng(0), 400_000
    z = model.drift.embed(x[0]) + model.start_noise.scaled(rng.standard_normal((draws, 2)))
    likelihood = np.ones(draws)
    R = model.observation_covariance
    for t in range(3):
        u = z @ model.drift.W2.T + model.drift.h2 + gate_std * rng.standard_normal((draws, 3))
        J, b = model.drift.affine(u > 0)
        z = np.einsum("nij,nj->ni", J, z) + b + model.process.scaled(rng.standard_normal((draws, 2)))
        error = x[t + 1] - model.observation_map(z)
        likelihood *= np.exp(-0.5 * error[:, 0] ** 2 / R[0, 0]) / np.sqrt(2 * np.pi * R[0, 0])
    gap = np.exp(runs).mean() - likelihood.mean()
    error = np.hypot(np.std(np.exp(runs)) / np.sqrt(40), likelihood.std() / np.sqrt(draws))
    assert abs(gap) < 4 * error
    assert error < 0.015 * likelihood.mean()


def test_hard_gates_of_another_family_have_the_signs_of_their_smoothed_inputs():
    model = shallow_model(latent=3, gated=2, gate_std=0.0, seed=4)
    drawn = smooth(rbpf(model, drawn_series(model, 20), target="exact"), paths=8, states_per_path=3)
    inputs = drawn.states[:, :, :-1] @ model.drift.W2.T + model.drift.h2
    np.testing.assert_array_equal(inputs > 0, np.broadcast_to(drawn.codes[:, None], inputs.shape))


def test_windows_of_another_family_are_filtered_alike_in_any_number_of_threads():
    model = shallow_model(seed=1)
    x = drawn_series(model, 31)
    one, two = (windowed_evidence(model, x, 10, particles=30, threads=k) for k in (1, 2))
    np.testing.assert_array_equal(one.per_window, two.per_window)
    assert len(one.per_window) == 3


def test_covariances_stay_sound_where_noises_are_of_very_different_sizes():
    _, plain = twins(3, 2, 6)
    for process, observation in ((1e-4, 10.0), (10.0, 1e-4), (1e-4, 1e-4)):
        model = PALRNN(plain.drift, Noise.full(process**2 * np.eye(6)), observation, 0.0)
        filtered = rbpf(model, drawn_series(plain, 80), particles=4, target="exact")
        assert np.isfinite(filtered.log_evidence)
        drawn = smooth(filtered, paths=2)
        assert np.isfinite(drawn.states).all()


def test_impossible_data_is_the_same_error_as_that_of_the_fast_filter():
    model, _ = twins(1, 1, 3)
    x = drawn_series(model, 12)
    # the squared distance in deviations is beyond the largest number there is
    x[7] = 1e150
    said = []
    for process in (1e-5, Noise.full(1e-10 * np.eye(3))):
        sure = PALRNN(model.drift, process, 1e-5, 0.5)
        with pytest.raises(FilterDiedError) as caught:
            rbpf(sure, x, particles=8)
        said.append(str(caught.value))
    assert said[0] == said[1]
    assert "all 8 particles died at step 7 of 11" in said[0]


def test_an_overflow_is_a_dead_particle():
    model = linear_model(latent=2, observed=1)
    drift = model.drift.with_theta(50.0 * np.ones(model.drift.theta.size))
    x = np.full((400, 1), np.nan)
    x[0] = x[-1] = 1.0
    with pytest.raises(FilterDiedError, match="died at step 399 of 399"):
        rbpf(model.with_drift(drift), x, particles=8)
