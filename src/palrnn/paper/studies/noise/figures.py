"""Evidence against D_stsp by window length, with the front, drawn from the table and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from palrnn.engine.style import PALETTE
from palrnn.paper.studies.noise.listings import front

_MARKERS = "osD^vPX"
_COLUMNS = 3
_KEYS = ["way", "start_process_std"]


def front_figure(noise: pd.DataFrame) -> Figure:
    """Draw medians over models with quartiles, a panel for each window length, and the front of the medians.

    Filled marks are from the largest start noise, open ones from smaller.
    """
    lengths, ways = sorted(noise["length"].unique()), list(dict.fromkeys(noise["way"]))
    rows = -(-(len(lengths) + 1) // _COLUMNS)
    figure = Figure(figsize=(9.5, 3.0 * rows), layout="constrained")
    axes = list(figure.subplots(rows, _COLUMNS, sharex=True, sharey=True, squeeze=False).flat)
    for place, (ax, length) in enumerate(zip(axes, lengths, strict=False)):
        _panel(ax, noise[noise["length"] == length], ways)
        ax.set(title=f"windows of {length} steps", xscale="log")
        ticks = [0.5, 1, 2, 5, 10]
        ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        ax.minorticks_off()
        if place % _COLUMNS == 0:
            ax.set_ylabel("held-out evidence\n(nats per step and dimension)")
        if place + _COLUMNS >= len(lengths):
            ax.set_xlabel(r"$D_{\mathrm{stsp}}$ (nats)")
            ax.tick_params(labelbottom=True)
    for ax in axes[len(lengths) :]:
        ax.set_axis_off()
    axes[len(lengths)].legend(handles=_handles(noise, ways), loc="center left", fontsize=8)
    return figure


def _panel(ax: Axes, part: pd.DataFrame, ways: list[str]) -> None:
    groups = part.groupby(_KEYS, sort=False)[["dstsp_median", "evidence"]]
    low, middle, high = (groups.quantile(q) for q in (0.25, 0.5, 0.75))
    largest = part["start_process_std"].max()
    for way, process in middle.index:
        at = (way, process)
        x, y = middle.loc[at]
        colour, marker = _look(way, ways)
        ax.errorbar(
            x,
            y,
            xerr=[[x - low.loc[at, "dstsp_median"]], [high.loc[at, "dstsp_median"] - x]],
            yerr=[[y - low.loc[at, "evidence"]], [high.loc[at, "evidence"] - y]],
            marker=marker,
            color=colour,
            markerfacecolor=colour if process == largest else "white",
            markersize=6,
            elinewidth=0.7,
            zorder=2,
        )
    x, y = middle["dstsp_median"].to_numpy(), middle["evidence"].to_numpy()
    best = np.flatnonzero(front(y, x))
    best = best[np.argsort(x[best])]
    # what the front beats lies to its right and below: it goes on to the worst of both
    along, up = [x[best][0], *x[best], x.max()], [y.min(), *y[best], y[best][-1]]
    ax.step(along, up, where="post", color="0.5", linewidth=1.4, linestyle="--", zorder=1)


def _look(way: str, ways: list[str]) -> tuple[str, str]:
    place = ways.index(way)
    return PALETTE[place % len(PALETTE)], _MARKERS[place % len(_MARKERS)]


def _handles(noise: pd.DataFrame, ways: list[str]) -> list[Line2D]:
    looks = [(way, *_look(way, ways)) for way in ways]
    handles = [
        Line2D([], [], marker=marker, color=colour, linestyle="", markersize=6, label=way)
        for way, colour, marker in looks
    ]
    for process in sorted(noise["start_process_std"].unique(), reverse=True):
        largest = process == noise["start_process_std"].max()
        face = "0.3" if largest else "white"
        style: dict[str, Any] = {
            "marker": "o",
            "color": "0.3",
            "markerfacecolor": face,
            "linestyle": "",
            "markersize": 6,
        }
        handles.append(Line2D([], [], label=f"from process noise {process:g}", **style))
    return [*handles, Line2D([], [], color="0.5", linestyle="--", label="front of the medians")]
