"""Two information matrices of one model on one segment: what each objective thinks that it knows."""

from __future__ import annotations

import sys

import numpy as np
from lorenz_model import trained
from matplotlib.figure import Figure

from palrnn.engine.style import BLUE, VERMILION, save_figure, styled
from palrnn.geometry import compare_geometries
from palrnn.model import PALRNN

model, _, test = trained()
segment = test[:200]
noisy = PALRNN(model, process=0.1, observation=0.1, gate_std=0.1)
found = compare_geometries(noisy, segment, 16)
spectra = {
    "teacher forcing": (found.mismatch.itf_eigenvalues - found.mismatch.ridge, BLUE, "-"),
    "marginal likelihood": (found.mismatch.observed_eigenvalues - found.mismatch.ridge, VERMILION, "--"),
}

with styled():
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot()
    for name, (values, colour, dash) in spectra.items():
        positive = values[values > 1e-6]
        axes.semilogy(np.arange(1, len(positive) + 1), positive, dash, color=colour, label=name)
    axes.set(xlabel="direction, sharpest first", ylabel="information per step")
    axes.set_title(f"traces differ by {found.gap:.2f} ± {found.gap_error:.2f} decades")
    axes.legend()
save_figure(figure, sys.argv[1] if len(sys.argv) > 1 else "two_geometries.png")
