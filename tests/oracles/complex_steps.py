"""Derivatives by complex steps (Squire and Trapp, 1998): f(a + ih) has the imaginary part h f'(a).

Nothing is subtracted, so a step of 1e-30 gives all digits; the function has to be analytic where it is asked,
which a piecewise-linear map is inside its regions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_STEP = 1e-30


def relu(z: Any) -> Any:
    """The rectifier, of real or complex numbers."""
    return np.where(z.real > 0, z, 0.0)


def jacobian(f: Callable[[np.ndarray], np.ndarray], vector: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return f(vector) and its derivatives, whose last axis is that of ``vector (p,)``."""
    steps = _STEP * 1j * np.eye(len(vector))
    return np.real(f(vector + 0j)), np.stack([np.imag(f(vector + step)) / _STEP for step in steps], axis=-1)


def gradients(
    f: Callable[[tuple[np.ndarray, ...]], complex], parts: tuple[np.ndarray, ...]
) -> tuple[float, list[np.ndarray]]:
    """Return f(parts) and its gradient in each of some arrays."""
    ends = np.cumsum([part.size for part in parts])

    def of_vector(vector: np.ndarray) -> np.ndarray:
        pieces = np.split(vector, ends[:-1])
        return np.asarray(
            f(tuple(piece.reshape(part.shape) for piece, part in zip(pieces, parts, strict=True)))
        )

    value, slope = jacobian(of_vector, np.concatenate([np.ravel(part) for part in parts]))
    found = [piece.reshape(part.shape) for piece, part in zip(np.split(slope, ends[:-1]), parts, strict=True)]
    return float(value), found
