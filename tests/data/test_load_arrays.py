"""NumPy files: numbers only, never a pickle, never an allocation that the file does not account for."""

from __future__ import annotations

import io
import pickle
import tracemalloc
import zipfile

import numpy as np
import pytest

from palrnn.data import SeriesError, load_series, table
from palrnn.data.readers.arrays import read_npz
from palrnn.data.table import Wanted

X = np.arange(12.0).reshape(6, 2)


def _refused(path, **how):
    with pytest.raises(SeriesError) as caught:
        load_series(path, **how)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    return message.removeprefix(f"{path}: ")


@pytest.mark.parametrize("dtype", ["<f8", ">f8", "<f4", "<f2", "<i2", ">u4", "|b1", "longdouble"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_numbers_of_every_kind_and_order_are_read(tmp_path, dtype, order):
    x = np.array(X % 2 if dtype == "|b1" else X, dtype=dtype, order=order)
    x[0, 0] = 1
    if dtype == "|b1":
        x[2, 1] = False
    np.save(tmp_path / "a.npy", x)
    np.savez_compressed(tmp_path / "a.npz", x)
    for name in ("a.npy", "a.npz"):
        loaded = load_series(tmp_path / name)
        assert loaded.dtype == np.float64
        assert loaded.flags.c_contiguous
        assert loaded.flags.writeable
        np.testing.assert_array_equal(loaded, x.astype(np.float64))


def test_one_dimension_is_one_observed_coordinate(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(5))
    assert load_series(tmp_path / "a.npy").shape == (5, 1)


@pytest.mark.parametrize("shape", [(), (1, 1, 1, 1)])
def test_any_other_number_of_dimensions_is_refused(tmp_path, shape):
    np.save(tmp_path / "a.npy", np.zeros(shape))
    assert _refused(tmp_path / "a.npy") == f"must be (T, N), (T,) or trials (K, T, N), got {shape}"


def test_a_stack_of_trials_is_no_series(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((2, 3, 4)))
    assert _refused(tmp_path / "a.npy") == "holds 2 trials (1, 2): use load_trials, or name one array x"


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.array([[1.0, 2.0], [3.0, np.nan]]), "column 2, row 2: the value is missing (NaN)"),
        (np.array([[1.0, 2.0], [-np.inf, 4.0]]), "column 1, row 2: the value is infinite"),
        (np.array([[1.0, 2.0], [3.0, 2.0]]), "column 2 is constant"),
        (np.zeros((1, 2)), "has 1 steps of 2 columns, needs at least 2 steps"),
        (np.zeros((5, 0)), "is empty, of shape (5, 0)"),
        (np.zeros((0, 2)), "is empty, of shape (0, 2)"),
        (np.array(["a", "b"]), "holds <U1, expected real numbers"),
        (np.array([1j, 2j]), "holds complex128, expected real numbers"),
        (np.zeros(3, dtype=[("a", "f8")]), "holds [('a', '<f8')], expected real numbers"),
        (np.array(["2020-01-01", "2020-01-02"], "M8[D]"), "holds datetime64[D], expected real numbers"),
    ],
)
def test_bad_values_are_told_where_they_are(tmp_path, x, message):
    np.save(tmp_path / "a.npy", x)
    assert _refused(tmp_path / "a.npy") == message


class Trap:
    """Unpickling this would leave a mark."""

    sprung = False

    def __reduce__(self):
        return (_spring, ())


def _spring():
    Trap.sprung = True
    return 0.0


