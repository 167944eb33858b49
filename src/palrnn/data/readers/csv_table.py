"""Reading text: with or without a header, separated by commas, semicolons, tabs or blanks.

`.csv` and `.txt` tell the separator by their first line, in `.tsv` it is the tab. Without one, blanks are
between cells, unless the first line is ``Sunspot Number`` and the next a single word: that is one column. In
`.txt` and `.tsv`, lines in front that begin with ``#`` or ``%`` are remarks; the last of them names the
columns if it has as many words, none of them a number, as NumPy writes it.

The parser is the standard library's, the numbers are Python's ``float`` (exact), and a bad cell is found by
its line in the file, which is what an editor shows. A file is read line by line: in memory are its numbers,
eight bytes for each line, and a buffer.

The first row of a `.csv` file: names only are a header. Numbers only are a sample, except for the header
``0,1,2,...`` (perhaps after an empty cell) that pandas gives to columns without names. Both are an error that
names the odd cell, because a damaged first sample must not be dropped in silence; only a named index before
numbered columns (``time,0,1,2``) is a header.
"""

from __future__ import annotations

import csv
import math
import re
from array import array
from collections.abc import Iterator, Sequence
from itertools import chain, islice, repeat
from pathlib import Path
from typing import IO

import numpy as np

from palrnn.data.clock import date_ticks, is_date, is_time
from palrnn.data.readers.registry import reader
from palrnn.data.table import (
    Choice,
    Labels,
    SeriesError,
    Table,
    Wanted,
    choose,
    refuse_size,
    without_words,
)
from palrnn.engine.checks import Floats
from palrnn.engine.text import printable, quoted

_PEEKED = 1000
_CELLS = 100_000
# 200,000 long numbers; a file without line breaks must not be taken for a single line
_LONGEST_LINE = 2**22

# where nothing separates cells; None are blanks
_ALONE = ""

Row = tuple[int, list[str]]


@reader(".csv")
def read_csv(file: Path, wanted: Wanted) -> Table:
    """Return the observed columns of ``file``, NaN where a cell is empty or says ``nan`` or ``NA``."""
    return _read(file, wanted, (";", "\t", ","), remarks="")


@reader(".txt")
def read_txt(file: Path, wanted: Wanted) -> Table:
    """Return the observed columns of a text, whose columns are mostly apart by blanks."""
    return _read(file, wanted, (";", "\t", ","), remarks="#%")


@reader(".tsv")
def read_tsv(file: Path, wanted: Wanted) -> Table:
    """Return the observed columns of a table whose cells are apart by tabs."""
    return _read(file, wanted, ("\t",), remarks="#%")


