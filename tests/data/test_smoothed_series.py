"""Smoothing by local cubics, against plain regressions, the true states, and the best window in hindsight."""

import numpy as np
import pytest
from scipy.signal import savgol_filter

import palrnn
from palrnn.data import add_observation_noise, make_system, smoothed, suggest_windows

WINDOWS = (1, 5, 7, 9, 11, 13, 15, 19, 23, 27, 33, 39, 47, 57)


@pytest.fixture(scope="module", params=["lorenz63", "rossler"])
def states(request):
    system = make_system(request.param)
    return system.simulate(4000, dt=system.customary_dt, seed=3)


def test_each_row_is_the_value_of_a_cubic_regression_on_its_window():
    x = np.random.default_rng(0).standard_normal((40, 2))
    found = smoothed(x, windows=9)
    for t in (4, 17, 35):
        for n in range(2):
            fit = np.polynomial.Polynomial.fit(np.arange(9), x[t - 4 : t + 5, n], 3)
            assert found[t, n] == pytest.approx(fit(4), abs=1e-12)


@pytest.mark.parametrize("window", [5, 11, 47])
def test_it_is_the_filter_of_savitzky_and_golay_to_the_ends(window):
    x = np.random.default_rng(0).standard_normal((120, 2)).cumsum(axis=0)
    np.testing.assert_allclose(smoothed(x, windows=window), savgol_filter(x, window, 3, axis=0), atol=1e-9)


@pytest.mark.parametrize("apart", [20, 60, 333])
def test_with_gaps_the_suggested_window_is_still_nearly_the_best(apart):
    t = np.arange(4000) / 25
    states = np.stack([np.sin(t), np.cos(t)], axis=1)
    x = add_observation_noise(states, 0.1, seed=2)
    x[::apart] = np.nan

    def left(windows):
        return np.nanstd(smoothed(x, windows=windows) - states, axis=0)

    best = np.min([left(window) for window in WINDOWS], axis=0)
    # no window is wider than what is left between gaps; the widest would leave all of the noise there
    assert (left(suggest_windows(x)) < 1.15 * best).all()


def test_cubics_stay_as_they_are_to_the_ends():
    t = np.linspace(-1, 1, 50)
    x = np.stack([t**3 - t, 2 * t**2 + 1], axis=1)
    np.testing.assert_allclose(smoothed(x, windows=11), x, atol=1e-12)


@pytest.mark.parametrize("level", [0.05, 0.3])
def test_the_suggested_window_is_nearly_the_best_in_hindsight(states, level):
    x = add_observation_noise(states, level, seed=1)
    scale = states.std(axis=0)

    def left(windows):
        return (smoothed(x, windows=windows) - states).std(axis=0) / scale

    best = np.min([left(window) for window in WINDOWS], axis=0)
    # an estimate of the error picks the window: a tenth above the least error is what that may cost
    assert (left(suggest_windows(x)) < 1.1 * best).all()
    assert (left(suggest_windows(x)) < 0.6 * level).all()


def test_a_clean_series_and_one_that_is_all_noise_stay_as_they_are(states):
    noise = np.random.default_rng(0).standard_normal((500, 1))
    for x in (states, noise):
        assert (suggest_windows(x) == 1).all()
        np.testing.assert_array_equal(smoothed(x), x)


def test_gaps_stay_and_nothing_crosses_them():
    x = np.random.default_rng(1).standard_normal((60, 2))
    x[20, 0] = x[26, 0] = np.nan
    found = smoothed(x, windows=9)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(x))
    # five rows between gaps are fewer than a window
    np.testing.assert_array_equal(found[21:26, 0], x[21:26, 0])
    np.testing.assert_allclose(found[:20, 0], smoothed(x[:20, :1], windows=9)[:, 0], rtol=1e-12)
    np.testing.assert_allclose(found[:, 1], smoothed(x[:, 1:], windows=9)[:, 0], rtol=1e-12)


@pytest.mark.parametrize(
    ("windows", "words"),
    [
        (4, "odd"),
        (3, "at least 5"),
        (0, "windows must be"),
        ([5, 5, 5], "2, one for each"),
        ("x", "windows must"),
    ],
)
def test_a_window_that_makes_no_sense_is_refused_by_name(windows, words):
    with pytest.raises((ValueError, TypeError), match=words):
        palrnn.smoothed(np.zeros((30, 2)), windows=windows)
