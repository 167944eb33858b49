"""Lorenz-63: convection in three modes (Lorenz, 1963)."""

from __future__ import annotations

from numpy.typing import ArrayLike

from palrnn.data import kernels
from palrnn.data.systems.base import System, numbers, system
from palrnn.engine.checks import Floats


@system("lorenz63", dt=0.01, lyapunov=0.9056)
def lorenz63_system(sigma: float = 10.0, rho: float = 28.0, beta: float = 8.0 / 3.0) -> System:
    """Return the Lorenz-63 system."""
    # away from the fixed points, which trajectories that start near them leave only after thousands of steps
    return System(kernels.LORENZ63, numbers(sigma=sigma, rho=rho, beta=beta), (-3.0, -5.0, 15.0))


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
