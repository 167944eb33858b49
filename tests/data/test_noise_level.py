"""Noise of a known level, estimated from the series alone."""

from __future__ import annotations

import numpy as np
import pytest

from palrnn import ALRNN, add_observation_noise, lorenz63, lorenz96, noise_level, rossler


@pytest.mark.parametrize("std", [0.01, 0.05, 0.1, 0.3])
@pytest.mark.parametrize("simulate", [lorenz63, rossler, lambda steps: lorenz96(steps)[:, :3]])
def test_known_noise_is_found(simulate, std):
    clean = simulate(5000)
    found = noise_level(add_observation_noise(clean, std)) / clean.std(axis=0)
    # motion adds up to a twentieth of the variance of the differences; 5000 draws tell it to 2 %
    np.testing.assert_allclose(found, std, rtol=0.06)


def test_smooth_motion_has_none():
    for clean in (lorenz63(5000), rossler(5000), np.sin(0.1 * np.arange(500.0))[:, None]):
        np.testing.assert_array_equal(noise_level(clean), 0.0)


def test_noise_is_told_per_column_and_in_its_units():
    x = 100.0 * lorenz63(5000)
    x[:, 1] += np.random.default_rng(0).standard_normal(5000) * 80.0
    found = noise_level(x)
    assert found[0] == found[2] == 0.0
    assert found[1] == pytest.approx(80.0, rel=0.06)


def test_the_motion_of_a_map_is_not_taken_for_noise():
    tent = ALRNN([1.8], [[-3.6]], [1.0], [[1.0]], 1)
    assert noise_level(np.asarray(tent.rollout([0.2], 3000).states))[0] == 0.0
    assert noise_level(np.ones((50, 1)))[0] == 0.0


def test_short_series_are_refused():
    with pytest.raises(ValueError, match="x must"):
        noise_level(np.zeros((10, 1)))
