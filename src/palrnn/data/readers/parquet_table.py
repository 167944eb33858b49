"""Reading `.parquet` files by pyarrow, batch by batch: only the columns that are used, converted at once.

A few bytes of such a file can stand for any number of rows: what it claims is checked before it is read.
The index of a data frame that was saved by pandas is no observation; it tells the time, if nothing else does
or if it is asked to.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from palrnn.data.clock import date_ticks, is_date
from palrnn.data.readers.registry import reader
from palrnn.data.table import (
    PEEKED,
    Choice,
    Labels,
    SeriesError,
    Table,
    Wanted,
    choose,
    refuse_size,
    without_words,
)
from palrnn.engine.checks import Floats
from palrnn.engine.text import printable, quoted

_BATCH = 65_536
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}

# where a column is: its number in the file, or the range that pandas keeps in place of an index that counts
_Place = int | range


@reader(".parquet")
def read_parquet(file: Path, wanted: Wanted) -> Table:
    """Return the observed columns of ``file``, NaN where a value is null."""
    try:
        import pyarrow.parquet as pq
    except ImportError:
        raise SeriesError(f"{file}: reading .parquet needs pyarrow: pip install 'palrnn[parquet]'") from None
    with pq.ParquetFile(file) as held:
        schema, rows = held.schema_arrow, held.metadata.num_rows
        headers, places = _columns(schema, wanted)
        choice = choose(str(file), headers, wanted, dated=bool(places) and _holds_dates(held, places[0]))
        if wanted.columns is None:
            choice = without_words(choice, lambda i: _first_words(held, places[i], PEEKED))
        if rows:
            refuse_size(str(file), (rows, len(choice.observed)))
        used = _used(schema, choice, places)
        # labels stay numbers into a dictionary: a long word in every row would be as many copies of it
        texts = [
            schema.names[i] for i in (used.trial, used.time) if isinstance(i, int) and _is_text(schema, i)
        ]
        with pq.ParquetFile(file, read_dictionary=texts, metadata=held.metadata) as source:
            values, labels, times = _read(str(file), source, used, rows)
    return Table(
        str(file),
        used.names,
        values,
        labels=labels,
        clock=None if times is None else used.clock,
        times=times,
        dated=_is_dated(schema, used.time),
        left_out=choice.left_out,
    )


def _index(schema: Any) -> list[str | dict[str, Any]]:
    """Return the index of a data frame of pandas: the names of columns, or what makes a range."""
    return list((schema.pandas_metadata or {}).get("index_columns", []))


def _columns(schema: Any, wanted: Wanted) -> tuple[list[str], list[_Place]]:
    """Return the names of columns, and where they are; an index is one of them if asked to tell the time."""
    index = _index(schema)
    places: list[_Place] = [i for i, name in enumerate(schema.names) if name not in index]
    headers = [printable(schema.names[i]) for i in places]
    asked = None if wanted.time is None else printable(wanted.time)
    if asked is None or asked in headers:
        return headers, places
    for level in index:
        name = level if isinstance(level, str) else level["name"]
        if (asked == "index" and len(index) == 1) or (name is not None and asked == printable(name)):
            return [asked, *headers], [_place(schema, level), *places]
    return headers, places


def _place(schema: Any, level: str | dict[str, Any]) -> _Place:
    if isinstance(level, str):
        return int(schema.names.index(level))
    return range(level["start"], level["stop"], level["step"])


class _Used(NamedTuple):
    """The columns to read: the observed ones, where they are and by name; and those of trials and times."""

    observed: list[_Place]
    names: tuple[str, ...]
    trial: _Place | None
    label: str
    time: _Place | None
    clock: str


def _used(schema: Any, choice: Choice, places: list[_Place]) -> _Used:
    names, time, clock = choice.names, None, ""
    if choice.time is not None:
        time, clock = places[choice.time], names[choice.time]
    elif index := [level for level in _index(schema) if isinstance(level, str)]:
        time = _place(schema, index[0])
        clock = "index" if index[0].startswith("__index_level_") else printable(index[0])
    return _Used(
        [places[i] for i in choice.observed],
        tuple(names[i] for i in choice.observed),
        None if choice.trial is None else places[choice.trial],
        "" if choice.trial is None else names[choice.trial],
        time,
        clock,
    )


def _first_words(held: Any, place: _Place, most: int) -> list[Any]:
    """Return the first values of a column of text, and none of another."""
    schema = held.schema_arrow
    if isinstance(place, range) or not _is_text(schema, place):
        return []
    batch = next(held.iter_batches(batch_size=most, columns=[schema.names[place]]), None)
    return [] if batch is None else _by_number(batch, schema.names)[place].to_pylist()


def _holds_dates(held: Any, place: _Place) -> bool:
    """Whether a column holds dates, durations, or texts of which the first is a date."""
    import pyarrow as pa

    if isinstance(place, range):
        return False
    if pa.types.is_temporal(held.schema_arrow.field(place).type):
        return True
    return any(isinstance(word, str) and is_date(word) for word in _first_words(held, place, 1))


def _is_dated(schema: Any, place: _Place | None) -> bool:
    """Whether a column that tells the time tells it by dates, which no texts but dates do."""
    import pyarrow as pa

    if not isinstance(place, int):
        return False
    kind = schema.field(place).type
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    dates = (pa.types.is_timestamp, pa.types.is_date, pa.types.is_string, pa.types.is_large_string)
    return any(is_kind(kind) for is_kind in dates)


def _is_text(schema: Any, place: int) -> bool:
    import pyarrow as pa

    kind = schema.field(place).type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _by_number(batch: Any, names: list[str]) -> dict[_Place, Any]:
    """Return the columns of a batch by their numbers in the file, whose columns are ``names``.

    Where several have the same name, all of them are read, in the order of the file.
    """
    numbers: dict[str, list[int]] = {}
    for number in reversed(range(len(names))):
        numbers.setdefault(names[number], []).append(number)
    return {numbers[name].pop(): batch.column(i) for i, name in enumerate(batch.schema.names)}


def _read(where: str, source: Any, used: _Used, rows: int) -> tuple[Floats, Labels | None, Floats | None]:
    import pyarrow as pa

    names = source.schema_arrow.names
    values = np.empty((rows, len(used.observed)))
    numbers = np.empty(rows if used.trial is not None else 0, np.int64)
    times = np.empty(rows if used.time is not None else 0)
    ranks: dict[str, int] = {}
    timed, start, base = used.time is not None, 0, 0
    read = [place for place in (*used.observed, used.trial, used.time) if isinstance(place, int)]
    asked = list(dict.fromkeys(names[place] for place in read))
    for batch in source.iter_batches(_BATCH, columns=asked, use_threads=False):
        end = start + len(batch)
        if end > rows:
            raise SeriesError(f"{where}: holds more rows than the {rows} that it claims")
        held = _by_number(batch, names)
        if isinstance(used.time, range):
            held[used.time] = pa.array(np.array(used.time[start:end]))
        for i, place in enumerate(used.observed):
            values[start:end, i] = _numbers(where, held[place], used.names[i], start)
        if used.trial is not None:
            numbers[start:end] = _ranked(held[used.trial], ranks)
        if timed and used.time is not None:
            ticks, unit = _ticks(held[used.time])
            timed = unit > 0
            if timed and len(batch):
                base = ticks[0] if start == 0 else base
                times[start:end] = (ticks - base) * unit
        start = end
    if start < rows:
        raise SeriesError(f"{where}: holds {start} rows, claims {rows}")
    labels = None if used.trial is None else Labels(numbers, tuple(ranks), used.label)
    return values, labels, times if timed else None


def _numbers(where: str, column: Any, name: str, start: int) -> Floats:
    """Return a stretch of a column, whose first row is number ``start``, as float64."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if pa.types.is_decimal(kind):  # to the nearest float; a cast can be off by one in the last place
        return np.array([np.nan if value is None else float(value) for value in column.to_pylist()])
    if any(is_kind(kind) for is_kind in (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)):
        return np.asarray(pc.cast(column, pa.float64(), safe=False).to_numpy(zero_copy_only=False))
    there = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
    if there.size:
        row = int(there[0])
        shown = quoted(str(column[row].as_py()), 40)
        raise SeriesError(f"{where}: column {name}, row {start + row + 1}: {shown} is not a number")
    return np.full(len(column), np.nan)


