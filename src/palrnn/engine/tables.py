"""Tables as CSV: the one way in which palrnn writes them."""

from __future__ import annotations

import csv
import gzip
import io
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from palrnn.engine.files import write_bytes


def table_text(header: Sequence[str], rows: Iterable[Sequence[Any]], *, digits: int | None = None) -> str:
    """Return a table as CSV with a header line.

    Floats have ``digits`` significant digits, or as many as give the same number back. What is missing (None,
    NaN) is an empty cell; infinity is ``inf``.
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    for row in rows:
        if len(row) != len(header):
            raise ValueError(f"a row must have {len(header)} cells, got {len(row)}")
        writer.writerow([_cell(value, digits) for value in row])
    return buffer.getvalue()


def write_table(
    path: str | os.PathLike[str],
    header: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    digits: int | None = None,
) -> None:
    """Write `table_text` to ``path``, atomically, gzipped if its name ends in ``.gz``; without any date."""
    data = table_text(header, rows, digits=digits).encode()
    write_bytes(path, gzip.compress(data, mtime=0) if Path(path).suffix == ".gz" else data)


def from_records(records: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[list[Any]]]:
    """Return header and rows of ``records``: all their names, in order; what a record lacks is None."""
    header = list(dict.fromkeys(name for record in records for name in record))
    return header, [[record.get(name) for name in header] for record in records]


def _cell(value: Any, digits: int | None) -> Any:
    if hasattr(value, "item"):  # NumPy's scalars
        value = value.item()
    if not isinstance(value, float):
        return value
    if math.isnan(value):
        return ""
    return repr(value) if digits is None else f"{value:.{digits}g}"
