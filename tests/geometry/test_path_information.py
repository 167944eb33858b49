"""The information given one gate path, against automatic derivatives of a Kalman filter."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracles.path_likelihood import derivatives, log_likelihood
from oracles.shallow_family import covariance, shallow_model
from oracles.study_models import from_the_study

from palrnn import (
    ALRNN,
    PALRNN,
    ClippedShallowPLRNN,
    ObservationMap,
    ShallowPLRNN,
    path_information,
    path_posterior,
    rbpf,
    smooth,
)
from palrnn.geometry import closed_forms
from palrnn.geometry.score_map import score_map

# sums of some thousands of products, in another order
CLOSE = 1e-10


def network(latent=3, observed=2, gated=1, seed=0):
    rng = np.random.default_rng(seed)
    # the spectrum stays inside the unit circle, also with the diagonal
    weights = 0.5 * rng.standard_normal((latent, latent)) / latent**0.5
    h, E = 0.3 * rng.standard_normal(latent), rng.standard_normal((latent, observed))
    return ALRNN(rng.uniform(-0.5, 0.5, latent), weights, h, E, gated)


def diagonal_model(gated=1, **sizes):
    rng = np.random.default_rng(1)
    drift = network(gated=gated, **sizes)
    return PALRNN(
        drift, rng.uniform(0.3, 0.8, drift.latent_dim), rng.uniform(0.3, 0.6, drift.observed_dim), 0.5
    )


def full_model(gated=1):
    rng, drift = np.random.default_rng(2), network(gated=gated)
    process, initial = covariance(3, 0.5, rng), covariance(3, 0.7, rng)
    reads = ObservationMap(rng.standard_normal((2, 3)), 0.3 * rng.standard_normal(2))
    return PALRNN(drift, process, covariance(2, 0.4, rng), 0.5, initial, reads)


def shallow_plrnn(gated=2, clipped=False):
    """The package's own shallow PLRNN, with full noises and an observation map that mixes all units."""
    model = shallow_model(3, gated, 2)
    drift, cls = model.drift, ClippedShallowPLRNN if clipped else ShallowPLRNN
    E = np.random.default_rng(5).standard_normal((3, 2))
    return model.with_drift(cls(drift.A, drift.W1, drift.W2, drift.h1, drift.h2, E))


