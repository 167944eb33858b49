"""Uneven time stamps become gaps on an even grid; nothing is interpolated."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from command_line import call

import palrnn
from palrnn import Dataset, SeriesError, load_series


def table(times, trial=None):
    x = palrnn.lorenz63(len(times), seed=1)
    frame = pd.DataFrame({"t": times, "x": x[:, 0], "y": x[:, 1]})
    return frame if trial is None else frame.assign(trial=trial)


def test_rows_go_to_the_nearest_grid_point_and_the_rest_are_gaps(tmp_path):
    frame = table([5.0, 5.1, 5.42, 5.88, 6.0])
    frame.to_csv(tmp_path / "a.csv", index=False)
    found = load_series(tmp_path / "a.csv", time="t", dt=0.1)
    assert found.shape == (11, 2)
    seen = [0, 1, 4, 9, 10]
    np.testing.assert_array_equal(found[seen], frame[["x", "y"]])
    assert np.isnan(np.delete(found, seen, axis=0)).all()


def test_rows_at_the_same_grid_point_are_averaged_over_what_was_seen(tmp_path):
    frame = table([0.0, 0.96, 1.04, 2.0])
    frame.loc[1, "y"] = np.nan
    frame.to_csv(tmp_path / "a.csv", index=False)
    found = load_series(tmp_path / "a.csv", time="t", dt=1.0, allow_nan=True)
    np.testing.assert_allclose(found[1], [frame.x[1:3].mean(), frame.y[2]], rtol=1e-15)


def test_each_trial_has_a_grid_of_its_own(tmp_path):
    frame = table([0.0, 0.1, 0.3, 7.0, 7.2], trial=["a", "a", "a", "b", "b"])
    frame.to_csv(tmp_path / "a.csv", index=False)
    first, second = palrnn.load_trials(tmp_path / "a.csv", time="t", dt=0.1)
    assert (len(first), len(second)) == (4, 3)
    np.testing.assert_array_equal(np.isnan(second[:, 0]), [False, True, False])


def test_a_series_that_lost_rows_is_the_series_with_gaps():
    x = palrnn.lorenz63(600, seed=1)
    kept = np.sort(np.random.default_rng(0).choice(600, 300, replace=False))
    kept[0], kept[-1] = 0, 599
    frame = pd.DataFrame(x, columns=list("abc")).assign(when=0.01 * np.arange(600))
    found = Dataset.prepare(frame.iloc[kept].reset_index(drop=True), time="when", dt=0.01)
    gappy = np.full_like(x, np.nan)
    gappy[kept] = x[kept]
    expected = Dataset.prepare(gappy, dt=0.01)
    assert found.fingerprint == expected.fingerprint
    assert found.dt == 0.01
    assert found.gaps == 900
    assert "the grid that column when was put on" in repr(found)
    dated = frame.iloc[kept].assign(when=pd.Timestamp("2020-01-01") + pd.to_timedelta(frame.when[kept], "s"))
    again = Dataset.prepare(dated.reset_index(drop=True), time="when", dt=0.01)
    assert again.fingerprint == expected.fingerprint


@pytest.mark.parametrize(
    ("times", "dt", "words"),
    [
        ([0.0, 2.0, 1.0, 3.0], 1.0, r"column t, line 4: the time is earlier than that of the row before"),
        ([0.0, 1.0, np.nan, 3.0], 1.0, "has no column with a time in every row"),
        ([0.0, 1.0, 2.0, 3.0], 1e-12, r"dt = 1e-12 makes 3e\+12 rows: give a larger dt"),
        ([0.0, 1.0, 2.0, 3.0], 100.0, r"dt = 100 leaves a single row of a trial: give a smaller dt"),
        ([0.0, 1.0, 2.0, 3.0], 0.0, "dt must be greater than 0"),
    ],
)
def test_times_that_fit_no_grid_are_refused(times, dt, words, tmp_path):
    table(times).to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(ValueError, match=words):
        load_series(tmp_path / "a.csv", time="t", dt=dt)


def test_a_missing_time_in_a_data_frame_is_named():
    frame = table([0.0, 1.0, np.nan, 3.0])
    with pytest.raises(SeriesError, match="x: column t, row 3: the time is missing"):
        Dataset.prepare(frame, time="t", dt=1.0)


def test_a_grid_needs_the_name_of_the_times(tmp_path):
    table([0.0, 1.0, 2.0]).to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(ValueError, match="time must name the column that tells the time where dt is given"):
        load_series(tmp_path / "a.csv", dt=1.0)
    with pytest.raises(SeriesError, match="no column 'when'"):
        load_series(tmp_path / "a.csv", time="when", dt=1.0)


def test_the_command_puts_a_file_on_a_grid(tmp_path, capsys):
    x = palrnn.lorenz63(1500, seed=1)
    kept = np.sort(np.random.default_rng(0).choice(1500, 900, replace=False))
    frame = pd.DataFrame(x[kept], columns=list("abc"))
    frame.insert(0, "t", 0.01 * kept)
    frame.to_csv(tmp_path / "a.csv", index=False)
    words = ("train", tmp_path / "a.csv", "--time", "t", "--dt", 0.01, "--updates", 3, "-o", tmp_path / "run")
    code, _, err = call(capsys, *words, "--sequence-length", 40, "--latent-dim", 5, "--gated", 2)
    assert code == 0, err
    assert "the grid that column t was put on" in err
