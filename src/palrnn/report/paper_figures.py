"""The paper's figures, drawn from the result tables and nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D

from palrnn.experiments.gap_claims import overlap_column
from palrnn.experiments.tables import read_table
from palrnn.report.shown_figures import attractor_figure, diagnostics_figure
from palrnn.engine.style import BLUE, GREEN, PALETTE, SEQUENTIAL, VERMILION, save_figure, styled

_MARKERS = ("o", "s", "^", "D", "v")
_CONFIGURATIONS = {"baseline": (BLUE, "o"), "calib": (GREEN, "s"), "full": (VERMILION, "^")}


def draw_figures(folder: str | os.PathLike[str]) -> list[Path]:
    """Draw every figure whose tables are in a results folder, as PDF, SVG and PNG; return the files."""
    place = Path(folder)
    tables = {name: read_table(place, name) for name in ("toy.csv", "gap.csv", "evidence.csv", "floor.csv")}
    tables |= {name: read_table(place, name) for name in ("diagnostics.csv", "attractor.csv.gz")}
    drawings: dict[str, tuple[Callable[..., Figure], list[Any]]] = {
        "results": (results_figure, [tables[f"{name}.csv"] for name in ("toy", "gap", "evidence", "floor")]),
        "mismatch": (mismatch_figure, [tables["gap.csv"]]),
        "estimators": (estimators_figure, [tables["gap.csv"]]),
        "diagnostics": (diagnostics_figure, [tables["diagnostics.csv"]]),
        "attractor": (attractor_figure, [tables["attractor.csv.gz"]]),
    }
    written = []
    for name, (draw, given) in drawings.items():
        if any(table is not None for table in given):
            with styled():
                figure = draw(*given)
                # laid out once, not once for every format
                figure.draw_without_rendering()
                figure.set_layout_engine("none")
            (place / "figures").mkdir(exist_ok=True)
            for kind in ("pdf", "svg", "png"):
                written.append(place / "figures" / f"{name}.{kind}")
                save_figure(figure, written[-1])
    return written


def results_figure(
    toy: pd.DataFrame | None = None,
    gap: pd.DataFrame | None = None,
    evidence: pd.DataFrame | None = None,
    floor: pd.DataFrame | None = None,
) -> Figure:
    """Draw the paper's panels (a) toy, (b) curvature gap, (c) fine-tuning, side by side (fig. results).

    A study that has no table yet leaves its panel empty.
    """
    figure = Figure(figsize=(11, 6.4), layout="constrained")
    parts: Any = figure.subfigures(1, 3, width_ratios=(1, 1.1, 1.2))
    left, middle, right = parts
    if toy is not None:
        _toy_panel(left, toy)
    if gap is not None:
        _gap_panel(middle, gap)
    if evidence is not None:
        _evidence_panel(right, evidence, floor)
    return figure


def mismatch_figure(gap: pd.DataFrame) -> Figure:
    """Draw log-det gap, q90 and leading-subspace overlap against entropy (fig. matrix_mismatch)."""
    gap = _first_variant(gap)
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
    """Draw what other estimators say of entropy and its bound, the gap, and negative directions."""
    variants = list(dict.fromkeys(gap["variant"]))
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    entropy, gaps, negative = figure.subplots(1, 3)
    keys = ["process_std", "observation_std", "tau", "seed"]
    paper = gap[gap["variant"] == variants[0]]
    for place, name in enumerate(variants):
        part = gap[gap["variant"] == name]
        colour, marker = PALETTE[place % len(PALETTE)], _MARKERS[place % len(_MARKERS)]
        spread = np.linspace(-0.3, 0.3, len(part))
        entropy.plot(place + spread, part["entropy_bits"], marker, color=colour, markersize=2.5)
        bound = part["entropy_bound"].iloc[0]
        entropy.plot([place - 0.4, place + 0.4], [bound, bound], color="black", linewidth=1.2)
        negative.plot(place + spread, part["negative"], marker, color=colour, markersize=2.5)
        if place:
            both = paper.merge(part, on=keys, suffixes=("", "_other"))
            gaps.plot(both["gap"], both["gap_other"], marker, color=colour, markersize=3, label=name)
    ends = [paper["gap"].min(), paper["gap"].max()]
    gaps.plot(ends, ends, color="0.6", linewidth=0.8, zorder=0)
    gaps.set(title="(b) the gap", xlabel=f"{variants[0]}", ylabel="other estimator")
    if len(variants) > 1:
        figure.legend(*gaps.get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize=8)
    for ax, title, label in (
        (entropy, "(a) entropy; bars: log2(particles)", "code entropy (bits)"),
        (negative, "(c) negative directions of the estimate", "number"),
    ):
        ax.set(title=title, ylabel=label)
        names = [name.replace(", ", ",\n").replace(" ", "\n") for name in variants]
        ax.set_xticks(range(len(variants)), names, fontsize=7)
    return figure


def _toy_panel(figure: SubFigure, toy: pd.DataFrame) -> None:
    top, bottom = figure.subplots(2, 1, sharex=True)
    grouped = toy.groupby("sigma_g")
    mean, sem = grouped.mean(), grouped.sem()
    colours = colormaps[SEQUENTIAL](np.linspace(0.1, 0.9, len(mean)))
    for ax, column, label in (
        (top, "mir", "missing-information ratio"),
        (bottom, "log10_trace", r"$\log_{10}$ tr $I_{obs}$"),
    ):
        ax.plot(toy["entropy_bits"], toy[column], ".", color="0.8", markersize=2, zorder=0)
        ax.errorbar(
            mean["entropy_bits"],
            mean[column],
            xerr=sem["entropy_bits"],
            yerr=sem[column],
            fmt="none",
            ecolor="0.4",
            linewidth=0.8,
        )
        ax.scatter(mean["entropy_bits"], mean[column], c=colours, s=22, zorder=3)
        ax.set_ylabel(label)
    top.set_title("(a) switching AR(1)")
    bottom.set_xlabel("posterior gate entropy (bits)")
    ends = [rf"$\sigma_g$ = {value:.2g}" for value in (mean.index[0], mean.index[-1])]
    handles = [Line2D([], [], marker="o", linestyle="", color=colours[k]) for k in (0, -1)]
    top.legend(handles, ends, loc="upper left")


def _gap_panel(figure: SubFigure, gap: pd.DataFrame) -> None:
    ax = figure.subplots()
    gap = _first_variant(gap)
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


def _evidence_panel(figure: SubFigure, evidence: pd.DataFrame, floor: pd.DataFrame | None) -> None:
    axes = figure.subplots(3, 1, sharex=True)
    lengths = sorted(evidence["length"].unique())
    columns = {
        "evidence": "held-out evidence\n(nats / step / dim)",
        "dstsp": r"$D_{stsp}$ (nats)",
        "lyapunov_error": r"$\hat\lambda_1 - \lambda_1^{ref}$",
    }
    for ax, (column, label) in zip(axes, columns.items(), strict=True):
        for place, (name, (colour, marker)) in enumerate(_CONFIGURATIONS.items()):
            part = evidence[evidence["configuration"] == name]
            if part.empty:
                continue
            shift = 1.06 ** (place - 1)
            quartiles = part.groupby("length")[column].quantile([0.25, 0.5, 0.75]).unstack()
            x = quartiles.index.to_numpy() * shift
            ax.plot(part["length"] * shift, part[column], ".", color=colour, alpha=0.35, markersize=3)
            bars = [quartiles[0.5] - quartiles[0.25], quartiles[0.75] - quartiles[0.5]]
            ax.errorbar(x, quartiles[0.5], yerr=bars, color=colour, marker=marker, markersize=4, label=name)
        ax.set_ylabel(label)
        ax.set_xscale("log")
    axes[1].set_yscale("log")
    if floor is not None:
        low, high = np.percentile(floor["dstsp"], [2.5, 97.5])
        axes[1].axhspan(low, high, color="0.85", zorder=0)
        middle = float(np.sqrt(low * high))
        axes[1].text(lengths[0], middle, "true against true", va="center", fontsize=7, color="0.4")
    axes[2].axhline(0, color="0.6", linewidth=0.8, zorder=0)
    axes[0].set_title("(c) fine-tuning")
    axes[0].legend(fontsize=7, ncols=3, loc="lower right", bbox_to_anchor=(1.02, 0.98), columnspacing=0.8)
    axes[2].set_xlabel("window length")
    axes[2].set_xticks(lengths, [f"{length:g}" for length in lengths])
    axes[2].minorticks_off()


def _first_variant(gap: pd.DataFrame) -> pd.DataFrame:
    return gap[gap["variant"] == gap["variant"].iloc[0]]


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