def case(model, times=7, seed=3, gaps=True):
    """Return a series with gaps, gate inputs and their signs: anything will do."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((times, model.drift.observed_dim))
    if gaps:
        x[2, 0] = x[3] = np.nan
    inputs = rng.standard_normal((times - 1, model.drift.gated))
    return x, inputs > 0, inputs


MODELS = {
    "no gates": diagonal_model(0),
    "one gate": diagonal_model(1),
    "all gated": diagonal_model(3),
    "full noise": full_model(2),
    "shallow": shallow_plrnn(),
    "clipped shallow": shallow_plrnn(1, clipped=True),
}


def differ(found, expected):
    return np.abs(found - expected).max() / np.abs(expected).max()


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("no gates", "codes"),
        ("one gate", "inputs"),
        ("all gated", "codes"),
        ("full noise", "inputs"),
        ("shallow", "codes"),
        ("shallow", "inputs"),
        pytest.param("clipped shallow", "codes", marks=pytest.mark.slow),  # what its inputs need, and less
        ("clipped shallow", "inputs"),
    ],
)
def test_everything_is_a_derivative_of_the_kalman_likelihood(name, given):
    model = MODELS[name]
    x, codes, inputs = case(model, times=5)
    found = path_information(model, x, codes, inputs if given == "inputs" else None)
    f = log_likelihood(model, x, with_inputs=given == "inputs")
    value, gradient, information = derivatives(
        lambda theta: f(theta, codes.astype(float), inputs), model.drift.theta
    )
    assert found.log_likelihood == pytest.approx(value, rel=1e-12)
    assert differ(found.score, gradient) < CLOSE
    assert differ(found.observed, information) < CLOSE
    assert found.trace_observed() == pytest.approx(np.trace(information), rel=CLOSE)
    vectors = np.random.default_rng(0).standard_normal((len(gradient), 2))
    assert differ(found @ vectors, information @ vectors) < CLOSE
    assert differ(found @ vectors[:, 1], information @ vectors[:, 1]) < CLOSE


@pytest.mark.parametrize("name", MODELS)
def test_complete_and_missing_information_are_moments_of_sampled_scores(name):
    model = MODELS[name]
    x, codes, _ = case(model)
    found = path_information(model, x, codes)
    posterior = path_posterior(model, x, codes)
    rng, draws, dim = np.random.default_rng(0), 40_000, model.drift.latent_dim
    states = joint_draws(posterior, draws, rng)
    J, b = model.drift.affine(codes)
    precision = np.linalg.inv(model.process_covariance)
    error = (states[:, 1:] - np.einsum("tij,stj->sti", J, states[:, :-1]) - b) @ precision
    scores = model.drift.pullback(states[:, :-1], codes, error).sum(axis=1)
    sampled = np.cov(scores.T)
    # an entry of a covariance of n draws is off by about sqrt(2 / n) of the variances; six of those, as
    # scores have heavier tails than normal numbers
    scale = np.sqrt(np.outer(np.diag(sampled), np.diag(sampled))) + 1e-9 * np.abs(sampled).max()
    assert np.abs((found.missing - sampled) / scale).max() < 6 * np.sqrt(2 / draws)
    assert found.trace_complete == pytest.approx(np.trace(found.complete), rel=1e-12)
    if isinstance(model.drift, ALRNN):
        squares = (states[:, :-1] ** 2).sum(axis=(0, 1))
        gated = np.concatenate([np.ones((len(codes), dim - model.drift.gated)), codes], axis=1)
        features = ((gated * states[:, :-1]) ** 2).sum() + len(codes) * draws
        trace = (np.diag(precision).sum() * features + np.diag(precision) @ squares) / draws
        assert found.trace_complete == pytest.approx(trace, rel=6 / np.sqrt(draws))


def joint_draws(posterior, draws, rng):
    """Draw all states from the posterior's means and covariances of neighbours, forwards."""
    mean, cov, lag = posterior.mean, posterior.cov, posterior.lag_cov
    states = [rng.multivariate_normal(mean[0], cov[0], draws)]
    for t in range(len(lag)):
        slope = np.linalg.solve(cov[t], lag[t]).T
        rest = cov[t + 1] - slope @ lag[t]
        ahead = mean[t + 1] + (states[-1] - mean[t]) @ slope.T
        states.append(ahead + rng.multivariate_normal(np.zeros(len(rest)), rest, draws))
    return np.stack(states, axis=1)


def test_a_general_family_and_the_fast_path_of_alrnns_agree():
    model = diagonal_model(2, latent=4)
    x, codes, _ = case(model, times=12)
    found = path_information(model, x, codes)
    general = [f.dispatch(object) for f in (closed_forms.observed_matrix, closed_forms.complete_matrix)]
    probed = score_map.dispatch(object)(model.drift, codes, False)
    assert abs(probed.matrix - found.scores.matrix).max() == 0.0
    parts = (model.drift, codes, found.moments, probed)
    assert differ(general[0](*parts), found.observed) < CLOSE
    assert differ(general[1](*parts, found.precision), found.complete) < CLOSE
    trace = closed_forms.observed_trace.dispatch(object)(*parts, None)
    assert trace == pytest.approx(found.trace_observed(), rel=CLOSE)


def test_the_parameters_of_ungated_units_are_collinear_to_the_last_bit():
    model = diagonal_model(1)
    x, codes, _ = case(model)
    found = path_information(model, x, codes)
    for matrix in (found.observed, found.complete):
        for i in range(2):
            assert np.array_equal(matrix[i], matrix[3 + 3 * i + i])


