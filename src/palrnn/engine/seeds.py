"""Random streams that do not depend on the number of workers or the order of tasks."""

from __future__ import annotations

import numpy as np

from palrnn.engine.checks import as_int


def generator(seed: int, *stream: int) -> np.random.Generator:
    """Return the random generator of ``seed``, or of one of its numbered streams.

    ``generator(7, 2, 0)`` is what ``SeedSequence(7).spawn(3)[2].spawn(1)[0]`` would give: independent of
    ``generator(7)`` and of every other stream, and reachable without drawing the others first.
    """
    as_int(seed, "seed")
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=stream))


def kernel_seed(seed: int, *stream: int) -> int:
    """Return a 32-bit integer for ``np.random.seed`` inside a kernel."""
    as_int(seed, "seed")
    return int(np.random.SeedSequence(seed, spawn_key=stream).generate_state(1)[0])
