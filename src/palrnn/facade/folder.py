"""The folder of a run: the model, the held-out data, the settings, and what has been found so far.

RUN/checkpoint.safetensors   the model, its standardizer and time step, the training settings
RUN/reference.npy            the held-out part, raw, (T, N)
RUN/config.toml              where the series came from and how the model was trained
RUN/history.csv              the loss of each update
RUN/findings/*.json          results of analyses, each with the settings and the model it belongs to
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import tomli_w

from palrnn.data import load_series
from palrnn.engine.checks import Floats
from palrnn.engine.config import Config, read_toml
from palrnn.engine.files import write_json, write_text
from palrnn.model import Checkpoint, load_checkpoint

CHECKPOINT, REFERENCE, CONFIG, HISTORY, FINDINGS = (
    "checkpoint.safetensors",
    "reference.npy",
    "config.toml",
    "history.csv",
    "findings",
)
_MOST_LOSSES = 2000

F = TypeVar("F", bound=Config)


class Findings:
    """Findings by name, kept in memory or, with a folder, on disk as well.

    A finding counts only for the key (model, data, settings) under which it was kept.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._memory: dict[str, tuple[dict[str, Any], Config]] = {}

    def get(self, name: str, key: dict[str, Any], kind: type[F]) -> F | None:
        """Return what was found under exactly this ``key``, or None."""
        if name in self._memory and self._memory[name][0] == key:
            found = self._memory[name][1]
            return found if isinstance(found, kind) else None
        if self._folder is None:
            return None
        try:
            kept = json.loads((self._folder / f"{name}.json").read_text(encoding="utf-8"))
            return kind(**kept["found"]) if kept["key"] == key else None
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            # a file that is missing, damaged or of another version is computed again
            return None

    def keep(self, name: str, key: dict[str, Any], found: Config) -> None:
        """Keep ``found`` under ``key``, in place of an earlier one."""
        self._memory[name] = (key, found)
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
            write_json(self._folder / f"{name}.json", {"key": key, "found": found.model_dump(mode="json")})


def read_checkpoint(folder: Path) -> Checkpoint:
    """Return the checkpoint of a run, or say what is missing."""
    if not folder.is_dir():
        raise ValueError(f"{folder}: no such folder")
    checkpoint = load_checkpoint(folder / CHECKPOINT)
    if checkpoint.standardizer is None:
        raise ValueError(
            f"{folder / CHECKPOINT}: has no standardizer, so raw data cannot be compared with it"
        )
    return checkpoint


def read_reference(folder: Path, dim: int) -> Floats:
    """Return the held-out series of a run."""
    file = folder / REFERENCE
    if not file.is_file():
        raise ValueError(f"{file}: no such file; give the held-out series with --reference")
    series = load_series(file)
    if series.shape[1] != dim:
        raise ValueError(f"{file}: has {series.shape[1]} columns, the model observes {dim}")
    return series


def read_config(folder: Path) -> dict[str, Any]:
    """Return the tables of the run's config.toml; empty if there is none."""
    file = folder / CONFIG
    return read_toml(file) if file.is_file() else {}


def write_config(run: Path, data: Config, training: Config | None) -> None:
    """Write where the series came from and how the model was trained."""
    tables = {"data": data.model_dump(mode="json", exclude_none=True)}
    if training is not None:
        tables["training"] = training.model_dump(mode="json", exclude_none=True)
    write_text(run / CONFIG, tomli_w.dumps(tables))


def write_losses(run: Path, losses: list[tuple[int, float]]) -> None:
    """Write the course of the loss, if there is one."""
    if losses:
        write_text(run / HISTORY, "".join(["update,loss\n", *(f"{i},{loss:.7g}\n" for i, loss in losses)]))


def read_losses(folder: Path) -> list[tuple[int, float]]:
    """Return (update, loss) from the run's history.csv, at most 2000 of them; empty if there is none."""
    file = folder / HISTORY
    if not file.is_file():
        return []
    try:
        with file.open(encoding="utf-8", newline="") as stream:
            rows = [(int(row["update"]), float(row["loss"])) for row in csv.DictReader(stream)]
    except (ValueError, KeyError, TypeError, csv.Error) as error:
        raise ValueError(f"{file}: not a training history: {error}") from None
    return block_means(rows)


def block_means(rows: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """Return (update, loss) as means over equal stretches, at most 2000 of them."""
    size = -(-len(rows) // _MOST_LOSSES) if rows else 1
    return [
        (rows[i : i + size][-1][0], float(np.mean([loss for _, loss in rows[i : i + size]])))
        for i in range(0, len(rows), size)
    ]