def test_what_is_known_exactly_leaves_the_rest_alone():
    # hard gates: their inputs are the gated units themselves, without noise
    drift = network(gated=1)
    hard, soft = (PALRNN(drift, 0.4, 0.3, gate_std) for gate_std in (0.0, 1e-5))
    x, codes, inputs = case(hard, gaps=False)
    exact, near = (path_information(model, x, codes, inputs) for model in (hard, soft))
    # the variance of the gate is 1e-10 in one and 0 in the other
    assert differ(exact.observed, near.observed) < 1e-7


def test_times_further_apart_matter_less_and_the_bound_holds():
    model = diagonal_model(1, latent=4, observed=1)
    x, codes, _ = case(model, times=60, gaps=False)
    found = path_information(model, x, codes)
    whole = found.trace_observed()
    before = np.inf
    for lags in (1, 8, 20, 40):
        error, bound = abs(found.trace_observed(lags) - whole), found.left_out(lags)
        assert error <= bound < before
        before = bound
    assert before < 1e-2 * abs(whole)
    assert found.trace_observed(58) == pytest.approx(whole, rel=1e-12)
    assert found.left_out(None) == 0.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"codes": np.zeros((5, 1))}, r"codes must have shape \(6, 1\)"),
        ({"gate_inputs": np.zeros((5, 1))}, r"gate_inputs must have shape \(6, 1\)"),
        ({"gate_inputs": np.ones((6, 1)), "codes": np.zeros((6, 1))}, "codes must be the signs of gate_"),
        ({"model": "net"}, "model must be a PALRNN"),
    ],
)
def test_wrong_arguments_are_named(change, message):
    model = MODELS["one gate"]
    x, codes, _ = case(model)
    with pytest.raises(ValueError, match=message):
        path_information(**({"model": model, "x": x, "codes": codes} | change))


def test_a_product_with_the_wrong_number_of_entries_is_named():
    x, codes, _ = case(MODELS["one gate"])
    with pytest.raises(ValueError, match=r"v must be \(15,\) or \(15, k\), got \(4,\)"):
        path_information(MODELS["one gate"], x, codes) @ np.ones(4)


def test_hard_gates_with_parameters_are_refused():
    model = PALRNN(shallow_plrnn().drift, 0.3, 0.3, 0.0)
    x, codes, inputs = case(model)
    with pytest.raises(ValueError, match="gate_std must be greater than 0"):
        path_information(model, x, codes, inputs)


def kalman_products(model, x, codes, vectors):
    """Return minus the Hessian of the Kalman likelihood times each row of ``vectors``, by JAX."""
    f, given = log_likelihood(model, x), (codes.astype(float), np.zeros(codes.shape))
    gradient = jax.grad(lambda theta: f(theta, *given))
    theta = jnp.asarray(model.drift.theta)
    product = jax.jit(lambda v: -jax.jvp(gradient, (theta,), (v,))[1])
    return np.stack([np.asarray(product(jnp.asarray(v))) for v in vectors])


@pytest.mark.slow
def test_a_longer_path_of_a_wider_network_agrees_with_jax():
    model = diagonal_model(4, latent=12, observed=3)
    x, codes, _ = case(model, times=60)
    found = path_information(model, x, codes)
    vectors = np.eye(found.scores.size)[::12]
    assert differ(found.observed[::12], kalman_products(model, x, codes, vectors)) < CLOSE


@pytest.mark.slow
@pytest.mark.parametrize("name", ["p0.1-o0.1-t16-s0", "p0.3-o0.3-t16-s0", "p0.5-o0.5-t16-s0"])
def test_trained_models_agree_with_jax(name):
    model, x = from_the_study(name)
    smoothed = smooth(rbpf(model, x, particles=64), paths=1)
    found = path_information(model, x, smoothed.codes[0])
    information = kalman_products(model, x, smoothed.codes[0], np.eye(960))
    assert differ(found.observed, information) < 1e-8
    assert found.trace_observed() == pytest.approx(np.trace(information), rel=1e-8)
    assert found.left_out(100) > abs(found.trace_observed(100) - found.trace_observed())
