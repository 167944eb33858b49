"""Evidence before and after tuning, and what tuning does to the dynamics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from palrnn.report.blocks import Block, Card, Figure, Table, csv_download, number, with_error
from palrnn.report.drawing import axis, colour, line, per_run
from palrnn.report.registry import headline, section
from palrnn.report.view import Run
from palrnn.tuning import Comparison

_WORDS = {
    "baseline": "as trained by forcing",
    "calib": "noise levels tuned",
    "full": "noise and drift tuned",
    "anchored": "drift tuned, held by the forcing loss",
}
_EXPONENT = "λ₁ of the map"
_HEADER = (
    "Stage",
    "Evidence",
    "Process noise",
    "Observation noise",
    "D_stsp",
    _EXPONENT,
    "D_stsp, sampled",
)


@section(
    "evidence",
    "Evidence before and after tuning",
    order=90,
    needs="tuning",
    lead="Particle-SAEM raises the log evidence of short held-out windows. Raising it need not make a better "
    "surrogate: the drift can trade chaos for short-term fit.",
)
def evidence(runs: Sequence[Run]) -> tuple[Block, ...]:
    """Return evidence and invariants of every stage of every run."""
    return per_run(runs, _blocks)


def _blocks(run: Run, key: str) -> list[Block]:
    found, known = run["tuning"], _true_exponent(run)
    return [
        evidence_table(found, known),
        by_stage(found, f"{key}-evidence", known),
        *_course(found, f"{key}-course"),
    ]


@headline(order=50, needs="tuning")
def gain(run: Run) -> Card | None:
    """Return how much evidence tuning gained, and what became of the dynamics."""
    found: Comparison = run["tuning"]
    first, last = (found.row(list(found.results)[i]) for i in (0, -1))
    gained = last["heldout_evidence"] - first["heldout_evidence"]
    if not np.isfinite(gained) or len(found.results) < 2:
        return None
    moves, lesson = [], ""
    for name, label, unit in (
        ("heldout_evidence", "held-out windows", " nats per step and coordinate"),
        ("lyapunov", _EXPONENT, ""),
        ("dstsp", "D_stsp", ""),
    ):
        if np.isfinite(first[name]) and np.isfinite(last[name]):
            moves.append(f"{label} from {number(first[name])} to {number(last[name])}{unit}")
    if gained > 0 and last["dstsp"] > first["dstsp"]:
        lesson = ": more evidence is not the same as better dynamics"
    words = f"Tuning by evidence moves {', '.join(moves)}{lesson}."
    return Card("Evidence gained by tuning", f"{'+' if gained > 0 else ''}{number(gained)}", words, "nats")


def evidence_table(found: Comparison, known: float | None = None) -> Table:
    """Return evidence, noise and invariants by stage; ``known`` is the largest exponent of the reference."""
    rows = tuple(_row(_described(name), found.row(name)) for name in found.results)
    config = next(iter(found.results.values())).config
    reference = "" if known is None else f" The reference has λ₁ = {number(known)}."
    return Table(
        f"{config.heldout_windows} held-out windows of {config.length} steps, {config.particles} particles; "
        f"evidence in nats per step and coordinate.{reference}",
        _HEADER,
        rows,
        (csv_download("tuning.csv", _HEADER, rows),),
    )


def _row(name: str, row: dict[str, float]) -> tuple[str, ...]:
    figures = ("process_std", "observation_std", "dstsp", "lyapunov", "sampled_dstsp")
    return (
        name,
        _with_error(row["heldout_evidence"], row["heldout_stderr"]),
        *(number(row[f]) for f in figures),
    )


def by_stage(found: Comparison, key: str, known: float | None) -> Figure:
    """Return held-out evidence by stage beside the largest Lyapunov exponent of the map."""
    names, rows = list(found.results), [found.row(name) for name in found.results]
    values = [_finite(row["heldout_evidence"]) for row in rows]
    errors = [_finite(row["heldout_stderr"]) or 0 for row in rows]
    exponents = [_finite(row["lyapunov"]) for row in rows]
    below = {"xaxis": "x2", "yaxis": "y2"}
    traces: list[dict[str, Any]] = [
        _points(values, names, "held-out evidence", {"color": "@blue", "size": 11})
        | {"error_x": {"type": "data", "array": errors, "color": "@blue"}},
        _points(
            exponents,
            names,
            "largest Lyapunov exponent of the map",
            {"color": "@vermilion", "size": 11, "symbol": "diamond"},
        )
        | below,
    ]
    if known is not None:
        dashed = {"line": {"color": "@soft", "width": 1, "dash": "dash"}}
        ends = ([known, known], [names[0], names[-1]])
        traces.append(line(*ends, "reference exponent", "@soft", hoverinfo="skip") | below | dashed)
    words = f"Evidence goes from {number(values[0])} ({names[0]}) to {number(values[-1])} ({names[-1]})"
    if exponents[0] is not None and exponents[-1] is not None:
        ends_of = f"from {number(exponents[0])} to {number(exponents[-1])}"
        words += f"; the largest Lyapunov exponent of the map {ends_of}"
    return Figure(
        key,
        "Evidence and dynamics by stage",
        f"{words}.",
        tuple(traces),
        {
            "xaxis": axis("evidence, nats per step and coordinate", anchor="y"),
            "yaxis": {"automargin": True, "autorange": "reversed", "domain": [0.64, 1]},
            "xaxis2": axis("largest Lyapunov exponent of the map", anchor="y2"),
            "yaxis2": {"automargin": True, "autorange": "reversed", "domain": [0, 0.36]},
        },
        height=230 + 60 * len(names),
    )


def _points(x: list[float | None], y: list[str], name: str, marker: dict[str, Any]) -> dict[str, Any]:
    return {"type": "scatter", "mode": "markers", "x": x, "y": y, "name": name, "marker": marker}


def _course(found: Comparison, key: str) -> list[Figure]:
    """Return the evidence of the training windows by iteration, if there was more than one."""
    courses = {name: result.history["evidence"] for name, result in found.results.items()}
    courses = {name: course[np.isfinite(course)] for name, course in courses.items()}
    courses = {name: course for name, course in courses.items() if len(course) > 1}
    if not courses:
        return []
    traces = tuple(
        line(list(range(1, len(course) + 1)), course.tolist(), name, colour(i + 1), width=2)
        | {"mode": "lines+markers"}
        for i, (name, course) in enumerate(courses.items())
    )
    words = "; ".join(f"{name}: from {number(c[0])} to {number(c[-1])}" for name, c in courses.items())
    rows = [(name, i, value) for name, c in courses.items() for i, value in enumerate(c.tolist(), start=1)]
    return [
        Figure(
            key,
            "Evidence of the training windows by iteration",
            f"{words}.",
            traces,
            {"xaxis": axis("iteration", dtick=1), "yaxis": axis("evidence")},
            300,
            downloads=(csv_download("saem.csv", ("stage", "iteration", "evidence"), rows),),
        )
    ]


def _described(name: str) -> str:
    words = _WORDS.get(name)
    return f"{name}: {words}" if words else name


def _true_exponent(run: Run) -> float | None:
    card = run.results.get("invariants")
    return None if card is None else card.lyapunov


def _with_error(value: float, error: float) -> str:
    if np.isneginf(value):
        return "−∞: some window is impossible"
    return with_error(value, error)


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
