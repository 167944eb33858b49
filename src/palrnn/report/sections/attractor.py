"""The attractor: what the free-running model draws in state space, over the held-out data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from palrnn.engine.checks import Floats
from palrnn.engine.text import counted
from palrnn.report.blocks import Beside, Block, Cards, Choice, Figure, View, csv_download, number, typed_array
from palrnn.report.coordinates import Coordinates
from palrnn.report.drawing import COLOURS, axis, bits, colour, per_run, percent, within_sight
from palrnn.report.registry import first_headlines, section
from palrnn.report.view import Run

_POINTS = 5000
_SHOWN_CODES = 6
# widths of the data around them that a picture shows
_SIGHT = 1.0
# gates up to which codes are short enough for a legend
_SHORT_CODES = 5
_NAMES = ("x", "y", "z")


class Group(NamedTuple):
    """Steps that share a colour; ``other`` marks codes that share it with more visited ones."""

    name: str
    steps: NDArray[np.int64]
    colour: str
    other: bool = False


@section(
    "attractor",
    "The attractor",
    order=10,
    lead="The model runs freely from one held-out observation and never sees the data again: its path should "
    "fill the same region in the same way.",
)
def attractor(runs: Sequence[Run]) -> tuple[Block, ...]:
    """Return one portrait per run, with the numbers that sum it up."""
    points = min(_POINTS, 2 * _POINTS // len(runs))
    return per_run(runs, lambda run, key: _blocks(run, key, points, alone=len(runs) == 1))


def _blocks(run: Run, key: str, points: int, *, alone: bool) -> list[Block]:
    picture, cards = portrait(run, f"{key}-attractor", points), first_headlines(run)
    if not cards:
        return [picture]
    return [Beside(picture, cards)] if alone else [picture, Cards(cards)]


def portrait(run: Run, key: str, points: int = _POINTS) -> Figure:
    """Return the generated path, coloured by switching code, over the held-out one.

    Three or more coordinates make a 3-D figure of the first three, more than six one of their leading
    principal components, two a plane, and one a delay plot. Fixed points within sight are marked.
    """
    truth, names, note = coordinates(run.reference, run.columns, run.reference)
    path = coordinates(run.generated, run.columns, run.reference)[0]
    codes = run.codes[len(run.codes) - len(path) :]
    seen = ~np.isnan(within_sight(path, truth, _SIGHT)).any(axis=1)
    unseen, path, codes = int((~seen).sum()), path[seen], codes[seen]
    truth, path, codes = truth[-points:], path[-points:], codes[-points:]
    deep = truth.shape[1] == 3
    marks: dict[str, Any] = {"mode": "lines", "line": {"color": "@faint", "width": 1.5 if deep else 1}}
    if is_jumpy(truth):
        marks = {"mode": "markers", "marker": {"color": "@faint", "size": 3 if deep else 5}}
    traces = [_trace(truth, "held-out data", deep) | marks]
    card = run.results.get("invariants")
    ranked = [] if card is None or card.symbols is None else [bits(code) for code in card.symbols.codes]
    groups, distinct = by_code(codes, ranked)
    first_other = next((group for group in groups if group.other), None)
    listed = codes.shape[1] <= _SHORT_CODES
    for group in groups:
        marker = {"color": group.colour, "size": 2 if deep else 3, "opacity": 0.55 if group.other else 1}
        trace = _trace(path[group.steps], group.name, deep) | {"mode": "markers", "marker": marker}
        if not listed:
            name = "generated path, a colour for each switching code"
            trace |= {"name": name, "legendgroup": "made", "showlegend": group is groups[0]}
        elif group.other:
            # one entry in the legend for all of them
            trace |= {"legendgroup": "others", "showlegend": group is first_other}
        traces.append(trace)
    resting = _resting(run, truth, deep)
    traces += resting
    made = (False,) + (True,) * (len(groups) + len(resting))
    titles = {_NAMES[i]: axis(name) for i, name in enumerate(names)}
    planes = (("x", "z"), ("x", "y"), ("y", "z"))
    views = (View("3-D"),) + tuple(
        View(
            f"{names[_NAMES.index(a)]} and {names[_NAMES.index(b)]}",
            (a, b),
            {"xaxis": titles[a], "yaxis": titles[b]},
        )
        for a, b in planes
        if deep
    )
    layout: dict[str, Any] = {"xaxis": titles["x"], "yaxis": titles["y"]}
    if deep:
        scene: dict[str, Any] = {
            f"{_NAMES[i]}axis": {"title": {"text": name}} for i, name in enumerate(names)
        }
        # coordinates have units of their own: a flat box would push its labels out of the picture
        scene["aspectmode"] = "cube"
        scene["camera"] = {"eye": {"x": 1.4, "y": -1.5, "z": 0.45}, "center": {"x": 0, "y": 0, "z": -0.16}}
        layout = {"scene": scene, "margin": {"l": 0, "r": 0, "t": 0, "b": 0}}
    return Figure(
        key,
        "Generated path over held-out data",
        f"{_summary(run, names, groups, distinct, path, unseen)} {note}".strip(),
        tuple(traces),
        layout,
        height=560 if deep else 460,
        views=views if deep else (),
        choices=(
            Choice("both", (True,) * len(traces)),
            Choice("held-out data", (True,) + (False,) * (len(traces) - 1)),
            Choice("generated path", made),
        ),
        downloads=(
            csv_download(
                "generated.csv",
                (*names, "code"),
                [(*row, bits(code)) for row, code in zip(path.tolist(), codes, strict=True)],
            ),
        ),
    )


def coordinates(
    series: Floats, columns: Sequence[str], reference: Floats
) -> tuple[Floats, tuple[str, ...], str]:
    """Return the two or three coordinates to draw ``series (T, N)`` in, their names, and a note on them."""
    if series.shape[1] > 1:
        chosen = Coordinates.of(reference, columns)
        return chosen(series), chosen.names, chosen.note
    lag = min(decorrelation(reference[:, 0]), max(1, len(series) // 4))
    here, later = series[: max(0, len(series) - lag)], series[lag:]
    after = f"{counted(lag, 'step')} later"
    note = f"A single column is drawn in its delay plane, against itself {after}."
    return np.hstack([here, later]), (columns[0], f"{columns[0]}, {after}"), note


def is_jumpy(points: Floats) -> bool:
    """Whether consecutive ``points (T, N)`` are far apart, as those of a map: lines would hide the attractor.

    They are if the squared steps exceed the variance, that is, if the correlation from one step to the next
    is below a half.
    """
    if len(points) < 3:
        return False
    steps, spread = np.nanmean(np.diff(points, axis=0) ** 2, axis=0), np.nanvar(points, axis=0)
    return bool(steps.sum() > spread.sum())


def _resting(run: Run, truth: Floats, deep: bool) -> list[dict[str, object]]:
    """Return the fixed points near the data as marks, those that attract apart from the others."""
    card = run.results.get("invariants")
    if run.resting is None or card is None or card.fixed_points is None:
        return []
    places = run.resting
    if places.shape[1] == 1:  # at rest it is the same some steps later
        drawn = np.hstack([places, places])
    else:
        drawn = Coordinates.of(run.reference, run.columns)(places)
    near = ~np.isnan(within_sight(drawn, truth, _SIGHT)).any(axis=1)
    traces = []
    for name, which, symbol in (
        ("fixed point, attracts", card.fixed_points.stable & near, "diamond"),
        ("fixed point, unstable", ~card.fixed_points.stable & near, "diamond-open"),
    ):
        if which.any():
            marker = {"color": "@ink", "size": 5 if deep else 9, "symbol": symbol, "line": {"width": 2}}
            traces.append(_trace(drawn[which], name, deep) | {"mode": "markers", "marker": marker})
    return traces


def decorrelation(x: Floats) -> int:
    """Return the first lag at which the autocorrelation of ``x (T,)`` falls below 0.8: near, not the same."""
    centred = np.where(np.isnan(x), 0.0, x - np.nanmean(x))
    size = 1 << (2 * len(x) - 1).bit_length()
    power = np.abs(np.fft.rfft(centred, size)) ** 2
    correlation = np.fft.irfft(power, size)[: len(x)]
    below = np.flatnonzero(correlation < 0.8 * correlation[0])
    return int(below[0]) if below.size else 1


def by_code(codes: NDArray[np.bool_], ranked: Sequence[str] = ()) -> tuple[list[Group], int]:
    """Return the steps of ``codes (T, P)`` in groups of one colour each, and the number of different codes.

    The most visited codes (by ``ranked``, or by their counts) have a group and a colour of their own. The
    others share the colours like countries on a map: none has the colour of a code that it follows or
    precedes, as far as the colours go.
    """
    if codes.shape[1] == 0 or len(codes) == 0:
        return [Group("generated path", np.arange(len(codes)), colour(0))], 1
    patterns, member = np.unique(codes, axis=0, return_inverse=True)
    member = member.ravel()
    counts = np.bincount(member)
    names = [bits(pattern) for pattern in patterns]
    rank = {name: i for i, name in enumerate(ranked)}
    order = sorted(range(len(names)), key=lambda k: (rank.get(names[k], len(rank)), -counts[k]))
    painted = _painted(member, order)
    groups = [
        Group(
            f"{names[k]} ({percent(counts[k] / len(codes))})", np.flatnonzero(member == k), colour(painted[k])
        )
        for k in order[:_SHOWN_CODES]
    ]
    others = order[_SHOWN_CODES:]
    for shade in sorted({painted[k] for k in others}):
        steps = np.flatnonzero(np.isin(member, [k for k in others if painted[k] == shade]))
        groups.append(Group(f"{len(others)} other codes", steps, colour(shade), other=True))
    return groups, len(patterns)


def _painted(member: NDArray[np.int64], order: list[int]) -> dict[int, int]:
    """Return a colour for each code: the first ones their own, others the rarest among their neighbours."""
    here, there = member[:-1], member[1:]
    moves = np.unique(np.column_stack([here, there])[here != there], axis=0)
    painted = {k: i for i, k in enumerate(order[: len(COLOURS)])}
    for k in order[len(COLOURS) :]:
        near = {int(b if a == k else a) for a, b in moves if k in (a, b)}
        used = [painted[neighbour] for neighbour in near if neighbour in painted]
        painted[k] = min(range(len(COLOURS)), key=used.count)
    return painted


def _trace(points: Floats, name: str, deep: bool) -> dict[str, object]:
    trace: dict[str, object] = {"type": "scatter3d" if deep else "scatter", "name": name, "hoverinfo": "skip"}
    return trace | {_NAMES[i]: typed_array(points[:, i]) for i in range(points.shape[1])}


def _summary(
    run: Run,
    names: Sequence[str],
    groups: list[Group],
    distinct: int,
    path: Floats,
    unseen: int,
) -> str:
    if not len(path):
        if not unseen:
            return "The model diverged at once: there is no path to draw."
        return f"All {unseen} points of the generated path are too far from the data to be drawn."
    true = coordinates(run.reference, run.columns, run.reference)[0]
    parts = [
        f"{name} from {number(path[:, i].min())} to {number(path[:, i].max())} "
        f"(data {number(np.nanmin(true[:, i]))} to {number(np.nanmax(true[:, i]))})"
        for i, name in enumerate(names)
    ]
    words = f"{counted(len(path), 'step')} of the generated path: {'; '.join(parts)}."
    if unseen:
        words += f" {counted(unseen, 'more point')} of it lie too far from the data to be drawn."
    if not run.codes.shape[1]:
        return words
    if distinct == 1:
        return f"{words} It stays in one linear region, with the switching code {bits(run.codes[-1])}."
    gates = f"It passes through {distinct:,} linear regions; colours are switching codes"
    return f"{words} {gates}, the most visited {groups[0].name}."
