"""Lorenz-63 at the size of the literature's table: M = 20, tau = 16, 100,000 updates, P = 2, 5 and 10 gates.

Data and scores are those of the public code of this field: 100,000 rows of step 0.01 with observation noise
of 5 % to train on; judged without noise, from the first row of 100,000 others, over 100,000 steps after
25,000; D_stsp over 30 bins per coordinate (protocol "gtf"), D_H of spectra smoothed over 20 frequencies. What
the size leaves open is as in palrnn's defaults: rates from 3e-3 to 1e-5, clipping at 5, input noise 0.05, the
best of ten models on the way, measured on the rows to train on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from palrnn.data import Standardizer, add_observation_noise, make_system
from palrnn.engine.progress import quiet
from palrnn.forcing import TrainConfig, train
from palrnn.invariants import (
    dstsp,
    dstsp_floor,
    lyapunov_spectrum,
    spectrum_distance,
    spectrum_floor,
    spread_starts,
    viability,
)

ROWS, DT, NOISE, SEEDS, UPDATES, CHOSEN_ON = 100_000, 0.01, 0.05, 10, 100_000, 10_000
#: AL-RNN, medians of D_stsp and D_H by number of gates: arXiv 2602.15649.
PUBLISHED = {2: (3.84, 0.31), 5: (1.18, 0.14), 10: (0.23, 0.079)}
SYSTEM = make_system("lorenz63")


def jobs(_: list[Path]) -> Iterator[tuple[str, str, int, Callable[[], dict[str, Any]]]]:
    """Yield name, method, seed and what to run."""
    for gates in PUBLISHED:
        for seed in range(SEEDS):
            yield f"P{gates}", "published size", seed, partial(measured, gates, seed)


@cache
def series() -> tuple[np.ndarray, np.ndarray]:
    """Return noisy rows to train on and clean ones to judge by, in the units of the former."""
    seen = add_observation_noise(SYSTEM.simulate(ROWS, dt=DT, discard=10_000, seed=0), NOISE, seed=1)
    units = Standardizer.fit(seen)
    return units.transform(seen), units.transform(SYSTEM.simulate(ROWS, dt=DT, discard=10_000, seed=2))


def measured(gates: int, seed: int) -> dict[str, Any]:
    """Train one model and return its scores."""
    x, truth = series()
    config = TrainConfig(
        latent_dim=20,
        gated=gates,
        tau=16,
        updates=UPDATES,
        evaluate_every=UPDATES // 10,
        keep="best",
        optimizer="radam",
        seed=seed,
    )
    begun = time.perf_counter()
    model = train(x, config, heldout=x[-CHOSEN_ON:], progress=quiet).model
    found: dict[str, Any] = {"seconds": time.perf_counter() - begun}
    run = model.rollout(truth[0], ROWS, discard=ROWS // 4)
    life = viability(model, spread_starts(truth, 10), 100_000, data=x)
    found |= {"alive": life.viable, "fates": life.counts, "published": PUBLISHED[gates]}
    found["floor"] = dstsp_floor(SYSTEM, length=ROWS, pairs=5, dt=DT, protocol="gtf").median
    found["spectrum_floor"] = spectrum_floor(SYSTEM, length=ROWS, pairs=5, dt=DT).median
    if run.diverged:
        return found | {"dstsp": None, "spectrum_distance": 1.0}
    seen = run.states[:, : truth.shape[1]]
    found["dstsp"] = dstsp(seen, truth, protocol="gtf").value
    found["spectrum_distance"] = spectrum_distance(seen, truth)
    own = lyapunov_spectrum(model, truth[0], steps=50_000, dt=DT, k=1).largest
    return found | {"exponents": [own], "true_exponents": [SYSTEM.lyapunov]}
