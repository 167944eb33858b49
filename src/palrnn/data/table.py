"""A table of numbers as it comes from a file: named columns, rows that can be found again, trial labels.

Which columns are observations: those asked for, or all but the time column and the trial column. The time
column is the first one, if it is called ``t``, ``time``, ``date``, ``step``, ``index`` and the like (units in
brackets are fine: ``time [s]``), or has no name beside named ones, or holds dates.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from palrnn.engine.checks import Floats

_TIME_WORDS = "time|timestamp|date|datetime|step|steps|index|frame|sample"
_TIME = re.compile(rf"(t|(?i:{_TIME_WORDS}))\s*([\[(].*[\])])?")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}([.,]\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?")


class SeriesError(ValueError):
    """A series file that cannot be used, with the file, column and row where it can be told."""


class Table(NamedTuple):
    """The observed columns of a file: ``values (T, N)`` with their names.

    ``lines`` are the lines of the file that the rows come from (None: rows are counted from 1); ``labels``
    tell the trial of each row.
    """

    names: list[str]
    values: Floats
    lines: list[int] | None = None
    labels: list[str] | None = None

    def place(self, row: int, column: int) -> str:
        """Where a value is, in words."""
        return f"column {self.names[column]}, {self.row(row)}"

    def row(self, row: int) -> str:
        """Where a row is, in words."""
        return f"row {row + 1}" if self.lines is None else f"line {self.lines[row]}"


class Choice(NamedTuple):
    """The numbers of the observed columns, and of the trial column if there is one."""

    observed: list[int]
    trial: int | None


def chosen(
    file: Path, names: Sequence[str], columns: Sequence[str] | None, trial: str, *, dated: bool = False
) -> Choice:
    """Return which columns of a table are observations; ``dated`` says that the first one holds dates."""
    wanted = None if columns is None else _found(file, names, columns)
    label = [i for i, name in enumerate(names) if name.lower() == trial.lower() and i not in (wanted or ())]
    if len(label) > 1:
        raise SeriesError(f"{file}: two columns are named {names[label[0]]}")
    if wanted is None:
        rest = [i for i in range(len(names)) if i not in label]
        timed = len(rest) > 1 and ((dated and rest[0] == 0) or is_time(names[rest[0]]))
        wanted = rest[1:] if timed else rest
    if not wanted:
        raise SeriesError(f"{file}: has no columns of observations")
    return Choice(wanted, label[0] if label else None)


def _found(file: Path, names: Sequence[str], columns: Sequence[str]) -> list[int]:
    if isinstance(columns, str):
        raise SeriesError(f"{file}: columns must be a list of names, got {columns!r}")
    found = []
    for column in columns:
        places = [i for i, name in enumerate(names) if name == column]
        if not places:
            raise SeriesError(f"{file}: no column {column!r}, there are {', '.join(names)}")
        if len(places) > 1:
            raise SeriesError(f"{file}: {len(places)} columns are named {column}")
        found.append(places[0])
    return found


def is_time(name: str) -> bool:
    """Whether a column of this name tells the time of a row; a saved index has no name."""
    return name == "" or name.lower() == "unnamed: 0" or _TIME.fullmatch(name) is not None


def is_date(cell: str) -> bool:
    """Whether a cell is an ISO 8601 date or date and time."""
    return _DATE.fullmatch(cell.strip()) is not None
