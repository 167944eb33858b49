"""Recordings: what packages carry, and files that are given on the command line.

The Santa Fe laser is in reservoirpy, the yearly sunspots are in statsmodels. Judged by palrnn's own scorecard
on the held-out part, with 8 bins per coordinate beside its usual protocol, since recordings are short.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import palrnn
from palrnn.engine.progress import quiet
from palrnn.invariants import dstsp, spectrum_distance, spread_starts
from palrnn.model.engine import advance
from palrnn.runs import Reconstruction

SEEDS, UPDATES, BINS = 3, 600_000, 8


def _laser() -> np.ndarray:
    from reservoirpy.datasets import santafe_laser

    return np.asarray(santafe_laser(), dtype=np.float64)


def _sunspots() -> np.ndarray:
    from statsmodels.datasets import sunspots

    return sunspots.load_pandas().data[["SUNACTIVITY"]].to_numpy(dtype=np.float64)


PACKAGED = {"laser": _laser, "sunspots": _sunspots}


def jobs(files: list[Path]) -> Iterator[tuple[str, str, int, Callable[[], dict[str, Any]]]]:
    """Yield name, method, seed and what to run."""
    sources = PACKAGED | {file.stem: partial(palrnn.load_series, file) for file in files}
    for name, source in sources.items():
        for seed in range(SEEDS):
            yield name, "default", seed, partial(default, source, seed)
        yield name, "search", 0, partial(found, source)


def default(source: Callable[[], np.ndarray], seed: int) -> dict[str, Any]:
    """Train once with the settings of `reconstruct`."""
    begun = time.perf_counter()
    result = palrnn.reconstruct(source(), seed=seed, progress=quiet)
    return {"seconds": time.perf_counter() - begun} | _scored(result)


def found(source: Callable[[], np.ndarray]) -> dict[str, Any]:
    """Search, in this process."""
    begun = time.perf_counter()
    result = palrnn.search(source(), updates=UPDATES, workers=1, progress=quiet)
    return {"seconds": time.perf_counter() - begun} | _scored(result.best) | {"settings": result.table[0]}


def _scored(result: Reconstruction) -> dict[str, Any]:
    card = result.invariants()
    over, alive = card.over_starts, card.viability
    assert over is not None
    assert alive is not None
    found = {
        "alive": alive.viable,
        "fates": alive.counts,
        "verdict": str(result.verdict()),
        "good": result.verdict().good,
        "dstsp": float(np.median(over.dstsp)),
        "spectrum_distance": float(np.median(over.spectrum_distance)),
        "floor": card.dstsp_floor.median,
        "spectrum_floor": card.spectrum_floor.median,
        "exponents": [card.hard.lyapunov.largest if card.hard.lyapunov is not None else None],
        "length": over.length,
        "columns": result.held.shape[1],
    }
    # 8 bins per coordinate, against the whole held-out part
    truth = result.standardizer.transform(result.held)
    if truth.shape[1] <= 6:
        starts = result.drift.embed(spread_starts(truth, 10))
        runs = advance(result.drift, starts, 1000 + len(truth))[1000:, :, : truth.shape[1]].swapaxes(0, 1)
        whole = [run for run in runs if np.isfinite(run).all()]
        scores = [dstsp(run, truth, bins=BINS).value for run in whole]
        found["dstsp_8_bins"] = float(np.median(scores)) if len(whole) == len(runs) else None
        found["spectrum_distance_8"] = float(np.median([spectrum_distance(run, truth) for run in whole]))
    return found
