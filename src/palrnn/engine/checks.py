"""Argument checks whose messages name the argument, what arrived and what was expected."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def as_floats(value: ArrayLike, name: str, *, allow_nan: bool = False) -> Floats:
    """Return ``value`` as a float64 array of finite numbers (NaN too, if ``allow_nan``)."""
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "fiub":
            raise TypeError
        array = array.astype(np.float64)
    except (TypeError, ValueError):
        kind = getattr(value, "dtype", type(value).__name__)
        raise ValueError(f"{name} must be an array of real numbers, got {kind}") from None
    bad = np.isinf(array) if allow_nan else ~np.isfinite(array)
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        raise ValueError(f"{name} must be finite, got {array[where]} at index {where}")
    return array


def as_shape(value: ArrayLike, name: str, shape: tuple[int | None, ...]) -> Floats:
    """Return ``value`` as finite float64 of the given shape; ``None`` stands for any length."""
    array = as_floats(value, name)
    fits = array.ndim == len(shape) and all(w in (None, g) for w, g in zip(shape, array.shape, strict=True))
    if not fits:
        wanted = "(" + ", ".join("any" if w is None else str(w) for w in shape) + ("," if len(shape) == 1 else "") + ")"
        raise ValueError(f"{name} must have shape {wanted}, got {array.shape}")
    return array


def as_series(x: ArrayLike, name: str = "x", *, min_steps: int = 2, dim: int | None = None, allow_nan: bool = False) -> Floats:
    """Return ``x`` as a contiguous (T, N) float64 series with ``T >= min_steps``; 1-D means N = 1."""
    array = as_floats(x, name, allow_nan=allow_nan)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[0] < min_steps or array.shape[1] < 1:
        raise ValueError(f"{name} must be (T, N) with T >= {min_steps}, got {np.shape(x)}")
    if dim is not None and array.shape[1] != dim:
        raise ValueError(f"{name} must have {dim} columns, got shape {array.shape}")
    return np.ascontiguousarray(array)


def as_int(value: Any, name: str, *, least: int = 0, most: int | None = None) -> int:
    """Return ``value`` as an int within ``[least, most]``."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Integral):
        raise ValueError(f"{name} must be a whole number, got {value!r}")
    if value < least or (most is not None and value > most):
        span = f">= {least}" if most is None else f"from {least} to {most}"
        raise ValueError(f"{name} must be {span}, got {value}")
    return int(value)


def as_float(value: Any, name: str, *, least: float = -math.inf, most: float = math.inf, above: float | None = None) -> float:
    """Return ``value`` as a finite float within ``[least, most]`` and strictly greater than ``above``."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real) or not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number, got {value!r}")
    if above is not None and not value > above:
        raise ValueError(f"{name} must be greater than {above:g}, got {value:g}")
    if not least <= value <= most:
        span = f">= {least:g}" if most == math.inf else f"from {least:g} to {most:g}"
        raise ValueError(f"{name} must be {span}, got {value:g}")
    return float(value)


def one_of(value: Any, name: str, choices: Iterable[str]) -> str:
    """Return ``value`` if it is one of the named choices."""
    choices = list(choices)
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, got {value!r}")
    return str(value)


def frozen(array: Floats) -> Floats:
    """Return a contiguous read-only copy."""
    copy = np.array(array, dtype=np.float64, order="C")
    copy.flags.writeable = False
    return copy
