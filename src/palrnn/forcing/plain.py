"""Teacher forcing for every family: the forced rollout and its adjoint from affine pieces and pullbacks.

With lambda_t = dL/dz_t before forcing and e_t = 2 (z_t[:N] - x_t) / weight, backwards in time,

    lambda_t = F_t J(c_t)^T lambda_{t+1} + e_t,   F_t = I, with 1 - strength on observed units where forced,
    dtheta = sum_t lambda_{t+1}^T dF/dtheta,

which is what `palrnn.forcing.kernels.rollout` does for an AL-RNN. The weight is (T - 1) B, or with gaps
(NaN), which have no error and force nothing, the number of entries seen over N. Gates are hard here, so
parameters that only move a threshold have no gradient. In double precision throughout.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from palrnn.engine.checks import Floats
from palrnn.model.engine import codes
from palrnn.model.inputs import input_parameters, input_pullback, offsets


def forced_loss(
    model: Any,
    x: Floats,
    inputs: Floats,
    interval: int,
    strength: float,
    *,
    drive: Floats | None = None,
    with_gradient: bool,
) -> tuple[float, Floats]:
    """Return the teacher-forced loss (eq. tf_loss) and its gradient, laid out as the training vector.

    ``x (B, T, N)`` are the targets, ``inputs (K, B, N)`` what enters at steps 0, interval, 2 interval, ...
    ``drive (B, T, K)`` are the external inputs of a driven model, which add C s_t to the step from t to t+1,
    and lambda_{t+1} s_t^T to the gradient. Without ``with_gradient`` the second result is empty.
    """
    batch, length, seen = x.shape
    weight = np.count_nonzero(~np.isnan(x[:, 1:])) / seen
    pushes = offsets(model, drive)
    z, errors, visited = model.embed(inputs[0]), np.zeros((length, batch, seen)), []
    # a model that runs away overflows on its way; its loss is then not finite, which is what is reported
    with np.errstate(over="ignore", invalid="ignore"):
        for t in range(length - 1):
            if t > 0 and t % interval == 0:
                forced = (1.0 - strength) * z[:, :seen] + strength * inputs[t // interval]
                z[:, :seen] = np.where(np.isnan(inputs[t // interval]), z[:, :seen], forced)
            c = codes(model, z)
            J, b = model.affine(c)
            visited.append((z, c, J))
            z = (J @ z[..., None])[..., 0] + b
            if pushes is not None:
                z += pushes[:, t]
            errors[t + 1] = np.where(np.isnan(x[:, t + 1]), 0.0, z[:, :seen] - x[:, t + 1])
        loss = float(np.square(errors).sum()) / weight
        if not with_gradient:
            return loss, np.empty(0)
        return loss, _gradient(model, 2.0 / weight * errors, visited, inputs, interval, strength, drive)


def _gradient(
    model: Any,
    pulls: Floats,
    visited: list[Any],
    inputs: Floats,
    interval: int,
    strength: float,
    drive: Floats | None,
) -> Floats:
    length, batch, seen = pulls.shape
    gradient, adjoint = np.zeros(model.theta.size), np.zeros((batch, model.latent_dim))
    own = model.theta.size - input_parameters(model)
    for t in range(length - 2, -1, -1):
        z, c, J = visited[t]
        adjoint[:, :seen] += pulls[t + 1]
        gradient[:own] += model.pullback(z, c, adjoint).sum(axis=0)
        if drive is not None:
            gradient[own:] += input_pullback(drive[:, t], adjoint).sum(axis=0)
        adjoint = (adjoint[:, None, :] @ J)[:, 0]
        if t > 0 and t % interval == 0:
            adjoint[:, :seen] *= np.where(np.isnan(inputs[t // interval]), 1.0, 1.0 - strength)
    if not hasattr(model, "embedding"):
        return gradient
    return np.concatenate([gradient, model.embed_pullback(inputs[0], adjoint).sum(axis=0)])
