"""What every reader of series files must do. A new reader needs only a way to write its files, in `WRITE`."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.io
from edf_file import edf_bytes

from palrnn.data import SeriesError, known_suffixes, load_series, load_trials, table
from palrnn.data.readers import read_table, reader, reader_of
from palrnn.data.table import Wanted

X = np.random.default_rng(4).standard_normal((40, 3))


def _write_h5(frame, path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        file["x"] = frame.to_numpy()


#: How to write a frame of numbers as a file of each kind.
WRITE = {
    ".csv": lambda frame, path: frame.to_csv(path, index=False),
    ".parquet": lambda frame, path: frame.to_parquet(path),
    ".npy": lambda frame, path: np.save(path, frame.to_numpy()),
    ".npz": lambda frame, path: np.savez_compressed(path, x=frame.to_numpy()),
    ".txt": lambda frame, path: frame.to_csv(path, index=False, sep=" ", na_rep="nan"),
    ".tsv": lambda frame, path: frame.to_csv(path, index=False, sep="\t"),
    ".mat": lambda frame, path: scipy.io.savemat(path, {"x": frame.to_numpy()}, do_compression=True),
    ".h5": _write_h5,
    ".hdf5": _write_h5,
    ".edf": lambda frame, path: path.write_bytes(edf_bytes(frame)),
}
#: Files of text, whose errors tell the line.
TEXT = (".csv", ".txt", ".tsv")
each_reader = pytest.mark.parametrize("suffix", known_suffixes())


def _written(folder, suffix, x=X, names=("a", "b", "c")):
    path = folder / f"series{suffix}"
    WRITE[suffix](pd.DataFrame(x, columns=list(names)), path)
    return path


def _refused(path, **how):
    with pytest.raises(SeriesError) as caught:
        load_series(path, **how)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert message.isprintable()
    return message.removeprefix(f"{path}: ")


@each_reader
def test_numbers_are_read_bit_for_bit_into_memory_of_their_own(tmp_path, suffix):
    # the format has 16 bits for a number; `edf_bytes` writes up to 4 in steps of 2^-12
    written = np.round(X * 2**12) / 2**12 if suffix == ".edf" else X
    x = load_series(_written(tmp_path, suffix, written))
    np.testing.assert_array_equal(x, written)
    assert x.dtype == np.float64
    assert x.flags.c_contiguous
    assert x.flags.writeable


@each_reader
def test_missing_values_are_nan_and_refused_unless_allowed(tmp_path, suffix):
    if suffix == ".edf":
        pytest.skip("the format has no missing values")
    x = X.copy()
    x[5, 1] = np.nan
    path = _written(tmp_path, suffix, x)
    np.testing.assert_array_equal(load_series(path, allow_nan=True), x)
    column = "b" if reader_of(path)[1].named else "2"
    place = "line 7" if suffix in TEXT else "row 6"
    assert _refused(path) == f"column {column}, {place}: the value is missing (NaN)"


@each_reader
def test_whole_numbers_are_numbers(tmp_path, suffix):
    x = np.random.default_rng(1).integers(-100, 100, (40, 3))
    np.testing.assert_array_equal(load_series(_written(tmp_path, suffix, x)), x)


@each_reader
def test_columns_with_names_are_picked_by_name_and_others_are_refused(tmp_path, suffix):
    path = _written(tmp_path, suffix)
    if not reader_of(path)[1].named:
        assert _refused(path, columns=["a"]).startswith("columns can be named for ")
        return
    np.testing.assert_array_equal(load_series(path, columns=["c", "a"]), load_series(path)[:, [2, 0]])
    assert read_table(path, Wanted(["c"])).left_out == {"a": "not asked for", "b": "not asked for"}
    assert _refused(path, columns=["d"]) == "no column 'd', there are a, b, c"


@each_reader
def test_a_column_of_trials_and_one_that_counts_are_no_observations(tmp_path, suffix):
    if not reader_of(_written(tmp_path, suffix))[1].named:
        return
    x = np.column_stack([np.arange(1700, 1740), np.repeat([1, 2], 20), X[:, 0]])
    path = _written(tmp_path, suffix, x, ("YEAR", "trial", "spots"))
    assert [len(part) for part in load_trials(path)] == [20, 20]
    found = read_table(path, Wanted())
    assert found.names == ("spots",)
    assert found.left_out == {"YEAR": "only counts up: a time or an index", "trial": "tells the trial"}
    assert found.time_step() == ((1 / 40, "its sampling rate") if suffix == ".edf" else (1.0, "column YEAR"))
    assert load_trials(path, columns=["YEAR", "spots"])[0].shape == (20, 2)


@each_reader
def test_a_name_that_a_terminal_would_obey_is_shown_as_text(tmp_path, suffix):
    path = _written(tmp_path, suffix, names=("a", "\x1b[31mred\u202e", "c"))
    if reader_of(path)[1].named:
        assert read_table(path, Wanted()).names[1] == "\\x1b[31mred\\u202e"
    x = np.ones_like(X)
    evil = _written(tmp_path, suffix, x).rename(tmp_path / f"\x1b[2J{suffix}")
    with pytest.raises(SeriesError) as caught:
        load_series(evil)
    assert str(caught.value).isprintable()


@each_reader
def test_empty_foreign_and_truncated_files_are_refused_or_read_never_anything_else(tmp_path, suffix):
    path = _written(tmp_path, suffix)
    whole = path.read_bytes()
    for content in (b"", b"\x00" * 64, bytes(range(256)) * 4, whole[::-1]):
        path.write_bytes(content)
        _refused(path)
    for size in range(0, len(whole), max(1, len(whole) // 60)):
        path.write_bytes(whole[:size])
        try:
            assert np.isfinite(load_series(path)).all()
        except SeriesError as error:
            assert str(error).startswith(f"{path}: ")  # noqa: PT017


@each_reader
def test_more_numbers_than_are_allowed_are_refused(tmp_path, suffix, monkeypatch):
    path = _written(tmp_path, suffix)
    monkeypatch.setattr(table, "MOST_VALUES", X.size)
    load_series(path)
    monkeypatch.setattr(table, "MOST_VALUES", X.size - 1)
    assert f"more than the {X.size - 1} allowed in a file" in _refused(path)


@each_reader
def test_what_is_no_file_is_refused(tmp_path, suffix):
    assert _refused(tmp_path / f"none{suffix}") == "no such file"
    (tmp_path / f"folder{suffix}").mkdir()
    assert _refused(tmp_path / f"folder{suffix}") == "is not a file"
    loop = tmp_path / f"loop{suffix}"
    loop.symlink_to(loop)
    assert _refused(loop) == "is a link that leads nowhere"
    assert _refused(tmp_path / f"{'n' * 300}{suffix}").lower() == "file name too long"


def test_a_reader_is_added_by_one_function():
    from palrnn.data.readers import registry

    try:

        @reader(".numbers")
        def read_numbers(file, wanted):
            values = np.array(file.read_text().split(), dtype=float)[:, None]
            return table.Table(str(file), ("only",), values)

        assert ".numbers" in known_suffixes()
        with pytest.raises(ValueError, match="is registered already"):
            reader(".numbers")(read_numbers)
    finally:
        registry._READERS.pop(".numbers", None)
