"""The figure of the two-regime toy (panel a): ambiguity up, missing information up, curvature down."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from palrnn.engine.checks import Floats
from palrnn.geometry import ToyStudy
from palrnn.report.style import SEQUENTIAL, styled


def toy_figure(study: ToyStudy) -> Figure:
    """Return MIR and log10 trace against the gate entropy: faint points are runs, markers mean and SEM."""
    with styled():
        figure = Figure(figsize=(8.0, 3.4), layout="constrained")
        axes = figure.subplots(1, 2)
        toy_panel(axes[0], study, study.mir)
        axes[0].set(title="Missing-information ratio", ylabel="MIR")
        shades = toy_panel(axes[1], study, study.log10_trace)
        axes[1].set(title="Observed curvature", ylabel="log10 trace of the observed information")
        bar = figure.colorbar(shades, ax=axes, label="gate noise")
        bar.ax.yaxis.set_major_formatter("{x:g}")
        bar.ax.yaxis.set_minor_formatter("")
        bar.set_ticks([t for t in (0.03, 0.1, 0.3, 0.9) if _within(t, study.gate_stds)])
    return figure


def toy_panel(axes: Axes, study: ToyStudy, values: Floats) -> ScalarMappable:
    """Draw ``values (G, R)`` of a study against its entropy, coloured by gate noise; return the colours."""
    low, high = float(study.gate_stds.min()), float(study.gate_stds.max())
    shades = ScalarMappable(LogNorm(low, high if high > low else low * 1.01), SEQUENTIAL)
    seeds = values.shape[1]
    for gate, entropy, value in zip(study.gate_stds, study.entropy_bits, values, strict=True):
        colour = shades.to_rgba(np.array([gate]))[0]
        axes.plot(entropy, value, "o", color=colour, alpha=0.25, markersize=2.5, markeredgewidth=0)
        x, y = entropy.mean(), np.nanmean(value)
        errors = [np.nanstd(v, ddof=1) / np.sqrt(seeds) if seeds > 1 else 0.0 for v in (entropy, value)]
        axes.errorbar(x, y, errors[1], errors[0], "o", color=colour, markersize=5, markeredgecolor="white")
    axes.set_xlabel("mean posterior gate entropy (bits)")
    return shades


def _within(value: float, values: Floats) -> bool:
    return bool(values.min() * 0.999 <= value <= values.max() * 1.001)
