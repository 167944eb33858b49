"""Error bars that were kept with a run: intervals over models drawn around it, for whatever was measured."""

from __future__ import annotations

from collections.abc import Callable

from palrnn.report.blocks import Table, csv_download, number
from palrnn.report.view import Run


def interval(run: Run, figure: str) -> tuple[float, float] | None:
    """Return the ends of the interval of a figure; None where there is none."""
    found = {} if run.bars is None else run.bars["figures"].get(figure, {})
    low, high = found.get("low"), found.get("high")
    return None if low is None or high is None else (low, high)


def bars_tables(run: Run, of: Callable[[str], bool]) -> list[Table]:
    """Return the intervals of the figures that ``of`` picks, as a table, or nothing where there are none."""
    if run.bars is None:
        return []
    found = {name: figure for name, figure in run.bars["figures"].items() if of(name)}
    if not found:
        return []
    level = f"{100 * run.bars.get('coverage', 0.9):g} %"
    header = ("", "Model", "From", "To")
    rows = tuple(
        (name, *(number(figure[part]) for part in ("value", "low", "high"))) for name, figure in found.items()
    )
    caption = f"{run.name}: {level} intervals over {run.bars['models']} models by {run.bars['method']}."
    return [Table(caption, header, rows, (csv_download("bars.csv", header, rows),))]


def of_fixed_points(name: str) -> bool:
    """Return whether a figure is one of a fixed point."""
    return name.startswith("fixed point")
