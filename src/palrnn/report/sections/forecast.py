"""Forecasts: what was to come after rows that the model has seen, with bands, and how long they hold."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from palrnn.engine.checks import Floats
from palrnn.engine.text import counted
from palrnn.inference import Forecast
from palrnn.inference.forecasts import PARAMETERS
from palrnn.invariants import PredictionError, Scorecard
from palrnn.report.blocks import Block, Card, Download, Figure, Note, csv_download, number, typed_array
from palrnn.report.coordinates import Coordinates
from palrnn.report.drawing import axis, fitting, line, per_run, percent
from palrnn.report.registry import headline, section
from palrnn.report.view import Fan, Run

_ROWS = 3
# how much of the data's width is shown beyond them
_ROOM = 0.35
#: Standard errors above zero from which an exponent counts as positive.
ERRORS = 2.0


@section(
    "forecast",
    "Forecast",
    order=20,
    lead="Sampled paths from what the model knows after a stretch of held-out rows. Half of what comes "
    "should fall into the dark band, nine in ten into the pale one.",
)
def forecast(runs: Sequence[Run]) -> tuple[Block, ...]:
    """Return one fan chart per run, or why there is none."""
    return per_run(runs, _blocks)


def _blocks(run: Run, key: str) -> list[Block]:
    if isinstance(run.fan, str):
        return [Note(f"No forecast: {run.fan}.")] if run.fan else []
    return [fan_chart(run, run.fan, f"{key}-forecast")]


@headline(order=25, needs="invariants")
def useful(run: Run) -> Card:
    """Return how long a forecast is of use, in Lyapunov times where there is an exponent to count them by."""
    card: Scorecard = run["invariants"]
    found, label = card.prediction, "Forecasts are of use for"
    steps, rate = float(np.median(found.valid_steps)), exponent(card)
    low, high = np.quantile(found.valid_steps, [0.1, 0.9])
    count = len(found.valid_steps)
    words = (
        f"Median over {counted(count, 'start')}, without noise, until the error is "
        f"{found.threshold:g} deviations"
    )
    words += f"; 10 to 90 % of them: {_whole(low)} to {_whole(high)} steps." if count > 1 else "."
    if found.censored:
        words += f" {percent(found.censored)} were followed for {found.horizon} steps and still held."
    if rate is None:
        return Card(label, _whole(steps), words, "step" if round(steps) == 1 else "steps")
    time = steps * (run.dt or 1.0) * rate[0]
    pace = f"a Lyapunov time is {number(1 / rate[0])} {_units(run)}, {rate[1]}"
    words = f"{counted(round(steps), 'step')}; {pace}. {words}"
    return Card(label, number(time, 2), words, "Lyapunov times")


def exponent(card: Scorecard) -> tuple[float, str] | None:
    """Return the exponent that Lyapunov times are counted by and whose it is; None where none is positive."""
    if card.lyapunov is not None:
        return (card.lyapunov, "by the true exponent") if card.lyapunov > 0 else None
    own = card.hard.lyapunov
    if own is None or not own.largest > ERRORS * float(own.stderr[0]) or not lasts(card):
        return None
    return float(own.largest), "by the model's own exponent"


def lasts(card: Scorecard) -> bool:
    """Return whether long free runs move on, as far as that was looked at."""
    return card.viability is None or card.viability.viable


def fan_chart(run: Run, fan: Fan, key: str) -> Figure:
    """Return the bands of a forecast over what came, one coordinate above the other."""
    chosen = Coordinates.of(run.reference, run.columns, _ROWS)
    drawn = Forecast(chosen(fan.forecast.paths))
    past, truth, data = chosen(fan.past), chosen(fan.truth), chosen(run.reference)
    step, now = run.dt or 1.0, len(past)
    before: Floats = np.arange(1.0 - now, 1.0) * step
    ahead: Floats = np.arange(1.0, len(truth) + 1.0) * step
    bands = {level: drawn.band(level) for level in (0.9, 0.5)}
    middle = drawn.quantile(0.5)
    rows = len(chosen.names)
    gap = 0.07 if rows > 1 else 0.0
    height = (1 - gap * (rows - 1)) / rows
    traces: list[dict[str, Any]] = []
    layout: dict[str, Any] = {"legend": {"orientation": "h", "x": 0, "y": 1.01, "yanchor": "bottom"}}
    for i in range(rows):
        low, high = _window(data[:, i])
        place = {"xaxis": "x", "yaxis": f"y{i + 1}" if i else "y"}
        curve = partial(_curve, window=(low, high), legend=i == 0, place=place)
        for level, shade in ((0.9, "@blue/0.18"), (0.5, "@blue/0.38")):
            lower, upper = (end[:, i] for end in bands[level])
            group = f"{level * 100:.0f} % band"
            traces.append(curve(ahead, lower, "", "@blue/0", width=0, legendgroup=group))
            filled = {"fill": "tonexty", "fillcolor": shade}
            traces.append(curve(ahead, upper, group, "@blue/0", width=0) | filled)
        traces.append(curve(ahead, middle[:, i], "median", "@blue", width=2))
        traces.append(curve(np.r_[before, ahead], np.r_[past[:, i], truth[:, i]], "data", "@ink", width=1.3))
        top = 1 - i * (height + gap)
        layout[f"yaxis{i + 1}" if i else "yaxis"] = axis(
            fitting(chosen.names[i]), domain=[max(0.0, top - height), top], range=[low, high]
        )
    layout["xaxis"] = axis(
        f"{'time' if run.dt else 'steps'} after the last row seen",
        anchor=f"y{rows}" if rows > 1 else "y",
        range=[before[0], ahead[-1]],
    )
    valid = _valid_steps(run, fan)
    layout["shapes"] = [_upright(0.0, "@soft", "solid"), _upright(valid * step, "@vermilion", "dot")]
    return Figure(
        key,
        f"{len(truth)} steps ahead",
        _summary(run, fan, valid, chosen.note),
        tuple(traces),
        layout,
        height=150 * rows + 110,
        downloads=(_csv(chosen.names, ahead, truth, middle, bands),),
    )


def _curve(
    x: Floats,
    y: Floats,
    name: str,
    colour: str,
    *,
    window: tuple[float, float],
    legend: bool,
    place: dict[str, str],
    **more: Any,
) -> dict[str, Any]:
    """Return a line that ends a window's width outside of it, wherever the values go."""
    low, high = window
    shown = typed_array(np.clip(y, 2 * low - high, 2 * high - low))
    how: dict[str, Any] = {"legendgroup": name, "showlegend": legend and bool(name), "hoverinfo": "skip"}
    return line(typed_array(x), shown, name, colour, **(how | place | more))


