"""Uneven times on an even grid: a row goes to the grid point nearest to its time, and the rest are gaps.

Nothing is interpolated: a model that learns from gaps (NaN) learns from what was measured, not from a guess.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from palrnn.data.table import MOST_VALUES, Labels, SeriesError, Table
from palrnn.engine.checks import Floats


def on_grid(table: Table, dt: float) -> Table:
    """Return ``table`` with rows ``dt`` apart, each trial from its first time on; NaN where nothing was seen.

    Rows that come to the same grid point are averaged, column by column, over what was seen.
    """
    if table.times is None:
        raise SeriesError(f"{table.where}: has no column with a time in every row, to put its rows on a grid")
    numbers = table.in_trials(np.arange(len(table.values)))
    cells = [_cells(table, cast(NDArray[np.int64], rows), dt) for rows in numbers]
    total = sum(int(cell[-1]) + 1 for cell in cells) * len(table.names)
    if total > MOST_VALUES:
        raise SeriesError(
            f"{table.where}: dt = {dt:g} makes {total} values of {table.values.size}: give a larger dt"
        )
    trials = [_filled(table.values[rows], cell) for rows, cell in zip(numbers, cells, strict=True)]
    if min(map(len, trials)) < 2:
        raise SeriesError(f"{table.where}: dt = {dt:g} leaves a single row of a trial: give a smaller dt")
    labels = table.labels
    if labels is not None:
        labels = Labels(np.repeat(np.arange(len(trials)), [*map(len, trials)]), labels.names, labels.column)
    times = np.concatenate([dt * np.arange(len(trial)) for trial in trials])
    return replace(table, values=np.concatenate(trials), lines=None, labels=labels, times=times)


def _cells(table: Table, rows: NDArray[np.int64], dt: float) -> NDArray[np.int64]:
    """Return the grid point of each row of a trial; times that fall were refused (`refuse_falling`)."""
    assert table.times is not None
    times = table.times[rows]
    bad = ~np.isfinite(times)
    if bad.any():
        place = f"column {table.clock}, {table.row(rows[bad][0])}"
        raise SeriesError(f"{table.where}: {place}: the time is missing")
    steps = (times - times[0]) / dt
    if steps[-1] >= MOST_VALUES:
        raise SeriesError(f"{table.where}: dt = {dt:g} makes {steps[-1]:g} rows: give a larger dt")
    return np.rint(steps).astype(np.int64)


def _filled(values: Floats, cells: NDArray[np.int64]) -> Floats:
    seen = ~np.isnan(values)
    sums, counts = (np.zeros((int(cells[-1]) + 1, values.shape[1])) for _ in range(2))
    np.add.at(sums, cells, np.where(seen, values, 0.0))
    np.add.at(counts, cells, seen)
    return np.where(counts > 0, sums / np.maximum(counts, 1.0), np.nan)
