"""Parquet: numbers of every kind, and columns that are none told by what they hold."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from palrnn.data import Dataset, SeriesError, load_series, load_trials
from palrnn.data.readers import parquet_table, read_table
from palrnn.data.table import Wanted

X = np.random.default_rng(2).standard_normal(20)


def _written(tmp_path, columns, **how):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table(columns), path, **how)
    return path


def _refused(path, read=load_series):
    with pytest.raises(SeriesError) as caught:
        read(path)
    return str(caught.value).removeprefix(f"{path}: ")


@pytest.mark.parametrize(
    ("column", "values"),
    [
        (pa.array([1, None, 3], pa.int8()), [1, np.nan, 3]),
        (pa.array([2**64 - 1, 0, 1], pa.uint64()), [2.0**64, 0, 1]),
        (pa.array([0.1, None, 3], pa.float32()), [np.float32(0.1), np.nan, 3]),
        (pa.array([np.float16(0.1), None, np.float16(3)], pa.float16()), [np.float16(0.1), np.nan, 3]),
        (pa.array([True, None, False]), [1, np.nan, 0]),
        (
            pa.array([Decimal("0.1"), None, Decimal("123456789.123456789")]),
            [0.1, np.nan, 123456789.123456789],
        ),
        (pa.array([Decimal("0.1"), None, Decimal("2")], pa.decimal256(60, 5)), [0.1, np.nan, 2]),
        (pa.array([1.5, None, 2.5]).dictionary_encode(), [1.5, np.nan, 2.5]),
        (pa.array([5, 5, 7]).dictionary_encode(), [5, 5, 7]),
    ],
    ids=str,
)
def test_numbers_of_every_kind_are_read_to_the_nearest_float(tmp_path, column, values):
    path = _written(tmp_path, {"x": column, "y": [1.0, 2.0, 0.5]})
    np.testing.assert_array_equal(load_series(path, allow_nan=True)[:, 0], values)


@pytest.mark.parametrize(
    ("column", "shown"),
    [
        (pa.array([None, [1.0, 2.0], [3.0]]), "'[1.0, 2.0]'"),
        (pa.array([None, {"a": 1}, {"a": 2}]), "\"{'a': 1}\""),
        (pa.array([None, "1.5", "2"]), "'1.5'"),
        (pa.array([None, "1.5", "2"]).dictionary_encode(), "'1.5'"),
        (pa.array([None, b"\x1b[2J", b""]), r"\"b'\\x1b[2J'\"".replace('\\"', '"')),
        (pa.array([None, "\x1b[2J", ""]), r"'\x1b[2J'"),
        (pa.array([None, datetime.time(12), None]), "'12:00:00'"),
        (pa.array([None, datetime.date(2020, 1, 1), None]), "'2020-01-01'"),
        (pa.array([None, datetime.timedelta(1), None]), "'1 day, 0:00:00'"),
    ],
    ids=str,
)
def test_what_is_no_number_is_told_with_its_place(tmp_path, column, shown):
    path = _written(tmp_path, {"x": [1.0, 2.0, 0.5], "y": column})
    assert _refused(path) == f"column y, row 2: {shown} is not a number"


def test_a_column_of_nulls_holds_no_values(tmp_path):
    path = _written(tmp_path, {"x": [1.0, 2.0], "y": pa.nulls(2)})
    assert _refused(path) == "column y, row 1: the value is missing (NaN)"
    assert _refused(path, lambda file: load_series(file, allow_nan=True)) == "column y holds no values"


def test_row_groups_may_be_empty_and_batches_small(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_table, "_BATCH", 3)
    path = tmp_path / "a.parquet"
    table = pa.table({"trial": ["b"] * 8 + ["a"] * 12, "x": X})
    with pq.ParquetWriter(path, table.schema) as writer:
        for start, end in ((0, 0), (0, 7), (7, 7), (7, 20), (20, 20)):
            writer.write_table(table[start:end])
    first, second = load_trials(path)
    np.testing.assert_array_equal(first[:, 0], X[:8])
    np.testing.assert_array_equal(second[:, 0], X[8:])
    pq.write_table(table[:0], path)
    assert _refused(path) == "has 0 steps of 1 columns, needs at least 2 steps"


@pytest.mark.parametrize("kind", ["string", "large_string", "int16", "dictionary", "date32", "decimal"])
def test_labels_of_every_kind_tell_trials_in_the_order_in_which_they_begin(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(parquet_table, "_BATCH", 4)
    words = ["2020-01-02"] * 6 + ["2020-01-01"] * 7 + ["2020-01-02"] * 7
    days = pa.array(words).cast(pa.date32())
    labels = {
        "string": pa.array(words),
        "large_string": pa.array(words, pa.large_string()),
        "int16": pa.array([len(set(words)) - (word > "2020-01-01") for word in words], pa.int16()),
        "dictionary": pa.array(words).dictionary_encode(),
        "date32": days,
        "decimal": pa.array([Decimal(word[-2:]) for word in words]),
    }
    path = _written(tmp_path, {"trial": labels[kind], "x": X}, store_schema=kind != "string")
    assert [len(part) for part in load_trials(path)] == [13, 7]
    np.testing.assert_array_equal(load_trials(path)[0][:, 0], np.r_[X[:6], X[13:]])


@pytest.mark.parametrize(
    ("times", "step"),
    [
        (pa.array(pd.date_range("2020", periods=20, freq="2us"), pa.timestamp("us", "UTC")), 2e-6),
        (pa.array(np.arange(20) * 86_400, pa.timestamp("s")), 86_400.0),
        (pa.array(np.arange(20), pa.int32()).cast(pa.date32()), 86_400.0),
        (pa.array(np.arange(20) * 1000, pa.int64()).cast(pa.duration("ms")), 1.0),
        (pa.array(np.arange(20) * 0.25), 0.25),
    ],
    ids=str,
)
def test_a_time_column_of_any_kind_gives_the_step(tmp_path, times, step):
    path = _written(tmp_path, {"time": times, "x": X})
    assert read_table(path, Wanted()).time_step() == (step, "column time")


def test_columns_that_are_not_used_are_not_read(tmp_path):
    # 20 rows of 1 MB
    path = _written(tmp_path, {"x": X, "notes": ["a" * 10**6] * 20}, use_dictionary=False)
    before = pa.total_allocated_bytes()
    peak = pa.default_memory_pool().max_memory() or 0
    np.testing.assert_array_equal(load_series(path, columns=["x"])[:, 0], X)
    assert pa.total_allocated_bytes() - before < 10**6
    assert (pa.default_memory_pool().max_memory() or 0) - peak < 10**7


def test_columns_of_the_same_name_are_read_in_the_order_asked(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_table, "_BATCH", 3)
    table = pa.Table.from_arrays([pa.array(X), pa.array(X**2), pa.array(X**3)], names=["y", "x", "y"])
    pq.write_table(table, tmp_path / "a.parquet")
    np.testing.assert_array_equal(load_series(tmp_path / "a.parquet"), np.column_stack([X, X**2, X**3]))
    found = load_series(tmp_path / "a.parquet", columns=["y.2", "x", "y"])
    np.testing.assert_array_equal(found, np.column_stack([X**3, X**2, X]))
    words = pa.Table.from_arrays([pa.array(["wet"] * 20), pa.array(X)], names=["y", "y"])
    pq.write_table(words, tmp_path / "a.parquet")
    assert read_table(tmp_path / "a.parquet", Wanted()).left_out == {"y": "holds words"}


@pytest.mark.parametrize(
    "index",
    [
        pd.Index(0.5 * np.arange(20), name="time"),
        pd.RangeIndex(0, 40, 2, name="time"),
        pd.date_range("2020", periods=20, freq="2s", name="time"),
        pd.Index([f"2020-01-01 00:00:{2 * k:02}" for k in range(20)], name="time"),
    ],
    ids=["numbers", "range", "dates", "texts"],
)
def test_the_index_of_a_saved_data_frame_tells_the_time_if_it_is_asked(tmp_path, monkeypatch, index):
    monkeypatch.setattr(parquet_table, "_BATCH", 3)
    step = 0.5 if index.dtype == np.float64 else 2.0
    path, thinned = tmp_path / "a.parquet", tmp_path / "b.parquet"
    frame = pd.DataFrame({"a": X, "b": X**2}, index=index)
    frame.to_parquet(path)
    frame.drop(index=index[[3, 4, 11]]).to_parquet(thinned)
    for time in ("time", "index"):
        data = Dataset.prepare(path, time=time)
        assert (data.columns, data.dt, data.left_out) == (("a", "b"), step, {time: "tells the time"})
        assert Dataset.prepare(thinned, time=time, dt=step).gaps == 6
    assert load_series(path, time="time", dt=step, columns=["b"]).shape == (20, 1)
    with pytest.raises(SeriesError, match="no column 'when', there are a, b"):
        load_series(path, time="when", dt=step)


def test_an_index_without_a_name_and_one_of_several_are_asked_for_by_name(tmp_path):
    path = tmp_path / "a.parquet"
    for index in (pd.RangeIndex(20), pd.Index(2.0 * np.arange(20))):
        pd.DataFrame({"a": X}, index=index).to_parquet(path)
        rows = Dataset.prepare(path, time="index", dt=1.0, lags=1).trials[0]
        assert len(rows) == index[-1] + 1
    levels = pd.MultiIndex.from_arrays([np.repeat([1, 2], 10), 0.25 * np.arange(20)], names=["run", "time"])
    pd.DataFrame({"a": X}, index=levels).to_parquet(path)
    assert Dataset.prepare(path, time="time", lags=1).dt == 0.25


def test_a_name_with_a_point_is_no_path_into_a_nested_column(tmp_path):
    path = _written(tmp_path, {"a": X, "a.b": X**2})
    np.testing.assert_array_equal(load_series(path), np.column_stack([X, X**2]))
    np.testing.assert_array_equal(load_series(path, columns=["a"])[:, 0], X)
