"""The folder of a search.

FOUND/palrnn.json    the marker: a search was made here and may be continued
FOUND/.lock          who writes in it now
FOUND/search.toml    what is searched: the series, the budget, the seed, and what was given
FOUND/candidates/    a sweep: the series, and a checkpoint with its judgement per candidate and rung
FOUND/table.csv      all candidates, the best first
FOUND/result.json    the table, why the winner won, and the verdict on the held-out part
FOUND/best/          the winner, an ordinary run
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import Field

from palrnn.data import DataSettings
from palrnn.engine.checks import as_path
from palrnn.engine.config import Config, Count, Positive, Seed
from palrnn.engine.files import write_json
from palrnn.engine.folders import check_folder, writable_folder
from palrnn.engine.tables import write_table
from palrnn.searches.result import COLUMNS, SearchResult
from palrnn.sweeps import Store

SETTINGS, TABLE, RESULT, BEST = "search.toml", "table.csv", "result.json", "best"
_KIND = "search"


class SearchSettings(Config):
    """All that a search depends on; ``data`` is the fingerprint of the part to train on."""

    series: DataSettings
    data: str
    updates: Count
    minutes: Positive | None = None
    candidates: Count | None = None
    seed: Seed = 0
    families: tuple[str, ...] = ("alrnn",)
    lags: tuple[Count, ...] = (1,)
    delays: tuple[Count, ...] = (1,)
    choices: dict[str, list[Any]] = Field(default_factory=dict)


class SearchFolder:
    """A folder that holds a search, or will."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if os.fspath(path) == "":
            raise ValueError("the folder of a search must have a name, got ''; the current folder is '.'")
        self.path = as_path(path, "run")

    @property
    def best(self) -> Path:
        """The folder of the winner."""
        return self.path / BEST

    @property
    def store(self) -> Store:
        """The results of candidates."""
        return Store(self.path / "candidates")

    def check(self, series: str) -> None:
        """Refuse, without writing, a folder that palrnn did not make, or that holds the ``series``."""
        given = Path(series)
        if given.is_file() and self.path.is_dir() and given.resolve().is_relative_to(self.path.resolve()):
            raise ValueError(f"{given}: is what the command reads; choose another folder to write to")
        check_folder(self.path, _KIND)

    def read_settings(self) -> SearchSettings | None:
        """Return what search.toml says; None if there is none."""
        file = self.path / SETTINGS
        return SearchSettings.from_toml(file) if file.is_file() else None

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the folder as its only writer."""
        with writable_folder(self.path, _KIND, "search"):
            yield

    def write_settings(self, settings: SearchSettings) -> None:
        """Write search.toml."""
        if not (self.path / SETTINGS).is_file():
            settings.to_toml(self.path / SETTINGS)

    def write_result(self, result: SearchResult) -> None:
        """Write the table and the result."""
        rows = [[row[name] for name in COLUMNS] for row in result.table]
        write_table(self.path / TABLE, COLUMNS, rows, digits=6)
        write_json(self.path / RESULT, result.to_dict())
