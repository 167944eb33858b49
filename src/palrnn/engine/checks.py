"""Argument checks whose messages name the argument, what arrived and what was expected."""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palrnn.engine.text import printable, quoted

Floats = NDArray[np.float64]

#: Numbers beyond this have squares that overflow; so have the inverses of numbers below its inverse.
HUGE = 1e150
_VOWELS = ("A", "E", "I", "O", "SAEM")
#: No size is larger: so many steps or particles fit into no memory, or take days.
MOST = 10**9


def as_floats(value: ArrayLike, name: str, *, allow_nan: bool = False) -> Floats:
    """Return a float64 copy of ``value``, finite (or NaN too, if ``allow_nan``).

    Integers and booleans count as numbers, nullable ones of pandas, too; complex numbers, text and objects do
    not. A masked entry is NaN, also where it sits in a list of masked rows, and so is a missing one.
    """
    try:
        array = np.asarray(_without_masks(value))
        if array.dtype.kind not in "fiub":
            raise TypeError
    except (TypeError, ValueError):
        kind = getattr(value, "dtype", type(value).__name__)
        raise ValueError(f"{name} must be an array of real numbers, got {kind}") from None
    with np.errstate(over="ignore"):  # a long double beyond float64 becomes infinite and is reported below
        array = array.astype(np.float64)
    bad = np.isinf(array) if allow_nan else ~np.isfinite(array)
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        raise ValueError(
            f"{name} must be finite, got {array[where]}" + (f" at index {where}" if where else "")
        )
    return array


def as_shape(value: ArrayLike, name: str, shape: tuple[int | None, ...]) -> Floats:
    """Return ``value`` as finite float64 of the given shape; ``None`` stands for any length."""
    array = as_floats(value, name)
    if array.ndim != len(shape) or any(w not in (None, g) for w, g in zip(shape, array.shape, strict=True)):
        lengths = ", ".join("any" if w is None else str(w) for w in shape)
        wanted = f"({lengths},)" if len(shape) == 1 else f"({lengths})"
        raise ValueError(f"{name} must have shape {wanted}, got {array.shape}")
    return array


def as_series(
    x: ArrayLike, name: str = "x", *, min_steps: int = 2, dim: int | None = None, allow_nan: bool = False
) -> Floats:
    """Return ``x`` as a contiguous (T, N) float64 series with ``T >= min_steps``; 1-D means N = 1."""
    array = as_floats(x, name, allow_nan=allow_nan)
    shape = array.shape
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[0] < min_steps or array.shape[1] < 1:
        raise ValueError(f"{name} must be (T, N) with T >= {min_steps}, got {shape}")
    if dim is not None and array.shape[1] != dim:
        raise ValueError(f"{name} must have {dim} columns, got shape {shape}")
    if (np.abs(array) > HUGE).any():
        raise ValueError(
            f"{name} must be within ±{HUGE:g}, got {np.nanmax(np.abs(array)):g}: choose other units"
        )
    return np.ascontiguousarray(array)


def as_trials(
    x: ArrayLike | Sequence[ArrayLike],
    name: str = "x",
    *,
    min_steps: int = 2,
    dim: int | None = None,
    allow_nan: bool = False,
) -> list[Floats]:
    """Return ``x`` as a list of series (T_k, N) with one N: the trials of a recording.

    ``x`` is one series, an array of trials (K, T, N), or a list or tuple of series.
    """
    x = _without_masks(x)
    stacked = isinstance(x, np.ndarray) and x.ndim == 3
    listed = isinstance(x, (list, tuple)) and len(x) > 0 and all(_axes(trial) == 2 for trial in x)
    if not stacked and not listed:
        return [as_series(x, name, min_steps=min_steps, dim=dim, allow_nan=allow_nan)]  # type: ignore[arg-type]
    trials: list[Any] = list(x)  # type: ignore[arg-type]
    if not trials:
        raise ValueError(f"{name} must hold at least one trial, got none")
    dim = np.shape(trials[0])[1] if dim is None else dim
    return [
        as_series(trial, f"{name}[{k}]", min_steps=min_steps, dim=dim, allow_nan=allow_nan)
        for k, trial in enumerate(trials)
    ]


