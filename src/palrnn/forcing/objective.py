"""The teacher-forced loss of a model on given data, and its gradient in closed form."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from palrnn.engine.checks import Floats, as_floats, as_shape
from palrnn.engine.gaps import refuse_gap_at_start
from palrnn.engine.kernel import pin_blas
from palrnn.forcing.kernels import updates as kernels
from palrnn.forcing.plain import forced_loss
from palrnn.model import ALRNN, PALRNN, Forcing, ShallowPLRNN, Surrogate, as_forcing, drift_of
from palrnn.model.inputs import checked_inputs
from palrnn.model.surrogate import training_vector, with_training_vector

#: Adjoints below this are set to zero; far below rounding, far above the denormal numbers.
TINY = {"float32": 1e-25, "float64": 1e-250}


@dataclass(frozen=True, eq=False)
class Gradient:
    """The derivative of a loss with respect to ``theta (p,)`` and to the ``embedding (e,)``.

    Its parts go by the names of the model's own arrays, in their shapes: of an `ALRNN`, ``A (M,)``, ``W (M,
    M)``, ``h (M,)``, ``C (M, K)`` of a driven one, and ``E (M, N)``, whose first N rows are zero: the
    embedding overwrites them with the observation.
    """

    theta: Floats
    embedding: Floats
    model: Any = field(repr=False)

    @property
    def norm(self) -> float:
        """The Euclidean length over all parameters."""
        return float(np.sqrt(sum(np.sum(np.square(part)) for part in (self.theta, self.embedding))))

    def __getattr__(self, name: str) -> Floats:
        if not name.startswith("_"):
            vector = np.concatenate([self.theta, self.embedding])
            parts = with_training_vector(self.model, vector).arrays()
            if name in parts and np.issubdtype(parts[name].dtype, np.floating):
                return parts[name]
        raise AttributeError(f"the gradient of {self.model!r} has no part {name!r}")

    def __repr__(self) -> str:
        sizes = f"latent_dim={self.model.latent_dim}, observed_dim={self.model.observed_dim}"
        return f"Gradient({sizes}, norm={self.norm:.4g})"


def itf_loss(
    model: Surrogate | PALRNN, x: ArrayLike, forcing: Forcing | int, *, inputs: ArrayLike | None = None
) -> float:
    """Return the teacher-forced loss (eq. tf_loss) of ``model`` on ``x (T, N)`` or a batch ``(B, T, N)``.

    The rollout starts at ``embed(x[0])``; at the steps of ``forcing`` the observed coordinates are moved to
    ``(1 - strength) z + strength x`` before the state is advanced. A number tau means
    ``Forcing.identity(tau)``; `Forcing.none`, or an interval beyond T, is a free run. The squared error is
    summed over coordinates and averaged over the ``T - 1`` predictions and the batch. Of a PAL-RNN, the drift
    is taken.

    NaN in ``x`` means not observed, anywhere but in a first row. Forcing moves the coordinates that were
    seen, and the loss is the squared error over all entries that were, times N, divided by their number.

    ``inputs (T, K)`` or ``(B, T, K)`` drive a model that takes any, one row for each row of ``x``.
    """
    return _evaluated(drift_of(model), x, forcing, inputs, with_gradient=False)[0]


def itf_gradient(
    model: Surrogate | PALRNN, x: ArrayLike, forcing: Forcing | int, *, inputs: ArrayLike | None = None
) -> tuple[float, Gradient]:
    """Return the loss of `itf_loss` and its closed-form gradient (slope 0 at a kink)."""
    drift = drift_of(model)
    loss, vector = _evaluated(drift, x, forcing, inputs, with_gradient=True)
    size = drift.theta.size
    return loss, Gradient(vector[:size], vector[size:], drift)


def _evaluated(
    model: Any, x: ArrayLike, forcing: Forcing | int, inputs: ArrayLike | None, *, with_gradient: bool
) -> tuple[float, Floats]:
    batch = as_floats(x, "x", allow_nan=True)
    if batch.ndim == 2:
        batch = batch[None]
    if batch.ndim != 3 or batch.shape[0] < 1 or batch.shape[1] < 2 or batch.shape[2] != model.observed_dim:
        raise ValueError(
            f"x must be (T, N) or (B, T, N) with T >= 2 and N = {model.observed_dim}, got {np.shape(x)}"
        )
    refuse_gap_at_start(batch if np.ndim(x) == 3 else batch[0], "x")
    drive = _drive(model, inputs, batch.shape[:2], single=np.ndim(x) == 2)
    pin_blas()
    return loss_and_gradient(model, np.ascontiguousarray(batch), as_forcing(forcing), with_gradient, drive)


def _drive(model: Any, inputs: ArrayLike | None, shape: tuple[int, int], *, single: bool) -> Floats | None:
    """Return the inputs of a batch of ``shape`` (B, T) as ``(B, T, K)``, or None where there are none."""
    if single or inputs is None or not model.input_dim:
        drive = checked_inputs(model, inputs, shape[1])
        return None if drive is None else drive[None]
    return as_shape(inputs, "inputs", (*shape, model.input_dim))


@singledispatch
def loss_and_gradient(
    model: Surrogate, x: Floats, forcing: Forcing, with_gradient: bool, drive: Floats | None = None
) -> tuple[float, Floats]:
    """Return the loss on ``x (B, T, N)`` and, if asked, its gradient in the training vector (else empty).

    ``drive (B, T, K)`` are the external inputs, None where there are none.
    """
    every = forcing.interval
    entering = x[:, ::every].transpose(1, 0, 2)
    how: dict[str, Any] = {"drive": drive, "with_gradient": with_gradient}
    return forced_loss(model, x, entering, every, forcing.strength, **how)


def kernel_sizes(model: ALRNN | ShallowPLRNN) -> tuple[int, int | None, int | None, bool]:
    """Return what the kernels want to know of a model: M, P or else H, and whether it is clipped."""
    if isinstance(model, ALRNN):
        return model.latent_dim, model.gated, None, False
    return model.latent_dim, None, model.hidden, model.gates_per_hidden == 2


@loss_and_gradient.register(ALRNN)
@loss_and_gradient.register(ShallowPLRNN)
def _(
    model: ALRNN | ShallowPLRNN,
    x: Floats,
    forcing: Forcing,
    with_gradient: bool,
    drive: Floats | None = None,
) -> tuple[float, Floats]:
    count, length, seen = x.shape
    sizes, vector = kernel_sizes(model), training_vector(model)
    gradient = np.empty(vector.size if with_gradient else 0)
    pushes = np.empty((count, length, 0)) if drive is None else np.ascontiguousarray(drive)
    series, flat = x.reshape(count * length, seen), pushes.reshape(count * length, -1)
    loss = kernels.loss_and_gradient(
        vector,
        *sizes,
        series,
        True if np.isnan(x).any() else None,
        flat,
        np.arange(count, dtype=np.int64) * length,
        np.empty((0, count, seen)),
        forcing.interval,
        forcing.strength,
        TINY["float64"],
        kernels.workspace(vector, *sizes[:3], series, flat, count, length, forcing.interval),
        gradient,
    )
    return float(loss), gradient
