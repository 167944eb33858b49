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


def log_axis(title: str, values: Floats) -> dict[str, Any]:
    """Return a logarithmic axis for ``values``, labelled at powers of ten only if they span enough."""
    positive = values[np.isfinite(values) & (values > 0)]
    wide = positive.size > 0 and np.log10(positive.max() / positive.min()) > 1.5
    return axis(title, type="log", exponentformat="power", **({"dtick": 1} if wide else {}))


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
