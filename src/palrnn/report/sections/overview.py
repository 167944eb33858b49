"""At a glance, and what was done: the headline numbers, then data, model, settings and versions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from palrnn.report.blocks import Block, Cards, Grid, Table
from palrnn.report.registry import headlines, section
from palrnn.report.view import Run


@section("glance", "At a glance", order=0)
def glance(runs: Sequence[Run]) -> list[Block]:
    """Return the headline numbers of every run."""
    cards = [(run.name if len(runs) > 1 else "", headlines(run)) for run in runs]
    return [Cards(found, name) for name, found in cards if found]


@section("done", "What was done", order=10)
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


def _words(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (float, np.floating)):
        return f"{value:.6g}"
    if isinstance(value, (list, tuple)):
        return ", ".join(_words(part) for part in value)
    return str(value)
