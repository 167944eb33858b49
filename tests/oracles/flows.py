"""The simulated systems once more, in plain NumPy, from their equations in the literature."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Field = Callable[[np.ndarray], np.ndarray]


def lorenz63_field(z: np.ndarray) -> np.ndarray:
    """Lorenz (1963) with sigma = 10, rho = 28, beta = 8/3, on the last axis."""
    x, y, w = z[..., 0], z[..., 1], z[..., 2]
    return np.stack([10.0 * (y - x), x * (28.0 - w) - y, x * y - 8.0 / 3.0 * w], axis=-1)


def rossler_field(z: np.ndarray) -> np.ndarray:
    """Rössler (1976) with a = b = 0.2, c = 5.7."""
    x, y, w = z[..., 0], z[..., 1], z[..., 2]
    return np.stack([-y - w, x + 0.2 * y, 0.2 + w * (x - 5.7)], axis=-1)


def lorenz96_field(z: np.ndarray) -> np.ndarray:
    """Lorenz (1996) with F = 8: z_i' = (z_{i+1} - z_{i-2}) z_{i-1} - z_i + F on a ring."""
    ahead, behind, two_behind = (np.roll(z, shift, axis=-1) for shift in (-1, 1, 2))
    return (ahead - two_behind) * behind - z + 8.0


def rk4(field: Field, z: np.ndarray, dt: float) -> np.ndarray:
    """One classical Runge-Kutta step of every row."""
    k1 = field(z)
    k2 = field(z + dt / 2 * k1)
    k3 = field(z + dt / 2 * k2)
    k4 = field(z + dt * k3)
    return z + dt * (k1 / 6 + k2 / 3 + k3 / 3 + k4 / 6)
