"""Chaotic systems to learn from, integrated by RK4, deterministic or with additive process noise.

With ``process_std > 0`` one step is the paper's

    z_{t+1} = RK4_dt(z_t) + process_std * sqrt(dt) * diag(scale) * eps_t,   eps_t ~ N(0, I),

where ``scale`` is the per-coordinate standard deviation of the deterministic system, so that ``process_std`` is in
standardised units although the perturbation acts on raw coordinates.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from palrnn.data import kernels
from palrnn.engine.checks import Floats, as_float, as_int, as_shape
from palrnn.engine.seeds import generator

_REFERENCE_STEPS = 100_000


@dataclass(frozen=True)
class System:
    """A simulated system: its number among the kernels, its parameters and a typical state on the attractor."""

    name: str
    number: int
    parameters: tuple[float, ...]
    typical: tuple[float, ...]

    def simulate(
        self,
        steps: int,
        *,
        dt: float,
        process_std: float = 0.0,
        scale: ArrayLike | None = None,
        discard: int = 1000,
        seed: int = 0,
    ) -> Floats:
        """Return ``(steps, D)`` raw states after a transient of ``discard`` steps from a random start."""
        steps, discard = as_int(steps, "steps", least=1), as_int(discard, "discard")
        dt = as_float(dt, "dt", above=0.0)
        process_std = as_float(process_std, "process_std", least=0.0)
        dim, total = len(self.typical), steps + discard
        rng = generator(seed)
        start = np.array(self.typical) + rng.standard_normal(dim)
        diffusion = np.empty((0, dim))
        if process_std > 0:
            spread = self.spread(dt) if scale is None else as_shape(scale, "scale", (dim,))
            diffusion = process_std * np.sqrt(dt) * spread * rng.standard_normal((total, dim))
        states = np.empty((total, dim))
        kernels.simulate(self.number, start, np.array(self.parameters), dt, diffusion, total, states)
        if not np.isfinite(states[-1]).all():
            raise ValueError(f"{self.name} left its attractor: dt={dt:g} or process_std={process_std:g} is too large")
        return states[discard:]

    def spread(self, dt: float) -> Floats:
        """Return the per-coordinate standard deviation of the long deterministic reference trajectory."""
        return _spread(self, dt)


@lru_cache(maxsize=32)
def _spread(system: System, dt: float) -> Floats:
    spread: Floats = system.simulate(_REFERENCE_STEPS, dt=dt, discard=1000, seed=0).std(axis=0)
    spread.flags.writeable = False
    return spread


def lorenz63_system(sigma: float = 10.0, rho: float = 28.0, beta: float = 8.0 / 3.0) -> System:
    """Return the Lorenz-63 system."""
    return System("lorenz63", kernels.LORENZ63, (sigma, rho, beta), (-8.0, -8.0, 27.0))


def rossler_system(a: float = 0.2, b: float = 0.2, c: float = 5.7) -> System:
    """Return the Rössler system."""
    return System("rossler", kernels.ROSSLER, (a, b, c), (-4.0, -4.0, 0.1))


def lorenz96_system(dim: int = 40, forcing: float = 8.0) -> System:
    """Return the Lorenz-96 system on a ring of ``dim >= 4`` sites."""
    dim = as_int(dim, "dim", least=4)
    return System("lorenz96", kernels.LORENZ96, (float(forcing),), (float(forcing),) * dim)


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
    system = lorenz63_system(sigma, rho, beta)
    return system.simulate(steps, dt=dt, process_std=process_std, scale=scale, discard=discard, seed=seed)


def rossler(
    steps: int,
    *,
    dt: float = 0.05,
    process_std: float = 0.0,
    scale: ArrayLike | None = None,
    discard: int = 1000,
    seed: int = 0,
    a: float = 0.2,
    b: float = 0.2,
    c: float = 5.7,
) -> Floats:
    """Return ``(steps, 3)`` of the Rössler system in raw coordinates (Rössler, 1976)."""
    system = rossler_system(a, b, c)
    return system.simulate(steps, dt=dt, process_std=process_std, scale=scale, discard=discard, seed=seed)


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
    system = lorenz96_system(dim, forcing)
    return system.simulate(steps, dt=dt, process_std=process_std, scale=scale, discard=discard, seed=seed)
