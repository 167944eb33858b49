"""The search that a model came from: what was tried, and why this one won."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from palrnn.report.blocks import Block, Table, Text, csv_download, number
from palrnn.report.registry import section
from palrnn.report.view import Run

_SHOWN = 20
_HEADER = (
    *("rank", "candidate", "updates", "grade", "alive", "D_stsp", "floor", "D_H"),
    *("family", "M", "P", "forcing", "rate", "noise", "clip", "lags"),
)


@section(
    "search",
    "Search",
    order=55,
    lead="Settings that were tried. Runs start at a fifth of the training part that none of them learned "
    "from, and are compared with all of it. "
    "Of each rung a third went on; in the end the winner learned from that fifth, too, and so did the usual "
    "settings, which have a row only where they were kept. The held-out part has chosen nothing.",
)
def search(runs: Sequence[Run]) -> list[Block]:
    """Return the table of every run that came from a search."""
    blocks: list[Block] = []
    for run in runs:
        if run.search is not None:
            of = f"{run.name}: " if len(runs) > 1 else ""
            blocks += [Text(of + run.search.why), search_table(run.search.rows, of)]
    return blocks


def search_table(rows: Sequence[Mapping[str, Any]], of: str = "", most: int = _SHOWN) -> Table:
    """Return the best ``most`` candidates as a table, all of them as a download."""
    left = len(rows) - most
    caption = f"{of}the best of {len(rows)} candidates" + (
        f"; {left} more are in table.csv" if left > 0 else ""
    )
    header = list(dict.fromkeys(name for row in rows for name in row))
    content = csv_download("table.csv", header, [[row.get(name) for name in header] for row in rows])
    return Table(caption, _HEADER, tuple(map(_cells, rows[:most])), downloads=(content,))


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    lags, clip = row.get("lags") or 1, row.get("gradient_clip")
    return (
        str(row["rank"]),
        str(row["candidate"]),
        f"{row['updates']:,}",
        str(row["grade"]),
        f"{row.get('alive')}/{row.get('starts')}",
        number(row.get("dstsp")),
        number(row.get("dstsp_floor")),
        number(row.get("spectrum_distance")),
        str(row.get("family")),
        str(row.get("latent_dim")),
        str(row.get("gated")),
        str(row.get("forcing")).removeprefix("Forcing."),
        number(row.get("learning_rate"), 2),
        number(row.get("input_noise"), 2),
        "none" if clip is None else number(clip, 2),
        "1" if lags == 1 else f"{lags} x {row.get('delay')}",
    )
