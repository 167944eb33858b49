"""Chaotic systems to learn from, integrated by RK4, deterministic or with additive process noise.

With ``process_std > 0`` one step is the paper's

    z_{t+1} = RK4_dt(z_t) + process_std * sqrt(dt) * diag(scale) * eps_t,   eps_t ~ N(0, I),

where ``scale`` is the per-coordinate standard deviation of the deterministic system, so that ``process_std``
is in standardised units although the perturbation acts on raw coordinates.
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
    """A simulated system.

    Its ``number`` among the kernels, its ``parameters``, a ``typical`` state near the attractor, and its
    ``customary_dt``, a step at which 100,000 steps see the whole attractor.
    """

    name: str
    number: int
    parameters: tuple[float, ...]
    typical: tuple[float, ...]
    customary_dt: float = 0.01

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
        spread = None if scale is None else as_shape(scale, "scale", (dim,))
        if spread is not None and (spread < 0).any():
            raise ValueError(f"scale must be >= 0, got {spread.min():g}")
        rng = generator(seed)
        start = np.array(self.typical) + rng.standard_normal(dim)
        diffusion = np.empty((0, dim))
        if process_std > 0:
            spread = self.spread(dt) if spread is None else spread
            diffusion = process_std * np.sqrt(dt) * spread * rng.standard_normal((total, dim))
        states = np.empty((total, dim))
        kernels.simulate(self.number, start, np.array(self.parameters), dt, diffusion, total, states)
        if not np.isfinite(states[-1]).all():
            raise ValueError(
                f"{self.name} left its attractor with parameters {self.parameters}: "
                f"dt={dt:g} or process_std={process_std:g} is too large, or it has none"
            )
        return states[discard:]

    def spread(self, dt: float) -> Floats:
        """Return the per-coordinate standard deviation of the deterministic reference: 100,000 steps.

        They are steps of ``dt``, but never shorter than customary, so that they see the whole attractor.
        """
        return _spread(self, max(as_float(dt, "dt", above=0.0), self.customary_dt))


@lru_cache(maxsize=32)
def _spread(system: System, dt: float) -> Floats:
    spread: Floats = system.simulate(_REFERENCE_STEPS, dt=dt, discard=1000, seed=0).std(axis=0)
    spread.flags.writeable = False
    return spread


def lorenz63_system(sigma: float = 10.0, rho: float = 28.0, beta: float = 8.0 / 3.0) -> System:
    """Return the Lorenz-63 system."""
    parameters = _numbers(sigma=sigma, rho=rho, beta=beta)
    # away from the fixed points, which trajectories that start near them leave only after thousands of steps
    return System("lorenz63", kernels.LORENZ63, parameters, (-3.0, -5.0, 15.0))


def rossler_system(a: float = 0.2, b: float = 0.2, c: float = 5.7) -> System:
    """Return the Rössler system."""
    return System("rossler", kernels.ROSSLER, _numbers(a=a, b=b, c=c), (-4.0, -4.0, 0.1), 0.05)


def lorenz96_system(dim: int = 40, forcing: float = 8.0) -> System:
    """Return the Lorenz-96 system on a ring of ``dim >= 4`` sites."""
    dim = as_int(dim, "dim", least=4)
    parameters = _numbers(forcing=forcing)
    return System("lorenz96", kernels.LORENZ96, parameters, parameters * dim)


def _numbers(**parameters: float) -> tuple[float, ...]:
    return tuple(as_float(value, name) for name, value in parameters.items())


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
    """Return ``(steps, 3)`` of the Rössler system in raw coordinates (Rössler, 1976).

    Its basin is narrow where the third coordinate is near 0: additive noise of ``process_std`` above about
    0.02 throws it out within 20,000 steps, which is an error here.
    """
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
