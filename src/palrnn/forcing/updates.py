"""Whole updates of training: by compiled kernels where a family has them, else by the plain engine."""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from palrnn.engine.checks import Floats
from palrnn.forcing.kernels import updates as kernels
from palrnn.forcing.objective import TINY, kernel_sizes
from palrnn.forcing.plain import forced_loss
from palrnn.model import ALRNN, ShallowPLRNN, Surrogate
from palrnn.model.surrogate import with_training_vector


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


@singledispatch
def run_updates(
    model: Surrogate,
    vector: NDArray[Any],
    first: NDArray[Any],
    second: NDArray[Any],
    todo: Updates,
    losses: Floats,
    norms: Floats,
) -> int:
    """Train the vector and RAdam's moments in place; fill ``losses (U,)`` and ``norms (U,)``.

    ``model`` says which family it is. Return the number of the first update whose loss or gradient is not
    finite, with ``vector`` as it was before that update, or -1.
    """
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
        kernels.radam_step(vector, first, second, gradient, todo.done + u + 1, todo.rates[u], TINY["float64"])
    return -1


@run_updates.register(ALRNN)
@run_updates.register(ShallowPLRNN)
def _(
    model: ALRNN | ShallowPLRNN,
    vector: NDArray[Any],
    first: NDArray[Any],
    second: NDArray[Any],
    todo: Updates,
    losses: Floats,
    norms: Floats,
) -> int:
    sizes, batch = kernel_sizes(model), todo.starts.shape[1]
    room = kernels.workspace(vector, *sizes[:3], todo.series, todo.drive, batch, todo.length, todo.interval)
    silence = np.empty((0, batch, todo.series.shape[1]), vector.dtype)
    return kernels.updates(
        vector,
        first,
        second,
        todo.done,
        *sizes,
        todo.series,
        None if todo.whole else True,
        todo.drive,
        todo.starts,
        todo.noise,
        todo.interval,
        todo.strengths,
        todo.rates,
        todo.clip,
        vector.dtype.type(TINY[vector.dtype.name]),
        losses,
        norms,
        room,
        silence,
        np.empty_like(vector),
    )
