"""Louis' identity over all gate paths of tiny models, against automatic Hessians of the enumerated
evidence."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from geometry.test_path_information import MODELS, case, diagonal_model, differ, full_model, network
from jax.scipy.special import logsumexp
from oracles.dense_paths import enumerated
from oracles.path_likelihood import all_codes, derivatives, grid_of_inputs, log_likelihood

from palrnn import PALRNN, paper_path_derivatives, path_information

# sums over at most a few hundred paths of numbers that are themselves good to 1e-12
CLOSE = 1e-9


def mixture(parts, weights):
    """Return score and observed information of a mixture: E[I] - Cov(s), with weights that sum to one."""
    scores, information = np.stack([part[0] for part in parts]), np.stack([part[1] for part in parts])
    mean = weights @ scores
    spread = (scores - mean) * np.sqrt(weights)[:, None]
    return mean, np.tensordot(weights, information, axes=1) - spread.T @ spread


def normalised(logs):
    return np.exp(logs - logsumexp(logs))


@pytest.mark.parametrize(
    ("name", "gaps"),
    [
        # one path, as in test_path_information, and one gate without gaps: the others do more; the shallow
        # PLRNN without its clipped form, which has the same parts twice (with inputs: test_driven_geometry)
        pytest.param("no gates", True, marks=pytest.mark.slow),
        pytest.param("one gate", False, marks=pytest.mark.slow),
        ("one gate", True),
        ("full noise", True),
        pytest.param("shallow", False, marks=pytest.mark.slow),
        ("clipped shallow", False),
    ],
)
def test_the_exact_target_gives_the_hessian_of_its_evidence(name, gaps):
    """The integral over gate inputs is a sum over a grid, on both sides: the identity holds for any
    weights."""
    model = MODELS[name]
    gated = model.drift.gated
    times = 3 if gated < 2 else 2
    x, _, _ = case(model, times=times, gaps=False)
    if gaps:
        x[-1, 0] = np.nan
    inputs, logs = grid_of_inputs(times - 1, gated) if gated else (np.zeros((1, times - 1, 0)), np.zeros(1))
    codes = (inputs > 0).astype(float)
    f = jax.vmap(log_likelihood(model, x, with_inputs=gated > 0), in_axes=(None, 0, 0))
    value, gradient, information = derivatives(
        lambda theta: logsumexp(f(theta, codes, inputs) + logs), jnp.asarray(model.drift.theta)
    )
    found = [path_information(model, x, c, u if gated else None) for c, u in zip(codes, inputs, strict=True)]
    joint = np.array([part.log_likelihood for part in found]) + logs
    assert logsumexp(joint) == pytest.approx(value, rel=1e-11)
    score, observed = mixture([(part.score, part.observed) for part in found], normalised(joint))
    assert differ(score, gradient) < CLOSE
    assert differ(observed, information) < CLOSE


def test_the_grid_of_gate_inputs_is_the_evidence_of_the_model():
    # the same number by orthant probabilities, which are good to about 1e-4 themselves
    model = MODELS["one gate"]
    x, _, _ = case(model, times=3, gaps=False)
    inputs, logs = grid_of_inputs(2, 1, points=12, reach=8.0)
    values = [path_information(model, x, u > 0, u).log_likelihood for u in inputs]
    assert logsumexp(np.array(values) + logs) == pytest.approx(
        np.log(enumerated(model, x, "exact").evidence), abs=1e-4
    )


@pytest.mark.parametrize(
    "model",
    [diagonal_model(1), pytest.param(full_model(2), marks=pytest.mark.slow)],
    ids=["one gate", "two gates, full noise"],
)
def test_the_papers_target_gives_its_recipe_and_its_own_hessian(model):
    """Its recipe is the Hessian with the chances of the gates held fixed; the true one lets them move."""
    times = 3 if model.drift.gated == 2 else 4
    x, _, _ = case(model, times=times, gaps=False)
    x[2, 0] = np.nan
    codes, theta = all_codes(times - 1, model.drift.gated), jnp.asarray(model.drift.theta)
    none = np.zeros_like(codes)
    whole = jax.vmap(log_likelihood(model, x, with_gates=True), in_axes=(None, 0, 0))
    states = jax.vmap(log_likelihood(model, x), in_axes=(None, 0, 0))
    chances = np.asarray(whole(theta, codes, none) - states(theta, codes, none))
    recipe = derivatives(lambda theta: logsumexp(states(theta, codes, none) + chances), theta)
    truth = derivatives(lambda theta: logsumexp(whole(theta, codes, none)), theta)
    assert recipe[0] == pytest.approx(np.log(enumerated(model, x, "paper").evidence), rel=1e-9)

    given = [path_information(model, x, path) for path in codes]
    weights = normalised(np.array([part.log_likelihood for part in given]) + chances)
    score, observed = mixture([(part.score, part.observed) for part in given], weights)
    assert differ(score, recipe[1]) < CLOSE
    assert differ(observed, recipe[2]) < CLOSE

    moved = [paper_path_derivatives(model, x, path) for path in codes]
    np.testing.assert_allclose([part.log_weight for part in moved], whole(theta, codes, none), rtol=1e-11)
    score, observed = mixture([(part.gradient, part.information) for part in moved], weights)
    assert differ(score, truth[1]) < CLOSE
    # fourth-order differences of exact gradients with steps of 1e-3
    assert differ(observed, truth[2]) < 1e-8
    # and the two are not the same
    assert differ(recipe[2], truth[2]) > 1e-3


def test_gates_with_parameters_move_in_the_papers_target_too():
    model = MODELS["shallow"]
    x, codes, _ = case(model, times=4)
    f = log_likelihood(model, x, with_gates=True)
    value, gradient, information = derivatives(
        lambda theta: f(theta, codes.astype(float), np.zeros(codes.shape)), jnp.asarray(model.drift.theta)
    )
    found = paper_path_derivatives(model, x, codes)
    assert found.log_weight == pytest.approx(value, rel=1e-11)
    assert differ(found.gradient, gradient) < CLOSE
    assert differ(found.information, information) < 1e-8


def test_hard_gates_have_no_derivatives():
    model = PALRNN(network(), 0.3, 0.3, 0.0)
    x, codes, _ = case(model)
    with pytest.raises(ValueError, match="gate_std must be greater than 0"):
        paper_path_derivatives(model, x, codes)
