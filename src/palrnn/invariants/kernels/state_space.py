"""Points into numbered bins."""

from __future__ import annotations

from palrnn.engine.kernel import copy, kernel


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
def bounds(x, low, high):
    """Write the least and the greatest value of each column of ``x (T, N)`` into ``low`` and ``high``."""
    copy(x[0], low)
    copy(x[0], high)
    for t in range(1, x.shape[0]):
        for n in range(x.shape[1]):
            low[n] = min(low[n], x[t, n])
            high[n] = max(high[n], x[t, n])