def _read(file: Path, wanted: Wanted, separators: tuple[str, ...], remarks: str) -> Table:
    where = str(file)
    with file.open(encoding="utf-8-sig", newline="") as stream:
        rows = _rows(where, stream, separators, remarks)
        first = next(rows, None)
        if first is None:
            raise SeriesError(f"{where}: is empty")
        line, cells = first
        width = len(cells)
        peeked = list(islice(rows, max(1, min(_PEEKED, _CELLS // width))))
        headed = is_header(where, line, cells, [row for _, row in peeked], wanted)
        body: Iterator[Row] = chain([] if headed else [first], peeked, rows)
        headers = [str(i + 1) for i in range(width)]
        if headed:
            headers = [printable(cell.strip().lstrip("#").strip()) for cell in cells]
            if width > 1 and headers[-1] == "":  # every line ends with a separator
                body = _without_last(where, body, width)
                headers, width = headers[:-1], width - 1
        second = next(iter(peeked), None) if headed else first
        choice = choose(where, headers, wanted, dated=second is not None and is_date(second[1][0]))
        if headed and wanted.columns is None:
            choice = without_words(choice, lambda i: [row[i] for _, row in peeked if len(row) > i])
        return _table(where, body, choice)


def _lines(where: str, stream: IO[str]) -> Iterator[str]:
    number = 0
    while line := stream.readline(_LONGEST_LINE):
        number += 1
        if len(line) == _LONGEST_LINE:
            raise SeriesError(f"{where}: line {number} is longer than {_LONGEST_LINE} characters")
        yield line


def _rows(where: str, stream: IO[str], separators: tuple[str, ...], remarks: str) -> Iterator[Row]:
    """Yield the line number and the cells of every row that is not blank, names in a remark among them."""
    lines = _lines(where, stream)
    skipped, told, remark, start = 0, 0, "", ""
    for start in lines:
        if start.strip() and not start.lstrip().startswith(tuple(remarks)):
            break
        if start.strip():
            remark, told = start.strip().lstrip(remarks), skipped + 1
        skipped, start = skipped + 1, ""
    separator = next((mark for mark in separators if mark in start), None)
    if separator is None:
        blanks, second = _next_filled(lines)
        lines = chain(repeat("", blanks), [second], lines)
        separator = _ALONE if _names_one_column(start, second) else None
    rows = _cells(chain([start], lines), separator, skipped)
    if remark and separator != _ALONE:
        first = next(rows, None)
        (_, names), *_ = [*_cells(iter([remark]), separator, 0), (0, [])]
        if first is not None and len(names) == len(first[1]) and not any(map(is_number, names)):
            yield told, names
        rows = chain([] if first is None else [first], rows)
    yield from rows


def _next_filled(lines: Iterator[str]) -> tuple[int, str]:
    """Return the number of blank lines that come first, and the line after them ("" at the end)."""
    for blanks, line in enumerate(lines):
        if line.strip():
            return blanks, line
    return 0, ""


def _names_one_column(first: str, second: str) -> bool:
    """Whether the words of the first line are one name; in front of a name, a number is a damaged sample."""
    words = _words(first)
    if len(words) == 1 or len(_words(second)) != 1:
        return False
    return not (is_number(words[0]) or is_missing(words[0]) or is_date(words[0]))


def _words(line: str) -> list[str]:
    """Return the cells of a line between blanks, without the quotes that may be round them."""
    if '"' in line:
        try:
            return next(csv.reader([line.strip()], delimiter=" ", skipinitialspace=True, strict=True), [])
        except csv.Error:  # a quote that is not closed
            pass
    return line.split()


def _whole(line: str) -> list[str]:
    """Return the only cell of a line, without the quotes that may be round it."""
    cell = line.strip()
    in_quotes = len(cell) > 1 and cell[0] == cell[-1] == '"'
    return [cell[1:-1] if in_quotes else cell] if cell else []


def _cells(lines: Iterator[str], separator: str | None, skipped: int) -> Iterator[Row]:
    if not separator:
        split = _words if separator is None else _whole
        for number, line in enumerate(lines, skipped + 1):
            if cells := split(line):
                yield number, cells
        return
    parser = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    for cells in parser:
        if cells and (cells[0] or any(cell.strip() for cell in cells)):
            yield skipped + parser.line_num, cells


def _without_last(where: str, rows: Iterator[Row], width: int) -> Iterator[Row]:
    for line, cells in rows:
        if len(cells) == width and cells[-1].strip():
            raise SeriesError(f"{where}: line {line}: column {width} has no name in the header")
        yield line, cells[: width - 1] if len(cells) == width else cells


def _table(where: str, rows: Iterator[Row], choice: Choice) -> Table:
    names, width, seen = choice.names, len(choice.names), len(choice.observed)
    values, lines, numbers = array("d"), array("q"), array("q")
    times = None if choice.time is None else array("d")
    ranks: dict[str, int] = {}
    first = ""
    while chunk := list(islice(rows, max(1, _CELLS // width))):
        for line, cells in chunk:
            if len(cells) != width:
                raise SeriesError(f"{where}: line {line}: has {len(cells)} cells, expected {width}")
        lines.extend(line for line, _ in chunk)
        refuse_size(where, (len(lines), seen))
        if choice.trial is not None:
            marks = (printable(cells[choice.trial].strip()) for _, cells in chunk)
            numbers.extend(ranks.setdefault(mark, len(ranks)) for mark in marks)
        if times is not None:
            words = [cells[choice.time or 0] for _, cells in chunk]
            first = words[0] if not times else first
            told = _times(words, first)
            if told is None:
                times = None
            else:
                times.frombytes(told.tobytes())
        values.frombytes(_numbers(where, chunk, names, choice.observed).tobytes())
    labels = None
    if choice.trial is not None:
        labels = Labels(np.frombuffer(numbers, np.int64), tuple(ranks), names[choice.trial])
    clock = None if times is None or choice.time is None else names[choice.time]
    return Table(
        where,
        tuple(names[i] for i in choice.observed),
        np.frombuffer(values, np.float64).reshape(-1, seen),
        lines=np.frombuffer(lines, np.int64),
        labels=labels,
        clock=clock,
        times=None if clock is None else np.frombuffer(times or array("d"), np.float64),
        dated=is_date(first),
        left_out=choice.left_out,
    )


def _numbers(where: str, chunk: list[Row], names: list[str], observed: list[int]) -> Floats:
    try:
        values = np.array([[float(cells[i]) for i in observed] for _, cells in chunk])
        if "_" not in "".join(chain.from_iterable(cells for _, cells in chunk)):
            return values
    except ValueError:
        pass
    return np.array(
        [[_number(where, cells[i], names[i], line) for i in observed] for line, cells in chunk],
        dtype=np.float64,
    )


def _number(where: str, cell: str, name: str, line: int) -> float:
    if is_missing(cell):
        return math.nan
    if is_number(cell):
        return float(cell)
    hint = " (write decimals with a point)" if re.fullmatch(r"[+-]?\d*,\d+", cell.strip()) else ""
    shown = quoted(cell.strip(), 40)
    raise SeriesError(f"{where}: column {name}, line {line}: {shown} is not a number{hint}")


def _times(cells: list[str], first: str) -> Floats | None:
    """Return what the cells of a time column say, dates in seconds since ``first``; None if not times."""
    if is_date(first):
        ticks = date_ticks([first, *cells])
        return None if ticks is None else (ticks[1:] - ticks[0]) / 1e6
    try:
        return np.array([float(cell) for cell in cells])
    except ValueError:
        return None


_MISSING = frozenset({"", "nan", "-nan", "na", "n/a", "#n/a", "null", "none"})
_WHOLE = re.compile(r"[+-]?\d+")


def is_missing(cell: str) -> bool:
    """Whether a cell says that there is no value."""
    return cell.strip().lower() in _MISSING


def is_number(cell: str) -> bool:
    """Whether a cell is a number; 1_000 is one for Python, but no instrument writes it."""
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def is_header(
    where: str, line: int, cells: Sequence[str], body: Sequence[Sequence[str]], wanted: Wanted
) -> bool:
    """Whether ``cells``, the first row, are names; ``body`` are some of the rows that follow."""
    words = [cell.strip() for cell in cells]
    numbers = [i for i, cell in enumerate(words) if is_number(cell) and not is_missing(cell)]
    names = [i for i, cell in enumerate(words) if not (is_number(cell) or is_missing(cell) or is_date(cell))]
    if names and not numbers and not any(map(is_date, words)):
        return True
    if names:
        told = printable(words[0]).lower() == printable(wanted.trial).lower()
        after = words[1:] if told or is_time(words[0]) else []
        if after and after in (_count(0, len(after)), _count(1, len(after))):
            return True
        odd = names if len(names) <= len(words) - len(names) else numbers or names
        kind = "a name among numbers" if odd == names else "a number among names"
        cell = quoted(words[odd[0]], 40)
        raise SeriesError(
            f"{where}: column {odd[0] + 1}, line {line}: {cell} is {kind}; a header holds names only"
        )
    if len(words) > 1 and words == ["", *_count(0, len(words) - 1)]:
        return True
    return words == _count(0, len(words)) and _is_numbered_header(where, line, words, body, wanted)


def _is_numbered_header(
    where: str, line: int, words: list[str], body: Sequence[Sequence[str]], wanted: Wanted
) -> bool:
    """Whether ``0,1,2`` is the header that pandas writes.

    Pandas writes the numbers of a column all with a decimal point or all without. If a column mixes both,
    another program wrote the file, and 0, 1, 2 are numbers. If no number has a point, or there is one column,
    only the caller can tell, by the name of a column: with a header they are counted from 0, without from 1.
    """
    asked = {str(name) for name in wanted.columns or ()}
    if "0" in asked or str(len(words)) in asked:
        return "0" in asked
    columns = [[cell for cell in column if not is_missing(cell)] for column in zip(*body, strict=False)]
    whole = [{_WHOLE.fullmatch(cell.strip()) is not None for cell in column} for column in columns]
    if any(len(kinds) == 2 for kinds in whole):
        return False
    if len(words) > 1 and any(False in kinds for kinds in whole):
        return True
    raise SeriesError(
        f"{where}: line {line}: {quoted(','.join(words), 40)} may be a header or the first sample: "
        f"give the columns names in the file, or say columns = ['0', ...] if it is a header, "
        f"[..., '{len(words)}'] if not"
    )


def _count(start: int, length: int) -> list[str]:
    return [str(i) for i in range(start, start + length)]
