"""A neuron seen at a tenth of its samples: learning from the gaps, and from values interpolated over them.

A leaky integrate-and-fire neuron, V' = (I - V) / tau with a spike and a reset at V = 1. Interpolation draws a
ramp where the reset was, and a model learns the ramp. Without it the model is forced where something was
seen, and its loss counts what was seen.
"""

from __future__ import annotations

import sys

import numpy as np
from matplotlib.figure import Figure

from palrnn.data import Standardizer
from palrnn.engine.progress import quiet
from palrnn.engine.style import BLACK, BLUE, VERMILION, save_figure, styled
from palrnn.forcing import TrainConfig, train
from palrnn.invariants import dstsp, spectrum_distance
from palrnn.model import Forcing

STEPS, SHOWN = 20_000, 260


def neuron(steps: int, dt: float = 0.5, drive: float = 1.5, memory: float = 20.0) -> np.ndarray:
    """Return the membrane potential, (steps, 1)."""
    V, out = 0.1, np.empty((steps, 1))
    for t in range(steps):
        V += dt * (drive - V) / memory
        V = 0.0 if V >= 1.0 else V
        out[t] = V
    return out


x = neuron(STEPS)
seen = np.random.default_rng(1).random(STEPS) < 0.1
seen[0] = True
times = np.arange(STEPS)
gappy = np.where(seen[:, None], x, np.nan)
filled = np.interp(times, times[seen], x[seen, 0])[:, None]
half = STEPS // 2
units = Standardizer.fit(gappy[:half])
truth = units.transform(x[half:])
# forced wherever something was seen; interpolated values, which are everywhere, every ten steps
settings = {"latent_dim": 20, "gated": 10, "updates": 8_000, "input_noise": 0.0}
models = {
    "learned from gaps": train(
        units.transform(gappy[:half]), TrainConfig(forcing=Forcing.identity(1), **settings), progress=quiet
    ).model,
    "learned from interpolated values": train(
        units.transform(filled[:half]), TrainConfig(forcing=Forcing.identity(10), **settings), progress=quiet
    ).model,
}

with styled():
    figure = Figure(figsize=(6.4, 4.6), layout="constrained")
    panels = figure.subplots(3, 1, sharex=True, sharey=True)
    panels[0].plot(x[half : half + SHOWN], color="0.7")
    dots = np.flatnonzero(seen[half : half + SHOWN])
    panels[0].plot(dots, x[half + dots], "o", color=BLACK, markersize=3)
    panels[0].set_title("the neuron, and the tenth of its samples that are seen")
    for axes, (name, model), colour in zip(panels[1:], models.items(), (BLUE, VERMILION), strict=True):
        run = model.rollout(truth[0], len(truth)).states[:, :1]
        free = units.inverse(run)
        axes.plot(x[half : half + SHOWN], color="0.85")
        axes.plot(free[:SHOWN], color=colour)
        score = dstsp(free[1000:], x[half + 1000 : half + len(free)]).value
        distance = spectrum_distance(free[1000:], x[half + 1000 : half + len(free)])
        axes.set_title(f"free run, {name}: $D_{{stsp}}$ {score:.2f}, $D_H$ {distance:.2f}")
    panels[2].set_xlabel("step")
    figure.supylabel("membrane potential")
save_figure(figure, sys.argv[1] if len(sys.argv) > 1 else "gaps.png")
