"""Regularisers of the field, tried on AL-RNNs by `training_recipe.py`. None is in the package: none helps.

Each is a family that is an AL-RNN but for how it is trained:

- *weight decay*: after each update, weights W and biases h shrink by the rate times a strength (as in AdamW);
- *manifold attractor* (Schmidt et al., 2021): the same for units that are neither seen nor gated, and their A
  go to one, so that they can remember;
- *latent*: the mean square of the units that are not seen, times a strength, is added to the loss;
- *mean*: the last model is the mean of those after the last third of the updates.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from palrnn.forcing.kernels.updates import optimizer_step
from palrnn.forcing.objective import TINY, Moments, Pair, Updates, run_updates
from palrnn.model import ALRNN, register_family
from palrnn.model.surrogate import training_vector

_compiled = run_updates.dispatch(ALRNN)


class Regularised(ALRNN):
    """An AL-RNN that is trained otherwise, with a ``strength``."""

    strength: ClassVar[float] = 0.0

    @classmethod
    def initial(cls, observed_dim: int, **sizes: Any) -> ALRNN:
        """Return the random start of an AL-RNN."""
        return cls.from_arrays(ALRNN.initial(observed_dim, **sizes).arrays())


class WeightDecay(Regularised):
    """W and h go to zero."""

    def pulled(self) -> tuple[np.ndarray, np.ndarray]:
        """Return which parameters are pulled, and where to."""
        ones, none = np.ones_like(self.W), np.zeros_like(self.A)
        which = ALRNN(none, ones, none + 1.0, np.zeros_like(self.E), self.gated)
        return training_vector(which), np.zeros(training_vector(self).size)


class ManifoldAttractor(WeightDecay):
    """A of the units without gate and data goes to one, their W and h to zero."""

    def pulled(self) -> tuple[np.ndarray, np.ndarray]:
        """Return which parameters are pulled, and where to."""
        units = np.arange(self.latent_dim)
        mine = ((units >= self.observed_dim) & (units < self.latent_dim - self.gated)).astype(float)
        rows = np.repeat(mine[:, None], self.latent_dim, axis=1)
        none = np.zeros_like(self.E)
        which = ALRNN(mine, rows, mine, none, self.gated)
        return training_vector(which), training_vector(ALRNN(mine, 0.0 * rows, 0.0 * mine, none, self.gated))


@run_updates.register(WeightDecay)
def _(model: WeightDecay, vector: Any, moments: Moments, todo: Updates, history: Pair) -> int:
    which, target = (each.astype(vector.dtype) for each in model.pulled())
    for u in range(len(todo.starts)):
        one, (losses, norms) = slice(u, u + 1), history
        parts = {"starts": todo.starts[one], "strengths": todo.strengths[one], "rates": todo.rates[one]}
        now = todo._replace(done=todo.done + u, noise=todo.noise[one], **parts)
        if _compiled(model, vector, moments, now, (losses[one], norms[one])) >= 0:
            return u
        vector += vector.dtype.type(todo.rates[u] * model.strength) * which * (target - vector)
    return -1


class LatentPenalty(Regularised):
    """The loss holds ``strength`` times the mean square of the units that are not seen."""


@run_updates.register(LatentPenalty)
def _(model: LatentPenalty, vector: Any, moments: Moments, todo: Updates, history: Pair) -> int:
    losses, norms = history
    steps, tiny = np.arange(todo.length), vector.dtype.type(TINY[vector.dtype.name])
    first, second, blocks = moments.arrays
    for u, starts in enumerate(todo.starts):
        x = todo.series[starts[:, None] + steps]
        entering = x[:, :: todo.interval].transpose(1, 0, 2).copy()
        if len(todo.noise):
            entering += todo.noise[u]
        how = todo.interval, vector.dtype.type(todo.strengths[u])
        losses[u], gradient = penalised(model, vector, x, entering, *how)
        norms[u] = norm = float(np.linalg.norm(gradient))
        if not np.isfinite(norm):
            return u
        if norm > todo.clip:
            gradient *= vector.dtype.type(todo.clip / norm)
        optimizer_step(vector, first, second, blocks, gradient, todo.done + u + 1, todo.rates[u], tiny)
    return -1


def penalised(
    model: LatentPenalty, vector: Any, x: np.ndarray, entering: np.ndarray, interval: int, strength: float
) -> tuple[float, np.ndarray]:
    """Return the loss under forcing, and the gradient of it with the penalty; arrays as in `forced_loss`."""
    dim, seen = model.latent_dim, model.observed_dim
    A, W, h, E = np.split(vector, np.cumsum([dim, dim * dim, dim]))
    W, E = W.reshape(dim, dim), E.reshape(dim, seen)
    batch, length, _ = x.shape
    left, right = np.empty((2, length, batch, dim), vector.dtype)  # states as forced, and behind their gates
    before = np.empty((length, batch, dim), vector.dtype)
    before[0] = entering[0] @ E.T
    before[0, :, :seen] = entering[0]
    for t in range(length):
        left[t] = before[t]
        if t > 0 and t % interval == 0:
            left[t, :, :seen] += strength * (entering[t // interval] - before[t, :, :seen])
        right[t] = left[t]
        right[t, :, dim - model.gated :] = np.maximum(left[t, :, dim - model.gated :], 0.0)
        if t + 1 < length:
            before[t + 1] = A * left[t] + right[t] @ W.T + h
    count = (length - 1) * batch
    errors = before[:, :, :seen] - x.transpose(1, 0, 2)
    errors[0] = 0.0
    pulls = (2.0 * type(model).strength / (count * (dim - seen))) * before
    pulls[0] = 0.0
    pulls[:, :, :seen] = (2.0 / count) * errors
    adjoint, adjoints = np.zeros((batch, dim), vector.dtype), np.zeros_like(before)
    for t in range(length - 2, -1, -1):
        adjoint += pulls[t + 1]
        adjoints[t] = adjoint
        back = adjoint @ W
        back[:, dim - model.gated :] *= left[t, :, dim - model.gated :] > 0.0
        adjoint = A * adjoint + back
        if t > 0 and t % interval == 0:
            adjoint[:, :seen] *= 1.0 - strength
    flat = adjoints.reshape(-1, dim)
    to_start = adjoint.T @ entering[0]
    to_start[:seen] = 0.0
    parts = (adjoints * left).sum(axis=(0, 1)), (flat.T @ right.reshape(-1, dim)).ravel(), flat.sum(axis=0)
    return float(np.square(errors).sum() / count), np.concatenate([*parts, to_start.ravel()])


class Mean(Regularised):
    """The last model is the mean over the last updates, of which there are ``strength``."""

    total: ClassVar[int] = 30_000
    summed: ClassVar[Any] = 0.0


@run_updates.register(Mean)
def _(model: Mean, vector: Any, moments: Moments, todo: Updates, history: Pair) -> int:
    failed = _compiled(model, vector, moments, todo, history)
    done, kind = todo.done + len(todo.starts), type(model)
    if done <= kind.total - kind.strength:
        kind.summed = 0.0
    else:  # models after each of the blocks in which updates are made
        kind.summed = kind.summed + len(todo.starts) * vector.astype(np.float64)
    if done == kind.total:
        vector[:] = kind.summed / kind.strength
    return failed


def named(kind: type[Regularised], strength: float) -> str:
    """Return the name of a family of this ``kind``, which `TrainConfig` then knows."""
    name = f"{kind.__name__} {strength:g}"
    register_family(name, type(name, (kind,), {"strength": strength, "__module__": __name__}))
    return name
