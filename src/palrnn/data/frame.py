"""A pandas data frame as a table: columns by the rules for files, and an index that tells the time."""

from __future__ import annotations

import math
import numbers
from typing import Any, cast

import numpy as np

from palrnn.data.table import (
    PEEKED,
    SeriesError,
    Table,
    Wanted,
    choose,
    labelled,
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
    import pandas as pd

    if isinstance(frame, pd.Series):
        frame = frame.to_frame()
    if wanted.time in (frame.index.name or "index", "index") and wanted.time not in frame.columns:
        frame = frame.reset_index(names=wanted.time)  # the index becomes the column that tells the time
    names = [printable(name) for name in frame.columns]
    dated = bool(names) and pd.api.types.is_datetime64_any_dtype(frame.dtypes.iloc[0])
    choice = choose(where, names, wanted, dated=dated)
    if wanted.columns is None:
        choice = without_words(choice, names, lambda i: frame.iloc[:PEEKED, i].tolist())
    values = [column_values(where, frame.iloc[:, i], names[i]) for i in choice.observed]
    labels = None
    if choice.trial is not None:
        column = frame.iloc[:, choice.trial]
        known = column.notna().to_numpy()
        words = [printable(label) if there else "" for label, there in zip(column, known, strict=True)]
        labels = labelled(words, names[choice.trial])
    if choice.time is not None:
        clock, times = names[choice.time], clock_values(frame.iloc[:, choice.time])
    elif frame.index.equals(pd.RangeIndex(len(frame))) and frame.index.name is None:
        clock, times = "", None  # rows counted from 0: no index was given
    else:
        clock, times = printable(frame.index.name or "index"), clock_values(frame.index)
    table = Table(
        where,
        tuple(names[i] for i in choice.observed),
        np.column_stack(values),
        labels=labels,
        clock=None if times is None else clock,
        times=times,
        left_out=choice.left_out,
    )
    return without_counters(table) if wanted.columns is None else table


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
    return None
