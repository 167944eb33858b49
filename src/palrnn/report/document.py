"""The report of one run, or of several side by side, as one page."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from palrnn.report.blocks import Card, Page, json_download
from palrnn.report.view import Run
from palrnn.report.page import write_page
from palrnn.report.sections import (
    attractor,
    evidence,
    filtering,
    forecast,
    geometry,
    invariants,
    overview,
    symbols,
    training,
)

_SECTIONS = (
    overview.section,
    overview.done,
    attractor.section,
    forecast.section,
    training.section,
    invariants.section,
    symbols.section,
    geometry.section,
    filtering.section,
    evidence.section,
)


def report_page(runs: Sequence[Run], title: str = "") -> Page:
    """Return the page that shows ``runs``; sections for which no run has results are left out."""
    if not runs:
        raise ValueError("runs must hold at least one run, got none")
    sections = tuple(part for part in (section(runs) for section in _SECTIONS) if part is not None)
    names = ", ".join(run.name for run in runs)
    heading = title or (
        f"Reconstruction report: {names}" if len(runs) == 1 else f"{len(runs)} reconstructions side by side"
    )
    subtitle = _subtitle(runs[0]) if len(runs) == 1 else names
    return Page(heading, subtitle, sections, (json_download("report.json", [numbers(run) for run in runs]),))


def write_report(runs: Sequence[Run], path: str | os.PathLike[str], title: str = "") -> None:
    """Write the report of ``runs`` to ``path``, one HTML file that needs nothing else."""
    write_page(report_page(runs, title), path)


def headlines(run: Run) -> tuple[Card, ...]:
    """Return the headline numbers of ``run``, each with a sentence on what it means."""
    return overview.headlines(run)


def numbers(run: Run) -> dict[str, Any]:
    """Return what was found about ``run`` as JSON-like numbers, without the trajectories."""
    found = {name: getattr(run, name) for name in ("invariants", "filtering", "geometry", "tuning")}
    cards = [asdict(card) for card in headlines(run)]
    return {"name": run.name, "facts": run.facts, "headlines": cards} | {
        name: part.model_dump(mode="json") for name, part in found.items() if part is not None
    }


def _subtitle(run: Run) -> str:
    sizes = ", ".join(f"{key} {value}" for key, value in list(run.facts.get("Model", {}).items())[:2])
    held = run.facts.get("Data", {}).get("held-out steps", len(run.reference))
    return f"{run.reference.shape[1]} observed coordinates, {held} held-out steps; {sizes}".strip("; ")
