"""The M-step of any family: against that of the AL-RNN, against differences, with gates of its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from oracles.shallow_family import Shallow, covariance
from scipy.optimize import check_grad

from palrnn import ALRNN, PALRNN, Noise, ObservationMap, SAEMConfig, saem
from palrnn.engine.progress import quiet
from palrnn.forcing import itf_loss
from palrnn.tuning.anchor import anchored_solution
from palrnn.tuning.mstep import drift_solution, noise_solution, process_moments
from palrnn.tuning.samples import SampleStatistics, expected_loss
from palrnn.tuning.statistics import sufficient_statistics


@dataclass(frozen=True, eq=False)
class Thresholds(Shallow):
    """The shallow PLRNN, with the derivative of its gates."""

    def with_theta(self, theta):
        return Thresholds(**vars(super().with_theta(theta)))

    def gate_pullback(self, z, r):
        inner = (r[..., :, None] * z[..., None, :]).reshape(*r.shape[:-1], -1)
        none = np.zeros((*r.shape[:-1], self.A.size + self.W1.size))
        return np.concatenate([none, inner, np.zeros_like(z), r], axis=-1)


def shallow(rng, latent=3, gated=4, observed=2, gate_std=0.5):
    drift = Thresholds(
        rng.uniform(0.3, 0.6, latent),
        0.4 * rng.standard_normal((latent, gated)),
        0.7 * rng.standard_normal((gated, latent)),
        0.2 * rng.standard_normal(latent),
        0.3 * rng.standard_normal(gated),
        observed,
    )
    return PALRNN(drift, Noise.full(covariance(latent, 0.4, rng)), 0.2, gate_std)


def statistics_of(model, steps=400, seed=1):
    """Statistics of states and codes that the model drew, as if they had been smoothed."""
    drawn = model.sample(np.zeros(model.drift.observed_dim), steps, seed=seed)
    return sufficient_statistics(model, drawn.observations, drawn.codes[None], drawn.states[None, None])


def twin_statistics(process):
    """The statistics of one AL-RNN in both forms."""
    rng = np.random.default_rng(0)
    W, E = 0.2 * rng.standard_normal((5, 5)), rng.standard_normal((5, 2))
    model = PALRNN(ALRNN(np.full(5, 0.5), W, 0.1 * rng.standard_normal(5), E, 2), process, 0.3, 0.5)
    drawn = model.sample(np.zeros(2), 200, seed=3)
    sums = statistics_of(model, 200, seed=3)
    common = {
        name: value
        for name, value in sums.arrays().items()
        if name not in ("gram", "cross", "square", "outer")
    }
    samples = SampleStatistics.of(model.drift, drawn.codes[None], drawn.states[None, None], common)
    return model, sums, samples


@pytest.mark.parametrize("kind", ["isotropic", "full"])
@pytest.mark.parametrize("ridge", [0.0, 1e-2])
def test_samples_and_sums_of_an_alrnn_have_the_same_solution(kind, ridge):
    process = (
        Noise.full(covariance(5, 0.4, np.random.default_rng(1))) if kind == "full" else Noise.isotropic(0.4)
    )
    model, sums, samples = twin_statistics(process)
    towards = 0.9 * model.drift.theta if ridge else None
    one, other = (drift_solution(found, model, ridge=ridge, towards=towards) for found in (sums, samples))
    # A_ii and W_ii of ungated units are collinear: compare what they predict; normal equations lose some
    # digits
    np.testing.assert_allclose(
        np.diag(one.A) + one.W[:, :5],
        np.diag(other.A) + other.W[:, :5],
        atol=1e-7 if kind == "full" else 1e-9,
    )
    np.testing.assert_allclose(one.h, other.h, atol=1e-7 if kind == "full" else 1e-9)
    for kind_of_noise in ("isotropic", "diagonal", "full"):
        for mine, theirs in zip(
            *(
                noise_solution(found, one, kind=kind_of_noise, tied_start=True, floor=1e-4)
                for found in (sums, samples)
            ),
            strict=True,
        ):
            assert mine.kind == kind_of_noise
            np.testing.assert_allclose(mine.values, theirs.values, rtol=1e-9)


def test_rows_solved_together_beat_rows_solved_one_by_one_under_full_noise():
    process = Noise.full(covariance(5, 0.4, np.random.default_rng(1)))
    model, sums, samples = twin_statistics(process)
    alone = drift_solution(sums, PALRNN(model.drift, 0.4, 0.3, 0.5), ridge=1e-2)
    together = drift_solution(sums, model, ridge=1e-2)
    loss = expected_loss(samples, model, 1e-2, None)
    assert loss(together.theta)[0] < loss(alone.theta)[0] - 1e-6
    # at the minimum the gradient vanishes
    assert np.abs(loss(together.theta)[1]).max() < 1e-8
    assert np.abs(together.rows - alone.rows).max() > 1e-4


def test_the_loss_of_a_family_with_gates_has_the_gradient_of_its_differences():
    model = shallow(np.random.default_rng(2))
    loss = expected_loss(statistics_of(model, 50), model, 1e-2, np.ones(model.drift.theta.size))
    theta = model.drift.theta + 0.1
    # forward differences are good to about 1e-7 of slopes of order 10
    assert check_grad(lambda t: loss(t)[0], lambda t: loss(t)[1], theta) < 1e-4


@pytest.mark.parametrize("steps", [1, 5, 100])
def test_a_step_lowers_the_expected_loss_and_many_come_near_the_truth(steps):
    rng = np.random.default_rng(3)
    truth = shallow(rng)
    statistics = statistics_of(truth, 3000)
    start = truth.with_drift(truth.drift.with_theta(truth.drift.theta + 0.2 * rng.standard_normal(34)))
    loss = expected_loss(statistics, truth, 0.0, None)
    found = drift_solution(statistics, start, ridge=0.0, steps=steps)
    assert loss(found.theta)[0] < loss(start.drift.theta)[0]
    if steps == 100:
        # 3000 steps of 3 units tell 34 parameters: half of that many over 3000 is what the truth loses by
        # chance
        assert loss(found.theta)[0] < loss(truth.drift.theta)[0] + 34 / 2 / 3000


def test_gates_without_noise_cannot_be_learned():
    model = shallow(np.random.default_rng(4), gate_std=0.0)
    with pytest.raises(ValueError, match="gate_std must be above 0"):
        drift_solution(statistics_of(model), model, ridge=0.0)


def test_residuals_of_samples_are_weighed():
    model = shallow(np.random.default_rng(5))
    one, other = statistics_of(model, 60, seed=1), statistics_of(model, 60, seed=2)
    mixed = one.averaged(other, 0.25)
    parts = [process_moments(found, model.drift) for found in (one, other)]
    np.testing.assert_allclose(
        process_moments(mixed, model.drift), 0.75 * parts[0] + 0.25 * parts[1], rtol=1e-12
    )
    np.testing.assert_allclose(mixed.residual, 0.75 * one.residual + 0.25 * other.residual, rtol=1e-12)
    assert len(mixed.weights) == 118
    # what hardly weighs any more is forgotten
    assert len(mixed.averaged(other, 0.9999).weights) == 59


def test_the_anchor_of_any_family_trades_evidence_for_the_forcing_loss():
    rng = np.random.default_rng(6)
    model = shallow(rng)
    drawn = model.sample(np.zeros(2), 240, seed=1)
    statistics = sufficient_statistics(model, drawn.observations, drawn.codes[None], drawn.states[None, None])
    start = model.with_drift(model.drift.with_theta(model.drift.theta + 0.1 * rng.standard_normal(34)))
    x = drawn.observations.reshape(6, 40, 2)
    losses = [
        itf_loss(anchored_solution(statistics, start, x, forcing=5, beta=beta, ridge=1e-2, steps=100), x, 5)
        for beta in (0.0, 10.0, 1000.0)
    ]
    assert losses[0] > losses[1] > losses[2]


@pytest.mark.parametrize("robbins_monro", [False, True])
def test_another_family_with_full_noise_and_a_map_is_tuned(robbins_monro):
    rng = np.random.default_rng(7)
    truth = shallow(rng, latent=2, gated=2, observed=2)
    reads = ObservationMap(np.array([[1.0, 0.3], [0.0, 1.0]]), np.array([0.1, -0.2]))
    truth = PALRNN(truth.drift, truth.process, Noise.full(covariance(2, 0.2, rng)), 0.5, None, reads)
    data = truth.sample(np.zeros(2), 201, seed=1).observations
    start = PALRNN(truth.drift, 1.0, 0.6, 0.5, None, reads)
    config = SAEMConfig(
        length=40,
        iterations=6,
        windows=4,
        particles=16,
        paths=2,
        blend=1.0,
        noise="full",
        robbins_monro=robbins_monro,
    )
    result = saem(start, data, config, progress=quiet, threads=1, heldout=data)
    tuned = result.model
    assert (tuned.process.kind, tuned.observation.kind) == ("full", "full")
    assert tuned.observation_map is reads
    assert result.history["heldout_evidence"][-1] > result.history["heldout_evidence"][0] + 0.2
