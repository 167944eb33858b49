"""`Dataset`: one preparation, whatever the series comes as."""

from __future__ import annotations

from pathlib import Path, PureWindowsPath

import numpy as np
import pandas as pd
import pytest

import palrnn
from palrnn.data import Dataset, SeriesError, Standardizer, delay_embed, lorenz63, suggest_tau
from palrnn.data.readers import named_array, registry
from palrnn.data.source import series_name
from palrnn.engine.seeds import kernel_seed

X = lorenz63(600, seed=1)


def _frame():
    frame = pd.DataFrame(X.copy(), columns=["x", "y", "z"])  # older pandas would share the numbers
    frame.insert(0, "time", 0.01 * np.arange(len(X)))
    return frame


@pytest.mark.parametrize("kind", ["array", "frame", "csv", "parquet", "npy", "npz"])
def test_the_same_series_gives_the_same_dataset_from_every_source(tmp_path, kind):
    frame = _frame()
    match kind:
        case "array":
            x, how = X, {"dt": 0.01}
        case "frame":
            x, how = frame, {}
        case "csv":
            x, how = tmp_path / "a.csv", {}
            frame.to_csv(x, index=False)
        case "parquet":
            x, how = tmp_path / "a.parquet", {}
            frame.to_parquet(x)
        case "npy":
            x, how = tmp_path / "a.npy", {"dt": 0.01}
            np.save(x, X)
        case _:
            x, how = tmp_path / "a.npz", {"dt": 0.01}
            np.savez(x, X)
    found, expected = Dataset.prepare(x, **how), Dataset.prepare(X, dt=0.01)
    assert found.fingerprint == expected.fingerprint
    assert found.suggested_tau == expected.suggested_tau
    assert found.columns == (("x", "y", "z") if kind in ("frame", "csv", "parquet") else ("x1", "x2", "x3"))
    np.testing.assert_array_equal(found.reference, X[480:])
    np.testing.assert_array_equal(found.truth, X[:480])
    again = Dataset.from_settings(found.settings, None if kind not in ("array", "frame") else x)
    assert again.fingerprint == found.fingerprint
    assert again.settings == found.settings


def test_only_the_part_to_train_on_decides_scale_delay_and_tau():
    x = X[:, :1].copy()
    other = x.copy()
    other[480:] = 5 * np.random.default_rng(0).standard_normal((120, 1))
    one, two = Dataset.prepare(x, lags=3), Dataset.prepare(other, lags=3)
    assert one.delay == two.delay == round(2 * suggest_tau(x[:480]) / 3)
    assert one.suggested_tau == two.suggested_tau == suggest_tau(delay_embed(x[:480], 3, one.delay))
    np.testing.assert_array_equal(one.standardizer.mean, two.standardizer.mean)
    np.testing.assert_array_equal(np.concatenate(one.training), np.concatenate(two.training))


def test_each_part_is_embedded_in_its_own_past():
    data = Dataset.prepare(X, lags=2, delay=7)
    np.testing.assert_array_equal(data.reference, delay_embed(X[480:], 2, 7))
    np.testing.assert_array_equal(data.truth, delay_embed(X[:480], 2, 7))
    np.testing.assert_array_equal(data.trials[0], delay_embed(X, 2, 7))
    assert data.observed_columns == (*data.columns, *(f"x{i}, 7 steps ago" for i in (1, 2, 3)))
    assert data.settings["delay"] == 7
    with pytest.raises(ValueError, match="lags = 20 with delay = 7 must leave two steps"):
        Dataset.prepare(X, lags=20, delay=7)


def test_of_several_trials_the_last_is_held_out(tmp_path):
    trials = [X[:200], X[200:350], X[350:]]
    frame = pd.DataFrame(X.copy(), columns=["x", "y", "z"])  # older pandas would share the numbers
    frame["run"] = ["a"] * 200 + ["b"] * 150 + ["c"] * 250
    frame.to_csv(tmp_path / "a.csv", index=False)
    listed = Dataset.prepare(trials)
    for data in (
        listed,
        Dataset.prepare(tmp_path / "a.csv", trial="run"),
        Dataset.prepare(frame, trial="run"),
    ):
        assert data.fingerprint == listed.fingerprint
        assert [len(part) for part in data.training] == [200, 150]
        np.testing.assert_array_equal(data.reference, X[350:])
        np.testing.assert_array_equal(data.truth, X[:200])
        scale = Standardizer.fit(X[:350])
        np.testing.assert_allclose(data.heldout, scale.transform(X[350:]), rtol=1e-13)
        assert data.sequence_length() == 150
        assert data.sequence_length(40) == 40
    assert data.left_out == {"run": "tells the trial"}
    with pytest.raises(SeriesError, match="x: no column 'session' of trials"):
        Dataset.prepare(frame, trial="session")


