"""Measurements of a model that external inputs drive: along the given drive, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.networks import random_network
from oracles.shallow_family import random_shallow

from palrnn import PALRNN, lyapunov_spectrum, prediction_error, quantities_of_interest, viability
from palrnn.data.systems import make_system
from palrnn.invariants import scorecard
from palrnn.invariants.free_run import free_run
from palrnn.model import engine
from palrnn.model.inputs import driven

RNG = np.random.default_rng(2)
C, S = RNG.standard_normal((4, 1)), RNG.standard_normal((400, 1))
MODELS = {
    "alrnn": driven(random_network(4, 2, 2, seed=3, gain=0.5), C),
    "shallow": driven(random_shallow(4, 2, 5, seed=2), 0.3 * C),
}
every_family = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())
X = MODELS["alrnn"].rollout([0.1, -0.2], 400, inputs=S).states[:, :2]


@every_family
def test_a_free_run_repeats_its_inputs_where_it_outlasts_them(model):
    made = free_run(model, X[0], 30, 10, inputs=S[:15])
    again = model.rollout(X[0], 40, inputs=np.tile(S[:15], (3, 1))[:40]).states[10:]
    np.testing.assert_array_equal(made.states, again)
    noisy = PALRNN(model, 1e-12, 1e-12, 0.0)
    np.testing.assert_allclose(free_run(noisy, X[0], 30, 10, inputs=S[:15]).states, again, atol=1e-8)


@every_family
def test_lyapunov_exponents_are_those_along_the_drive(model):
    found = lyapunov_spectrum(model, X[0], inputs=S, steps=300, discard=0, dt=1.0, seed=4)
    # the sum of all exponents is the mean log determinant along the same states
    z, logs = model.embed(X[0]), []
    for t in range(300):
        logs.append(np.linalg.slogdet(engine.jacobian(model, z))[1])
        z = model.step(z, inputs=S[t])
    assert found.exponents.sum() == pytest.approx(np.mean(logs), rel=1e-9)
    other = lyapunov_spectrum(model, X[0], inputs=-3.0 * S, steps=300, discard=0, dt=1.0, seed=4)
    assert other.exponents.sum() != pytest.approx(np.mean(logs), rel=1e-6)


def test_forecasts_of_the_driven_model_that_made_the_data_are_exact_and_without_the_drive_are_not():
    model = MODELS["alrnn"]
    x = model.rollout([0.1, -0.2], 300, inputs=S[:300]).states
    whole = driven(random_network(4, 4, 2, seed=3, gain=0.5), C)  # all units are seen
    whole = type(whole)(model.A, model.W, model.h, np.eye(4), 2, C)
    assert prediction_error(whole, x, 5, inputs=S[:300], dt=1.0).mse.max() < 1e-20
    assert prediction_error(whole, x, 5, inputs=np.roll(S[:300], 1), dt=1.0).mse.min() > 1e-3


@every_family
def test_viability_runs_each_start_along_its_own_inputs(model):
    starts, drives = X[:12], np.stack([np.roll(S, -k, axis=0) for k in range(12)])
    assert viability(model, starts, 1000, inputs=drives).alive == 12
    # inputs of 400 steps that are repeated make its answer repeat itself: no cycle of its own
    assert viability(model, starts, 20_000, inputs=drives).alive == 12
    # nothing drives it any longer: the network contracts and comes to rest
    still = viability(model, starts, 1000, inputs=np.zeros((5, 1)))
    assert {fate.outcome for fate in still.fates} == {"rests"}


def test_the_score_card_of_the_model_that_made_the_data_is_at_its_floor():
    model = MODELS["alrnn"]
    card = scorecard(
        model, X, inputs=S, dt=1.0, steps=200, discard=0, pairs=4, long_steps=1000, n=3, bins=6, k=1
    )
    # the run from the first row along the same inputs is the reference itself
    assert card.hard.dstsp.value < card.dstsp_floor.high
    assert card.hard.lyapunov.largest < 0
    assert card.viability.alive == 10
    without = quantities_of_interest(model, X[:200], inputs=np.zeros((200, 1)), dt=1.0, discard=0, bins=6)
    assert without.dstsp.value > 3 * card.hard.dstsp.value


def test_a_gap_at_the_start_moves_the_inputs_with_it():
    model, gappy = MODELS["alrnn"], X.copy()
    gappy[:3] = np.nan
    found = quantities_of_interest(model, gappy[:100], inputs=S[:100], dt=1.0, discard=0, steps=50)
    expected = model.rollout(X[3], 50, inputs=S[3:53]).states
    np.testing.assert_array_equal(found.states, expected)


def test_inputs_that_do_not_fit_are_refused_by_name():
    model = MODELS["alrnn"]
    with pytest.raises(ValueError, match="inputs must be given"):
        lyapunov_spectrum(model, X[0], steps=50)
    with pytest.raises(ValueError, match=r"inputs must be \(400, 1\)"):
        prediction_error(model, X, 3, inputs=S[:399])
    with pytest.raises(
        ValueError, match=r"inputs must be \(T, 1\) or \(10, T, 1\), one series for each start"
    ):
        viability(model, X[:10], 1000, inputs=np.zeros((9, 5, 1)))
    with pytest.raises(ValueError, match="inputs must be given"):
        quantities_of_interest(model, X)
    with pytest.raises(ValueError, match="inputs must be None"):
        free_run(random_network(4, 2, 2), X[0], 5, inputs=S)
    with pytest.raises(ValueError, match="reference must be a series, with its inputs"):
        scorecard(driven(random_network(4, 3, 2), C), make_system("lorenz63"))
