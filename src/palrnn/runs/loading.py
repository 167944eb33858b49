"""A run from its folder, or a model from a checkpoint."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from palrnn.data import Dataset, DataSettings, Standardizer, delay_embed, load_series
from palrnn.data.readers import named_array
from palrnn.data.source import recorded
from palrnn.engine.checks import Floats, as_path, as_series
from palrnn.engine.folders import folder_kind
from palrnn.forcing.state import CHECKPOINT
from palrnn.model import load_checkpoint
from palrnn.model.inputs import checked_inputs
from palrnn.runs.findings import Findings
from palrnn.runs.folder import INPUTS, REFERENCE, RunFolder
from palrnn.runs.record import RunRecord


def run_parts(
    path: str | os.PathLike[str], reference: Any = None, inputs: ArrayLike | None = None
) -> dict[str, Any]:
    """Return the parts of the `Reconstruction` in ``path``; those that are not known are left out."""
    file = as_path(path, "path")
    if file.is_file() and file.name == CHECKPOINT:
        file = file.parent
    if file.is_dir() and folder_kind(file) == "search":
        file = file / "best"
    folder = None if file.is_file() or file.suffix == ".safetensors" else RunFolder(file)
    checkpoint = load_checkpoint(file) if folder is None else folder.read_checkpoint()
    record = None if folder is None else folder.read_record()
    record = record or RunRecord.of_checkpoint(checkpoint.training)
    seen, count = checkpoint.drift.observed_dim, checkpoint.drift.input_dim
    parts: dict[str, Any] = {
        "model": checkpoint.model,
        "standardizer": checkpoint.standardizer or Standardizer(np.zeros(seen), np.ones(seen)),
        "input_standardizer": checkpoint.input_standardizer,
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
        parts["search"] = folder.read_search()
    if reference is not None:
        series, drive = _given(reference, inputs, record, seen, count)
        return parts | {"reference": series, "inputs": drive}
    if inputs is not None:
        raise ValueError("inputs must come with the reference that they are of, which is None")
    held, along = _kept(folder, record, seen, count)
    return parts | {"reference": held, "inputs": along, "system": record.system(seen)}


def _name(file: Path, record: RunRecord, folder: RunFolder | None) -> str:
    if record.data is not None and record.data.name:
        return record.data.name
    return file.stem if folder is None else file.resolve().name


def _given(
    reference: Any, inputs: ArrayLike | None, record: RunRecord, seen: int, count: int
) -> tuple[Floats, Floats | None]:
    """Return a series that was given, with its past where the model observes that, and its inputs."""
    from_file, data = isinstance(reference, (str, os.PathLike)), record.data
    drive: ArrayLike | None = inputs
    if from_file and inputs is None and count and data is not None and isinstance(data.inputs, tuple):
        how: dict[str, Any] = {
            "columns": data.columns,
            "inputs": data.inputs,
            "trial": data.trial,
            "time": data.time,
        }
        source = recorded(reference, DataSettings(series=str(reference), **how))
        if len(source.trials) > 1 or source.inputs is None:
            raise ValueError(f"reference must be one trial, {reference} has {len(source.trials)}")
        series, drive = source.trials[0], source.inputs[0]
    else:
        series = load_series(reference, allow_nan=True) if from_file else reference
    series = as_series(series, "reference", allow_nan=True)
    lost = 0
    drive = checked_inputs(count, drive, len(series))
    lags, delay = (1, 1) if data is None else data.past
    if lags > 1 and series.shape[1] * lags == seen:
        series = delay_embed(series, lags, delay)
        lost = (lags - 1) * delay
    series = as_series(series, "reference", dim=seen, allow_nan=True)
    return series, None if drive is None else drive[lost:]


def _kept(
    folder: RunFolder | None, record: RunRecord, seen: int, count: int
) -> tuple[Floats | None, Floats | None]:
    """Return the held-out part that the folder holds, or prepare it again where its file is still there."""
    series, drive = (None, None) if folder is None else (folder.read_reference(), folder.read_inputs())
    if series is None and record.data is not None and named_array(record.data.series)[0].is_file():
        again = Dataset.from_settings(record.data.model_dump(exclude_none=True))
        series, drive = again.reference, None if again.inputs is None else again.inputs.reference
    if series is not None and folder is not None and series.shape[1] != seen:
        raise ValueError(
            f"{folder.path / REFERENCE}: has {series.shape[1]} columns, the model observes {seen}"
        )
    if count and series is not None and drive is not None and drive.shape != (len(series), count):
        where = drive.shape if folder is None else f"{folder.path / INPUTS} has {drive.shape}"
        raise ValueError(f"inputs must be ({len(series)}, {count}), as the model and its reference, {where}")
    return series, drive if count else None
