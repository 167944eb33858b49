"""The Rössler system: stretching and folding with a single nonlinear term (Rössler, 1976)."""

from __future__ import annotations

from numpy.typing import ArrayLike

from palrnn.data.field import field_jacobian, vector_field
from palrnn.data.systems.base import System, numbers, system
from palrnn.engine.checks import Floats


@vector_field
def field(z: Floats, p: Floats, out: Floats) -> None:
    """dx/dt = -y - z, dy/dt = x + a y, dz/dt = b + z (x - c)."""
    a, b, c = p[0], p[1], p[2]
    out[0] = -z[1] - z[2]
    out[1] = z[0] + a * z[1]
    out[2] = b + z[2] * (z[0] - c)


@field_jacobian
def jacobian(z: Floats, p: Floats, out: Floats) -> None:
    """The derivative of the field, row by row."""
    a, c = p[0], p[2]
    out[:] = 0.0
    out[0, 1], out[0, 2] = -1.0, -1.0
    out[1, 0], out[1, 1] = 1.0, a
    out[2, 0], out[2, 2] = z[2], z[0] - c


@system("rossler", dt=0.05, exponents=(0.0714, 0.0, -5.3943))
def rossler_system(a: float = 0.2, b: float = 0.2, c: float = 5.7) -> System:
    """Return the Rössler system."""
    return System(field, jacobian, numbers(a=a, b=b, c=c), (-4.0, -4.0, 0.1))


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
    flow = rossler_system(a, b, c)
    return flow.simulate(steps, dt=dt, process_std=process_std, scale=scale, discard=discard, seed=seed)
