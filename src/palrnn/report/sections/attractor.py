"""The attractor: what the free-running model draws in state space, over the held-out data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palrnn.engine.checks import Floats
from palrnn.report.blocks import Choice, Figure, Section, View, csv_download, number, packed
from palrnn.report.findings import Run
from palrnn.report.sections.drawing import axis, colour, per_run, percent

_POINTS = 5000
_SHOWN_CODES = 6
_NAMES = ("x", "y", "z")


def section(runs: Sequence[Run]) -> Section | None:
    """Return the section with one portrait per run."""
    return Section(
        "attractor",
        "The attractor",
        "The model runs freely from one held-out observation, without ever seeing the data again. If it has "
        "learned the "
        "dynamics, its path fills the same region in the same way, although the two paths part sooner or "
        "later.",
        per_run(
            runs, lambda run, key: [portrait(run, f"{key}-attractor", min(_POINTS, 3 * _POINTS // len(runs)))]
        ),
    )


def portrait(run: Run, key: str, points: int = _POINTS) -> Figure:
    """Return the generated path, coloured by switching code, over the held-out one.

    Three or more coordinates make a 3-D figure of the first three, two a plane, and one a delay plot.
    """
    truth, names = coordinates(run.reference, run.columns, run.reference)
    path, _ = coordinates(run.generated, run.columns, run.reference)
    codes = run.codes[len(run.codes) - len(path) :]
    truth, path, codes = truth[-points:], path[-points:], codes[-points:]
    deep = truth.shape[1] == 3
    traces = [
        _trace(truth, "held-out data", deep)
        | {"mode": "lines", "line": {"color": "@faint", "width": 1.5 if deep else 1}}
    ]
    groups, distinct = by_code(codes)
    for name, members, shade in groups:
        size = 2 if deep else 3
        traces.append(
            _trace(path[members], name, deep) | {"mode": "markers", "marker": {"color": shade, "size": size}}
        )
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
        scene["camera"] = {"eye": {"x": 1.15, "y": -1.25, "z": 0.35}, "center": {"x": 0, "y": 0, "z": -0.08}}
        layout = {"scene": scene, "margin": {"l": 0, "r": 0, "t": 0, "b": 0}}
    return Figure(
        key,
        "Generated path over held-out data",
        _summary(run, names, groups, distinct, len(path)),
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
    centred = x - x.mean()
    size = 1 << (2 * len(x) - 1).bit_length()
    power = np.abs(np.fft.rfft(centred, size)) ** 2
    correlation = np.fft.irfft(power, size)[: len(x)]
    below = np.flatnonzero(correlation < 0.8 * correlation[0])
    return int(below[0]) if below.size else 1


def by_code(codes: NDArray[np.bool_]) -> tuple[list[tuple[str, NDArray[np.int64], str]], int]:
    """Return the most visited codes with their steps and colours, the others as one, and their number."""
    if codes.shape[1] == 0 or len(codes) == 0:
        return [("generated path", np.arange(len(codes)), colour(0))], 1
    patterns, member = np.unique(codes, axis=0, return_inverse=True)
    member = member.ravel()
    counts = np.bincount(member)
    order = np.argsort(-counts, kind="stable")
    groups = [
        (
            f"{bits(patterns[which])} ({percent(counts[which] / len(codes))})",
            np.flatnonzero(member == which),
            colour(i),
        )
        for i, which in enumerate(order[:_SHOWN_CODES])
    ]
    rest = np.flatnonzero(np.isin(member, order[_SHOWN_CODES:]))
    if rest.size:
        groups.append(
            (f"{len(order) - _SHOWN_CODES} other codes ({percent(rest.size / len(codes))})", rest, "@soft")
        )
    return groups, len(patterns)


def bits(code: NDArray[np.bool_]) -> str:
    """Return a switching code as a string of zeros and ones."""
    return "".join("1" if bit else "0" for bit in code)


def _trace(points: Floats, name: str, deep: bool) -> dict[str, object]:
    trace: dict[str, object] = {"type": "scatter3d" if deep else "scatter", "name": name, "hoverinfo": "skip"}
    return trace | {_NAMES[i]: packed(points[:, i]) for i in range(points.shape[1])}


def _summary(
    run: Run,
    names: Sequence[str],
    groups: list[tuple[str, NDArray[np.int64], str]],
    distinct: int,
    steps: int,
) -> str:
    parts = []
    for i, name in enumerate(names):
        true, made = (
            coordinates(run.reference, run.columns, run.reference)[0],
            coordinates(run.generated, run.columns, run.reference)[0],
        )
        if len(made):
            parts.append(
                f"{name} from {number(made[:, i].min())} to {number(made[:, i].max())} "
                f"(data {number(true[:, i].min())} to {number(true[:, i].max())})"
            )
    if not parts:
        return "The model diverged at once: there is no path to draw."
    words = f"The last {steps} steps of the generated path: {'; '.join(parts)}."
    if not run.codes.shape[1]:
        return words
    gates = f"It passes through {distinct} linear regions; colours are switching codes"
    return f"{words} {gates}, the most visited {groups[0][0]}."
