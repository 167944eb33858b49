"""The safetensors format: named arrays and text, as data only.

A file is the length of its header (8 bytes), the header (JSON: for each array its type, shape and place), and
the arrays. Reading leaves all checks of the places to the `safetensors` library. Writing is done here,
because the library leaves the order of the header to chance, and the same model should give the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors

_KINDS = {
    "f8": "F64",
    "f4": "F32",
    "f2": "F16",
    "i8": "I64",
    "i4": "I32",
    "i2": "I16",
    "i1": "I8",
    "u8": "U64",
    "u4": "U32",
    "u2": "U16",
    "u1": "U8",
    "b1": "BOOL",
}
#: What the `safetensors` library allows, too.
MOST_HEADER_BYTES = 100_000_000


class TensorFileError(ValueError):
    """Bytes that are not a safetensors file, or not a whole one."""


def tensor_bytes(arrays: Mapping[str, NDArray[Any]], text: Mapping[str, str]) -> bytes:
    """Return ``arrays`` and ``text`` in the safetensors format, the same bytes for the same content."""
    header: dict[str, Any] = {"__metadata__": dict(text)}
    parts, place = [], 0
    # the widest first, as the format asks, so that every array begins at a multiple of its width
    for name in sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name)):
        array = arrays[name]
        kind = _KINDS.get(array.dtype.str[1:])
        if kind is None:
            raise ValueError(f"array {name!r} must hold real numbers of at most 64 bits, got {array.dtype}")
        parts.append(array.astype(array.dtype.newbyteorder("<")).tobytes())
        header[name] = {
            "dtype": kind,
            "shape": list(array.shape),
            "data_offsets": [place, place + len(parts[-1])],
        }
        place += len(parts[-1])
    words = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    words += b" " * (-len(words) % 8)
    return len(words).to_bytes(8, "little") + words + b"".join(parts)


def header_size(start: bytes, size: int) -> int:
    """Return the length of the header, given the first 8 bytes and the size of a file."""
    length = int.from_bytes(start[:8], "little")
    if len(start) < 8 or not 2 <= length <= min(size - 8, MOST_HEADER_BYTES):
        raise TensorFileError("it does not begin like one, or is cut off")
    return length


def header_text(header: bytes) -> dict[str, str]:
    """Return the text in a header."""
    try:
        table = json.loads(header)
    except (ValueError, RecursionError):
        raise TensorFileError("its header is not JSON") from None
    text = table.get("__metadata__", {}) if isinstance(table, dict) else None
    if not isinstance(text, dict) or not all(isinstance(value, str) for value in text.values()):
        raise TensorFileError("its header is not a table")
    return text


def tensors(data: bytes) -> dict[str, NDArray[Any]]:
    """Return the arrays in the bytes of a whole file, each one writable memory of its own."""
    try:
        return {name: np.array(array) for name, array in load_tensors(data).items()}
    except (SafetensorError, ValueError, KeyError, TypeError, OverflowError) as error:
        raise TensorFileError(f"its arrays are damaged or cut off ({error})") from None
