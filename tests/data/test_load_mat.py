"""Files of MATLAB: what SciPy writes and reads, without the structures, and in memory that is bounded."""

from __future__ import annotations

import struct
import tracemalloc
import zlib

import numpy as np
import pytest
import scipy.io
import scipy.sparse

from palrnn.data import Dataset, SeriesError, load_series, table

X = np.random.default_rng(0).standard_normal((50, 3))
KINDS = ["f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "?"]


def _saved(tmp_path, packed=True, **arrays):
    path = tmp_path / "a.mat"
    scipy.io.savemat(path, arrays, do_compression=packed)
    return path


def _refused(path):
    with pytest.raises(SeriesError) as caught:
        load_series(path)
    return str(caught.value).removeprefix(f"{str(path).partition('::')[0]}: ")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("packed", [True, False])
def test_numbers_of_every_kind_are_those_that_scipy_reads(tmp_path, kind, packed):
    x = (100 * np.abs(X)).astype(kind)
    x[0] = 0
    path = _saved(tmp_path, packed, x=x)
    expected = scipy.io.loadmat(path)["x"].astype(float)
    np.testing.assert_array_equal(load_series(path), expected)


def test_a_file_of_the_other_byte_order_is_read(tmp_path):
    element = b"".join(
        [
            struct.pack(">IIII", 6, 8, 6, 0),  # flags: double
            struct.pack(">IIii", 5, 8, 3, 2),
            struct.pack(">HH4s", 1, 1, b"x"),  # a small element: the name
            struct.pack(">II6h4x", 3, 12, 1, 2, 4, 8, 16, 32),  # doubles kept as 16 bits
        ]
    )
    header = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack(">H", 0x0100) + b"MI"
    (tmp_path / "a.mat").write_bytes(header + struct.pack(">II", 14, len(element)) + element)
    np.testing.assert_array_equal(scipy.io.loadmat(tmp_path / "a.mat")["x"], [[1, 8], [2, 16], [4, 32]])
    np.testing.assert_array_equal(load_series(tmp_path / "a.mat"), [[1, 8], [2, 16], [4, 32]])


def test_a_vector_is_one_coordinate_whichever_way_it_lies(tmp_path):
    for shape in ((50, 1), (1, 50)):
        path = _saved(tmp_path, x=X[:, 0].reshape(shape))
        np.testing.assert_array_equal(load_series(path), X[:, :1])


def test_of_several_arrays_one_is_asked_for_by_name(tmp_path):
    path = _saved(tmp_path, lfp=X, spikes=X[:20, :2], fs=250.0, subject="A", notes={"day": 1})
    expected = "holds 2 arrays, lfp (50, 3), spikes (20, 2): say which one, as in a.mat::lfp"
    assert _refused(path) == expected
    np.testing.assert_array_equal(load_series(f"{path}::spikes"), X[:20, :2])
    assert _refused(f"{path}::z") == "no array 'z', there are lfp (50, 3), spikes (20, 2), fs (1, 1)"
    assert _refused(f"{path}::subject") == "array 'subject' is char, expected a real matrix of numbers"
    assert _refused(f"{path}::notes") == "array 'notes' is struct, expected a real matrix of numbers"
    assert Dataset.prepare(f"{path}::lfp").columns == ("x1", "x2", "x3")
    assert Dataset.prepare(f"{path}::lfp").name == "a"


def test_a_recording_beside_its_rate_is_the_only_candidate_and_x_goes_before_others(tmp_path):
    np.testing.assert_array_equal(load_series(_saved(tmp_path, lfp=X, fs=250.0)), X)
    np.testing.assert_array_equal(load_series(_saved(tmp_path, a=X[:9], x=X)), X)


def test_what_is_no_real_matrix_is_told(tmp_path):
    others = {"z": X + 1j, "cube": np.zeros((2, 3, 4)), "words": "hello", "none": np.zeros((0, 3))}
    others["thin"] = scipy.sparse.csc_matrix(np.eye(4))
    message = _refused(_saved(tmp_path, **others))
    assert message == (
        "holds no matrix of numbers, only z (complex), cube (of shape (2, 3, 4)), words (char), "
        "none (of shape (0, 3)), thin (sparse)"
    )
    path = tmp_path / "a.mat"
    scipy.io.savemat(path, {"x": X}, format="4")
    assert _refused(path) == "of MATLAB 4, or no .mat file: save it with -v7"


def test_a_matrix_with_time_in_columns_is_told_what_to_do(tmp_path):
    with pytest.raises(SeriesError, match=r"got 3 rows of 50 columns\. Is time in columns\? Then save"):
        Dataset.prepare(_saved(tmp_path, eeg=X.T))


def _element(dims, claimed, data=b"", packed=True):
    """Return a file with one array of doubles whose description claims ``dims`` and ``claimed`` bytes."""
    body = struct.pack("<IIII", 6, 8, 6, 0) + struct.pack("<IIii", 5, 8, *dims)
    body += struct.pack("<HH4s", 1, 1, b"x") + struct.pack("<II", 9, claimed % 2**32) + data
    matrix = struct.pack("<II", 14, len(body)) + body
    if packed:
        squeezed = zlib.compress(matrix)
        matrix = struct.pack("<II", 15, len(squeezed)) + squeezed
    return b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack("<H", 0x0100) + b"IM" + matrix


@pytest.mark.parametrize("packed", [True, False])
def test_a_file_that_claims_more_than_it_holds_is_refused_in_little_memory(tmp_path, packed):
    path = tmp_path / "a.mat"
    tracemalloc.start()
    try:
        for dims, claimed, words in [
            ((2**16, 2**15), 2**34, "claims"),
            ((10, 2), 2**32 - 8, "claims (10, 2) numbers, 160 bytes, but holds 4294967288"),
            ((2**28 // 8, 1), 2**28, "ends too early"),
            ((-1, 2), 16, "is damaged: an array of shape (-1, 2)"),
        ]:
            path.write_bytes(_element(dims, claimed, packed=packed))
            assert words in _refused(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # room for the 2^25 numbers that the third may hold when it is unpacked; not a byte for the others
    assert peak < 8 * 2**25 + 2**21


def test_a_packed_array_is_unpacked_piece_by_piece(tmp_path):
    path = tmp_path / "a.mat"
    size = 2**22  # flags of 4 MB in 4 KB; one that is unpacked whole would be there twice
    x = np.zeros((size, 1), dtype=np.uint8)
    x[::2] = 1
    scipy.io.savemat(path, {"x": x}, do_compression=True)
    assert path.stat().st_size < 2**15
    load_series(path)
    tracemalloc.start()
    try:
        load_series(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * size + 3 * 2**20 + size  # the numbers, pieces, and one truth value for each


def test_more_than_is_allowed_in_a_file_is_refused_before_it_is_read(tmp_path, monkeypatch):
    path = _saved(tmp_path, lfp=X)
    monkeypatch.setattr(table, "MOST_VALUES", X.size - 1)
    assert _refused(path).startswith("array lfp: claims (50, 3) numbers, more than the 149 allowed")


def test_matlab_7_3_is_read_by_h5py_with_its_dimensions_turned(tmp_path):
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "a.mat"
    with h5py.File(path, "w", userblock_size=512) as file:
        file["lfp"] = X.T
        file["lfp"].attrs["MATLAB_class"] = np.bytes_("double")
        file["fs"] = [[250.0]]
        file["word"] = np.array([[104, 105]], dtype=np.uint16)
        file["word"].attrs["MATLAB_class"] = np.bytes_("char")
        file["#refs#/a"] = X
        file["row"] = X[:, :1]
        file["row"].attrs["MATLAB_class"] = np.bytes_("double")
    with path.open("r+b") as stream:
        stream.write(b"MATLAB 7.3 MAT-file".ljust(124) + struct.pack("<H", 0x0200) + b"IM")
    np.testing.assert_array_equal(load_series(f"{path}::lfp"), X)
    np.testing.assert_array_equal(load_series(f"{path}::row"), X[:, :1])
    assert _refused(path) == "holds 2 arrays, lfp (50, 3), row (1, 50): say which one, as in a.mat::lfp"


def test_without_h5py_matlab_7_3_says_what_to_do(tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "h5py", None)
    path = tmp_path / "a.mat"
    path.write_bytes(b"MATLAB 7.3".ljust(512) + b"\x89HDF\r\n\x1a\n")
    expected = "reading a .mat file of MATLAB 7.3 needs h5py: pip install 'palrnn[hdf5]', or save it with -v7"
    assert _refused(path) == expected