def test_objects_are_refused_without_unpickling(tmp_path):
    np.save(tmp_path / "a.npy", np.array([Trap(), Trap()], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "a.npz", x=np.array([Trap(), Trap()], dtype=object))
    (tmp_path / "b.npy").write_bytes(pickle.dumps(Trap()))
    (tmp_path / "b.npz").write_bytes(pickle.dumps(Trap()))
    assert _refused(tmp_path / "a.npy") == "holds object, expected real numbers"
    assert _refused(tmp_path / "a.npz") == "array x: holds object, expected real numbers"
    assert _refused(tmp_path / "b.npy").startswith("cannot be read as .npy: ")
    assert _refused(tmp_path / "b.npz").startswith("cannot be read as .npz: ")
    assert not Trap.sprung


def _npy(shape, data=b"", descr="<f8"):
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": descr, "fortran_order": False, "shape": shape})
    return stream.getvalue() + data


@pytest.mark.parametrize(
    "shape", [(10**9, 3), (2**40, 2**40), (2**63, 1), (3, 2**62), (-1, 3), (-5, -5), (17, 1)]
)
@pytest.mark.parametrize("suffix", ["npy", "npz"])
def test_a_header_that_claims_more_than_the_file_is_refused_before_memory_is_taken(tmp_path, shape, suffix):
    path, content = tmp_path / f"a.{suffix}", _npy(shape, bytes(128))
    if suffix == "npy":
        path.write_bytes(content)
    else:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("x.npy", content)
    tracemalloc.start()
    message = _refused(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert "which is more than the file holds" in message or "not valid" in message
    assert peak < 2e6


def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "a.npz"
    np.savez_compressed(path, x=np.zeros((100_000, 10)))
    assert path.stat().st_size < 20_000
    monkeypatch.setattr(table, "MOST_VALUES", 10**6 - 1)
    assert _refused(path) == "array x: claims (100000, 10) numbers, more than the 999999 allowed in a file"


def test_an_archive_whose_directory_lies_about_a_size_is_refused(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, x=np.zeros((100, 1)))
    content = bytearray(path.read_bytes())
    at = content.rindex(b"PK\x01\x02") + 24  # the size of the member in the central directory
    content[at : at + 4] = (2**31).to_bytes(4, "little")
    path.write_bytes(content)
    assert _refused(path)


def test_an_archive_holds_one_array_or_one_called_x(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, other=X)
    np.testing.assert_array_equal(load_series(path), X)
    np.savez(path, y=np.array(["text"]), x=X)
    np.testing.assert_array_equal(load_series(path), X)
    np.savez(path, a=X, b=X)
    assert _refused(path) == "holds 2 trials (a, b): use load_trials, or name one array x"
    np.savez(path)
    assert _refused(path) == "holds no arrays"


def test_what_is_not_an_array_in_an_archive_is_passed_over(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, other=X)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("readme.txt", "hello")
    np.testing.assert_array_equal(read_npz(path, Wanted()).values, X)


@pytest.mark.parametrize("name", ["a.npy", "a.npz"])
def test_empty_truncated_and_foreign_files_are_refused(tmp_path, name):
    path = tmp_path / name
    (np.save if name == "a.npy" else np.savez)(path, X)
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        _refused(path)
    path.write_bytes(b"x,y\n1,2\n")
    assert _refused(path).startswith(f"cannot be read as .{name[2:]}: ")


def test_columns_cannot_be_named_in_an_array(tmp_path):
    np.save(tmp_path / "a.npy", X)
    assert _refused(tmp_path / "a.npy", columns=["x"]) == (
        "columns can be named for .csv, .edf, .parquet, .tsv, .txt only"
    )


@pytest.mark.parametrize("suffix", ["npy", "npz", "csv", "parquet"])
def test_mutated_files_give_numbers_or_a_series_error_and_nothing_else(tmp_path, suffix):
    import pandas as pd

    path = tmp_path / f"a.{suffix}"
    match suffix:
        case "npy":
            np.save(path, X)
        case "npz":
            np.savez_compressed(path, x=X)
        case "csv":
            path.write_text("time,x,y\n" + "".join(f"{i},{a},{b}\n" for i, (a, b) in enumerate(X)))
        case _:
            pd.DataFrame(X, columns=["x", "y"]).to_parquet(path)
    whole = np.frombuffer(path.read_bytes(), np.uint8)
    rng = np.random.default_rng(5)
    refused = 0
    for _ in range(400):
        mutated = whole.copy()
        places = rng.integers(0, len(whole), rng.integers(1, 4))
        mutated[places] = rng.integers(0, 256, len(places))
        path.write_bytes(mutated.tobytes())
        try:
            loaded = load_series(path)
        except SeriesError as error:
            assert str(error).startswith(str(path))  # noqa: PT017
            refused += 1
        else:
            assert np.isfinite(loaded).all()
    assert refused > 20
