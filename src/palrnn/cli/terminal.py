"""What reaches a terminal: text without control characters, in signs it can show, and tables.

Names of files and columns come from outside; an escape sequence in one could move the cursor or retitle the
window. A stream that only takes ASCII gets the nearest signs, because a result must not be lost to a "±".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TextIO

from palrnn.engine.text import printable

_SIGNS = {
    "±": "+-", "−": "-", "–": "-", "×": "x", "∞": "inf", "…": "...", "↳": "->",
    "λ": "lambda", "τ": "tau", "γ": "gamma", "β": "beta", "σ": "sigma", "α": "alpha", "“": '"', "”": '"',
}  # fmt: skip
_LOW, _HIGH = "₀₁₂₃₄₅₆₇₈₉", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻"
_NEAREST = str.maketrans(_SIGNS | dict(zip(_LOW, "0123456789", strict=True)))
_RAISED = str.maketrans(_HIGH, "0123456789-")
_POWER = re.compile(f"×10([{_HIGH}]+)")


class Tabular(Protocol):
    """A table of short words: what `palrnn.report.blocks.Table` is."""

    @property
    def caption(self) -> str:
        """What the table shows."""
        ...

    @property
    def header(self) -> tuple[str, ...]:
        """The names of the columns."""
        ...

    @property
    def rows(self) -> tuple[tuple[str, ...], ...]:
        """The cells."""
        ...


def clean(text: str) -> str:
    """Return ``text`` line by line with everything that a terminal would obey spelled out."""
    spaced = text.replace("\N{NO-BREAK SPACE}", " ").replace("\t", "    ")
    return "\n".join(printable(line) for line in spaced.split("\n"))


def legible(text: str, encoding: str | None) -> str:
    """Return ``text`` cleaned, in signs that ``encoding`` has: "±" may become "+-", the rest escapes."""
    text, encoding = clean(text), encoding or "ascii"
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        text = _POWER.sub(lambda power: "e" + power[1].translate(_RAISED), text).translate(_NEAREST)
        text = text.encode("ascii", "backslashreplace").decode()
    return text


def print_text(text: str, stream: TextIO | None) -> None:
    """Print lines for people to ``stream``; a stream that has been closed hears nothing."""
    if stream is not None and not stream.closed:
        print(legible(text, stream.encoding), file=stream, flush=True)


def print_table(table: Tabular, stream: TextIO | None) -> None:
    """Print a table: drawn by Rich on a terminal, as plain aligned columns everywhere else."""
    if stream is None or stream.closed:
        return
    if not stream.isatty():
        print_text(aligned(table), stream)
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=stream)
    if console.is_dumb_terminal or console.encoding != "utf-8":
        print_text(aligned(table), stream)
        return
    drawn = Table(caption=Text(clean(table.caption)), caption_justify="left", header_style="bold")
    for i, name in enumerate(table.header):
        drawn.add_column(Text(clean(name)), style="bold" if i == 0 else None, overflow="fold")
    for row in table.rows:
        drawn.add_row(*(Text(clean(cell)) for cell in row))
    console.print(drawn)


def aligned(table: Tabular) -> str:
    """Return a table as text: columns side by side, a rule below the header, the caption last."""
    rows: Sequence[tuple[str, ...]] = [tuple(map(clean, row)) for row in (table.header, *table.rows)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    head = [lines[0], "-" * max(map(len, lines))] if any(table.header) else []
    return "\n".join([*head, *lines[1:], *([clean(table.caption)] if table.caption else [])])


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
