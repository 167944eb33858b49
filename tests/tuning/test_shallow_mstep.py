"""The M-step of both shallow families: its objective against JAX, and that it goes down."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from model.test_shallow import mapped
from oracles.shallow_family import random_shallow

from palrnn import PALRNN, SAEMConfig, saem
from palrnn.engine.progress import quiet
from palrnn.tuning.mstep import drift_solution
from palrnn.tuning.samples import expected_loss
from palrnn.tuning.statistics import sufficient_statistics

jax.config.update("jax_enable_x64", True)
both_forms = pytest.mark.parametrize("clipped", [False, True], ids=["plain", "clipped"])
either_form = pytest.mark.parametrize(
    "clipped", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["plain", "clipped"]
)


def drawn(clipped, steps, seed=2):
    """A model and the statistics of states and codes that it drew itself, as if they had been smoothed."""
    model = PALRNN(random_shallow(3, 2, 4, seed=seed, clipped=clipped), 0.3, 0.2, 0.5)
    sample = model.sample(np.zeros(2), steps, seed=1)
    states = sample.states[None, None]
    return model, sufficient_statistics(model, sample.observations, sample.codes[None], states), sample


@either_form
def test_its_objective_and_gradient_equal_automatic_differentiation(clipped):
    model, statistics, sample = drawn(clipped, 40)
    z, after, codes = sample.states[:-1], sample.states[1:], sample.codes
    M, H, ridge = 3, 4, 1e-2

    def objective(theta):
        A, W1, W2, h1, h2 = jnp.split(theta, np.cumsum([M, M * H, M * H, M]))
        u = z @ W2.reshape(H, M).T
        inputs = jnp.concatenate([u + h2, u], axis=1) if clipped else u + h2
        hidden = codes[:, :H] * (u + h2) - (codes[:, H:] * u if clipped else 0.0)
        error = after - (A * z + hidden @ W1.reshape(M, H).T + h1)
        gates = jax.scipy.special.log_ndtr(jnp.where(codes, 1.0, -1.0) * inputs / model.gate_std)
        spread = 0.5 * (error**2).sum(axis=1) / 0.3**2
        return (spread - gates.sum(axis=1)).mean() + 0.5 * ridge / 0.3**2 * (theta**2).sum()

    theta = model.drift.theta + 0.1
    value, slope = expected_loss(statistics, model, ridge, None)(theta)
    expected, gradient = jax.value_and_grad(objective)(jnp.asarray(theta))
    assert value == pytest.approx(float(expected), rel=1e-12)
    np.testing.assert_allclose(slope, gradient, rtol=0, atol=1e-9 * float(np.abs(gradient).max()))
    # hard codes of the states themselves make the map of the network
    hard = model.drift.with_theta(theta)
    J, b = hard.affine(hard.codes(z))
    np.testing.assert_allclose((J @ z[..., None])[..., 0] + b, mapped(theta, hard, z), atol=1e-12)


@both_forms
@pytest.mark.parametrize("steps", [1, 60])
def test_it_raises_the_expected_log_likelihood_and_comes_near_the_truth(clipped, steps):
    truth, statistics, _ = drawn(clipped, 3000)
    size = truth.drift.theta.size
    start = truth.with_drift(
        truth.drift.with_theta(truth.drift.theta + 0.2 * np.random.default_rng(3).standard_normal(size))
    )
    loss = expected_loss(statistics, truth, 0.0, None)
    found = drift_solution(statistics, start, ridge=0.0, steps=steps)
    assert loss(found.theta)[0] < loss(start.drift.theta)[0]
    if steps == 60:
        # 3000 transitions: half a nat for each parameter is what the truth loses by chance
        assert loss(found.theta)[0] < loss(truth.drift.theta)[0] + size / 2 / 3000


@pytest.mark.slow
@either_form
def test_evidence_rises_from_a_wrong_start(clipped):
    truth, _, sample = drawn(clipped, 400)
    wrong = truth.with_drift(truth.drift.with_theta(0.5 * truth.drift.theta))
    config = SAEMConfig(
        target="exact", iterations=4, windows=12, length=20, particles=64, heldout_windows=12, blend=1.0
    )
    x = sample.observations
    history = saem(wrong, x[:250], config, heldout=x[250:], seed=1, progress=quiet, threads=1).history
    assert history["heldout_evidence"][-1] > history["heldout_evidence"][0]
