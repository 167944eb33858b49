"""Checks accept what they say and name the argument in what they refuse."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from palrnn.engine.checks import (
    as_float,
    as_floats,
    as_int,
    as_series,
    as_shape,
    as_trials,
    first_line,
    frozen,
    one_of,
)


@pytest.mark.parametrize(
    "value",
    [[1, 2], (1.0, 2.0), np.array([1, 2], np.int16), np.array([1, 2], np.float16), np.array([1, 2], ">f4")],
)
def test_real_numbers_of_any_kind_become_native_float64(value):
    array = as_floats(value, "x")
    assert array.dtype == np.float64
    assert array.dtype.isnative
    np.testing.assert_array_equal(array, [1.0, 2.0])


def test_booleans_count_as_zero_and_one():
    np.testing.assert_array_equal(as_floats([True, False], "x"), [1.0, 0.0])


def test_a_data_frame_of_numbers_is_an_array():
    np.testing.assert_array_equal(as_floats(pd.DataFrame({"a": [1, 2], "b": [3, 4]}), "x"), [[1, 3], [2, 4]])


@pytest.mark.parametrize(
    ("value", "got"),
    [
        (np.array([1 + 2j]), "complex128"),
        (["1", "2"], "list"),
        (np.array(["1"]), "<U1"),
        (np.array([1, None]), "object"),
        ([[1, 2], [3]], "list"),
        (None, "NoneType"),
        ("text", "str"),
        (np.array(["2020-01-01"], dtype="datetime64[D]"), "datetime64"),
        ({"a": 1}, "dict"),
    ],
)
def test_anything_but_real_numbers_is_refused_with_its_kind(value, got):
    with pytest.raises(ValueError, match=rf"^weights must be an array of real numbers, got {got}"):
        as_floats(value, "weights")


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_non_finite_values_are_refused_with_their_index(bad):
    with pytest.raises(ValueError, match=r"x must be finite, got (nan|-?inf) at index \(1, 0\)"):
        as_floats([[0.0, 1.0], [bad, 2.0]], "x")
    with pytest.raises(ValueError, match=r"x must be finite, got (nan|-?inf)$"):
        as_floats(bad, "x")


def test_nan_but_not_infinity_passes_where_missing_values_are_allowed():
    assert np.isnan(as_floats([math.nan, 1.0], "x", allow_nan=True)[0])
    with pytest.raises(ValueError, match="inf at index"):
        as_floats([math.nan, math.inf], "x", allow_nan=True)


def test_a_long_double_beyond_float64_is_refused_as_infinite():
    if np.finfo(np.longdouble).max <= np.finfo(np.float64).max:
        pytest.skip("long double is float64 on this platform")
    with pytest.raises(ValueError, match="x must be finite, got inf"):
        as_floats(np.array([np.longdouble("1e400")]), "x")


def test_masked_entries_are_missing_and_never_read():
    masked = np.ma.masked_array([1.0, 999.0], mask=[False, True])
    np.testing.assert_array_equal(as_floats(masked, "x", allow_nan=True), [1.0, math.nan])
    with pytest.raises(ValueError, match="x must be finite, got nan"):
        as_floats(masked, "x")


def test_the_callers_array_is_copied():
    mine = np.zeros(3)
    as_floats(mine, "x")[0] = 1.0
    as_series(mine)[0] = 1.0
    assert mine[0] == 0.0


@pytest.mark.parametrize(
    ("shape", "wanted"),
    [((3,), r"\(3,\)"), ((2, None), r"\(2, any\)"), ((None, None, 1), r"\(any, any, 1\)")],
)
def test_a_wrong_shape_is_named_beside_the_right_one(shape, wanted):
    with pytest.raises(ValueError, match=rf"W must have shape {wanted}, got \(4, 5\)"):
        as_shape(np.zeros((4, 5)), "W", shape)


def test_any_length_fits_none():
    assert as_shape(np.zeros((4, 5)), "W", (None, 5)).shape == (4, 5)


def test_one_dimensional_input_is_a_series_of_one_coordinate():
    series = as_series([1, 2, 3])
    assert series.shape == (3, 1)
    assert series.flags.c_contiguous


@pytest.mark.parametrize("shape", [(), (1,), (1, 3), (5, 0), (4, 3, 2)])
def test_a_series_needs_two_axes_and_enough_steps(shape):
    with pytest.raises(ValueError, match=r"^x must be \(T, N\) with T >= 2, got "):
        as_series(np.zeros(shape))


def test_a_series_of_the_wrong_width_is_refused():
    with pytest.raises(ValueError, match=r"x must have 3 columns, got shape \(5, 2\)"):
        as_series(np.zeros((5, 2)), dim=3)


def test_a_fortran_ordered_series_becomes_contiguous_in_time():
    assert as_series(np.zeros((3, 5)).T).flags.c_contiguous


def test_trials_come_from_a_series_a_list_or_a_stack():
    ragged = [np.zeros((3, 2)), np.ones((5, 2))]
    assert [len(trial) for trial in as_trials(ragged)] == [3, 5]
    assert [trial.shape for trial in as_trials(np.zeros((4, 3, 2)))] == [(3, 2)] * 4
    assert [trial.shape for trial in as_trials([[1, 2], [3, 4], [5, 6]])] == [(3, 2)]
    assert [trial.shape for trial in as_trials(np.zeros(7))] == [(7, 1)]
    assert [trial.shape for trial in as_trials([[[1, 2], [3, 4]], [[5, 6], [7, 8], [9, 10]]])] == [
        (2, 2),
        (3, 2),
    ]


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ([np.zeros((3, 2)), np.zeros((3, 4))], r"x\[1\] must have 2 columns, got shape \(3, 4\)"),
        ([np.zeros((3, 2)), np.zeros((1, 2))], r"x\[1\] must be \(T, N\) with T >= 2, got \(1, 2\)"),
        ([np.zeros((3, 2)), np.full((3, 2), np.nan)], r"x\[1\] must be finite, got nan at index \(0, 0\)"),
        (np.zeros((0, 3, 2)), "x must hold at least one trial, got none"),
        ([], r"x must be \(T, N\) with T >= 2, got \(0,\)"),
        ([np.zeros(3), np.zeros(4)], "x must be an array of real numbers, got list"),
    ],
)
def test_a_bad_trial_is_named_by_its_number(x, message):
    with pytest.raises(ValueError, match=message):
        as_trials(x)


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3)])
def test_whole_numbers_pass(value):
    assert as_int(value, "n") == 3
    assert type(as_int(value, "n")) is int


@pytest.mark.parametrize("value", [3.0, "3", None, True, np.True_, [3], math.nan])
def test_what_is_not_a_whole_number_is_refused(value):
    with pytest.raises(ValueError, match=r"^n must be a whole number, got "):
        as_int(value, "n")


def test_bounds_of_whole_numbers_are_inclusive_and_named():
    assert as_int(0, "n") == 0
    assert as_int(5, "n", least=5, most=5) == 5
    with pytest.raises(ValueError, match=r"^n must be >= 0, got -1$"):
        as_int(-1, "n")
    with pytest.raises(ValueError, match=r"^n must be from 1 to 4, got 5$"):
        as_int(5, "n", least=1, most=4)


@pytest.mark.parametrize("value", [0.5, np.float32(0.5), Fraction(1, 2)])
def test_real_scalars_pass(value):
    assert as_float(value, "s") == 0.5
    assert type(as_float(value, "s")) is float


@pytest.mark.parametrize("value", [math.nan, math.inf, "1", None, True, 1j, 10**400, [1.0]])
def test_what_is_not_a_finite_number_is_refused(value):
    with pytest.raises(ValueError, match=r"^s must be a finite number, got "):
        as_float(value, "s")


def test_bounds_of_real_numbers_are_named():
    assert as_float(0.0, "s", least=0.0) == 0.0
    with pytest.raises(ValueError, match=r"^s must be greater than 0, got 0$"):
        as_float(0.0, "s", above=0.0)
    with pytest.raises(ValueError, match=r"^s must be >= 0, got -1$"):
        as_float(-1.0, "s", least=0.0)
    with pytest.raises(ValueError, match=r"^s must be from 0 to 0.5, got 0.7$"):
        as_float(0.7, "s", least=0.0, most=0.5)


def test_choices_are_listed():
    assert one_of("b", "target", ("a", "b")) == "b"
    with pytest.raises(ValueError, match=r"^target must be one of a, b, got 'c'$"):
        one_of("c", "target", ("a", "b"))


def test_frozen_arrays_are_read_only_copies():
    mine = np.arange(6.0).reshape(2, 3).T
    kept = frozen(mine)
    assert kept.flags.c_contiguous
    with pytest.raises(ValueError, match="read-only"):
        kept[0, 0] = 1.0
    mine[0, 0] = 9.0
    assert kept[0, 0] == 0.0


def test_the_first_line_of_a_silent_error_is_its_kind():
    assert first_line(ValueError("one\ntwo")) == "one"
    assert first_line(MemoryError()) == "MemoryError"


def test_a_list_of_masked_rows_keeps_its_masks():
    row = np.ma.array([1.0, 2.0], mask=[False, True])
    whole = np.ma.array([3, 4])
    for value in ([row, whole], (row, [3, 4]), [[1.0, np.ma.masked], [3.0, 4.0]]):
        np.testing.assert_array_equal(as_floats(value, "x", allow_nan=True), [[1, np.nan], [3, 4]])
        with pytest.raises(ValueError, match=r"x must be finite, got nan at index \(0, 1\)"):
            as_floats(value, "x")
    trials = as_trials([[row, whole], [whole, whole]], allow_nan=True)
    np.testing.assert_array_equal(trials[0], [[1, np.nan], [3, 4]])
    stack = np.ma.array(np.ones((2, 2, 1)), mask=[[[True], [False]], [[False], [False]]])
    assert np.isnan(as_trials(stack, allow_nan=True)[0][0, 0])


def test_a_list_that_holds_itself_is_refused():
    endless = []
    endless.append(endless)
    with pytest.raises(ValueError, match="x must be an array of real numbers, got list"):
        as_floats(endless, "x")


@pytest.mark.parametrize(
    "kind", ["Int64", "Float32", "UInt8", "boolean", "int64[pyarrow]", "double[pyarrow]"]
)
def test_nullable_numbers_of_pandas_are_numbers_and_missing_ones_nan(kind):
    column = pd.Series([1, None, 0], dtype=kind)
    frame = pd.DataFrame({"a": column, "b": [1.5, 2.5, 3.5]})
    np.testing.assert_array_equal(as_floats(column, "x", allow_nan=True), [1, np.nan, 0])
    np.testing.assert_array_equal(as_floats(column.array, "x", allow_nan=True), [1, np.nan, 0])
    np.testing.assert_array_equal(as_series(frame, allow_nan=True), [[1, 1.5], [np.nan, 2.5], [0, 3.5]])
    with pytest.raises(ValueError, match=r"x must be finite, got nan at index \(1, 0\)"):
        as_series(frame)


@pytest.mark.parametrize("column", [["1", "2"], pd.to_datetime(["2020-01-01", "2020-01-02"]), [1j, 2j]])
def test_text_times_and_complex_numbers_of_pandas_are_refused(column):
    with pytest.raises(ValueError, match="x must be an array of real numbers, got "):
        as_floats(pd.DataFrame({"a": column, "b": [1.5, 2.5]}), "x")
    with pytest.raises(ValueError, match="x must be an array of real numbers, got "):
        as_floats(pd.Series(column), "x")


def test_integers_of_thousands_of_digits_are_refused_like_any_other():
    with pytest.raises(
        ValueError, match="steps must be from 0 to 1000000000, got a number of about 5001 digits"
    ):
        as_int(10**5000 * 9, "steps")
    with pytest.raises(ValueError, match="dt must be a finite number, got a number of about"):
        as_float(10**5000, "dt")
    with pytest.raises(ValueError, match="must be one of a, b, got a number of about"):
        one_of(10**5000, "system", ["a", "b"])


def test_escape_sequences_in_arguments_and_errors_are_shown_as_text():
    with pytest.raises(ValueError, match="must be one of a, got") as caught:
        one_of("\x1b[2J", "system", ["a"])
    assert str(caught.value).isprintable()
    assert first_line(ValueError("\x1b[2J cleared\nmore")) == "\\x1b[2J cleared"
