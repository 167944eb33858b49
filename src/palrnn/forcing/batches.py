"""Which sequences each update sees: contiguous stretches of the trials, uniformly at random with replacement.

The draws of update u depend on the seed and on u alone (they are made in blocks with a random stream each),
so training continues exactly from any update, however it is cut into pieces. A sequence may have gaps, but it
starts at a row that has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palrnn.engine.checks import Floats, as_trials
from palrnn.engine.gaps import possible_starts, refuse_empty_columns
from palrnn.engine.seeds import generator
from palrnn.forcing.config import TrainConfig

#: Updates per random stream, and the most that one kernel call makes.
BLOCK = 100
_STARTS, _NOISE = 1, 2


def training_trials(x: ArrayLike | Sequence[ArrayLike], length: int) -> list[Floats]:
    """Return ``x`` as a list of ``(T, N)`` trials of at least ``length`` rows and equal N.

    NaN is a gap; some sequence of ``length`` rows must start without one.
    """
    trials = as_trials(x, allow_nan=True)
    for i, trial in enumerate(trials):
        if len(trial) < length:
            name = "x" if len(trials) == 1 else f"x[{i}]"
            raise ValueError(f"{name} must have at least sequence_length = {length} steps, has {len(trial)}")
    refuse_empty_columns(trials, "x")
    if not any(len(possible_starts(trial, length)) for trial in trials):
        raise ValueError(
            f"x must have a row without gaps for a training sequence of sequence_length = {length} rows to "
            "start at, has none: give shorter sequences or fewer columns"
        )
    return trials


class Batches:
    """The batches of a training run on ``trials``, as numbers of ``kind``, reachable at any update.

    ``series (T, N)`` are all trials, ``drive (T, K)`` their external inputs.
    """

    def __init__(
        self,
        trials: list[Floats],
        config: TrainConfig,
        kind: Any = np.float64,
        inputs: Sequence[Floats | None] | None = None,
    ) -> None:
        self._config = config
        rows = sum(map(len, trials))
        driven = [part for part in inputs or () if part is not None]
        self.drive: NDArray[Any] = (np.concatenate(driven) if driven else np.empty((rows, 0))).astype(kind)
        with np.errstate(over="ignore"):  # the first loss will not be finite, and that error says what to do
            self.series: NDArray[Any] = np.concatenate(trials).astype(kind)
        self.whole = not bool(np.isnan(self.series).any())
        firsts = np.cumsum([0, *map(len, trials[:-1])])
        possible = [possible_starts(trial, config.sequence_length) for trial in trials]
        self._choices = np.concatenate([f + starts for f, starts in zip(firsts, possible, strict=True)])
        self._block, self._drawn = -1, (np.empty((0, 0), np.int64), np.empty((0, 0, 0, 0)))

    def draws(self, begin: int, end: int) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """Return the first rows ``(U, B)`` and input noise ``(U, K, B, N)`` (U = 0 if none) of some updates.

        ``begin .. end - 1`` must lie within one block.
        """
        block = begin // BLOCK
        if not begin < end <= (block + 1) * BLOCK:
            raise ValueError(f"begin and end must lie within one block of {BLOCK}, got {begin} and {end}")
        if block != self._block:
            self._block, self._drawn = block, (self._starts(block), self._noise(block))
        rows = slice(begin - block * BLOCK, end - block * BLOCK)
        starts, noise = self._drawn
        return np.ascontiguousarray(starts[rows]), np.ascontiguousarray(noise[rows])

    def _starts(self, block: int) -> NDArray[np.int64]:
        shape = (BLOCK, self._config.batch_size)
        chosen = generator(self._config.seed, _STARTS, block).integers(0, len(self._choices), shape)
        return np.asarray(self._choices[chosen], dtype=np.int64)

    def _noise(self, block: int) -> NDArray[Any]:
        config, seen = self._config, self.series.shape[1]
        inputs = (config.sequence_length - 1) // config.tau + 1
        if config.input_noise == 0:
            return np.empty((0, inputs, config.batch_size, seen), self.series.dtype)
        shape = (BLOCK, inputs, config.batch_size, seen)
        drawn: NDArray[Any] = generator(config.seed, _NOISE, block).standard_normal(shape, self.series.dtype)
        drawn *= self.series.dtype.type(config.input_noise)
        return drawn
