"""What was done: the headline numbers, the data, the model, the settings and the versions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from palrnn.report.blocks import Block, Card, Cards, Grid, Section, Table, number
from palrnn.report.view import Invariants, Run
from palrnn.report.drawing import percent


def section(runs: Sequence[Run]) -> Section | None:
    """Return the headline numbers of every run."""
    several = len(runs) > 1
    blocks: list[Block] = []
    for run in runs:
        cards = headlines(run)
        if cards:
            blocks.append(Cards(cards, run.name if several else ""))
    return Section("glance", "At a glance", "", tuple(blocks)) if blocks else None


def done(runs: Sequence[Run]) -> Section | None:
    """Return the section that says what was done: data, model, settings, versions."""
    tables = tuple(
        table(group, runs) for group in dict.fromkeys(group for run in runs for group in run.facts)
    )
    return (
        Section("done", "What was done", "", (Grid(tables),) if len(runs) < 3 else tables) if tables else None
    )


def headlines(run: Run) -> tuple[Card, ...]:
    """Return up to five numbers that sum a run up, each with a sentence on what it means."""
    makers = (_divergence, _exponent, _gap, _missing, _evidence)
    return tuple(card for card in (maker(run) for maker in makers) if card is not None)


def table(group: str, runs: Sequence[Run]) -> Table:
    """Return one group of facts, a column per run."""
    keys = dict.fromkeys(key for run in runs for key in run.facts.get(group, {}))
    rows = tuple((key, *(_shown(run.facts.get(group, {}).get(key)) for run in runs)) for key in keys)
    names = [run.name for run in runs] if len(runs) > 1 else [""]
    return Table(group, ("", *names), rows)


def _divergence(run: Run) -> Card | None:
    found = run.invariants
    if found is None or found.dstsp is None:
        return None
    sentence = f"How differently the generated path and {found.reference} fill state space (0: alike)."
    floor = found.dstsp_floor
    if floor is not None:
        verdict = "no more than" if found.dstsp <= floor.high else "more than"
        spread = f"{number(floor.median)}, up to {number(floor.high)}"
        source = "stretches of the data" if found.simulated is None else f"simulations of {found.simulated}"
        sentence += f" That is {verdict} {source} differ among themselves: {spread}."
    return Card("State-space divergence D_stsp", number(found.dstsp), sentence)


def _exponent(run: Run) -> Card | None:
    found = run.invariants
    if found is None or not found.exponents or found.exponents[0] is None:
        return None
    value = found.exponents[0]
    error = found.exponents_stderr[0] if found.exponents_stderr else None
    unit = f"± {number(error, 2)}" if error else ""
    return Card("Largest Lyapunov exponent λ₁", number(value), _pace(value, found, run.dt), unit)


def _pace(value: float, found: Invariants, dt: float | None) -> str:
    if value > 0:
        units = "steps" if dt is None else "time units"
        words = f"Nearby states part by a factor e in {number(1 / value)} {units}: the model is chaotic."
    else:
        words = "Nearby states do not part: the model is not chaotic."
    return (
        f"{words} The true system has {number(found.reference_exponents[0])}."
        if found.reference_exponents
        else words
    )


def _gap(run: Run) -> Card | None:
    found = run.geometry
    if found is None or found.gap is None:
        return None
    ratio = 10 ** abs(found.gap)
    side = "as sharp" if found.gap >= 0 else "as flat"
    return Card(
        "Curvature gap g",
        number(found.gap),
        f"By trace, ruled by the sharpest directions, the forcing objective is {number(ratio)} times {side} "
        "around the trained parameters as the marginal likelihood of the same model, which allows for gate "
        "paths other than the forced one.",
        "decades",
    )


def _missing(run: Run) -> Card | None:
    found = run.geometry
    if found is None:
        return None
    lost = found.trace_state + found.trace_switching
    share = (
        f" {percent(found.trace_switching / lost)} of that is switching ambiguity, the rest the unseen state."
        if lost > 0
        else ""
    )
    return Card(
        "Missing information",
        percent(found.mir),
        "What the data would tell about the parameters if states and gates were seen, and does not tell as "
        f"it is.{share}",
    )


def _evidence(run: Run) -> Card | None:
    found = run.tuning
    if found is None or len(found.stages) < 2:
        return None
    first, last = found.stages[0], found.stages[-1]
    if first.evidence is None or last.evidence is None:
        return None
    unit = "nats per step and coordinate"
    moves = [f"held-out windows from {number(first.evidence)} to {number(last.evidence)} {unit}"]
    if first.lyapunov is not None and last.lyapunov is not None:
        moves.append(f"λ₁ from {number(first.lyapunov)} to {number(last.lyapunov)}")
    gain, lesson = last.evidence - first.evidence, ""
    if first.dstsp is not None and last.dstsp is not None:
        moves.append(f"D_stsp from {number(first.dstsp)} to {number(last.dstsp)}")
        if gain > 0 and last.dstsp > first.dstsp:
            lesson = ": more evidence is not the same as better dynamics"
    words = f"Tuning by evidence moves {', '.join(moves)}{lesson}"
    return Card("Evidence gained by tuning", f"{'+' if gain > 0 else ''}{number(gain)}", f"{words}.", "nats")


def _shown(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (float, np.floating)):
        return f"{value:.6g}"
    if isinstance(value, (list, tuple)):
        return ", ".join(_shown(part) for part in value)
    return str(value)
