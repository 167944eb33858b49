"""Whether the first row of a `.csv` file holds names or numbers; where that cannot be told, an error.

Names only: a header. Numbers only: a sample, except for the header ``0,1,2,...`` (perhaps after an empty
cell) that pandas gives to columns without names. Both: an error that names the odd cell, because a damaged
first sample must not be dropped in silence; only a named index before numbered columns (``time,0,1,2``) is a
header.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from palrnn.data.table import SeriesError, Wanted, is_date, is_time
from palrnn.engine.text import quoted

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
        after = words[1:] if is_time(words[0]) or words[0].lower() == wanted.trial.lower() else []
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
