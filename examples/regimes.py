"""Where each switching code is at work: an AL-RNN is linear wherever the colour is constant."""

from __future__ import annotations

import sys

import numpy as np
from lorenz_model import trained
from matplotlib.figure import Figure

from palrnn.engine.style import PALETTE, save_figure, styled
from palrnn.invariants import symbolic_dynamics

model, standardizer, test = trained()
states = model.rollout(test[0], 8_000, discard=500).states
codes = model.codes(states)
symbols = symbolic_dynamics(codes)
names, index, counts = np.unique(codes, axis=0, return_inverse=True, return_counts=True)
busiest = np.argsort(-counts)[:6]
x = standardizer.inverse(states[:, :3])

with styled():
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot()
    index = index.ravel()  # NumPy 2.0 keeps an axis
    rest = ~np.isin(index, busiest)
    axes.scatter(x[rest, 0], x[rest, 2], s=1, color="0.8", label=f"{len(names) - len(busiest)} other codes")
    for colour, code in zip(PALETTE, busiest, strict=False):
        here = index == code
        word = "".join(str(int(bit)) for bit in names[code])
        axes.scatter(x[here, 0], x[here, 2], s=1, color=colour, label=f"{word}: {here.mean():.0%}")
    axes.set(xlabel="x", ylabel="z")
    axes.set_title(f"{len(names)} codes visited, {symbols.entropy_rate():.2f} bits per step")
    axes.legend(markerscale=6, loc="center left", bbox_to_anchor=(1, 0.5), title="code: share of time")
save_figure(figure, sys.argv[1] if len(sys.argv) > 1 else "regimes.png")
