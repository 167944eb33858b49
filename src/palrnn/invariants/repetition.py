"""Whether a series is a cycle seen through noise: does it come back to itself as well later as at first?

White noise changes the autocovariance at lag 0 only. So of a periodic series, however noisy, the highest
peaks are as high at long lags as at short ones; those of a chaotic series fall, of a phase-coherent one like
Rössler's to four fifths. Columns are pooled, so that those with dynamics speak for those that are noise.
Where nothing stands out of what noise alone would show, the answer is no.
"""

from __future__ import annotations

import numpy as np

from palrnn.data import autocorrelation
from palrnn.engine.checks import Floats

#: Late peaks of a cycle are at least this part of the early ones; after its period a series is back so far.
_LATE, _BACK = 0.9, 0.8
# how far a peak has to stand out, in standard errors of the autocorrelations of white noise
_SEEN = 8.0
_LEAST = 40


class Repetition:
    """What a series ``x (T, N)`` says about being periodic; NaN is not observed."""

    def __init__(self, x: Floats) -> None:
        moving = x[:, np.nanstd(x, axis=0) > 0]
        self._memory: Floats = np.zeros(1)
        self.periodic = False
        if len(moving) < _LEAST or moving.shape[1] == 0:
            return
        rows, columns = moving.shape
        self._memory = autocorrelation(moving, rows // 2).sum(axis=1)
        early, late = self._memory[1 : rows // 4].max(), self._memory[rows // 4 :].max()
        seen = early > _SEEN * np.sqrt(2.0 * columns / rows)
        self.periodic = bool(seen and late >= _LATE * early)

    def after(self, period: int) -> bool:
        """Whether the series repeats itself after ``period`` steps, or one more or less."""
        if not self.periodic or not 1 <= period < len(self._memory):
            return False
        peak = self._memory[max(1, period - 1) : period + 2].max()
        return bool(peak >= _BACK * self._memory[1:].max())
