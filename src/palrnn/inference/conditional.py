"""`conditional_filter`: from one gate path to the next, with the smoothing distribution left as it was."""

from __future__ import annotations

from functools import singledispatch
from typing import Any, Protocol

import numpy as np

from palrnn.engine.checks import Floats
from palrnn.engine.vector_code import LANES
from palrnn.inference import reference_conditional
from palrnn.inference.filter_arrays import driven_arrays, filter_arrays, initial_bundles, workspace
from palrnn.inference.kernels import conditional as kernels
from palrnn.inference.path_arrays import aligned, padded, path_arrays
from palrnn.inference.record import FilterDiedError
from palrnn.model import ALRNN, PALRNN


class ConditionalFilter(Protocol):
    """The conditional particle filter with ancestor sampling of one series (see `kernels.conditional`)."""

    def sweep(self, path: Floats, key: int) -> Floats:
        """Return the path that follows ``path (T-1, P)`` in the chain, with the random stream ``key``.

        A path is an array of noisy gate inputs, of which the gates are the signs.
        """


def conditional_filter(
    model: PALRNN, x: Floats, particles: int, drive: Floats | None = None
) -> ConditionalFilter:
    """Return the conditional filter of ``model`` on ``x (T, N)``; two threads must not share one.

    ``drive (T, M)`` is C s_t, None without inputs.
    """
    return _conditional_filter(model.drift, model, x, particles, drive)


@singledispatch
def _conditional_filter(
    drift: Any, model: PALRNN, x: Floats, particles: int, drive: Floats | None
) -> ConditionalFilter:
    return reference_conditional.ConditionalFilter(model, x, particles, drive)


@_conditional_filter.register
def _(drift: ALRNN, model: PALRNN, x: Floats, particles: int, drive: Floats | None) -> ConditionalFilter:
    if not model.is_standard:
        return reference_conditional.ConditionalFilter(model, x, particles, drive)
    return FastConditionalFilter(model, x, particles, drive)


class FastConditionalFilter:
    """The conditional filter for AL-RNNs with diagonal noise, with room for the beliefs of its particles."""

    def __init__(self, model: PALRNN, x: Floats, particles: int, drive: Floats | None = None) -> None:
        latent, gated, steps = model.drift.latent_dim, model.drift.gated, len(x) - 1
        self._x, self._system, self._room = x, driven_arrays(filter_arrays(model), drive), workspace(model)
        self._start = initial_bundles(self._system, model, x[0], particles)
        self._mean, self._cov = (aligned(array.shape) for array in self._start)
        self._inputs = aligned((steps, len(self._start[0]), gated, LANES))
        self._ancestors = np.zeros((steps, particles), dtype=np.int32)
        self._padded, dim = path_arrays(model, drive), padded(latent)
        self._basis = aligned((dim, dim))
        self._basis[:latent, :latent] = self._system.basis
        self._messages = np.empty((steps, (latent + 1) * (latent + 2) // 2))

    def sweep(self, path: Floats, key: int) -> Floats:
        """Return the path that follows ``path (T-1, P)`` in the chain, with the random stream ``key``."""
        after = path.copy()
        kernels.path_messages(self._padded, self._basis, self._x, after, self._messages)
        self._mean[:], self._cov[:] = self._start
        lived = kernels.sweep(
            self._system,
            np.uint64(key),
            self._x,
            self._messages,
            self._mean,
            self._cov,
            self._room,
            self._inputs,
            self._ancestors,
            after,
        )
        if not lived:
            raise FilterDiedError(
                "all particles of the conditional filter died: the model explodes on this segment"
            )
        return after
