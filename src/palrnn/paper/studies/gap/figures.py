"""Figures of the curvature gap, drawn from its table and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D

from palrnn.engine.style import PALETTE, SEQUENTIAL
from palrnn.paper.studies.gap.claims import first_variant, overlap_column

_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_GREY = "0.55"


def draw_panel(figure: SubFigure, gap: pd.DataFrame) -> None:
    """Draw the gap against entropy, panel (b) of the main figure."""
    ax = figure.subplots()
    gap = first_variant(gap)
    _scatter(ax, gap, "gap")
    ax.set(
        title="(b) curvature gap",
        xlabel=r"code entropy $H_c$ (bits)",
        ylabel=r"$g_Q = \log_{10}(T\,\mathrm{tr}\,I_{ITF} / \mathrm{tr}\,I_{obs})$",
    )
    bound = gap["entropy_bound"].iloc[0]
    ax.axvline(bound, color="0.6", linestyle=":", linewidth=1.0, zorder=0)
    ax.annotate(
        f"most that {gap['particles'].iloc[0]:g} particles can show",
        (bound, ax.get_ylim()[0]),
        xytext=(-3, 4),
        textcoords="offset points",
        rotation=90,
        ha="right",
        va="bottom",
        fontsize=7,
        color="0.4",
    )
    # below the axes, where no point can be
    ax.legend(
        handles=_noise_handles(gap),
        loc="upper center",
        bbox_to_anchor=(0.5, -0.12),
        fontsize=7,
        ncols=2,
        columnspacing=0.8,
        handletextpad=0.2,
    )


def mismatch_figure(gap: pd.DataFrame) -> Figure:
    """Draw log-det gap, q90 and leading-subspace overlap against entropy (fig. matrix_mismatch)."""
    gap = first_variant(gap)
    overlap = overlap_column(gap)
    figure = Figure(figsize=(10, 3.4), layout="constrained")
    axes = figure.subplots(1, 3)
    names = {
        "logdet_gap": "log-det gap (decades)",
        "q90": r"$q_{0.9}$ of $\log_{10}\gamma$",
        overlap: f"overlap of the leading {overlap.removeprefix('overlap')} directions",
    }
    for letter, ax, (column, label) in zip("abc", axes, names.items(), strict=True):
        _scatter(ax, gap, column)
        ax.set(title=f"({letter})", xlabel=r"code entropy $H_c$ (bits)", ylabel=label)
        if column == overlap:
            ax.set_ylim(0, 1.2 * gap[overlap].max())
        else:
            ax.axhline(0, color="0.6", linewidth=0.8, zorder=0)
    figure.legend(handles=_noise_handles(gap), loc="outside lower center", ncols=6, fontsize=8)
    return figure


def estimators_figure(gap: pd.DataFrame) -> Figure:
    """Draw what other estimators say of entropy and its bound, the gap, and negative directions.

    What is `withdrawn` is grey, with open marks, and says so.
    """
    variants = list(dict.fromkeys(gap["variant"]))
    labels = []
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    entropy, gaps, negative = figure.subplots(1, 3)
    keys = ["process_std", "observation_std", "tau", "seed"]
    paper = gap[gap["variant"] == variants[0]]
    for place, name in enumerate(variants):
        part = gap[gap["variant"] == name]
        gone = withdrawn(part)
        colour, marker = PALETTE[place % len(PALETTE)], _MARKERS[place % len(_MARKERS)]
        colour = _GREY if gone else colour
        look: dict[str, Any] = {"marker": marker, "color": colour, "linestyle": "", "markeredgewidth": 0.5}
        look |= {"markerfacecolor": "none" if gone else colour, "alpha": 0.7}
        label = f"{name} (withdrawn)" if gone else name
        labels.append(label)
        spread = np.linspace(-0.3, 0.3, len(part))
        entropy.plot(place + spread, part["entropy_bits"], markersize=2.5, **look)
        bound = part["entropy_bound"].iloc[0]
        entropy.plot([place - 0.4, place + 0.4], [bound, bound], color="black", linewidth=1.2)
        negative.plot(place + spread, part["negative"], markersize=2.5, **look)
        if place:
            both = paper.merge(part, on=keys, suffixes=("", "_other"))
            gaps.plot(both["gap"], both["gap_other"], markersize=3, label=label, **look)
    ends = [paper["gap"].min(), paper["gap"].max()]
    gaps.plot(ends, ends, color="0.6", linewidth=0.8, zorder=0)
    gaps.set(
        title="(b) the gap (decades)", xlabel=f"by the variant {variants[0]!r}", ylabel="by another estimator"
    )
    if len(variants) > 1:
        figure.legend(*gaps.get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize=8)
    for ax, title, label in (
        (entropy, "(a) entropy; bars: log2(particles)", "code entropy (bits)"),
        (negative, "(c) negative directions of the estimate", "number"),
    ):
        ax.set(title=title, ylabel=label)
        names = [name.replace(", ", ",\n").replace(" ", "\n") for name in labels]
        ax.set_xticks(range(len(variants)), names, fontsize=7)
    return figure


def withdrawn(part: pd.DataFrame) -> bool:
    """Whether the rows of a variant are withdrawn: under the exact target ancestors coalesce too early.

    Tables from before there was another method have no column for it.
    """
    method = part["method"].iloc[0] if "method" in part else "ancestors"
    return bool(part["target"].iloc[0] == "exact" and method == "ancestors")


def _scatter(ax: Axes, gap: pd.DataFrame, column: str) -> None:
    colours = _noise_colours(gap)
    for marker, (_, stratum) in zip(_MARKERS, gap.groupby("process_std"), strict=False):
        shades = [colours[value] for value in stratum["observation_std"]]
        ax.scatter(
            stratum["entropy_bits"], stratum[column], c=shades, marker=marker, s=16, linewidths=0, alpha=0.9
        )


def _noise_colours(gap: pd.DataFrame) -> dict[float, Any]:
    levels = sorted(gap["observation_std"].unique())
    shades = colormaps[SEQUENTIAL](np.linspace(0.1, 0.85, len(levels)))
    return dict(zip(levels, shades, strict=True))


def _noise_handles(gap: pd.DataFrame) -> list[Line2D]:
    handles = [
        Line2D([], [], marker="o", linestyle="", color=shade, label=rf"$\sigma_{{obs}}$ = {level:g}")
        for level, shade in _noise_colours(gap).items()
    ]
    return handles + [
        Line2D([], [], marker=marker, linestyle="", color="0.4", label=rf"$\sigma_{{proc}}$ = {level:g}")
        for marker, level in zip(_MARKERS, sorted(gap["process_std"].unique()), strict=False)
    ]
