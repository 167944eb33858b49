"""Curvatures of driven models, z' = F(z) + C s, with the entries of C among the parameters."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from geometry.test_enumerated_evidence import CLOSE, mixture, normalised
from geometry.test_path_information import case, diagonal_model, differ, full_model, shallow_plrnn
from jax.scipy.special import logsumexp
from oracles.forced_jacobian import driven_gauss_newton
from oracles.path_likelihood import all_codes, derivatives, grid_of_inputs, log_likelihood
from oracles.shallow_family import random_shallow

from palrnn import (
    Forcing,
    ITFOperator,
    compare_geometries,
    itf_fisher,
    itf_trace,
    laplace,
    louis_terms,
    mismatch,
    observed_information,
    paper_path_derivatives,
    path_information,
    rbpf,
    smooth,
)
from palrnn.geometry import closed_forms
from palrnn.geometry.score_map import score_map
from palrnn.model.inputs import driven


def with_inputs(drift, inputs=2, seed=7):
    return driven(drift, np.random.default_rng(seed).standard_normal((drift.latent_dim, inputs)))


def stimulus(times, inputs=2, seed=8):
    return np.random.default_rng(seed).standard_normal((times, inputs))


def moved(model):
    return model.with_drift(with_inputs(model.drift))


MODELS = {
    "no gates": moved(diagonal_model(0)),
    "one gate": moved(diagonal_model(1)),
    "all gated": moved(diagonal_model(3)),
    "full noise": moved(full_model(2)),
    "shallow": moved(shallow_plrnn()),
    "clipped shallow": moved(shallow_plrnn(1, clipped=True)),
}


@pytest.mark.parametrize("forcing", [Forcing.identity(3), Forcing.generalised(0.3)], ids=str)
@pytest.mark.parametrize("gaps", [False, True], ids=["whole", "gaps"])
@pytest.mark.parametrize("family", ["alrnn", "shallow", "clipped"])
def test_the_itf_fisher_is_the_gauss_newton_matrix_of_automatic_differentiation(family, gaps, forcing):
    rng = np.random.default_rng(1)
    if family == "alrnn":
        drift = diagonal_model(2, latent=4, observed=2).drift
    else:
        drift = random_shallow(4, 2, 3, clipped=family == "clipped")
    model, s, x = with_inputs(drift), stimulus(14), rng.standard_normal((14, 2))
    if gaps:
        x[4, 0] = x[7] = np.nan
    found = itf_fisher(model, x, forcing, 0.2, inputs=s)
    expected = driven_gauss_newton(model, x, s, forcing, 0.2)
    # both are exact up to rounding; the recursion is well conditioned on this short rollout
    assert differ(found, expected) < 1e-9
    operator = ITFOperator(model, x, forcing, 0.2, inputs=s)
    vectors = rng.standard_normal((len(found), 2))
    assert differ(operator @ vectors, expected @ vectors) < 1e-9
    assert itf_trace(model, x, forcing, 0.2, inputs=s) == pytest.approx(np.trace(expected), rel=1e-9)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        pytest.param("no gates", "codes", marks=pytest.mark.slow),
        ("one gate", "gate inputs"),
        pytest.param("all gated", "codes", marks=pytest.mark.slow),
        pytest.param("full noise", "gate inputs", marks=pytest.mark.slow),
        ("shallow", "gate inputs"),
        pytest.param("clipped shallow", "codes", marks=pytest.mark.slow),
    ],
)
def test_everything_is_a_derivative_of_the_kalman_likelihood(name, given):
    model, s = MODELS[name], stimulus(7)
    x, codes, u = case(model)
    found = path_information(model, x, codes, u if given == "gate inputs" else None, inputs=s)
    f = log_likelihood(model, x, with_inputs=given == "gate inputs", inputs=s)
    value, gradient, information = derivatives(
        lambda theta: f(theta, codes.astype(float), u), model.drift.theta
    )
    assert found.log_likelihood == pytest.approx(value, rel=1e-12)
    # sums of some thousands of products, in another order
    assert differ(found.score, gradient) < 1e-10
    assert differ(found.observed, information) < 1e-10
    assert found.trace_observed() == pytest.approx(np.trace(information), rel=1e-10)
    vectors = np.random.default_rng(0).standard_normal((len(gradient), 2))
    assert differ(found @ vectors, information @ vectors) < 1e-10


def test_a_general_family_and_the_fast_path_of_alrnns_agree():
    model, s = moved(diagonal_model(2, latent=4)), stimulus(12)
    x, codes, _ = case(model, times=12)
    found = path_information(model, x, codes, inputs=s)
    general = [f.dispatch(object) for f in (closed_forms.observed_matrix, closed_forms.complete_matrix)]
    probed = score_map.dispatch(object)(model.drift, codes, False, s[:-1])
    parts = (model.drift, codes, found.moments, probed)
    assert differ(general[0](*parts), found.observed) < 1e-10
    assert differ(general[1](*parts, found.precision), found.complete) < 1e-10
    assert found.trace_complete == pytest.approx(np.trace(found.complete), rel=1e-12)
    whole = found.trace_observed()
    for lags in (1, 4):
        assert abs(found.trace_observed(lags) - whole) <= found.left_out(lags)


@pytest.mark.parametrize("name", [pytest.param("no gates", marks=pytest.mark.slow), "one gate", "shallow"])
def test_louis_is_the_hessian_of_the_enumerated_evidence(name):
    """The integral over gate inputs is a sum over a grid, on both sides: the identity holds for any
    weights."""
    model = MODELS[name]
    gated = model.drift.gated
    times = 3 if gated < 2 else 2
    x, _, _ = case(model, times=times, gaps=False)
    x[-1, 0], s = np.nan, stimulus(times)
    u, logs = grid_of_inputs(times - 1, gated) if gated else (np.zeros((1, times - 1, 0)), np.zeros(1))
    codes = (u > 0).astype(float)
    f = jax.vmap(log_likelihood(model, x, with_inputs=gated > 0, inputs=s), in_axes=(None, 0, 0))
    value, gradient, information = derivatives(
        lambda theta: logsumexp(f(theta, codes, u) + logs), jnp.asarray(model.drift.theta)
    )
    found = [
        path_information(model, x, c, given if gated else None, inputs=s)
        for c, given in zip(codes, u, strict=True)
    ]
    joint = np.array([part.log_likelihood for part in found]) + logs
    assert logsumexp(joint) == pytest.approx(value, rel=1e-11)
    score, observed = mixture([(part.score, part.observed) for part in found], normalised(joint))
    assert differ(score, gradient) < CLOSE
    assert differ(observed, information) < CLOSE


@pytest.mark.slow
def test_the_papers_target_has_its_own_hessian():
    model, s = MODELS["one gate"], stimulus(3)
    x, _, _ = case(model, times=3, gaps=False)
    codes, theta = all_codes(2, 1), jnp.asarray(model.drift.theta)
    whole = jax.vmap(log_likelihood(model, x, with_gates=True, inputs=s), in_axes=(None, 0, 0))
    truth = derivatives(lambda theta: logsumexp(whole(theta, codes, np.zeros_like(codes))), theta)
    parts = [paper_path_derivatives(model, x, path, inputs=s) for path in codes]
    weights = normalised(np.array([part.log_weight for part in parts]))
    score, observed = mixture([(part.gradient, part.information) for part in parts], weights)
    assert differ(score, truth[1]) < CLOSE
    # fourth-order differences of exact gradients with steps of 1e-3
    assert differ(observed, truth[2]) < 1e-8


def test_without_gates_the_observed_information_is_that_of_the_likelihood():
    model, s = MODELS["no gates"], stimulus(30)
    x = model.sample(np.zeros(2), 30, seed=1, inputs=s).observations
    x[4, 0] = x[9] = np.nan
    none = np.zeros((29, 0))
    f = log_likelihood(model, x, inputs=s)
    information = derivatives(lambda theta: f(theta, none, none), model.drift.theta)[2]
    found = observed_information(model, x, inputs=s)
    assert differ(found.observed, information) < 1e-10
    sampled = observed_information(
        model, x, inputs=s, states="sampled", passes=1, paths=2, states_per_path=20_000, particles=2
    )
    # a covariance of 40,000 scores is off by sqrt(2 / 40,000) of their variances; six of those, as in
    # test_path_information
    spread = np.sqrt(np.diag(found.missing))
    scale = np.outer(spread, spread) + 1e-9 * np.abs(found.missing).max()
    assert np.abs((sampled.missing - found.missing) / scale).max() < 6 * np.sqrt(2 / 40_000)
    C = slice(-model.drift.C.size, None)
    assert np.abs(found.observed[C, C]).max() > 0.01 * np.abs(found.observed).max()


def test_sampled_scores_of_a_driven_model_are_its_pullback():
    model, s = MODELS["one gate"], stimulus(12)
    x = model.sample(np.zeros(2), 12, seed=1, inputs=s).observations
    drawn = smooth(rbpf(model, x, inputs=s, target="exact"), paths=3, states_per_path=2)
    found = louis_terms(model, drawn.codes, drawn.states, inputs=s)
    z, after, codes = drawn.states[:, :, :-1], drawn.states[:, :, 1:], drawn.codes[:, None]
    J, b = model.drift.affine(codes)
    error = after - (J @ z[..., None])[..., 0] - b - s[:-1] @ model.drift.C.T
    error = error / model.process_variances
    own = model.drift.pullback(z, np.broadcast_to(codes, (*z.shape[:-1], 1)), error).sum(axis=2)
    C = np.einsum("skti,tj->skij", error, s[:-1]).reshape(*own.shape[:2], -1)
    scores = np.concatenate([own, C], axis=-1)
    np.testing.assert_allclose(found.scores, scores, atol=1e-10 * np.abs(scores).max())
    assert found.trace_complete == pytest.approx(np.trace(found.complete), rel=1e-12)
    vector = np.random.default_rng(0).standard_normal(scores.shape[-1])
    np.testing.assert_allclose(
        found @ vector, found.observed @ vector, atol=1e-9 * np.abs(found.observed).max()
    )
    # the block of C in the complete information: the inputs' own second moments, over Q
    block = found.complete[-6:, -6:]
    expected = np.kron(np.diag(1 / model.process_variances), s[:-1].T @ s[:-1])
    np.testing.assert_allclose(block, expected, rtol=1e-12, atol=1e-12)


def test_both_geometries_of_a_driven_model_side_by_side():
    model, s = MODELS["one gate"], stimulus(40)
    x = model.sample(np.zeros(2), 40, seed=1, inputs=s).observations
    found = compare_geometries(model, x, 5, inputs=s, passes=2, paths=4, particles=50, target="exact")
    assert found.figures["parameters"] == model.drift.theta.size == 21
    np.testing.assert_allclose(found.itf, itf_fisher(model, x, 5, model.observation, inputs=s))
    # two ungated units: A_ii and W_ii are collinear, whatever drives the model
    assert found.figures["null"] == 2
    assert found.identifiable.itf_eigenvalues.size == 19
    alone = mismatch(found.itf, found.observed.observed / 40, input_dim=2, project=True)
    assert alone.null == 2
    assert alone.logdet_gap == pytest.approx(found.identifiable.logdet_gap, rel=1e-9)
    drawn = laplace(model, found.observed.complete, prior_std=1.0).sample(2, seed=0)
    assert all(np.abs(one.C - model.drift.C).max() > 0 for one in drawn)


def test_wrong_inputs_are_named():
    model, s = MODELS["one gate"], stimulus(7)
    x, codes, _ = case(model)
    still = diagonal_model(1)
    calls = [
        lambda m, **how: itf_fisher(m, x, 3, 0.2, **how),
        lambda m, **how: itf_trace(m, x, 3, 0.2, **how),
        lambda m, **how: ITFOperator(m, x, 3, 0.2, **how),
        lambda m, **how: path_information(m, x, codes, **how),
        lambda m, **how: paper_path_derivatives(m, x, codes, **how),
        lambda m, **how: observed_information(m, x, **how),
        lambda m, **how: compare_geometries(m, x, 3, **how),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"inputs must be given, \(7, 2\)"):
            call(model)
        with pytest.raises(ValueError, match=r"inputs must be \(7, 2\)"):
            call(model, inputs=s[:-1])
        with pytest.raises(ValueError, match="inputs must be None"):
            call(still, inputs=s)
    with pytest.raises(ValueError, match="input_dim must be"):
        mismatch(np.eye(3), np.eye(3), input_dim=-1)
