"""Noise is a covariance however it was given, and the observation map is linear."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from oracles.networks import random_network

from palrnn.model import PALRNN, Noise, ObservationMap, as_noise

COVARIANCE = np.array([[0.5, 0.2, 0.0], [0.2, 0.4, -0.1], [0.0, -0.1, 0.3]])
NOISES = [Noise.isotropic(0.3), Noise.diagonal([0.1, 0.2, 0.3]), Noise.full(COVARIANCE)]
every_kind = pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.kind)


@every_kind
def test_variances_covariance_and_root_are_of_one_matrix(noise):
    covariance = noise.covariance(3)
    np.testing.assert_array_equal(noise.variances(3), np.diagonal(covariance))
    np.testing.assert_allclose(noise.root(3) @ noise.root(3).T, covariance, rtol=0, atol=1e-15)
    assert noise.is_diagonal == (not np.any(covariance - np.diag(np.diagonal(covariance))))
    assert noise.typical_std == pytest.approx(np.sqrt(np.trace(covariance) / 3))
    np.testing.assert_allclose(np.broadcast_to(noise.std, 3), np.sqrt(np.diagonal(covariance)), rtol=1e-15)


@every_kind
def test_scaled_normal_numbers_have_that_covariance(noise):
    draws = noise.scaled(np.random.default_rng(0).standard_normal((200_000, 3)))
    # the standard error of a covariance of 200,000 draws is at most sqrt(2 / 200,000) of a variance of 0.5
    np.testing.assert_allclose(np.cov(draws.T), noise.covariance(3), rtol=0, atol=5 * 0.5 * np.sqrt(1e-5))


@every_kind
def test_it_is_equal_to_its_copies_and_cannot_be_changed(noise):
    for each in (copy.deepcopy(noise), pickle.loads(pickle.dumps(noise)), as_noise(noise.values, "noise", 3)):
        assert each == noise
        assert hash(each) == hash(noise)
        assert not each.values.flags.writeable
    assert [noise == other for other in NOISES].count(True) == 1
    assert noise != 0.3


def test_it_introduces_itself():
    assert repr(Noise.isotropic(0.3)) == "Noise.isotropic(0.3)"
    assert repr(Noise.diagonal([0.1, 2 / 3])) == "Noise.diagonal([0.1, 0.6667])"
    assert str(Noise.isotropic(0.3)) == "0.3"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Noise.isotropic(0.0), "std must be greater than 0"),
        (lambda: Noise.diagonal([0.1, -1.0]), "stds must be greater than 0, got -1"),
        (lambda: Noise.diagonal(0.1), r"stds must have shape \(any,\)"),
        (lambda: Noise.full([[1.0, 0.5], [0.4, 1.0]]), "covariance must be a symmetric matrix"),
        (lambda: Noise.full([[1.0, 2.0], [2.0, 1.0]]), "positive definite, its least eigenvalue is -1"),
        (lambda: Noise.full(np.ones((2, 3))), "covariance must be a symmetric matrix, got shape"),
        (lambda: Noise("round", 0.1), "kind must fit the shape of values"),
        (lambda: Noise("full", 0.1), "kind must fit the shape of values"),
        (lambda: as_noise([0.1, 0.2], "process", 3), r"process must be one number or have shape \(3,\) or"),
        (lambda: as_noise(Noise.diagonal([0.1]), "process", 3), "process must have 3 coordinates"),
        (lambda: Noise.diagonal([0.1]).variances(2), "the noise has 1 coordinates, asked for 2"),
        (lambda: ObservationMap(np.eye(2), [1.0]), r"d must have shape \(2,\)"),
        (lambda: ObservationMap(np.empty((0, 2))), "B must be"),
    ],
)
def test_what_is_no_noise_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_the_observation_map_reads_the_first_units_unless_told_otherwise():
    z = np.arange(6.0).reshape(2, 3)
    usual = ObservationMap.first_units(2, 3)
    assert usual.is_first_units
    np.testing.assert_array_equal(usual(z), z[:, :2])
    other = ObservationMap([[1.0, 1.0, 1.0], [0.0, 0.0, 2.0]], [10.0, 0.0])
    assert not other.is_first_units
    np.testing.assert_array_equal(other(z), [[13.0, 4.0], [22.0, 10.0]])
    assert pickle.loads(pickle.dumps(other)) == other != usual
    assert not ObservationMap(usual.B, [1.0, 0.0]).is_first_units


def test_a_model_is_standard_with_diagonal_noises_and_the_usual_map_only():
    drift, full = random_network(3, 2, 1, gain=0.5), COVARIANCE
    assert PALRNN(drift, 0.1, [0.1, 0.2], 0.1, [0.1, 0.2, 0.3]).is_standard
    assert PALRNN(drift, 0.1, 0.1, 0.1, observation_map=ObservationMap.first_units(2, 3)).is_standard
    assert not PALRNN(drift, full, 0.1, 0.1).is_standard
    assert not PALRNN(drift, 0.1, full[:2, :2], 0.1).is_standard
    assert not PALRNN(drift, 0.1, 0.1, 0.1, full).is_standard
    assert not PALRNN(drift, 0.1, 0.1, 0.1, observation_map=ObservationMap(np.ones((2, 3)))).is_standard
    with pytest.raises(ValueError, match=r"observation_map must be \(2, 3\), got \(3, 3\)"):
        PALRNN(drift, 0.1, 0.1, 0.1, observation_map=ObservationMap(np.eye(3)))


def test_samples_have_the_full_noise_and_the_observation_map_of_the_model():
    drift = random_network(3, 2, 1, seed=1, gain=0.3)
    reads = ObservationMap([[1.0, 0.5, -1.0], [0.0, 2.0, 1.0]], [3.0, -2.0])
    model = PALRNN(drift, COVARIANCE, COVARIANCE[:2, :2], 0.0, observation_map=reads)
    sample = model.sample([0.1, 0.2], 100_000)
    before, after = sample.states[:-1], sample.states[1:]
    # five standard errors of a covariance of 100,000 draws with variances of at most 0.5
    allowed = 5 * 0.5 * np.sqrt(2 / 100_000)
    np.testing.assert_allclose(np.cov((after - drift.step(before)).T), COVARIANCE, rtol=0, atol=allowed)
    seen = sample.observations[1:] - reads(after)
    np.testing.assert_allclose(np.cov(seen.T), COVARIANCE[:2, :2], rtol=0, atol=allowed)
    assert np.abs(seen.mean(axis=0)).max() < 5 * np.sqrt(0.5 / 100_000)


def test_other_noise_leaves_the_rest_as_it_was():
    model = PALRNN(random_network(3, 2, 1), 0.1, 0.2, 0.3, 0.4, ObservationMap(np.ones((2, 3))))
    other = model.with_noise(process=0.7)
    assert other.process == Noise.isotropic(0.7)
    for name in ("drift", "observation", "gate_std", "initial", "observation_map"):
        assert getattr(other, name) == getattr(model, name)
    assert model.with_noise(observation=COVARIANCE[:2, :2], gate_std=0.0).gate_std == 0.0
