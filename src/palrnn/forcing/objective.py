"""The teacher-forced loss of a model on given data, and its gradient in closed form.

Every family has the forced rollout and its adjoint, from affine pieces and pullbacks. With lambda_t =
dL/dz_t before forcing and e_t = 2 (z_t[:N] - x_t) / weight, backwards in time,

    lambda_t = F_t J(c_t)^T lambda_{t+1} + e_t,   F_t = I, with 1 - strength on observed units where forced,
    dtheta = sum_t lambda_{t+1}^T dF/dtheta,

which is what `palrnn.forcing.kernels.rollout` does for an AL-RNN. The weight is (T - 1) B, or with gaps
(NaN), which have no error and force nothing, the number of entries seen over N. Gates are hard here, so
parameters that only move a threshold have no gradient. In double precision throughout. Whole updates of
training (`run_updates`) are by compiled kernels where a family has them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palrnn.engine.checks import Floats, as_floats, as_shape
from palrnn.engine.gaps import refuse_gap_at_start
from palrnn.engine.kernel import pin_blas
from palrnn.forcing.kernels import updates as kernels
from palrnn.forcing.soap import Block
from palrnn.model import ALRNN, PALRNN, Forcing, ShallowPLRNN, Surrogate, as_forcing, drift_of
from palrnn.model.engine import codes
from palrnn.model.inputs import checked_inputs, input_parameters, input_pullback, offsets
from palrnn.model.surrogate import training_vector, with_training_vector

Compiled = ALRNN | ShallowPLRNN
Pair = tuple[NDArray[Any], NDArray[Any]]
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
    """Return the loss of `itf_loss` and its closed-form gradient (slope 0 at a kink), both finite."""
    drift = drift_of(model)
    loss, vector = _evaluated(drift, x, forcing, inputs, with_gradient=True)
    if not np.isfinite(vector).all():
        raise ValueError(f"x must be so small that its gradient is finite; the loss is {loss:g}")
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


def kernel_sizes(model: Compiled) -> tuple[int, int | None, int | None, bool]:
    """Return what the kernels want to know of a model: M, P or else H, and whether it is clipped."""
    if isinstance(model, ALRNN):
        return model.latent_dim, model.gated, None, False
    return model.latent_dim, None, model.hidden, model.gates_per_hidden == 2


@loss_and_gradient.register(ALRNN)
@loss_and_gradient.register(ShallowPLRNN)
def _(
    model: Compiled, x: Floats, forcing: Forcing, with_gradient: bool, drive: Floats | None = None
) -> tuple[float, Floats]:
    count, length, seen = x.shape
    pushes = np.empty((count, length, 0)) if drive is None else np.ascontiguousarray(drive)
    gaps = True if np.isnan(x).any() else None
    data = x.reshape(count * length, seen), gaps, pushes.reshape(count * length, -1)
    starts, how = np.arange(count, dtype=np.int64) * length, (forcing.interval, forcing.strength)
    found: tuple[float, Floats] = kernels.loss_and_gradient(
        training_vector(model),
        kernel_sizes(model),
        data,
        starts,
        length,
        *how,
        TINY["float64"],
        with_gradient,
    )
    return found


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


class Updates(NamedTuple):
    """U updates to make, after ``done`` earlier ones.

    ``starts (U, B)`` are the first rows of the sequences in ``series (T, N)``, which has no gaps (NaN) if it
    is ``whole``; ``drive (T, K)`` are its external inputs (K = 0 for none); ``noise (U, F, B, N)`` the input
    noise of F forcings (U = 0 for none); sequences of ``length`` rows are forced every ``interval`` steps
    with ``strengths (U,)``; ``rates (U,)`` are the learning rates, gradients longer than ``clip`` are
    shortened.
    """

    done: int
    series: NDArray[Any]
    whole: bool
    drive: NDArray[Any]
    starts: NDArray[np.int64]
    noise: NDArray[Any]
    length: int
    interval: int
    strengths: Floats
    rates: Floats
    clip: float


class Moments(NamedTuple):
    """What an optimiser remembers: the first and second moments ``(v,)``, and the blocks of SOAP.

    RAdam has none.
    """

    first: NDArray[Any]
    second: NDArray[Any]
    blocks: tuple[Block, ...] | None = None

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The same in plain tuples, for kernels: one kind of them for whoever calls."""
        return self.first, self.second, None if self.blocks is None else tuple(map(tuple, self.blocks))


@singledispatch
def run_updates(
    model: Surrogate, vector: NDArray[Any], moments: Moments, todo: Updates, history: Pair
) -> int:
    """Train the vector and its moments in place; fill the ``history``: losses and norms, both (U,).

    ``model`` says which family it is. Return the number of the first update whose loss or gradient is not
    finite, with ``vector`` as it was before that update, or -1.
    """
    losses, norms = history
    steps, series = np.arange(todo.length), np.asarray(todo.series, dtype=np.float64)
    for u, starts in enumerate(todo.starts):
        x = series[starts[:, None] + steps]
        inputs = x[:, :: todo.interval].transpose(1, 0, 2).copy()
        if len(todo.noise):
            inputs += todo.noise[u]
        now = with_training_vector(model, vector)
        drive = todo.drive[starts[:, None] + steps] if todo.drive.shape[1] else None
        strength = float(todo.strengths[u])
        loss, gradient = forced_loss(now, x, inputs, todo.interval, strength, drive=drive, with_gradient=True)
        norm = float(np.linalg.norm(gradient))
        losses[u], norms[u] = loss, norm
        if not (math.isfinite(loss) and math.isfinite(norm)):
            return u
        if norm > todo.clip:
            gradient *= todo.clip / norm
        first, second, blocks = moments.arrays
        step, rate = todo.done + u + 1, todo.rates[u]
        kernels.optimizer_step(vector, first, second, blocks, gradient, step, rate, TINY["float64"])
    return -1


@run_updates.register(ALRNN)
@run_updates.register(ShallowPLRNN)
def _(model: Compiled, vector: NDArray[Any], moments: Moments, todo: Updates, history: Pair) -> int:
    sizes, data = kernel_sizes(model), (todo.series, None if todo.whole else True, todo.drive)
    tau, tiny = todo.interval, vector.dtype.type(TINY[vector.dtype.name])
    room = kernels.workspace(vector, sizes, data, todo.starts.shape[1], todo.length, tau)
    schedule = (todo.starts, todo.noise, tau, todo.strengths, todo.rates, todo.clip)
    args = (vector, moments.arrays, todo.done, sizes, data, *schedule, tiny, history, room)
    return int(kernels.updates(*args))
