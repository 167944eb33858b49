"""The teacher-forced loss of a model on given data, and its gradient in closed form."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from palrnn.engine.checks import Floats, as_float, as_floats, as_instance, as_int
from palrnn.engine.kernel import pin_blas
from palrnn.forcing import kernels
from palrnn.model import ALRNN

#: Adjoints below this are set to zero; far below rounding, far above the denormal numbers.
TINY = {"float32": 1e-25, "float64": 1e-250}


@dataclass(frozen=True, eq=False)
class Gradient:
    """The derivative of a loss with respect to ``A (M,)``, ``W (M, M)``, ``h (M,)`` and ``E (M, N)``.

    The first N rows of ``E`` are zero: the embedding overwrites them with the observation.
    """

    A: Floats
    W: Floats
    h: Floats
    E: Floats

    @property
    def theta(self) -> Floats:
        """The gradient of the drift parameters, ``[A, W row-major, h]``."""
        return np.concatenate([self.A, self.W.ravel(), self.h])

    @property
    def norm(self) -> float:
        """The Euclidean length over all parameters."""
        return float(np.sqrt(sum(np.sum(np.square(part)) for part in (self.A, self.W, self.h, self.E))))

    def __repr__(self) -> str:
        return f"Gradient(latent_dim={self.A.size}, observed_dim={self.E.shape[1]}, norm={self.norm:.4g})"


def itf_loss(model: ALRNN, x: ArrayLike, tau: int, *, alpha: float = 1.0) -> float:
    """Return the teacher-forced loss (eq. tf_loss) of ``model`` on ``x (T, N)`` or a batch ``(B, T, N)``.

    The rollout starts at ``embed(x[0])``; at steps ``tau, 2 tau, ...`` (0-based) the observed coordinates are
    moved to ``(1 - alpha) z + alpha x`` before the state is advanced. ``alpha = 1`` is identity teacher
    forcing, ``tau = 1`` with ``alpha < 1`` generalised teacher forcing (Hess et al., 2023), ``tau >= T`` or
    ``alpha = 0`` a free run. The squared error is summed over coordinates and averaged over the ``T - 1``
    predictions and the batch.
    """
    loss, _ = _evaluated(model, x, tau, alpha, with_gradient=False)
    return loss


def itf_gradient(model: ALRNN, x: ArrayLike, tau: int, *, alpha: float = 1.0) -> tuple[float, Gradient]:
    """Return the loss of `itf_loss` and its closed-form gradient (slope 0 at the ReLU's kink)."""
    loss, flat = _evaluated(model, x, tau, alpha, with_gradient=True)
    return loss, Gradient(*unpacked(flat, model.latent_dim, model.observed_dim))


def packed(model: ALRNN) -> Floats:
    """Return ``[A, W row-major, h, E row-major]``."""
    return np.concatenate([model.A, model.W.ravel(), model.h, model.E.ravel()])


def unpacked(flat: ArrayLike, dim: int, seen: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Return ``A, W, h, E`` from the vector that `packed` makes, as float64."""
    values = np.asarray(flat, dtype=np.float64)
    A, W, h, E = np.split(values, [dim, dim + dim * dim, 2 * dim + dim * dim])
    return A, W.reshape(dim, dim), h, E.reshape(dim, seen)


def _evaluated(
    model: ALRNN, x: ArrayLike, tau: int, alpha: float, *, with_gradient: bool
) -> tuple[float, Floats]:
    as_instance(model, "model", ALRNN)
    batch = as_floats(x, "x")
    if batch.ndim == 2:
        batch = batch[None]
    if batch.ndim != 3 or batch.shape[0] < 1 or batch.shape[1] < 2 or batch.shape[2] != model.observed_dim:
        raise ValueError(
            f"x must be (T, N) or (B, T, N) with T >= 2 and N = {model.observed_dim}, got {np.shape(x)}"
        )
    count, length, seen = batch.shape
    tau, alpha = as_int(tau, "tau", least=1), as_float(alpha, "alpha", least=0.0, most=1.0)
    series = np.ascontiguousarray(batch).reshape(count * length, seen)
    theta = packed(model)
    gradient = np.empty(theta.size if with_gradient else 0)
    pin_blas()
    loss = kernels.loss_and_gradient(
        theta,
        model.latent_dim,
        model.gated,
        series,
        np.arange(count, dtype=np.int64) * length,
        length,
        tau,
        alpha,
        TINY["float64"],
        gradient,
    )
    return float(loss), gradient
