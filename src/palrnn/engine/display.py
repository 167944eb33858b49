"""Results that show themselves: a few lines when printed, a table and a small picture in a notebook.

A class says its ``heading``, its ``facts`` (pairs of words) and its ``records`` (rows of a table), and may
draw a ``picture``; `Display` makes ``print``, ``_repr_html_`` and ``to_frame`` of them. Pictures are SVG,
drawn here, so that a notebook needs no script and no network; every text in them is escaped.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

import numpy as np

from palrnn.engine.checks import Floats
from palrnn.engine.text import printable

_WIDTH, _HEIGHT, _MARGIN = 260, 150, 6
# points of a curve: more are not seen at this size
_MOST_POINTS = 1500
_LEFT = "style='text-align:left'"
#: Colours that can be told apart on light and dark pages, and by most who see few colours.
COLOURS = ("#8a8f98", "#0b84d8", "#e07b00", "#2a9d5c")


class Display:
    """Base class of results that show themselves."""

    def heading(self) -> str:
        """Return one line that says what it is."""
        raise NotImplementedError

    def facts(self) -> list[tuple[str, str]]:
        """Return what to know about it, as pairs of words."""
        raise NotImplementedError

    def records(self) -> list[dict[str, Any]]:
        """Return the rows of its table."""
        raise NotImplementedError

    def picture(self) -> str:
        """Return a small SVG, or nothing."""
        return ""

    def to_frame(self) -> Any:
        """Return its table as a data frame of pandas."""
        import pandas as pd

        return pd.DataFrame(self.records())

    def __str__(self) -> str:
        facts = [(printable(name), printable(words)) for name, words in self.facts()]
        width = max((len(name) for name, _ in facts), default=0)
        lines = [f"  {name:<{width}}  {words}" for name, words in facts]
        return "\n".join([printable(self.heading()), *lines])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th {_LEFT}>{_escaped(name)}</th><td {_LEFT}>{_escaped(words)}</td></tr>"
            for name, words in self.facts()
        )
        return (
            f"<div><p><b>{_escaped(self.heading())}</b></p>"
            f"<div style='display:flex;flex-wrap:wrap;gap:1em;align-items:flex-start'>"
            f"<table>{rows}</table>{self.picture()}</div></div>"
        )


def curves_svg(curves: Sequence[tuple[str, Floats]]) -> str:
    """Return series ``(T, N)`` as curves, in their first two columns, or over time if there is only one.

    The first one sets the frame; what leaves it is cut off. Gaps interrupt a curve.
    """
    drawn = [(name, _plane(series)) for name, series in curves if len(series) > 1]
    frame = drawn[0][1][np.isfinite(drawn[0][1]).all(axis=1)] if drawn else np.empty((0, 2))
    if len(frame) < 2:
        return ""
    low, high = frame.min(axis=0), frame.max(axis=0)
    span = np.where(high > low, high - low, 1.0)
    low, span = low - 0.05 * span, 1.1 * span
    size = np.array([_WIDTH - 2 * _MARGIN, _HEIGHT - 2 * _MARGIN])
    parts = []
    for (name, points), colour in zip(drawn, COLOURS, strict=False):
        scaled = (points - low) / span
        inside = np.isfinite(scaled).all(axis=1) & (np.abs(scaled - 0.5) < 1.0).all(axis=1)
        at = np.where(inside[:, None], scaled * [1, -1] + [0, 1], 0.0) * size + _MARGIN
        path, moved = [], True
        for (x, y), kept in zip(at.tolist(), inside.tolist(), strict=True):
            if kept:
                path.append(f"{'M' if moved else 'L'}{x:.1f} {y:.1f}")
            moved = not kept
        parts.append(
            f"<path d='{''.join(path)}' fill='none' stroke='{colour}' stroke-width='0.8'>"
            f"<title>{_escaped(name)}</title></path>"
        )
    return _svg("".join(parts), _HEIGHT, ", ".join(name for name, _ in drawn))


def bars_svg(bars: Sequence[tuple[str, float]]) -> str:
    """Return numbers from 0 to 1 as horizontal bars with their names."""
    parts = []
    for k, (name, value) in enumerate(bars[:20]):
        y, length = _MARGIN + 16 * k, 150 * float(np.clip(np.nan_to_num(value), 0.0, 1.0))
        parts.append(
            f"<text x='{_MARGIN}' y='{y + 10}' font-size='10' fill='currentColor'>"
            f"{_escaped(printable(name, 16))}</text>"
            f"<rect x='100' y='{y + 1}' width='{length:.1f}' height='11' fill='{COLOURS[1]}'/>"
        )
    return _svg("".join(parts), 2 * _MARGIN + 16 * len(bars[:20]), "bars") if bars else ""


def _plane(series: Floats) -> Floats:
    points = np.asarray(series, dtype=np.float64)[:_MOST_POINTS]
    if points.shape[1] == 1:
        return np.column_stack([np.arange(len(points)), points[:, 0]])
    return points[:, :2]


def _svg(body: str, height: int, label: str) -> str:
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' role='img' aria-label='{_escaped(label)}' width='{_WIDTH}' "
        f"height='{height}' viewBox='0 0 {_WIDTH} {height}'>{body}</svg>"
    )


def _escaped(text: str) -> str:
    return html.escape(printable(text), quote=True)
