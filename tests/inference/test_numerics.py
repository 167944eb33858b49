"""Beliefs stay covariances, products stay products, and counted noise is noise."""

import numpy as np
import pytest
from oracles.bundled import covariances
from oracles.small_models import drawn_series, gated_model
from scipy import stats

from palrnn import ALRNN, PALRNN, FilterConfig, path_posterior, rbpf, smooth
from palrnn.inference.fast_filter import Plan
from palrnn.inference.filter_arrays import filter_arrays, initial_bundles, workspace
from palrnn.inference.kernels import diagnostics, filter_loop
from palrnn.inference.kernels import noise as counted
from palrnn.inference.record import Record


def noisy_network(latent, gated, process_std, observation_std, gate_std):
    rng = np.random.default_rng(0)
    W = rng.standard_normal((latent, latent)) / np.sqrt(latent)
    W *= 0.9 / np.linalg.norm(W, 2)
    E = rng.standard_normal((latent, 3))
    drift = ALRNN(rng.uniform(-0.5, 0.5, latent), W, np.zeros(latent), E, gated)
    return PALRNN(drift, process_std, observation_std, gate_std)


@pytest.mark.parametrize("target", ["paper", "exact"])
@pytest.mark.parametrize(
    ("process_std", "observation_std", "gate_std"),
    [(0.1, 0.1, 0.7), (1e-4, 10.0, 1e-4), (10.0, 1e-4, 0.0), (1e-4, 1e-4, 10.0)],
)
def test_covariances_stay_symmetric_and_positive_definite(target, process_std, observation_std, gate_std):
    model = noisy_network(30, 10, process_std, observation_std, gate_std)
    x = np.random.default_rng(1).standard_normal((5_001, 3))
    assert_sound_beliefs(model, x, target)


@pytest.mark.parametrize("target", ["paper", "exact"])
@pytest.mark.parametrize("noise", [(1e-4, 10.0, 0.7), (10.0, 1e-4, 0.0), (1e-4, 1e-4, 0.0)])
def test_covariances_stay_sound_in_a_poor_basis_of_hidden_units(target, noise):
    """Hidden units whose eigenvectors are close to each other in pairs."""
    model = noisy_network(30, 10, *noise)
    W, hidden = model.drift.W.copy(), slice(3, 20)
    rotation = np.linalg.qr(np.random.default_rng(2).standard_normal((17, 17)))[0]
    F = np.diag(np.repeat(np.linspace(0.2, 0.8, 9), 2)[:17] + 2e-3 * (np.arange(17) % 2))
    F += 0.3 * np.diag(np.arange(16) % 2 == 0, k=1)
    W[hidden, hidden] = rotation @ F @ rotation.T
    W[:3, hidden] = W[hidden, :3] = 0.0
    drift = ALRNN(np.zeros(30), W, model.drift.h, model.drift.E, 10)
    model = PALRNN(drift, *noise)
    system = filter_arrays(model)
    assert system.reach > 0
    assert np.linalg.cond(system.basis) > 200
    assert_sound_beliefs(model, np.random.default_rng(1).standard_normal((1_001, 3)), target)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["paper", "exact"])
def test_covariances_stay_sound_over_100_000_steps(target):
    for process_std in (1e-4, 0.1, 10.0):
        for observation_std in (1e-4, 0.1, 10.0):
            model = noisy_network(30, 10, process_std, observation_std, 0.7)
            assert_sound_beliefs(model, np.random.default_rng(1).standard_normal((100_001, 3)), target)


