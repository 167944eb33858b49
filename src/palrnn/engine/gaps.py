"""Gaps in series: NaN stands for "not observed", in any entry of any row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from palrnn.engine.checks import Floats


def whole_rows(x: Floats) -> NDArray[np.bool_]:
    """Return which rows of ``x (..., T, N)`` have no gap, ``(..., T)``."""
    return np.asarray(~np.isnan(x).any(axis=-1))


def first_whole_row(x: Floats, name: str) -> int:
    """Return the number of the first row of ``x (T, N)`` without a gap; refuse a series that has none."""
    whole = whole_rows(x)
    if not whole.any():
        raise ValueError(f"{name} must have a row without gaps to start from, every row has a gap (NaN)")
    return int(whole.argmax())


def refuse_gap_at_start(x: Floats, name: str) -> None:
    """Refuse sequences ``(..., T, N)`` whose first row has a gap, or of which nothing is seen after it."""
    missing = np.argwhere(np.isnan(x[..., 0, :]))
    if len(missing):
        *leading, column = missing[0].tolist()
        place = "".join(f"[{i}]" for i in (*leading, 0))
        raise ValueError(f"{name}{place} must have no gaps, it starts the rollout; column {column} is NaN")
    if np.isnan(x[..., 1:, :]).all():
        raise ValueError(f"{name} must hold a value after its first row, all are NaN")


def refuse_empty_columns(trials: Sequence[Floats], name: str) -> None:
    """Refuse trials ``(T_k, N)`` of which a column was never seen."""
    never = np.logical_and.reduce([np.isnan(trial).all(axis=0) for trial in trials])
    if never.any():
        raise ValueError(f"{name} must hold values in every column, column {int(never.argmax())} is all NaN")


def possible_starts(x: Floats, rows: int) -> NDArray[np.int64]:
    """Return where stretches of ``rows`` rows of ``x (T, N)`` can start: at a row without a gap.

    Something must be seen in the rows after it, too.
    """
    starts = np.arange(len(x) - rows + 1)
    gaps = np.isnan(x)
    if not gaps.any():
        return starts
    seen = np.concatenate([[0], np.cumsum((~gaps).sum(axis=1))])
    after = seen[rows:] - seen[1 : len(starts) + 1]
    return starts[whole_rows(x)[: len(starts)] & (after > 0)]


def spaced_starts(x: Floats, rows: int, apart: int) -> list[int]:
    """Return the `possible_starts` from the first on, each at least ``apart`` rows after the one before."""
    possible, starts = possible_starts(x, rows), list[int]()
    at = 0
    while at < len(possible):
        starts.append(int(possible[at]))
        at = int(np.searchsorted(possible, starts[-1] + apart))
    return starts
