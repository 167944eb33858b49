"""What the paper's filter leaves out: the evidence that is gained when gates inform the state."""

from __future__ import annotations

import sys

import numpy as np
from lorenz_model import trained
from matplotlib.figure import Figure

from palrnn.engine.style import BLUE, save_figure, styled
from palrnn.inference import windowed_evidence
from palrnn.model import PALRNN

model, _, test = trained()
gate_stds = np.geomspace(0.05, 1.5, 7)
gains = []
for gate_std in gate_stds:
    noisy = PALRNN(model, process=0.1, observation=0.1, gate_std=gate_std)
    paper, exact = (
        windowed_evidence(noisy, test, 50, windows=16, particles=128, target=target, seed=0).per_window
        for target in ("paper", "exact")
    )
    gains.append(1000 * (exact - paper))
mean = np.mean(gains, axis=1)
error = np.std(gains, axis=1, ddof=1) / np.sqrt(np.shape(gains)[1])

with styled():
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot()
    axes.errorbar(gate_stds, mean, 2 * error, fmt="o-", color=BLUE, capsize=3)
    axes.axhline(0, color="0.6", linewidth=0.8)
    axes.set(xscale="log", xlabel="gate noise", ylabel="exact minus paper (millinats per step and dimension)")
    axes.set_title("evidence gained when gates inform the state")
save_figure(figure, sys.argv[1] if len(sys.argv) > 1 else "two_targets.png")
