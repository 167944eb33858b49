"""Checkpoints: one `.safetensors` file with arrays and a JSON header. Loading never executes code."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from palrnn.data import Standardizer
from palrnn.engine.checks import as_float, as_instance, as_path, first_line
from palrnn.engine.files import write_bytes
from palrnn.model.alrnn import ALRNN
from palrnn.model.palrnn import PALRNN, drift_of
from palrnn.model.tensor_file import TensorFileError, header_size, header_text, tensor_bytes, tensors

_FORMAT = "palrnn-checkpoint"
_VERSION = 1
_MODEL_ARRAYS = ("A", "W", "h", "E", "process_std", "observation_std", "initial_std", "mean", "std")
_EXTRA = "extra."


class CheckpointError(ValueError):
    """A checkpoint file that cannot be used, and why."""


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A model with what is needed to use it on raw data and to go on training it.

    ``training`` is a JSON-like dict (configuration, seed, progress); ``arrays`` holds further named arrays,
    such as the optimiser's state.
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
        more = f"training={sorted(self.training)}, arrays={sorted(self.arrays)}"
        return f"Checkpoint({self.model!r}, dt={self.dt}, {more})"


def save_checkpoint(
    path: str | os.PathLike[str],
    model: ALRNN | PALRNN,
    *,
    standardizer: Standardizer | None = None,
    dt: float | None = None,
    training: Mapping[str, Any] | None = None,
    arrays: Mapping[str, NDArray[Any]] | None = None,
) -> None:
    """Write a checkpoint to ``path``, whole or not at all."""
    data = checkpoint_bytes(model, standardizer=standardizer, dt=dt, training=training, arrays=arrays)
    write_bytes(as_path(path), data)


def load_checkpoint(path: str | os.PathLike[str]) -> Checkpoint:
    """Read a checkpoint; a truncated, foreign or newer file gives a `CheckpointError` that says so."""
    file = as_path(path)
    if not file.is_file():
        raise CheckpointError(f"{file}: {'is not a file' if file.exists() else 'no such file'}")
    try:
        size = file.stat().st_size
        with file.open("rb") as stream:
            # a foreign file may be huge: look at its header before reading the rest
            start = stream.read(8)
            start += stream.read(_checked_header_size(str(file), start, size))
            _header(str(file), start)
            return checkpoint_from_bytes(start + stream.read(), source=str(file))
    except OSError as error:
        raise CheckpointError(f"{file}: cannot be read: {first_line(error)}") from error


def checkpoint_bytes(
    model: ALRNN | PALRNN,
    *,
    standardizer: Standardizer | None = None,
    dt: float | None = None,
    training: Mapping[str, Any] | None = None,
    arrays: Mapping[str, NDArray[Any]] | None = None,
) -> bytes:
    """Return the bytes of a checkpoint file: the same ones for the same content."""
    drift = drift_of(model)
    for name, table in (("training", training), ("arrays", arrays)):
        if table is not None:
            as_instance(table, name, Mapping)
    held: dict[str, NDArray[Any]] = {"A": drift.A, "W": drift.W, "h": drift.h, "E": drift.E}
    header: dict[str, Any] = {"gated": drift.gated, "kind": "ALRNN", "dt": None}
    if isinstance(model, PALRNN):
        header |= {"kind": "PALRNN", "gate_std": model.gate_std}
        held["process_std"] = np.asarray(model.process_std)
        held["observation_std"] = np.asarray(model.observation_std)
        if model.initial_std is not None:
            held["initial_std"] = np.asarray(model.initial_std)
    if standardizer is not None:
        if as_instance(standardizer, "standardizer", Standardizer).dim != drift.observed_dim:
            seen = drift.observed_dim
            raise ValueError(f"standardizer must have {seen} coordinates, has {standardizer.dim}")
        held |= {"mean": standardizer.mean, "std": standardizer.std}
    if dt is not None:
        header["dt"] = as_float(dt, "dt", above=0.0)
    for name, array in (arrays or {}).items():
        held[f"{_EXTRA}{name}"] = np.asarray(array)
    header["training"] = dict(training or {})
    try:
        words = json.dumps(header, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"training must hold plain JSON values: {first_line(error)}") from None
    return tensor_bytes(held, {"format": _FORMAT, "version": str(_VERSION), "header": words})


def checkpoint_from_bytes(data: bytes, *, source: str = "checkpoint") -> Checkpoint:
    """Return the checkpoint in the bytes of a file; errors call it ``source``."""
    header = _header(source, data[: 8 + _checked_header_size(source, data[:8], len(data))])
    try:
        return _assembled(header, tensors(data))
    except KeyError as error:
        raise CheckpointError(f"{source}: damaged checkpoint: it has no {error.args[0]}") from error
    except (ValueError, TypeError) as error:
        raise CheckpointError(f"{source}: damaged checkpoint: {first_line(error)}") from error


def _checked_header_size(source: str, start: bytes, size: int) -> int:
    try:
        return header_size(start, size)
    except TensorFileError as error:
        raise CheckpointError(f"{source}: not a palrnn checkpoint, or damaged: {error}") from error


def _header(source: str, start: bytes) -> dict[str, Any]:
    """Return our own header, which is a text inside the header of the format."""
    try:
        text = header_text(start[8:])
    except TensorFileError as error:
        raise CheckpointError(f"{source}: not a palrnn checkpoint, or damaged: {error}") from error
    if text.get("format") != _FORMAT:
        raise CheckpointError(f"{source}: a safetensors file, but not a palrnn checkpoint")
    version = text.get("version", "")
    if not (version.isascii() and version.isdecimal()):
        raise CheckpointError(f"{source}: damaged checkpoint: its version is {version[:20]!r}")
    if len(version) > 9 or int(version) > _VERSION:
        newer = f"format {version[:9]}, this one reads up to {_VERSION}"
        raise CheckpointError(f"{source}: written by a newer palrnn ({newer})")
    try:
        header = json.loads(text.get("header", ""), parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{source}: damaged checkpoint: its header is not JSON ({error})") from error
    if not isinstance(header, dict):
        raise CheckpointError(f"{source}: damaged checkpoint: its header is not a table")
    return header


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _assembled(header: dict[str, Any], held: dict[str, NDArray[Any]]) -> Checkpoint:
    drift = ALRNN(held["A"], held["W"], held["h"], held["E"], header["gated"])
    model: ALRNN | PALRNN = drift
    if header["kind"] == "PALRNN":
        noises = (held["process_std"], held["observation_std"], header["gate_std"], held.get("initial_std"))
        model = PALRNN(drift, *noises)
    elif header["kind"] != "ALRNN":
        raise ValueError(f"unknown kind {str(header['kind'])[:20]!r}")
    standardizer = Standardizer(held["mean"], held["std"]) if "mean" in held else None
    if standardizer is not None and standardizer.dim != drift.observed_dim:
        raise ValueError("its standardizer does not fit the model")
    if not isinstance(header["training"], dict):
        raise ValueError("training is not a table")
    dt = None if header["dt"] is None else as_float(header["dt"], "dt", above=0.0)
    unknown = [name for name in held if name not in _MODEL_ARRAYS and not name.startswith(_EXTRA)]
    if unknown:
        raise ValueError(f"unknown array {unknown[0][:40]!r}")
    extra = {name.removeprefix(_EXTRA): held[name] for name in sorted(held) if name.startswith(_EXTRA)}
    return Checkpoint(model, standardizer, dt, header["training"], extra)
