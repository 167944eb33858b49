"""Import of shallow PLRNNs from Julia: the BSON files that the public code of Hess et al. (2023) saves.

Such a file holds ``model = [network, observation model]``. BSON.jl writes a struct as its type's path,
its fields in order, and an array as its type, its sizes and its bytes, column by column; what occurs
twice is kept under ``_backrefs`` and referred to by its number. Only the numbers of known structs are
taken.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from palrnn.engine.checks import Floats, as_path, first_line
from palrnn.engine.text import printable
from palrnn.model.bson_file import BSONError, read_bson
from palrnn.model.checkpoint import CheckpointError
from palrnn.model.families.shallow import ClippedShallowPLRNN, ShallowPLRNN

_FAMILIES = {"shallowPLRNN": ShallowPLRNN, "clippedShallowPLRNN": ClippedShallowPLRNN}
_FIELDS = ("A", "W1", "W2", "h1", "h2")
_NUMBERS = {"Float16": "<f2", "Float32": "<f4", "Float64": "<f8"}
# more than a network with 8,192 units and as many hidden ones has, in single precision
_MOST_BYTES = 2**29 + 2**20


def import_julia(path: str | os.PathLike[str]) -> ShallowPLRNN:
    """Return the shallow PLRNN, plain or clipped, in a BSON file of the public Julia code (GTF-shPLRNN).

    Its observation model must be ``Identity``: the first N units are what was observed, and its ``L`` embeds
    the others. External inputs (``C``) act there on the step into their row, and here on the step out of it:
    give the inputs one row earlier. Nothing in the file is executed, only numbers are taken from it.
    """
    file = as_path(path)
    where = printable(file)
    if not file.is_file():
        raise CheckpointError(f"{where}: no such file")
    if file.stat().st_size > _MOST_BYTES:
        raise CheckpointError(f"{where}: larger than any such checkpoint, {file.stat().st_size} bytes")
    try:
        return _network(read_bson(file.read_bytes()))
    except BSONError as error:
        raise CheckpointError(f"{where}: not a whole BSON file: {error}") from None
    except ValueError as error:
        raise CheckpointError(f"{where}: {first_line(error)}") from None


def _network(document: dict[str, Any]) -> ShallowPLRNN:
    values = _Values(document.get("_backrefs"))
    parts = values.of(document.get("model"))
    if not isinstance(parts, list) or len(parts) != 2:
        raise ValueError("no model = [network, observation model]")
    name, fields = values.struct(parts[0], "the network")
    if name not in _FAMILIES:
        raise ValueError(f"the network must be one of {', '.join(_FAMILIES)}, is {printable(name, 80)}")
    # files from before inputs were thought of have no C
    if len(fields) not in (5, 6):
        raise ValueError(f"{name} must have 5 or 6 fields, has {len(fields)}")
    named = zip((*_FIELDS, "C"), fields, strict=False)
    arrays = {field: values.array(value, field) for field, value in named if (field, value) != ("C", None)}
    return _FAMILIES[name](**arrays, E=_embedding(values, parts[1], len(arrays["A"])))


def _embedding(values: _Values, observation: Any, units: int) -> Floats:
    """Return E (M, N): the observation itself, and L times it for the units that are not observed."""
    name, fields = values.struct(observation, "the observation model")
    if name != "Identity" or len(fields) != 4:
        raise ValueError(f"the observation model must be Identity, is {printable(name, 80)}")
    if fields[3] is None:
        return np.eye(units)
    L = values.array(fields[3], "L")
    if L.ndim != 2 or L.shape[0] + L.shape[1] != units:
        raise ValueError(f"L must be (M - N, N) with M = {units}, is {L.shape}")
    return np.concatenate([np.eye(L.shape[1]), L])


class _Values:
    """What the values of BSON.jl stand for."""

    def __init__(self, shared: Any) -> None:
        self.shared = shared if isinstance(shared, list) else []

    def of(self, value: Any) -> Any:
        """Return ``value``, or what it refers to."""
        for _ in range(len(self.shared) + 1):
            if not isinstance(value, Mapping) or value.get("tag") != "backref":
                return value
            number = value.get("ref")
            if not isinstance(number, int) or not 1 <= number <= len(self.shared):
                raise ValueError("a reference to what is not there")
            value = self.shared[number - 1]
        raise ValueError("references that lead in a circle")

    def struct(self, value: Any, what: str) -> tuple[str, list[Any]]:
        """Return the name of a struct's type and its fields."""
        value = self.of(value)
        fields = self.of(value.get("data")) if isinstance(value, Mapping) else None
        if not isinstance(value, Mapping) or value.get("tag") != "struct" or not isinstance(fields, list):
            raise ValueError(f"{what} is no struct")
        return self._type(value.get("type"), what), [self.of(field) for field in fields]

    def _type(self, value: Any, what: str) -> str:
        value = self.of(value)
        path = self.of(value.get("name")) if isinstance(value, Mapping) else None
        if not isinstance(path, list) or not path or not isinstance(path[-1], str):
            raise ValueError(f"the type of {what} has no name")
        return path[-1]

    def array(self, value: Any, name: str) -> Floats:
        """Return an array of numbers, float64."""
        value = self.of(value)
        if not isinstance(value, Mapping) or value.get("tag") != "array":
            raise ValueError(f"{name} is no array")
        kind = self._type(value.get("type"), name)
        if kind not in _NUMBERS:
            raise ValueError(f"{name} must hold {', '.join(_NUMBERS)}, holds {printable(kind, 80)}")
        sizes, data = self.of(value.get("size")), self.of(value.get("data"))
        if not isinstance(sizes, list) or not all(isinstance(size, int) and size >= 0 for size in sizes):
            raise ValueError(f"{name} has no sizes")
        numbers = np.dtype(_NUMBERS[kind])
        if len(sizes) > 2 or not isinstance(data, bytes) or len(data) != numbers.itemsize * _product(sizes):
            raise ValueError(f"{name} has other sizes than numbers")
        return np.frombuffer(data, numbers).reshape(sizes, order="F").astype(np.float64)


def _product(sizes: list[int]) -> int:
    total = 1
    for size in sizes:
        total *= size
    return total
