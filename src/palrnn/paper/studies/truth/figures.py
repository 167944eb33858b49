"""Artefact and truth side by side: the paper's eight samples, and closed forms given the gates."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from palrnn.engine.style import PALETTE
from palrnn.paper.statistics import Interval, median
from palrnn.paper.studies.truth.listings import NAMES, SAMPLES, Estimates

_SHORT = {
    SAMPLES: "eight samples, paper's target",
    NAMES["paper"]: "closed forms, paper's target",
    NAMES["exact"]: "closed forms, exact target",
}
# models in one mark; fewer make no interval
_GROUPS, _LEAST = 6, 6


def artefacts_figure(found: Estimates) -> Figure:
    """Draw gap, log-det gap, q90 and overlap against entropy, by each estimate.

    Dots are models, marks medians of groups of models with like entropy, with 95 % intervals.
    """
    columns = {
        "gap": "gap (decades)",
        "logdet_gap": "log-det gap (decades)",
        "q90": r"$q_{0.9}$ of $\log_{10}\gamma$, all directions",
        found.overlap: f"overlap, leading {found.overlap.removeprefix('overlap')}",
    }
    figure = Figure(figsize=(11, 4), layout="constrained")
    axes: list[Axes] = list(figure.subplots(1, len(columns)))
    for letter, ax, (column, label) in zip("abcd", axes, columns.items(), strict=True):
        for colour, marker, (name, table) in zip(PALETTE, "o^s", found.tables.items(), strict=False):
            entropy = table["entropy_bits"]
            ax.plot(entropy, table[column], ".", color=colour, markersize=3, alpha=0.35, markeredgewidth=0)
            marks = grouped_medians(entropy, table[column], found.resamples)
            if marks:
                _draw(ax, marks, colour, marker, f"{_SHORT[name]}, {particles(table)}")
        ax.set(title=f"({letter})", xlabel=r"code entropy $H_c$ (bits)", ylabel=label)
        if column != found.overlap:
            ax.axhline(0, color="0.6", linewidth=0.8, zorder=0)
    figure.legend(
        *axes[0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=3,
        fontsize=8,
        title="marks: medians of models with like entropy, with 95 % intervals; dots: models",
        title_fontsize=8,
    )
    return figure


def grouped_medians(
    entropy: pd.Series[float], values: pd.Series[float], resamples: int
) -> list[tuple[float, Interval]]:
    """Return the median entropy and the median value, with its interval, of groups of equal size.

    Models without a value are left out; where there are few models there are fewer groups.
    """
    kept = pd.DataFrame({"entropy": entropy, "value": values}).dropna().sort_values("entropy")
    count = max(1, min(_GROUPS, len(kept) // _LEAST))
    parts = [kept.iloc[rows] for rows in np.array_split(np.arange(len(kept)), count)]
    return [
        (float(part["entropy"].median()), median(part["value"], resamples=resamples))
        for part in parts
        if len(part)
    ]


def particles(table: pd.DataFrame) -> str:
    """Say with how many particles an entropy was measured, by its bound."""
    counts = sorted({round(2.0**bound) for bound in table["entropy_bound"]})
    return f"{' or '.join(map(str, counts))} particles"


def _draw(ax: Axes, marks: list[tuple[float, Interval]], colour: str, marker: str, label: str) -> None:
    middle = np.array([found.value for _, found in marks])
    ends = np.array([[found.low, found.high] for _, found in marks]).T
    ax.errorbar(
        [entropy for entropy, _ in marks],
        middle,
        yerr=np.maximum([middle - ends[0], ends[1] - middle], 0.0),
        marker=marker,
        color=colour,
        markersize=5,
        markeredgecolor="white",
        markeredgewidth=0.6,
        linewidth=1.0,
        elinewidth=1.2,
        capsize=2,
        label=label,
    )
