"""BSON files as Julia's BSON.jl writes them, by the rules that it publishes (its README, and bsonspec.org).

No checkpoint of the public code is at hand, and Julia is not either; these stand for one.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np


def example(units: int = 2, hidden: int = 3) -> bytes:
    """The file of a small clipped network."""
    shapes = {"A": (units,), "W1": (units, hidden), "W2": (hidden, units), "h1": (units,), "h2": (hidden,)}
    return document(checkpoint({name: np.full(shape, 0.5, "f4") for name, shape in shapes.items()}))


def document(entries: dict[str, Any]) -> bytes:
    """A document: its length, its entries, a zero byte."""
    body = b"".join(_entry(name, value) for name, value in entries.items()) + b"\0"
    return struct.pack("<i", len(body) + 4) + body


def _entry(name: str, value: Any) -> bytes:
    key = name.encode() + b"\0"
    if value is None:
        return b"\x0a" + key
    if isinstance(value, bool):
        return b"\x08" + key + bytes([value])
    if isinstance(value, int):
        return b"\x12" + key + struct.pack("<q", value)
    if isinstance(value, float):
        return b"\x01" + key + struct.pack("<d", value)
    if isinstance(value, str):
        raw = value.encode() + b"\0"
        return b"\x02" + key + struct.pack("<i", len(raw)) + raw
    if isinstance(value, bytes):
        return b"\x05" + key + struct.pack("<i", len(value)) + b"\0" + value
    if isinstance(value, list):
        return b"\x04" + key + document({str(i): each for i, each in enumerate(value)})
    return b"\x03" + key + document(value)


def datatype(*path: str, params: Any = ()) -> dict[str, Any]:
    """A type: the path to its name, and its parameters."""
    return {"tag": "datatype", "name": list(path), "params": list(params)}


FLOATS = {"f2": "Float16", "f4": "Float32", "f8": "Float64"}


def array(values: Any) -> dict[str, Any]:
    """An array of numbers: its type, its sizes, its bytes by columns."""
    values = np.asarray(values)
    kind = datatype("Core", FLOATS[values.dtype.str[1:]])
    return {"tag": "array", "type": kind, "size": list(values.shape), "data": values.tobytes(order="F")}


def structure(path: list[str], fields: list[Any]) -> dict[str, Any]:
    """A struct: its type and its fields."""
    single = datatype("Core", "Float32")
    params = [datatype("Core", "Array", params=[single, dim]) for dim in (1, 2)]
    return {"tag": "struct", "type": datatype(*path, params=params), "data": list(fields)}


def checkpoint(
    arrays: dict[str, Any],
    *,
    name: str = "clippedShallowPLRNN",
    observed: int | None = None,
    C: Any = None,
    fields: int = 6,
) -> dict[str, Any]:
    """The document of a saved ``[network, observation model]``; ``L`` embeds what is not observed."""
    parts = [array(arrays[field]) for field in ("A", "W1", "W2", "h1", "h2")]
    network = structure(["Main", "GTF", "PLRNNs", name], [*parts, C][:fields])
    units = len(arrays["A"])
    seen = units if observed is None else observed
    L = None if observed is None else array(arrays["L"])
    reads = [array(np.eye(seen, units, dtype="f4")), array(np.zeros(seen, dtype="f4")), False, L]
    return {"model": [network, structure(["Main", "GTF", "ObservationModels", "Identity"], reads)]}
