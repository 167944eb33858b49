"""The PAL-RNN: its samples follow the law that filtering assumes."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.networks import networks, random_network
from scipy.stats import norm

from palrnn.model import ALRNN, PALRNN, Noise

STEPS = 20_000


def _model(gate_std=0.7, process_std=0.1, observation_std=0.2, gated=3):
    return PALRNN(random_network(5, 2, gated, seed=3, gain=0.5), process_std, observation_std, gate_std)


def _residuals(model, sample):
    """What is left of each state after the drift of its own code."""
    drift = model.drift
    gates = np.ones((len(sample.states) - 1, drift.latent_dim))
    gates[:, drift.latent_dim - drift.gated :] = sample.codes
    before = np.asarray(sample.states)[:-1]
    predicted = drift.A * before + (gates * before) @ drift.W.T + drift.h
    return np.asarray(sample.states)[1:] - predicted


def test_the_process_noise_is_white_with_the_stated_deviations():
    deviations = np.array([0.1, 0.2, 0.3, 0.05, 0.4])
    model = _model(process_std=deviations)
    scaled = _residuals(model, model.sample([0.0, 0.0], STEPS, seed=1)) / deviations
    # four standard errors of a mean, a variance, a lag-one correlation and a correlation between units
    assert np.abs(scaled.mean(axis=0)).max() < 4 / np.sqrt(STEPS)
    assert np.abs(scaled.var(axis=0) - 1).max() < 4 * np.sqrt(2 / STEPS)
    assert np.abs((scaled[1:] * scaled[:-1]).mean(axis=0)).max() < 4 / np.sqrt(STEPS)
    assert np.abs(np.corrcoef(scaled.T) - np.eye(5)).max() < 4 / np.sqrt(STEPS)


def test_the_observations_are_the_first_states_with_white_noise():
    model = _model(observation_std=np.array([0.2, 0.7]))
    sample = model.sample([0.3, -0.4], STEPS, seed=2)
    np.testing.assert_array_equal(sample.observations[0], [0.3, -0.4])
    scaled = (sample.observations - sample.states[:, :2])[1:] / np.array([0.2, 0.7])
    assert np.abs(scaled.mean(axis=0)).max() < 4 / np.sqrt(STEPS)
    assert np.abs(scaled.var(axis=0) - 1).max() < 4 * np.sqrt(2 / STEPS)
    assert np.abs((scaled[1:] * scaled[:-1]).mean(axis=0)).max() < 4 / np.sqrt(STEPS)
    process = _residuals(model, sample)[:, :2]
    assert np.abs((scaled * process / 0.1).mean(axis=0)).max() < 4 / np.sqrt(STEPS)


@pytest.mark.parametrize("gate_std", [0.2, 0.7, 3.0])
def test_gates_open_as_often_as_the_probit_says(gate_std):
    model = _model(gate_std)
    sample = model.sample([0.0, 0.0], STEPS, seed=3)
    chances = norm.cdf(sample.states[:-1, 2:] / gate_std)
    for low in np.arange(0.0, 1.0, 0.1):
        inside = (chances >= low) & (chances < low + 0.1)
        if inside.sum() < 50:
            continue
        surprise = sample.codes[inside].sum() - chances[inside].sum()
        # four standard errors of a sum of independent bits
        assert abs(surprise) < 4 * np.sqrt((chances * (1 - chances))[inside].sum())


def test_gates_of_one_step_are_drawn_independently():
    model = _model(gate_std=2.0)
    sample = model.sample([0.0, 0.0], STEPS, seed=4)
    chances = norm.cdf(sample.states[:-1, 2:] / 2.0)
    scaled = (sample.codes - chances) / np.sqrt(chances * (1 - chances))
    assert np.abs(np.cov(scaled.T) - np.diag(np.diagonal(np.cov(scaled.T)))).max() < 4.5 / np.sqrt(STEPS)


def test_without_gate_noise_the_gates_are_hard():
    model = _model(gate_std=0.0)
    sample = model.sample([0.0, 0.0], 2000, seed=5)
    np.testing.assert_array_equal(sample.codes, model.drift.codes(sample.states[:-1]))
    assert sample.codes.any()
    assert not sample.codes.all()


def test_the_first_state_is_drawn_around_the_embedded_observation():
    x1 = np.array([0.5, -1.0])
    initial = np.array([0.1, 0.2, 0.3, 0.4, 0.5])
    model = PALRNN(random_network(5, 2, 3, gain=0.5), 0.1, 0.1, 0.7, initial=initial)
    starts = np.array([model.sample(x1, 2, seed=seed).states[0] for seed in range(3000)])
    scaled = (starts - model.drift.embed(x1)) / initial
    assert np.abs(scaled.mean(axis=0)).max() < 4 / np.sqrt(3000)
    assert np.abs(scaled.var(axis=0) - 1).max() < 4 * np.sqrt(2 / 3000)


def test_the_initial_deviation_is_the_process_deviation_unless_given():
    model = _model(process_std=0.3)
    np.testing.assert_allclose(model.initial_variances, np.full(5, 0.09), rtol=1e-15)
    assert model.initial is None


@given(networks(largest=5), st.integers(0, 100))
def test_samples_of_every_size_have_the_right_shapes(drift, seed):
    drift = drift.with_theta(drift.theta / (2 + np.abs(drift.W).sum()))
    sample = PALRNN(drift, 0.1, 0.1, 0.7).sample(np.zeros(drift.observed_dim), 7, seed)
    assert sample.states.shape == (7, drift.latent_dim)
    assert sample.codes.shape == (6, drift.gated)
    assert sample.observations.shape == (7, drift.observed_dim)
    assert sample.diverged_at is None


def test_the_same_seed_gives_the_same_sample_and_another_gives_another():
    model = _model()
    one = model.sample([0.0, 0.0], 50, seed=1)
    again = model.sample([0.0, 0.0], 50, seed=1)
    for name in ("states", "codes", "observations"):
        assert getattr(one, name).tobytes() == getattr(again, name).tobytes()
    assert not np.array_equal(model.sample([0.0, 0.0], 50, seed=2).states, one.states)


def test_a_sample_that_diverges_ends_before_and_tells_the_step():
    drift = ALRNN([3.0, 3.0], np.zeros((2, 2)), [0.0, 0.0], np.eye(2), 1)
    sample = PALRNN(drift, 0.1, 0.1, 0.7).sample([1.0, 1.0], 100)
    at = sample.diverged_at
    assert 20 <= at < 30
    assert (len(sample.states), len(sample.codes), len(sample.observations)) == (at, at - 1, at)
    assert np.isfinite(sample.states).all()
    assert np.isfinite(sample.observations).all()


def test_variances_are_one_per_coordinate_however_they_were_given():
    drift = random_network(3, 2, 1)
    model = PALRNN(drift, 0.5, [0.1, 0.2], 0.7, 2.0)
    np.testing.assert_array_equal(model.process_variances, [0.25, 0.25, 0.25])
    np.testing.assert_allclose(model.observation_variances, [0.01, 0.04], rtol=1e-15)
    np.testing.assert_array_equal(model.initial_variances, [4.0, 4.0, 4.0])
    model.process_variances[0] = 9.0
    assert model.process_variances[0] == 0.25


def test_another_drift_keeps_the_noise():
    model = _model()
    other = random_network(5, 2, 1, seed=9)
    moved = model.with_drift(other)
    assert moved.drift is other
    assert (moved.process.std, moved.gate_std) == (model.process.std, model.gate_std)


def test_a_model_cannot_be_changed_nor_its_copies():
    deviations = np.full(5, 0.1)
    model = _model(process_std=deviations)
    deviations[0] = 9.0
    for each in (model, pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        np.testing.assert_array_equal(each.process.std, np.full(5, 0.1))
        with pytest.raises(ValueError, match="read-only"):
            each.process.std[0] = 1.0
        with pytest.raises(ValueError, match="read-only"):
            each.drift.A[0] = 1.0
        with pytest.raises(FrozenInstanceError):
            each.gate_std = 1.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"drift": "model"}, "drift must be a Surrogate, got str"),
        ({"process": 0.0}, "process must be greater than 0, got 0"),
        ({"process": [0.1, 0.1]}, r"process must be one number or have shape \(3,\) or \(3, 3\), got \(2,\)"),
        ({"process": [0.1, -0.1, 0.1]}, "process must be greater than 0, got -0.1"),
        ({"process": [0.1, 1e-200, 0.1]}, "process must be of a size whose square is a number"),
        ({"process": -np.eye(3)}, "process must be positive definite, its least eigenvalue is -1"),
        ({"process": np.triu(np.ones((3, 3)))}, "process must be a symmetric matrix"),
        ({"process": True}, "process must be a finite number, got True"),
        ({"process": None}, "process must be a finite number, got None"),
        ({"observation": np.nan}, "observation must be a finite number, got nan"),
        ({"observation": [0.1, np.inf]}, "observation must be finite, got inf"),
        ({"gate_std": -1.0}, "gate_std must be >= 0, got -1"),
        ({"gate_std": np.nan}, "gate_std must be a finite number"),
        ({"initial": 0.0}, "initial must be greater than 0"),
    ],
)
def test_bad_noise_is_named(change, message):
    good = {"drift": random_network(3, 2, 1), "process": 0.1, "observation": 0.1, "gate_std": 0.7}
    with pytest.raises(ValueError, match=message):
        PALRNN(**(good | change))


@pytest.mark.parametrize(
    ("x1", "steps", "message"),
    [
        ([0.0], 5, r"x1 must have shape \(2,\)"),
        ([0.0, np.nan], 5, "x1 must be finite"),
        ([0.0, 0.0], 1, "steps must be >= 2"),
    ],
)
def test_bad_starts_are_named(x1, steps, message):
    with pytest.raises(ValueError, match=message):
        _model().sample(x1, steps)


def test_a_model_introduces_itself():
    assert repr(PALRNN(random_network(3, 2, 1), 0.1, [0.1, 0.25], 0.7)) == (
        "PALRNN(ALRNN(latent_dim=3, observed_dim=2, gated=1), "
        "process=0.1, observation=[0.1, 0.25], gate_std=0.7)"
    )


def test_noise_of_each_unit_fits_a_drift_of_other_units():
    small, large = (ALRNN(np.zeros(m), np.zeros((m, m)), np.zeros(m), np.eye(m, 2), 1) for m in (4, 5))
    model = PALRNN(small, np.array([0.1, 0.2, 0.3, 0.5]), 0.3, 0.4)
    moved = model.with_drift(large)
    np.testing.assert_allclose(moved.process.std, [0.1, 0.2, *[np.sqrt((0.09 + 0.25) / 2)] * 3])
    assert (moved.observation, moved.gate_std) == (model.observation, 0.4)
    covariance = np.diag([0.04, 0.09, 0.01, 0.03]) + 0.005
    full = PALRNN(small, Noise.full(covariance), 0.3, 0.4).with_drift(large).process.covariance(5)
    np.testing.assert_allclose(full[:2, :2], covariance[:2, :2])
    np.testing.assert_allclose(full[2:, 2:], np.diag([0.025] * 3))
    assert PALRNN(small, 0.2, 0.3, 0.4).with_drift(large).process == Noise.isotropic(0.2)
