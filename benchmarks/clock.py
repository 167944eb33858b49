"""Timing for benchmarks on a noisy machine: contenders take turns, and the best time of each counts."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping


def stay_on_one_core() -> None:
    """Keep this process, and the threads that it will start, on one core: some peers take all there are."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def aim(words: str, reached: bool) -> None:
    """Say whether an aim is reached; `run.py` lists those that are not."""
    print(f"aim, {words}: {'reached' if reached else 'MISSED'}", flush=True)


def figure(name: str, value: float, unit: str) -> None:
    """Say a figure that `run.py --record` keeps."""
    print(f"figure, {name}: {value:.4g} {unit}", flush=True)


def best_times(
    contenders: Mapping[str, Callable[[], object]],
    *,
    rounds: int = 7,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Return each contender's best time in seconds over ``rounds`` interleaved calls, after a first one.

    `time.process_time` as ``clock`` counts what all threads take, and not what else the machine does.
    """
    for call in contenders.values():
        call()
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(rounds):
        for name, call in contenders.items():
            start = clock()
            call()
            best[name] = min(best[name], clock() - start)
    return best
