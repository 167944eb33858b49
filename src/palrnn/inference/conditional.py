"""`ConditionalFilter`: from one gate path to the next, with the smoothing distribution as it was."""

from __future__ import annotations

import numpy as np

from palrnn.engine.checks import Floats
from palrnn.inference import conditional_kernels as kernels
from palrnn.inference.bundles import bundle_system, initial_bundles, room_for
from palrnn.inference.particle_filter import FilterDiedError
from palrnn.inference.system import aligned, padded, padded_system
from palrnn.inference.tile_kernels import LANES
from palrnn.model import PALRNN


class ConditionalFilter:
    """The conditional particle filter with ancestor sampling of a series ``x (T, N)`` (see its kernels).

    A path is an array of noisy gate inputs, ``(T-1, P)``, of which the gates are the signs. It holds room for
    the beliefs of its few ``particles``; two threads must not share one.
    """

    def __init__(self, model: PALRNN, x: Floats, particles: int) -> None:
        latent, gated, steps = model.drift.latent_dim, model.drift.gated, len(x) - 1
        self._x, self._system, self._room = x, bundle_system(model), room_for(model)
        self._start = initial_bundles(self._system, model, x[0], particles)
        self._beliefs = tuple(aligned(array.shape) for array in self._start)
        self._inputs = aligned((steps, len(self._start[0]), gated, LANES))
        self._ancestors = np.zeros((steps, particles), dtype=np.int32)
        self._padded, dim = padded_system(model), padded(latent)
        self._basis = aligned((dim, dim))
        self._basis[:latent, :latent] = self._system.basis
        self._messages = np.empty((steps, (latent + 1) * (latent + 2) // 2))

    def sweep(self, path: Floats, key: int) -> Floats:
        """Return the path that follows ``path`` in the chain, with the random stream ``key``."""
        after = path.copy()
        kernels.path_messages(self._padded, self._basis, self._x, after, self._messages)
        for array, first in zip(self._beliefs, self._start, strict=True):
            array[:] = first
        lived = kernels.sweep(
            self._system,
            np.uint64(key),
            self._x,
            self._messages,
            *self._beliefs,
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
