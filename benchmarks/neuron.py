"""A neuron seen at a tenth of its samples: learned from the gaps, and from values interpolated over them.

    python benchmarks/neuron.py --runs build/neuron --seeds 5 --write docs/gaps.md --picture docs/pictures/neuron.png

A leaky integrate-and-fire neuron, V' = (I - V) / tau_m with I = 1.5 and tau_m = 20, fires at V = 1 and starts again at 0; it is
sampled every 0.5 of time, 44 times in a period, from its exact solution and without noise. Of 10,000 samples to learn from a random
tenth is seen. The same AL-RNN (M = 20 units, P = 10 gates, the same start, settings, number of updates and number of forcings
tried) learns from what was seen, with gaps, and from the straight lines between what was seen. A third column goes on from the
gaps by evidence (particle-SAEM on the same samples). Judged on 10,000 samples that follow, all of them:
D_stsp over 30 bins and D_H of a free run of that length, after 1,000 steps, and the mean absolute error of forecasts 1 to 20 steps ahead, in
standard deviations. One JSON file per model is kept, so the command continues where it stopped.
"""

from __future__ import annotations

import argparse
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from palrnn.data import Standardizer
from palrnn.engine.files import write_text
from palrnn.engine.plain import plain
from palrnn.engine.progress import quiet
from palrnn.engine.style import BLACK, BLUE, GREEN, VERMILION, save_figure, styled
from palrnn.forcing import TrainConfig, TrainingDivergedError, train
from palrnn.invariants import dstsp, spectrum_distance
from palrnn.model import ALRNN, Forcing, PALRNN, load_checkpoint, save_checkpoint
from palrnn.model.engine import advance
from palrnn.tuning import SAEMConfig, saem

BEGIN, END = "<!-- table of benchmarks/neuron.py -->", "<!-- end of neuron -->"
DRIVE, MEMORY, DT, ROWS, SEEN, DISCARD, AHEAD = 1.5, 20.0, 0.5, 10_000, 0.1, 1000, 20
SETTINGS: dict[str, Any] = {"latent_dim": 20, "gated": 10, "updates": 20_000, "input_noise": 0.0}
FORCINGS = {
    "every step": Forcing.identity(1),
    "every 4th": Forcing.identity(4),
    "every 10th": Forcing.identity(10),
    "every 16th": Forcing.identity(16),
    "every step by 0.1": Forcing.generalised(0.1),
}
LEARNED = ("from interpolated values", "from gaps", "from gaps, then by evidence")
COLOURS = (VERMILION, BLUE, GREEN)


def neuron(first: int, rows: int) -> np.ndarray:
    """Return samples ``first .. first + rows - 1`` of the membrane potential, (rows, 1), exactly."""
    period = MEMORY * np.log(DRIVE / (DRIVE - 1.0))
    phase = (DT * np.arange(first, first + rows)) % period
    return DRIVE * (1.0 - np.exp(-phase / MEMORY))[:, None]


@cache
def parts() -> dict[str, np.ndarray]:
    """Return the series to learn from and the one to judge by, in the units of what was seen."""
    x, times = neuron(0, ROWS), np.arange(ROWS)
    seen = np.random.default_rng(1).random(ROWS) < SEEN
    seen[0] = True
    units = Standardizer.fit(x[seen])
    gappy = units.transform(np.where(seen[:, None], x, np.nan))
    filled = np.interp(times, times[seen], gappy[seen, 0])[:, None]
    truth = units.transform(neuron(ROWS, ROWS + AHEAD))
    return {"from gaps": gappy, "from interpolated values": filled, "truth": truth}


def scores(model: ALRNN) -> dict[str, float]:
    """Return D_stsp, D_H and the mean absolute error of forecasts."""
    truth = parts()["truth"]
    starts = np.arange(0, ROWS, 20)
    ahead = advance(model, model.embed(truth[starts]), AHEAD + 1)[1:, :, :1]
    seen = np.stack([truth[starts + k] for k in range(1, AHEAD + 1)])
    run = model.rollout(truth[0], ROWS, discard=DISCARD)
    error = float(np.abs(ahead - seen).mean())
    if run.diverged:
        return {"dstsp": np.inf, "spectrum": np.nan, "mae": error}
    free, truth = run.states[:, :1], truth[:ROWS]
    return {"dstsp": dstsp(free, truth).value, "spectrum": spectrum_distance(free, truth), "mae": error}


def trained(learned: str, forcing: str, seed: int, updates: int) -> ALRNN:
    """Return the model of one way to learn, one forcing and one seed."""
    config = TrainConfig(**(SETTINGS | {"updates": updates}), forcing=FORCINGS[forcing], seed=seed)
    return train(parts()[learned], config, progress=quiet).model