def assert_sound_beliefs(model, x, target, particles=2):
    """Filter ``x`` in 20 pieces and look at the covariances after each."""
    drift, steps = model.drift, len(x) - 1
    arrays, work = filter_arrays(model), workspace(model)
    mean, cov = initial_bundles(arrays, model, x[0], particles)
    record = Record.empty(steps, particles, drift.latent_dim, drift.gated)
    plan = Plan.of(FilterConfig(target=target), 7, np.full(steps, -1, dtype=np.int8))
    weights = np.empty((steps // 20, particles))
    least = min(model.process_variances.min(), model.observation_variances.min())
    for start in range(0, steps, steps // 20):
        stop = start + steps // 20
        done = filter_loop.filter_steps(arrays, plan, x, start, stop, mean, cov, work, weights, record)
        assert done == stop
        beliefs = covariances(arrays, cov, particles)
        # no belief can be surer than half the smaller of the noises that made it
        assert np.linalg.eigvalsh(beliefs).min() > 0.4 * least


@pytest.mark.parametrize("noise", [(1e-4, 10.0), (10.0, 1e-4), (1e-4, 1e-4), (10.0, 10.0)])
def test_smoothing_is_sound_at_extreme_noise(noise):
    model = noisy_network(30, 10, *noise, gate_std=0.0)
    x = np.random.default_rng(1).standard_normal((50, 3))
    filtered = rbpf(model, x, particles=8, target="exact")
    drawn = smooth(filtered, paths=3, states_per_path=2)
    assert np.isfinite(drawn.states).all()
    posterior = path_posterior(model, x, drawn.codes[0])
    assert np.linalg.eigvalsh(posterior.cov).min() > 0
    variances = np.einsum("tii->ti", posterior.filtered_cov)
    assert (np.einsum("tii->ti", posterior.cov) <= variances * (1 + 1e-9)).all()


def test_counted_noise_is_standard_normal_and_independent_across_streams():
    draws = np.empty((400, 50, 5))
    for step in range(400):
        key = counted.stream_key(np.uint64(12345), step, counted.GATES)
        for slot in range(50):
            counted.fill_normals(np.uint64(key), slot, draws[step, slot][:, None])
    assert stats.kstest(draws.ravel(), "norm").pvalue > 0.01
    assert len(np.unique(draws)) == draws.size
    # 100,000 numbers: correlations between neighbours in bit, slot and step within 4.5 standard errors
    for axis in range(3):
        ahead, behind = np.delete(draws, 0, axis).ravel(), np.delete(draws, -1, axis).ravel()
        assert abs(np.corrcoef(ahead, behind)[0, 1]) < 4.5 / np.sqrt(ahead.size)


def test_logarithm_cosine_and_sine_are_accurate_to_the_last_digits():
    rng = np.random.default_rng(3)
    u = np.r_[rng.random(20_000), 1 - 2.0 ** -rng.uniform(1, 53, 2_000), 2.0 ** -rng.uniform(0, 54, 2_000)]
    u = np.r_[u, 1, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, np.sqrt(0.5), np.sqrt(0.125), 2.0**-54]
    log = np.array([counted.log_of_fraction(value) for value in u])
    cosine, sine = np.array([counted.cosine_and_sine(value) for value in u]).T
    # numbers of more digits as reference; pi to all of them, too
    precise = u.astype(np.longdouble)
    exact, angle = np.log(precise), 8 * np.arctan(np.longdouble(1)) * precise
    assert (np.abs(log - exact) <= 2 * np.spacing(np.abs(log))).all()
    assert np.abs(cosine - np.cos(angle)).max() < 2**-52
    assert np.abs(sine - np.sin(angle)).max() < 2**-52


@pytest.mark.parametrize("words", [1, 2])
def test_code_entropy_is_that_of_the_masses_of_codes(words):
    rng = np.random.default_rng(words)
    for particles, codes in ((1, 1), (7, 3), (300, 12), (1000, 900)):
        alphabet = rng.integers(0, 2**64, size=(codes, words), dtype=np.uint64)
        chosen, weights = rng.integers(0, codes, particles), rng.dirichlet(np.full(particles, 0.1))
        masses = np.bincount(chosen, weights)
        expected = -np.sum(masses[masses > 0] * np.log2(masses[masses > 0]))
        # sums of at most 1,000 terms
        entropy = diagnostics.code_entropy(alphabet[chosen], weights)
        assert entropy == pytest.approx(expected, abs=1e-12)


def test_more_than_64_gates_are_packed_and_found_again():
    model = gated_model(70, observed=2, latent=75, seed=1)
    x = drawn_series(model, 6)
    for target in ("paper", "exact"):
        filtered = rbpf(model, x, particles=32, target=target)
        drawn = smooth(filtered, paths=400, seed=2, method="ancestors")
        weights = np.exp(filtered.log_weights)
        # the last step's gates come straight from the weighted particles: 400 draws, 4.5 standard errors
        np.testing.assert_allclose(drawn.codes[:, -1].mean(axis=0), filtered.gate_probability[-1], atol=0.113)
        assert weights.sum() == pytest.approx(1.0)
        # 32 particles with 70 random bits each have 32 different codes
        last = -np.sum(weights[weights > 0] * np.log2(weights[weights > 0]))
        assert filtered.code_entropy[-1] == pytest.approx(last, abs=1e-9)
