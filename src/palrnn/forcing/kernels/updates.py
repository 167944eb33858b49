"""Whole training updates in one kernel: batch, forced rollout, adjoint, clipping, SOAP or RAdam.

The family of ``theta`` is told by what is not None: ``gated``, P of an AL-RNN, or ``hidden``, H of a shallow
PLRNN, which may be ``clipped``. Numba leaves the calls under the other out: kernels are compiled for each.
"""

from __future__ import annotations

import math

import numpy as np

from palrnn.engine.kernel import kernel
from palrnn.forcing.kernels import rollout, shallow
from palrnn.forcing.kernels.soap import soap_step

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


@kernel
def optimizer_step(theta, first, second, blocks, gradient, step, rate, tiny):
    """One step of SOAP, or of RAdam where ``blocks`` is None."""
    if blocks is None:
        radam_step(theta, first, second, gradient, step, rate, tiny)
    if blocks is not None:
        soap_step(theta, first, second, blocks, gradient, step, rate, tiny)


def workspace(theta, sizes, data, batch, length, tau):
    """Room for the evaluation of a batch by the kernels of the family, input noise that is none, a gradient.

    It is made outside of kernels: what makes arrays need not be compiled then.
    """
    (dim, gated, hidden, _), (x, _, drive) = sizes, data
    shape = (x.shape[1], drive.shape[1], batch, length, tau)
    gradient = np.empty_like(theta)
    if gated is not None:
        own = rollout.workspace(theta, gradient, dim, *shape)
    else:
        own = shallow.workspace(theta, dim, hidden, *shape)
    return own, np.empty((0, batch, x.shape[1]), theta.dtype), gradient


@kernel
def evaluate(
    theta, dim, gated, hidden, clipped, x, gaps, drive, starts, noise, tau, alpha, tiny, room, gradient
):
    """Return the loss of one batch and fill ``gradient``, by the kernels of the family."""
    loss = 0.0
    if gated is not None:
        loss = rollout.evaluate(
            theta, dim, gated, x, gaps, drive, starts, noise, tau, alpha, tiny, room, gradient
        )
    if hidden is not None:
        loss = shallow.evaluate(
            theta, hidden, clipped, x, gaps, drive, starts, noise, tau, alpha, tiny, room, gradient
        )
    return loss


def loss_and_gradient(theta, sizes, data, starts, length, tau, alpha, tiny, with_gradient):
    """Return the loss of sequences ``x[starts[b] : starts[b] + length]``, and its gradient if asked for.

    ``sizes`` and ``data`` are as in `updates`.
    """
    own, silence, gradient = workspace(theta, sizes, data, starts.shape[0], length, tau)
    gradient = gradient if with_gradient else gradient[:0]
    loss = evaluate(theta, *sizes, *data, starts, silence, tau, alpha, tiny, own, gradient)
    return float(loss), gradient


@kernel
def updates(theta, moments, done, sizes, data, starts, noise, tau, alphas, rates, clip, tiny, history, room):
    """Train ``theta`` and its ``moments`` in place by U updates, after ``done`` earlier ones.

    ``moments`` are the first, the second, and the blocks of SOAP or None; ``sizes`` are dim, gated,
    hidden and clipped; ``data`` are x, gaps and drive: ``starts (U, B)`` are the first rows of the
    batches in ``x (T, N)``, of which nothing is missing if ``gaps`` is None, and ``drive (T, K)`` its
    external inputs; ``noise (U, K, B, N)`` is the input noise (U = 0 for none), ``alphas (U,)`` and
    ``rates (U,)`` the schedules; gradients longer than ``clip`` are shortened to it. Fills the two rows
    of ``history``, losses (U,) and norms (U,) before clipping. ``room`` is from `workspace`. Return the
    number of the first update whose loss or gradient is not finite, with ``theta`` as it was before that
    update, or -1.
    """
    dim, gated, hidden, clipped = sizes
    x, gaps, drive = data
    own, silence, gradient = room
    first, second, blocks = moments
    losses, norms = history
    count, number = starts.shape[0], theta.dtype.type
    for u in range(count):
        rows, added = starts[u], noise[u] if noise.shape[0] > 0 else silence
        alpha = number(alphas[u])
        loss = evaluate(
            theta, dim, gated, hidden, clipped, x, gaps, drive, rows, added, tau, alpha, tiny, own, gradient
        )
        norm = math.sqrt(rollout.sum_of_squares(gradient))
        losses[u], norms[u] = loss, norm
        if not (math.isfinite(loss) and math.isfinite(norm)):
            return u
        if norm > clip:
            shorter = number(clip / norm)
            for k in range(gradient.shape[0]):
                gradient[k] *= shorter
        optimizer_step(theta, first, second, blocks, gradient, done + u + 1, rates[u], tiny)
    return -1
