"""Twenty flows of `dysts`, 15,000 rows each: palrnn with its defaults, after a search, and a reservoir."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import palrnn
from palrnn.engine.progress import quiet
from palrnn.invariants import lyapunov_spectrum
from palrnn.runs import Reconstruction
from palrnn.searches.parts import parts

from .judge import EXPONENT_STEPS, judged
from .reservoir import searched
from .systems import TWENTY, Flow

#: Updates of a search, for which five minutes of two idle cores are enough, and seconds of processor time of
#: a reservoir, which takes them all.
UPDATES, SECONDS = 300_000, 600.0
FAMILIES = ("alrnn", "shallow")
TEST_FRACTION, DEFAULT_SEEDS = 0.1, 3


def jobs(_: list[Path]) -> Iterator[tuple[str, str, int, Callable[[], dict[str, Any]]]]:
    """Yield name, method, seed and what to run."""
    for name in TWENTY:
        for seed in range(DEFAULT_SEEDS):
            yield name, "default", seed, partial(default, name, seed)
        yield name, "search", 0, partial(found, name)
        yield name, "reservoir", 0, partial(reservoir, name)


def default(name: str, seed: int) -> dict[str, Any]:
    """Train once with the settings of `reconstruct`."""
    flow = Flow(name)
    begun = time.perf_counter()
    try:
        result = palrnn.reconstruct(
            flow.rows, dt=flow.dt, seed=seed, test_fraction=TEST_FRACTION, progress=quiet
        )
    except palrnn.TrainingDivergedError as error:
        return {"alive": False, "good": False, "diverged": error.update}
    return {"seconds": time.perf_counter() - begun} | _judged(result, flow)


def found(name: str) -> dict[str, Any]:
    """Search, in this process, and judge the winner."""
    flow = Flow(name)
    begun, used = time.perf_counter(), time.process_time()
    result = palrnn.search(
        flow.rows,
        dt=flow.dt,
        updates=UPDATES,
        families=FAMILIES,
        workers=1,
        test_fraction=TEST_FRACTION,
        progress=quiet,
    )
    spent = {"seconds": time.perf_counter() - begun, "processor_seconds": time.process_time() - used}
    return spent | _judged(result.best, flow) | {"settings": result.table[0], "verdict": str(result.verdict)}


def reservoir(name: str) -> dict[str, Any]:
    """Search over echo-state networks for as long, and judge the winner."""
    flow = Flow(name)
    data = parts([flow.rows[: round((1 - TEST_FRACTION) * len(flow.rows))]])
    begun, used = time.perf_counter(), time.process_time()
    network, settings = searched(data, SECONDS, 0)
    spent = {"seconds": time.perf_counter() - begun, "processor_seconds": time.process_time() - used}
    scale, dim = data.standardizer, flow.rows.shape[1]
    network.remember(scale.transform(flow.stretches[0]))

    def exponents(start: np.ndarray) -> np.ndarray:
        return network.exponents(start, EXPONENT_STEPS, dim, flow.dt)

    with np.errstate(over="ignore", invalid="ignore"):
        return spent | judged(network, scale, flow, exponents) | {"settings": settings}


def _judged(result: Reconstruction, flow: Flow) -> dict[str, Any]:
    def exponents(start: np.ndarray) -> np.ndarray:
        dim = flow.rows.shape[1]
        return lyapunov_spectrum(result.drift, start, steps=EXPONENT_STEPS, dt=flow.dt, k=dim).exponents

    return judged(result.drift, result.standardizer, flow, exponents) | {"tau": result.forcing.interval}
