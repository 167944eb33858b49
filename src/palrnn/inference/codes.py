"""Switching codes as the filter keeps them: one bit per gate in words of 64 bits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from palrnn.inference.kernels.one_belief import WORD


def words_of(codes: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Return ``codes (..., P)`` as unsigned words of 64 bits, ``(..., ceil(P / 64))``, at least one."""
    gated = codes.shape[-1]
    words = np.zeros((*codes.shape[:-1], max(1, -(-gated // WORD))), dtype=np.uint64)
    for j in range(gated):
        words[..., j // WORD] |= codes[..., j].astype(np.bool_).astype(np.uint64) << np.uint64(j % WORD)
    return words


def codes_of(words: NDArray[np.uint64], gated: int) -> NDArray[np.bool_]:
    """Return the bits of ``words (..., w)`` as booleans ``(..., P)``."""
    bits = [(words[..., j // WORD] >> np.uint64(j % WORD)) & np.uint64(1) for j in range(gated)]
    empty = np.zeros((*words.shape[:-1], 0), dtype=np.bool_)
    return np.stack(bits, axis=-1).astype(np.bool_) if bits else empty
