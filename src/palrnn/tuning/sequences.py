"""The data of the paper's fine-tuning study, and the windows that any data is cut into."""

from __future__ import annotations

import numpy as np

from palrnn.data import add_observation_noise, lorenz63
from palrnn.data.systems import lorenz63_system
from palrnn.engine.checks import Floats, as_float, as_int
from palrnn.engine.gaps import spaced_starts
from palrnn.engine.seeds import kernel_seed


def lorenz63_sequences(
    count: int = 4, *, steps: int = 5000, discard: int = 1000, observation_std: float = 0.085, seed: int = 0
) -> Floats:
    """Return the paper's tuning data: ``(count, steps - discard, 3)``, noisy Lorenz-63 in raw coordinates.

    Deterministic sequences from independent starts, the first ``discard`` of ``steps`` steps dropped. The
    noise of 0.085 is read in standardised units, like all the paper's noise levels: it is scaled by the
    deviations of the system.
    """
    count, discard = as_int(count, "count", least=1), as_int(discard, "discard")
    observation_std = as_float(observation_std, "observation_std", least=0.0)
    kept = as_int(steps, "steps", least=discard + 1) - discard
    scale = lorenz63_system().spread(0.01)
    return np.stack(
        [
            add_observation_noise(
                lorenz63(kept, discard=discard, seed=kernel_seed(seed, j, 0)),
                observation_std,
                scale=scale,
                seed=kernel_seed(seed, j, 1),
            )
            for j in range(count)
        ]
    )


def window_pool(
    sequences: list[Floats], length: int, name: str = "sequences", *, of: list[Floats] | None = None
) -> Floats:
    """Return non-overlapping windows ``(K, length + 1, N)``, each from a left boundary without gaps.

    With ``of``, series beside the sequences, as their inputs, the same windows of these.
    """
    return _cut(sequences, length + 1, length, name, of)


def stretches(sequences: list[Floats], length: int, *, of: list[Floats] | None = None) -> Floats:
    """Return non-overlapping stretches ``(B, length, N)`` for the forcing loss; none starts with a gap.

    With ``of``, series beside the sequences, as their inputs, the same stretches of these.
    """
    length = min(length, min(len(x) for x in sequences))
    return _cut(sequences, length, length, "sequences", of)


def _cut(sequences: list[Floats], rows: int, apart: int, name: str, of: list[Floats] | None = None) -> Floats:
    found = [
        y[start : start + rows]
        for x, y in zip(sequences, sequences if of is None else of, strict=True)
        for start in spaced_starts(x, rows, apart)
    ]
    if not found:
        raise ValueError(f"{name} must have a row without gaps that {rows - 1} rows follow, has none")
    return np.stack(found)
