"""A run from its folder, or a model from a checkpoint."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from palrnn.data import Dataset, Standardizer, delay_embed, load_series
from palrnn.data.readers import named_array
from palrnn.engine.checks import Floats, as_path, as_series
from palrnn.forcing.state import CHECKPOINT
from palrnn.model import load_checkpoint
from palrnn.runs.findings import Findings
from palrnn.runs.folder import REFERENCE, RunFolder
from palrnn.runs.record import RunRecord


def run_parts(path: str | os.PathLike[str], reference: Any = None) -> dict[str, Any]:
    """Return the parts of the `Reconstruction` in ``path``; those that are not known are left out."""
    file = as_path(path, "path")
    if file.is_file() and file.name == CHECKPOINT:
        file = file.parent
    folder = None if file.is_file() or file.suffix == ".safetensors" else RunFolder(file)
    checkpoint = load_checkpoint(file) if folder is None else folder.read_checkpoint()
    record = None if folder is None else folder.read_record()
    record = record or RunRecord.of_checkpoint(checkpoint.training)
    seen = checkpoint.drift.observed_dim
    parts: dict[str, Any] = {
        "model": checkpoint.model,
        "standardizer": checkpoint.standardizer or Standardizer(np.zeros(seen), np.ones(seen)),
        "dt": checkpoint.dt,
        "record": record,
        "name": _name(file, record, folder),
        "source": str(file.resolve()),
        "folder": folder,
        "findings": Findings(folder),
    }
    forcing = checkpoint.forcing or record.forcing
    if forcing is not None:
        parts["forcing"] = forcing
    if folder is not None:
        parts["losses"] = folder.read_losses()
    if reference is not None:
        return parts | {"reference": _given(reference, record, seen)}
    return parts | {"reference": _kept(folder, record, seen), "system": record.system(seen)}


def _name(file: Path, record: RunRecord, folder: RunFolder | None) -> str:
    if record.data is not None and record.data.name:
        return record.data.name
    return file.stem if folder is None else file.resolve().name


def _given(reference: Any, record: RunRecord, seen: int) -> Floats:
    """Return a series that was given, with its past where the model observes that."""
    from_file = isinstance(reference, (str, os.PathLike))
    series = load_series(reference, allow_nan=True) if from_file else reference
    series = as_series(series, "reference", allow_nan=True)
    data = record.data
    if data is not None and data.lags > 1 and series.shape[1] * data.lags == seen:
        series = delay_embed(series, data.lags, data.delay or 1)
    return as_series(series, "reference", dim=seen, allow_nan=True)


def _kept(folder: RunFolder | None, record: RunRecord, seen: int) -> Floats | None:
    """Return the held-out part that the folder holds, or prepare it again where its file is still there."""
    series = None if folder is None else folder.read_reference()
    if series is None and record.data is not None and named_array(record.data.series)[0].is_file():
        series = Dataset.from_settings(record.data.model_dump(exclude_none=True)).reference
    if series is not None and folder is not None and series.shape[1] != seen:
        raise ValueError(
            f"{folder.path / REFERENCE}: has {series.shape[1]} columns, the model observes {seen}"
        )
    return series
