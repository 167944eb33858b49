"""How well a share is known: of 8 data sets that were all covered, nobody knows that 100 % are."""

from __future__ import annotations

import math

# of 95 %, as a normal deviate
_NORMAL = 1.959963984540054


def wilson_interval(share: float, count: int) -> tuple[float, float]:
    """Return the 95 % interval of a probability, of which ``share`` was seen in ``count`` tries.

        (p + z^2 / 2n +- z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2 / n)

    Inside are the probabilities from which ``share`` is within z of their own deviations (Wilson, 1927).
    Unlike p +- z sqrt(p (1 - p) / n), Wald's, it does not shrink to nothing at 0 and 1.
    """
    square = _NORMAL**2 / count
    middle = share + 0.5 * square
    half = _NORMAL * math.sqrt(share * (1.0 - share) / count + 0.25 * square / count)
    return max(0.0, (middle - half) / (1.0 + square)), min(1.0, (middle + half) / (1.0 + square))
