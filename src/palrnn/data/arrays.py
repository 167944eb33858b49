"""Reading `.npy` and `.npz` files: only numbers, never pickles, no more memory than the file accounts for."""

from __future__ import annotations

import math
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from palrnn.data.table import SeriesError

#: An archive can be a small file that unpacks to terabytes of zeros; a series larger than this is not for us.
MOST_BYTES = 8 * 2**30


def read_npy(file: Path) -> NDArray[Any]:
    """Return the array in a ``.npy`` file."""
    with file.open("rb") as stream:
        return _array(stream, file.stat().st_size, str(file))


def read_npz(file: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays in a ``.npz`` file by name; if one is called ``x``, that one only."""
    with zipfile.ZipFile(file) as archive:
        entries = [entry for entry in archive.infolist() if entry.filename.endswith(".npy")]
        members = {entry.filename.removesuffix(".npy"): entry for entry in entries}
        names = ["x"] if "x" in members else list(members)
        if sum(members[name].file_size for name in names) > MOST_BYTES:
            raise SeriesError(f"{file}: claims more than {MOST_BYTES / 2**30:g} GiB of numbers")
        arrays = {}
        for name in names:
            with archive.open(members[name]) as stream:
                arrays[name] = _array(stream, members[name].file_size, f"{file}: array {name}")
    return arrays


def _array(stream: IO[bytes], size: int, what: str) -> NDArray[Any]:
    """Return the array in ``stream`` of ``size`` bytes, after holding its header against that size."""
    version = npy_format.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise SeriesError(f"{what}: .npy version {version[0]}.{version[1]} does not hold plain numbers")
    header = npy_format.read_array_header_1_0 if version == (1, 0) else npy_format.read_array_header_2_0
    shape, column_major, dtype = header(stream)
    if dtype.kind not in "fiub":
        raise SeriesError(f"{what}: holds {dtype}, expected real numbers")
    claimed, held = math.prod(shape) * dtype.itemsize, size - stream.tell()
    if claimed > held or min(shape, default=0) < 0:
        raise SeriesError(f"{what}: its header claims {shape} {dtype}, which is more than the file holds")
    data = stream.read(claimed)
    if len(data) < claimed:
        raise SeriesError(f"{what}: ends too early")
    return np.frombuffer(data, dtype).reshape(shape, order="F" if column_major else "C")