def test_a_list_of_data_frames_is_a_list_of_trials():
    parts = [_frame()[:300], _frame()[300:]]
    data = Dataset.prepare(parts)
    assert (data.dt, data.dt_from) == (0.01, "column time")
    assert data.fingerprint == Dataset.prepare([X[:300], X[300:]], dt=0.01).fingerprint
    assert Dataset.prepare(parts, time="time", dt=0.01).fingerprint == data.fingerprint
    gappy = Dataset.prepare([parts[0].drop(index=[3, 9]), parts[1]], time="time", dt=0.01)
    assert (gappy.gaps, [len(part) for part in gappy.trials]) == (6, [300, 300])
    with pytest.raises(SeriesError, match=r"x\[1\]: must have the columns of x\[0\], x, y, z"):
        Dataset.prepare([parts[0], parts[1].drop(columns="z")])


def test_a_simulated_series_is_what_its_settings_say():
    data = Dataset.prepare(
        "lorenz63", steps=2000, process_std=0.05, observation_std=0.1, data_seed=3, test_fraction=0.25
    )
    clean = lorenz63(2000, process_std=0.05, discard=10_000, seed=3)
    np.testing.assert_array_equal(data.truth, clean[:1500])
    np.testing.assert_array_equal(data.reference, clean[1500:])
    noise = palrnn.add_observation_noise(
        clean[:1500], 0.1, scale=clean[:1500].std(axis=0), seed=kernel_seed(3, "observation noise")
    )
    np.testing.assert_array_equal(data.standardizer.mean, noise.mean(axis=0))
    np.testing.assert_array_equal(data.training[0], Standardizer.fit(noise).transform(noise))
    assert (data.dt, data.name, data.true_system.name) == (0.01, "lorenz63", "lorenz63")
    assert data.lyapunov is None  # with process noise, the literature's exponent is another system's
    assert Dataset.prepare("lorenz63", steps=500).lyapunov == 0.9056
    assert Dataset.prepare("lorenz63", steps=500, parameters={"rho": 35}).lyapunov is None
    assert Dataset.from_settings(data.settings).fingerprint == data.fingerprint


def test_noise_on_a_simulated_series_is_the_same_in_the_present_and_in_the_past():
    data = Dataset.prepare("lorenz63", steps=1000, observation_std=0.2, lags=2, delay=5)
    raw = data.standardizer.inverse(data.training[0])
    # rounding only: each value goes through one standardisation and back
    np.testing.assert_allclose(raw[:-5, :3], raw[5:, 3:], rtol=0, atol=1e-12 * np.abs(raw).max())
    assert data.true_system is None


def test_lorenz96_is_simulated_in_any_size():
    data = Dataset.prepare("lorenz96", steps=400, parameters={"dim": 6})
    assert len(data.columns) == 6
    assert Dataset.from_settings(data.settings).fingerprint == data.fingerprint
    assert Dataset.prepare(data.trials[0], system="lorenz96", dt=0.01).true_system.dim == 6


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"x": X, "steps": 10}, "steps is for simulated systems, x is in memory"),
        ({"x": "lorenz63", "columns": ["a"]}, "columns is for recorded series, lorenz63 is a simulated"),
        ({"x": "lorenz63", "trial": "run"}, "trial is for recorded series"),
        ({"x": X, "columns": ["a"]}, "columns must name 3 coordinates, got 1"),
        ({"x": X, "columns": "xyz"}, "columns must be a sequence of names, got 'xyz'"),
        ({"x": X, "time": "t"}, "time must be None for an array"),
        ({"x": X.T}, r"must have time in rows, got 3 rows of 600 columns.* Is time in columns\?"),
        ({"x": X, "dt": 0.0}, "dt: input should be greater than 0"),
        ({"x": X, "lags": 0}, "lags: input should be greater than or equal to 1"),
        ({"x": X, "test_fraction": 1.0}, "test_fraction: input should be less than or equal to 0.9"),
        ({"x": X, "system": "pendulum", "dt": 1.0}, "system must be one of lorenz63"),
        ({"x": X[:, :2], "system": "lorenz63", "dt": 1.0}, "system = 'lorenz63' has 3 coordinates, got 2"),
        ({"x": X, "system": "lorenz63"}, "dt must be given where system is"),
        ({"x": "lorenz63", "parameters": {"gamma": 1.0}}, "lorenz63 has no parameter gamma"),
        ({"x": "lorenz64"}, "unknown type"),
        ({"x": "nowhere.csv"}, "no such file"),
        ({"x": X, "standardizer": Standardizer(np.zeros(2), np.ones(2))}, "standardizer must have 3 columns"),
        ({"x": np.column_stack([np.arange(600), X])}, "column 1 only counts up"),
        ({"x": np.ones((50, 2))}, "column 1 is constant"),
    ],
)
def test_what_cannot_be_prepared_is_told_why(how, message):
    with pytest.raises(ValueError, match=message):
        Dataset.prepare(how.pop("x"), **how)