def as_int(value: Any, name: str, *, least: int = 0, most: int | None = MOST) -> int:
    """Return ``value`` as an int within ``[least, most]``; ``most`` is None for numbers that are no sizes."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Integral):
        raise ValueError(f"{name} must be a whole number, got {quoted(value)}")
    number = int(value)
    if number < least or (most is not None and number > most):
        open_ended = most is None or (most == MOST and number < least)
        span = f">= {least}" if open_ended else f"from {least} to {most}"
        raise ValueError(f"{name} must be {span}, got {quoted(number)}")
    return number


def as_float(
    value: Any, name: str, *, least: float = -math.inf, most: float = math.inf, above: float | None = None
) -> float:
    """Return ``value`` as a finite float within ``[least, most]`` and strictly greater than ``above``.

    Its square must be finite, and not zero where ``above`` is 0: deviations are squared everywhere.
    """
    number = _real(value)
    if not math.isfinite(number):
        raise ValueError(f"{name} must be a finite number, got {quoted(value)}")
    if above is not None and not number > above:
        raise ValueError(f"{name} must be greater than {above:g}, got {number:g}")
    if abs(number) > HUGE or (above == 0.0 and number < 1.0 / HUGE):
        raise ValueError(f"{name} must be of a size whose square is a number, got {number:g}")
    if not least <= number <= most:
        span = f">= {least:g}" if most == math.inf else f"from {least:g} to {most:g}"
        raise ValueError(f"{name} must be {span}, got {number:g}")
    return number


def _real(value: Any) -> float:
    """Return a real number as a float, and NaN for anything else (also for an integer beyond all floats)."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan


def as_instance(value: Any, name: str, *kinds: type) -> Any:
    """Return ``value`` if it is an instance of one of ``kinds``."""
    if not isinstance(value, kinds):
        wanted = " or ".join(
            f"{'an' if kind.__name__.startswith(_VOWELS) else 'a'} {kind.__name__}" for kind in kinds
        )
        raise ValueError(f"{name} must be {wanted}, got {type(value).__name__}")
    return value


def as_path(value: str | os.PathLike[str], name: str = "path") -> Path:
    """Return ``value`` as a path."""
    try:
        return Path(value)
    except TypeError:
        raise ValueError(f"{name} must be the name of a file or folder, got {quoted(value)}") from None


def one_of(value: Any, name: str, choices: Iterable[str]) -> str:
    """Return ``value`` if it is one of the named choices."""
    choices = list(choices)
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, got {quoted(value)}")
    return str(value)


def frozen(array: Floats) -> Floats:
    """Return a contiguous read-only copy."""
    copy = np.array(array, dtype=np.float64, order="C")
    copy.flags.writeable = False
    return copy


def first_line(error: BaseException) -> str:
    """Return the first line of what ``error`` says, printable, or its kind if it says nothing."""
    return printable(next(iter(str(error).strip().splitlines()), type(error).__name__))


def _without_masks(value: Any, depth: int = 4) -> Any:
    """Return ``value`` with NaN for masked entries and for missing ones of pandas, anything else as it is.

    No array has trials, rows and cells in more than ``depth`` lists.
    """
    if isinstance(value, np.ma.MaskedArray):
        return np.ma.filled(value.astype(np.float64), np.nan) if value.dtype.kind in "fiub" else value
    if isinstance(value, (list, tuple)) and depth:
        parts = [_without_masks(part, depth - 1) for part in value]
        same = all(new is old for new, old in zip(parts, value, strict=True))
        return value if same else parts
    if type(value).__module__.partition(".")[0] == "pandas" and hasattr(value, "to_numpy"):
        return _pandas_numbers(value)
    return value


def _pandas_numbers(value: Any) -> Any:
    """Return a frame, series or column of real numbers as float64; text and times as they are."""
    from pandas.api.types import is_complex_dtype, is_numeric_dtype

    if getattr(value, "ndim", 1) == 2:
        columns = [_pandas_numbers(value.iloc[:, i]) for i in range(value.shape[1])]
        plain = columns and all(isinstance(column, np.ndarray) for column in columns)
        return np.column_stack(columns) if plain else value
    if is_numeric_dtype(value.dtype) and not is_complex_dtype(value.dtype):
        return value.to_numpy(dtype=np.float64, na_value=np.nan)
    return value


def _axes(value: Any) -> int:
    """The number of axes that ``value`` has as an array; 0 where its parts are of different lengths."""
    try:
        return np.ndim(value)
    except ValueError:
        return 0