def _window(values: Floats) -> tuple[float, float]:
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    room = _ROOM * (high - low) or 1.0
    return low - room, high + room


def _upright(x: float, colour: str, dash: str) -> dict[str, Any]:
    line = {"color": colour, "width": 1.5, "dash": dash}
    return {"type": "line", "xref": "x", "yref": "paper", "x0": x, "x1": x, "y0": 0, "y1": 1, "line": line}


def _valid_steps(run: Run, fan: Fan) -> int:
    return round(fan.forecast.valid_time(fan.truth, scale=np.nanstd(run.reference, axis=0)))


def _summary(run: Run, fan: Fan, valid: int, note: str) -> str:
    card: Scorecard | None = run.results.get("invariants")
    rate = None if card is None else exponent(card)
    times = "" if rate is None else f" or {number(valid * (run.dt or 1.0) * rate[0], 2)} Lyapunov times"
    end = (
        "all of the stretch" if valid >= len(fan.truth) else f"{counted(valid, 'step')}{times} (dotted line)"
    )
    words = [
        f"After {len(fan.past)} held-out rows. The mean of {len(fan.forecast.paths)} paths stays within 0.4 "
        f"deviations of what came for {end}.",
        f"Over {fan.origins} such forecasts the 90 % band holds {percent(fan.coverage[0.9])} of what came, "
        f"the 50 % band {percent(fan.coverage[0.5])}.",
        f"Paths differ by the state that they start from and by noise: {fan.noise}.",
        _of_parameters(fan.forecast),
    ]
    if fan.forecast.diverged:
        words.insert(0, f"{fan.forecast.diverged} of {len(fan.forecast.paths)} paths diverge.")
    return " ".join(part for part in (*words, note) if part)


def _of_parameters(forecast: Forecast) -> str:
    """Return in words whether bands show that parameters are not known; nothing if nobody told."""
    if not forecast.varies:
        return ""
    several = [part for part in forecast.varies if part.startswith(PARAMETERS)]
    if several:
        return f"They differ by {several[0]}, too."
    return "Parameters are taken for known: what the data leave open is not in the bands."


def _csv(names: Sequence[str], ahead: Floats, truth: Floats, middle: Floats, bands: Any) -> Download:
    ends = [end for level in (0.5, 0.9) for end in bands[level]]
    kinds = ("data", "median", "25 %", "75 %", "5 %", "95 %")
    header = ["ahead", *(f"{name} {kind}" for kind in kinds for name in names)]
    rows = np.column_stack([ahead, truth, middle, *ends]).tolist()
    return csv_download("fan.csv", header, rows)


def _whole(steps: float) -> str:
    return f"{steps:.0f}"


def _units(run: Run) -> str:
    return "steps" if run.dt is None else "time units"


def horizon(found: PredictionError) -> str:
    """Return the mean number of steps of use, in words, for a table."""
    times = f" = {number(found.valid_time)} Lyapunov times" if found.valid_time is not None else ""
    more = f", {percent(found.censored)} beyond the horizon" if found.censored else ""
    return f"{number(float(found.valid_steps.mean()))} steps in the mean{times}{more}"
