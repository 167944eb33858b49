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

from palrnn.data.readers.registry import reader
from palrnn.data.table import Labels, SeriesError, Table, Wanted, refuse_size
from palrnn.engine.checks import Floats

_PIECE = 2**20


@reader(".npy", named=False)
def read_npy(file: Path, wanted: Wanted) -> Table:
    """Return the array in a ``.npy`` file: (T,), (T, N), or trials (K, T, N)."""
    with file.open("rb") as stream:
        stack = _array(stream, file.stat().st_size, str(file))
    return _table(str(file), *_trials(str(file), stack))


@reader(".npz", named=False)
def read_npz(file: Path, wanted: Wanted) -> Table:
    """Return the array named ``x`` in a ``.npz`` file, or else each array in it as a trial."""
    parts: dict[str, Floats] = {}
    with zipfile.ZipFile(file) as archive:
        entries = [entry for entry in archive.infolist() if entry.filename.endswith(".npy")]
        members = {entry.filename.removesuffix(".npy"): entry for entry in entries}
        for name in ["x"] if "x" in members else list(members):
            what, held = f"{file}: array {name}", sum(part.size for part in parts.values())
            with archive.open(members[name]) as stream:
                parts[name] = _array(stream, members[name].file_size, what, held)
    if not parts:
        raise SeriesError(f"{file}: holds no arrays")
    if len(parts) == 1:
        return _table(str(file), *_trials(str(file), *parts.values()))
    trials = [_trials(f"{file}: array {name}", part)[0] for name, part in parts.items()]
    if any(len(trial) > 1 for trial in trials):
        raise SeriesError(f"{file}: holds several arrays, each must be (T, N) or (T,)")
    return _table(str(file), [trial[0] for trial in trials], list(parts))


def _trials(what: str, array: Floats) -> tuple[list[Floats], list[str]]:
    """Return the trials in an array, each (T, N), and their names."""
    if array.ndim not in (1, 2, 3):
        raise SeriesError(f"{what}: must be (T, N), (T,) or trials (K, T, N), got {array.shape}")
    stack = array[None, :, None] if array.ndim == 1 else array[None] if array.ndim == 2 else array
    return list(stack), [str(number + 1) for number in range(len(stack))]


def _table(where: str, trials: list[Floats], names: list[str]) -> Table:
    widths = dict(zip(names, (trial.shape[1] for trial in trials), strict=True))
    if len(set(widths.values())) > 1:
        raise SeriesError(f"{where}: trials must have the same number of columns, have {widths}")
    labels = None
    if len(trials) > 1:
        labels = Labels(np.repeat(np.arange(len(trials)), [len(trial) for trial in trials]), tuple(names))
    values = trials[0] if len(trials) == 1 else np.concatenate(trials)
    columns = tuple(str(i + 1) for i in range(values.shape[1]))
    return Table(where, columns, np.ascontiguousarray(values), labels=labels, from_array=True)


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
