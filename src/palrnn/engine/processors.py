"""What this machine lends to this process: how many processors, and how wide their registers are."""

from __future__ import annotations

import os

import llvmlite.binding
from numba import config


def available_processors() -> int:
    """The number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def has_wide_registers() -> bool:
    """Whether compiled kernels may use registers of 64 bytes (AVX-512).

    That is for the processor to say, or for Numba's settings (``NUMBA_CPU_NAME``, ``NUMBA_CPU_FEATURES``,
    ``NUMBA_ENABLE_AVX``).
    """
    features = getattr(config, "CPU_FEATURES", None)
    if features is not None:
        return "+avx512f" in features.split(",")
    if getattr(config, "CPU_NAME", None) == "generic" or not getattr(config, "ENABLE_AVX", True):
        return False
    try:
        return bool(llvmlite.binding.get_host_cpu_features().get("avx512f", False))
    except RuntimeError:  # a processor that LLVM cannot describe
        return False
