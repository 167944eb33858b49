"""A pandas data frame as a table: columns by the rules for files, and an index that tells the time."""

from __future__ import annotations

import math
import numbers
from typing import Any, cast

import numpy as np

from palrnn.data.clock import date_ticks, is_date
from palrnn.data.table import (
    PEEKED,
    Choice,
    SeriesError,
    Table,
    Wanted,
    choose,
    labelled,
    refuse_falling,
    without_counters,
    without_words,
)
from palrnn.engine.checks import Floats
from palrnn.engine.text import printable, quoted


def is_frame(x: Any) -> bool:
    """Whether ``x`` is a data frame or a series of pandas, which need not be imported to ask."""
    return type(x).__module__.partition(".")[0] == "pandas" and hasattr(x, "iloc")


def frame_table(frame: Any, wanted: Wanted, where: str = "x") -> Table:
    """Return the observed columns of a data frame, NaN where a value is missing."""
    frame = _with_index(frame if hasattr(frame, "columns") else frame.to_frame(), wanted)
    headers = [printable(name) for name in frame.columns]
    choice = choose(where, headers, wanted, dated=bool(headers) and _holds_dates(frame.iloc[:, 0]))
    if wanted.columns is None:
        choice = without_words(choice, lambda i: frame.iloc[:PEEKED, i].tolist())
    names = choice.names
    values = [column_values(where, frame.iloc[:, i], names[i]) for i in choice.observed]
    labels = None
    if choice.trial is not None:
        column = frame.iloc[:, choice.trial]
        known = column.notna().to_numpy()
        words = [printable(label) if there else "" for label, there in zip(column, known, strict=True)]
        labels = labelled(words, names[choice.trial])
    clock, times, dated = _clock(frame, choice)
    table = Table(
        where,
        tuple(names[i] for i in choice.observed),
        np.column_stack(values),
        labels=labels,
        clock=None if times is None else clock,
        times=times,
        dated=dated,
        left_out=choice.left_out,
    )
    refuse_falling(table, asked=wanted.time is not None)
    return without_counters(table) if wanted.columns is None else table


def _with_index(frame: Any, wanted: Wanted) -> Any:
    """Return ``frame`` with its index as the first column, where that is asked to tell the time."""
    if wanted.time is None:
        return frame
    asked = printable(wanted.time)
    if asked in map(printable, frame.columns) or asked not in (_index_name(frame), "index"):
        return frame
    return frame.reset_index(names=asked)


def _index_name(frame: Any) -> str:
    return printable(frame.index.name or "index")


def _clock(frame: Any, choice: Choice) -> tuple[str, Floats | None, bool]:
    """Return the column or the index that tells the time, what it says, and whether it holds dates."""
    import pandas as pd

    if choice.time is not None:
        column = frame.iloc[:, choice.time]
        return choice.names[choice.time], clock_values(column), _holds_dates(column)
    if frame.index.equals(pd.RangeIndex(len(frame))) and frame.index.name is None:
        return "", None, False  # rows counted from 0: no index was given
    return _index_name(frame), clock_values(frame.index), _holds_dates(frame.index)


def _holds_dates(times: Any) -> bool:
    """Whether a column or an index holds dates, or texts that are dates, by the first of them."""
    import pandas as pd

    kinds = pd.api.types
    if kinds.is_datetime64_any_dtype(times.dtype) or isinstance(times.dtype, pd.PeriodDtype):
        return True
    if kinds.is_numeric_dtype(times.dtype) or isinstance(times, pd.MultiIndex) or not len(times):
        return False
    return is_date(str(pd.Series(times).iloc[0]))


def column_values(where: str, column: Any, name: str) -> Floats:
    """Return a column of numbers of any kind as float64; nullable kinds, categories and objects, too."""
    import pandas as pd

    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(column.cat.categories.dtype)
    if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_complex_dtype(column):
        return cast(Floats, column.to_numpy(dtype=np.float64, na_value=np.nan))
    values = np.full(len(column), np.nan)
    for row in np.flatnonzero(column.notna().to_numpy()):
        values[row] = _number(column.iloc[row])
        if math.isnan(values[row]):
            shown = quoted(str(column.iloc[row]), 40)
            raise SeriesError(f"{where}: column {name}, row {row + 1}: {shown} is not a number")
    return values


def _number(value: Any) -> float:
    """Return a number of any kind, decimals among them, as a float, and NaN for anything else."""
    from decimal import Decimal

    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (numbers.Real, Decimal)):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf


def clock_values(times: Any) -> Floats | None:
    """Return what a column or an index says as time, dates and durations in seconds; None if it says none."""
    import pandas as pd

    if isinstance(times, pd.MultiIndex):
        return None
    if isinstance(times.dtype, pd.PeriodDtype):
        times = times.to_timestamp() if isinstance(times, pd.PeriodIndex) else times.dt.to_timestamp()
    kinds = pd.api.types
    if kinds.is_datetime64_any_dtype(times.dtype) or kinds.is_timedelta64_dtype(times.dtype):
        if times.isna().any() or not len(times):
            return None
        since = pd.Index(times) - pd.Index(times)[0] if kinds.is_datetime64_any_dtype(times.dtype) else times
        return np.asarray(pd.TimedeltaIndex(since).total_seconds(), dtype=np.float64)
    if kinds.is_numeric_dtype(times.dtype) and not kinds.is_bool_dtype(times.dtype):
        if kinds.is_complex_dtype(times.dtype):
            return None
        return np.asarray(pd.Series(times).to_numpy(dtype=np.float64, na_value=np.nan))
    if not _holds_dates(times):
        return None
    ticks = date_ticks([*map(str, times)])
    return None if ticks is None else (ticks - ticks[0]) / 1e6
