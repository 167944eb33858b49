"""Reading `.npy` and `.npz` files: only numbers, never pickles, no more memory than the numbers take.

Numbers are converted to float64 piece by piece, so that an array of bytes is never in memory twice.
"""

from __future__ import annotations

import math
import zipfile
from pathlib import Path
from typing import IO

import numpy as np
from numpy.lib import format as npy_format

from palrnn.data.readers.array_table import array_table, trials_of
from palrnn.data.readers.registry import reader
from palrnn.data.table import SeriesError, Table, Wanted, refuse_size
from palrnn.engine.checks import Floats
from palrnn.engine.text import printable, quoted

_PIECE = 2**20


@reader(".npy", named=False)
def read_npy(file: Path, wanted: Wanted) -> Table:
    """Return the array in a ``.npy`` file: (T,), (T, N), or trials (K, T, N)."""
    with file.open("rb") as stream:
        stack = _array(stream, file.stat().st_size, str(file))
    return array_table(str(file), *trials_of(str(file), stack))


@reader(".npz", named=False, arrays=True)
def read_npz(file: Path, wanted: Wanted) -> Table:
    """Return the array asked for in a ``.npz`` file, or the one named ``x``, or else each as a trial."""
    parts: dict[str, Floats] = {}
    with zipfile.ZipFile(file) as archive:
        entries = [entry for entry in archive.infolist() if entry.filename.endswith(".npy")]
        members = {entry.filename.removesuffix(".npy"): entry for entry in entries}
        names = list(members)
        if wanted.array is not None:
            if wanted.array not in members:
                there = ", ".join(printable(name, 40) for name in names[:12]) or "none"
                raise SeriesError(f"{file}: no array {quoted(wanted.array)}, there are {there}")
            names = [wanted.array]
        elif "x" in members:
            names = ["x"]
        for name in names:
            what, held = f"{file}: array {name}", sum(part.size for part in parts.values())
            with archive.open(members[name]) as stream:
                parts[name] = _array(stream, members[name].file_size, what, held)
    if not parts:
        raise SeriesError(f"{file}: holds no arrays")
    if len(parts) == 1:
        return array_table(str(file), *trials_of(str(file), *parts.values()))
    trials = [trials_of(f"{file}: array {name}", part)[0] for name, part in parts.items()]
    if any(len(trial) > 1 for trial in trials):
        raise SeriesError(f"{file}: holds several arrays, each must be (T, N) or (T,)")
    return array_table(str(file), [trial[0] for trial in trials], list(parts))


def _array(stream: IO[bytes], size: int, what: str, held: int = 0) -> Floats:
    """Return the array in ``stream`` of ``size`` bytes, after holding its header against that size.

    ``held`` numbers of the same file are in memory already.
    """
    version = npy_format.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise SeriesError(f"{what}: .npy version {version[0]}.{version[1]} does not hold plain numbers")
    header = npy_format.read_array_header_1_0 if version == (1, 0) else npy_format.read_array_header_2_0
    shape, column_major, dtype = header(stream)
    if dtype.kind not in "fiub":
        raise SeriesError(f"{what}: holds {dtype}, expected real numbers")
    count = math.prod(shape)
    if count * dtype.itemsize > size - stream.tell() or min(shape, default=0) < 0:
        raise SeriesError(f"{what}: its header claims {shape} {dtype}, which is more than the file holds")
    refuse_size(what, shape, held)
    values = np.empty(count)
    with np.errstate(over="ignore"):  # a long double beyond float64 is infinite, which is told later
        for start in range(0, count, _PIECE):
            wanted = min(_PIECE, count - start)
            data = stream.read(wanted * dtype.itemsize)
            if len(data) < wanted * dtype.itemsize:
                raise SeriesError(f"{what}: ends too early")
            values[start : start + wanted] = np.frombuffer(data, dtype)
    return values.reshape(shape, order="F" if column_major else "C")
