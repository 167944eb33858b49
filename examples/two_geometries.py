"""Two information matrices of one model on one segment: what each objective thinks that it knows."""

from __future__ import annotations

import sys
import warnings

import numpy as np
from lorenz_model import trained
from matplotlib.figure import Figure

from palrnn.engine.style import BLUE, VERMILION, save_figure, styled
from palrnn.geometry import IndefiniteInformationWarning, curvature_gap, itf_fisher, observed_information
from palrnn.model import PALRNN

model, _, test = trained()
segment = test[:200]
noisy = PALRNN(model, process=0.1, observation=0.1, gate_std=0.1)
itf = itf_fisher(model, segment, tau=16, observation_std=0.1)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", IndefiniteInformationWarning)
    information = observed_information(noisy, segment, particles=128, paths=32, states_per_path=32)
spectra = {
    "teacher forcing": (np.linalg.eigvalsh(itf)[::-1], BLUE, "-"),
    "marginal likelihood": (np.linalg.eigvalsh(information.observed / 200)[::-1], VERMILION, "--"),
}

with styled():
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot()
    for name, (values, colour, dash) in spectra.items():
        positive = values[values > 1e-6]
        axes.semilogy(np.arange(1, len(positive) + 1), positive, dash, color=colour, label=name)
    gap = curvature_gap(itf, information.observed, steps=200)
    axes.set(xlabel="direction, sharpest first", ylabel="information per step")
    axes.set_title(f"traces differ by {gap:.1f} decades")
    axes.legend()
save_figure(figure, sys.argv[1] if len(sys.argv) > 1 else "two_geometries.png")
