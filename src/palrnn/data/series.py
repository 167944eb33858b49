"""A series, or the trials of a recording, from and to a file. Files are data, never code: no pickles."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from palrnn.data.grid import on_grid
from palrnn.data.readers import read_table
from palrnn.data.table import SeriesError, Table, Wanted
from palrnn.engine.checks import Floats, as_float, as_int, as_path, as_series
from palrnn.engine.files import write_bytes


def load_series(
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    time: str | None = None,
    dt: float | None = None,
    min_steps: int = 2,
    allow_nan: bool = False,
) -> Floats:
    """Return the series in ``path`` as ``(T, N)`` float64, time in rows.

    ``.csv``, ``.txt`` and ``.tsv`` may have a header line. A time column in front (by its name, or because it
    holds dates) and a column that only counts up are left out. ``columns`` picks columns of a table by name,
    and of ``.edf``, channels. ``.npz``, ``.mat`` and ``.h5`` must hold one array, or one named ``x``; or say
    which, as in ``"recording.mat::lfp"``. Missing values are refused unless ``allow_nan``: NaN means "not
    observed", in training as in the filter. ``time`` names the column that tells the time; with it, ``dt``
    puts rows at uneven times on a grid of that step, with NaN where nothing was seen: nothing is
    interpolated, and rows nearest to the same grid point are averaged.

    A file that cannot be used gives a `SeriesError` with its name, the column, and the line (of a ``.csv``)
    or row (counted from 1).
    """
    min_steps = as_int(min_steps, "min_steps", least=1)
    table = read_table(path, Wanted(columns, time=time))
    if table.labels is not None and len(table.labels.names) > 1:
        held = ", ".join(table.labels.names[:5]) + (", ..." if len(table.labels.names) > 5 else "")
        raise SeriesError(
            f"{table.where}: holds {len(table.labels.names)} trials ({held}): use load_trials, "
            f"{'or name one array x' if table.from_array else 'or name the columns'}"
        )
    check_values(table, min_steps, allow_nan)
    return table.values if dt is None else _gridded(table, time, dt).values


def load_trials(
    path: str | os.PathLike[str],
    *,
    trial: str = "trial",
    columns: Sequence[str] | None = None,
    time: str | None = None,
    dt: float | None = None,
    min_steps: int = 2,
    allow_nan: bool = False,
) -> list[Floats]:
    """Return the trials in ``path`` as a list of series ``(T_k, N)``.

    In a table (``.csv``, ``.txt``, ``.parquet``) the column named ``trial`` tells which trial a row belongs
    to, by a number or a word; trials come in the order in which they begin. ``.npy`` and ``.h5`` may be ``(K,
    T, N)``, and each array of an ``.npz`` without an ``x`` is a trial. Without any of this there is one
    trial. Otherwise as `load_series`.
    """
    min_steps = as_int(min_steps, "min_steps", least=1)
    table = read_table(path, Wanted(columns, trial, time))
    check_values(table, min_steps, allow_nan)
    return table.trials if dt is None else _gridded(table, time, dt).trials


def _gridded(table: Table, time: str | None, dt: float) -> Table:
    if time is None:
        raise ValueError("time must name the column that tells the time where dt is given, got None")
    return on_grid(table, as_float(dt, "dt", above=0.0))


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
    table = read_table(path, Wanted(columns, trial))
    return [f"x{name}" for name in table.names] if table.from_array else list(table.names)


def check_values(table: Table, min_steps: int, allow_nan: bool) -> None:
    """Refuse a table that is too short, holds values that are not finite, or columns that do not vary."""
    values, labels = table.values, table.labels
    if values.shape[0] < min_steps:
        raise SeriesError(
            f"{table.where}: has {len(values)} steps of {values.shape[1]} columns, "
            f"needs at least {min_steps} steps"
        )
    if labels is not None:
        for name, steps in zip(labels.names, np.bincount(labels.numbers), strict=True):
            if steps < min_steps:
                raise SeriesError(
                    f"{table.where}: trial {name} has {steps} steps, needs at least {min_steps}"
                )
    for column, name in enumerate(table.names):
        seen = values[:, column]
        bad = np.isinf(seen) if allow_nan else ~np.isfinite(seen)
        if bad.any():
            row = int(bad.argmax())
            kind = "missing (NaN)" if np.isnan(seen[row]) else "infinite"
            raise SeriesError(f"{table.where}: {table.place(row, column)}: the value is {kind}")
        seen = seen[~np.isnan(seen)] if allow_nan else seen
        if seen.size == 0 or seen.min() == seen.max():
            raise SeriesError(
                f"{table.where}: column {name} {'is constant' if seen.size else 'holds no values'}"
            )
