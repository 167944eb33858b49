"""The first row of a `.csv` file: names, numbers, or an error where it could be either. Names of columns."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from edf_file import edf_bytes

from palrnn.data import Dataset, SeriesError, column_names, load_series
from palrnn.data.table import unique_names

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


@pytest.mark.parametrize(
    ("headers", "names"),
    [
        (["x", "y", "z"], ["x", "y", "z"]),
        (["x", "x", "x"], ["x", "x.2", "x.3"]),
        (["x", "", "z"], ["x", "2", "z"]),
        (["", ""], ["1", "2"]),
        # a name that the file gives stays where it is
        (["x", "x", "x.2"], ["x", "x.3", "x.2"]),
        (["", "0", "1"], ["1.2", "0", "1"]),
        (["2", ""], ["2", "2.2"]),
    ],
)
def test_every_column_has_a_name_of_its_own(headers, names):
    assert unique_names(headers) == names
    assert unique_names(names) == names


def _named(tmp_path, kind, headers):
    """Return a table of these headers; numbers that `edf_bytes` can write."""
    frame = pd.DataFrame(np.round(X * 2**12) / 2**12, columns=headers)
    path = tmp_path / f"a.{kind}"
    match kind:
        case "frame":
            return frame
        case "edf":
            path.write_bytes(edf_bytes(frame))
        case "parquet":
            arrays = [pa.array(frame.iloc[:, i]) for i in range(len(headers))]
            pq.write_table(pa.Table.from_arrays(arrays, names=headers), path)
        case _:
            frame.to_csv(path, index=False, sep="\t" if kind == "tsv" else ",")
    return path


@pytest.mark.parametrize("kind", ["csv", "tsv", "txt", "parquet", "edf", "frame"])
@pytest.mark.parametrize(
    ("headers", "names"),
    [
        (["x", "x", "y"], ("x", "x.2", "y")),
        (["EEG", "EEG", "EEG"], ("EEG", "EEG.2", "EEG.3")),
        (["x", "", "z"], ("x", "2", "z")),
    ],
)
def test_columns_of_doubled_and_blank_names_are_found_again(tmp_path, kind, headers, names):
    source = _named(tmp_path, kind, headers)
    data = Dataset.prepare(source)
    assert data.columns == names
    again = Dataset.from_settings(data.settings, source if kind == "frame" else None)
    assert (again.columns, again.fingerprint) == (names, data.fingerprint)
    second = Dataset.prepare(source, columns=[names[1]], lags=1)
    np.testing.assert_array_equal(second.trials[0], data.trials[0][:, 1:2])
    assert set(second.left_out) == {names[0], names[2]}
    driven = Dataset.prepare(source, inputs=[names[1]])
    assert (driven.columns, driven.inputs.columns) == ((names[0], names[2]), (names[1],))


def test_a_second_time_column_is_no_observation(tmp_path):
    times = np.cumsum(np.random.default_rng(0).uniform(0.1, 1, 30))
    frame = pd.DataFrame(np.column_stack([times, 2 * times, X]), columns=["time", "time", "a", "b", "c"])
    frame.to_csv(tmp_path / "a.csv", index=False)
    assert column_names(tmp_path / "a.csv") == ["a", "b", "c"]


def test_a_saved_index_without_a_name_still_tells_the_time(tmp_path):
    path = _csv(tmp_path, "".join([",0,1\n", *(f"{k / 2},{a},{b}\n" for k, (a, b, _) in enumerate(X))]))
    data = Dataset.prepare(path)
    assert (data.columns, data.left_out, data.dt) == (("0", "1"), {"1.2": "tells the time"}, 0.5)
    # by its number, and, as it is the only one without a name, by none
    for name in ("1.2", ""):
        assert Dataset.prepare(path, time=name, dt=0.25).gaps == 2 * 29
    path = _csv(tmp_path, "".join([",0,1\n", *(f"{k},{a},{b}\n" for k, (a, b, _) in enumerate(X))]))
    assert Dataset.prepare(path).dt is None  # it counts rows


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet", "frame"])
def test_a_column_is_found_by_its_name_as_it_is_in_the_file(tmp_path, kind):
    headers = ["Zeit\u00a0(s)", "Temp\u00a0(°C)", "Lauf\u00a0Nr"]
    frame = pd.DataFrame(
        {headers[0]: np.arange(30) / 4, headers[1]: X[:, 0], headers[2]: np.repeat([1, 2], 15)}
    )
    source = frame
    if kind == "parquet":
        source = tmp_path / "a.parquet"
        frame.to_parquet(source)
    elif kind != "frame":
        source = tmp_path / f"a.{kind}"
        frame.to_csv(source, index=False, sep="\t" if kind == "tsv" else ",")
    shown = [header.replace("\u00a0", "\\xa0") for header in headers]
    for time, column, trial in (headers, shown):
        data = Dataset.prepare(source, columns=[column], time=time, trial=trial, lags=1)
        assert (data.columns, data.dt, len(data.trials)) == ((shown[1],), 0.25, 2)
        driven = Dataset.prepare(source, columns=[trial], inputs=[column])
        assert driven.inputs.columns == (shown[1],)
        with pytest.raises(ValueError, match="columns and inputs must not share a column"):
            Dataset.prepare(source, columns=[column], inputs=[shown[1]])
        with pytest.raises(ValueError, match="inputs must be other columns than time and trial"):
            Dataset.prepare(source, time=time, inputs=[shown[0]])
