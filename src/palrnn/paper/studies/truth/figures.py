"""Artefact and truth side by side: the paper's eight samples, and closed forms given the gates."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from palrnn.engine.style import PALETTE
from palrnn.paper.studies.truth.listings import NAMES, SAMPLES, Estimates

_SHORT = {SAMPLES: SAMPLES, NAMES["paper"]: "exact, paper's target", NAMES["exact"]: "exact target"}


def artefacts_figure(found: Estimates) -> Figure:
    """Draw gap, log-det gap, q90 and overlap against entropy, by each estimate."""
    columns = {
        "gap": "gap (decades)",
        "logdet_gap": "log-det gap (decades)",
        "q90": r"$q_{0.9}$ of $\log_{10}\gamma$, all directions",
        found.overlap: f"overlap, leading {found.overlap.removeprefix('overlap')}",
    }
    figure = Figure(figsize=(11, 3.6), layout="constrained")
    axes: list[Axes] = list(figure.subplots(1, len(columns)))
    for letter, ax, (column, label) in zip("abcd", axes, columns.items(), strict=True):
        for colour, marker, (name, table) in zip(PALETTE, "o^s", found.tables.items(), strict=False):
            ax.plot(
                table["entropy_bits"],
                table[column],
                marker,
                color=colour,
                markersize=3,
                alpha=0.7,
                linewidth=0,
                markeredgewidth=0,
                label=_SHORT[name],
            )
        ax.set(title=f"({letter})", xlabel=r"code entropy $H_c$ (bits)", ylabel=label)
        if column != found.overlap:
            ax.axhline(0, color="0.6", linewidth=0.8, zorder=0)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8)
    return figure
