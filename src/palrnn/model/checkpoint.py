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
from palrnn.model.forcing_policy import Forcing, as_forcing, forcing_from_numbers
from palrnn.model.noise import ObservationMap
from palrnn.model.palrnn import PALRNN, drift_of
from palrnn.model.surrogate import Surrogate, family, family_name
from palrnn.model.tensor_file import TensorFileError, header_size, header_text, tensor_bytes, tensors

_FORMAT = "palrnn-checkpoint"
_VERSION = 2
_MODEL, _NOISE, _MAP, _SCALE, _EXTRA = "model.", "noise.", "map.", "scale.", "extra."
_INPUT_SCALE = "input_scale."
_NOISES = ("process", "observation", "initial")


class CheckpointError(ValueError):
    """A checkpoint file that cannot be used, and why."""


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A model with what is needed to use it on raw data and to go on training it.

    ``model`` is of any registered family, or a `PALRNN` around one. ``training`` is a JSON-like dict
    (configuration, seed, progress); ``arrays`` holds further named arrays, such as the optimiser's state;
    ``forcing`` is the constant forcing that the model was trained with in the end, if it is known;
    ``input_standardizer`` is that of the external inputs of a driven model.
    """

    model: Any
    standardizer: Standardizer | None = None
    dt: float | None = None
    training: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    forcing: Forcing | None = None
    input_standardizer: Standardizer | None = None

    @property
    def drift(self) -> Any:
        """The surrogate itself, or the drift of the PAL-RNN."""
        return drift_of(self.model)

    def __repr__(self) -> str:
        more = f"training={sorted(self.training)}, arrays={sorted(self.arrays)}"
        return f"Checkpoint({self.model!r}, dt={self.dt}, {more})"


def save_checkpoint(
    path: str | os.PathLike[str],
    model: Surrogate | PALRNN,
    *,
    standardizer: Standardizer | None = None,
    dt: float | None = None,
    training: Mapping[str, Any] | None = None,
    arrays: Mapping[str, NDArray[Any]] | None = None,
    forcing: Forcing | None = None,
    input_standardizer: Standardizer | None = None,
) -> None:
    """Write a checkpoint to ``path``, whole or not at all."""
    content = {name: value for name, value in locals().items() if name != "path"}
    write_bytes(as_path(path), checkpoint_bytes(**content))


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
    model: Surrogate | PALRNN,
    *,
    standardizer: Standardizer | None = None,
    dt: float | None = None,
    training: Mapping[str, Any] | None = None,
    arrays: Mapping[str, NDArray[Any]] | None = None,
    forcing: Forcing | None = None,
    input_standardizer: Standardizer | None = None,
) -> bytes:
    """Return the bytes of a checkpoint file: the same ones for the same content."""
    drift = drift_of(model)
    for name, table in (("training", training), ("arrays", arrays)):
        if table is not None:
            as_instance(table, name, Mapping)
    held: dict[str, NDArray[Any]] = {_MODEL + name: np.asarray(v) for name, v in drift.arrays().items()}
    header: dict[str, Any] = {"family": family_name(drift), "kind": "drift", "dt": None}
    if isinstance(model, PALRNN):
        header |= {"kind": "PALRNN", "gate_std": model.gate_std}
        for name in _NOISES:
            noise = getattr(model, name)
            if noise is not None:
                held[_NOISE + name] = noise.values
        if not model.observation_map.is_first_units:
            held |= {_MAP + "B": model.observation_map.B, _MAP + "d": model.observation_map.d}
    if forcing is not None:
        header["forcing"] = as_forcing(forcing).to_dict()
    for prefix, name, scale, dim in (
        (_SCALE, "standardizer", standardizer, drift.observed_dim),
        (_INPUT_SCALE, "input_standardizer", input_standardizer, drift.input_dim),
    ):
        if scale is not None:
            if as_instance(scale, name, Standardizer).dim != dim:
                raise ValueError(f"{name} must have {dim} coordinates, has {scale.dim}")
            held |= {prefix + "mean": scale.mean, prefix + "std": scale.std}
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
        held = tensors(data)
        return _assembled(*(_from_version_1(header, held) if "family" not in header else (header, held)))
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
    parts: dict[str, dict[str, NDArray[Any]]] = {
        part: {} for part in (_MODEL, _NOISE, _MAP, _SCALE, _INPUT_SCALE, _EXTRA)
    }
    for name in sorted(held):
        prefix = name.partition(".")[0] + "."
        if prefix not in parts or not name.startswith(prefix):
            raise ValueError(f"unknown array {name[:40]!r}")
        parts[prefix][name.removeprefix(prefix)] = held[name]
    drift = model = family(header["family"]).from_arrays(parts[_MODEL])
    if header["kind"] == "PALRNN":
        noise, reads = parts[_NOISE], None
        if parts[_MAP]:
            reads = ObservationMap(parts[_MAP]["B"], parts[_MAP]["d"])
        strengths = (noise["process"], noise["observation"], header["gate_std"], noise.get("initial"))
        model = PALRNN(drift, *strengths, reads)
    elif header["kind"] != "drift":
        raise ValueError(f"unknown kind {str(header['kind'])[:20]!r}")
    standardizer, of_inputs = (
        Standardizer(scale["mean"], scale["std"]) if scale else None
        for scale in (parts[_SCALE], parts[_INPUT_SCALE])
    )
    if standardizer is not None and standardizer.dim != drift.observed_dim:
        raise ValueError("its standardizer does not fit the model")
    if of_inputs is not None and of_inputs.dim != drift.input_dim:
        raise ValueError("the standardizer of its inputs does not fit the model")
    training = header["training"]
    if not isinstance(training, dict):
        raise ValueError("training is not a table")
    dt = None if header["dt"] is None else as_float(header["dt"], "dt", above=0.0)
    told = header.get("forcing")
    forcing = _trained_forcing(training) if told is None else Forcing.from_dict(told)
    return Checkpoint(model, standardizer, dt, training, parts[_EXTRA], forcing, of_inputs)


def _from_version_1(
    header: dict[str, Any], held: dict[str, NDArray[Any]]
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the content of a file of format 1, which held AL-RNNs with diagonal noise, as of format 2."""
    places = {name: _MODEL + name for name in ("A", "W", "h", "E")}
    places |= {f"{name}_std": _NOISE + name for name in _NOISES}
    places |= {name: _SCALE + name for name in ("mean", "std")}
    renamed = {places.get(name, name): array for name, array in held.items()}
    if header["kind"] not in ("ALRNN", "PALRNN"):
        raise ValueError(f"unknown kind {str(header['kind'])[:20]!r}")
    kind = "PALRNN" if header["kind"] == "PALRNN" else "drift"
    renamed[_MODEL + "gated"] = np.asarray(header["gated"])
    return header | {"family": "alrnn", "kind": kind}, renamed


def _trained_forcing(training: dict[str, Any]) -> Forcing | None:
    """Return the forcing in a table of training settings, as a trained model has it at the end."""
    config = training.get("config", training.get("training"))
    if not isinstance(config, dict) or not {"forcing", "tau"} & config.keys():
        return None
    if "forcing" in config:
        return Forcing.from_dict(config["forcing"]).final
    numbers = {
        name: config[name] for name in ("tau", "alpha", "final_alpha", "alpha_schedule") if name in config
    }
    return forcing_from_numbers(**numbers).final
