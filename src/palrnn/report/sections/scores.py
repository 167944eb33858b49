"""The scores as marks: free runs from several starts beside what the reference scores against itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from palrnn.invariants import Scorecard
from palrnn.report.blocks import Figure, csv_download, number
from palrnn.report.drawing import axis, sentence
from palrnn.report.view import Run


def scores(runs: Sequence[Run]) -> Figure:
    """Return D_stsp and D_H of runs from several starts, and what the reference scores against itself."""
    traces: list[dict[str, Any]] = []
    rows: list[tuple[Any, ...]] = []
    words, places = [], []
    for run in runs:
        card: Scorecard = run["invariants"]
        of = f"{run.name}: " if len(runs) > 1 else ""
        kinds: list[tuple[str, Any, str, str]] = []
        if card.over_starts is not None:
            kinds.append(("model", card.over_starts, "@vermilion", "circle"))
        if card.over_starts_with_noise is not None:
            kinds.append(("model with noise", card.over_starts_with_noise, "@purple", "square"))
        for kind, found, shade, symbol in kinds:
            gone = int((~np.isfinite(found.dstsp)).sum())
            if gone:
                words.append(f"{of}{kind}: {gone} of {len(found.dstsp)} runs diverge and have no score")
            lasting = np.isfinite(found.dstsp)
            values = (found.dstsp[lasting], found.spectrum_distance[lasting])
            traces += _spread(values, f"{of}{kind}", kind, shade, symbol)
            rows += [(run.name, kind, *row) for row in zip(*(v.tolist() for v in values), strict=True)]
            places.append(f"{of}{kind}")
        floors = (card.dstsp_floor.values, card.spectrum_floor.values)
        traces += _spread(floors, f"{of}floor", "floor", "@soft", "diamond")
        places.append(f"{of}floor")
    order: dict[str, Any] = {"automargin": True, "categoryorder": "array", "categoryarray": places[::-1]}
    order["range"] = [-0.6, len(places) - 0.4]
    first = runs[0]["invariants"]
    length = first.over_starts.length if first.over_starts is not None else first.dstsp_floor.length
    tail = (
        f"Each mark is a run of {length:,} steps from a start of its own, or a pair of stretches of the "
        "reference (floor); lines go from the least to the most, the large mark is the median."
    )
    return Figure(
        "scores",
        "Scores over starts, beside their floor",
        sentence(words, tail, named=len(runs) > 1) if words else tail,
        tuple(traces),
        {
            "showlegend": False,  # every row has its name
            "xaxis": axis("D_stsp, nats", range=_room(traces, 0), nticks=5, domain=[0, 0.46]),
            "yaxis": order,
            "xaxis2": axis("D_H", range=_room(traces, 1), nticks=5, domain=[0.54, 1], anchor="y2"),
            "yaxis2": order | {"anchor": "x2", "showticklabels": False},
        },
        height=150 + 46 * len(places),
        downloads=(csv_download("scores.csv", ("run", "kind", "dstsp", "spectrum_distance"), rows),),
    )


def _room(traces: Sequence[dict[str, Any]], which: int) -> list[float]:
    """Return a range from zero that leaves room for the label of the largest median."""
    largest = max((max(trace["x"]) for trace in traces if ("xaxis" in trace) == bool(which)), default=1.0)
    return [0.0, 1.15 * largest]


def _spread(
    values: tuple[Any, Any], place: str, name: str, shade: str, symbol: str
) -> Iterator[dict[str, Any]]:
    """Yield, for each score, a line from the least to the most, all values, and their median."""
    for i, found in enumerate(values):
        where = {"xaxis": "x2", "yaxis": "y2"} if i else {}
        if not len(found):
            continue
        common: dict[str, Any] = {"type": "scatter", "name": name, **where}
        ends = [float(found.min()), float(found.max())]
        bar = {"line": {"color": shade, "width": 2}, "hoverinfo": "skip"}
        yield common | {"mode": "lines", "x": ends, "y": [place] * 2} | bar
        marker = {"color": shade, "size": 6, "symbol": symbol, "opacity": 0.45}
        yield common | {"mode": "markers", "x": found.tolist(), "y": [place] * len(found), "marker": marker}
        middle = {"color": shade, "size": 12, "symbol": symbol, "line": {"color": "@card", "width": 1.5}}
        yield common | {
            "mode": "markers+text",
            "x": [float(np.median(found))],
            "y": [place],
            "marker": middle,
            "text": [number(float(np.median(found)))],
            "textposition": "top center",
            "cliponaxis": False,
            "textfont": {"size": 11, "color": "@ink"},
        }
