"""Trials as bytes, which travel to the workers of a sweep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from safetensors.numpy import load, save

from palrnn.engine.checks import Floats


def pack(trials: Sequence[Floats], inputs: Sequence[Floats] | None = None) -> bytes:
    """Return ``trials``, each ``(T_k, N)``, and the external inputs of each, ``(T_k, K)``, as bytes."""
    named = {f"trial{k:06d}": trial for k, trial in enumerate(trials)}
    named |= {f"input{k:06d}": drive for k, drive in enumerate(inputs or ())}
    return save({name: np.ascontiguousarray(array) for name, array in named.items()})


def unpack(data: bytes) -> list[Floats]:
    """Return the trials of `pack`."""
    return _named(data, "trial")


def unpack_inputs(data: bytes) -> list[Floats] | None:
    """Return the inputs of `pack`, None where there are none."""
    return _named(data, "input") or None


def _named(data: bytes, kind: str) -> list[Floats]:
    arrays: Mapping[str, Floats] = load(data)
    return [arrays[name] for name in sorted(arrays) if name.startswith(kind)]
