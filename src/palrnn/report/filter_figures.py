"""Figures of the particle filter: is the particle system healthy, and which gates were open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from palrnn.engine.checks import Floats
from palrnn.engine.style import BLACK, BLUE, ORANGE, SEQUENTIAL, SKY, VERMILION, save_figure, styled
from palrnn.engine.tables import write_table
from palrnn.inference import Filtered


def save_filter(filtered: Filtered, folder: Path, *, start: int = 0) -> None:
    """Write filter.csv, one line for each row that was scored, and diagnostics.png into ``folder``."""
    columns: dict[str, list[Any]] = {
        "row": list(range(start + 1, start + 1 + len(filtered.increments))),
        "log_evidence": filtered.increments.tolist(),
        "ess": filtered.ess.tolist(),
        "resampled": filtered.resampled.astype(int).tolist(),
        "survivors": filtered.survivors.tolist(),
        "code_entropy_bits": filtered.code_entropy.tolist(),
        "bit_entropy_bits": filtered.bit_entropy.tolist(),
    }
    columns |= {f"gate_{j}": p.tolist() for j, p in enumerate(filtered.gate_probability.T, start=1)}
    write_table(folder / "filter.csv", list(columns), list(zip(*columns.values(), strict=True)))
    save_figure(diagnostics_figure(filtered, start=start), folder / "diagnostics.png")


def diagnostics_figure(filtered: Filtered, *, start: int = 0) -> Figure:
    """Return effective sample size, code entropy and gates over time (fig. rbpf_diagnostics).

    ``start`` is the number of the row at which the segment starts in its series; x axes count rows.
    """
    steps = start + 1 + np.arange(len(filtered.increments), dtype=np.float64)
    gates = filtered.gate_probability.shape[1] > 0
    with styled():
        figure = Figure(figsize=(7.2, 6.4 if gates else 4.4), layout="constrained")
        axes = figure.subplots(3 if gates else 2, 1, sharex=True)
        ess_panel(axes[0], filtered, steps)
        entropy_panel(axes[1], filtered, steps)
        if gates:
            gates_panel(axes[2], filtered, steps)
        axes[-1].set_xlabel("row")
    return figure


def ess_panel(axes: Axes, filtered: Filtered, steps: Floats) -> None:
    """Draw the normalised effective sample size, and when resampling followed."""
    share = filtered.ess / filtered.particles
    events = filtered.resampled
    axes.plot(steps, share, color=BLUE)
    label = f"resampled ({filtered.config.resampling}), {int(events.sum())} times"
    axes.plot(steps[events], share[events], "v", color=VERMILION, markersize=4, label=label)
    axes.axhline(filtered.config.ess_threshold, color=BLACK, linewidth=0.8, linestyle=":")
    axes.set(title="Effective sample size", ylabel=f"ESS / {filtered.particles}", ylim=(0.0, 1.05))
    axes.legend(loc="lower right")


def entropy_panel(axes: Axes, filtered: Filtered, steps: Floats) -> None:
    """Draw the entropy of the full code, the sum of the single gates', and the bound of the first."""
    axes.plot(steps, filtered.bit_entropy, color=SKY, linewidth=0.9, label="sum over single gates")
    axes.plot(steps, filtered.code_entropy, color=BLUE, label="full code")
    bound = filtered.entropy_bound
    axes.axhline(bound, color=ORANGE, linestyle="--", label=f"log2({filtered.particles}) = {bound:.2f}")
    axes.set(title="Uncertainty about the gates, given the data so far", ylabel="bits")
    axes.set_ylim(bottom=0.0)
    axes.legend(loc="upper right", ncols=3)
    # room for the legend above the highest curve
    axes.set_ylim(top=1.25 * max(axes.get_ylim()[1], 1e-3))


def gates_panel(axes: Axes, filtered: Filtered, steps: Floats) -> None:
    """Draw P(gate open) as an image, one row for each gate."""
    chances = filtered.gate_probability.T
    extent = (float(steps[0]) - 0.5, float(steps[-1]) + 0.5, len(chances) + 0.5, 0.5)
    image = axes.imshow(
        chances, aspect="auto", vmin=0.0, vmax=1.0, cmap=SEQUENTIAL, extent=extent, interpolation="nearest"
    )
    axes.figure.colorbar(image, ax=axes, label="P(open)")
    axes.set(title="Gates", ylabel="gate")
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
