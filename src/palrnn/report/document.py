"""The report of one run, or of several side by side, as one page."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from palrnn.report.blocks import Page, json_download
from palrnn.report.page import write_page
from palrnn.report.registry import headlines, sections
from palrnn.report.view import Run


def report_page(runs: Sequence[Run], title: str = "") -> Page:
    """Return the page that shows ``runs``; sections for which no run has results are left out."""
    if not runs:
        raise ValueError("runs must hold at least one run, got none")
    parts = tuple(part for part in (entry.section(runs) for entry in sections()) if part is not None)
    names = ", ".join(run.name for run in runs)
    heading = title or (
        f"Reconstruction report: {names}" if len(runs) == 1 else f"{len(runs)} reconstructions side by side"
    )
    subtitle = _subtitle(runs[0]) if len(runs) == 1 else names
    return Page(heading, subtitle, parts, (json_download("report.json", [numbers(run) for run in runs]),))


def write_report(runs: Sequence[Run], path: str | os.PathLike[str], title: str = "") -> None:
    """Write the report of ``runs`` to ``path``, one HTML file that needs nothing else."""
    write_page(report_page(runs, title), path)


def numbers(run: Run) -> dict[str, Any]:
    """Return what was found about ``run`` as plain values, without the trajectories."""
    cards = [asdict(card) for card in headlines(run)]
    found = {name: result.to_dict() for name, result in run.results.items() if hasattr(result, "to_dict")}
    return {"name": run.name, "facts": run.facts, "headlines": cards, **found}


def _subtitle(run: Run) -> str:
    sizes = ", ".join(f"{key} {value}" for key, value in list(run.facts.get("Model", {}).items())[:2])
    held = run.facts.get("Data", {}).get("held-out steps", len(run.reference))
    return f"{run.reference.shape[1]} observed coordinates, {held} held-out steps; {sizes}".strip("; ")
