"""Recordings of several trials: one table with a column that tells them apart, or several arrays."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from palrnn.data import SeriesError, load_trials


def _csv(tmp_path, text):
    path = tmp_path / "a.csv"
    path.write_text(text)
    return path


def _refused(path, **how):
    with pytest.raises(SeriesError) as caught:
        load_trials(path, **how)
    assert str(caught.value).startswith(str(path))
    return str(caught.value).removeprefix(f"{path}: ")


def _equal(found, expected):
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)
        assert a.flags.c_contiguous


def test_trials_come_in_the_order_in_which_they_begin(tmp_path):
    path = _csv(tmp_path, "trial,time,x,y\nb,0,1,2\nb,1,3,4\na,0,5,6\na,1,7,8\na,2,9,10\n")
    _equal(load_trials(path), [[[1, 2], [3, 4]], [[5, 6], [7, 8], [9, 10]]])


def test_trials_named_by_dates_are_not_taken_for_times(tmp_path):
    path = _csv(tmp_path, "trial,x,y\n2024-01-01,1,2\n2024-01-01,3,4\n2024-01-02,5,6\n2024-01-02,7,8\n")
    _equal(load_trials(path), [[[1, 2], [3, 4]], [[5, 6], [7, 8]]])


def test_interleaved_trials_are_sorted_out(tmp_path):
    path = _csv(tmp_path, "time,Trial,x\n0,1,10\n0,2,20\n1,1,11\n1,2,21\n")
    _equal(load_trials(path), [[[10], [11]], [[20], [21]]])


def test_the_column_of_trials_can_have_another_name(tmp_path):
    path = _csv(tmp_path, "session,x\n1,1\n1,2\n2,3\n2,4\n")
    _equal(load_trials(path, trial="session"), [[[1], [2]], [[3], [4]]])
    _equal(load_trials(path, trial="session", columns=["x"]), [[[1], [2]], [[3], [4]]])


def test_a_table_without_trials_is_one_trial(tmp_path):
    _equal(load_trials(_csv(tmp_path, "1,2\n3,4\n")), [[[1, 2], [3, 4]]])


def test_a_column_may_be_constant_within_a_trial_but_not_in_all_of_them(tmp_path):
    _equal(load_trials(_csv(tmp_path, "trial,x\n1,5\n1,5\n2,6\n2,6\n")), [[[5], [5]], [[6], [6]]])
    assert _refused(_csv(tmp_path, "trial,x\n1,5\n1,5\n2,5\n2,5\n")) == "column x is constant"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("trial,x\n1,1\n1,2\n2,3\n", "trial 2 has 1 steps, needs at least 2"),
        ("trial,x\n1,1\n,2\n2,3\n", "column trial, line 3: the trial is missing"),
        ("trial,x\n1,1\n1,2\n2,3\n2,nan\n", "column x, line 5: the value is missing (NaN)"),
        ("trial,x\n1,1\n1,2\n2,3\n2,x\n", "column x, line 5: 'x' is not a number"),
    ],
)
def test_a_bad_trial_is_told_where_it_is_bad(tmp_path, text, message):
    assert _refused(_csv(tmp_path, text)) == message


def test_missing_values_pass_where_they_are_allowed(tmp_path):
    path = _csv(tmp_path, "trial,x\n1,1\n1,\n2,3\n2,4\n")
    _equal(load_trials(path, allow_nan=True), [[[1], [np.nan]], [[3], [4]]])


def test_parquet_trials_may_be_categories_or_numbers(tmp_path):
    table = pd.DataFrame({"trial": pd.Categorical(["u", "u", "v", "v"]), "x": [1.0, 2.0, 3.0, 4.0]})
    table.to_parquet(tmp_path / "a.parquet")
    _equal(load_trials(tmp_path / "a.parquet"), [[[1], [2]], [[3], [4]]])
    table["trial"] = [7, 7, None, 8]
    table.to_parquet(tmp_path / "a.parquet")
    assert _refused(tmp_path / "a.parquet") == "column trial, row 3: the trial is missing"


def test_a_stack_of_trials_and_an_archive_of_trials_are_read(tmp_path):
    x = np.arange(24.0).reshape(3, 4, 2)
    np.save(tmp_path / "a.npy", x)
    _equal(load_trials(tmp_path / "a.npy"), list(x))
    np.save(tmp_path / "b.npy", x[0])
    _equal(load_trials(tmp_path / "b.npy"), [x[0]])
    np.savez(tmp_path / "a.npz", first=x[0], second=x[1, :3])
    _equal(load_trials(tmp_path / "a.npz"), [x[0], x[1, :3]])
    np.savez(tmp_path / "b.npz", x=x, labels=np.array(["a", "b", "c"]))
    _equal(load_trials(tmp_path / "b.npz"), list(x))


def test_trials_of_different_widths_are_refused(tmp_path):
    np.savez(tmp_path / "a.npz", a=np.zeros((3, 2)), b=np.zeros((3, 1)))
    assert "same number of columns, have {'a': 2, 'b': 1}" in _refused(tmp_path / "a.npz")


def test_a_short_trial_of_an_archive_is_named(tmp_path):
    x = np.arange(8.0).reshape(4, 2)
    np.savez(tmp_path / "a.npz", long=x, short=x[:1])
    assert _refused(tmp_path / "a.npz") == "trial short has 1 steps, needs at least 2"
    np.savez(tmp_path / "b.npz")
    assert _refused(tmp_path / "b.npz") == "holds no arrays"
    np.save(tmp_path / "c.npy", np.zeros((0, 3, 2)))
    assert _refused(tmp_path / "c.npy") == "is empty, of shape (0, 3, 2)"
