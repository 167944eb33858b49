"""Particle Gibbs: its weights against plain Kalman filters, its draws against grids and enumeration."""

import numpy as np
import pytest
from oracles.gate_paths import with_orthant_probabilities
from oracles.grid_smoother import grid_posterior
from oracles.plain_kalman import log_normal, step
from oracles.small_models import drawn_series, gated_model

from palrnn import FewPathsWarning, path_posterior, rbpf, smooth
from palrnn.engine.vector_code import LANES
from palrnn.inference.filter_arrays import in_panels
from palrnn.inference.gate_paths import conditional_filter
from palrnn.inference.kernels.conditional import look_back
from palrnn.inference.kernels.match import agreement, in_coordinates, precision_form
from palrnn.inference.path_arrays import aligned, padded, path_arrays
from palrnn.inference.record import words_of


def message_of(model, x, codes, inputs, t):
    """Return Omega and lambda of all that follows z_t on a path, u_t included."""
    system, dim = path_arrays(model), padded(model.drift.latent_dim)
    Omega, vector = np.zeros((dim, dim)), np.zeros(dim)
    scratch = [np.empty((dim, dim)) for _ in range(4)]
    words = words_of(codes)
    for k in range(len(codes) - 1, t - 1, -1):
        look_back(system, k, words[k], x[k + 1], inputs[k], Omega, vector, *scratch)
    latent = model.drift.latent_dim
    return Omega[:latent, :latent], vector[:latent]


def future_likelihood(model, mean, cov, x, codes, inputs, t):
    """Return log p(u_t, x_{t+1}, u_{t+1}, ... | z_t ~ N(mean, cov)) by a plain Kalman filter."""
    free, total = model.drift.latent_dim - model.drift.gated, 0.0
    for k in range(t, len(codes)):
        S = cov[free:, free:] + model.gate_std**2 * np.eye(model.drift.gated)
        total += log_normal(inputs[k], mean[free:], S)
        gain = np.linalg.solve(S, cov[free:]).T
        mean, cov = mean + gain @ (inputs[k] - mean[free:]), cov - gain @ cov[free:]
        mean, cov, loglik = step(model, mean, cov, codes[k], x[k + 1])
        total += loglik
    return total


def agreement_of(mean, cov, Omega, vector):
    """Return log of the integral of N(mean, cov) times the message."""
    root = np.linalg.cholesky(cov)
    inner = np.eye(len(mean)) + root.T @ Omega @ root
    slope = root.T @ (vector - Omega @ mean)
    value = vector @ mean - 0.5 * mean @ Omega @ mean + 0.5 * slope @ np.linalg.solve(inner, slope)
    return value - 0.5 * np.linalg.slogdet(inner)[1]


@pytest.mark.parametrize("missing", [False, True])
def test_the_message_weighs_beliefs_as_a_kalman_filter_over_the_future_does(missing):
    model = gated_model(3, observed=2, latent=7, seed=4)
    x = drawn_series(model, 9)
    if missing:
        x[4], x[6, 0] = np.nan, np.nan
    rng = np.random.default_rng(0)
    inputs = rng.standard_normal((8, 3))
    Omega, vector = message_of(model, x, inputs > 0, inputs, 2)
    differences = []
    for _ in range(5):
        mean, root = rng.standard_normal(7), rng.standard_normal((7, 9))
        cov = 0.1 * root @ root.T
        exact = future_likelihood(model, mean, cov, x, inputs > 0, inputs, 2)
        differences.append(exact - agreement_of(mean, cov, Omega, vector))
    # equal up to a constant that no belief has a part in; values are of the order of 100
    np.testing.assert_allclose(differences, differences[0], rtol=0, atol=1e-10)


