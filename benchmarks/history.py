"""Figures of benchmarks by version and processor, in history.csv; `run.py --record` adds to it.

One row per processor, version, benchmark and figure: the same again replaces the row. docs/benchmarks.md
shows the table between two marks.
"""

from __future__ import annotations

import csv
import io
import os
import platform
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
FILE, PAGE = HERE / "history.csv", HERE.parent / "docs" / "benchmarks.md"
BEGIN, END = "<!-- history: begin -->", "<!-- history: end -->"


class Row(NamedTuple):
    """One figure, measured on one processor with one version."""

    processor: str
    version: str
    benchmark: str
    figure: str
    value: str
    unit: str

    @property
    def key(self) -> tuple[str, ...]:
        """What there is one row for."""
        return self[:4]


def processor() -> str:
    """Return the name of this machine's processor, with what its registers can do."""
    name = platform.processor() or platform.machine()
    about = Path("/proc/cpuinfo")
    flags = ""
    if about.exists():
        text = about.read_text()
        found = re.search(r"^model name\s*:\s*(.+)$", text, re.M)
        name = found[1].strip() if found else name
        flags = next((f" ({wide})" for wide, flag in _WIDTHS if flag in text), "")
    return " ".join(name.split()) + flags


_WIDTHS = (("AVX-512", "avx512f"), ("AVX2", "avx2"))


def read(file: Path = FILE) -> list[Row]:
    """Return the rows of the table, none if there is no file."""
    if not file.exists():
        return []
    with file.open(newline="", encoding="utf-8") as stream:
        return [Row(**row) for row in csv.DictReader(stream)]


def record(rows: Iterable[Row], file: Path = FILE) -> list[Row]:
    """Add rows to the table, in place of those with the same key; write it whole or not at all."""
    table = {row.key: row for row in read(file)} | {row.key: row for row in rows}
    merged = [table[key] for key in sorted(table)]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(Row._fields)
    writer.writerows(merged)
    _replace(file, text.getvalue())
    return merged


def shown(rows: Iterable[Row]) -> str:
    """Return the table as the page shows it."""
    lines = ["| processor | version | benchmark | figure | |", "|---|---|---|---|---|"]
    lines += [f"| {' | '.join(row[:4])} | {row.value} {row.unit} |" for row in rows]
    return "\n".join(lines)


def show(rows: Iterable[Row], page: Path = PAGE) -> None:
    """Put the table between the marks of the page."""
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    _replace(page, f"{before}{BEGIN}\n{shown(rows)}\n{END}{after}")


def _replace(file: Path, text: str) -> None:
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, file)
