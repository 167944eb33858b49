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
from palrnn.model import Checkpoint, load_checkpoint, save_checkpoint

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


def write_checkpoint(folder: Path, checkpoint: Checkpoint) -> None:
    """Write the checkpoint of a run; one that is there keeps the state in which its training is.

    A state that belongs to another model is not overwritten but refused.
    """
    file = folder / CHECKPOINT
    training, arrays, forcing = checkpoint.training, checkpoint.arrays, checkpoint.forcing
    there = load_checkpoint(file) if file.exists() else None
    if there is not None and there.arrays:
        if "saem" in there.training or not _is_same_model(there, checkpoint):
            raise ValueError(f"{folder}: another model was trained or tuned there; choose another folder")
        training, arrays, forcing = there.training, there.arrays, there.forcing
    save_checkpoint(
        file,
        checkpoint.model,
        standardizer=checkpoint.standardizer,
        dt=checkpoint.dt,
        training=training,
        arrays=arrays,
        forcing=forcing,
    )


def _is_same_model(one: Checkpoint, other: Checkpoint) -> bool:
    """Whether the networks and their scales are the same, whatever the noise."""
    parts = [
        (c.drift.theta, c.drift.E, c.drift.gated, c.dt, c.standardizer.mean, c.standardizer.std)
        for c in (one, other)
        if c.standardizer is not None
    ]
    return len(parts) == 2 and all(np.array_equal(a, b) for a, b in zip(*parts, strict=True))


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
    """Write where the series came from and how the model was trained.

    A file with settings of a command, which continues by them, stays as it is.
    """
    if _is_of_a_command(run, data):
        return
    tables = {"data": data.model_dump(mode="json", exclude_none=True)}
    if training is not None:
        tables["training"] = training.model_dump(mode="json", exclude_none=True)
    write_text(run / CONFIG, tomli_w.dumps(tables))


def _is_of_a_command(run: Path, data: Config) -> bool:
    """Whether config.toml holds more than `write_config` writes of ``data``."""
    try:
        there = read_config(run)
    except ValueError:  # damaged
        return False
    table = there.get("data")
    own = not isinstance(table, dict) or table.keys() <= type(data).model_fields.keys()
    return not own or not there.keys() <= {"data", "training"}


def write_losses(run: Path, losses: list[tuple[int, float]]) -> None:
    """Write the course of the loss, if there is one; a file that tells it, perhaps with more, stays."""
    try:
        told = read_losses(run)
    except ValueError:  # damaged
        told = []
    if losses and losses != told:
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
