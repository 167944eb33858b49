"""A table of numbers as it comes from a file or a data frame: which columns are observations.

They are the columns asked for, or else all but these:

- the column of trials;
- a time column: asked for by name, or the first one if it is called ``t``, ``time``, ``date``, ``step``,
  ``index`` and the like (units in brackets are fine: ``time [s]``), has no name beside named ones, or holds
  dates;
- a column that only counts: one that rises by the same step from row to row, or that only rises and is called
  like a time, or is the first one and of whole numbers (a year, an index). A straight line is no observation
  of an autonomous system;
- a column that holds words in every row: remarks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from palrnn.engine.checks import Floats
from palrnn.engine.text import printable, quoted

_COUNTERS = "step|steps|index|frame|sample"
_TIME = re.compile(rf"(t|(?i:time|timestamp|date|datetime|{_COUNTERS}))\s*([\[(].*[\])])?")
_COUNTER = re.compile(rf"(?i:{_COUNTERS}|unnamed: 0|\d*)")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}([.,]\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?")
# fewer rows can rise evenly by chance
_LEAST_COUNTED = 8
# times written with few digits are off their grid: 1/60 s in whole milliseconds by 3 % of a step
_JITTER = 0.05

#: The most numbers that a series from a file may hold: 2 GiB as float64. A file is refused before it is read
#: if it claims more, whatever its type and compression. Larger arrays can be given from memory.
MOST_VALUES = 2**28
#: The most columns, and the most trials; each of them needs a name.
MOST_NAMES = 2**20


#: How many rows are looked at before a column is taken for remarks.
PEEKED = 1000
# rows that must hold words, and what words are: no digits, and nothing that says that a value is missing
_REMARKS = 10
_WORDS = re.compile(r"(?!(?:nan|na|n/a|null|none|inf|infinity)$)[^\W\d]\D*", re.IGNORECASE)


class SeriesError(ValueError):
    """A series that cannot be used, with the file, column and row where it can be told."""

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


class Wanted(NamedTuple):
    """What a caller asks of a table: columns by name (None: all observations), the trial and time columns.

    ``array`` is the one to read of a file that holds several (None: the only one).
    """

    columns: Sequence[str] | None = None
    trial: str = "trial"
    time: str | None = None
    array: str | None = None


class Choice(NamedTuple):
    """The numbers of the observed columns and of the trial and time columns, and why others are left out."""

    observed: list[int]
    trial: int | None
    time: int | None
    left_out: dict[str, str]


class Labels(NamedTuple):
    """The trial of each row: its number ``(T,)`` in the order in which trials begin, and their names.

    ``column`` is the one that tells them.
    """

    numbers: NDArray[np.int64]
    names: tuple[str, ...]
    column: str = "trial"


@dataclass(frozen=True, eq=False)
class Table:
    """The observed columns of a source: ``values (T, N)`` with their names.

    ``where`` names the source in errors. ``lines (T,)`` are the lines of the file that the rows come from
    (None: rows are counted from 1). ``labels`` tell the trial of each row, ``times (T,)`` what the column or
    index ``clock`` says, in seconds if it holds dates; ``sampled`` is the time per step that the source tells
    beside its columns. ``from_array`` marks columns without names.
    """

    where: str
    names: tuple[str, ...]
    values: Floats
    lines: NDArray[np.int64] | None = None
    labels: Labels | None = None
    clock: str | None = None
    times: Floats | None = None
    sampled: float | None = None
    left_out: dict[str, str] = field(default_factory=dict)
    from_array: bool = False

    def __post_init__(self) -> None:
        if self.labels is not None and "" in self.labels.names:
            row = int((self.labels.numbers == self.labels.names.index("")).argmax())
            column = self.labels.column
            raise SeriesError(f"{self.where}: column {column}, {self.row(row)}: the trial is missing")

    def place(self, row: int, column: int) -> str:
        """Where a value is, in words."""
        return f"column {self.names[column]}, {self.row(row)}"

    def row(self, row: int) -> str:
        """Where a row is, in words."""
        return f"row {row + 1}" if self.lines is None else f"line {self.lines[row]}"

    def in_trials(self, rows: NDArray[np.generic]) -> list[NDArray[np.generic]]:
        """Return ``rows (T, ...)`` trial by trial, each contiguous memory of its own."""
        if self.labels is None or len(self.labels.names) == 1:
            return [np.ascontiguousarray(rows)]
        order = np.argsort(self.labels.numbers, kind="stable")
        ends = np.cumsum(np.bincount(self.labels.numbers, minlength=len(self.labels.names)))
        return [
            rows[order[end - size : end]] for end, size in zip(ends, np.diff(ends, prepend=0), strict=True)
        ]

    @property
    def trials(self) -> list[Floats]:
        """The values of each trial, (T_k, N)."""
        return self.in_trials(self.values)  # type: ignore[return-value]

    def time_step(self) -> tuple[float | None, str]:
        """Return the time per step that the table tells, or None, and in words where that comes from.

        None are an uneven step, and one of an index that counts rows.
        """
        if self.sampled is not None:
            return self.sampled, "its sampling rate"
        if self.times is None or self.clock is None:
            return None, ""
        told = "the index" if self.clock == "index" else f"column {self.clock}"
        step = even_step(self.in_trials(self.times))  # type: ignore[arg-type]
        if step is None:
            return None, f"{told} is uneven"
        return (None, "") if step == 1.0 and _COUNTER.fullmatch(self.clock) else (step, told)


def refuse_size(where: str, shape: tuple[int, ...], held: int = 0) -> None:
    """Refuse an array of shape (T,), (T, N) or (K, T, N), beside ``held`` numbers, before it is read."""
    if held + math.prod(shape) > MOST_VALUES:
        raise SeriesError(f"{where}: claims {shape} numbers, more than the {MOST_VALUES} allowed in a file")
    named = shape[1:] if len(shape) == 2 else shape[::2] if len(shape) == 3 else ()
    if max(named, default=0) > MOST_NAMES:
        raise SeriesError(
            f"{where}: claims {shape} numbers, more than {MOST_NAMES} columns or trials; "
            "time must run along rows"
        )
    if 0 in shape:
        raise SeriesError(f"{where}: is empty, of shape {shape}")


def labelled(labels: Sequence[str], column: str) -> Labels:
    """Return the labels of rows as numbers, trials in the order in which they begin."""
    ranks = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    numbers = np.fromiter((ranks[label] for label in labels), np.int64, len(labels))
    return Labels(numbers, tuple(ranks), column)


def choose(where: str, names: Sequence[str], wanted: Wanted, *, dated: bool = False) -> Choice:
    """Return which columns of a table are which; ``dated`` says that the first one holds dates."""
    asked = None if wanted.columns is None else _found(where, names, wanted.columns)
    used = set(asked or ())
    label = [i for i, name in enumerate(names) if name.lower() == wanted.trial.lower() and i not in used]
    if len(label) > 1:
        raise SeriesError(f"{where}: two columns are named {names[label[0]]}")
    if not label and wanted.trial not in ("trial", *(wanted.columns or ())):
        raise SeriesError(f"{where}: no column {wanted.trial!r} of trials, there are {_listed(names)}")
    rest = [i for i in range(len(names)) if i not in label]
    time = None
    if wanted.time is not None:
        (time,) = _found(where, names, [wanted.time])
    elif len(rest) > 1 and rest[0] not in used:
        time = rest[0] if (dated and rest[0] == 0) or is_time(names[rest[0]]) else None
    observed = [i for i in rest if i != time] if asked is None else asked
    if not observed:
        raise SeriesError(f"{where}: has no columns of observations")
    left_out = {}
    for i in sorted(set(range(len(names))) - set(observed)):
        reason = "tells the trial" if i in label else "tells the time" if i == time else "not asked for"
        left_out[names[i] or str(i + 1)] = reason
    return Choice(observed, label[0] if label else None, time, left_out)


def without_words(choice: Choice, names: Sequence[str], cells: Callable[[int], Sequence[Any]]) -> Choice:
    """Leave out columns that say words in every row: remarks beside the numbers, not damaged numbers.

    ``cells(i)`` are the first values of column i.
    """
    reasons = {}
    for i in choice.observed:
        first = cells(i)
        if len(first) >= _REMARKS and all(isinstance(x, str) and _WORDS.fullmatch(x.strip()) for x in first):
            reasons[i] = "holds words"
    numbers = [i for i in choice.observed if i not in reasons]
    if not reasons or not numbers:
        return choice
    said = {names[i] or str(i + 1): reason for i, reason in reasons.items()}
    return choice._replace(observed=numbers, left_out=choice.left_out | said)


def _found(where: str, names: Sequence[str], columns: Sequence[str]) -> list[int]:
    if isinstance(columns, str):
        raise SeriesError(f"{where}: columns must be a list of names, got {columns!r}")
    places: dict[str, list[int]] = {}
    for i, name in enumerate(names):
        places.setdefault(name, []).append(i)
    found = []
    for column in columns:
        there = places.get(str(column), [])
        if not there:
            raise SeriesError(f"{where}: no column {quoted(column)}, there are {_listed(names)}")
        if len(there) > 1:
            raise SeriesError(f"{where}: {len(there)} columns are named {column}")
        found.append(there[0])
    return found


def _listed(names: Sequence[str], most: int = 20) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def without_counters(table: Table) -> Table:
    """Return ``table`` without the columns that only count up, unless nothing else is there.

    The first of them tells the time, if nothing else does.
    """
    counting = [column for column in range(len(table.names)) if _counts(table, column)]
    kept = sorted(set(range(len(table.names))) - set(counting))
    if not counting or not kept:
        return table
    reasons = {table.names[column]: "only counts up: a time or an index" for column in counting}
    found = replace(
        table,
        names=tuple(table.names[column] for column in kept),
        values=np.ascontiguousarray(table.values[:, kept]),
        left_out=table.left_out | reasons,
    )
    if table.times is None:
        found = replace(found, clock=table.names[counting[0]], times=table.values[:, counting[0]].copy())
    return found


def counters(table: Table) -> list[str]:
    """Return the names of the columns that only count up beside others that do not."""
    counting = [name for column, name in enumerate(table.names) if _counts(table, column)]
    return counting if len(counting) < len(table.names) else []


def _counts(table: Table, column: int) -> bool:
    values = table.values[:, column]
    if len(values) < _LEAST_COUNTED or not np.isfinite(values[[0, 1, -1]]).all():
        return False
    rises = np.concatenate([np.diff(part) for part in table.in_trials(values)])
    if not rises.size or not (rises > 0).all():  # NaN compares as False
        return False
    if is_time(table.names[column]) or (column == 0 and not (values % 1).any()):
        return True
    step, size = rises.mean(), np.abs(values).max()
    return bool(np.ptp(rises) <= 1e-6 * step + 8 * np.spacing(size))


def even_step(times: Sequence[Floats]) -> float | None:
    """Return the step of times that rise evenly, trial by trial; None if they do not.

    Evenly means that no time is off its grid by more than a twentieth of a step: rounded times are.
    """
    long = [part for part in times if len(part) > 1]
    count = sum(len(part) - 1 for part in long)
    if not count or not all(np.isfinite(part).all() for part in long):
        return None
    step = sum(float(part[-1] - part[0]) for part in long) / count
    if not 0 < step < np.inf:
        return None
    for part in long:
        if np.abs(part - part[0] - step * np.arange(len(part))).max() > _JITTER * step:
            return None
    return float(f"{step:.9g}")  # a grid of 0.01 has steps of 0.010000000000000002, too


def is_time(name: str) -> bool:
    """Whether a column of this name tells the time of a row; a saved index has no name."""
    return name == "" or name.lower() == "unnamed: 0" or _TIME.fullmatch(name) is not None


def is_date(cell: str) -> bool:
    """Whether a cell is an ISO 8601 date or date and time."""
    return _DATE.fullmatch(cell.strip()) is not None
