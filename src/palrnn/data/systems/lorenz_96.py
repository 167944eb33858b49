"""Lorenz-96: a ring of sites that stands for a latitude circle (Lorenz, 1996)."""

from __future__ import annotations

from numpy.typing import ArrayLike

from palrnn.data import kernels
from palrnn.data.systems.base import System, numbers, system
from palrnn.engine.checks import Floats, as_int


@system("lorenz96", dt=0.01)
def lorenz96_system(dim: int = 40, forcing: float = 8.0) -> System:
    """Return the Lorenz-96 system on a ring of ``dim >= 4`` sites."""
    dim = as_int(dim, "dim", least=4)
    parameters = numbers(forcing=forcing)
    return System(kernels.LORENZ96, parameters, parameters * dim)


def lorenz96(
    steps: int,
    *,
    dt: float = 0.01,
    process_std: float = 0.0,
    scale: ArrayLike | None = None,
    discard: int = 1000,
    seed: int = 0,
    dim: int = 40,
    forcing: float = 8.0,
) -> Floats:
    """Return ``(steps, dim)`` of the Lorenz-96 system in raw coordinates (Lorenz, 1996)."""
    flow = lorenz96_system(dim, forcing)
    return flow.simulate(steps, dt=dt, process_std=process_std, scale=scale, discard=discard, seed=seed)
