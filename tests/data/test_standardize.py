"""Standardising: unit variance, the way back, missing values, trials."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from palrnn.data import Standardizer, add_observation_noise, lorenz63, train_test_split

numbers = st.floats(-1e6, 1e6, allow_nan=False)


def test_the_fitted_series_has_zero_mean_and_unit_variance():
    x = lorenz63(5000)
    z = Standardizer.fit(x).transform(x)
    # rounding of sums of 5000 numbers of order one
    np.testing.assert_allclose(z.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(z.std(axis=0), 1, atol=1e-12)


@given(
    arrays(np.float64, (5, 3), elements=numbers),
    arrays(np.float64, 3, elements=numbers),
    arrays(np.float64, 3, elements=st.floats(1e-6, 1e6)),
)
def test_there_and_back_again_is_exact_to_rounding(x, mean, std):
    standardizer = Standardizer(mean, std)
    # four roundings of numbers no larger than |x| + |mean|, and of denormal numbers absolutely
    tolerance = 4 * np.finfo(float).eps * (np.abs(x) + np.abs(mean)) + 1e-300
    assert (np.abs(standardizer.inverse(standardizer.transform(x)) - x) <= tolerance).all()
    back = standardizer.transform(standardizer.inverse(x))
    assert (np.abs(back - x) <= 4 * np.finfo(float).eps * (np.abs(x) + np.abs(mean) / std) + 1e-300).all()


def test_the_test_part_does_not_move_the_fit():
    x = lorenz63(400)
    train, test = train_test_split(x)
    fitted = Standardizer.fit(train)
    np.testing.assert_array_equal(fitted.mean, Standardizer.fit(x[:320]).mean)
    assert abs(fitted.transform(test).mean()) > 1e-3


def test_missing_values_are_left_out_of_the_fit_and_stay_missing():
    x = lorenz63(300)
    gappy = x.copy()
    gappy[::7, 1] = np.nan
    fitted = Standardizer.fit(gappy)
    np.testing.assert_allclose(fitted.mean[1], np.delete(x[:, 1], np.s_[::7]).mean(), rtol=1e-12)
    np.testing.assert_array_equal(np.isnan(fitted.transform(gappy)), np.isnan(gappy))
    np.testing.assert_array_equal(np.isnan(fitted.inverse(gappy)), np.isnan(gappy))


def test_trials_are_pooled():
    x = lorenz63(300)
    whole = Standardizer.fit(x)
    for trials in ([x[:100], x[100:]], x.reshape(3, 100, 3)):
        np.testing.assert_allclose(Standardizer.fit(trials).std, whole.std, rtol=1e-12)


def test_any_leading_axes_can_be_transformed():
    x = lorenz63(24)
    fitted = Standardizer.fit(x)
    stacked = x.reshape(2, 3, 4, 3)
    np.testing.assert_array_equal(fitted.transform(stacked), fitted.transform(x).reshape(2, 3, 4, 3))
    np.testing.assert_array_equal(fitted.transform(x[5]), fitted.transform(x)[5])


@pytest.mark.parametrize("scale", [1e-140, 1e-13, 1.0, 1e13, 1e140])
def test_units_do_not_matter(scale):
    x = lorenz63(100)
    scaled = Standardizer.fit(x * scale).transform(x * scale)
    np.testing.assert_allclose(scaled, Standardizer.fit(x).transform(x), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("value", [0.0, 1.0, 0.1, 1e15 + 0.3, -7e-20])
def test_a_constant_column_is_refused_by_its_number(value):
    x = lorenz63(100)
    x[:, 2] = value
    with pytest.raises(ValueError, match="x must vary in every column, column 2 is constant"):
        Standardizer.fit(x)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Standardizer.fit([[1.0, 2.0]]), "column 0 is constant"),
        (lambda: Standardizer.fit([[1.0, np.nan], [2.0, np.nan]]), "column 1 is all NaN"),
        (lambda: Standardizer.fit([[1.0], [np.inf]]), "x must be finite, got inf"),
        (lambda: Standardizer([0.0], [0.0]), "std must be positive, got 0 in column 0"),
        (lambda: Standardizer([0.0, 1.0], [1.0]), r"std must have shape \(2,\), got \(1,\)"),
        (lambda: Standardizer([np.nan], [1.0]), "mean must be finite"),
        (
            lambda: Standardizer([0.0], [1.0]).transform(np.zeros((3, 2))),
            r"x must have 1 columns, got shape \(3, 2\)",
        ),
        (lambda: Standardizer([0.0], [1.0]).transform(3.0), r"x must have 1 columns, got shape \(\)"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_standardizer_is_immutable_and_stays_so_in_copies():
    mean = np.zeros(2)
    one = Standardizer(mean, [1.0, 2.0])
    mean[0] = 9.0
    for each in (one, pickle.loads(pickle.dumps(one)), copy.deepcopy(one)):
        np.testing.assert_array_equal(each.mean, [0.0, 0.0])
        with pytest.raises(FrozenInstanceError):
            each.mean = np.ones(2)
        with pytest.raises(ValueError, match="read-only"):
            each.std[0] = 3.0
    assert repr(one) == "Standardizer(mean=[0.0, 0.0], std=[1.0, 2.0])"


def test_observation_noise_is_white_and_scaled_by_the_training_deviation():
    x = lorenz63(20_000, seed=1)
    scale = np.array([1.0, 0.0, 3.0])
    noise = add_observation_noise(x, 0.5, scale=scale, seed=2) - x
    # four standard errors of a deviation, of a mean and of a correlation
    np.testing.assert_allclose(noise.std(axis=0), 0.5 * scale, rtol=4 / np.sqrt(40_000))
    assert (np.abs(noise.mean(axis=0)) <= 4 * 0.5 * scale / np.sqrt(20_000)).all()
    assert abs(np.corrcoef(noise[1:, 0], noise[:-1, 0])[0, 1]) < 4 / np.sqrt(20_000)
    standardised = Standardizer.fit(x)
    own = (add_observation_noise(x, 0.1, seed=3) - x) / standardised.std
    np.testing.assert_allclose(own.std(axis=0), 0.1, rtol=4 / np.sqrt(40_000))


def test_observation_noise_depends_on_the_seed_and_leaves_its_argument_alone():
    x = lorenz63(50)
    before = x.copy()
    one = add_observation_noise(x, 0.1, seed=1)
    np.testing.assert_array_equal(x, before)
    assert add_observation_noise(x, 0.1, seed=1).tobytes() == one.tobytes()
    assert not np.array_equal(add_observation_noise(x, 0.1, seed=2), one)
    np.testing.assert_array_equal(add_observation_noise(x, 0.0), x)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"std": -0.1}, "std must be >= 0"),
        ({"std": 0.1, "scale": [1.0]}, r"scale must have shape \(3,\)"),
        ({"std": 0.1, "scale": [1.0, -1.0, 1.0]}, "scale must be >= 0, got -1"),
    ],
)
def test_bad_noise_is_named(how, message):
    with pytest.raises(ValueError, match=message):
        add_observation_noise(lorenz63(10), **how)


@pytest.mark.parametrize("exponent", [-1000, -700, -520, -500, -300, 300, 490])
def test_scale_does_not_matter_however_small_or_large(exponent):
    x = lorenz63(500)
    expected = Standardizer.fit(x)
    # powers of two are exact, so every digit is the same
    found = Standardizer.fit(np.ldexp(x, exponent))
    np.testing.assert_array_equal(found.mean, np.ldexp(expected.mean, exponent))
    np.testing.assert_array_equal(found.std, np.ldexp(expected.std, exponent))
    np.testing.assert_array_equal(found.transform(np.ldexp(x, exponent)), expected.transform(x))
    noisy = add_observation_noise(np.ldexp(x, exponent), 0.1)
    np.testing.assert_array_equal(noisy, np.ldexp(add_observation_noise(x, 0.1), exponent))


def test_columns_of_very_different_scales_do_not_disturb_each_other():
    x = lorenz63(500)
    found = Standardizer.fit(x * [1e-200, 1.0, 1e140])
    np.testing.assert_allclose(found.std, x.std(axis=0) * [1e-200, 1.0, 1e140], rtol=1e-13)
    with pytest.raises(ValueError, match="column 1 is constant"):
        Standardizer.fit(np.column_stack([1e-200 * x[:, 0], np.full(500, 1e-180)]))
    with pytest.raises(ValueError, match="column 0 is constant"):
        Standardizer.fit(np.zeros((5, 1)))
