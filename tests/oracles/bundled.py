"""Beliefs in bundles, written down as plain matrices."""

import numpy as np

from palrnn.engine.vector_code import LANES
from palrnn.inference.kernels.beliefs import place


def lanes_at(covs, i, j):
    """Entry (i, j) of the covariances of all lanes of all bundles, ``(bundles, LANES)``."""
    at = place(min(i, j), max(i, j))
    return covs[:, at : at + LANES]


def covariances(system, covs, particles):
    """The covariances of z of the first ``particles``, ``(particles, M, M)``; ``covs (bundles, size)``."""
    dim = len(system.basis)
    dense = np.empty((len(covs), LANES, dim, dim))
    for i in range(dim):
        for j in range(dim):
            dense[:, :, i, j] = lanes_at(covs, i, j)
    return (system.basis @ dense.reshape(-1, dim, dim) @ system.basis.T)[:particles]
