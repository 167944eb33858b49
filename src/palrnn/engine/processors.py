"""What this machine lends to this process: how many processors, and how wide their registers are."""

from __future__ import annotations

import os

import llvmlite.binding


def available_processors() -> int:
    """The number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def has_wide_registers() -> bool:
    """Whether registers hold 64 bytes (AVX-512)."""
    try:
        return bool(llvmlite.binding.get_host_cpu_features().get("avx512f", False))
    except RuntimeError:  # a processor that LLVM cannot describe
        return False
