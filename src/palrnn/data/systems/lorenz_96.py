"""Lorenz-96: a ring of sites that stands for a latitude circle (Lorenz, 1996)."""

from __future__ import annotations

from numpy.typing import ArrayLike

from palrnn.data.field import field_jacobian, vector_field
from palrnn.data.systems.base import System, numbers, system
from palrnn.engine.checks import Floats, as_int


@vector_field
def field(z: Floats, p: Floats, out: Floats) -> None:
    """dz_i/dt = (z_{i+1} - z_{i-2}) z_{i-1} - z_i + forcing, on a ring."""
    forcing, dim = p[0], z.shape[0]
    for i in range(dim):
        out[i] = (z[(i + 1) % dim] - z[i - 2]) * z[i - 1] - z[i] + forcing


@field_jacobian
def jacobian(z: Floats, p: Floats, out: Floats) -> None:
    """The derivative of the field; on a small ring neighbours coincide, so terms are added."""
    dim = z.shape[0]
    out[:] = 0.0
    for i in range(dim):
        ahead = (i + 1) % dim
        out[i, ahead] += z[i - 1]
        out[i, i - 2] -= z[i - 1]
        out[i, i - 1] += z[ahead] - z[i - 2]
        out[i, i] -= 1.0


@system("lorenz96", dt=0.01)
def lorenz96_system(dim: int = 40, forcing: float = 8.0) -> System:
    """Return the Lorenz-96 system on a ring of ``dim >= 4`` sites."""
    dim = as_int(dim, "dim", least=4)
    parameters = numbers(forcing=forcing)
    return System(field, jacobian, parameters, parameters * dim)


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
