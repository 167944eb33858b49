"""Lorenz-63: convection in three modes (Lorenz, 1963)."""

from __future__ import annotations

from numpy.typing import ArrayLike

from palrnn.data.field import field_jacobian, vector_field
from palrnn.data.systems.base import System, numbers, system
from palrnn.engine.checks import Floats


@vector_field
def field(z: Floats, p: Floats, out: Floats) -> None:
    """dx/dt = sigma (y - x), dy/dt = x (rho - z) - y, dz/dt = x y - beta z."""
    sigma, rho, beta = p[0], p[1], p[2]
    out[0] = sigma * (z[1] - z[0])
    out[1] = z[0] * (rho - z[2]) - z[1]
    out[2] = z[0] * z[1] - beta * z[2]


@field_jacobian
def jacobian(z: Floats, p: Floats, out: Floats) -> None:
    """The derivative of the field, row by row."""
    sigma, rho, beta = p[0], p[1], p[2]
    out[:] = 0.0
    out[0, 0], out[0, 1] = -sigma, sigma
    out[1, 0], out[1, 1], out[1, 2] = rho - z[2], -1.0, -z[0]
    out[2, 0], out[2, 1], out[2, 2] = z[1], z[0], -beta


@system("lorenz63", dt=0.01, exponents=(0.9056, 0.0, -14.5723))
def lorenz63_system(sigma: float = 10.0, rho: float = 28.0, beta: float = 8.0 / 3.0) -> System:
    """Return the Lorenz-63 system."""
    # away from the fixed points, which trajectories that start near them leave only after thousands of steps
    return System(field, jacobian, numbers(sigma=sigma, rho=rho, beta=beta), (-3.0, -5.0, 15.0))


def lorenz63(
    steps: int,
    *,
    dt: float = 0.01,
    process_std: float = 0.0,
    scale: ArrayLike | None = None,
    discard: int = 1000,
    seed: int = 0,
    sigma: float = 10.0,
    rho: float = 28.0,
    beta: float = 8.0 / 3.0,
) -> Floats:
    """Return ``(steps, 3)`` of the Lorenz-63 system in raw coordinates (Lorenz, 1963)."""
    flow = lorenz63_system(sigma, rho, beta)
    return flow.simulate(steps, dt=dt, process_std=process_std, scale=scale, discard=discard, seed=seed)
