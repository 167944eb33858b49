"""`LyapunovSpectrum`: exponents with their errors, their dimension, and whether there is chaos."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from palrnn.engine.checks import Floats

#: The log of the growth along a run from which on it is chaos: on a cycle what is left of it is about one.
GROWN = 5.0
#: Steps after which a run without chaos is told from one with little of it.
LONG_EXPONENT = 50_000


class DivergenceError(ArithmeticError):
    """A rollout that left every bound, after ``step`` steps, and so has no invariants."""

    def __init__(self, step: int) -> None:
        super().__init__(step)
        self.step = step

    def __str__(self) -> str:
        return f"the rollout diverged after {self.step} steps: it has no Lyapunov exponents"


@dataclass(frozen=True, eq=False)
class LyapunovSpectrum:
    """The k largest Lyapunov exponents, per unit of time, in descending order.

    ``exponents (k,)``; ``stderr (k,)`` from the slow changes of growth between stretches; ``trace (n, k)``,
    the estimate after each of ``times (n,)``; ``dimension``, the number of exponents the system has. A
    direction that some Jacobian annihilates has the exponent -inf (with standard error 0), never NaN.
    ``flow`` says that they are of the flow that a model samples, and not of the map that it is.
    """

    exponents: Floats
    stderr: Floats
    trace: Floats
    times: Floats
    dimension: int
    flow: bool = False

    @property
    def largest(self) -> float:
        """The largest exponent."""
        return float(self.exponents[0])

    @property
    def kaplan_yorke(self) -> float | None:
        """The Kaplan-Yorke dimension ``j + (l_1 + ... + l_j) / |l_{j+1}|``.

        j is the last index whose sum is not negative. None if the exponents computed do not reach j + 1.
        """
        return kaplan_yorke_dimension(self.exponents, self.dimension)

    @property
    def neutral(self) -> float:
        """How far the exponent nearest to zero is from it, in parts of the largest, from 0 to 1.

        A chaotic flow has one that is zero, along its own direction, and so has a good model of its samples.
        One that is not tells that the slopes of the model are rough, and that the exponents of its map are
        not to be believed; it says nothing of those of the flow, one of which is zero by itself. 0 where
        nothing has grown much along the run: there is no chaos then; and where all that were computed are
        positive.
        """
        return neutral_part(self.exponents, float(self.times[-1]) if len(self.times) else np.inf)

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{e:.4g} ± {s:.2g}" for e, s in zip(self.exponents[:4], self.stderr[:4], strict=True)
        )
        more = f", ... ({len(self.exponents)} of {self.dimension})" if len(self.exponents) > 4 else ""
        dimension = self.kaplan_yorke
        words = "not reached" if dimension is None else f"{dimension:.4g}"
        of = " of the flow" if self.flow else ""
        return f"LyapunovSpectrum({shown}{more}{of}; Kaplan-Yorke dimension {words})"


def has_grown(largest: float, time: float) -> bool:
    """Return whether what grew at the rate ``largest`` for so long has grown so much that it is chaos."""
    return largest * time > GROWN


def neutral_part(exponents: Floats, time: float) -> float:
    """Return `LyapunovSpectrum.neutral` of descending ``exponents (k,)`` of a run of so much ``time``."""
    largest, last = float(exponents[0]), float(exponents[-1])
    if not has_grown(largest, time) or last > 0:  # if all are positive, that of zero is not among them
        return 0.0
    return float(np.abs(exponents).min() / largest)


def kaplan_yorke_dimension(exponents: ArrayLike, dimension: int | None = None) -> float | None:
    """Return the Kaplan-Yorke dimension of descending ``exponents (k,)``, out of ``dimension`` (default k).

    None if the sum of the k exponents is not negative and there are more.
    """
    values = np.asarray(exponents, dtype=np.float64)
    dimension = len(values) if dimension is None else dimension
    total = 0.0
    for j, exponent in enumerate(values):
        if total + exponent < 0:
            return j + total / abs(float(exponent))
        total += float(exponent)
    return float(dimension) if len(values) == dimension else None
