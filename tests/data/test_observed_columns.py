"""Which columns of a table are observations: not a time, not a count, unless they are asked for."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from palrnn.data import Dataset, SeriesError, column_names, load_series, load_trials
from palrnn.data.clock import even_step
from palrnn.data.readers import read_table
from palrnn.data.table import Wanted

X = np.random.default_rng(3).standard_normal((60, 2))
COUNTING = "only counts up: a time or an index"
HOURS = pd.Series(pd.date_range("2020-01-01", periods=60, freq="h"))
#: Every ten minutes, in local time without a zone: the hour from 2 to 3 comes twice.
AUTUMN = pd.date_range("2024-10-27 00:00", periods=60, freq="10min", tz="Europe/Berlin").tz_localize(None)
TWICE = np.r_[np.arange(30), np.arange(30)]


def _sources(tmp_path, columns, index=None):
    """Return the same table as a data frame, a .csv and a .parquet."""
    frame = pd.DataFrame(columns)
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_parquet(tmp_path / "a.parquet", index=False)
    return frame, tmp_path / "a.csv", tmp_path / "a.parquet"


@pytest.mark.parametrize(
    ("columns", "used", "left_out", "dt"),
    [
        ({"YEAR": np.arange(1700, 1760), "a": X[:, 0]}, ("a",), {"YEAR": COUNTING}, 1.0),
        ({"a": X[:, 0], "n": np.arange(60), "b": X[:, 1]}, ("a", "b"), {"n": COUNTING}, 1.0),
        ({"seconds": 0.25 * np.arange(60), "a": X[:, 0]}, ("a",), {"seconds": COUNTING}, 0.25),
        ({"YEAR": np.arange(60) + (np.arange(60) > 5), "a": X[:, 0]}, ("a",), {"YEAR": COUNTING}, None),
        ({"time": 0.5 * np.arange(60), "a": X[:, 0]}, ("a",), {"time": "tells the time"}, 0.5),
        ({"step": np.arange(60), "a": X[:, 0]}, ("a",), {"step": "tells the time"}, None),
        (
            {"when": pd.date_range("2020", periods=60, freq="30min"), "a": X[:, 0]},
            ("a",),
            {"when": "tells the time"},
            1800.0,
        ),
        ({"a": X[:, 0], "remark": ["dry", "a bit wet"] * 30}, ("a",), {"remark": "holds words"}, None),
        # no counts: it falls once, it stays once, it is the only column, it rises unevenly and not in front
        ({"a": np.r_[np.arange(59), 3], "b": X[:, 0]}, ("a", "b"), {}, None),
        ({"a": np.r_[np.arange(59), 58], "b": X[:, 0]}, ("a", "b"), {}, None),
        ({"a": np.arange(60)}, ("a",), {}, None),
        ({"a": np.arange(60), "b": 2 * np.arange(60)}, ("a", "b"), {}, None),
        ({"b": X[:, 0], "a": np.arange(60) ** 2}, ("b", "a"), {}, None),
        ({"a": np.sort(X[:, 0]), "b": X[:, 1]}, ("a", "b"), {}, None),
    ],
)
def test_files_and_data_frames_agree_on_what_is_observed(tmp_path, columns, used, left_out, dt):
    for source in _sources(tmp_path, columns):
        data = Dataset.prepare(source)
        assert data.columns == used
        assert data.left_out == left_out
        assert data.dt == dt
        assert all(f"{name} ({reason})" in repr(data) for name, reason in left_out.items())
    for path in (tmp_path / "a.csv", tmp_path / "a.parquet"):
        assert tuple(column_names(path)) == used
        assert load_series(path).shape == (60, len(used))


def test_a_column_with_a_number_somewhere_or_asked_for_holds_no_remarks(tmp_path):
    for words in (["dry"] * 59 + ["1.5"], ["1,5"] * 60, ["dry"] * 59 + ["nan"]):
        frame = pd.DataFrame({"a": X[:, 0], "b": words})
        frame.to_csv(tmp_path / "a.csv", index=False)
        with pytest.raises(SeriesError, match="is not a number"):
            load_series(tmp_path / "a.csv")
    with pytest.raises(SeriesError, match="column b, line 2: 'dry' is not a number"):
        load_series(tmp_path / "a.csv", columns=["b"])


def test_columns_decide(tmp_path):
    columns = {"YEAR": np.arange(1700, 1760), "a": X[:, 0], "b": X[:, 1]}
    for source in _sources(tmp_path, columns):
        data = Dataset.prepare(source, columns=["YEAR", "b"])
        assert data.columns == ("YEAR", "b")
        assert data.left_out == {"a": "not asked for"}
        again = Dataset.prepare(source, columns=["a"], time="YEAR")
        assert (again.columns, again.dt, again.dt_from) == (("a",), 1.0, "column YEAR")


def test_a_count_starts_again_in_every_trial(tmp_path):
    count = np.r_[np.arange(20), np.arange(40)]
    table = {"trial": np.repeat([1, 2], [20, 40]), "n": count, "a": X[:, 0]}
    for source in _sources(tmp_path, table):
        assert Dataset.prepare(source).left_out == {"trial": "tells the trial", "n": COUNTING}
    assert [len(part) for part in load_trials(tmp_path / "a.csv")] == [20, 40]


def test_few_rows_may_rise_by_chance(tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n" + "".join(f"{i},{i * i % 5}\n" for i in range(7)))
    assert column_names(tmp_path / "a.csv") == ["a", "b"]


def test_a_time_column_may_stand_anywhere_if_it_is_named(tmp_path):
    times = np.cumsum(np.random.default_rng(0).uniform(0.1, 1, 60))
    for source in _sources(tmp_path, {"a": X[:, 0], "moment": times, "b": X[:, 1]}):
        data = Dataset.prepare(source, time="moment")
        assert data.columns == ("a", "b")
        assert data.left_out == {"moment": "tells the time"}
        assert data.dt is None
        assert "not known, rates are per step (column moment is uneven)" in repr(data)
    # a name that says so and values that only rise are enough, even uneven ones
    for source in _sources(tmp_path, {"a": X[:, 0], "time": times, "b": X[:, 1]}):
        assert Dataset.prepare(source).left_out == {"time": COUNTING}
    for source in _sources(tmp_path, {"a": X[:, 0], "time": X[:, 1]}):
        assert Dataset.prepare(source).left_out == {}


def test_statsmodels_sunspots_are_one_column():
    import statsmodels.api as sm

    data = Dataset.prepare(sm.datasets.sunspots.load_pandas().data)
    assert data.columns == ("SUNACTIVITY",)
    assert data.left_out == {"YEAR": COUNTING}


def test_the_index_of_a_saved_data_frame_is_no_observation(tmp_path):
    frame = pd.DataFrame(X, columns=["a", "b"], index=pd.Index(0.5 * np.arange(60), name="when"))
    frame.to_parquet(tmp_path / "a.parquet")
    frame.to_csv(tmp_path / "a.csv")
    for source in (frame, tmp_path / "a.parquet", tmp_path / "a.csv"):
        data = Dataset.prepare(source)
        assert (data.columns, data.dt, data.dt_from) == (("a", "b"), 0.5, "column when")


@pytest.mark.parametrize(
    ("times", "step"),
    [
        (np.arange(100) / 100, 0.01),
        (np.round(np.arange(1000) / 60, 3), 1 / 60),  # whole milliseconds
        (1e9 + np.arange(100) / 128, 1 / 128),
        (np.arange(100) ** 1.01, None),
        (np.r_[np.arange(50), np.arange(51, 101)], None),
        (-np.arange(10.0), None),
        (np.r_[0.0, np.nan, 2.0], None),
        (np.zeros(1), None),
    ],
)
def test_even_times_give_their_step(times, step):
    found = even_step([times])
    # rounded times give the step as the mean over all of them
    assert found == (None if step is None else pytest.approx(step, rel=1e-5))
    # every trial begins at its own time
    assert even_step([times, times + 7.3]) == (None if step is None else pytest.approx(step, rel=1e-5))


@pytest.mark.parametrize(
    "first", ["2024-03-31T00:00:00", "2024-03-31 00:00:00,000001", "2024-03-31T00:00:00Z"]
)
def test_dates_in_a_csv_are_seconds(tmp_path, first):
    moments = pd.to_datetime(first.replace(",", ".")) + pd.to_timedelta(np.arange(30) * 20, unit="us")
    rows = "".join(f"{moment.isoformat()},{x}\n" for moment, x in zip(moments, X[:, 0], strict=False))
    (tmp_path / "a.csv").write_text("date,x\n" + rows)
    assert read_table(tmp_path / "a.csv", Wanted()).time_step() == (2e-5, "column date")


def test_times_that_are_not_all_times_tell_no_step(tmp_path):
    (tmp_path / "a.csv").write_text("time,x\nnoon,1\n2,5\n3,2\n")
    table = read_table(tmp_path / "a.csv", Wanted())
    assert (table.clock, table.times, table.time_step()) == (None, None, (None, ""))
    with pytest.raises(SeriesError, match=r"a.csv: column time does not tell times"):
        Dataset.prepare(tmp_path / "a.csv", time="time")


@pytest.mark.parametrize("form", ["%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d %H:%M:%S.%f"])
@pytest.mark.parametrize("name", ["date", "when"])
def test_dates_written_as_text_are_dates_in_data_frames_as_in_files(tmp_path, form, name):
    frame, csv, parquet = _sources(tmp_path, {name: HOURS.dt.strftime(form), "a": X[:, 0]})
    indexed, exact = frame.set_index(name), pd.read_csv(csv, converters={"a": float})
    indexed.to_parquet(tmp_path / "indexed.parquet")
    for source in (frame, csv, parquet, indexed, tmp_path / "indexed.parquet", exact):
        data = Dataset.prepare(source)
        assert (data.columns, data.dt, data.dt_from) == (("a",), 3600.0, f"column {name}")
        rows = Dataset.prepare(source, time=name, dt=1800.0, lags=1).trials[0]
        assert rows.shape == (119, 1)
        np.testing.assert_array_equal(rows[::2, 0], X[:, 0])
    categories = frame.astype({name: "category"})
    categories.to_parquet(parquet)
    for source in (categories, parquet):
        assert Dataset.prepare(source, time=name).dt == 3600.0


def test_texts_that_are_not_all_dates_tell_no_time(tmp_path):
    words = HOURS.dt.strftime("%Y-%m-%d").where(HOURS.index != 7, "yesterday")
    frame, csv, parquet = _sources(tmp_path, {"date": words, "a": X[:, 0]})
    for source in (frame, csv, parquet, frame.set_index("date")):
        assert (Dataset.prepare(source).columns, Dataset.prepare(source).dt) == (("a",), None)
        with pytest.raises(SeriesError, match="column date does not tell times"):
            Dataset.prepare(source, time="date", dt=1.0)


def _refusal(source, **how):
    with pytest.raises(
        SeriesError, match="the time is earlier than that of the row before: sort the"
    ) as caught:
        Dataset.prepare(source, **how)
    return str(caught.value).partition(": ")[2].partition(": the time is earlier")[0]


@pytest.mark.parametrize(
    ("times", "how", "row"),
    [
        # newest row first
        ({"Date": HOURS[::-1].to_numpy()}, {}, 2),
        ({"Date": AUTUMN[::-1]}, {}, 8),  # the first that is more than an hour back
        ({"Date": AUTUMN[18:22][::-1].repeat(15)}, {}, 16),
        ({"Date": HOURS[::-1].dt.strftime("%Y-%m-%d %H:%M").to_numpy()}, {}, 2),
        ({"time [s]": -0.5 * np.arange(60)}, {}, 2),
        ({"t": np.arange(60)[::-1] // 2}, {}, 3),
        # dates that fall somewhere: two stations, one after the other
        ({"Date": HOURS[TWICE].to_numpy()}, {}, 31),
        # any fall of a column that was named
        ({"phase": TWICE}, {"time": "phase"}, 31),
        ({"step": TWICE}, {"time": "step"}, 31),
        ({"t": np.r_[np.arange(59), 57.5]}, {"time": "t"}, 60),
        ({"Date": AUTUMN}, {"time": "Date"}, 19),
    ],
)
def test_rows_that_run_backwards_in_time_are_refused(tmp_path, times, how, row):
    frame, csv, parquet = _sources(tmp_path, times | {"a": X[:, 0]})
    (name,) = times
    assert _refusal(frame, **how) == f"column {name}, row {row}"
    assert _refusal(parquet, **how) == f"column {name}, row {row}"
    assert _refusal(csv, **how) == f"column {name}, line {row + 1}"
    with pytest.raises(SeriesError, match="sort the rows by time"):
        load_series(csv, **how)
    in_order = frame.sort_values(name, kind="stable").reset_index(drop=True)
    assert Dataset.prepare(in_order, **how).left_out == {name: "tells the time"}


@pytest.mark.parametrize(
    "times",
    [
        {"time": TWICE},  # a time of day, or in a cycle
        {"t": np.r_[np.arange(59), 57.5]},
        {"Date": AUTUMN},
        {"Date": HOURS.to_numpy() - np.where(np.arange(60) > 30, np.timedelta64(50, "m"), 0)},
        {"time (ka BP)": np.arange(60)[::-1]},
        {"step": np.arange(60)[::-1]},
        {"Unnamed: 0": np.arange(60)[::-1]},
        {"index": TWICE},
    ],
)
def test_times_that_may_fall_in_a_sound_file_are_not_refused(tmp_path, times):
    (name,) = times
    for source in _sources(tmp_path, times | {"a": X[:, 0]}):
        data = Dataset.prepare(source)
        assert (data.columns, data.left_out) == (("a",), {name: "tells the time"})
        assert (data.dt, data.dt_from) == (
            None,
            f"{'the index' if name == 'index' else 'column ' + name} is uneven",
        )


def test_times_fall_from_one_trial_to_the_next(tmp_path):
    columns = {"trial": np.repeat([1, 2], 30), "Date": HOURS[TWICE].to_numpy(), "a": X[:, 0]}
    for source in _sources(tmp_path, columns):
        assert Dataset.prepare(source, time="Date").dt == 3600.0
        assert Dataset.prepare(source).dt == 3600.0
    columns["Date"] = np.r_[columns["Date"][:30], columns["Date"][30:][::-1]]
    for source in _sources(tmp_path, columns):
        assert _refusal(source, time="Date").startswith("column Date, ")


def test_an_index_that_falls_is_refused_if_it_holds_dates(tmp_path):
    frame = pd.DataFrame({"a": X[:, 0]}, index=pd.DatetimeIndex(HOURS[::-1]))
    assert _refusal(frame) == "the index, row 2"
    frame.to_parquet(tmp_path / "a.parquet")
    assert _refusal(tmp_path / "a.parquet") == "the index, row 2"
    # turned round: the rows are in order now, and their numbers are not
    turned = pd.DataFrame({"a": X[:, 0]})[::-1]
    for source in (turned, turned.rename_axis("depth")):
        assert len(Dataset.prepare(source).columns) == 1


def test_the_error_of_a_falling_time_says_what_may_be_meant():
    frame = pd.DataFrame({"t": np.arange(60)[::-1], "a": X[:, 0]})
    with pytest.raises(SeriesError, match=r"sort the rows by time, or change its sign if it is an age$"):
        Dataset.prepare(frame)
    with pytest.raises(
        SeriesError, match=r"sort the rows by time, or name the column that tells trials apart$"
    ):
        Dataset.prepare(frame.assign(t=TWICE), time="t")
    with pytest.raises(SeriesError, match=r"x\[1\]: column t, row 2: .* sort the rows by time"):
        Dataset.prepare([frame[::-1], frame])


def test_dates_a_second_apart_are_no_counter_of_rows():
    values = np.random.default_rng(0).standard_normal((50, 2))
    frame = pd.DataFrame(values, index=pd.date_range("2026-01-01", periods=50, freq="s"))
    assert Dataset.prepare(frame).dt == 1.0
    assert Dataset.prepare(pd.DataFrame(values, index=np.arange(1.0, 51.0))).dt is None
