"""What a report page is made of: plain text and numbers in small frozen parts, turned into HTML by `page`.

No part holds markup. Everything that came from outside (file names, column names, settings) can therefore be
put in as it is: `palrnn.report.page.page_html` escapes all of it, in one place.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from palrnn.engine.plain import plain
from palrnn.engine.tables import table_text

# characters from which a download is packed
_LONG = 4000
_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


@dataclass(frozen=True)
class Card:
    """A headline number: what it is called, its value with unit or error, and a sentence on what it means."""

    label: str
    value: str
    sentence: str
    unit: str = ""


@dataclass(frozen=True)
class Cards:
    """Headline numbers in a row; ``heading`` names the run they belong to where there are several."""

    cards: tuple[Card, ...]
    heading: str = ""


@dataclass(frozen=True)
class Banner:
    """The verdict on a run: its grade ("good", "fair", "not usable"), why, and what to try next."""

    grade: str
    words: str
    advice: tuple[str, ...] = ()


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    words: str


@dataclass(frozen=True)
class Note:
    """A paragraph set apart: something to keep in mind when reading the numbers."""

    words: str


@dataclass(frozen=True)
class Download:
    """A file that the page carries inside itself, a long one packed.

    ``page.js`` unpacks the latter when it is asked for; without JavaScript the link gives ``name.gz``.
    """

    name: str
    content: str
    kind: str = "text/csv"

    @property
    def packed(self) -> bool:
        """Whether it is long enough to be packed."""
        return len(self.content) > _LONG

    @property
    def stored_name(self) -> str:
        """The name of the file as it is stored."""
        return f"{self.name}.gz" if self.packed else self.name

    @property
    def uri(self) -> str:
        """The content as a ``data:`` address."""
        data, kind = self.content.encode(), f"{self.kind};charset=utf-8"
        if self.packed:
            data, kind = gzip.compress(data, 9, mtime=0), "application/gzip"
        return f"data:{kind};base64,{base64.b64encode(data).decode()}"


@dataclass(frozen=True)
class Table:
    """Rows under a header; the first cell of a row is its heading, the others are numbers or short words."""

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    downloads: tuple[Download, ...] = ()


@dataclass(frozen=True)
class View:
    """A way to look at a 3-D figure: turnable, or as its shadow on a plane such as ``("x", "z")``."""

    name: str
    plane: tuple[str, str] | None = None
    layout: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Choice:
    """A choice of what a figure shows: one truth value for each of its traces."""

    name: str
    visible: tuple[bool, ...]


@dataclass(frozen=True)
class Figure:
    """A Plotly figure as plain dictionaries, with the words that stand for it.

    ``summary`` says in a sentence or two what the figure shows; it is printed below it and read out instead.
    With ``views`` or ``choices`` the figure gets a control to choose among them, the first at the start.
    Colours are ``@blue`` to ``@ink`` (see ``page.js``), so that they follow the theme; ``@blue/0.2`` lets a
    fifth of it through.
    """

    key: str
    title: str
    summary: str
    traces: tuple[Mapping[str, Any], ...]
    layout: Mapping[str, Any] = field(default_factory=dict)
    height: int = 380
    views: tuple[View, ...] = ()
    choices: tuple[Choice, ...] = ()
    downloads: tuple[Download, ...] = ()


@dataclass(frozen=True)
class Grid:
    """Small tables that share a row where there is room."""

    tables: tuple[Table, ...]


@dataclass(frozen=True)
class Beside:
    """A figure with headline numbers to its right where there is room, and below it where there is not."""

    figure: Figure
    cards: tuple[Card, ...]


@dataclass(frozen=True)
class Side:
    """Blocks next to each other, one column per run."""

    columns: tuple[tuple[str, tuple[Block, ...]], ...]


Block: TypeAlias = Banner | Cards | Text | Note | Table | Figure | Grid | Beside | Side


@dataclass(frozen=True)
class Section:
    """A headed part of the page."""

    key: str
    title: str
    lead: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Page:
    """A whole report."""

    title: str
    subtitle: str
    sections: tuple[Section, ...]
    downloads: tuple[Download, ...] = ()


def typed_array(values: ArrayLike, dtype: str = "f4") -> dict[str, str]:
    """Return an array as Plotly's typed-array specification: 5.3 characters per number, not about ten."""
    array = np.ascontiguousarray(np.ravel(values), dtype=np.dtype(dtype).newbyteorder("<"))
    return {"dtype": dtype, "bdata": base64.b64encode(array.tobytes()).decode()}


def csv_download(name: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> Download:
    """Return a CSV file with a header line; floats keep six significant digits, missing values are empty."""
    return Download(name, table_text(header, rows, digits=6))


def json_download(name: str, value: Any) -> Download:
    """Return a JSON file; NaN and infinity become null."""
    return Download(name, json.dumps(plain(value), indent=1, allow_nan=False) + "\n", "application/json")


def number(value: float | None, digits: int = 3) -> str:
    """Return a number as people read it: significant digits, a real minus sign, a dash for missing."""
    if value is None or not np.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    if 1e-3 <= abs(value) < 1e5:
        # the # keeps trailing zeros: 0.70 says more than 0.7
        text = f"{value:.0f}" if abs(value) >= 10**digits else f"{value:#.{digits}g}".rstrip(".")
    else:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        text = f"{mantissa}×10{str(int(exponent)).translate(_RAISED)}"
    return text.replace("-", "−")


def with_error(value: float | None, error: float | None) -> str:
    """Return a number and its standard error, unless that is too small to show in the number's digits."""
    told = number(value)
    if value is None or not error or not np.isfinite([value, error]).all() or error < 1e-4 * abs(value):
        return told
    return f"{told} ± {number(error, 2)}"
