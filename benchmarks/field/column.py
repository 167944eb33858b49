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
from palrnn.invariants import dstsp, lyapunov_spectrum, spectrum_distance, spread_starts, viability
from palrnn.invariants.state_space import delay_for
from palrnn.model.engine import advance

ROWS, DT, NOISE, SEEDS = 24_000, 0.01, 0.05, 5
LENGTH, STRETCHES, STARTS, LONG, DISCARD = 20_000, 7, 10, 100_000, 1000
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
    x, (truth, *others) = series()
    begun = time.perf_counter()
    result = palrnn.reconstruct(x, dt=DT, seed=seed, progress=quiet)
    found: dict[str, Any] = {"seconds": time.perf_counter() - begun}
    model, scale, data = result.drift, result.standardizer, result.record.data
    lags, delay = data.lags, data.delay or 1
    starts = spread_starts(scale.transform(delay_embed(truth, lags, delay)), STARTS)
    life = viability(model, starts, LONG, data=scale.transform(delay_embed(x, lags, delay)))
    runs = advance(model, model.embed(starts), DISCARD + LENGTH)[DISCARD:, :, : model.observed_dim]
    space = delay_for(truth)
    scores, spectra = [], []
    for run in runs.swapaxes(0, 1):
        whole = np.isfinite(run).all() and np.abs(run).max() < 1e6 and run[:, 0].std() > 0
        raw = scale.inverse(run)[:, :1] if whole else None
        scores.append(np.inf if raw is None else dstsp(raw, truth, delay=space).value)
        spectra.append(1.0 if raw is None else spectrum_distance(raw, truth))
    floor = float(np.median([dstsp(each, truth, delay=space).value for each in others]))
    largest = np.nan
    if life.counts.get("diverges", 0) == 0:
        largest = lyapunov_spectrum(model, starts[0], steps=50_000, dt=DT, k=1).largest
    error = abs(largest - SYSTEM.lyapunov) / SYSTEM.lyapunov
    return found | {
        "alive": life.viable,
        "fates": life.counts,
        "dstsp": float(np.median(scores)),
        "dstsp_range": [float(np.min(scores)), float(np.max(scores))],
        "floor": floor,
        "spectrum_distance": float(np.median(spectra)),
        "spectrum_floor": float(np.median([spectrum_distance(each, truth) for each in others])),
        "exponents": [largest],
        "true_exponents": [SYSTEM.lyapunov],
        "exponent_error": error,
        "good": bool(life.viable and np.median(scores) <= floor + 0.5 and error <= 0.2),
        "lags": lags,
        "delay": delay,
        "rows": ROWS,
    }
