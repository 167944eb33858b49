"""Figures of tuning: what it did to evidence, to the noise, and to the dynamics."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import LogLocator, NullFormatter

from palrnn.engine.checks import Floats
from palrnn.engine.style import BLACK, BLUE, GREEN, ORANGE, PURPLE, VERMILION, styled
from palrnn.tuning import Comparison, TuningHistory

_BEHIND = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.5}
_MOST_POINTS, _DOT = 9000, 0.02


def before_after_figure(
    history: TuningHistory, trajectories: Mapping[str, Floats], *, reference_lyapunov: float | None = None
) -> Figure:
    """Return one picture of a tuning run: attractors on top, then evidence, noise and invariants.

    ``trajectories`` are observed coordinates ``(T, N)`` by title, the first of them the reference; all are
    drawn in the box of the reference, so that a collapse or an escape is seen as such.
    """
    with styled():
        figure = Figure(figsize=(10.5, 6.4), layout="constrained")
        top, bottom = figure.subfigures(2, 1, height_ratios=(1.0, 1.05), squeeze=False)[:, 0]
        if trajectories:
            _attractors(top, trajectories)
        evidence, noise, dstsp, exponent = bottom.subplots(1, 4)
        _evidence(evidence, history)
        _noise(noise, history)
        _invariant(dstsp, history, "dstsp", "State-space divergence", "D_stsp, nats")
        _invariant(exponent, history, "lyapunov", "Largest Lyapunov exponent of the map", "per unit of time")
        dstsp.set_ylim(bottom=0.0)
        if reference_lyapunov is not None:
            exponent.axhline(reference_lyapunov, color=BLACK, linestyle="--", linewidth=0.8)
            exponent.annotate(
                "true system",
                (0.98, reference_lyapunov),
                xycoords=exponent.get_yaxis_transform(),
                xytext=(0, 2),
                textcoords="offset points",
                fontsize=7,
                ha="right",
            )
    return figure


def tradeoff_figure(comparison: Comparison) -> Figure:
    """Return evidence against D_stsp of all results: the anchored ones joined in the order of beta."""
    with styled():
        figure = Figure(figsize=(6.4, 3.8), layout="constrained")
        axes = figure.subplots()
        curve = [n for n, r in comparison.results.items() if r.config.configuration == "anchored"]
        curve.sort(key=lambda name: comparison.results[name].config.beta)
        points = {name: comparison.row(name) for name in comparison.results}
        axes.plot(*_places(points, curve), "-", color=GREEN, zorder=1)
        for name, row in points.items():
            colour = GREEN if name in curve else {"baseline": BLACK, "calib": BLUE}.get(name, VERMILION)
            place = (row["dstsp"], row["heldout_evidence"])
            if name == comparison.chosen:
                axes.plot(*place, "o", color=BLACK, markersize=9, markerfacecolor="none")
            axes.errorbar(*place, row["heldout_stderr"], fmt="o", color=colour, markersize=4)
            words = f"β = {comparison.results[name].config.beta:g}" if name in curve else name
            axes.annotate(words, place, xytext=(6, 3), textcoords="offset points", fontsize=7, bbox=_BEHIND)
        title = "Evidence against dynamics" + (" (circled: chosen)" if comparison.chosen else "")
        axes.set(title=title, xlabel="D_stsp of the hard-gated rollout, nats")
        axes.set_ylabel("held-out evidence\nper step and dimension")
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.margins(x=0.12)
    return figure


def _places(points: Mapping[str, Mapping[str, float]], names: list[str]) -> tuple[list[float], list[float]]:
    return [points[n]["dstsp"] for n in names], [points[n]["heldout_evidence"] for n in names]


def _attractors(panel: SubFigure, trajectories: Mapping[str, Floats]) -> None:
    axes = np.atleast_1d(panel.subplots(1, len(trajectories), sharex=True, sharey=True))
    colours = (BLACK, BLUE, VERMILION, PURPLE, ORANGE)
    box = _plane(next(iter(trajectories.values())))
    for place, (title, x), colour in zip(axes, trajectories.items(), colours, strict=False):
        plane = _plane(x)
        place.plot(*plane, color=colour, linewidth=0.35)
        if all(np.ptp(now) < _DOT * np.ptp(true) for now, true in zip(plane, box, strict=True)):
            # a fixed point would be too small to see
            place.plot(plane[0][-1:], plane[1][-1:], "o", color=colour, markersize=4)
        place.set(title=title, xticks=[], yticks=[])
    for setter, values in zip((axes[0].set_xlim, axes[0].set_ylim), box, strict=True):
        margin = 0.08 * np.ptp(values)
        setter(values.min() - margin, values.max() + margin)


def _plane(x: Floats) -> tuple[Floats, Floats]:
    """The first against the last coordinate; a single one against itself ten steps later."""
    x = x[:_MOST_POINTS]
    return (x[:, 0], x[:, -1]) if x.shape[1] > 1 else (x[:-10, 0], x[10:, 0])


def _evidence(axes: Axes, history: TuningHistory) -> None:
    steps, held = history["iteration"], history["heldout_evidence"]
    axes.plot(steps, history["evidence"], ".-", color=BLUE, markersize=4, linewidth=0.9, label="mini-batches")
    seen = np.isfinite(held)
    if seen.any():
        axes.errorbar(
            steps[seen],
            held[seen],
            history["heldout_stderr"][seen],
            fmt="o",
            color=VERMILION,
            markersize=4,
            label="held out",
        )
    axes.set(title="Evidence", xlabel="iteration", ylabel="per step and dimension")
    axes.legend(loc="best", fontsize=7)


def _noise(axes: Axes, history: TuningHistory) -> None:
    for name, colour in (("process", GREEN), ("observation", ORANGE)):
        axes.plot(history["iteration"], history[f"{name}_std"], ".-", color=colour, markersize=4, label=name)
    axes.set(title="Noise", xlabel="iteration", ylabel="deviation, standardised")
    axes.set_ylim(bottom=0.0)
    axes.legend(loc="best", fontsize=7)


def _invariant(axes: Axes, history: TuningHistory, column: str, title: str, label: str) -> None:
    for prefix, words, colour in (("", "hard gates", VERMILION), ("sampled_", "sampled", PURPLE)):
        values = history[prefix + column]
        seen = np.isfinite(values)
        axes.plot(history["iteration"][seen], values[seen], "o-", color=colour, markersize=4, label=words)
    axes.set(title=title, xlabel="iteration", ylabel=label)
    if axes.get_lines():
        axes.legend(loc="best", fontsize=7)
