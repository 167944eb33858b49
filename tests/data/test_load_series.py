"""Series from files: what is read, and what each bad file is told."""

from __future__ import annotations

import datetime
import sys
import time
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from palrnn.data import SeriesError, column_names, known_suffixes, load_series

X = np.array([[1.0, -2.5], [3.0, 0.125], [1e-300, 7.0]])


def _csv(tmp_path, text, name="a.csv"):
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def _refused(path, **how):
    with pytest.raises(SeriesError) as caught:
        load_series(path, **how)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    return message.removeprefix(f"{path}: ")


BODY = "1,-2.5\n3,0.125\n1e-300,7\n"


@pytest.mark.parametrize(
    "text",
    [
        BODY,
        "x,y\n" + BODY,
        "\n\nx,y\n\n" + BODY + "\n\n",
        "# x,y\n" + BODY,
        "x,y\r\n" + BODY.replace("\n", "\r\n"),
        "\ufeffx,y\n" + BODY,
        "x, y\n 1, -2.5\n 3 ,0.125\n1e-300,7",
        '"x","y"\n"1","-2.5"\n3,0.125\n1e-300,7\n',
        "x;y\n" + BODY.replace(",", ";"),
        "x\ty\n" + BODY.replace(",", "\t"),
        "  1 -2.5  \n3   0.125\n1e-300 7\n",
        "x,y,\n1,-2.5,\n3,0.125,\n1e-300,7,\n",
        "time,x,y\n0,1,-2.5\n1,3,0.125\n2,1e-300,7\n",
        "Time [s],x,y\nabc,1,-2.5\n1,3,0.125\n2,1e-300,7\n",
        "t,x,y\n0,1,-2.5\n1,3,0.125\n2,1e-300,7\n",
        "day,x,y\n2020-01-01,1,-2.5\n2020-01-02,3,0.125\n2020-01-03,1e-300,7\n",
        "2020-01-01T10:00:00Z,1,-2.5\n2020-01-02T10:00:00Z,3,0.125\n2020-01-03T10:00:00Z,1e-300,7\n",
        ",x,y\n0,1,-2.5\n1,3,0.125\n2,1e-300,7\n",
        ",0,1\n0,1,-2.5\n1,3,0.125\n2,1e-300,7\n",
        "trial,x,y\na,1,-2.5\na,3,0.125\na,1e-300,7\n",
        "name,name\n" + BODY,
    ],
)
def test_all_these_tables_are_the_same_series(tmp_path, text):
    np.testing.assert_array_equal(load_series(_csv(tmp_path, text)), X)


@pytest.mark.parametrize("name", ["T", "time_constant", "stepping", "tau", "x"])
def test_a_first_column_that_is_not_called_time_is_kept(tmp_path, name):
    assert load_series(_csv(tmp_path, f"{name},y\n{BODY}")).shape == (3, 2)


def test_a_single_column_is_kept_whatever_its_name(tmp_path):
    np.testing.assert_array_equal(load_series(_csv(tmp_path, "time\n1\n2\n")), [[1.0], [2.0]])


def test_columns_are_picked_by_name_in_the_order_asked(tmp_path):
    path = _csv(tmp_path, "time,x,y\n0,1,4\n1,2,5\n")
    np.testing.assert_array_equal(load_series(path, columns=["y", "x"]), [[4, 1], [5, 2]])
    np.testing.assert_array_equal(load_series(path, columns=["time", "x"]), [[0, 1], [1, 2]])


