"""Figures of the two geometries: spectra, curvature ratios, leading subspaces, what is missing and why."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from palrnn.engine.checks import Floats
from palrnn.engine.style import BLACK, BLUE, GREEN, ORANGE, SKY, VERMILION, save_figure, styled
from palrnn.geometry import GeometryComparison, InvariantErrorBars, Mismatch

_ITF, _OBSERVED = VERMILION, BLUE


def save_geometry(found: GeometryComparison, bars: Mapping[str, InvariantErrorBars], folder: Path) -> None:
    """Write geometry.png, error_bars.png and matrices.safetensors into ``folder``, those that there are."""
    save_figure(geometry_figure(found), folder / "geometry.png")
    if bars:
        save_figure(error_bars_figure(dict(bars)), folder / "error_bars.png")
    if found.itf is not None:
        found.save_matrices(folder / "matrices.safetensors")


def geometry_figure(comparison: GeometryComparison) -> Figure:
    """Return the comparison in four panels, without those that need the matrices where there are none."""
    found = comparison.mismatch
    with styled():
        if found is None:
            figure = Figure(figsize=(5.0, 3.6), layout="constrained")
            missing_panel(figure.subplots(), comparison)
            return figure
        figure = Figure(figsize=(9.6, 7.2), layout="constrained")
        axes = figure.subplots(2, 2)
        spectrum_panel(axes[0, 0], found)
        gamma_panel(axes[0, 1], found)
        overlap_panel(axes[1, 0], found)
        missing_panel(axes[1, 1], comparison)
    return figure


def spectrum_panel(axes: Axes, found: Mismatch) -> None:
    """Draw the eigenvalues of both matrices in descending order, and the size of negative ones."""
    order = np.arange(1, len(found.itf_eigenvalues) + 1)
    values = found.observed_eigenvalues
    positive = values > 0
    axes.plot(order, found.itf_eigenvalues, color=_ITF, label="teacher forcing")
    axes.plot(order[positive], values[positive], color=_OBSERVED, label="observed information")
    if found.negative:
        label = f"negative: absolute value ({found.negative})"
        axes.plot(order[~positive], -values[~positive], ".", color=SKY, markersize=4, label=label)
    axes.axhline(found.ridge, color=BLACK, linewidth=0.8, linestyle=":")
    axes.annotate("ridge", (1.0, found.ridge), xycoords=("axes fraction", "data"), ha="right", va="bottom")
    axes.set(title="Eigenvalues per step, with ridge", xlabel="order", ylabel="eigenvalue", yscale="log")
    axes.legend()


def gamma_panel(axes: Axes, found: Mismatch) -> None:
    """Draw the histogram of log10 gamma over the positive directions."""
    axes.hist(found.log10_gamma, bins=60, color=SKY)
    axes.axvline(0.0, color=BLACK, linewidth=0.8)
    axes.axvline(found.q90, color=ORANGE, linestyle="--", label=f"0.9 quantile {found.q90:.2f}")
    sharper = (found.log10_gamma > 0).mean()
    note = f"{sharper:.0%} sharper under forcing"
    if found.negative:
        note += f"\n{found.negative} negative directions left out"
    axes.annotate(note, (0.02, 0.98), xycoords="axes fraction", va="top")
    axes.set(title="Curvature ratio by direction", xlabel="log10 (forcing / observed)", ylabel="directions")
    # room for the words above the tallest bar
    axes.set_ylim(top=1.25 * axes.get_ylim()[1])
    axes.legend(loc="upper right")


def overlap_panel(axes: Axes, found: Mismatch) -> None:
    """Draw the overlap of the leading subspaces against their dimension, beside that of random subspaces."""
    k = np.arange(1, len(found.overlaps) + 1)
    axes.plot(k, found.overlaps, color=GREEN, label="leading subspaces")
    axes.plot(k, k / len(k), color=BLACK, linewidth=0.8, linestyle=":", label="random subspaces")
    axes.plot(found.k, found.overlap, "o", color=GREEN, label=f"{found.overlap:.2f} at k = {found.k}")
    axes.set(title="Overlap of leading subspaces", xlabel="dimension k", ylabel="mean squared cosine")
    axes.set(xscale="log", ylim=(0, 1.03), xlim=(1, len(k)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.legend(loc="upper left")


def missing_panel(axes: Axes, comparison: GeometryComparison) -> None:
    """Draw the traces of Louis' identity per step: complete, what is missing and why, and what remains."""
    figures = comparison.figures
    parts = [("complete", "complete", SKY)]
    if figures["trace_missing_state"] is None:
        parts.append(("missing", "missing", ORANGE))
    else:
        parts.append(("missing:\nstate", "missing_state", ORANGE))
        parts.append(("missing:\nswitching", "missing_switching", VERMILION))
    parts.append(("observed", "observed", BLUE))
    for place, (_, name, colour) in enumerate(parts):
        value, error = figures[f"trace_{name}"], figures[f"trace_{name}_stderr"] or 0.0
        axes.bar(place, value, color=colour, yerr=error or None, capsize=3)
        top = max(value + error, 0.0)
        axes.annotate(f"{value:.3g}", (place, top), xytext=(0, 3), textcoords="offset points", ha="center")
    axes.axhline(0.0, color=BLACK, linewidth=0.8)
    axes.margins(y=0.15)
    axes.set_xticks(range(len(parts)), [label for label, *_ in parts])
    axes.set(title=f"Louis' identity by trace: MIR {figures['mir']:.3f}", ylabel="trace per step")


def error_bars_figure(bars: dict[str, InvariantErrorBars]) -> Figure:
    """Return the invariants of models drawn under each geometry, one strip per geometry."""
    with styled():
        figure = Figure(figsize=(7.2, 3.2), layout="constrained")
        left, right = figure.subplots(1, 2)
        _strips(left, {name: found.lyapunov for name, found in bars.items()})
        _strips(right, {name: found.dstsp for name, found in bars.items()})
        for place, axes in enumerate((left, right)):
            mean = next(iter(bars.values())).at_mean[place]
            axes.axhline(mean, color=BLACK, linewidth=0.8, linestyle=":", label="the model itself")
        left.set(title="Models drawn from each posterior", ylabel="largest Lyapunov exponent")
        right.set(ylabel="D_stsp (nats)")
        left.legend()
    return figure


def _strips(axes: Axes, groups: dict[str, Floats]) -> None:
    for place, (values, colour) in enumerate(zip(groups.values(), (_ITF, _OBSERVED), strict=False)):
        kept = values[np.isfinite(values)]
        # spread sideways by rank, so that equal values stay apart and the figure is the same every time
        offset = 0.12 * np.sin(2.4 * np.arange(len(kept)))
        axes.plot(place + offset, kept, "o", color=colour, alpha=0.6, markersize=4)
    gone = [f"{name}\n{np.isnan(v).sum()} of {len(v)} diverged" for name, v in groups.items()]
    axes.set_xticks(range(len(groups)), gone)
    axes.set_xlim(-0.5, len(groups) - 0.5)
