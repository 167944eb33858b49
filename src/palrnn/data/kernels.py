"""Vector fields of the simulated systems, their Jacobians, and Runge-Kutta steps.

The systems are told apart by a number instead of a function argument, because Numba caches compiled code on
disk only for functions whose arguments are plain data.
"""

from __future__ import annotations

import numpy as np

from palrnn.engine.kernel import kernel

LORENZ63, ROSSLER, LORENZ96 = 0, 1, 2


@kernel
def field(system, z, p, out):
    """dz/dt of the numbered system at ``z (D,)`` with parameters ``p``, into ``out (D,)``."""
    if system == LORENZ63:
        sigma, rho, beta = p[0], p[1], p[2]
        out[0] = sigma * (z[1] - z[0])
        out[1] = z[0] * (rho - z[2]) - z[1]
        out[2] = z[0] * z[1] - beta * z[2]
    elif system == ROSSLER:
        a, b, c = p[0], p[1], p[2]
        out[0] = -z[1] - z[2]
        out[1] = z[0] + a * z[1]
        out[2] = b + z[2] * (z[0] - c)
    else:
        forcing, dim = p[0], z.shape[0]
        for i in range(dim):
            out[i] = (z[(i + 1) % dim] - z[i - 2]) * z[i - 1] - z[i] + forcing


@kernel
def field_jacobian(system, z, p, out):
    """d(dz/dt)/dz of the numbered system at ``z (D,)``, into ``out (D, D)``."""
    out[:] = 0.0
    if system == LORENZ63:
        sigma, rho, beta = p[0], p[1], p[2]
        out[0, 0], out[0, 1] = -sigma, sigma
        out[1, 0], out[1, 1], out[1, 2] = rho - z[2], -1.0, -z[0]
        out[2, 0], out[2, 1], out[2, 2] = z[1], z[0], -beta
    elif system == ROSSLER:
        a, c = p[0], p[2]
        out[0, 1], out[0, 2] = -1.0, -1.0
        out[1, 0], out[1, 1] = 1.0, a
        out[2, 0], out[2, 2] = z[2], z[0] - c
    else:
        dim = z.shape[0]
        for i in range(dim):
            ahead = (i + 1) % dim
            out[i, ahead] += z[i - 1]
            out[i, i - 2] -= z[i - 1]
            out[i, i - 1] += z[ahead] - z[i - 2]
            out[i, i] -= 1.0


@kernel
def rk4_step(system, z, p, dt, work):
    """Advance ``z (D,)`` in place by one classical Runge-Kutta step; ``work (5, D)`` is scratch."""
    k1, k2, k3, k4, mid = work[0], work[1], work[2], work[3], work[4]
    dim = z.shape[0]
    field(system, z, p, k1)
    for i in range(dim):
        mid[i] = z[i] + 0.5 * dt * k1[i]
    field(system, mid, p, k2)
    for i in range(dim):
        mid[i] = z[i] + 0.5 * dt * k2[i]
    field(system, mid, p, k3)
    for i in range(dim):
        mid[i] = z[i] + dt * k3[i]
    field(system, mid, p, k4)
    for i in range(dim):
        z[i] += dt / 6.0 * (k1[i] + 2.0 * k2[i] + 2.0 * k3[i] + k4[i])


@kernel
def simulate(system, start, p, dt, diffusion, steps, out):
    """Fill ``out (steps, D)`` with states after each step from ``start (D,)``.

    z_{t+1} = RK4_dt(z_t) + diffusion_t, with ``diffusion (steps, D)`` already scaled, or (0, D) for none.
    """
    z = start.copy()
    work = np.empty((5, z.shape[0]))
    noisy = diffusion.shape[0] > 0
    for t in range(steps):
        rk4_step(system, z, p, dt, work)
        if noisy:
            for i in range(z.shape[0]):
                z[i] += diffusion[t, i]
        out[t] = z
