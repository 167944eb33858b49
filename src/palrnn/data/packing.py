"""Trials as bytes, which travel to the workers of a sweep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from safetensors.numpy import load, save

from palrnn.engine.checks import Floats


def pack(trials: Sequence[Floats]) -> bytes:
    """Return ``trials``, each ``(T_k, N)``, as bytes."""
    return save({f"trial{k:06d}": np.ascontiguousarray(trial) for k, trial in enumerate(trials)})


def unpack(data: bytes) -> list[Floats]:
    """Return the trials of `pack`."""
    arrays: Mapping[str, Floats] = load(data)
    return [arrays[name] for name in sorted(arrays)]
