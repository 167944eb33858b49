"""Reading `.csv` files: with or without a header, separated by commas, semicolons, tabs or blanks.

The parser is the standard library's, the numbers are Python's ``float`` (exact), and a bad cell is found by
its line in the file, which is what an editor shows.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import IO

import numpy as np

from palrnn.data.table import Choice, SeriesError, Table, chosen, is_date
from palrnn.engine.checks import Floats

_MISSING = frozenset({"", "nan", "-nan", "na", "n/a", "#n/a", "null", "none"})
_CHUNK = 8192

Row = tuple[int, list[str]]


def read_csv(file: Path, columns: Sequence[str] | None, trial: str) -> Table:
    """Return the observed columns of ``file``, NaN where a cell is empty or says ``nan`` or ``NA``."""
    with file.open(encoding="utf-8-sig", newline="") as stream:
        rows = _rows(stream)
        first = next(rows, None)
        if first is None:
            raise SeriesError(f"{file}: is empty")
        headed = _is_header(first[1])
        width = len(first[1])
        names = [cell.strip().lstrip("#").strip() for cell in first[1]] if headed else []
        second = next(rows, None) if headed else first
        body: Iterator[Row] = chain([] if second is None else [second], rows)
        if headed and width > 1 and names[-1] == "":  # every line ends with a separator
            body = _without_last(file, body, width)
            names, width = names[:-1], width - 1
        dated = second is not None and is_date(second[1][0])
        numbered = names or [str(i + 1) for i in range(width)]
        choice = chosen(file, numbered, columns, trial, dated=dated)
        shown = [name or str(i + 1) for i, name in enumerate(numbered)]
        return _table(file, body, width, shown, choice)


def _rows(stream: IO[str]) -> Iterator[Row]:
    """Yield the line number and the cells of every row that is not blank."""
    head: list[str] = []
    for line in stream:
        head.append(line)
        if line.strip():
            break
    blanks, start = len(head) - 1, head[-1] if head else ""
    lines = chain(head[-1:], stream)
    separator = next((mark for mark in (";", "\t", ",") if mark in start), None)
    if separator is None:
        for number, line in enumerate(lines, blanks + 1):
            if cells := line.split():
                yield number, cells
        return
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    for cells in reader:
        if any(cell.strip() for cell in cells):
            yield blanks + reader.line_num, cells


def _is_header(cells: Sequence[str]) -> bool:
    """Whether a first row holds names: some cell is neither a number, nor missing, nor a date."""
    if any(not (_is_missing(cell) or _is_number(cell) or is_date(cell)) for cell in cells):
        return True
    # a table saved with its index and without names: an empty cell, then 0, 1, 2, ...
    return len(cells) > 1 and [cell.strip() for cell in cells] == ["", *map(str, range(len(cells) - 1))]


def _without_last(file: Path, rows: Iterator[Row], width: int) -> Iterator[Row]:
    for line, cells in rows:
        if len(cells) == width and cells[-1].strip():
            raise SeriesError(f"{file}: line {line}: column {width} has no name in the header")
        yield line, cells[: width - 1] if len(cells) == width else cells


def _table(file: Path, rows: Iterator[Row], width: int, names: list[str], choice: Choice) -> Table:
    blocks: list[Floats] = []
    lines: list[int] = []
    labels: list[str] = []
    while chunk := list(islice(rows, _CHUNK)):
        for line, cells in chunk:
            if len(cells) != width:
                raise SeriesError(f"{file}: line {line}: has {len(cells)} cells, expected {width}")
        lines.extend(line for line, _ in chunk)
        if choice.trial is not None:
            labels.extend(cells[choice.trial].strip() for _, cells in chunk)
        blocks.append(_numbers(file, chunk, names, choice.observed))
    values = np.concatenate(blocks) if blocks else np.empty((0, len(choice.observed)))
    kept = [names[i] for i in choice.observed]
    return Table(kept, values, lines, labels if choice.trial is not None else None)


def _numbers(file: Path, chunk: list[Row], names: list[str], observed: list[int]) -> Floats:
    try:
        values = np.array([[float(cells[i]) for i in observed] for _, cells in chunk])
        if "_" not in "".join(chain.from_iterable(cells for _, cells in chunk)):
            return values
    except ValueError:
        pass
    return np.array(
        [[_number(file, cells[i], names[i], line) for i in observed] for line, cells in chunk],
        dtype=np.float64,
    )


def _number(file: Path, cell: str, name: str, line: int) -> float:
    if _is_missing(cell):
        return math.nan
    if _is_number(cell):
        return float(cell)
    hint = " (write decimals with a point)" if re.fullmatch(r"[+-]?\d*,\d+", cell.strip()) else ""
    raise SeriesError(f"{file}: column {name}, line {line}: {cell.strip()[:40]!r} is not a number{hint}")


def _is_missing(cell: str) -> bool:
    return cell.strip().lower() in _MISSING


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell  # Python reads 1_000 as a number, nobody's instrument writes it
