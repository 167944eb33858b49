"""Particles that are stepped side by side do what each would do alone, whatever the sizes."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from oracles.bundled import covariances
from oracles.plain_kalman import given_gates, start, step, transition
from oracles.small_models import drawn_series, gated_model
from scipy.linalg import block_diag
from scipy.special import logsumexp

from palrnn import ALRNN, PALRNN, FilterDiedError, rbpf
from palrnn.engine.vector_code import LANES
from palrnn.inference import filter_arrays as filter_arrays_file
from palrnn.inference import hidden_basis
from palrnn.inference.filter_arrays import filter_arrays, initial_bundles, workspace
from palrnn.inference.kernels.beliefs import condition, place
from palrnn.inference.kernels.noise import GATES, fill_normals, stream_key
from palrnn.inference.record import codes_of

# gated, observed, latent: sizes around those of tiles, no hidden units, none but hidden ones, gated and
# observed ones, more gates than a word has bits
SIZES = [
    (0, 1, 1), (1, 1, 1), (2, 2, 2), (3, 2, 6), (0, 2, 11), (4, 3, 9), (10, 3, 30), (7, 1, 16), (5, 4, 7),
    (2, 1, 41), (66, 2, 71),
]  # fmt: skip


def with_uneven_noise(model):
    rng = np.random.default_rng(0)
    latent, observed = model.drift.latent_dim, model.drift.observed_dim
    process, initial = rng.uniform(0.1, 1, (2, latent))
    return PALRNN(model.drift, process, rng.uniform(0.1, 1, observed), 0.5, initial)


def assert_a_mixture(filtered, logliks, last_means):
    """Without resampling the filter is a mixture of Kalman filters, weighed by their likelihoods."""
    weights = np.exp(logliks - logsumexp(logliks))
    expected = logsumexp(logliks) - np.log(filtered.particles)
    # both sides run the same recursions in float64, in other coordinates
    assert filtered.log_evidence == pytest.approx(expected, abs=1e-9)
    np.testing.assert_allclose(np.exp(filtered.log_weights), weights, atol=1e-9)
    np.testing.assert_allclose(filtered.mean[-1], weights @ last_means, atol=1e-9)


@pytest.mark.parametrize(("gated", "observed", "latent"), SIZES)
def test_each_particle_is_a_kalman_filter_along_its_gates(gated, observed, latent):
    model = with_uneven_noise(gated_model(gated, observed=observed, latent=latent, seed=latent))
    x = drawn_series(model, 9)
    x[4, 0] = x[6] = np.nan
    filtered = rbpf(model, x, particles=LANES + 3, ess_threshold=0)
    codes = codes_of(filtered.code_words, gated)
    answers = [given_gates(model, x, codes[:, i]) for i in range(filtered.particles)]
    logliks = np.array([answer.log_likelihood for answer in answers])
    assert_a_mixture(filtered, logliks, np.array([answer.filtered_mean[-1] for answer in answers]))


@pytest.mark.parametrize(("gated", "observed", "latent"), [size for size in SIZES if size[0]])
def test_each_exact_particle_is_conditioned_on_the_gate_inputs_that_it_drew(gated, observed, latent):
    model = with_uneven_noise(gated_model(gated, observed=observed, latent=latent, seed=latent))
    x = drawn_series(model, 6)
    filtered = rbpf(model, x, particles=LANES + 3, ess_threshold=0, target="exact")
    codes, G = codes_of(filtered.code_words, gated), np.eye(latent)[latent - gated :]
    logliks, means = np.zeros(filtered.particles), np.zeros((filtered.particles, latent))
    for i in range(filtered.particles):
        mean, cov = start(model, x)
        for t in range(len(x) - 1):
            noise = np.empty((gated, 1))
            fill_normals(np.uint64(stream_key(np.uint64(filtered.key), t, GATES)), i, noise)
            S = G @ cov @ G.T + model.gate_std**2 * np.eye(gated)
            u = G @ mean + np.linalg.cholesky(S) @ noise[:, 0]
            np.testing.assert_array_equal(u > 0, codes[t, i])
            gain = cov @ G.T @ np.linalg.inv(S)
            mean, cov = mean + gain @ (u - G @ mean), cov - gain @ S @ gain.T
            mean, cov, increment = step(model, mean, cov, codes[t, i], x[t + 1])
            logliks[i] += increment
        means[i] = mean
    assert_a_mixture(filtered, logliks, means)


@pytest.mark.parametrize(("gated", "observed", "latent"), SIZES)
def test_the_arrays_of_the_filter_are_the_model_in_other_coordinates(gated, observed, latent):
    model = gated_model(gated, observed=observed, latent=latent, seed=latent)
    arrays = filter_arrays(model)
    hidden = max(0, latent - gated - observed)
    assert arrays.hidden == hidden
    code = np.random.default_rng(1).random(gated) < 0.5
    open_units = np.r_[np.ones(latent - gated), code]
    J = (arrays.J * open_units[:, None]).T + np.diag(arrays.own)
    J[np.arange(latent), arrays.partner] += arrays.mate
    back = np.linalg.inv(arrays.basis)
    np.testing.assert_allclose(arrays.basis @ J @ back, transition(model, code), atol=1e-12)
    np.testing.assert_allclose(arrays.basis @ arrays.h[0], model.drift.h, atol=1e-12)
    # observed and gated units are coordinates still
    np.testing.assert_array_equal(arrays.basis[:observed, hidden : hidden + observed], np.eye(observed))
    np.testing.assert_array_equal(arrays.basis[latent - gated :, latent - gated :], np.eye(gated))
    # rows of hidden units leave out what they do not have
    assert not arrays.J[: arrays.reach, :hidden].any()
    if hidden:
        # a single observed unit may find no eigenvector that is not one of a pair
        assert arrays.reach == latent - gated or (observed == 1 and arrays.reach == hidden)
    mean, cov = initial_bundles(arrays, model, np.ones(observed), LANES + 1)
    assert mean.shape == (2, latent * LANES)
    np.testing.assert_allclose(
        covariances(arrays, cov, LANES + 1), [np.diag(model.initial_variances)] * (LANES + 1), atol=1e-12
    )


ROTATION = np.array([[0.6, 0.7], [-0.7, 0.6]])


def driving(F_oo, F_hh):
    """Observed units that move by themselves, and move hidden ones."""
    F = block_diag(F_oo, F_hh)
    F[len(F_oo) :, : len(F_oo)] = 0.3
    return F


@pytest.mark.parametrize(
    ("seen", "F", "reach"),
    [
        # hidden units with a single eigenvector, and with two that are nearly one: no basis
        (1, block_diag(0.3, 0.5 * np.eye(5) + np.eye(5, k=1)), 0),
        (1, block_diag(0.3, [[0.5, 1.0], [0.0, 0.5 + 1e-6]]), 0),
        # the observed unit is an eigenvector, or part of some
        (1, block_diag(0.3, ROTATION), 3),
        (1, block_diag(0.3, ROTATION) + 0.1, 3),
        (1, np.zeros((5, 5)), 5),
        # all eigenvectors are pairs, and one unit is observed
        (1, ROTATION, 1),
        (1, block_diag(ROTATION, 0.5 * ROTATION), 3),
        # observed units with too few eigenvectors, or nearly so: the others are hardly seen
        (2, driving([[1.0, 1.0], [0.0, 1.0]], np.diag([0.3, 0.6])), 2),
        (2, driving([[1.0, 0.1], [0.0, 1.0]], np.diag([0.3, 0.6])), 2),
        (2, driving([[0.5, 1.0], [0.0, 0.5 + 1e-12]], np.diag([0.3, 0.6])), 2),
        (3, driving(0.5 * np.eye(3) + np.eye(3, k=1), np.diag([0.3, 0.6, -0.4])), 3),
        (2, driving(np.diag([0.5, 0.9]), np.diag([0.3, 0.6])), 4),
        # the one eigenvector that is not one of a pair is seen best, but would leave a place empty
        (2, block_diag(0.9, ROTATION, 0.5 * ROTATION) + 0.05, 5),
    ],
)
def test_hidden_units_get_the_best_coordinates_that_there_are(seen, F, reach):
    """Observed and hidden units that move by ``F``, and two gated ones."""
    latent, rng = len(F) + 2, np.random.default_rng(0)
    W = 0.2 * rng.standard_normal((latent, latent))
    W[:-2, :-2] = F
    drift = ALRNN(np.zeros(latent), W, 0.1 * np.ones(latent), rng.standard_normal((latent, seen)), 2)
    model = PALRNN(drift, 0.3, 0.2, 0.5)
    assert filter_arrays(model).reach == reach
    x = drawn_series(model, 20)
    filtered = rbpf(model, x, particles=3, ess_threshold=0)
    codes = codes_of(filtered.code_words, 2)
    answers = [given_gates(model, x, codes[:, i]) for i in range(3)]
    logliks = np.array([answer.log_likelihood for answer in answers])
    assert_a_mixture(filtered, logliks, np.array([answer.filtered_mean[-1] for answer in answers]))


def test_a_resampled_particle_has_all_of_its_ancestors_belief():
    model = with_uneven_noise(gated_model(3, observed=2, latent=9))
    x = drawn_series(model, 9)
    schedule = np.array([1, 0, 1, 0, 1, 1, 0, 0])
    filtered = rbpf(model, x, particles=2 * LANES + 3, schedule=schedule)
    codes, since = codes_of(filtered.code_words, 3), 1 + np.flatnonzero(schedule)[-1]
    logliks, means = np.zeros(filtered.particles), np.zeros((filtered.particles, 9))
    for i in range(filtered.particles):
        slot, path = i, np.zeros((8, 3), dtype=bool)
        for t in range(7, -1, -1):
            path[t] = codes[t, slot]
            slot = filtered.ancestors[t, slot]
        mean, cov = start(model, x)
        for t in range(8):
            mean, cov, increment = step(model, mean, cov, path[t], x[t + 1])
            logliks[i] += increment if t >= since else 0.0
        means[i] = mean
    assert (filtered.survivors[schedule > 0] < filtered.particles).all()
    weights = np.exp(logliks - logsumexp(logliks))
    np.testing.assert_allclose(np.exp(filtered.log_weights), weights, atol=1e-12)
    np.testing.assert_allclose(filtered.mean[-1], weights @ means, atol=1e-12)
    evidence = logsumexp(logliks) - np.log(filtered.particles)
    assert filtered.increments[since:].sum() == pytest.approx(evidence, abs=1e-12)


def test_a_noiseless_gate_on_a_known_coordinate_teaches_nothing():
    """One lane has no variance left, one a negative one by rounding; the others do not notice."""
    model = PALRNN(gated_model(1, observed=1, latent=2).drift, 0.5, 0.4, 0.0, initial=0.7)
    work = workspace(model)
    mean, cov = (array[0] for array in initial_bundles(filter_arrays(model), model, np.ones(1), LANES))
    last = slice(place(1, 1), place(1, 1) + LANES)
    cov[last][:2] = 0.0, -1e-18
    before, values = mean.copy().reshape(2, LANES), np.full((1, LANES), 2.0)
    condition(mean, cov, 1, values, np.zeros(1), True, work, np.empty(LANES), 0)
    np.testing.assert_array_equal(values[0, :2], before[1, :2])
    np.testing.assert_allclose(values[0, 2:], before[1, 2:] + 2 * 0.7, atol=1e-14)
    np.testing.assert_allclose(mean.reshape(2, LANES), [before[0], values[0]], atol=1e-14)
    np.testing.assert_array_equal(cov[last], 0.0)


def test_weights_that_overflow_are_an_error_of_the_filter():
    drift = gated_model(1, observed=1, latent=6).drift
    huge = PALRNN(ALRNN(drift.A, np.full((6, 6), 1.7e308), drift.h, drift.E, 1), 0.5, 0.4, 0.5)
    with pytest.raises(FilterDiedError, match="particles died"):
        rbpf(huge, np.ones((5, 1)), particles=3)


def test_the_answer_does_not_depend_on_the_basis(monkeypatch):
    model = gated_model(4, observed=2, latent=15)
    x = drawn_series(model, 60)
    schedule = np.arange(len(x) - 1) % 3 == 0
    alone = rbpf(model, x, particles=40, schedule=schedule)
    assert filter_arrays(model).reach == 11
    monkeypatch.setattr(hidden_basis, "_WORST_CONDITION", 0.0)
    monkeypatch.setattr(filter_arrays_file, "_known", {})
    together = rbpf(model, x, particles=40, schedule=schedule)
    assert filter_arrays(model).reach == 0
    np.testing.assert_array_equal(alone.code_words, together.code_words)
    np.testing.assert_array_equal(alone.ancestors, together.ancestors)
    np.testing.assert_allclose(alone.increments, together.increments, atol=1e-11)


def evidences_and_ancestors():
    model = gated_model(3, observed=2, latent=11)
    x = drawn_series(model, 25)
    runs = [rbpf(model, x, particles=21, target=target) for target in ("paper", "exact")]
    return [LANES, *[run.log_evidence for run in runs], *[float(run.ancestors.sum()) for run in runs]]


OTHER_WIDTH = """
import palrnn.engine.processors as processors
wide = processors.has_wide_registers()
processors.has_wide_registers = lambda: not wide
from inference.test_fast_filter import evidences_and_ancestors
print(*evidences_and_ancestors())
"""


@pytest.mark.slow
def test_the_answer_does_not_depend_on_the_width_of_registers(tmp_path):
    """Code for wide registers runs on any machine: the compiler splits what does not fit."""
    place = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[1])}
    run = subprocess.run(
        [sys.executable, "-c", OTHER_WIDTH],
        env=place,
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
    )
    theirs, ours = [float(word) for word in run.stdout.split()], evidences_and_ancestors()
    assert {theirs[0], ours[0]} == {4, 8}
    np.testing.assert_allclose(theirs[1:], ours[1:], rtol=1e-12)
