"""Results as CSV tables, the only thing that figures and the summary are made from.

A table holds what is finished: it can be written at any moment of a run, and grows with it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from palrnn.engine.tables import from_records, write_table
from palrnn.paper.study import studies_in, study_tasks
from palrnn.sweeps import Store
from palrnn.sweeps.timings import computation_rows

if TYPE_CHECKING:
    import pandas as pd

    from palrnn.paper.presets import Preset

Rows: TypeAlias = list[dict[str, Any]]


class Tables:
    """The tables of a results folder by name, each read when it is first asked for."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self._read: dict[str, pd.DataFrame] = {}

    def __contains__(self, name: str) -> bool:
        return self._file(name) is not None

    def __getitem__(self, name: str) -> pd.DataFrame:
        import pandas as pd

        if name not in self._read:
            file = self._file(name)
            if file is None:
                raise KeyError(name)
            self._read[name] = pd.read_csv(file)
        return self._read[name]

    def get(self, name: str) -> pd.DataFrame | None:
        """The table, or None if it is not there yet."""
        return None if self._file(name) is None else self[name]

    def _file(self, name: str) -> Path | None:
        files = [self.folder / f"{name}{suffix}" for suffix in (".csv", ".csv.gz")]
        return next((file for file in files if file.is_file()), None)


def write_tables(preset: Preset, store: Store) -> None:
    """Write the table of every study that has a result, and what the computation took."""
    for study in studies_in(preset):
        write_rows(store.folder, study.tables(store))
    write_rows(store.folder, {"computation.csv": computation_rows(store, study_tasks(preset))})


def write_rows(folder: Path, tables: dict[str, Rows]) -> None:
    """Write tables by file name, those with rows, with ten digits."""
    for name, rows in tables.items():
        if rows:
            write_table(folder / name, *from_records(rows), digits=10)
