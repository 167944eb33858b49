"""Panel (c) of the paper's main figure: evidence, D_stsp and the error of the exponent over window length."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import SubFigure

from palrnn.engine.style import BLUE, GREEN, VERMILION
from palrnn.paper.tables import Tables

_CONFIGURATIONS = {"baseline": (BLUE, "o"), "calib": (GREEN, "s"), "full": (VERMILION, "^")}
_COLUMNS = {
    "evidence": "held-out evidence\n(nats / step / dim)",
    "dstsp": r"$D_{stsp}$ (nats)",
    "lyapunov_error": r"$\hat\lambda_1 - \lambda_1^{ref}$",
}


def draw_panel(figure: SubFigure, tables: Tables) -> None:
    """Draw medians and quartiles over models for each configuration, and the floor of D_stsp."""
    evidence, axes = tables["evidence"], figure.subplots(3, 1, sharex=True)
    lengths = sorted(evidence["length"].unique())
    for ax, (column, label) in zip(axes, _COLUMNS.items(), strict=True):
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
    if "floor" in tables:
        low, high = np.percentile(tables["floor"]["dstsp"], [2.5, 97.5])
        axes[1].axhspan(low, high, color="0.85", zorder=0)
        middle = float(np.sqrt(low * high))
        axes[1].text(lengths[0], middle, "true against true", va="center", fontsize=7, color="0.4")
    axes[2].axhline(0, color="0.6", linewidth=0.8, zorder=0)
    axes[0].set_title("(c) fine-tuning")
    axes[0].legend(fontsize=7, ncols=3, loc="lower right", bbox_to_anchor=(1.02, 0.98), columnspacing=0.8)
    axes[2].set_xlabel("window length")
    axes[2].set_xticks(lengths, [f"{length:g}" for length in lengths])
    axes[2].minorticks_off()
