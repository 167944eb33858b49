"""Recordings: what packages carry, and files that are given on the command line.

The Santa Fe laser is in reservoirpy, the yearly sunspots are in statsmodels. Judged by palrnn's own scorecard
on the held-out part; and, as the public AL-RNN code does, by runs as long as the whole series against all of
it, with 8 bins per coordinate.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import palrnn
from palrnn.data import delay_embed
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
    x = source()
    result = palrnn.reconstruct(x, seed=seed, progress=quiet)
    return {"seconds": time.perf_counter() - begun} | _scored(result, x)


def found(source: Callable[[], np.ndarray]) -> dict[str, Any]:
    """Search, in this process."""
    begun = time.perf_counter()
    x = source()
    result = palrnn.search(x, updates=UPDATES, workers=1, progress=quiet)
    return {"seconds": time.perf_counter() - begun} | _scored(result.best, x) | {"settings": result.table[0]}


def _scored(result: Reconstruction, x: np.ndarray) -> dict[str, Any]:
    card = result.invariants()
    over, alive = card.over_starts, card.viability
    assert over is not None
    assert alive is not None
    spectrum = card.hard.map_lyapunov or card.hard.lyapunov  # as elsewhere in the tables
    found = {
        "alive": alive.viable,
        "fates": alive.counts,
        "verdict": str(result.verdict()),
        "good": result.verdict().good,
        "dstsp": float(np.median(over.dstsp)),
        "spectrum_distance": float(np.median(over.spectrum_distance)),
        "floor": card.dstsp_floor.median,
        "spectrum_floor": card.spectrum_floor.median,
        "exponents": [None if spectrum is None else spectrum.largest],
        "length": over.length,
        "columns": result.held.shape[1],
    }
    data = result.record.data
    truth = result.standardizer.transform(delay_embed(x, data.lags, data.delay or 1))
    if truth.shape[1] <= 6:
        starts = result.drift.embed(spread_starts(truth, 10))
        runs = advance(result.drift, starts, 1000 + len(truth))[1000:, :, : truth.shape[1]].swapaxes(0, 1)
        ended = not np.isfinite(runs).all()
        found["whole_dstsp"] = None if ended else float(np.median([_eight(run, truth) for run in runs]))
        spectra = [1.0 if ended else spectrum_distance(run, truth) for run in runs]
        found["whole_spectrum_distance"] = float(np.median(spectra))
        half = len(truth) // 2
        found["whole_floor"] = _eight(truth[:half], truth[half:])
    return found


def _eight(run: np.ndarray, truth: np.ndarray) -> float:
    return dstsp(run, truth, bins=BINS).value