def test_numbers_survive_the_round_trip_through_text_bit_for_bit(tmp_path):
    x = np.random.default_rng(0).standard_normal((1000, 3)) * 10.0 ** np.arange(-150, 151, 150)
    path = tmp_path / "a.csv"
    np.savetxt(path, x, delimiter=",", fmt="%.17g")
    np.testing.assert_array_equal(load_series(path), x)
    pd.DataFrame(x).to_csv(tmp_path / "b.csv")
    np.testing.assert_array_equal(load_series(tmp_path / "b.csv"), x)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("\n \n", "is empty"),
        ("x,y\n", "has 0 steps of 2 columns, needs at least 2 steps"),
        ("x,y\n1,2\n", "has 1 steps of 2 columns, needs at least 2 steps"),
        ("x,y\n1,2\n3,nan\n", "column y, line 3: the value is missing (NaN)"),
        ("x,y\n1,2\n,3\n", "column x, line 3: the value is missing (NaN)"),
        ("1,2\n3,NA\n", "column 2, line 2: the value is missing (NaN)"),
        (",2\n3,4\n", "column 1, line 1: the value is missing (NaN)"),
        ("nan,2\n3,4\n", "column 1, line 1: the value is missing (NaN)"),
        ("x,y\n1,2\n3,inf\n", "column y, line 3: the value is infinite"),
        ("x,y\n1,2\n3,-Infinity\n", "column y, line 3: the value is infinite"),
        ("x,y\n1,2\n3,1e999\n", "column y, line 3: the value is infinite"),
        ("x,y\n1,2\n\n\n3,oops\n", "column y, line 5: 'oops' is not a number"),
        ("\n\nx,y\n1,oops\n", "column y, line 4: 'oops' is not a number"),
        ("\n\n1 2\n1 oops\n", "column 2, line 4: 'oops' is not a number"),
        ("x,y\n1,2\n3,True\n", "column y, line 3: 'True' is not a number"),
        ("x,y\n1,2\n3,1_000\n", "column y, line 3: '1_000' is not a number"),
        ("x;y\n1;2,5\n3;4\n", "column y, line 2: '2,5' is not a number (write decimals with a point)"),
        ('x,y\n"1,5",2\n', "column x, line 2: '1,5' is not a number (write decimals with a point)"),
        ("x,y\n1,2020-01-01\n", "column y, line 2: '2020-01-01' is not a number"),
        ("x,y\n1,2\n1,3\n", "column x is constant"),
        ("x,y\n1,2\n3,4,5\n", "line 3: has 3 cells, expected 2"),
        ("x,y\n1,2,3\n4,5,6\n", "line 2: has 3 cells, expected 2"),
        ("x,y\n1,2\n3\n", "line 3: has 1 cells, expected 2"),
        ("x,y,\n1,2,9\n", "line 2: column 3 has no name in the header"),
        ('x,y\n1,2\n"3,4\n5,6\n', "line 4: has 1 cells, expected 2"),
        ("time\n", "has 0 steps of 1 columns, needs at least 2 steps"),
        ("trial\n1\n2\n", "has no columns of observations"),
        ("trial,trial,x\n1,1,2\n", "two columns are named trial"),
        ("trial,x\n1,1\n1,2\n2,3\n", "holds 2 trials (1, 2): use load_trials, or name the columns"),
        (b"\xff\xfe1\x00,\x002\x00", "cannot be read as .csv: 'utf-8' codec can't decode byte 0xff"),
        ("x\n" + "1" * 200_000 + "\n2\n", "column x, line 2: the value is infinite"),
        ("x,y\n1," + "a" * 200_000 + "\n", "cannot be read as .csv: field larger than field limit"),
    ],
)
def test_a_bad_csv_is_told_where_it_is_bad(tmp_path, text, message):
    assert _refused(_csv(tmp_path, text)).startswith(message)


def test_a_long_word_is_shortened_in_the_message(tmp_path):
    assert len(_refused(_csv(tmp_path, "x\n1\n" + "word" * 100))) < 100


def test_missing_values_pass_where_they_are_allowed(tmp_path):
    path = _csv(tmp_path, "x,y\n1,2\n,3\n4,\n")
    np.testing.assert_array_equal(load_series(path, allow_nan=True), [[1, 2], [np.nan, 3], [4, np.nan]])
    assert _refused(_csv(tmp_path, "x,y\n1,\n2,\n"), allow_nan=True) == "column y holds no values"
    assert _refused(_csv(tmp_path, "x,y\n1,inf\n2,\n"), allow_nan=True).endswith("the value is infinite")


def test_the_number_of_steps_needed_is_the_callers(tmp_path):
    path = _csv(tmp_path, BODY)
    assert load_series(path, min_steps=3).shape == (3, 2)
    assert _refused(path, min_steps=4) == "has 3 steps of 2 columns, needs at least 4 steps"
    with pytest.raises(ValueError, match="min_steps must be >= 1"):
        load_series(path, min_steps=0)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["z"], "no column 'z', there are x, y, y.2"),
        (["y", "y"], "columns must name a column once, got 'y' twice"),
        ("x", "columns must be a list of names, got 'x'"),
        ([], "has no columns of observations"),
    ],
)
def test_columns_that_cannot_be_picked_are_named(tmp_path, columns, message):
    assert _refused(_csv(tmp_path, "x,y,y\n1,2,3\n"), columns=columns) == message


