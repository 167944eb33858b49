"""The first row of a `.csv` file: names, numbers, or an error where it could be either."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from palrnn.data import SeriesError, column_names, load_series

X = np.random.default_rng(3).standard_normal((30, 3))


def _csv(tmp_path, text):
    path = tmp_path / "a.csv"
    path.write_text(text)
    return path


def _refused(path, **how):
    with pytest.raises(SeriesError) as caught:
        load_series(path, **how)
    return str(caught.value).removeprefix(f"{path}: ")


@pytest.mark.parametrize("width", [2, 3])
@pytest.mark.parametrize("index", [True, False])
def test_the_header_that_pandas_gives_to_columns_without_names_is_no_sample(tmp_path, width, index):
    path = tmp_path / "a.csv"
    pd.DataFrame(X[:, :width]).to_csv(path, index=index)
    np.testing.assert_array_equal(load_series(path), X[:, :width])
    assert column_names(path) == [str(i) for i in range(width)]


def test_an_index_with_a_name_may_stand_before_numbered_columns(tmp_path):
    path = tmp_path / "a.csv"
    for label in ("time", "index"):
        pd.DataFrame(X).to_csv(path, index_label=label)
        np.testing.assert_array_equal(load_series(path), X)
    assert load_series(_csv(tmp_path, "time,1,2\n0,3,4\n1,5,6\n")).tolist() == [[3, 4], [5, 6]]


def test_a_first_sample_that_happens_to_count_is_kept_where_the_file_shows_it(tmp_path):
    # printed with %g: some numbers of a column have no decimal point, as pandas never writes them
    assert load_series(_csv(tmp_path, "0,1\n0.5,1.5\n1,2\n")).shape == (3, 2)
    assert load_series(_csv(tmp_path, "0\n0.5\n1\n")).shape == (3, 1)
    # not 0, 1, 2
    assert load_series(_csv(tmp_path, "1,2\n0.5,1.5\n1.5,2.5\n")).shape == (3, 2)
    assert load_series(_csv(tmp_path, "0.0,1.0\n0.5,1.5\n")).shape == (2, 2)


@pytest.mark.parametrize("text", ["0,1\n4,7\n2,2\n", "0\n4\n2\n5\n", "0\n0.5\n0.25\n"])
def test_where_only_the_caller_can_tell_the_caller_is_asked(tmp_path, text):
    path = _csv(tmp_path, text)
    width = text.index("\n") // 2 + 1
    rows = text.count("\n")
    message = _refused(path)
    assert message.startswith(f"line 1: '{text.splitlines()[0]}' may be a header or the first sample: ")
    assert load_series(path, columns=["0"]).shape == (rows - 1, 1)
    assert load_series(path, columns=[str(width)]).shape == (rows, 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1.5,oops,2\n1,2,3\n4,5,7\n", "column 2, line 1: 'oops' is a name among numbers"),
        ("a,1,2\na,3,4\nb,5,7\n", "column 1, line 1: 'a' is a name among numbers"),
        ("oops,1\n1,2\n3,5\n", "column 1, line 1: 'oops' is a name among numbers"),
        ("x,y,3.5\n1,2,3\n4,5,7\n", "column 3, line 1: '3.5' is a number among names"),
        ("2020-01-01,oops,2\n2020-01-02,3,4\n", "column 2, line 1: 'oops' is a name among numbers"),
        ("1,5a,3\n1,2,3\n", "column 2, line 1: '5a' is a name among numbers"),
        ("\n\n1,\x1b[2J,3\n1,2,3\n", r"column 2, line 3: '\x1b[2J' is a name among numbers"),
    ],
)
def test_a_first_row_with_an_odd_cell_is_not_dropped_in_silence(tmp_path, text, message):
    assert _refused(_csv(tmp_path, text)) == f"{message}; a header holds names only"
