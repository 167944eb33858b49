"""Beliefs stay covariances, products stay products, and counted noise is noise."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.small_models import drawn_series, gated_model
from scipy import stats

from palrnn import ALRNN, PALRNN, path_posterior, rbpf, smooth
from palrnn.inference import filter_kernels, noise_kernels
from palrnn.inference.particle_filter import Settings, empty_record, initial_beliefs
from palrnn.inference.system import aligned, padded, padded_system, scratch_for
from palrnn.inference.tile_kernels import product


@given(
    dim=st.integers(1, 41), rows=st.integers(1, 41), fresh=st.booleans(), upper=st.booleans(), data=st.data()
)
@settings(max_examples=60, deadline=None)
def test_the_product_over_active_columns_is_the_matrix_product(dim, rows, fresh, upper, data):
    rng = np.random.default_rng(dim * 100 + rows)
    wide, rows = padded(dim), min(rows, dim)
    active = np.array(data.draw(st.lists(st.integers(0, dim - 1), max_size=dim)), dtype=np.int64)
    out, left, right = aligned((wide, wide)), aligned((wide, wide)), aligned((wide, wide))
    for array in (out, left, right):
        array[:] = rng.standard_normal((wide, wide))
    expected = left[:rows, active] @ right[active] + (0.0 if fresh else out[:rows])
    below = out[rows:].copy()
    product(out, wide, left, 0, wide, 1, right, active, len(active), rows, fresh, upper)
    keep = np.triu(np.ones((rows, wide), dtype=bool)) if upper else np.ones((rows, wide), dtype=bool)
    # at most 41 terms of order one
    np.testing.assert_allclose(out[:rows][keep], expected[keep], atol=1e-12)
    np.testing.assert_array_equal(out[rows:], below)


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
    system, scratch = padded_system(model), scratch_for(model)
    mean, cov = initial_beliefs(model, x[0], particles, system.A.shape[0])
    log_weights = np.full(particles, -np.log(particles))
    record = empty_record(steps, particles, drift.latent_dim, drift.gated)
    chosen = Settings.checked(particles, target, "multinomial", 0.5)
    plan = np.full(steps, -1, dtype=np.int8)
    least = min(model.process_variances.min(), model.observation_variances.min())
    for start in range(0, steps, steps // 20):
        died = filter_kernels.filter_steps(
            system, chosen.kernel_target, chosen.kernel_scheme, chosen.ess_threshold, plan, np.uint64(7), x,
            start, start + steps // 20, mean, cov, log_weights, scratch, record,
        )  # fmt: skip
        assert died == -1
        beliefs = cov[:, : drift.latent_dim, : drift.latent_dim]
        np.testing.assert_array_equal(beliefs, beliefs.transpose(0, 2, 1))
        # no belief can be surer than half the smaller of the noises that made it
        assert np.linalg.eigvalsh(beliefs).min() > 0.4 * least
        assert not cov[:, drift.latent_dim :].any()


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
        key = noise_kernels.stream_key(np.uint64(12345), step, noise_kernels.GATES)
        for slot in range(50):
            noise_kernels.fill_normals(np.uint64(key), slot, draws[step, slot])
    assert stats.kstest(draws.ravel(), "norm").pvalue > 0.01
    assert len(np.unique(draws)) == draws.size
    # 100,000 numbers: correlations between neighbours in bit, slot and step within 4.5 standard errors
    for axis in range(3):
        ahead, behind = np.delete(draws, 0, axis).ravel(), np.delete(draws, -1, axis).ravel()
        assert abs(np.corrcoef(ahead, behind)[0, 1]) < 4.5 / np.sqrt(ahead.size)


def test_more_than_64_gates_are_packed_and_found_again():
    model = gated_model(70, observed=2, latent=75, seed=1)
    x = drawn_series(model, 6)
    for target in ("paper", "exact"):
        filtered = rbpf(model, x, particles=32, target=target)
        drawn = smooth(filtered, paths=400, seed=2)
        weights = np.exp(filtered.log_weights)
        # the last step's gates come straight from the weighted particles: 400 draws, 4.5 standard errors
        np.testing.assert_allclose(drawn.codes[:, -1].mean(axis=0), filtered.gate_probability[-1], atol=0.113)
        assert weights.sum() == pytest.approx(1.0)
        # 32 particles with 70 random bits each have 32 different codes
        last = -np.sum(weights[weights > 0] * np.log2(weights[weights > 0]))
        assert filtered.code_entropy[-1] == pytest.approx(last, abs=1e-9)
