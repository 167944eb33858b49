"""The pictures of the paper's appendix that show one model: the filter's traces, and attractors."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from palrnn.engine.style import BLACK, BLUE, PALETTE, VERMILION

_ZOOM = 1000
_NAMES = {"truth": ("true system", BLACK), "baseline": ("baseline", BLUE), "full": ("full SAEM", VERMILION)}


def diagnostics_figure(diagnostics: pd.DataFrame) -> Figure:
    """Draw ESS with resampling events, and code entropy with its bound (fig. rbpf_diagnostics)."""
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    ess, entropy = figure.subplots(1, 2)
    runs = diagnostics.groupby(["configuration", "particles"], sort=False)
    for colour, ((configuration, particles), run) in zip(PALETTE, runs, strict=False):
        label = f"{configuration}, {particles:g} particles"
        ess.plot(run["step"], run["ess"], color=colour, label=label)
        events = run[run["resampled"].astype(bool)]
        ess.plot(events["step"], events["ess"], "v", color=colour, markersize=5)
        entropy.plot(run["step"], run["entropy_bits"], color=colour, label=label)
        entropy.axhline(run["entropy_bound"].iloc[0], color=colour, linestyle=":", linewidth=0.9)
    ess.axhline(0.5, color="0.6", linewidth=0.8, zorder=0)
    ess.set(
        title="(a) triangles: resampling follows", xlabel="step", ylabel="ESS / particles", ylim=(0, 1.02)
    )
    entropy.set(title="(b) dotted: log2(particles)", xlabel="step", ylabel="code entropy (bits)")
    entropy.set_ylim(bottom=0)
    ess.legend(fontsize=7, loc="lower left")
    return figure


def attractor_figure(attractor: pd.DataFrame) -> Figure:
    """Draw the attractors of truth, baseline and tuned model, and their start (fig. attractor_overlays)."""
    figure = Figure(figsize=(10, 6), layout="constrained")
    grid = figure.add_gridspec(2, 3, height_ratios=(1.6, 1))
    for place, (name, (label, colour)) in enumerate(_NAMES.items()):
        ax: Any = figure.add_subplot(grid[0, place], projection="3d")
        x, y, z = (attractor[f"{name}_{axis}"] for axis in "xyz")
        ax.plot(x, y, z, color=colour, linewidth=0.25, rasterized=True)
        ax.plot(x[:1], y[:1], z[:1], "o", color=colour, markersize=3)
        ax.set(title=f"({'abc'[place]}) {label}", xlim=(-22, 22), ylim=(-28, 28), zlim=(0, 52))
        for axis, place_label in zip("xyz", (ax.set_xlabel, ax.set_ylabel, ax.set_zlabel), strict=True):
            place_label(axis, labelpad=-9 if axis != "z" else -14)
        ax.view_init(elev=18, azim=-60)
        ax.set_box_aspect((4, 4, 3.4), zoom=1.05)
        ax.locator_params(nbins=4)
        ax.tick_params(labelsize=6, pad=-2)
    zoom = figure.add_subplot(grid[1, :])
    first = attractor.iloc[:_ZOOM]
    for name, (label, colour) in _NAMES.items():
        zoom.plot(first["step"], first[f"{name}_x"], color=colour, linewidth=1.0, label=label)
    zoom.set(title="(d) the same start", xlabel="step", ylabel="x")
    zoom.margins(x=0.01)
    zoom.legend(ncols=3, loc="lower right", bbox_to_anchor=(1.0, 1.0))
    return figure
