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

Every column has a name of its own, by which it can be asked for again (`unique_names`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from palrnn.data.clock import even_step, first_fall, is_counter, is_time
from palrnn.engine.checks import Floats
from palrnn.engine.text import printable, quoted

# fewer rows can rise evenly by chance
_LEAST_COUNTED = 8

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
    """The names of all columns, the numbers of the observed, trial and time ones, and why others are out."""

    names: list[str]
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
    index ``clock`` says, in seconds if it holds dates (``dated``); ``sampled`` is the time per step that the
    source tells beside its columns. ``from_array`` marks columns without names.
    """

    where: str
    names: tuple[str, ...]
    values: Floats
    lines: NDArray[np.int64] | None = None
    labels: Labels | None = None
    clock: str | None = None
    times: Floats | None = None
    dated: bool = False
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
        step = even_step(self.in_trials(self.times))  # type: ignore[arg-type]
        if step is None:
            return None, f"{self.told_by} is uneven"
        counts = step == 1.0 and is_counter(self.clock) and not self.dated
        return (None, "") if counts else (step, self.told_by)

    @property
    def told_by(self) -> str:
        """What tells the time, in words."""
        return "the index" if self.clock == "index" else f"column {self.clock}"


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


def unique_names(headers: Sequence[str]) -> list[str]:
    """Return a name of its own for each column: its number if it has none, "x.2" for the second "x".

    A name that the source gives is never taken from the first column that has it.
    """
    given, used = set(headers), set()
    counts: dict[str, int] = {}
    names = []
    for i, header in enumerate(headers):
        name = plain = header or str(i + 1)
        while name in used or (name in given and name != header):
            counts[plain] = counts.get(plain, 1) + 1
            name = f"{plain}.{counts[plain]}"
        used.add(name)
        names.append(name)
    return names


def choose(where: str, headers: Sequence[str], wanted: Wanted, *, dated: bool = False) -> Choice:
    """Return which columns of a table are which; ``dated`` says that the first one holds dates.

    ``headers`` are the names in the source, printable; they may be blank, and the same for several columns.
    """
    names = unique_names(headers)
    asked = None if wanted.columns is None else _found(where, names, headers, wanted.columns)
    used = set(asked or ())
    trial = printable(wanted.trial)
    label = [
        i
        for i, name in enumerate(names)
        if trial.lower() in (name.lower(), headers[i].lower()) and i not in used
    ]
    if len(label) > 1:
        raise SeriesError(f"{where}: two columns are named {headers[label[0]]}")
    if not label and trial not in ("trial", *map(printable, wanted.columns or ())):
        raise SeriesError(f"{where}: no column {wanted.trial!r} of trials, there are {_listed(names)}")
    rest = [i for i in range(len(names)) if i not in label]
    time = None
    if wanted.time is not None:
        (time,) = _found(where, names, headers, [wanted.time])
    elif len(rest) > 1 and rest[0] not in used:
        time = rest[0] if (dated and rest[0] == 0) or is_time(headers[rest[0]]) else None
    observed = [i for i in rest if i != time] if asked is None else asked
    if not observed:
        raise SeriesError(f"{where}: has no columns of observations")
    left_out = {}
    for i in sorted(set(range(len(names))) - set(observed)):
        reason = "tells the trial" if i in label else "tells the time" if i == time else "not asked for"
        left_out[names[i]] = reason
    return Choice(names, observed, label[0] if label else None, time, left_out)


def without_words(choice: Choice, cells: Callable[[int], Sequence[Any]]) -> Choice:
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
    said = {choice.names[i]: reason for i, reason in reasons.items()}
    return choice._replace(observed=numbers, left_out=choice.left_out | said)


def _found(where: str, names: list[str], headers: Sequence[str], columns: Sequence[str]) -> list[int]:
    if isinstance(columns, str):
        raise SeriesError(f"{where}: columns must be a list of names, got {columns!r}")
    places = {name: i for i, name in enumerate(names)}
    blank = [i for i, header in enumerate(headers) if header == ""]
    if len(blank) == 1:
        places[""] = blank[0]
    found: dict[int, None] = {}
    for column in columns:
        place = places.get(printable(column))
        if place is None:
            raise SeriesError(f"{where}: no column {quoted(column)}, there are {_listed(names)}")
        if place in found:
            raise SeriesError(f"{where}: columns must name a column once, got {quoted(column)} twice")
        found[place] = None
    return list(found)


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
        times = table.values[:, counting[0]].copy()
        found = replace(found, clock=table.names[counting[0]], times=times, dated=False)
    return found


def refuse_falling(table: Table, *, asked: bool) -> None:
    """Refuse rows that run backwards in time (`first_fall`); ``asked``: the caller named the time."""
    times = table.times
    if times is None or table.clock is None or not (times[1:] < times[:-1]).any():
        return
    if table.sampled is not None and not asked:
        return
    parts = cast(list[Floats], table.in_trials(times))
    fall = first_fall(parts, table.clock, asked=asked, dated=table.dated)
    if fall is None:
        return
    trial, at = fall
    row = int(table.in_trials(np.arange(len(times)))[trial][at])
    hint = "" if table.dated else ", or change its sign if it is an age"
    if (parts[trial][1:] > parts[trial][:-1]).any():
        hint = ", or name the column that tells trials apart"
    raise SeriesError(
        f"{table.where}: {table.told_by}, {table.row(row)}: the time is earlier than that of the row before: "
        f"sort the rows by time{hint}"
    )


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
    # a second column "time" is called "time.2"
    if is_time(re.sub(r"\.\d+$", "", table.names[column])) or (column == 0 and not (values % 1).any()):
        return True
    step, size = rises.mean(), np.abs(values).max()
    return bool(np.ptp(rises) <= 1e-6 * step + 8 * np.spacing(size))
