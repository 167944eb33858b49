"""Files that claim to be huge: refused at once, in memory that does not depend on what they claim.

Each kind is read in a process of its own, which says how much its memory grew beyond what its imports took.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
HUGE = 10**12
CHILD = """
import json, re, sys, time
import pyarrow.parquet, pandas
from palrnn.data import SeriesError, load_trials
def peak():  # in megabytes; the one that getrusage tells begins at that of the parent
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) / 1024
found = []
for path in sys.argv[1:]:
    before, start = peak(), time.process_time()
    try:
        load_trials(path)
        said = "read"
    except SeriesError as error:
        said = str(error).removeprefix(path + ": ")
    found.append((said, peak() - before, time.process_time() - start))
print(json.dumps(found))
"""


def _read(*paths):
    """Return what reading each file said, by how many megabytes memory grew, and its processor time."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD, *map(str, paths)], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def _header(shape, kind):
    stream = io.BytesIO()
    np.lib.format.write_array_header_2_0(stream, {"descr": kind, "fortran_order": False, "shape": shape})
    return stream.getvalue()


def _sparse(path, start, size):
    """Write a file of ``size`` bytes, as it seems, of which only the start takes room on the disk."""
    path.write_bytes(start)
    try:
        os.truncate(path, size)
    except OSError:
        pytest.skip("this file system has no sparse files of this size")
    return path


def _refused_at_once(*paths):
    for said, megabytes, seconds in _read(*paths):
        assert said != "read"
        # 4 MiB of text and the buffers of parsers, but nothing that grows with the claim
        assert megabytes < 100
        # milliseconds; processor time, so that a busy machine does not matter
        assert seconds < 5


def test_npy_that_claims_to_be_huge(tmp_path):
    paths = []
    shapes = [
        (HUGE,),
        (10**6, 10**6),
        (0, HUGE),
        (HUGE, 0),
        (HUGE, 0, 3),
        (1, HUGE, 0),
        (1, 2**21),
        (2**21, 1, 1),
    ]
    for number, shape in enumerate(shapes):
        path = tmp_path / f"{number}.npy"
        # the file is as long as it says: bytes that become numbers eight times as long
        header = _header(shape, "|b1")
        paths.append(_sparse(path, header, len(header) + int(np.prod(shape))))
    _refused_at_once(*paths)


def test_npz_that_claims_to_be_huge(tmp_path):
    paths = [tmp_path / name for name in ("lies.npz", "unpacks.npz", "many.npz")]
    with zipfile.ZipFile(paths[0], "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", _header((HUGE,), "|b1") + bytes(100))
    # 270 MB of zeros in 0.3 MB, which would become 2.2 GB
    with (
        zipfile.ZipFile(paths[1], "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("x.npy", "w") as member,
    ):
        member.write(_header((2**28 + 10**6,), "|b1"))
        for _ in range(2**8 + 1):
            member.write(bytes(2**20))
    # no single array is too large
    with zipfile.ZipFile(paths[2], "w", zipfile.ZIP_DEFLATED) as archive:
        for k in range(3):
            archive.writestr(f"{k}.npy", _header((HUGE,), "<f8") + bytes(10**6))
    assert paths[1].stat().st_size < 0.5e6
    _refused_at_once(*paths)


def test_an_array_takes_no_more_memory_than_its_numbers(tmp_path):
    path = tmp_path / "a.npz"
    np.savez_compressed(path, x=np.zeros((4 * 10**6, 4), dtype=bool))
    ((said, megabytes, _),) = _read(path)
    assert said == "column 1 is constant"
    # 128 MB of float64, one column of truth values, one piece of the file
    assert 100 < megabytes < 200


def test_csv_that_claims_to_be_huge(tmp_path):
    zeros = _sparse(tmp_path / "zeros.csv", b"x,y\n1,2\n", HUGE)
    line = tmp_path / "line.csv"
    line.write_bytes(b"1," * 10**7)
    word = _sparse(tmp_path / "quoted.csv", b'x,y\n1,"2', HUGE)
    _refused_at_once(zeros, line, word)


def _varint(number):
    number *= 2  # zigzag
    parts = []
    while number >= 128:
        parts.append(number % 128 + 128)
        number //= 128
    return bytes([*parts, number])


def test_parquet_that_claims_to_be_huge(tmp_path):
    rows = 123_457
    path = tmp_path / "a.parquet"
    pd.DataFrame({"x": np.zeros(rows), "y": np.zeros(rows)}).to_parquet(path, index=False)
    content = path.read_bytes()
    size = int.from_bytes(content[-8:-4], "little")
    paths = []
    for claim in (HUGE, 2**28 // 2, rows + 1, rows - 1):
        # an i64 of the footer: the rows of the file, of its one row group, and the values of each column
        footer = content[-8 - size : -8].replace(b"\x16" + _varint(rows), b"\x16" + _varint(claim))
        assert footer != content[-8 - size : -8]
        paths.append(tmp_path / f"{claim}.parquet")
        paths[-1].write_bytes(content[: -8 - size] + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    _refused_at_once(*paths)


def test_a_long_word_in_every_row_of_parquet_is_one_word(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = 10**5
    words = pa.DictionaryArray.from_arrays(np.arange(rows) // (rows // 2), ["a" * 10**5, "b"])
    table = pa.table({"trial": words, "x": np.random.default_rng(0).standard_normal(rows)})
    path = tmp_path / "a.parquet"
    pq.write_table(table, path, store_schema=False)
    assert pq.read_schema(path).field("trial").type == pa.string()
    ((said, megabytes, _),) = _read(path)
    assert said == "read"
    # as text, the labels would be 5 GB
    assert megabytes < 300
