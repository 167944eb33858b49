"""The log-density of a mixture of unit Gaussians."""

from __future__ import annotations

import math

import numpy as np

from palrnn.engine.kernel import kernel


@kernel
def log_density(points, centres, out):
    """out_i = log(1/T sum_t exp(-|points_i - centres_t|^2 / 2)), without the constant of the Gaussian.

    points (S, N), centres (T, N) -> out (S,). The largest term is taken out, so far points stay finite.
    """
    count, dim = centres.shape
    half = np.empty(count)
    for i in range(points.shape[0]):
        least = np.inf
        for t in range(count):
            total = 0.0
            for n in range(dim):
                step = points[i, n] - centres[t, n]
                total += step * step
            half[t] = 0.5 * total
            least = min(least, half[t])
        total = 0.0
        for t in range(count):
            if half[t] < least + 40.0:
                total += math.exp(least - half[t])
        out[i] = math.log(total / count) - least
