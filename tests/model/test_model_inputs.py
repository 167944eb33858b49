"""External inputs: theta with C at its end, runs under a drive, checkpoints, and what is refused."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from oracles.networks import random_network
from oracles.shallow_family import random_shallow

from palrnn import PALRNN, ShallowPLRNN, check_surrogate
from palrnn.model import checkpoint_bytes, checkpoint_from_bytes, engine
from palrnn.model.families.alrnn_layout import identifiable_basis, null_units, row_indices
from palrnn.model.inputs import checked_inputs, checked_trial_inputs, driven, input_pullback, offsets

RNG = np.random.default_rng(7)
C = RNG.standard_normal((4, 2))
S = RNG.standard_normal((9, 2))
MODELS = {
    "alrnn": driven(random_network(4, 2, 2, seed=1), C),
    "shallow": driven(random_shallow(4, 2, 5, seed=2), C),
    "clipped": driven(random_shallow(4, 2, 5, seed=2, clipped=True), C),
}
every_family = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())


def plain_states(model, z, s, steps):
    """F(z) + C s by the affine pieces, one step after the other."""
    states = [z]
    for t in range(steps - 1):
        J, b = model.affine(engine.codes(model, states[-1]))
        states.append(J @ states[-1] + b + model.C @ s[t])
    return np.array(states)


@every_family
def test_a_driven_model_keeps_the_contract_and_has_C_last_in_theta(model):
    check_surrogate(model)
    assert model.input_dim == 2
    assert "input_dim=2" in repr(model)
    np.testing.assert_array_equal(model.theta[-8:], C.ravel())
    moved = model.with_theta(model.theta + 1.0)
    np.testing.assert_array_equal(moved.C, C + 1.0)
    np.testing.assert_array_equal(copy.deepcopy(model).C, C)
    np.testing.assert_array_equal(model.with_embedding(model.embedding).C, C)


@every_family
def test_without_inputs_nothing_changes(model):
    alone = driven(model, np.zeros((4, 0)))
    assert alone.input_dim == 0
    assert alone.C is None
    assert "C" not in alone.arrays()
    np.testing.assert_array_equal(alone.theta, model.theta[:-8])


@every_family
def test_runs_under_a_drive_follow_F_plus_C_s(model):
    z = 0.3 * RNG.standard_normal(4)
    expected = plain_states(model, z, S, 9)
    np.testing.assert_allclose(model.rollout_from(z, 9, inputs=S).states, expected, rtol=1e-12, atol=1e-12)
    late = model.rollout_from(z, 5, 4, inputs=S).states
    np.testing.assert_allclose(late, expected[4:], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(model.step(z, inputs=S[0]), expected[1], rtol=1e-12, atol=1e-12)
    # two runs side by side, each under its own drive, or both under one
    two = np.stack([z, -z])
    both = engine.advance(model, two, 3, offsets(model, np.stack([S[:3], S[3:6]], axis=1)))
    for k, part in enumerate((S[:3], S[3:6])):
        np.testing.assert_allclose(
            both[:, k], plain_states(model, two[k], part, 4)[1:], rtol=1e-12, atol=1e-12
        )
    shared = engine.advance(model, two, 3, offsets(model, S[:3])[:, None])
    np.testing.assert_allclose(shared[:, 0], both[:, 0], rtol=1e-12, atol=1e-12)


@every_family
def test_the_plain_engine_runs_as_the_fast_one(model):
    z = 0.3 * RNG.standard_normal((2, 4))
    pushes = offsets(model, S)
    plain = engine.rollout_from.dispatch(object)(model, z[0], 6, 3, pushes).states
    np.testing.assert_allclose(
        plain, engine.rollout_from(model, z[0], 6, 3, pushes).states, rtol=1e-12, atol=1e-12
    )
    plain = engine.advance.dispatch(object)(model, z, 9, pushes[:, None])
    np.testing.assert_allclose(plain, engine.advance(model, z, 9, pushes[:, None]), rtol=1e-12, atol=1e-12)


@every_family
def test_samples_without_noise_are_the_driven_run(model):
    pal = PALRNN(model, 1e-12, 1e-12, 0.0)
    x1 = np.array([0.2, -0.1])
    sample = pal.sample(x1, 9, inputs=S)
    np.testing.assert_allclose(sample.states, model.rollout(x1, 9, inputs=S).states, atol=1e-9)


@every_family
def test_a_checkpoint_holds_C(model):
    pal = PALRNN(model, 0.1, 0.1, 0.1)
    for one in (model, pal):
        again = checkpoint_from_bytes(checkpoint_bytes(one)).drift
        np.testing.assert_array_equal(again.C, C)
        assert again.input_dim == 2


def test_a_checkpoint_of_an_autonomous_model_has_no_C():
    assert b"model.C" not in checkpoint_bytes(driven(MODELS["alrnn"], np.zeros((4, 0))))


def test_rows_by_unit_have_C_at_their_ends():
    model = MODELS["alrnn"]
    np.testing.assert_array_equal(model.theta[row_indices(4, 2)], model.rows)
    np.testing.assert_array_equal(model.with_rows(model.rows + 1.0).theta, model.theta + 1.0)


def test_null_directions_are_found_beside_the_entries_of_C():
    model = MODELS["alrnn"]
    size = model.theta.size
    G = RNG.standard_normal((size, size))
    for i in (0, 1):  # the ungated units: A_ii and W_ii act alike
        G[:, 4 + i * 5] = G[:, i]
    F = G.T @ G
    assert null_units(F, inputs=2).tolist() == [0, 1]
    basis = identifiable_basis(size, np.array([0, 1]), 2).toarray()
    assert basis.shape == (size, size - 2)
    np.testing.assert_allclose(basis.T @ basis, np.eye(size - 2), atol=1e-12)
    null = np.zeros(size)
    null[[0, 4]] = 1.0, -1.0
    np.testing.assert_allclose(null @ basis, 0.0, atol=1e-12)


def test_the_pullback_of_the_inputs_is_an_outer_product():
    r = RNG.standard_normal((9, 4))
    found = input_pullback(S, r)
    assert found.shape == (9, 8)
    np.testing.assert_array_equal(found[3].reshape(4, 2), np.outer(r[3], S[3]))


def test_inputs_that_do_not_fit_are_refused_by_name():
    model, alone = MODELS["alrnn"], random_network(4, 2, 2, seed=1)
    with pytest.raises(ValueError, match=r"inputs must be given, \(9, 2\): the model is driven by 2 inputs"):
        model.rollout([0.0, 0.0], 9)
    with pytest.raises(ValueError, match=r"inputs must be \(9, 2\), one row .* got \(8, 2\)"):
        model.rollout([0.0, 0.0], 9, inputs=S[:8])
    with pytest.raises(ValueError, match=r"inputs must be \(9, 2\), .* got \(9, 1\)"):
        model.rollout([0.0, 0.0], 9, inputs=S[:, :1])
    with pytest.raises(ValueError, match=r"inputs must be None, got ndarray: the model takes no inputs"):
        alone.rollout([0.0, 0.0], 9, inputs=S)
    with pytest.raises(ValueError, match=r"inputs must be finite, got nan at index \(0, 1\)"):
        checked_inputs(model, [[0.0, np.nan]], 1)
    with pytest.raises(ValueError, match=r"inputs must be \(\.\.\., 2\)"):
        model.step(np.zeros((3, 4)), inputs=np.zeros((2, 2)))
    with pytest.raises(ValueError, match="C must have shape"):
        driven(alone, np.zeros((3, 2)))
    with pytest.raises(ValueError, match="C must be finite"):
        ShallowPLRNN(np.ones(1), [[1.0]], [[1.0]], [0.0], [0.0], C=[[np.nan]])


def test_trials_take_a_list_of_inputs():
    model = MODELS["alrnn"]
    parts = checked_trial_inputs(model, [S, S[:4]], [9, 4])
    assert [len(part) for part in parts] == [9, 4]
    assert checked_trial_inputs(random_network(4, 2, 2, seed=1), None, [9, 4]) == [None, None]
    with pytest.raises(ValueError, match="inputs must hold one series for each of 2 trials, got 1"):
        checked_trial_inputs(model, S, [9, 4])
    with pytest.raises(ValueError, match=r"inputs\[1\] must be \(5, 2\)"):
        checked_trial_inputs(model, [S, S[:4]], [9, 5])
