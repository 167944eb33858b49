"""All figures of a results folder, drawn from its tables and nothing else; each study draws its own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from palrnn.engine.files import subfolder
from palrnn.paper.presets import Preset
from palrnn.paper.study import Picture, studies_in
from palrnn.paper.tables import Tables

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The paper's main figure, made of the panels of several studies.
RESULTS = Picture("Fig. results a", "results", "Ambiguity in the toy, curvature gap, and fine-tuning")


def draw_figures(preset: Preset, folder: str | os.PathLike[str]) -> None:
    """Draw every figure whose tables are in a results folder, as PDF, SVG and PNG."""
    from palrnn.engine.style import save_figure, styled

    tables, place = Tables(folder), Path(folder)
    with styled():
        figures = {RESULTS.figure: results_figure(preset, tables)}
        for study in studies_in(preset):
            figures |= study.figures(tables) if study.name in tables else {}
        for name, figure in figures.items():
            if figure is None:
                continue
            # laid out once, not once for every format
            figure.draw_without_rendering()
            figure.set_layout_engine("none")
            for kind in ("pdf", "svg", "png"):
                save_figure(figure, subfolder(place, "figures") / f"{name}.{kind}")


def results_figure(preset: Preset, tables: Tables) -> Figure | None:
    """Draw the paper's panels (a) toy, (b) curvature gap, (c) fine-tuning, side by side (fig. results).

    A study that has no table yet leaves its panel empty; without any table there is no figure.
    """
    from matplotlib.figure import Figure

    studies = [study for study in studies_in(preset) if study.panel_width]
    if not any(study.name in tables for study in studies):
        return None
    figure = Figure(figsize=(11, 6.4), layout="constrained")
    parts: Any = figure.subfigures(
        1, len(studies), width_ratios=[study.panel_width for study in studies], squeeze=False
    )
    for study, part in zip(studies, parts[0], strict=True):
        if study.name in tables:
            study.panel(part, tables)
    return figure