def test_a_counting_column_of_an_array_is_kept_if_it_is_named():
    data = Dataset.prepare(np.column_stack([np.arange(600), X]), columns=["n", "x", "y", "z"])
    assert data.columns == ("n", "x", "y", "z")


def test_data_in_memory_must_be_given_again():
    data = Dataset.prepare(X)
    with pytest.raises(ValueError, match="x must be given: the settings are of data that were in memory"):
        Dataset.from_settings(data.settings)
    assert Dataset.from_settings(data.settings, X).fingerprint == data.fingerprint


def test_gaps_pass_through_and_are_refused_where_completeness_is_asked(tmp_path):
    frame = _frame()
    frame.loc[7, "y"] = np.nan
    frame.to_csv(tmp_path / "a.csv", index=False)
    data = Dataset.prepare(tmp_path / "a.csv")
    assert data.gaps == 1
    assert np.isnan(data.training[0][7, 1])
    with pytest.raises(SeriesError, match=r"a.csv: column y, line 9: the value is missing \(NaN\)"):
        data.complete()
    whole = Dataset.prepare(X)
    assert whole.complete() is whole
    settings = palrnn.TrainConfig(updates=1, latent_dim=5, gated=2, sequence_length=20)
    assert np.isfinite(palrnn.train(data.training, settings).model.theta).all()


def test_parts_that_are_split_already_keep_their_split():
    data = Dataset.from_parts([X[:100], X[100:200]], [X[200:300], X[300:]], reference=X[400:], dt=0.1)
    assert [len(part) for part in data.training] == [100, 100]
    assert [len(part) for part in data.heldout_trials] == [100, 300]
    np.testing.assert_array_equal(data.reference, X[400:])
    scale = Standardizer(np.ones(3), np.full(3, 2.0))
    data = Dataset.from_parts(X[:300], X[300:], standardizer=scale)
    np.testing.assert_array_equal(data.heldout, scale.transform(X[300:]))


def test_a_given_standardizer_is_used_as_it_is():
    scale = Standardizer(np.ones(3), np.full(3, 2.0))
    np.testing.assert_array_equal(Dataset.prepare(X, standardizer=scale).training[0], (X[:480] - 1) / 2)


def test_the_fingerprint_changes_with_every_part():
    prints = {
        Dataset.prepare(X).fingerprint,
        Dataset.prepare(X, dt=0.1).fingerprint,
        Dataset.prepare(X, test_fraction=0.3).fingerprint,
        Dataset.prepare(X, lags=2, delay=1).fingerprint,
        Dataset.prepare(X + np.eye(600, 3)).fingerprint,
        Dataset.prepare(X, standardizer=Standardizer(np.zeros(3), np.ones(3))).fingerprint,
    }
    assert len(prints) == 6


def test_a_dataset_tells_what_it_is():
    frame = _frame()
    frame.loc[3, "y"] = np.nan
    shown = repr(Dataset.prepare(frame, name="my data"))
    for words in (
        "Dataset 'my data'",
        "source   in memory",
        "columns  3 used: x, y, z",
        "left out time (tells the time)",
        "rows     600 in 1 trial: 480 to train on, 120 held out",
        "gaps     1 values are missing, the first in column y, row 4",
        "dt       0.01 (column time)",
    ):
        assert words in shown
    with pytest.raises(AttributeError):
        Dataset.prepare(frame).dt = 1.0


