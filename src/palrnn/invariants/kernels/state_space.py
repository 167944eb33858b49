"""Points into numbered bins, and the log-density of a mixture of unit Gaussians."""

from __future__ import annotations

import math

import numpy as np

from palrnn.engine.kernel import kernel


@kernel
def cells(x, low, high, bins, first, closed, out):
    """Number the bins of ``x (T, N)`` in the box ``low (N,)`` to ``high (N,)``, into ``out (T,)``.

    A point's bin in dimension n is floor(bins (x_n - low_n) / (high_n - low_n)); its number is the sum of bin
    * bins^n. Only bins from ``first`` on count, and the upper edge belongs to the last bin if ``closed``.
    Return how many points have a bin, which fill the beginning of ``out``, and how many lie in the box.
    """
    kept, within = 0, 0
    for t in range(x.shape[0]):
        number, weight = 0, 1
        inside, counts = True, True
        for n in range(x.shape[1]):
            if not low[n] <= x[t, n] <= high[n]:
                inside = False
                break
            place = int(bins * ((x[t, n] - low[n]) / (high[n] - low[n])))
            # the division may round the upper edge to either side of its bin
            if x[t, n] == high[n] or place >= bins:
                place = bins - 1 if closed else bins
            counts = counts and first <= place < bins
            number += weight * place
            weight *= bins
        if inside:
            within += 1
            if counts:
                out[kept] = number
                kept += 1
    return kept, within


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
