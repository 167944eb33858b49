"""Evidence before and after tuning, and what tuning does to the dynamics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from palrnn.report.blocks import Block, Figure, Section, Table, csv_download, number
from palrnn.report.view import Run, Stage, Tuning
from palrnn.report.drawing import axis, colour, line, per_run

_WORDS = {
    "baseline": "as trained by forcing",
    "calib": "noise levels tuned",
    "full": "noise and drift tuned",
    "anchored": "drift tuned, held by the forcing loss",
}


def section(runs: Sequence[Run]) -> Section | None:
    """Return the section with evidence and invariants of every stage of every run."""
    having = [run for run in runs if run.tuning is not None and run.tuning.stages]
    if not having:
        return None
    return Section(
        "evidence",
        "Evidence before and after tuning",
        "Particle-SAEM raises the log evidence of short held-out windows. Raising it need not make a better "
        "surrogate: "
        "the drift can trade chaos for short-term fit.",
        per_run(having, _blocks),
    )


def _blocks(run: Run, key: str) -> list[Block]:
    tuning = run.tuning
    assert tuning is not None
    return [table(run, tuning), bars(run, tuning, f"{key}-evidence"), *_course(tuning, f"{key}-course")]


def table(run: Run, tuning: Tuning) -> Table:
    """Return evidence, noise and invariants by stage."""
    known = (
        run.invariants.reference_exponents[0]
        if run.invariants and run.invariants.reference_exponents
        else None
    )
    rows = tuple(
        (
            described(stage),
            _with_error(stage.evidence, stage.evidence_stderr),
            number(stage.process_std),
            number(stage.observation_std),
            number(stage.dstsp),
            number(stage.lyapunov),
        )
        for stage in tuning.stages
    )
    header = ("Stage", "Evidence", "Process noise", "Observation noise", "D_stsp", "λ₁")
    reference = "" if known is None else f" The reference has λ₁ = {number(known)}."
    return Table(
        f"{tuning.windows} held-out windows of {tuning.length} steps, {tuning.particles} particles; "
        "evidence in nats per step "
        f"and coordinate, D_stsp "
        f"against the second half of the held-out data.{reference}",
        header,
        rows,
        (csv_download("tuning.csv", header, rows),),
    )


def bars(run: Run, tuning: Tuning, key: str) -> Figure:
    """Return held-out evidence by stage beside the largest Lyapunov exponent."""
    names = [stage.name for stage in tuning.stages]
    evidence: dict[str, Any] = {
        "type": "scatter",
        "mode": "markers",
        "x": [stage.evidence for stage in tuning.stages],
        "y": names,
        "name": "held-out evidence",
        "marker": {"color": "@blue", "size": 11},
        "error_x": {
            "type": "data",
            "array": [stage.evidence_stderr or 0 for stage in tuning.stages],
            "color": "@blue",
        },
    }
    exponents: dict[str, Any] = {
        "type": "scatter",
        "mode": "markers",
        "x": [stage.lyapunov for stage in tuning.stages],
        "y": names,
        "name": "largest Lyapunov exponent",
        "marker": {"color": "@vermilion", "size": 11, "symbol": "diamond"},
        "xaxis": "x2",
        "yaxis": "y2",
    }
    traces = [evidence, exponents]
    if run.invariants and run.invariants.reference_exponents:
        known = run.invariants.reference_exponents[0]
        dashed = {"xaxis": "x2", "yaxis": "y2", "line": {"color": "@soft", "width": 1, "dash": "dash"}}
        traces.append(
            line([known, known], [names[0], names[-1]], "reference exponent", "@soft", hoverinfo="skip")
            | dashed
        )
    return Figure(
        key,
        "Evidence and dynamics by stage",
        _summary(tuning),
        tuple(traces),
        {
            "xaxis": axis("evidence, nats per step and coordinate", anchor="y"),
            "yaxis": {"automargin": True, "autorange": "reversed", "domain": [0.64, 1]},
            "xaxis2": axis("largest Lyapunov exponent", anchor="y2"),
            "yaxis2": {"automargin": True, "autorange": "reversed", "domain": [0, 0.36]},
        },
        height=230 + 60 * len(names),
    )


def described(stage: Stage) -> str:
    """Return a stage's name with what it means."""
    words = _WORDS.get(stage.name)
    return f"{stage.name}: {words}" if words else stage.name


def _course(tuning: Tuning, key: str) -> list[Figure]:
    courses = [stage for stage in tuning.stages if len(stage.history) > 1]
    if not courses:
        return []
    traces = tuple(
        line(list(range(1, len(stage.history) + 1)), stage.history, stage.name, colour(i + 1), width=2)
        | {"mode": "lines+markers"}
        for i, stage in enumerate(courses)
    )
    words = "; ".join(
        f"{stage.name}: from {number(stage.history[0])} to {number(stage.history[-1])}" for stage in courses
    )
    rows = [(stage.name, i + 1, value) for stage in courses for i, value in enumerate(stage.history)]
    layout = {"xaxis": axis("iteration", dtick=1), "yaxis": axis("evidence")}
    files = (csv_download("saem.csv", ("stage", "iteration", "evidence"), rows),)
    return [
        Figure(
            key,
            "Evidence of the training windows by iteration",
            f"{words}.",
            traces,
            layout,
            300,
            downloads=files,
        )
    ]


def _summary(tuning: Tuning) -> str:
    first, last = tuning.stages[0], tuning.stages[-1]
    words = (
        f"Evidence goes from {number(first.evidence)} ({first.name}) to {number(last.evidence)} ({last.name})"
    )
    if first.lyapunov is not None and last.lyapunov is not None:
        words += f"; the largest Lyapunov exponent from {number(first.lyapunov)} to {number(last.lyapunov)}"
    return f"{words}."


def _with_error(value: float | None, error: float | None) -> str:
    if value is None:
        return "−∞: some window is impossible"
    return number(value) if not error else f"{number(value)} ± {number(error, 2)}"
