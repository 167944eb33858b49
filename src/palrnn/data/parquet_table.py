"""Reading `.parquet` files, by pandas and pyarrow."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import numpy as np

from palrnn.data.table import SeriesError, Table, chosen
from palrnn.engine.checks import Floats


def read_parquet(file: Path, columns: Sequence[str] | None, trial: str) -> Table:
    """Return the observed columns of ``file``, NaN where a value is null."""
    import pandas as pd

    try:
        table = pd.read_parquet(file)
    except ImportError:
        raise SeriesError(f"{file}: reading .parquet needs pyarrow: pip install 'palrnn[parquet]'") from None
    names = [str(name) for name in table.columns]
    dated = bool(names) and pd.api.types.is_datetime64_any_dtype(table.iloc[:, 0])
    choice = chosen(file, names, columns, trial, dated=dated)
    values = [_numbers(file, table.iloc[:, i], names[i]) for i in choice.observed]
    labels = None
    if choice.trial is not None:
        column = table.iloc[:, choice.trial]
        labels = ["" if missing else str(label) for label, missing in zip(column, column.isna(), strict=True)]
    return Table([names[i] for i in choice.observed], np.column_stack(values), None, labels)


def _numbers(file: Path, column: Any, name: str) -> Floats:
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_complex_dtype(column):
        return cast(Floats, column.to_numpy(dtype=np.float64, na_value=np.nan))
    numbers = np.full(len(column), np.nan)
    for row in np.flatnonzero(column.notna().to_numpy()):
        if not isinstance(column.iloc[row], Decimal):
            shown = repr(str(column.iloc[row])[:40])
            raise SeriesError(f"{file}: column {name}, row {row + 1}: {shown} is not a number")
        numbers[row] = float(column.iloc[row])
    return numbers
