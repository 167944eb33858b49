"""Random streams that do not depend on the number of workers or the order of tasks."""

from __future__ import annotations

import zlib

import numpy as np

from palrnn.engine.checks import as_int


def generator(seed: int, *stream: int | str) -> np.random.Generator:
    """Return the random generator of ``seed``, or of one of its streams, told apart by numbers and names.

    ``generator(7, 2, 0)`` is what ``SeedSequence(7).spawn(3)[2].spawn(1)[0]`` would give: independent of
    ``generator(7)`` and of every other stream, and reachable without drawing the others first. A function
    that may be given the same seed as its neighbours names its stream: ``generator(7, "observation noise")``.
    """
    return np.random.default_rng(_sequence(seed, stream))


def kernel_seed(seed: int, *stream: int | str) -> int:
    """Return a 32-bit seed for something that has a stream of its own and takes a seed, like a kernel."""
    return int(_sequence(seed, stream).generate_state(1)[0])


def _sequence(seed: int, stream: tuple[int | str, ...]) -> np.random.SeedSequence:
    key = tuple(_number(part) for part in stream)
    return np.random.SeedSequence(as_int(seed, "seed", most=None), spawn_key=key)


def _number(part: int | str) -> int:
    return zlib.crc32(part.encode()) if isinstance(part, str) else as_int(part, "stream", most=None)
