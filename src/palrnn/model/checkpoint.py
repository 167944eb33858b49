"""Checkpoints: one `.safetensors` file with arrays and a JSON header. Loading never executes code."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as safetensors_bytes

from palrnn.data import Standardizer
from palrnn.engine.checks import as_float
from palrnn.engine.files import write_bytes
from palrnn.model.alrnn import ALRNN
from palrnn.model.palrnn import PALRNN

_FORMAT = "palrnn-checkpoint"
_VERSION = 1
_MODEL_ARRAYS = ("A", "W", "h", "E", "process_std", "observation_std", "initial_std", "mean", "std")


class CheckpointError(ValueError):
    """A checkpoint file that cannot be used, and why."""


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A model with what is needed to use it on raw data and to go on training it.

    ``training`` is a JSON-like dict (configuration, seed, progress); ``arrays`` holds further named arrays, such as
    the optimiser's state.
    """

    model: ALRNN | PALRNN
    standardizer: Standardizer | None = None
    dt: float | None = None
    training: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)

    @property
    def drift(self) -> ALRNN:
        """The AL-RNN itself, or the drift of the PAL-RNN."""
        return self.model.drift if isinstance(self.model, PALRNN) else self.model

    def __repr__(self) -> str:
        return f"Checkpoint({self.model!r}, dt={self.dt}, training={sorted(self.training)}, arrays={sorted(self.arrays)})"


def save_checkpoint(
    path: str | os.PathLike[str],
    model: ALRNN | PALRNN,
    *,
    standardizer: Standardizer | None = None,
    dt: float | None = None,
    training: dict[str, Any] | None = None,
    arrays: dict[str, NDArray[Any]] | None = None,
) -> None:
    """Write a checkpoint to ``path``, whole or not at all."""
    drift = model.drift if isinstance(model, PALRNN) else model
    tensors: dict[str, NDArray[Any]] = {"A": drift.A, "W": drift.W, "h": drift.h, "E": drift.E}
    header: dict[str, Any] = {"gated": drift.gated, "kind": "ALRNN", "dt": None, "training": training or {}}
    if isinstance(model, PALRNN):
        header |= {"kind": "PALRNN", "gate_std": model.gate_std}
        tensors["process_std"] = np.asarray(model.process_std)
        tensors["observation_std"] = np.asarray(model.observation_std)
        if model.initial_std is not None:
            tensors["initial_std"] = np.asarray(model.initial_std)
    if standardizer is not None:
        if standardizer.dim != drift.observed_dim:
            raise ValueError(f"standardizer must have {drift.observed_dim} coordinates, has {standardizer.dim}")
        tensors |= {"mean": standardizer.mean, "std": standardizer.std}
    if dt is not None:
        header["dt"] = as_float(dt, "dt", above=0.0)
    for name, array in (arrays or {}).items():
        tensors[f"extra.{name}"] = np.asarray(array)
    metadata = {
        "format": _FORMAT,
        "version": str(_VERSION),
        "header": json.dumps(header, sort_keys=True, allow_nan=False),
    }
    contiguous = {name: np.ascontiguousarray(array).reshape(np.shape(array)) for name, array in tensors.items()}
    write_bytes(path, safetensors_bytes(contiguous, metadata=metadata))


def load_checkpoint(path: str | os.PathLike[str]) -> Checkpoint:
    """Read a checkpoint; a truncated, foreign or newer file gives a `CheckpointError` that says so."""
    file = Path(path)
    if not file.is_file():
        raise CheckpointError(f"{file}: no such file")
    try:
        with safe_open(file, framework="numpy") as stream:
            metadata = stream.metadata() or {}
            header = _header(file, metadata)
            tensors = {name: stream.get_tensor(name) for name in stream.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, TypeError, AttributeError, UnicodeError) as error:
        raise CheckpointError(f"{file}: not a palrnn checkpoint, or damaged: {error}") from error
    try:
        return _assembled(header, tensors)
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{file}: damaged checkpoint: {error}") from error


def _header(file: Path, metadata: dict[str, str]) -> dict[str, Any]:
    if metadata.get("format") != _FORMAT:
        raise CheckpointError(f"{file}: a safetensors file, but not a palrnn checkpoint")
    version = metadata.get("version", "")
    if not version.isdecimal():
        raise CheckpointError(f"{file}: damaged checkpoint: version {version[:20]!r}")
    if int(version[:9]) > _VERSION:
        raise CheckpointError(f"{file}: written by a newer palrnn (format {version[:9]}, this one reads up to {_VERSION})")
    try:
        header = json.loads(metadata["header"])
    except (KeyError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{file}: damaged checkpoint: its header is not JSON ({error})") from error
    if not isinstance(header, dict):
        raise CheckpointError(f"{file}: damaged checkpoint: its header is not a table")
    return header


def _assembled(header: dict[str, Any], tensors: dict[str, NDArray[Any]]) -> Checkpoint:
    model: ALRNN | PALRNN = ALRNN(tensors["A"], tensors["W"], tensors["h"], tensors["E"], header["gated"])
    if header["kind"] == "PALRNN":
        model = PALRNN(
            model, tensors["process_std"], tensors["observation_std"], header["gate_std"], tensors.get("initial_std")
        )
    elif header["kind"] != "ALRNN":
        raise ValueError(f"unknown kind {header['kind']!r}")
    standardizer = Standardizer(tensors["mean"], tensors["std"]) if "mean" in tensors else None
    if standardizer is not None and standardizer.dim != tensors["E"].shape[1]:
        raise ValueError("the standardizer does not fit the model")
    if not isinstance(header["training"], dict):
        raise ValueError("training is not a table")
    dt = None if header["dt"] is None else as_float(header["dt"], "dt", above=0.0)
    extra = {name.removeprefix("extra."): array for name, array in tensors.items() if name.startswith("extra.")}
    unknown = [name for name in tensors if name not in _MODEL_ARRAYS and not name.startswith("extra.")]
    if unknown:
        raise ValueError(f"unknown array {unknown[0][:40]!r}")
    return Checkpoint(model, standardizer, dt, header["training"], extra)