@pytest.mark.parametrize("name", ["a.dat", "a", "a.csv.gz", "a.xlsx"])
def test_an_unknown_type_lists_the_known_ones(tmp_path, name):
    assert f"expected one of {', '.join(known_suffixes())}" in _refused(_csv(tmp_path, BODY, name))


def test_a_suffix_may_be_in_capitals(tmp_path):
    np.testing.assert_array_equal(load_series(_csv(tmp_path, BODY, "A.CSV")), X)


def test_a_missing_file_and_a_folder_are_told_apart(tmp_path):
    assert _refused(tmp_path / "nowhere.csv") == "no such file"
    (tmp_path / "folder.csv").mkdir()
    assert _refused(tmp_path / "folder.csv") == "is not a file"


@pytest.mark.slow  # a clock on a busy machine is no judge of a change
def test_a_large_csv_loads_in_about_a_second(tmp_path):
    x = np.random.default_rng(0).standard_normal((100_000, 3))
    np.savetxt(tmp_path / "a.csv", x, delimiter=",", header="x,y,z", fmt="%.10g")
    start = time.process_time()
    assert load_series(tmp_path / "a.csv").shape == (100_000, 3)
    # 0.4 s of processor time on the machine where this was written
    assert time.process_time() - start < 1.5


def test_parquet_keeps_numbers_exactly_and_leaves_the_time_out(tmp_path):
    table = pd.DataFrame(X, columns=["x", "y"])
    table.insert(0, "when", pd.date_range("2020-01-01", periods=3))
    table.to_parquet(tmp_path / "a.parquet")
    np.testing.assert_array_equal(load_series(tmp_path / "a.parquet"), X)
    np.testing.assert_array_equal(load_series(tmp_path / "a.parquet", columns=["y"]), X[:, 1:])


def test_parquet_numbers_of_every_kind_are_read(tmp_path):
    table = pd.DataFrame(
        {
            "small": pd.array([1, None, 3], dtype="Int8"),
            "half": np.array([0.5, 1.5, 2.5], np.float32),
            "exact": [Decimal("0.25"), None, Decimal("1.5")],
        }
    )
    table.to_parquet(tmp_path / "a.parquet")
    loaded = load_series(tmp_path / "a.parquet", allow_nan=True)
    np.testing.assert_array_equal(loaded, [[1, 0.5, 0.25], [np.nan, 1.5, np.nan], [3, 2.5, 1.5]])


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([1.0, None], "column y, row 2: the value is missing (NaN)"),
        ([1.0, np.inf], "column y, row 2: the value is infinite"),
        ([None, "1.5"], "column y, row 2: '1.5' is not a number"),
        ([3.0, 3.0], "column y is constant"),
        ([datetime.date(2020, 1, 1)] * 2, "column y, row 1: '2020-01-01' is not a number"),
        ([[1.0], [2.0]], "column y, row 1: '[1.0]' is not a number"),
    ],
)
def test_a_bad_parquet_is_told_where_it_is_bad(tmp_path, column, message):
    pd.DataFrame({"x": [1.0, 2.0], "y": column}).to_parquet(tmp_path / "a.parquet")
    assert _refused(tmp_path / "a.parquet") == message


def test_an_empty_parquet_and_a_foreign_one_are_refused(tmp_path):
    pd.DataFrame().to_parquet(tmp_path / "a.parquet")
    assert _refused(tmp_path / "a.parquet") == "has no columns of observations"
    (tmp_path / "b.parquet").write_bytes(b"PAR1 not at all PAR1")
    assert _refused(tmp_path / "b.parquet").startswith("cannot be read as .parquet: ")


def test_without_pyarrow_the_message_says_what_to_install(tmp_path, monkeypatch):
    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    assert _refused(path) == "reading .parquet needs pyarrow: pip install 'palrnn[parquet]'"


def test_the_names_of_the_observed_columns_can_be_asked(tmp_path):
    path = _csv(tmp_path, "time,trial,x,y\n0,a,1,2\n1,a,3,4\n")
    assert column_names(path) == ["x", "y"]
    assert column_names(path, columns=["y"]) == ["y"]
    assert column_names(_csv(tmp_path, BODY)) == ["1", "2"]
    np.save(tmp_path / "a.npy", X)
    assert column_names(tmp_path / "a.npy") == ["x1", "x2"]