def _ranked(column: Any, ranks: dict[str, int]) -> NDArray[np.int64]:
    """Return the numbers of the labels in ``column``, new ones added to ``ranks`` in order of appearance."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    known = column.is_valid().to_numpy(zero_copy_only=False)
    codes = np.where(known, column.indices.fill_null(0).to_numpy(zero_copy_only=False), -1)
    local, first = np.unique(codes, return_index=True)
    places = np.empty(len(local), np.int64)
    for i in np.argsort(first):
        code = int(local[i])
        word = "" if code < 0 else printable(column.dictionary[code].as_py(), 200)
        places[i] = ranks.setdefault(word, len(ranks))
    return places[np.searchsorted(local, codes)]


def _ticks(column: Any) -> tuple[NDArray[Any], float]:
    """Return what a stretch of a time column says, in units of so many seconds; 0 if it says no times."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if column.null_count:
        return np.empty(0), 0.0
    if pa.types.is_dictionary(kind):
        ticks, unit = _ticks(column.dictionary)
        return (ticks[column.indices.to_numpy(zero_copy_only=False)], unit) if unit else (ticks, unit)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        dates = date_ticks(column.to_pylist())
        return (np.empty(0), 0.0) if dates is None else (dates, 1e-6)
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        whole, unit = pa.int64(), _SECONDS[kind.unit]
    elif pa.types.is_date32(kind):
        column, whole, unit = pc.cast(column, pa.int32()), pa.int64(), 86_400.0
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind):
        whole, unit = pa.float64(), 1.0
    else:
        return np.empty(0), 0.0
    return pc.cast(column, whole, safe=False).to_numpy(zero_copy_only=False), unit
