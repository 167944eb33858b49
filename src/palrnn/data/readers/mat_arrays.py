"""Reading `.mat` files of MATLAB 5 to 7 (``save -v6`` and ``-v7``): real two-dimensional arrays of numbers.

The format is a list of elements, each packed or not (MathWorks, "MAT-File Format"). It is parsed here and not
by SciPy, because SciPy makes room for whatever an element claims to unpack to, before anything of it is seen.
Here names and shapes are read first, and of the array that is wanted one piece at a time. Structures, cells,
texts and objects are passed over unread. Files of MATLAB 7.3 are HDF5 and read as such, which needs h5py.

A row vector is one observed coordinate, as a column vector is: MATLAB has no arrays of one dimension.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from palrnn.data.readers.array_table import array_table, chosen_array
from palrnn.data.readers.hdf5_arrays import is_hdf5, read_matlab_hdf5
from palrnn.data.readers.registry import reader
from palrnn.data.table import MOST_NAMES, SeriesError, Table, Wanted, refuse_size
from palrnn.engine.checks import Floats
from palrnn.engine.text import printable, quoted

_PIECE = 2**16
_MATRIX, _PACKED = 14, 15
#: Kinds of numbers in an element, as NumPy calls them.
_NUMBERS = {
    1: "i1",
    2: "u1",
    3: "i2",
    4: "u2",
    5: "i4",
    6: "u4",
    7: "f4",
    9: "f8",
    12: "i8",
    13: "u8",
}
_KINDS = {1: "cell", 2: "struct", 3: "object", 4: "char", 5: "sparse", 16: "function", 17: "object"}
_NUMERIC = range(6, 16)
_COMPLEX = 0x08


class _Variable(NamedTuple):
    """A variable of a file: its shape, where its element begins, and what it is if it is no real matrix."""

    shape: tuple[int, ...]
    start: int
    instead: str = ""


@reader(".mat", named=False, arrays=True)
def read_mat(file: Path, wanted: Wanted) -> Table:
    """Return the matrix asked for in a ``.mat`` file, or the only one of at least two numbers."""
    if is_hdf5(file):
        return read_matlab_hdf5(file, wanted)
    with file.open("rb") as stream:
        source = _Source(stream, file.stat().st_size, _byte_order(str(file), stream))
        found = source.variables(str(file))
        known = {name: held.shape for name, held in found.items() if not held.instead}
        others = {name: held.instead for name, held in found.items() if held.instead}
        if not known or wanted.array in others:
            raise SeriesError(f"{file}: {_refusal(wanted.array, others)}")
        # a sampling rate beside a recording is no candidate
        long = {name: shape for name, shape in known.items() if max(shape) > 1}
        name = chosen_array(file, (long or known) if wanted.array is None else known, wanted.array)
        values = source.matrix(f"{file}: array {printable(name, 40)}", found[name])
    return array_table(str(file), [values.T if len(values) == 1 else values], ["1"])


def _refusal(asked: str | None, others: dict[str, str]) -> str:
    if asked in others:
        return f"array {quoted(asked)} is {others[asked]}, expected a real matrix of numbers"
    held = ", ".join(f"{printable(name, 40)} ({what})" for name, what in list(others.items())[:12])
    return f"holds no matrix of numbers{', only ' + held if held else ''}"


def _byte_order(where: str, stream: IO[bytes]) -> str:
    """Return "<" or ">" after the header, which is text, a version and a mark for the order of bytes."""
    header = stream.read(128)
    order = {b"IM": "<", b"MI": ">"}.get(header[126:])
    if order is None:
        old = len(header) >= 20 and 0 in header[:4] and any(header[:20])
        raise SeriesError(
            f"{where}: " + ("of MATLAB 4, or no .mat file: save it with -v7" if old else "is no .mat file")
        )
    (version,) = struct.unpack(order + "H", header[124:126])
    if version >> 8 != 1:
        raise SeriesError(f"{where}: version {version:#06x} of .mat files is not known: save it with -v7")
    return order


class _Source:
    """A file's elements: ``order`` is that of bytes."""

    def __init__(self, stream: IO[bytes], size: int, order: str) -> None:
        self.stream, self.size, self.order = stream, size, order

    def variables(self, where: str) -> dict[str, _Variable]:
        """Return the variables of the file, by name."""
        found: dict[str, _Variable] = {}
        start = 128
        while start < self.size:
            read, end = self._element(where, start)
            name, variable = self._described(where, read, start)
            if name:  # without a name: what MATLAB keeps for its objects
                found[name] = variable
            if len(found) > MOST_NAMES:
                raise SeriesError(f"{where}: holds more than {MOST_NAMES} variables")
            start = end
        return found

    def matrix(self, what: str, variable: _Variable) -> Floats:
        """Return the numbers of a variable as float64 (T, N)."""
        read, _ = self._element(what, variable.start)
        self._described(what, read, variable.start)
        kind, size, small = self._tag(what, read)
        if kind not in _NUMBERS:
            raise SeriesError(f"{what}: its numbers are of a kind {kind} that is not known")
        dtype, count = np.dtype(self.order + _NUMBERS[kind]), math.prod(variable.shape)
        if size != count * dtype.itemsize:
            raise SeriesError(
                f"{what}: claims {variable.shape} numbers, {count * dtype.itemsize} bytes, but holds {size}"
            )
        refuse_size(what, variable.shape)
        values = np.empty(count)
        for begin in range(0, count, _PIECE):
            wanted = min(_PIECE, count - begin)
            data = small if small is not None else read(wanted * dtype.itemsize)
            values[begin : begin + wanted] = np.frombuffer(data, dtype)
        return values.reshape(variable.shape, order="F")

    def _element(self, where: str, start: int) -> tuple[Callable[[int], bytes], int]:
        """Return a function that reads on in the matrix that begins at ``start``, and where the next does."""
        self.stream.seek(start)
        kind, size, _ = self._tag(where, self._plain(where, self.size))
        end = self.stream.tell() + size
        if kind not in (_MATRIX, _PACKED) or end > self.size:
            why = f"an element claims {size} bytes, more than are there" if end > self.size else ""
            raise SeriesError(f"{where}: {why or f'an element of kind {kind} is not known'}")
        if kind == _MATRIX:
            return self._plain(where, end), end
        read = _unpacked(where, self.stream, end)
        if (inner := self._tag(where, read)[0]) != _MATRIX:
            raise SeriesError(f"{where}: a packed element of kind {inner} is not known")
        return read, end

    def _plain(self, where: str, end: int) -> Callable[[int], bytes]:
        def read(size: int) -> bytes:
            if self.stream.tell() + size > end:
                raise SeriesError(f"{where}: ends too early")
            return self.stream.read(size)

        return read

    def _tag(self, where: str, read: Callable[[int], bytes]) -> tuple[int, int, bytes | None]:
        """Return the kind of an element and its size in bytes; one of up to four has its bytes in the tag."""
        data = read(8)
        kind, size = struct.unpack(self.order + "II", data)
        if kind >> 16:
            size, kind = kind >> 16, kind & 0xFFFF
            if size > 4:
                raise SeriesError(f"{where}: is damaged: a small element of {size} bytes")
            return kind, size, data[4 : 4 + size]
        return kind, size, None

    def _part(self, where: str, read: Callable[[int], bytes], most: int) -> bytes:
        """Return the bytes of a short element, without those that fill it up to eight."""
        _, size, small = self._tag(where, read)
        if small is not None:
            return small
        if size > most:
            raise SeriesError(f"{where}: is damaged: {size} bytes in the description of an array")
        return read(size + -size % 8)[:size]

    def _described(self, where: str, read: Callable[[int], bytes], start: int) -> tuple[str, _Variable]:
        """Return the name of the matrix that ``read`` is at the start of, and what it is."""
        flags = self._part(where, read, 8)
        (word,) = struct.unpack(self.order + "I", flags[:4])
        kind, marks = word & 0xFF, word >> 8 & 0xFF
        if kind == 17:  # has no shape
            return self._name(where, read), _Variable((), start, "object")
        sizes = self._part(where, read, 256)
        shape = struct.unpack(f"{self.order}{len(sizes) // 4}i", sizes[: len(sizes) // 4 * 4])
        if len(shape) < 2 or min(shape) < 0:
            raise SeriesError(f"{where}: is damaged: an array of shape {shape}")
        instead = ""
        if kind not in _NUMERIC:
            instead = _KINDS.get(kind, f"of kind {kind}")
        elif marks & _COMPLEX:
            instead = "complex"
        elif len(shape) > 2 or 0 in shape:
            instead = f"of shape {shape}"
        return self._name(where, read), _Variable(shape, start, instead)

    def _name(self, where: str, read: Callable[[int], bytes]) -> str:
        return self._part(where, read, 4096).decode("utf-8", "replace")


def _unpacked(where: str, stream: IO[bytes], end: int) -> Callable[[int], bytes]:
    """Return a function that reads from a packed element, and unpacks no more than it is asked for."""
    unpacker, start = zlib.decompressobj(), stream.tell()

    def read(size: int) -> bytes:
        nonlocal start
        parts, missing = [], size
        while missing:
            packed = unpacker.unconsumed_tail
            if not packed and not unpacker.eof:
                stream.seek(start)
                packed = stream.read(min(_PIECE, end - start))
                start += len(packed)
            part = unpacker.decompress(packed, missing)
            if not part and not unpacker.unconsumed_tail and (unpacker.eof or start >= end):
                raise SeriesError(f"{where}: ends too early")
            parts.append(part)
            missing -= len(part)
        return b"".join(parts)

    return read
