"""The verdict, on top; and what was done, at the end: data, model, settings and versions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from palrnn.report.blocks import Banner, Block, Grid, Side, Table
from palrnn.report.registry import section
from palrnn.report.sections.invariants import verdict_words
from palrnn.report.view import Run


@section("verdict", "Verdict", order=0, needs="invariants")
def verdict(runs: Sequence[Run]) -> list[Block]:
    """Return one banner per run: its grade, why, how long it lives, and what to try next."""
    if len(runs) == 1:
        return [banner(runs[0])]
    return [Side(tuple((run.name, (banner(run),)) for run in runs))]


def banner(run: Run) -> Banner:
    """Return the verdict on a run in words."""
    card = run["invariants"]
    return Banner(card.verdict.grade, verdict_words(card), tuple(run.advice))


@section("done", "Settings and versions", order=100)
def done(runs: Sequence[Run]) -> list[Block]:
    """Return data, model, settings and versions, a table for each."""
    tables = tuple(
        table(group, runs) for group in dict.fromkeys(group for run in runs for group in run.facts)
    )
    return [Grid(tables)] if tables and len(runs) < 3 else list(tables)


def table(group: str, runs: Sequence[Run]) -> Table:
    """Return one group of facts, a column per run."""
    keys = dict.fromkeys(key for run in runs for key in run.facts.get(group, {}))
    rows = tuple((key, *(_words(run.facts.get(group, {}).get(key)) for run in runs)) for key in keys)
    names = [run.name for run in runs] if len(runs) > 1 else [""]
    return Table(group, ("", *names), rows)


_LISTED = 12


def _words(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (float, np.floating)):
        return f"{value:.6g}"
    if isinstance(value, (list, tuple)):
        more = f", and {len(value) - _LISTED} more" if len(value) > _LISTED else ""
        return ", ".join(_words(part) for part in value[:_LISTED]) + more
    return str(value)
