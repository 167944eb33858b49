"""What tells the time of a row: names and dates that say so, even steps, and times that run backwards."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from palrnn.engine.checks import Floats

_COUNTERS = "step|steps|index|frame|sample"
_TIME = re.compile(rf"(t|(?i:time|timestamp|date|datetime|{_COUNTERS}))\s*([\[(].*[\])])?")
# a column without a name goes by its number, and by 1.2 where another one is called 1
_COUNTER = re.compile(rf"(?i:{_COUNTERS}|unnamed: 0|\d+(\.\d+)?)")
_AGE = re.compile(r"(?i:.*\b(bp|b2k|ago|before|until|left)\b.*)")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}([.,]\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?")
_EPOCH, _TICK = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
# times written with few digits are off their grid: 1/60 s in whole milliseconds by 3 % of a step
_JITTER = 0.05
# local dates go back by as much at the end of summer time
_SUMMER_TIME = 3600.0


def is_time(name: str) -> bool:
    """Whether a column of this name tells the time of a row; a saved index has no name."""
    return name == "" or name.lower() == "unnamed: 0" or _TIME.fullmatch(name) is not None


def is_counter(name: str) -> bool:
    """Whether a column of this name may only count rows."""
    return _COUNTER.fullmatch(name) is not None


def is_date(cell: str) -> bool:
    """Whether a cell is an ISO 8601 date or date and time."""
    return _DATE.fullmatch(cell.strip()) is not None


def date_ticks(cells: Sequence[str]) -> NDArray[np.int64] | None:
    """Return dates as microseconds since 1970, those without a zone in UTC; None if one is no date."""
    try:
        return np.fromiter(((_moment(cell) - _EPOCH) // _TICK for cell in cells), np.int64, len(cells))
    except ValueError:
        return None


def _moment(cell: str) -> datetime:
    moment = datetime.fromisoformat(cell.strip().replace(",", "."))
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


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


def first_fall(times: Sequence[Floats], name: str, *, asked: bool, dated: bool) -> tuple[int, int] | None:
    """Return the trial, and the row in it, where times run backwards; None if none is known to.

    Rows must follow each other in time, or a series is learned backwards. What is refused depends on how the
    column ``name`` is known to tell the time:

    - by the caller (``asked``): a time earlier than that of the row before;
    - by its dates (``dated``): times that all fall, and one that is more than an hour earlier than one before
      it, for local times go back by an hour at the end of summer time;
    - by its name alone, as ``time [s]``: times that all fall. A time of day falls at midnight, and the time
      in a cycle at the next one;
    - by less: nothing. The index of a data frame that was turned round falls although its rows are in order
      now, and an age, as ``time (ka BP)``, falls as time goes on.
    """
    if asked:
        return _first(part[1:] < part[:-1] for part in times)
    if not dated and (not is_time(name) or is_counter(name) or _AGE.fullmatch(name)):
        return None
    if not any((part[1:] > part[:-1]).any() for part in times):
        return _first(part[1:] < part[:-1] for part in times)
    if not dated:
        return None
    return _first(part[1:] < np.maximum.accumulate(part[:-1]) - _SUMMER_TIME for part in times)


def _first(falls: Iterable[NDArray[np.bool_]]) -> tuple[int, int] | None:
    """Return the first trial and row that are marked; marks begin with the second row of each trial."""
    for trial, marks in enumerate(falls):
        if marks.any():
            return trial, int(marks.argmax()) + 1
    return None
