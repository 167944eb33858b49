"""Reading `.h5` and `.hdf5` files by h5py: arrays of real numbers, named by their path in the file.

What a file claims is checked before it is read. Links that lead elsewhere, and arrays whose numbers lie in
other files, are not followed: a file must not tell which other files are read. The HDF5 library itself parses
the file; it is large and written in C, so take files from people you trust.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from palrnn.data.readers.array_table import array_table, chosen_array, trials_of
from palrnn.data.readers.registry import reader
from palrnn.data.table import MOST_NAMES, SeriesError, Table, Wanted, refuse_size
from palrnn.engine.checks import Floats
from palrnn.engine.text import printable

_SIGNATURE = b"\x89HDF\r\n\x1a\n"


@reader(".h5", named=False, arrays=True)
def read_h5(file: Path, wanted: Wanted) -> Table:
    """Return the array asked for, the only one, or the one named ``x``: (T,), (T, N) or trials (K, T, N)."""
    what, values = _read(file, wanted, {"f", "i", "u", "b"})
    return array_table(str(file), *trials_of(what, values))


reader(".hdf5", named=False, arrays=True)(read_h5)


def is_hdf5(file: Path) -> bool:
    """Whether a ``.mat`` file is one of MATLAB 7.3: HDF5 behind a header of 512 bytes."""
    with file.open("rb") as stream:
        stream.seek(512)
        return stream.read(8) == _SIGNATURE


def read_matlab_hdf5(file: Path, wanted: Wanted) -> Table:
    """Return a matrix from a file of MATLAB 7.3, which has its dimensions the other way round."""
    what, values = _read(file, wanted, {"f", "i", "u"}, matlab=True)
    if values.ndim != 2:
        raise SeriesError(f"{what}: must be a matrix (T, N), got {values.shape[::-1]}")
    return array_table(str(file), [values if len(values.T) == 1 else values.T], ["1"])


def _read(file: Path, wanted: Wanted, kinds: set[str], matlab: bool = False) -> tuple[str, Floats]:
    try:
        import h5py
    except ImportError:
        kind = "a .mat file of MATLAB 7.3" if matlab else file.suffix.lower()
        other = ", or save it with -v7" if matlab else ""
        raise SeriesError(f"{file}: reading {kind} needs h5py: pip install 'palrnn[hdf5]'{other}") from None
    with h5py.File(file, "r") as held:
        found: dict[str, Any] = {}
        count = 0

        def note(name: str, item: Any) -> bool | None:
            nonlocal count
            count += 1
            if count > MOST_NAMES:
                return True
            if isinstance(item, h5py.Dataset) and not name.startswith("#") and _holds(item, kinds, matlab):
                found[name] = item
            return None

        if held.visititems(note):
            raise SeriesError(f"{file}: holds more than {MOST_NAMES} objects")
        if not found:
            raise SeriesError(f"{file}: holds no arrays of real numbers")
        shapes = {
            name: tuple(reversed(item.shape)) if matlab else tuple(item.shape) for name, item in found.items()
        }
        asked = None if wanted.array is None else "/".join(filter(None, wanted.array.split("/")))
        long = {name: shape for name, shape in shapes.items() if max(shape) > 1}
        name = chosen_array(file, (long or shapes) if asked is None else shapes, asked)
        what = f"{file}: array {printable(name, 40)}"
        return what, _numbers(what, found[name])


def _holds(item: Any, kinds: set[str], matlab: bool) -> bool:
    """Whether a data set is an array of numbers; texts of MATLAB are numbers, too, by their kind."""
    if item.shape is None or not 1 <= len(item.shape) <= 32 or item.dtype.kind not in kinds:
        return False
    return not (matlab and item.attrs.get("MATLAB_class") in (b"char", b"cell", b"FileWrapper__"))


def _numbers(what: str, item: Any) -> Floats:
    if item.is_virtual or item.external:
        raise SeriesError(f"{what}: its numbers are in other files, which are not read")
    refuse_size(what, tuple(map(int, item.shape)))
    if item.chunks is not None:
        refuse_size(f"{what}: a chunk", (int(np.prod(item.chunks, dtype=object)),))
    if item.dtype.kind == "b":
        return np.asarray(item[()], dtype=np.float64)
    values = np.empty(item.shape)
    item.read_direct(values)
    return values
