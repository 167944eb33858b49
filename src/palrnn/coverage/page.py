"""The tables of the study as Markdown, between the marks of a page: no number is typed by hand."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from palrnn.coverage.forecasting import NETWORKS
from palrnn.coverage.shares import wilson_interval
from palrnn.engine.files import write_text

_MARK = re.compile(r"(<!-- coverage: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
# a share of fewer data sets says nothing
_LEAST = 5


def update_page(page: str | os.PathLike[str], folder: str | os.PathLike[str]) -> None:
    """Write what the tables in ``folder`` say between the marks of ``page``.

    A mark is ``<!-- coverage: parameters -->`` (or invariants, or forecasts), its end ``<!-- end -->``.
    """
    file = Path(page)
    text = file.read_text(encoding="utf-8")
    if not _MARK.search(text):
        raise ValueError(f"{page}: has no marks <!-- coverage: ... --> to write tables between")
    words = _MARK.sub(lambda found: found[1] + "\n" + _part(found[2], Path(folder)) + "\n" + found[3], text)
    if words != text:
        write_text(file, words)


def _part(name: str, folder: Path) -> str:
    parts: dict[str, Callable[[Path], str]] = {
        "parameters": lambda place: _methods(place, ("parameters",)),
        "invariants": lambda place: (
            _methods(place, ("exponent", "fixed point")) + _together(place, "exponent")
        ),
        "forecasts": _forecasts,
    }
    if name not in parts:
        raise ValueError(f"a mark must be one of {', '.join(parts)}, got {name!r}")
    return parts[name](folder)


def _methods(folder: Path, asked: tuple[str, ...]) -> str:
    found = [row for row in _read(folder / "methods.csv") if row["asked"] in asked]
    rows = [row for row in found if int(row["datasets"]) >= _LEAST]
    header = ["truth", "noise (process, observation)", "rows", "asked", "method", "data sets"]
    header += [
        "90 % covers (95 % interval)",
        "50 % covers (95 % interval)",
        "median width of 90 %",
        "seconds",
    ]
    lines = []
    for row in rows:
        places = f"{row['process']}, {row['observation']}"
        cells = [row["truth"], places, f"{int(row['rows']):,}", row["asked"], row["method"], row["datasets"]]
        cells += [_share(row, "0.9"), _share(row, "0.5"), _number(row["width 0.9"]), _number(row["seconds"])]
        lines.append(cells)
    if len(rows) == len(found):
        return _table(header, lines)
    return (
        _table(header, lines)
        + f"\n{len(found) - len(rows)} settings have fewer than {_LEAST} data sets yet.\n"
    )


def _together(folder: Path, asked: str) -> str:
    """Return in words how often the intervals of each method held, over all settings."""
    rows = [row for row in _read(folder / "methods.csv") if row["asked"] == asked]
    lines = []
    for method in dict.fromkeys(row["method"] for row in rows):
        own = [row for row in rows if row["method"] == method]
        count, words = sum(int(row["datasets"]) for row in own), []
        for level in ("0.9", "0.5"):
            held = sum(float(row[f"covered {level}"]) * int(row["datasets"]) for row in own)
            ends = " to ".join(f"{100 * end:.0f}" for end in wilson_interval(held / count, count))
            words.append(
                f"the {100 * float(level):.0f} % interval holds it in {held:.0f} of {count} ({ends} %)"
            )
        lines.append(f"- `{method}`, {asked}, all settings together: {', '.join(words)}.")
    return "\n" + "\n".join(lines) + "\n" if lines else ""


def _forecasts(folder: Path) -> str:
    rows = _read(folder / "forecasts.csv")
    leads = list(dict.fromkeys(row["until"] for row in rows))
    header = ["forecaster", "data sets", "measure", *(f"to {lead} Lyapunov times" for lead in leads)]
    lines = []
    for name in dict.fromkeys(row["forecaster"] for row in rows):
        found = [row for row in rows if row["forecaster"] == name]
        measures = [("coverage", "90 % band covers, %", 100.0), ("crps", "CRPS", 1.0)]
        if name != NETWORKS:
            measures.append(("crps beyond networks", "CRPS minus that of the networks", 1.0))
        for what, words, factor in measures:
            cells = [
                f"{factor * float(row[what]):.3g}"
                + (f" ± {factor * float(row[f'{what} error']):.2g}" if row[f"{what} error"] else "")
                for row in found
            ]
            lines.append([name, found[0]["datasets"], words, *cells])
    return _table(header, lines)


def _share(row: dict[str, str], level: str) -> str:
    share, least, most = (
        f"{100 * float(row[f'{name} {level}']):.0f}" for name in ("covered", "least", "most")
    )
    return f"{share} ({least} to {most})"


def _number(text: str) -> str:
    if not text:
        return "none"
    value = float(text)
    return f"{value:.0f}" if abs(value) >= 100.0 else f"{value:.2g}"


def _read(file: Path) -> list[dict[str, str]]:
    if not file.is_file():
        return []
    with file.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def _table(header: list[str], rows: Iterable[list[Any]]) -> str:
    body = ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    if not body:
        return "*Not computed yet.*\n"
    head = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join([*head, *body]) + "\n"
