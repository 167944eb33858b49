"""Eigenvalues of both curvatures over the strength of forcing, drawn from their table and nothing else."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from palrnn.engine.style import SEQUENTIAL

_GEOMETRIES = {"itf": "teacher forcing", "observed": "likelihood"}
_DRAWN = (1, 3, 10, 30, 100, 300)
_MARKERS = ("o", "s", "^", "D", "v", "P")


def spectra_figure(spectra: pd.DataFrame) -> Figure:
    """Draw some eigenvalues by their rank: medians over seeds, with lowest and highest.

    From strict forcing on the left to nearly free running on the right: longer intervals, or less strength.
    """
    figure = Figure(figsize=(9, 6), layout="constrained")
    axes = figure.subplots(2, 2, sharey=True, sharex="col")
    intervals, strengths = spectra[spectra["alpha"] == 1.0], spectra[spectra["tau"] == 1]
    for row, (column, name) in enumerate(_GEOMETRIES.items()):
        for ax, part, over, letter in (
            (axes[row, 0], intervals, "tau", "ab"[row]),
            (axes[row, 1], strengths, "alpha", "cd"[row]),
        ):
            _lines(ax, part, over, column)
            ax.set(title=f"({letter}) {name}", xscale="log", yscale="log")
    for ax in axes[:, 0]:
        ax.set_ylabel("eigenvalue, per step")
    axes[1, 0].set_xlabel(r"steps between forcings $\tau$, at full strength")
    axes[1, 1].set_xlabel(r"strength $\alpha$, at every step")
    for ax, over in zip(axes[1], ("tau", "alpha"), strict=True):
        ticks = sorted((intervals if over == "tau" else strengths)[over].unique())
        ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        ax.minorticks_off()
    axes[1, 1].invert_xaxis()
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=len(labels),
        fontsize=8,
        title="rank of the eigenvalue",
    )
    return figure


def _lines(ax: Axes, part: pd.DataFrame, over: str, column: str) -> None:
    ranks = [rank for rank in _DRAWN if rank in set(part["rank"])]
    shades = colormaps[SEQUENTIAL](np.linspace(0.0, 0.85, len(ranks)))
    for shade, marker, rank in zip(shades, _MARKERS, ranks, strict=False):
        # a negative eigenvalue of the likelihood has no logarithm
        found = part[(part["rank"] == rank) & (part[column] > 0)].groupby(over)[column]
        middle, low, high = found.median(), found.min(), found.max()
        ax.errorbar(
            middle.index,
            middle,
            yerr=[middle - low, high - middle],
            marker=marker,
            color=shade,
            markersize=4.5,
            linewidth=1.0,
            elinewidth=0.8,
            capsize=1.5,
            label=f"{rank}",
        )
