"""What the sections share: colours by run, thinning, axis titles and keys for figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palrnn.engine.checks import Floats
from palrnn.report.blocks import Block, Side
from palrnn.report.view import Run

#: The order in which runs and codes take their colours; the page turns the names into the theme's colours.
COLOURS = ("@blue", "@vermilion", "@green", "@purple", "@orange", "@sky")


def colour(index: int) -> str:
    """Return the colour of the run or code with this number."""
    return COLOURS[index % len(COLOURS)]


def axis(title: str, **more: Any) -> dict[str, Any]:
    """Return an axis with a title."""
    return {"title": {"text": title, "standoff": 8}, **more}


def fitting(title: str, most: int = 18) -> str:
    """Return a title short enough for the height of one row among several: the end of a long one is cut."""
    return title if len(title) <= most else f"{title[: most - 1].rstrip(', ')}…"


def log_axis(title: str, values: Floats) -> dict[str, Any]:
    """Return a logarithmic axis for ``values``: labels at powers of ten if there are some, or at 2 and 5."""
    positive = values[np.isfinite(values) & (values > 0)]
    decades = np.log10(positive.max() / positive.min()) if positive.size else 0.0
    # Plotly's own labels, at every digit, are too many for a decade; of less it labels what fits
    ticks = {"dtick": 1} if decades > 1.5 else {"dtick": "D2"} if decades > 0.7 else {}
    return axis(title, type="log", exponentformat="power", **ticks)


def line(x: Any, y: Any, name: str, colour: str, *, width: float = 1.5, **more: Any) -> dict[str, Any]:
    """Return a trace that is a line."""
    return {
        "type": "scatter",
        "mode": "lines",
        "x": x,
        "y": y,
        "name": name,
        "line": {"color": colour, "width": width},
    } | more


def thinned(length: int, most: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return at most ``most`` evenly spaced indices into ``length`` points, the ends among them."""
    if length <= most:
        return np.arange(length)
    return np.unique(np.linspace(0, length - 1, most).round().astype(np.int64))


def within_sight(values: Floats, data: Floats, widths: float = 5.0) -> Floats:
    """Return ``values`` with NaN where they are farther from the ``data`` than some ``widths`` of these.

    Both are ``(T,)`` or ``(T, N)``; a model on its way to infinity would set the scale of every axis.
    """
    low, high = np.nanmin(data, axis=0), np.nanmax(data, axis=0)
    margin = widths * (high - low)
    return np.where((values >= low - margin) & (values <= high + margin), values, np.nan)


def per_run(runs: Sequence[Run], draw: Callable[[Run, str], Iterable[Block]]) -> tuple[Block, ...]:
    """Return the blocks of one run, or those of several in columns; ``draw`` gets the run and its key."""
    if len(runs) < 2:
        return tuple(draw(runs[0], "run0")) if runs else ()
    return (Side(tuple((run.name, tuple(draw(run, f"run{i}"))) for i, run in enumerate(runs))),)


def bits(code: NDArray[np.bool_]) -> str:
    """Return a switching code as a string of zeros and ones."""
    return "".join("1" if bit else "0" for bit in code)


def percent(share: float) -> str:
    """Return a share as a percentage."""
    return f"{100 * share:.3g}\N{NO-BREAK SPACE}%"


def sentence(parts: Sequence[str], tail: str = "", *, named: bool = False) -> str:
    """Return clauses as one sentence, followed by ``tail``; it starts with a capital unless ``named``."""
    words = "; ".join(parts)
    return f"{words if named else words[:1].upper() + words[1:]}. {tail}".strip()
