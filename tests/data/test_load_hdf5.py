"""HDF5: arrays by their path, claims checked before reading, nothing read from other files."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from palrnn.data import Dataset, SeriesError, load_series, load_trials

X = np.random.default_rng(0).standard_normal((50, 3))


@pytest.fixture
def h5py():
    return pytest.importorskip("h5py")


def _refused(path):
    with pytest.raises(SeriesError) as caught:
        load_series(path)
    return str(caught.value).removeprefix(f"{str(path).partition('::')[0]}: ")


@pytest.mark.parametrize("kind", ["<f8", ">f8", "<f4", "<f2", "i1", ">u4", "?"])
def test_numbers_of_every_kind_are_read(h5py, tmp_path, kind):
    x = (10 * np.abs(X)).astype(kind)
    x[0] = 0
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("data", data=x, chunks=(7, 2), compression="gzip")
    np.testing.assert_array_equal(load_series(tmp_path / "a.h5"), x.astype(float))


def test_of_several_arrays_one_is_asked_for_by_its_path(h5py, tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["session/lfp"], file["session/spikes"], file["rate"] = X, X[:9], 250.0
        file["trials"] = X[:48].reshape(4, 12, 3)
        file["words"] = ["a", "b"]
    assert _refused(path) == (
        "holds 3 arrays, session/lfp (50, 3), session/spikes (9, 3), trials (4, 12, 3): "
        "say which one, as in a.h5::session/lfp"
    )
    np.testing.assert_array_equal(load_series(f"{path}::session/lfp"), X)
    np.testing.assert_array_equal(load_series(f"{path}::/session/lfp"), X)
    np.testing.assert_array_equal(load_series(f"{path}::session//lfp/"), X)
    assert len(load_trials(f"{path}::trials")) == 4
    assert Dataset.prepare(f"{path}::/session/lfp", columns=["a", "b", "c"]).columns == ("a", "b", "c")


def test_an_array_that_claims_to_be_huge_is_refused(h5py, tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", shape=(10**6, 10**6), chunks=(100, 100), dtype="f8")
    assert path.stat().st_size < 10**5
    assert "claims (1000000, 1000000) numbers, more than" in _refused(path)
    with h5py.File(path, "w") as file:
        file.create_dataset("x", shape=(10, 2), maxshape=(None, 2), chunks=(2**28, 2), dtype="i1")
    assert "array x: a chunk: claims (536870912,) numbers" in _refused(path)


def test_nothing_is_read_from_other_files(h5py, tmp_path):
    secret, path = tmp_path / "secret.bin", tmp_path / "a.h5"
    secret.write_bytes(X.tobytes())
    with h5py.File(tmp_path / "b.h5", "w") as file:
        file["x"] = X
    with h5py.File(path, "w") as file:
        file.create_dataset("x", shape=(50, 3), dtype="f8", external=[(str(secret), 0, X.nbytes)])
    assert _refused(path) == "array x: its numbers are in other files, which are not read"
    layout = h5py.VirtualLayout((50, 3), "f8")
    layout[:] = h5py.VirtualSource(str(tmp_path / "b.h5"), "x", (50, 3))
    with h5py.File(path, "w") as file:
        file.create_virtual_dataset("x", layout)
    assert _refused(path) == "array x: its numbers are in other files, which are not read"
    with h5py.File(path, "w") as file:
        file["x"] = h5py.ExternalLink(str(tmp_path / "b.h5"), "x")
    assert _refused(path) == "holds no arrays of real numbers"
    with h5py.File(path, "w") as file:
        file["y"] = X
        file["x"] = h5py.ExternalLink(str(tmp_path / "b.h5"), "x")
    assert _refused(f"{path}::x") == "no array 'x', there are y (50, 3)"


def test_without_h5py_the_message_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    (tmp_path / "a.h5").write_bytes(b"")
    assert _refused(tmp_path / "a.h5") == "reading .h5 needs h5py: pip install 'palrnn[hdf5]'"
