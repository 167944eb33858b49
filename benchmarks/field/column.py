"""Lorenz-63 from its first coordinate alone: 24,000 rows with 5 % noise, and `reconstruct` does the rest.

palrnn chooses the lags and the delay. Judged without noise, in the 3-D delay space of later stretches of
20,000 rows, from ten starts; the exponent along 50,000 steps against the true one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import palrnn
from palrnn.data import add_observation_noise, delay_embed, make_system
from palrnn.engine.progress import quiet
from palrnn.invariants import lyapunov_spectrum, spread_starts, viability
from palrnn.invariants.state_space import delay_for

from .judge import GOOD_EXCESS, LONG, STARTS, scored

ROWS, DT, NOISE, SEEDS = 24_000, 0.01, 0.05, 5
LENGTH, STRETCHES = 20_000, 7
SYSTEM = make_system("lorenz63")


def jobs(_: list[Path]) -> Iterator[tuple[str, str, int, Callable[[], dict[str, Any]]]]:
    """Yield name, method, seed and what to run."""
    for seed in range(SEEDS):
        yield "lorenz63 from x", "default", seed, partial(measured, seed)


@cache
def series() -> tuple[np.ndarray, list[np.ndarray]]:
    """Return noisy rows of x to train on, and clean stretches to judge by, raw."""
    clean = SYSTEM.simulate(ROWS, dt=DT, discard=10_000, seed=0)[:, :1]
    later = [
        SYSTEM.simulate(LENGTH, dt=DT, discard=10_000, seed=10 + k)[:, :1].copy() for k in range(STRETCHES)
    ]
    return add_observation_noise(clean, NOISE, seed=1), later


def measured(seed: int) -> dict[str, Any]:
    """Train once with the settings of `reconstruct`, and judge."""
    x, stretches = series()
    begun = time.perf_counter()
    result = palrnn.reconstruct(x, dt=DT, seed=seed, progress=quiet)
    found: dict[str, Any] = {"seconds": time.perf_counter() - begun}
    model, scale, data = result.drift, result.standardizer, result.record.data
    lags, delay = data.lags, data.delay or 1
    starts = spread_starts(scale.transform(delay_embed(stretches[0], lags, delay)), STARTS)
    life = viability(model, starts, LONG, data=scale.transform(delay_embed(x, lags, delay)))
    found |= scored(model, scale, starts, stretches, delay_for(stretches[0]))
    largest = np.nan
    if life.counts.get("diverges", 0) == 0:
        largest = lyapunov_spectrum(model, starts[0], steps=50_000, dt=DT, k=1).largest
    error = abs(largest - SYSTEM.lyapunov) / SYSTEM.lyapunov
    return found | {
        "alive": life.viable,
        "fates": life.counts,
        "exponents": [largest],
        "true_exponents": [SYSTEM.lyapunov],
        "exponent_error": error,
        "good": bool(life.viable and found["dstsp"] <= found["floor"] + GOOD_EXCESS and error <= 0.2),
        "lags": lags,
        "delay": delay,
        "rows": ROWS,
    }
