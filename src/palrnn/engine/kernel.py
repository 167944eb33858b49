"""The one way in which palrnn compiles numerical kernels.

A kernel is a small function on plain arrays, compiled by Numba, that releases the GIL and is cached on disk.
The floating-point flags allow vectorised sums and fused multiply-adds. They do *not* assume the absence of NaN
and infinity (as ``fastmath=True`` would), because kernels must be able to notice divergence.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from numba import njit
from threadpoolctl import ThreadpoolController

F = TypeVar("F", bound=Callable[..., Any])

_FLAGS = {"reassoc", "contract", "arcp", "nsz"}


def kernel(function: F) -> F:
    """Compile ``function`` on first use: cached on disk, without the GIL, honest about NaN."""
    compiled: F = njit(cache=True, nogil=True, error_model="numpy", fastmath=_FLAGS)(function)
    return compiled


_pinned = threading.Event()


def pin_blas() -> None:
    """Give BLAS one thread in this process: the parallel axis is models and windows, not matrix rows.

    Called by every API function that runs kernels with matrix products. Idempotent and cheap after the first call.
    """
    if not _pinned.is_set():
        ThreadpoolController().limit(limits=1, user_api="blas")
        _pinned.set()


def compiled_before() -> bool:
    """Whether some palrnn kernel has been compiled and cached on this machine before."""
    package = Path(__file__).resolve().parent.parent
    places = [package] if "NUMBA_CACHE_DIR" not in os.environ else [Path(os.environ["NUMBA_CACHE_DIR"])]
    return any(next(place.rglob("*.nbi"), None) is not None for place in places)
