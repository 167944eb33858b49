"""Runge-Kutta steps of a vector field, which is an argument (`palrnn.data.field`)."""

from __future__ import annotations

from palrnn.engine.kernel import kernel
from palrnn.engine.products import copy


@kernel
def rk4_step(field, z, p, dt, work):
    """Advance ``z (D,)`` in place by one classical Runge-Kutta step; ``work (5, D)`` is scratch."""
    k1, k2, k3, k4, mid = work[0], work[1], work[2], work[3], work[4]
    dim = z.shape[0]
    field(z, p, k1)
    for i in range(dim):
        mid[i] = z[i] + 0.5 * dt * k1[i]
    field(mid, p, k2)
    for i in range(dim):
        mid[i] = z[i] + 0.5 * dt * k2[i]
    field(mid, p, k3)
    for i in range(dim):
        mid[i] = z[i] + dt * k3[i]
    field(mid, p, k4)
    for i in range(dim):
        z[i] += dt / 6.0 * (k1[i] + 2.0 * k2[i] + 2.0 * k3[i] + k4[i])


@kernel
def simulate(field, z, p, dt, diffusion, steps, work, out):
    """Fill ``out (steps, D)`` with the states after each step from ``z (D,)``, which is written over.

    z_{t+1} = RK4_dt(z_t) + diffusion_t, with ``diffusion (steps, D)`` already scaled, or (0, D) for none.
    ``work (5, D)`` is scratch.
    """
    noisy = diffusion.shape[0] > 0
    for t in range(steps):
        rk4_step(field, z, p, dt, work)
        if noisy:
            for i in range(z.shape[0]):
                z[i] += diffusion[t, i]
        copy(z, out[t])
