from __future__ import annotations

import numpy as np
import pytest
from oracles.plain_invariants import slow_spectrum_distance
from scipy.ndimage import gaussian_filter1d

from palrnn import lorenz63, spectrum_distance
from palrnn.invariants import power_spectrum, spectrum_distances


def test_it_equals_the_definition_written_out():
    reference, generated = lorenz63(501, seed=1), lorenz63(501, seed=2)
    expected = slow_spectrum_distance(generated, reference, 5.0)
    # the definition's 1 - overlap cancels: 1e-16 there is 1e-8 in its root, at distances of 0.1
    assert spectrum_distance(generated, reference, sigma=5) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("sigma", [0.01, 0.3, 2.0, 20.0])
def test_it_is_smoothed_as_scipy_smooths(sigma):
    x = lorenz63(301)
    power = np.abs(np.fft.rfft((x - x.mean(axis=0)) / x.std(axis=0), axis=0)) ** 2
    smooth = gaussian_filter1d(power, sigma, axis=0)
    expected = smooth / smooth.sum(axis=0)
    np.testing.assert_allclose(power_spectrum(x, sigma=sigma), expected, rtol=1e-9, atol=1e-14)


def test_identical_series_are_at_distance_zero_exactly():
    x = lorenz63(2000)
    assert spectrum_distance(x, x) == 0.0


def test_units_and_offsets_do_not_matter():
    a, b = lorenz63(1000, seed=1), lorenz63(1000, seed=2)
    # rounding of an affine change of units
    assert spectrum_distance(3.0 * a - 7.0, 0.1 * b + 50.0) == pytest.approx(
        spectrum_distance(a, b), rel=1e-9
    )


def test_disjoint_frequencies_are_at_distance_one():
    t = np.arange(4000)
    slow, fast = np.sin(2 * np.pi * 10 * t / 4000), np.sin(2 * np.pi * 1500 * t / 4000)
    # smoothing reaches 4 sigma = 80 bins, the lines are 1490 apart
    assert spectrum_distance(fast, slow) == pytest.approx(1.0, abs=1e-9)


def test_a_constant_column_has_no_spectrum():
    x = lorenz63(500)
    flat = x.copy()
    flat[:, 1] = 0.1  # its mean is not exactly 0.1
    assert spectrum_distances(flat, x)[1] == 1.0
    assert spectrum_distances(flat, flat)[1] == 0.0
    assert not power_spectrum(flat)[:, 1].any()


def test_the_longer_series_is_cut():
    a, b = lorenz63(1200, seed=1), lorenz63(800, seed=2)
    assert spectrum_distance(a, b) == spectrum_distance(a[:800], b)


def test_spectra_sum_to_one():
    np.testing.assert_allclose(power_spectrum(lorenz63(777)).sum(axis=0), 1.0, rtol=1e-12)


def test_errors_name_the_argument():
    with pytest.raises(ValueError, match="generated must have 3 columns"):
        spectrum_distance(np.zeros((20, 2)), lorenz63(20))
    with pytest.raises(ValueError, match="sigma must be >= 0"):
        spectrum_distance(lorenz63(20), lorenz63(20), sigma=-1)
    with pytest.raises(ValueError, match="must have 16 steps for a spectrum, got 10"):
        spectrum_distance(lorenz63(10), lorenz63(20))
    with pytest.raises(ValueError, match="x must have 16 steps"):
        power_spectrum(lorenz63(10))


def test_smoothing_never_exceeds_the_spectrum_of_a_short_series():
    """Of 60 steps there are 31 frequencies: 20 deviations would make every spectrum the same."""
    t = np.arange(60.0)
    slow, fast = np.sin(2 * np.pi * t / 20), np.sin(2 * np.pi * t / 4)
    assert spectrum_distance(fast, slow) > 0.4
    np.testing.assert_array_equal(power_spectrum(slow), power_spectrum(slow, sigma=31 / 6))
    # nothing changes where there is room
    long = np.sin(2 * np.pi * np.arange(240.0) / 20)
    assert not np.array_equal(power_spectrum(long), power_spectrum(long, sigma=20.1))
