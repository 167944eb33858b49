"""Timing for benchmarks on a noisy machine: contenders take turns, the best of each counts, ratios are printed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping


def best_times(contenders: Mapping[str, Callable[[], object]], *, rounds: int = 7) -> dict[str, float]:
    """Return each contender's best time in seconds over ``rounds`` interleaved calls, after one call to warm up."""
    for call in contenders.values():
        call()
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(rounds):
        for name, call in contenders.items():
            start = time.perf_counter()
            call()
            best[name] = min(best[name], time.perf_counter() - start)
    return best
