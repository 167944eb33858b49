"""Time series: the held-out data, the forced prediction and the free-running one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from palrnn.engine.checks import Floats
from palrnn.engine.text import counted
from palrnn.report.blocks import Block, Download, Figure, csv_download, typed_array
from palrnn.report.coordinates import Coordinates
from palrnn.report.drawing import axis, fitting, line, per_run, within_sight
from palrnn.report.registry import section
from palrnn.report.view import Run

if TYPE_CHECKING:
    from palrnn.runs import Tracking

_ROWS = 4


@section(
    "series",
    "Forced and free-running",
    order=58,
    needs="tracking",
    lead="Under forcing the model is pulled to the data as in training. Left alone, without noise, it parts "
    "from chaotic data sooner or later; what should remain is the way it moves.",
)
def tracked(runs: Sequence[Run]) -> tuple[Block, ...]:
    """Return one figure per run."""
    return per_run(runs, lambda run, key: [series(run, f"{key}-series")])


def series(run: Run, key: str) -> Figure:
    """Return the first coordinates of what was tracked, one above the other."""
    forecast: Tracking = run["tracking"]
    chosen = Coordinates.of(run.reference, run.columns, _ROWS)
    rows = len(chosen.names)
    truth, forced, free = (chosen(values) for values in (forecast.truth, forecast.forced, forecast.free))
    step = run.dt or 1.0
    times = typed_array(np.arange(len(forecast.truth)) * step)
    traces: list[dict[str, Any]] = []
    layout: dict[str, Any] = {"legend": {"orientation": "h", "x": 0, "y": 1.01, "yanchor": "bottom"}}
    gap = 0.06 if rows > 1 else 0.0
    height = (1 - gap * (rows - 1)) / rows
    for i in range(rows):
        place = {"xaxis": "x", "yaxis": "y" if i == 0 else f"y{i + 1}", "showlegend": i == 0}
        lines = (
            ("data", truth, "@faint", 4),
            ("forced", forced, "@blue", 1.5),
            ("free-running", free, "@vermilion", 1.6),
        )
        for name, values, colour, width in lines:
            shown = within_sight(values[:, i], truth[:, i])
            traces.append(
                line(times, typed_array(shown), name, colour, width=width, legendgroup=name, **place)
            )
        top = 1 - i * (height + gap)
        domain = [max(0.0, top - height), top]
        layout[f"yaxis{'' if i == 0 else i + 1}"] = axis(fitting(chosen.names[i]), domain=domain)
    layout["xaxis"] = axis("time" if run.dt else "step", anchor="y" if rows == 1 else f"y{rows}")
    return Figure(
        key,
        f"{len(forecast.truth)} held-out steps",
        f"{_summary(run, forecast)} {chosen.note}".strip(),
        tuple(traces),
        layout,
        height=170 * rows + 90,
        downloads=(_csv(chosen.names, truth, forced, free),),
    )


def departure(forecast: Tracking) -> int | None:
    """Return the first step at which the free-running path is one standard deviation away from the data."""
    spread, seen = np.nanstd(forecast.truth, axis=0), ~np.isnan(forecast.truth)
    squares = ((forecast.free - forecast.truth) / np.where(spread > 0, spread, 1.0)) ** 2
    # over what was seen; where nothing was, nothing is known to be away
    means = np.where(seen, squares, 0.0).sum(axis=1) / np.maximum(seen.sum(axis=1), 1)
    away = np.flatnonzero(~(np.sqrt(means) < 1.0))
    return int(away[0]) if away.size else None


def _summary(run: Run, forecast: Tracking) -> str:
    error = np.sqrt(
        np.nanmean((forecast.forced - forecast.truth) ** 2, axis=0) / np.nanvar(forecast.truth, axis=0)
    ).mean()
    lost = np.flatnonzero(np.isnan(forecast.forced).any(axis=1))
    gap = (
        f", without the {len(lost)} steps, from step {lost[0]} on, at which it diverges" if lost.size else ""
    )
    left = departure(forecast)
    unit = f" ({left * run.dt:.3g} time units)" if left is not None and run.dt else ""
    words = (
        "never parts from the data on this stretch"
        if left is None
        else f"parts from the data after {counted(left, 'step')}{unit}"
    )
    return (
        f"The forced prediction ({forecast.forcing!r}) is off by {error:.2g} standard "
        f"deviations in the mean{gap}; "
        f"the free-running one {words}."
    )


def _csv(names: Sequence[str], truth: Floats, forced: Floats, free: Floats) -> Download:
    header = ["step", *(f"{name} {kind}" for kind in ("data", "forced", "free") for name in names)]
    rows = np.hstack([truth, forced, free]).tolist()
    return csv_download("forecast.csv", header, [(i, *row) for i, row in enumerate(rows)])
