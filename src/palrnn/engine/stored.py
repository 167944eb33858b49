"""What a run reads back from its own file, checked before any kernel sees it.

A kernel does not check: an array that is too short is written past its end. A file can be damaged, edited, or
made by somebody else, so that everything in it is held against what the run expects.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from palrnn.engine.checks import HUGE, as_int


class StoredError(ValueError):
    """A file that cannot be continued from: which file, which field, what is there and what should be."""


class Stored:
    """The arrays and notes of one ``file``; each is handed out only if it is what was asked for."""

    def __init__(
        self, file: str | os.PathLike[str], arrays: Mapping[str, NDArray[Any]], notes: Mapping[str, Any]
    ) -> None:
        self._file, self._arrays, self._notes = file, arrays, notes

    def array(
        self,
        name: str,
        shape: tuple[int, ...],
        dtype: DTypeLike = np.float64,
        *,
        finite: bool = True,
        least: float | None = None,
    ) -> NDArray[Any]:
        """Return an array of exactly this shape and type, finite unless that is waived, all >= ``least``."""
        if name not in self._arrays:
            raise self.error(f"has no array {name}")
        array = self._arrays[name]
        if array.shape != shape:
            raise self.error(f"{name} must have shape {shape}, has {array.shape}")
        if array.dtype != np.dtype(dtype):
            raise self.error(f"{name} must hold {np.dtype(dtype)}, holds {array.dtype}")
        if finite and not np.isfinite(array).all():
            raise self.error(f"{name} must be finite, holds {array[~np.isfinite(array)][0]}")
        if finite and (np.abs(array.astype(np.float64)) > HUGE).any():  # beyond it, squares overflow
            raise self.error(f"{name} must be within ±{HUGE:g}, holds {np.abs(array).max():g}")
        if least is not None and (array < least).any():
            raise self.error(f"{name} must be at least {least:g}, holds {np.nanmin(array):g}")
        return np.array(array, order="C")

    def no_array(self, name: str) -> None:
        """Refuse a file that has an array which this run does not keep."""
        if name in self._arrays:
            raise self.error(f"has an array {name}, which this run does not keep")

    def whole(self, name: str, *, least: int, most: int) -> int:
        """Return a note that is a whole number within bounds."""
        try:
            return as_int(self.note(name), name, least=least, most=most)
        except ValueError as error:
            raise self.error(str(error)) from None

    def table(self, name: str) -> dict[str, Any]:
        """Return a note that is a table."""
        value = self.note(name)
        if not isinstance(value, dict):
            raise self.error(f"{name} must be a table, is {_short(value)}")
        return value

    def note(self, name: str) -> Any:
        """Return a note, whatever it is."""
        if name not in self._notes:
            raise self.error(f"does not say {name}")
        return self._notes[name]

    def same(self, name: str, there: Any, expected: Any) -> None:
        """Refuse a file in which something is not what it must be."""
        if there != expected:
            raise self.error(f"{name} must be {_short(expected)}, is {_short(there)}")

    def error(self, words: str) -> StoredError:
        """Return the error that names the file."""
        return StoredError(f"{self._file}: damaged, or not of this run: {words}")


def _short(value: Any) -> str:
    words = repr(value)
    return words if len(words) <= 60 else f"{words[:57]}..."
