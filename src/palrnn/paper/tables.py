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
from palrnn.sweeps.status import computation_rows

if TYPE_CHECKING:
    import pandas as pd

    from palrnn.paper.presets import Preset

Rows: TypeAlias = list[dict[str, Any]]
_SUFFIXES = (".csv", ".csv.gz")


class Tables(dict[str, "pd.DataFrame"]):
    """The tables of a results folder by name, each read when it is first asked for."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        super().__init__()
        self.folder = Path(folder)

    def __contains__(self, name: object) -> bool:
        return any((self.folder / f"{name}{suffix}").is_file() for suffix in _SUFFIXES)

    def __missing__(self, name: str) -> pd.DataFrame:
        import pandas as pd

        files = [self.folder / f"{name}{suffix}" for suffix in _SUFFIXES]
        self[name] = pd.read_csv(next((file for file in files if file.is_file()), files[0]))
        return self[name]


def write_tables(preset: Preset, store: Store) -> None:
    """Write the table of every study that has a result, and what the computation took."""
    studies = studies_in(preset)
    for study in studies:
        write_rows(store.folder, study.tables(store))
    parts = {study.name: study_tasks(preset, [study.name]) for study in studies}
    write_rows(store.folder, {"computation.csv": computation_rows(store, parts)})


def write_rows(folder: Path, tables: dict[str, Rows]) -> None:
    """Write tables by file name, those with rows, with ten digits."""
    for name, rows in tables.items():
        if rows:
            write_table(folder / name, *from_records(rows), digits=10)
