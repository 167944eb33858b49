"""Reading `.parquet` files by pyarrow, batch by batch: only the columns that are used, converted at once.

A few bytes of such a file can stand for any number of rows: what it claims is checked before it is read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from palrnn.data.readers.registry import reader
from palrnn.data.table import PEEKED, Labels, SeriesError, Table, Wanted, choose, refuse_size, without_words
from palrnn.engine.checks import Floats
from palrnn.engine.text import printable, quoted

_BATCH = 65_536
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


@reader(".parquet")
def read_parquet(file: Path, wanted: Wanted) -> Table:
    """Return the observed columns of ``file``, NaN where a value is null."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise SeriesError(f"{file}: reading .parquet needs pyarrow: pip install 'palrnn[parquet]'") from None
    with pq.ParquetFile(file) as held:
        schema, rows = held.schema_arrow, held.metadata.num_rows
        index = _index_columns(schema)
        fields = [field for field in schema if field.name not in index]
        names = [printable(field.name) for field in fields]
        dated = bool(fields) and pa.types.is_temporal(fields[0].type)
        choice = choose(str(file), names, wanted, dated=dated)
        if wanted.columns is None:
            choice = without_words(choice, names, lambda i: _first_words(held, fields[i]))
        if rows:
            refuse_size(str(file), (rows, len(choice.observed)))
        clock = fields[choice.time].name if choice.time is not None else next(iter(index), None)
        columns = _Columns(
            [fields[i].name for i in choice.observed],
            None if choice.trial is None else fields[choice.trial].name,
            clock,
        )
        columns.refuse_doubles(str(file), schema)
        # labels stay numbers into a dictionary: a long word in every row would be as many copies of it
        texts = (
            [columns.trial] if columns.trial is not None and _is_text(schema.field(columns.trial)) else None
        )
        with pq.ParquetFile(file, read_dictionary=texts, metadata=held.metadata) as source:
            values, labels, times = _read(str(file), source, columns, rows)
    shown = None if clock is None else "index" if clock.startswith("__index_level_") else printable(clock)
    return Table(
        str(file),
        tuple(names[i] for i in choice.observed),
        values,
        labels=labels,
        clock=None if times is None else shown,
        times=times,
        left_out=choice.left_out,
    )


def _first_words(held: Any, field: Any) -> list[Any]:
    """Return the first values of a column of text, and none of another."""
    if not _is_text(field):
        return []
    batch = next(held.iter_batches(batch_size=PEEKED, columns=[field.name]), None)
    return [] if batch is None else batch.column(0).to_pylist()


class _Columns(NamedTuple):
    """The names, as in the file, of the columns to read."""

    observed: list[str]
    trial: str | None
    clock: str | None

    def all(self) -> list[str]:
        return list(dict.fromkeys([*self.observed, *(name for name in self[1:] if name is not None)]))

    def refuse_doubles(self, where: str, schema: Any) -> None:
        for name in self.all():
            if (count := schema.names.count(name)) > 1:
                raise SeriesError(f"{where}: {count} columns are named {name}")


def _index_columns(schema: Any) -> list[str]:
    """Return the columns that are the index of a data frame of pandas."""
    told = (schema.pandas_metadata or {}).get("index_columns", [])
    return [name for name in told if isinstance(name, str)]


def _is_text(field: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(field.type) or pa.types.is_large_string(field.type))


def _read(
    where: str, source: Any, columns: _Columns, rows: int
) -> tuple[Floats, Labels | None, Floats | None]:
    values = np.empty((rows, len(columns.observed)))
    numbers = np.empty(rows if columns.trial is not None else 0, np.int64)
    times = np.empty(rows if columns.clock is not None else 0)
    ranks: dict[str, int] = {}
    timed, start, base = columns.clock is not None, 0, 0
    for batch in source.iter_batches(_BATCH, columns=columns.all(), use_threads=False):
        end = start + len(batch)
        if end > rows:
            raise SeriesError(f"{where}: holds more rows than the {rows} that it claims")
        for i, name in enumerate(columns.observed):
            values[start:end, i] = _numbers(where, batch.column(name), printable(name), start)
        if columns.trial is not None:
            numbers[start:end] = _ranked(batch.column(columns.trial), ranks)
        if timed:
            ticks, unit = _ticks(batch.column(columns.clock))
            timed = unit > 0
            if timed and len(batch):
                base = ticks[0] if start == 0 else base
                times[start:end] = (ticks - base) * unit
        start = end
    if start < rows:
        raise SeriesError(f"{where}: holds {start} rows, claims {rows}")
    labels = None if columns.trial is None else Labels(numbers, tuple(ranks), printable(columns.trial))
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
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        whole, unit = pa.int64(), _SECONDS[kind.unit]
    elif pa.types.is_date32(kind):
        column, whole, unit = pc.cast(column, pa.int32()), pa.int64(), 86_400.0
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind):
        whole, unit = pa.float64(), 1.0
    else:
        return np.empty(0), 0.0
    if column.null_count:
        return np.empty(0), 0.0
    return pc.cast(column, whole, safe=False).to_numpy(zero_copy_only=False), unit
