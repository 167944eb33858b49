"""Whole training updates in one kernel: batch, forced rollout, adjoint, clipping, RAdam."""

from __future__ import annotations

import math

import numpy as np

from palrnn.engine.kernel import kernel
from palrnn.engine.vector_code import REGISTER_BYTES
from palrnn.forcing.kernels.rollout import (
    fold,
    forced_adjoint,
    forced_rollout,
    predictions,
    read_inputs,
)

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8


@kernel
def radam_step(theta, first, second, gradient, step, rate, tiny):
    """One step of RAdam (Liu et al., 2020), in place; ``step`` counts from 1.

        m += (1 - b1)(g - m),   v = b2 v + (1 - b2) g^2,
        rho = rho_inf - 2 t b2^t / (1 - b2^t),   rho_inf = 2/(1 - b2) - 1,
        r = sqrt((rho - 4)(rho - 2) rho_inf / ((rho_inf - 4)(rho_inf - 2) rho)),
        theta -= rate m / (1 - b1^t) * (r sqrt(1 - b2^t) / (sqrt(v) + eps) if rho > 5 else 1).

    Moments below ``tiny`` are set to zero: units without gradient would otherwise reach denormal numbers.
    """
    number = theta.dtype.type
    b1, b2, eps, zero = number(1.0 - BETA1), number(BETA2), number(EPSILON), number(0.0)
    c2 = number(1.0 - BETA2)
    correction1, correction2 = 1.0 - BETA1**step, 1.0 - BETA2**step
    limit = 2.0 / (1.0 - BETA2) - 1.0
    rho = limit - 2.0 * step * BETA2**step / correction2
    for k in range(theta.shape[0]):
        moment = first[k] + b1 * (gradient[k] - first[k])
        first[k] = zero if abs(moment) < tiny else moment
    for k in range(theta.shape[0]):
        moment = b2 * second[k] + c2 * gradient[k] * gradient[k]
        second[k] = zero if moment < tiny else moment
    if rho > 5.0:
        rectified = math.sqrt((rho - 4.0) * (rho - 2.0) * limit / ((limit - 4.0) * (limit - 2.0) * rho))
        size = number(rate / correction1 * rectified * math.sqrt(correction2))
        for k in range(theta.shape[0]):
            theta[k] -= size * first[k] / (np.sqrt(second[k]) + eps)
    else:
        size = number(rate / correction1)
        for k in range(theta.shape[0]):
            theta[k] -= size * first[k]


def scratch(theta, dim, seen, count, batch, length, tau):
    """Return the arrays that `updates` works in: made outside, what makes them need not be compiled.

    They are for the vector ``theta``, M = ``dim`` units and ``count`` inputs, of which ``seen`` are observed,
    and batches of ``batch`` sequences of ``length`` rows, forced every ``tau`` steps.
    """
    kind, lanes = theta.dtype, REGISTER_BYTES // theta.itemsize
    width = (dim + count + lanes - 1) // lanes * lanes
    shapes = [(width, width)] * 3 + [(3, width), (4, width), (2, batch, width)]
    shapes += [((length - 1) // tau + 1, batch, seen)] + [(length, batch, width)] * 2
    blank = np.zeros((length, batch, seen), kind), np.empty((0, batch, seen), kind), np.empty_like(theta)
    return (*(np.empty(shape, kind) for shape in shapes), *blank)


@kernel
def updates(
    theta,
    first,
    second,
    done,
    dim,
    gated,
    series,
    gaps,
    drive,
    starts,
    noise,
    length,
    tau,
    alphas,
    rates,
    clip,
    tiny,
    losses,
    norms,
    room,
):
    """Train ``theta`` and its moments ``first``, ``second`` in place by U updates, after ``done`` earlier.

    ``starts (U, B)`` are the first rows of the batches in ``series (T, N)``, of which nothing is missing if
    ``gaps`` is None; ``drive (T, K)`` are its external inputs; ``noise (U, K, B, N)`` is the input noise (U =
    0 for none), ``alphas (U,)`` and ``rates (U,)`` the schedules; gradients longer than ``clip`` are
    shortened to it. Fills ``losses (U,)`` and ``norms (U,)`` (before clipping). Return the number of the
    first update whose loss or gradient is not finite, with ``theta`` as it was before that update, or -1.
    ``room`` is scratch from `scratch`.
    """
    count = starts.shape[0]
    number, inputs_dim = theta.dtype.type, drive.shape[1]
    ahead, back, part, wide, sums, phi, inputs, states, adjoint, errors, silence, gradient = room
    for u in range(count):
        alpha = number(alphas[u])
        fold(theta, dim, gated, inputs_dim, ahead, back, wide)
        read_inputs(series, starts[u], noise[u] if noise.shape[0] > 0 else silence, tau, inputs)
        loss = forced_rollout(
            theta, dim, ahead, wide, series, drive, starts[u], inputs, tau, alpha, gaps, phi, states, errors
        )
        weight = 0.0 if gaps is None else predictions(series, starts[u], length)
        forced_adjoint(
            dim,
            gated,
            inputs_dim,
            back,
            wide,
            inputs,
            tau,
            alpha,
            gaps,
            weight,
            tiny,
            states,
            errors,
            adjoint,
            part,
            sums,
            gradient,
        )
        square = 0.0
        for k in range(gradient.shape[0]):
            square += np.float64(gradient[k]) * np.float64(gradient[k])
        norm = math.sqrt(square)
        losses[u], norms[u] = loss, norm
        if not (math.isfinite(loss) and math.isfinite(norm)):
            return u
        if norm > clip:
            shorter = number(clip / norm)
            for k in range(gradient.shape[0]):
                gradient[k] *= shorter
        radam_step(theta, first, second, gradient, done + u + 1, rates[u], tiny)
    return -1
