"""The attractor: what the free-running model draws in state space, over the held-out data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from palrnn.engine.checks import Floats
from palrnn.report.blocks import Block, Choice, Figure, View, csv_download, number, typed_array
from palrnn.report.drawing import COLOURS, axis, bits, colour, per_run, percent, within_sight
from palrnn.report.registry import section
from palrnn.report.view import Run

_POINTS = 5000
_SHOWN_CODES = 6
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
    order=20,
    lead="The model runs freely from one held-out observation, without ever seeing the data again. If it has "
    "learned the dynamics, its path fills the same region in the same way, although the two paths part "
    "sooner or later.",
)
def attractor(runs: Sequence[Run]) -> tuple[Block, ...]:
    """Return one portrait per run."""
    points = min(_POINTS, 3 * _POINTS // len(runs))
    return per_run(runs, lambda run, key: [portrait(run, f"{key}-attractor", points)])


def portrait(run: Run, key: str, points: int = _POINTS) -> Figure:
    """Return the generated path, coloured by switching code, over the held-out one.

    Three or more coordinates make a 3-D figure of the first three, two a plane, and one a delay plot.
    """
    truth, names = coordinates(run.reference, run.columns, run.reference)
    path, _ = coordinates(run.generated, run.columns, run.reference)
    codes = run.codes[len(run.codes) - len(path) :]
    seen = ~np.isnan(within_sight(path, truth)).any(axis=1)
    unseen, path, codes = int((~seen).sum()), path[seen], codes[seen]
    truth, path, codes = truth[-points:], path[-points:], codes[-points:]
    deep = truth.shape[1] == 3
    traces = [
        _trace(truth, "held-out data", deep)
        | {"mode": "lines", "line": {"color": "@faint", "width": 1.5 if deep else 1}}
    ]
    card = run.results.get("invariants")
    ranked = [] if card is None or card.symbols is None else [bits(code) for code in card.symbols.codes]
    groups, distinct = by_code(codes, ranked)
    first_other = next((group for group in groups if group.other), None)
    for group in groups:
        marker = {"color": group.colour, "size": 2 if deep else 3, "opacity": 0.55 if group.other else 1}
        trace = _trace(path[group.steps], group.name, deep) | {"mode": "markers", "marker": marker}
        if group.other:
            # one entry in the legend for all of them
            trace |= {"legendgroup": "others", "showlegend": group is first_other}
        traces.append(trace)
    made = (False,) + (True,) * len(groups)
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
        scene["camera"] = {"eye": {"x": 1.25, "y": -1.35, "z": 0.4}, "center": {"x": 0, "y": 0, "z": -0.12}}
        layout = {"scene": scene, "margin": {"l": 0, "r": 0, "t": 0, "b": 0}}
    return Figure(
        key,
        "Generated path over held-out data",
        _summary(run, names, groups, distinct, len(path), unseen),
        tuple(traces),
        layout,
        height=560 if deep else 460,
        views=views if deep else (),
        choices=(
            Choice("both", (True,) * len(traces)),
            Choice("held-out data", (True,) + (False,) * len(groups)),
            Choice("generated path", made),
        ),
        downloads=(
            csv_download("held-out.csv", names, truth.tolist()),
            csv_download(
                "generated.csv",
                (*names, "code"),
                [(*row, bits(code)) for row, code in zip(path.tolist(), codes, strict=True)],
            ),
        ),
    )


def coordinates(series: Floats, columns: Sequence[str], reference: Floats) -> tuple[Floats, tuple[str, ...]]:
    """Return the two or three coordinates to draw ``series (T, N)`` in, and their names."""
    if series.shape[1] > 1:
        return series[:, :3], tuple(columns[:3])
    lag = min(decorrelation(reference[:, 0]), max(1, len(series) // 4))
    here, later = series[: max(0, len(series) - lag)], series[lag:]
    return np.hstack([here, later]), (columns[0], f"{columns[0]}, {lag} steps later")


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
    steps: int,
    unseen: int,
) -> str:
    true, made = (coordinates(x, run.columns, run.reference)[0] for x in (run.reference, run.generated))
    parts = [
        f"{name} from {number(made[:, i].min())} to {number(made[:, i].max())} "
        f"(data {number(np.nanmin(true[:, i]))} to {number(np.nanmax(true[:, i]))})"
        for i, name in enumerate(names)
        if len(made)
    ]
    if not parts:
        return "The model diverged at once: there is no path to draw."
    words = f"The last {steps} steps of the generated path: {'; '.join(parts)}."
    if unseen:
        words += f" {unseen} of its points are too far from the data to be drawn."
    if not run.codes.shape[1]:
        return words
    gates = f"It passes through {distinct} linear regions; colours are switching codes"
    return f"{words} {gates}, the most visited {groups[0].name}."