@pytest.mark.parametrize(
    ("index", "dt", "told"),
    [
        (pd.RangeIndex(600), None, ""),
        (pd.Index(0.5 * np.arange(600), name="t"), 0.5, "column t"),
        (pd.Index(0.5 * np.arange(600)), 0.5, "the index"),
        (pd.date_range("2020-01-01", periods=600, freq="h"), 3600.0, "the index"),
        (pd.date_range("2020-01-01", periods=600, freq="h", tz="Europe/Berlin"), 3600.0, "the index"),
        (pd.timedelta_range("0s", periods=600, freq="20ms"), 0.02, "the index"),
        (pd.period_range("2000-01-01", periods=600, freq="D"), 86400.0, "the index"),
        (pd.date_range("1970-01", periods=600, freq="MS"), None, "the index is uneven"),  # as months are
        (pd.Index([f"row {i}" for i in range(600)]), None, ""),
        (pd.Index(np.random.default_rng(0).uniform(size=600)), None, "the index is uneven"),
    ],
)
def test_an_even_index_of_a_data_frame_gives_the_time_step(index, dt, told):
    data = Dataset.prepare(pd.DataFrame(X, index=index))
    assert (data.dt, data.dt_from) == (dt, told)
    assert Dataset.prepare(pd.DataFrame(X, index=index), dt=7.0).dt == 7.0


@pytest.mark.parametrize("name", [None, "moment", "index"])
def test_an_uneven_index_puts_rows_on_a_grid_as_a_column_does(name):
    moments = pd.date_range("2020-01-01", periods=600, freq="s", name=name)
    frame = pd.DataFrame(X, index=moments, columns=["a", "b", "c"]).drop(moments[[5, 6, 90]])
    for time in {name or "index", "index"}:
        data = Dataset.prepare(frame, time=time, dt=1.0)
        assert data.columns == ("a", "b", "c")
        assert data.left_out == {time: "tells the time"}
        rows = np.flatnonzero(np.isnan(data.trials[0]).any(axis=1))
        assert list(rows) == [5, 6, 90]
        np.testing.assert_array_equal(np.delete(data.trials[0], rows, axis=0), frame.to_numpy())
    with pytest.raises(SeriesError, match="no column 'when', there are a, b, c"):
        Dataset.prepare(frame, time="when", dt=1.0)


def test_an_array_of_a_file_keeps_its_name_in_the_settings(tmp_path):
    np.savez(tmp_path / "a.npz", u=X, v=X[:300] ** 3)
    data = Dataset.prepare(tmp_path / "a.npz::v")
    assert (len(data.trials[0]), data.name) == (300, "a")
    assert data.settings["series"] == str(tmp_path / "a.npz::v")
    assert Dataset.from_settings(data.settings).fingerprint == data.fingerprint
    with pytest.raises(SeriesError, match=r"a.npz: no array 'w', there are u, v"):
        Dataset.prepare(f"{tmp_path / 'a.npz'}::w")
    (tmp_path / "a.csv").write_text("a,b\n1,2\n2,3\n")
    with pytest.raises(SeriesError, match=r"a.csv: ::v asks for an array by name, which is for .h5"):
        Dataset.prepare(f"{tmp_path / 'a.csv'}::v")


def test_the_name_of_an_array_is_no_path_of_the_system(monkeypatch):
    # of a path, Windows would make rec.h5::group\\x, and any system would make b of a/../b
    assert series_name("rec.npz::a/../b//c") == f"{Path.cwd() / 'rec.npz'}::a/../b//c"
    assert named_array("rec.npz::a/../b//c") == (Path("rec.npz"), "a/../b//c")
    for name in ("Path", "as_path"):
        monkeypatch.setattr(registry, name, PureWindowsPath)
    for path in ("C:/data/rec.h5::group/x", PureWindowsPath("C:/data/rec.h5::group/x")):
        assert named_array(path) == (PureWindowsPath("C:/data/rec.h5"), "group/x")


def test_a_file_whose_name_is_not_utf8_can_be_read_but_not_kept(tmp_path):
    path = tmp_path / "a\udcff.csv"
    path.write_text("x,y\n1,2\n3,5\n4,1\n")
    assert palrnn.load_series(path).shape == (3, 2)
    with pytest.raises(SeriesError, match=r"a\\udcff.csv: the name of the file must be UTF-8"):
        Dataset.prepare(path)


def test_one_column_gets_the_past_that_tells_its_future_unless_told_otherwise():
    x = lorenz63(8000, seed=1)[:, :1]
    data = Dataset.prepare(x)
    assert (data.lags, data.delay) == (3, round(2 * suggest_tau(x[:6400]) / 3))
    assert data.settings["lags"] == 3
    assert "3, " in repr(data)
    assert Dataset.from_settings(data.settings, x).fingerprint == data.fingerprint
    assert Dataset.prepare(x, lags=1).training[0].shape[1] == 1
    assert Dataset.prepare(lorenz63(8000, seed=1)).lags == 1
    assert Dataset.prepare(x, inputs=np.ones((8000, 1)) * np.arange(8000)[:, None]).lags == 1
