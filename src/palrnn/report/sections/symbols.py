"""Symbols: the linear regions the model passes through, and in which order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from palrnn.engine.checks import Floats
from palrnn.invariants import Scorecard
from palrnn.report.blocks import Block, Figure, Note, csv_download, number
from palrnn.report.drawing import bits, colour, line, per_run, percent
from palrnn.report.registry import section
from palrnn.report.view import Run

_LISTED, _COLOURED, _SHORT = 24, 6, 6
_RAREST, _WEAKEST = 0.005, 0.02


@dataclass(frozen=True, eq=False)
class Graph:
    """The most visited codes as a graph.

    ``codes`` are bit strings; ``places (K, N)`` the mean raw observation while in each; ``moves`` hold (from,
    to, probability) between them, given that the code is left.
    """

    codes: list[str]
    occupancy: list[float]
    places: Floats
    moves: list[tuple[int, int, float]]

    @classmethod
    def of(cls, card: Scorecard) -> Graph:
        """Return the graph of a free run that did not diverge."""
        found = card.symbols
        assert found is not None
        listed = min(_LISTED, len(found.codes))
        chances = found.transitions[:listed, :listed].toarray()
        staying = chances.diagonal().copy()
        np.fill_diagonal(chances, 0.0)
        chances /= np.where(staying < 1, 1 - staying, 1.0)[:, None]
        moves = [(int(i), int(j), float(chances[i, j])) for i, j in np.argwhere(chances >= _RAREST)]
        places = np.array([card.hard.generated[found.symbols == i].mean(axis=0) for i in range(listed)])
        return cls(
            [bits(code) for code in found.codes[:listed]], found.occupancy[:listed].tolist(), places, moves
        )


@section(
    "symbols",
    "Switching codes",
    order=60,
    needs="invariants",
    lead="Each setting of the gates is a linear system; all else that the model does comes from switching "
    "between them. The order of the codes is a symbolic description of the attractor.",
)
def symbols(runs: Sequence[Run]) -> tuple[Block, ...]:
    """Return one transition graph per run that has gates, or that it diverged."""
    having = [run for run in runs if run["invariants"].gated]
    return per_run(having, _blocks)


def _blocks(run: Run, key: str) -> list[Block]:
    card: Scorecard = run["invariants"]
    if card.symbols is None:
        return [Note(f"No codes: the free run diverged after {card.hard.diverged_at} steps.")]
    if len(card.symbols.codes) == 1:
        code = bits(card.symbols.codes[0])
        return [Note(f"One code, {code}, for all of the free run: there the model is a linear system.")]
    return [graph(card, f"{key}-symbols")]


def graph(card: Scorecard, key: str) -> Figure:
    """Return the codes as discs where the model is while in them, and their transitions as arrows."""
    found = Graph.of(card)
    places = layout_of(found)
    drawn = [move for move in found.moves if move[2] >= _WEAKEST]
    paths = [_bent(places[start], places[end]) for start, end, _ in drawn]
    traces = [_edge(path, probability) for path, (_, _, probability) in zip(paths, drawn, strict=True)]
    if drawn:
        traces.append(_heads(paths, [probability for _, _, probability in drawn]))
    sizes = [10 + 46 * share**0.5 for share in found.occupancy]
    shades = [colour(i) if i < _COLOURED else "@soft" for i in range(len(found.codes))]
    traces.append(
        {
            "type": "scatter",
            "mode": "markers+text",
            "x": places[:, 0].tolist(),
            "y": places[:, 1].tolist(),
            "text": [_label(code, i) if i < _COLOURED else "" for i, code in enumerate(found.codes)],
            "textposition": "top center",
            "textfont": {"size": 10, "color": "@ink"},
            "customdata": [
                f"{code}, {percent(share)} of the time"
                for code, share in zip(found.codes, found.occupancy, strict=True)
            ],
            "hovertemplate": "%{customdata}<extra></extra>",
            "marker": {
                "size": sizes,
                "color": shades,
                "opacity": 0.92,
                "line": {"color": "@card", "width": 1.5},
            },
            "showlegend": False,
        }
    )
    hidden = {"visible": False}
    rows = [(found.codes[i], found.codes[j], p) for i, j, p in found.moves]
    return Figure(
        key,
        "Transitions between codes",
        _summary(card, found),
        tuple(traces),
        {
            "xaxis": hidden | {"range": _range(places[:, 0])},
            "yaxis": hidden | {"range": _range(places[:, 1])},
            "showlegend": False,
            "margin": {"l": 8, "r": 8, "t": 8, "b": 8},
        },
        height=460,
        downloads=(
            csv_download("codes.csv", ("code", "share"), zip(found.codes, found.occupancy, strict=True)),
            csv_download("transitions.csv", ("from", "to", "probability"), rows),
        ),
    )


def _label(code: str, rank: int) -> str:
    """Return a short code as it is, and a long one, which would cover others, as its rank."""
    return code if len(code) <= _SHORT else str(rank + 1)


def layout_of(found: Graph) -> Floats:
    """Return a place in the plane for each code: its mean observation along the two widest directions.

    Codes of a single coordinate, or all in one place, go on a circle instead.
    """
    places = found.places
    centred = places - places.mean(axis=0)
    scale = centred.std(axis=0)
    if places.shape[1] < 2 or len(places) < 3 or not (scale > 0).any():
        angle = 2 * np.pi * np.arange(len(places)) / max(1, len(places))
        # two codes are level: a height of one rounding error would fill the axis
        return np.column_stack([np.cos(angle), np.sin(angle)]).round(9)
    scaled = centred / np.where(scale > 0, scale, 1.0)
    directions = np.linalg.svd(scaled, full_matrices=False)[2][:2]
    plane: Floats = scaled @ directions.T
    return plane


def _bent(start: Floats, end: Floats) -> Floats:
    """A bent line ``(24, 2)`` from one code to another, so that there and back do not lie on each other."""
    along = end - start
    aside = np.array([-along[1], along[0]]) * 0.14
    s = np.linspace(0.0, 1.0, 24)[:, None]
    bent: Floats = (1 - s) ** 2 * start + 2 * s * (1 - s) * (start + along / 2 + aside) + s**2 * end
    return bent


def _edge(path: Floats, probability: float) -> dict[str, Any]:
    x, y = path.round(5).T.tolist()
    return line(x, y, "", "@faint", width=0.6 + 3 * probability, hoverinfo="skip", showlegend=False)


def _heads(paths: list[Floats], probabilities: list[float]) -> dict[str, Any]:
    """All arrow heads as one trace: each follows a point of no size, from which it takes its direction."""
    points = np.concatenate([path[[13, 15]] for path in paths])
    sizes = [size for probability in probabilities for size in (0, 7 + round(6 * probability))]
    return {
        "type": "scatter",
        "mode": "markers",
        "x": points[:, 0].round(5).tolist(),
        "y": points[:, 1].round(5).tolist(),
        "marker": {"symbol": "arrow", "angleref": "previous", "size": sizes, "color": "@soft"},
        "hoverinfo": "skip",
        "showlegend": False,
    }


def _range(values: Floats) -> list[float]:
    low, high = float(values.min()), float(values.max())
    margin = 0.18 * (high - low) or 1.0
    return [low - margin, high + margin]


def _summary(card: Scorecard, found: Graph) -> str:
    assert card.symbols is not None
    strongest = max(found.moves, key=lambda move: move[2], default=None)
    follows = ""
    if strongest is not None:
        i, j, p = strongest
        way = f"from {found.codes[i]} to {found.codes[j]}"
        follows = f" The surest transition leads {way} ({percent(p)} of departures)."
    distinct = len(card.symbols.codes)
    listed = f", the {len(found.codes)} most visited are shown" if len(found.codes) < distinct else ""
    return (
        f"The model uses {distinct:,} codes{listed}; the most visited is {found.codes[0]} "
        f"({percent(found.occupancy[0])} of the time). Entropy of the occupancy: "
        f"{number(card.symbols.occupancy_entropy)} bits.{follows} Discs lie where the model is while in a "
        "code, as large as it is frequent; arrows are as thick as the transition is likely."
        f"{_numbered(found)}"
    )


def _numbered(found: Graph) -> str:
    long = len(found.codes[0]) > _SHORT
    return " The most visited have their rank beside them, as in codes.csv." if long else ""
