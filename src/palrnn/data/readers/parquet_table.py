"""Reading `.parquet` files, by pandas and pyarrow."""

from __future__ import annotations

from pathlib import Path

from palrnn.data.frame import frame_table
from palrnn.data.readers.registry import reader
from palrnn.data.table import SeriesError, Table, Wanted, refuse_size


@reader(".parquet")
def read_parquet(file: Path, wanted: Wanted) -> Table:
    """Return the observed columns of ``file``, NaN where a value is null."""
    try:
        import pyarrow.parquet as pq
    except ImportError:
        raise SeriesError(f"{file}: reading .parquet needs pyarrow: pip install 'palrnn[parquet]'") from None
    held = pq.ParquetFile(file)
    if held.metadata.num_rows:
        refuse_size(str(file), (held.metadata.num_rows, max(1, held.metadata.num_columns)))
    return frame_table(held.read().to_pandas(), wanted, str(file))
