"""Reading a series from a file. Files are data, never code: nothing here unpickles."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd

from palrnn.engine.checks import Floats

_READERS = (".csv", ".npy", ".npz", ".parquet")
_TIME_NAMES = frozenset({"t", "time", "timestamp", "date", "datetime", "step", "index"})


class SeriesError(ValueError):
    """A series file that cannot be used, with the file, column and row where it can be told."""


def load_series(
    path: str | os.PathLike[str], *, min_steps: int = 2, columns: list[str] | None = None, allow_nan: bool = False
) -> Floats:
    """Return the series in ``path`` as ``(T, N)`` float64, time in rows.

    ``.csv`` may have a header line and a time column: a first column named ``t``, ``time``, ``step`` and the like,
    or dates, is left out. ``.npz`` must hold one array, or one named ``x``. ``columns`` picks named columns of a
    table. Missing values are refused unless ``allow_nan`` (the particle filter reads NaN as "not observed").
    """
    file = Path(path)
    suffix = file.suffix.lower()
    if suffix not in _READERS:
        raise SeriesError(f"{file}: unknown type {suffix or '(none)'}, expected one of {', '.join(_READERS)}")
    if not file.is_file():
        raise SeriesError(f"{file}: no such file")
    try:
        if suffix in (".npy", ".npz"):
            if columns is not None:
                raise SeriesError(f"{file}: columns can be named for .csv and .parquet only")
            values, names = _read_numpy(file), None
        else:
            table = _read_csv(file) if suffix == ".csv" else _read_parquet(file)
            values, names = _numbers(file, _without_time(_picked(file, table, columns)))
    except SeriesError:
        raise
    except (OSError, ValueError, KeyError, EOFError, MemoryError, pd.errors.ParserError) as error:
        raise SeriesError(f"{file}: cannot be read as {suffix}: {str(error).splitlines()[0]}") from error
    return _checked(file, values, names, min_steps, allow_nan)


def _read_numpy(file: Path) -> Floats:
    if file.suffix.lower() == ".npz":
        with np.load(file, allow_pickle=False) as archive:
            if "x" not in archive.files and len(archive.files) != 1:
                raise SeriesError(f"{file}: must hold one array or one named x, holds {', '.join(archive.files) or 'none'}")
            array = archive["x" if "x" in archive.files else archive.files[0]]
    else:
        # a memory map first: a header that claims more than the file holds is refused before anything is allocated
        array = np.array(np.load(file, allow_pickle=False, mmap_mode="r"))
    if array.dtype.kind not in "fiub":
        raise SeriesError(f"{file}: holds {array.dtype}, expected real numbers")
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2:
        raise SeriesError(f"{file}: must be (T, N) or (T,), got {array.shape}")
    return array.astype(np.float64)


def _read_csv(file: Path) -> pd.DataFrame:
    try:
        first = pd.read_csv(file, header=None, nrows=1, dtype=str, skipinitialspace=True)
    except pd.errors.EmptyDataError:
        raise SeriesError(f"{file}: is empty") from None
    header = 0 if any(not _is_number(cell) for cell in first.iloc[0]) else None
    table = pd.read_csv(file, header=header, dtype=str, skipinitialspace=True)
    table.columns = [f"{name}" if header == 0 else f"{i + 1}" for i, name in enumerate(table.columns)]
    return table


def _read_parquet(file: Path) -> pd.DataFrame:
    try:
        return pd.read_parquet(file)
    except ImportError:
        raise SeriesError(f"{file}: reading .parquet needs pyarrow: pip install 'palrnn[parquet]'") from None


def _picked(file: Path, table: pd.DataFrame, columns: list[str] | None) -> pd.DataFrame:
    if columns is None:
        return table
    missing = [name for name in columns if name not in table.columns]
    if missing:
        raise SeriesError(f"{file}: no column {missing[0]!r}, there are {', '.join(map(str, table.columns))}")
    return table[columns]


def _without_time(table: pd.DataFrame) -> pd.DataFrame:
    first = table.columns[0]
    dated = pd.api.types.is_datetime64_any_dtype(table[first])
    if table.shape[1] > 1 and (dated or str(first).strip().lower() in _TIME_NAMES):
        return table.drop(columns=first)
    return table


def _numbers(file: Path, table: pd.DataFrame) -> tuple[Floats, list[str]]:
    columns = []
    for name in table.columns:
        cells = table[name]
        numbers = pd.to_numeric(cells, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
        words = np.flatnonzero(np.isnan(numbers) & cells.notna().to_numpy())
        words = [row for row in words if str(cells.iloc[row]).strip().lower() not in ("nan", "")]
        if words:
            row = words[0]
            raise SeriesError(f"{file}: column {name}, row {row + 1}: {str(cells.iloc[row])[:40]!r} is not a number")
        columns.append(numbers)
    if not columns:
        raise SeriesError(f"{file}: has no columns")
    return np.column_stack(columns), [str(name) for name in table.columns]


def _is_number(cell: object) -> bool:
    try:
        float(str(cell))
    except ValueError:
        return False
    return True


def _checked(file: Path, values: Floats, names: list[str] | None, min_steps: int, allow_nan: bool) -> Floats:
    if values.shape[0] < min_steps or values.shape[1] < 1:
        raise SeriesError(f"{file}: has {values.shape[0]} steps of {values.shape[1]} columns, needs at least {min_steps} steps")
    bad = np.isinf(values) if allow_nan else ~np.isfinite(values)
    if bad.any():
        row, column = (int(i) for i in np.argwhere(bad)[0])
        kind = "missing (NaN)" if np.isnan(values[row, column]) else "infinite"
        raise SeriesError(f"{file}: column {_name(names, column)}, row {row + 1}: the value is {kind}")
    for column in range(values.shape[1]):
        seen = values[~np.isnan(values[:, column]), column]
        if seen.size == 0 or seen.min() == seen.max():
            raise SeriesError(f"{file}: column {_name(names, column)} is constant")
    return np.ascontiguousarray(values)


def _name(names: list[str] | None, column: int) -> str:
    return names[column] if names is not None else str(column + 1)
