"""Where along a series the gates are uncertain: the filtering entropy of the switching code, in bits."""

from __future__ import annotations

import sys

import numpy as np
from lorenz_model import trained
from matplotlib.figure import Figure

from palrnn.engine.style import BLACK, BLUE, VERMILION, save_figure, styled
from palrnn.inference import rbpf
from palrnn.model import PALRNN

model, _, test = trained()
noisy = PALRNN(model, process=0.05, observation=0.05, gate_std=0.1)
filtered = rbpf(noisy, test[:400], particles=256, seed=0)
time = np.arange(1, 400) * 0.01

with styled():
    figure = Figure(figsize=(8, 4), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    above.plot(time, test[1:400, 0], color=BLACK)
    above.set(ylabel="x (standardised)", title="a held-out series")
    below.plot(time, filtered.code_entropy, color=BLUE, label="particle filter")
    below.axhline(np.log2(256), color=VERMILION, linestyle="--", label="bound: log2 of 256 particles")
    below.set(xlabel="time", ylabel="code entropy (bits)", title="how uncertain the gates are", ylim=(0, 11))
    below.legend(loc="upper right", ncols=2)
save_figure(figure, sys.argv[1] if len(sys.argv) > 1 else "gate_uncertainty.png")
