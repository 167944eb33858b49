"""A series, or the trials of a recording, from and to a file. Files are data, never code: no pickles."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palrnn.data.arrays import read_npy, read_npz
from palrnn.data.csv_table import read_csv
from palrnn.data.parquet_table import read_parquet
from palrnn.data.table import SeriesError, Table
from palrnn.engine.checks import Floats, as_int, as_path, as_series, first_line
from palrnn.engine.files import write_bytes

_TABLES = {".csv": read_csv, ".parquet": read_parquet}
_SUFFIXES = (".csv", ".npy", ".npz", ".parquet")

T = TypeVar("T")


def load_series(
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    min_steps: int = 2,
    allow_nan: bool = False,
) -> Floats:
    """Return the series in ``path`` as ``(T, N)`` float64, time in rows.

    ``.csv`` may have a header line. A time column in front (by its name, or because it holds dates) is left
    out. ``columns`` picks columns of a table by name. ``.npz`` must hold one array, or one named ``x``.
    Missing values are refused unless ``allow_nan`` (the particle filter reads NaN as "not observed").

    A file that cannot be used gives a `SeriesError` with its name, the column, and the line (of a ``.csv``)
    or row (counted from 1).
    """
    file, suffix = _known(path)
    min_steps = as_int(min_steps, "min_steps", least=1)
    if suffix in _TABLES:
        table = _read(file, suffix, lambda: _TABLES[suffix](file, columns, "trial"))
        if table.labels is not None and len(set(table.labels)) > 1:
            raise SeriesError(f"{file}: has a column of trials: use load_trials, or name the columns")
    else:
        table = _one_array(file, suffix, columns)
    _check(file, table, min_steps, allow_nan)
    return table.values


def load_trials(
    path: str | os.PathLike[str],
    *,
    trial: str = "trial",
    columns: Sequence[str] | None = None,
    min_steps: int = 2,
    allow_nan: bool = False,
) -> list[Floats]:
    """Return the trials in ``path`` as a list of series ``(T_k, N)``.

    In a table (``.csv``, ``.parquet``) the column named ``trial`` tells which trial a row belongs to, by a
    number or a word; trials come in the order in which they begin. ``.npy`` may be ``(K, T, N)``, and each
    array of an ``.npz`` without an ``x`` is a trial. Without any of this there is one trial. Otherwise as
    `load_series`.
    """
    file, suffix = _known(path)
    min_steps = as_int(min_steps, "min_steps", least=1)
    if suffix in _TABLES:
        table = _read(file, suffix, lambda: _TABLES[suffix](file, columns, trial))
        labels = ["1"] * len(table.values) if table.labels is None else table.labels
        if "" in labels:
            raise SeriesError(f"{file}: column {trial}, {table.row(labels.index(''))}: the trial is missing")
    else:
        parts = _several_arrays(file, suffix, columns)
        table = _as_table(np.concatenate(list(parts.values())))
        labels = [name for name, part in parts.items() for _ in range(len(part))]
    _check(file, table, 1, allow_nan)
    rank = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    numbers = np.array([rank[label] for label in labels])
    together = table.values[np.argsort(numbers, kind="stable")]
    trials = [part.copy() for part in np.split(together, np.cumsum(np.bincount(numbers))[:-1])]
    for label, part in zip(rank, trials, strict=True):
        if len(part) < min_steps:
            raise SeriesError(f"{file}: trial {label} has {len(part)} steps, needs at least {min_steps}")
    return trials


def save_series(path: str | os.PathLike[str], x: ArrayLike) -> None:
    """Write ``x (T, N)`` as ``.npy``, whole or not at all; `load_series` reads it back, bit for bit."""
    file = as_path(path)
    if file.suffix.lower() != ".npy":
        raise SeriesError(f"{file}: must end in .npy")
    buffer = io.BytesIO()
    np.save(buffer, as_series(x, min_steps=1, allow_nan=True), allow_pickle=False)
    write_bytes(file, buffer.getvalue())


def column_names(
    path: str | os.PathLike[str], *, trial: str = "trial", columns: Sequence[str] | None = None
) -> list[str]:
    """Return the names of the observed columns of the table in ``path``; of an array, "x1", "x2", ..."""
    file, suffix = _known(path)
    if suffix in _TABLES:
        return _read(file, suffix, lambda: _TABLES[suffix](file, columns, trial)).names
    width = next(iter(_several_arrays(file, suffix, columns).values())).shape[1]
    return [f"x{i + 1}" for i in range(width)]


def _known(path: str | os.PathLike[str]) -> tuple[Path, str]:
    file = as_path(path)
    suffix = file.suffix.lower()
    if suffix not in _SUFFIXES:
        raise SeriesError(
            f"{file}: unknown type {suffix or '(none)'}, expected one of {', '.join(_SUFFIXES)}"
        )
    if not file.is_file():
        raise SeriesError(f"{file}: {'is not a file' if file.exists() else 'no such file'}")
    return file, suffix


def _read(file: Path, suffix: str, read: Callable[[], T]) -> T:
    """Return what ``read`` returns; whatever a damaged file makes a parser say becomes one sentence."""
    try:
        return read()
    except SeriesError:
        raise
    except Exception as error:
        raise SeriesError(f"{file}: cannot be read as {suffix}: {first_line(error)}") from error


def _arrays(file: Path, suffix: str, columns: Sequence[str] | None) -> dict[str, NDArray[Any]]:
    if columns is not None:
        raise SeriesError(f"{file}: columns can be named for .csv and .parquet only")
    return _read(file, suffix, lambda: {"x": read_npy(file)} if suffix == ".npy" else read_npz(file))


def _one_array(file: Path, suffix: str, columns: Sequence[str] | None) -> Table:
    arrays = _arrays(file, suffix, columns)
    if len(arrays) != 1:
        held = ", ".join(arrays) or "none"
        raise SeriesError(f"{file}: must hold one array or one named x, holds {held}")
    return _as_table(_two_axes(file, next(iter(arrays.values()))))


def _several_arrays(file: Path, suffix: str, columns: Sequence[str] | None) -> dict[str, NDArray[Any]]:
    arrays = _arrays(file, suffix, columns)
    if len(arrays) == 1:
        (array,) = arrays.values()
        if array.ndim == 3:
            arrays = {str(number + 1): part for number, part in enumerate(array)}
    parts = {name: _two_axes(file, array) for name, array in arrays.items()}
    if not parts:
        raise SeriesError(f"{file}: holds no trials")
    widths = {name: part.shape[1] for name, part in parts.items()}
    if len(set(widths.values())) > 1:
        raise SeriesError(f"{file}: trials must have the same number of columns, have {widths}")
    return parts


def _two_axes(file: Path, array: NDArray[Any]) -> NDArray[Any]:
    if array.ndim == 1:
        return array[:, None]
    if array.ndim == 3:
        raise SeriesError(f"{file}: must be (T, N) or (T,), got {array.shape}; load_trials reads (K, T, N)")
    if array.ndim != 2:
        raise SeriesError(f"{file}: must be (T, N) or (T,), got {array.shape}")
    return array


def _as_table(array: NDArray[Any]) -> Table:
    return Table([str(i + 1) for i in range(array.shape[1])], array.astype(np.float64, order="C"))


def _check(file: Path, table: Table, min_steps: int, allow_nan: bool) -> None:
    values = table.values
    if values.shape[0] < min_steps or values.shape[1] < 1:
        raise SeriesError(
            f"{file}: has {len(values)} steps of {values.shape[1]} columns, needs at least {min_steps} steps"
        )
    bad = np.isinf(values) if allow_nan else ~np.isfinite(values)
    if bad.any():
        row, column = (int(i) for i in np.argwhere(bad)[0])
        kind = "missing (NaN)" if np.isnan(values[row, column]) else "infinite"
        raise SeriesError(f"{file}: {table.place(row, column)}: the value is {kind}")
    for column, name in enumerate(table.names):
        seen = values[~np.isnan(values[:, column]), column]
        if seen.size == 0 or seen.min() == seen.max():
            raise SeriesError(f"{file}: column {name} {'is constant' if seen.size else 'holds no values'}")
