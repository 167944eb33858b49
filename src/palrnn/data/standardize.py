"""Standardising: zero mean and unit variance per coordinate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from palrnn.engine.checks import Floats, as_floats, as_shape, as_trials, frozen


def mean_and_deviation(series: Floats) -> tuple[Floats, Floats]:
    """Return mean and standard deviation of each column of ``series (T, N)``, NaN left out.

    Squares of numbers below 1e-150 or above 1e150 are no longer numbers. Such columns are multiplied by a
    power of two first, which is exact.
    """
    sizes = np.nanmax(np.abs(series), axis=0)
    exponents = np.where((sizes > 1e-100) & (sizes < 1e100), 0, np.frexp(sizes)[1])
    if exponents.any():
        series = np.ldexp(series, -exponents)
    mean, std = np.nanmean(series, axis=0), np.nanstd(series, axis=0)
    return np.ldexp(mean, exponents), np.ldexp(std, exponents)


@dataclass(frozen=True, eq=False)
class Standardizer:
    """The affine map ``x -> (x - mean) / std``, with ``mean`` and ``std`` of shape (N,)."""

    mean: Floats
    std: Floats

    def __post_init__(self) -> None:
        mean = as_shape(self.mean, "mean", (None,))
        std = as_shape(self.std, "std", mean.shape)
        if (std <= 0).any():
            raise ValueError(f"std must be positive, got {std.min():g} in column {int(std.argmin())}")
        object.__setattr__(self, "mean", frozen(mean))
        object.__setattr__(self, "std", frozen(std))

    @classmethod
    def fit(cls, x: ArrayLike | Sequence[ArrayLike]) -> Standardizer:
        """Return the standardizer of ``x (T, N)``; fit it on the training part only.

        Several trials, as ``(K, T, N)`` or a list of 2-D arrays, are pooled. NaN (not observed) is left out.
        """
        series = np.concatenate(as_trials(x, min_steps=1, allow_nan=True))
        empty = np.isnan(series).all(axis=0)
        if empty.any():
            raise ValueError(f"x must hold values in every column, column {int(empty.argmax())} is all NaN")
        mean, std = mean_and_deviation(series)
        # a constant column has a deviation of rounding size, not always zero
        flat = std <= 1e-12 * np.nanmax(np.abs(series), axis=0)
        if flat.any():
            raise ValueError(f"x must vary in every column, column {int(flat.argmax())} is constant")
        return cls(mean, std)

    @property
    def dim(self) -> int:
        """The number of coordinates N."""
        return int(self.mean.shape[0])

    def transform(self, x: ArrayLike) -> Floats:
        """Return raw ``x (..., N)`` in standardised coordinates; NaN (not observed) stays NaN."""
        return (self._checked(x) - self.mean) / self.std

    def inverse(self, x: ArrayLike) -> Floats:
        """Return standardised ``x (..., N)`` in raw coordinates."""
        return self._checked(x) * self.std + self.mean

    def _checked(self, x: ArrayLike) -> Floats:
        array = as_floats(x, "x", allow_nan=True)
        if array.shape[-1:] != (self.dim,):
            raise ValueError(f"x must have {self.dim} columns, got shape {array.shape}")
        return array

    def __reduce__(self) -> tuple[Any, ...]:
        # through the constructor, so that copies are read-only too
        return Standardizer, (self.mean, self.std)

    def __repr__(self) -> str:
        return f"Standardizer(mean={np.round(self.mean, 4).tolist()}, std={np.round(self.std, 4).tolist()})"
