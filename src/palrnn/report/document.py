"""The report of one run, or of several side by side, as one page."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import tomli_w

from palrnn.engine.config import Config
from palrnn.engine.files import write_text
from palrnn.engine.folders import check_file
from palrnn.report.blocks import Page, json_download
from palrnn.report.page import MARK, write_page
from palrnn.report.registry import headlines, sections
from palrnn.report.view import Run

_MARK = b"# settings of a palrnn report"


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


def write_report(
    runs: Sequence[Run], path: str | os.PathLike[str], title: str = "", settings: Config | None = None
) -> None:
    """Write the report of ``runs`` to ``path``, one HTML file that needs nothing else.

    With ``settings``, these are written beside it as TOML. A file that is not a report is not overwritten.
    """
    page, beside = check_report(path)
    write_page(report_page(runs, title), page)
    if settings is not None:
        write_text(beside, f"{_MARK.decode()}\n{tomli_w.dumps(settings.for_toml())}")


def check_report(
    path: str | os.PathLike[str], inputs: Sequence[str | os.PathLike[str]] = ()
) -> tuple[Path, Path]:
    """Return the places of a report and its settings; refuse those of files that are something else."""
    page = check_file(path, MARK.encode(), inputs=inputs)
    if page.suffix not in (".html", ".htm"):
        raise ValueError(f"{page}: the name of a report must end in .html")
    if not page.resolve().parent.is_dir():
        raise ValueError(f"{page}: the folder {page.resolve().parent} does not exist")
    # the very file that the settings came from may be written again, with the same settings
    return page, check_file(page.with_suffix(".toml"), _MARK)


def numbers(run: Run) -> dict[str, Any]:
    """Return what was found about ``run`` as plain values, without the trajectories."""
    cards = [asdict(card) for card in headlines(run)]
    found = {name: result.to_dict() for name, result in run.results.items() if hasattr(result, "to_dict")}
    return {"name": run.name, "facts": run.facts, "headlines": cards, **found}


def _subtitle(run: Run) -> str:
    sizes = ", ".join(f"{key} {value}" for key, value in list(run.facts.get("Model", {}).items())[:2])
    held = run.facts.get("Data", {}).get("held-out steps", len(run.reference))
    return f"{run.reference.shape[1]} observed coordinates, {held} held-out steps; {sizes}".strip("; ")
