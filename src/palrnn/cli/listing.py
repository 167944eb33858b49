"""A table for people, made of any values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Listing:
    """Rows under a header, as `Voice.result` prints them."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""


def listing(header: Sequence[str], rows: Iterable[Iterable[Any]]) -> Listing:
    """Return a table; floats have three decimals at most, what is missing is a dash."""
    return Listing(tuple(header), tuple(tuple(_cell(value) for value in row) for row in rows))


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3f}".rstrip("0").rstrip(".")
    return "-" if value is None else str(value)
