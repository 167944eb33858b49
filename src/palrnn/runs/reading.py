"""A series that comes after training, read and prepared as the run's own data were."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from palrnn.data import DataSettings, SeriesError, known_systems, make_system
from palrnn.data.frame import frame_table, is_frame
from palrnn.data.readers import read_table, reader_of
from palrnn.data.table import Wanted
from palrnn.engine.checks import as_trials


class _Columns(NamedTuple):
    """The names of all columns, none of an array, and of those that are observed unless others are named."""

    names: frozenset[str]
    observed: tuple[str, ...]


def own_names(series: Any, data: DataSettings | None) -> dict[str, Any]:
    """Return the ``columns``, ``time`` and ``trial`` of a run's ``data`` that the file ``series`` has, too.

    ``series`` may be a data frame as well. What has no such names is read as it is: an array, a table with
    none of the columns. A table with some of the columns must have all of them, which its reader says.
    """
    return {} if data is None else _own_names(_columns(series), data)


def preparation(series: Any, data: DataSettings | None, observed_dim: int) -> dict[str, Any]:
    """Return the settings by which `Dataset.prepare` makes of ``series`` what the model observes.

    They are `own_names`, and the past that makes ``observed_dim`` coordinates: that of the run's ``data``, or
    none where the series has as many columns already. Any other number of columns leaves it open.
    """
    there = _columns(series)
    found = {} if data is None else _own_names(there, data)
    lags, delay = (1, 1) if data is None else data.past
    width = len(found["columns"]) if "columns" in found else _width(there, data)
    if width * lags == observed_dim:
        return found | {"lags": lags, "delay": delay}
    return found | ({"lags": 1} if width == observed_dim else {})


def _own_names(there: _Columns | None, data: DataSettings) -> dict[str, Any]:
    own: dict[str, Any] = {"columns": data.columns, "time": data.time, "trial": data.trial}
    if there is not None:
        wanted = frozenset(data.columns or ())
        shared = wanted & there.names
        # columns without a header are numbered from 1, those of pandas from 0: numbers are no names
        if shared != wanted and all(name.isdigit() for name in shared):
            del own["columns"]
        if data.time not in there.names:
            del own["time"]
        if data.trial.lower() not in {name.lower() for name in there.names}:
            del own["trial"]
    return {name: value for name, value in own.items() if value is not None}


def _columns(series: Any) -> _Columns | None:
    """Return the columns of ``series``; None of a table that cannot be read without knowing which to take."""
    if isinstance(series, str) and series in known_systems():
        return _unnamed(make_system(series).dim)
    first = series[0] if isinstance(series, (list, tuple)) and series else series
    named = is_frame(first)
    if not named and not isinstance(series, (str, os.PathLike)):
        return _unnamed(as_trials(series, allow_nan=True)[0].shape[1])
    named = named or reader_of(series)[1].named
    try:
        table = frame_table(first, Wanted()) if is_frame(first) else read_table(series, Wanted())
    except SeriesError:
        if named:  # labels of trials, or remarks, are no numbers
            return None
        raise
    if table.from_array:
        return _unnamed(len(table.names))
    clock = {table.clock} if table.clock else set()
    return _Columns(frozenset({*table.names, *table.left_out, *clock}), table.names)


def _unnamed(count: int) -> _Columns:
    return _Columns(frozenset(), tuple(f"x{i + 1}" for i in range(count)))


def _width(there: _Columns | None, data: DataSettings | None) -> int:
    """Return how many columns are observed where none are named: all but the inputs; 0 if nobody knows."""
    drives = data.inputs if data is not None and isinstance(data.inputs, tuple) else ()
    return 0 if there is None else len([name for name in there.observed if name not in drives])