@pytest.mark.parametrize("latent", [1, 2, 5, 8, 13, 30])
def test_a_bundle_of_beliefs_agrees_with_a_message_as_each_does_alone(latent):
    rng = np.random.default_rng(latent)
    roots = rng.standard_normal((LANES, latent, 2 * latent))
    covs, means = 0.1 * roots @ roots.swapaxes(1, 2), rng.standard_normal((LANES, latent))
    sees, vector = rng.standard_normal((latent, 1 + latent // 2)), rng.standard_normal(latent)
    basis = np.eye(latent) + 0.1 * rng.standard_normal((latent, latent))
    mean, cov = aligned((latent * LANES,)), np.stack([in_panels(P) for P in covs], axis=-1).ravel()
    mean[:] = means.T.ravel()
    entries = (latent + 1) * (latent + 2) // 2
    rows, precision, message = np.empty(entries * LANES), np.empty(entries * LANES), np.empty(entries)
    own, found = np.empty(LANES), np.empty(LANES)
    in_coordinates(sees @ sees.T, vector, basis, latent, message, *np.empty((2, latent, latent)))
    precision_form(mean, cov, latent, rows, precision, own, 0)
    agreement(precision, own, message, latent, rows, found, 0)
    exact = [
        agreement_of(basis @ m, basis @ P @ basis.T, sees @ sees.T, vector)
        for m, P in zip(means, covs, strict=True)
    ]
    # covariances of condition 1e3 at most, values of up to 1e3
    np.testing.assert_allclose(found, exact, rtol=1e-10, atol=1e-10)


def standard_scores(values, truth):
    """Return how many standard errors the mean of independent ``values (R, ...)`` is from the truth."""
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    # an event too rare to be seen has no spread: one draw in all repeats, of four each, is a standard error
    return (values.mean(axis=0) - truth) / np.maximum(error, 0.25 / len(values))


@pytest.mark.parametrize("method", ["ancestors", "gibbs"])
@pytest.mark.parametrize(("gated", "observed"), [(1, 1), (2, 1)])
def test_gates_pairs_of_gates_and_states_are_those_of_the_grid(method, gated, observed):
    model = gated_model(gated, observed=observed, latent=2)
    x = drawn_series(model, 12)
    x[5] = np.nan
    exact = grid_posterior(model, x)
    codes, pairs, means, squares = [], [], [], []
    for seed in range(100):
        filtered = rbpf(model, x, particles=100, target="exact", seed=seed)
        found = smooth(filtered, paths=4, states_per_path=2, seed=seed, method=method)
        number = found.codes @ 2 ** np.arange(gated)[::-1]
        one = np.eye(2**gated)[number]
        codes.append(one.mean(axis=0))
        pairs.append(np.einsum("stc,std->tcd", one[:, :-1], one[:, 1:]) / len(one))
        means.append(found.states.mean(axis=(0, 1)))
        squares.append(((found.states - exact.mean) ** 2).mean(axis=(0, 1)))
    # 100 independent passes, up to 280 numbers: 4.5 standard errors; the bias of 100 particles is below one
    for drawn, truth in (
        (codes, exact.codes),
        (pairs, exact.pairs),
        (means, exact.mean),
        (squares, exact.variance),
    ):
        np.testing.assert_allclose(standard_scores(np.array(drawn), truth), 0.0, atol=4.5)


@pytest.mark.parametrize("particles", [2, *(pytest.param(n, marks=pytest.mark.slow) for n in (5, LANES + 3))])
def test_the_chain_forgets_a_bad_start_and_is_exact_with_few_particles(particles):
    model = gated_model(2, observed=1, latent=2)
    x = drawn_series(model, 12)
    exact = grid_posterior(model, x)
    chain = conditional_filter(model, x, particles)
    rng = np.random.default_rng(particles)
    path = np.full((11, 2), 3.0)
    drawn = []
    for _ in range(100 + 3000):
        path = chain.sweep(path, int(rng.integers(2**63)))
        drawn.append((path > 0) @ np.array([2, 1]))
    one = np.eye(4)[np.array(drawn[100:])]
    # 30 stretches of 100 sweeps, over which the chain forgets even with two particles, count as independent
    codes = one.reshape(30, 100, 11, 4).mean(axis=1)
    error = np.maximum(codes.std(axis=0, ddof=1) / np.sqrt(30), 1e-3)
    # 44 numbers: 4.5 standard errors
    np.testing.assert_allclose((codes.mean(axis=0) - exact.codes) / error, 0.0, atol=4.5)


def test_gates_without_noise_are_those_of_enumeration_and_of_their_states():
    # inputs are the states themselves: a path may only be joined to a past that fits exactly
    model = gated_model(2, gate_std=0.0, seed=8)
    x = drawn_series(model, 4)
    drawn = []
    for seed in range(200):
        found = smooth(rbpf(model, x, particles=100, target="exact", seed=seed), paths=4, seed=seed)
        drawn.append(found.codes.mean(axis=0))
        np.testing.assert_array_equal(found.states[:, 0, :-1, 1:] > 0, found.codes)
        # the state is conditioned on its inputs one after the other, each to rounding
        np.testing.assert_allclose(found.states[:, 0, :-1, 1:], found.gate_inputs, atol=1e-12)
    scores = standard_scores(np.array(drawn), with_orthant_probabilities(model, x).gate_marginals)
    # 6 numbers, 4 standard errors
    np.testing.assert_allclose(scores, 0.0, atol=4.0)


def test_tracing_ancestors_coalesces_and_says_so_where_particle_gibbs_does_not():
    model = gated_model(3, observed=2, latent=6)
    filtered = rbpf(model, drawn_series(model, 100), particles=64, target="exact", ess_threshold=2.0)
    with pytest.warns(
        FewPathsWarning, match=r"the 64 paths pass through . different draws at step 0: .*gibbs"
    ):
        traced = smooth(filtered, paths=64, method="ancestors")
    found = smooth(filtered, paths=64)
    assert found.method == "gibbs"
    assert traced.distinct[0] < 10
    assert found.distinct.min() > 16


def test_inputs_have_the_signs_of_their_gates_and_make_the_states_what_they_are():
    model = gated_model(3, observed=2, latent=6)
    x = drawn_series(model, 15)
    for method in ("ancestors", "gibbs"):
        filtered = rbpf(model, x, particles=32, target="exact")
        found = smooth(filtered, paths=3, states_per_path=4000, method=method)
        np.testing.assert_array_equal(found.gate_inputs > 0, found.codes)
        for codes, inputs, states in zip(found.codes, found.gate_inputs, found.states, strict=True):
            exact = path_posterior(model, x, codes, gate_inputs=inputs)
            scale = np.sqrt(np.einsum("tii->ti", exact.cov))
            # 4000 draws of 90 numbers: 4.5 standard errors
            np.testing.assert_allclose((states.mean(axis=0) - exact.mean) / scale, 0.0, atol=0.071)


def test_a_path_does_not_depend_on_the_number_of_paths():
    model = gated_model(2, observed=2, latent=5)
    filtered = rbpf(model, drawn_series(model, 25), particles=30, target="exact")
    one, many = smooth(filtered, paths=1, seed=4), smooth(filtered, paths=20, seed=4)
    np.testing.assert_array_equal(one.gate_inputs[0], many.gate_inputs[0])
    np.testing.assert_array_equal(one.states[0], many.states[0])


def test_the_paper_s_target_has_ancestors_only():
    model = gated_model(2)
    filtered = rbpf(model, drawn_series(model, 10), particles=16)
    assert smooth(filtered).method == "ancestors"
    assert np.isnan(smooth(filtered).gate_inputs).all()
    with pytest.raises(ValueError, match="target='exact'"):
        smooth(filtered, method="gibbs")
    with pytest.raises(ValueError, match="method"):
        smooth(filtered, method="forward")
