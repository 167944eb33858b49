"""Arrays of a file as a table: which of them, and trials where an array or several of them hold trials."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from palrnn.data.table import Labels, SeriesError, Table
from palrnn.engine.checks import Floats
from palrnn.engine.text import printable, quoted

_LISTED = 12


def chosen_array(file: Path, shapes: Mapping[str, tuple[int, ...]], asked: str | None) -> str:
    """Return the name of the array to read: the one asked for, the only one, or the one called ``x``."""
    if asked is not None:
        if asked not in shapes:
            raise SeriesError(f"{file}: no array {quoted(asked)}, there are {_listed(shapes)}")
        return asked
    if len(shapes) == 1:
        return next(iter(shapes))
    if "x" in shapes:
        return "x"
    example = printable(f"{file.name}::{next(iter(shapes))}", 80)
    raise SeriesError(
        f"{file}: holds {len(shapes)} arrays, {_listed(shapes)}: say which one, as in {example}"
    )


def _listed(shapes: Mapping[str, tuple[int, ...]]) -> str:
    if not shapes:
        return "none"
    names = [f"{printable(name, 40)} {shape}" for name, shape in list(shapes.items())[:_LISTED]]
    return ", ".join(names) + (f" and {len(shapes) - _LISTED} more" if len(shapes) > _LISTED else "")


def trials_of(what: str, array: Floats) -> tuple[list[Floats], list[str]]:
    """Return the trials in an array (T,), (T, N) or (K, T, N), each (T, N), and their names."""
    if array.ndim not in (1, 2, 3):
        raise SeriesError(f"{what}: must be (T, N), (T,) or trials (K, T, N), got {array.shape}")
    stack = array[None, :, None] if array.ndim == 1 else array[None] if array.ndim == 2 else array
    return list(stack), [str(number + 1) for number in range(len(stack))]


def array_table(where: str, trials: list[Floats], names: list[str]) -> Table:
    """Return trials, each (T, N), as a table whose columns have numbers for names."""
    widths = dict(zip(names, (trial.shape[1] for trial in trials), strict=True))
    if len(set(widths.values())) > 1:
        raise SeriesError(f"{where}: trials must have the same number of columns, have {widths}")
    labels = None
    if len(trials) > 1:
        labels = Labels(np.repeat(np.arange(len(trials)), [len(trial) for trial in trials]), tuple(names))
    values = trials[0] if len(trials) == 1 else np.concatenate(trials)
    columns = tuple(str(i + 1) for i in range(values.shape[1]))
    return Table(where, columns, np.ascontiguousarray(values), labels=labels, from_array=True)
