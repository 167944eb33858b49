"""Many trained models in one `.safetensors` file: arrays as ``NAME/ARRAY``, headers in the metadata.

A model comes out of the zoo as the very bytes of the checkpoint that went in. A zoo may come from somebody
else: the name of a model, which becomes the name of a file, has letters, digits and ``.+-_`` only.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from palrnn.engine.checks import as_path
from palrnn.engine.files import write_bytes
from palrnn.model import Checkpoint, CheckpointError, checkpoint_from_bytes
from palrnn.model.tensor_file import TensorFileError, header_size, header_text, tensor_bytes, tensors

_FORMAT = "palrnn-zoo"
#: The zoo of a results folder.
ZOO = "models.safetensors"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+_-]{0,99}")


@dataclass(frozen=True)
class ZooModel:
    """One model in a zoo: its name, the figures that were known when it was written, its header."""

    name: str
    figures: dict[str, Any]
    header: dict[str, str]

    def __repr__(self) -> str:
        figures = ", ".join(f"{key}={value}" for key, value in self.figures.items())
        return f"ZooModel({self.name}: {figures})"


def write_zoo(
    path: str | os.PathLike[str], models: Mapping[str, bytes], figures: Mapping[str, Mapping[str, Any]]
) -> None:
    """Write checkpoints (their bytes, by name) to one file, with some figures for each."""
    arrays: dict[str, NDArray[Any]] = {}
    entries: dict[str, Any] = {}
    for name, data in models.items():
        arrays |= {f"{name}/{array}": values for array, values in tensors(data).items()}
        entries[name] = {"header": _header(data), "figures": dict(figures.get(name, {}))}
    text = {"format": _FORMAT, "version": "1", "models": json.dumps(entries, allow_nan=False)}
    write_bytes(path, tensor_bytes(arrays, text))


def zoo_models(path: str | os.PathLike[str]) -> dict[str, ZooModel]:
    """Return the models of a zoo file, or of the results folder that holds one, by name."""
    return _entries(*_read(path))


def zoo_checkpoint_bytes(path: str | os.PathLike[str], *names: str) -> dict[str, bytes]:
    """Return the bytes of the checkpoint files of some models, by name."""
    file, data = _read(path)
    models = _entries(file, data)
    for name in names:
        if name not in models:
            some = ", ".join(sorted(models)[:4])
            raise ValueError(f"name must be one of the {len(models)} models ({some}, ...), got {name!r}")
    arrays = tensors(data)
    return {
        name: tensor_bytes(
            {key.removeprefix(f"{name}/"): v for key, v in arrays.items() if key.startswith(f"{name}/")},
            models[name].header,
        )
        for name in names
    }


def load_from_zoo(path: str | os.PathLike[str], name: str) -> Checkpoint:
    """Return one model of a zoo file (or of the results folder that holds one) as a checkpoint."""
    return checkpoint_from_bytes(zoo_checkpoint_bytes(path, name)[name], source=f"{path}: {name}")


def _read(path: str | os.PathLike[str]) -> tuple[Path, bytes]:
    given = as_path(path)
    file = given / ZOO if given.is_dir() else given
    if not file.is_file():
        raise CheckpointError(f"{file}: no such file")
    return file, file.read_bytes()


def _entries(file: Path, data: bytes) -> dict[str, ZooModel]:
    try:
        text = _header(data)
        if text.get("format") != _FORMAT:
            raise TensorFileError("it holds something else")
        entries = json.loads(text["models"])
        return {name: _entry(name, entry["figures"], entry["header"]) for name, entry in entries.items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CheckpointError(f"{file}: not a zoo of models, or damaged: {error}") from None


def _entry(name: str, figures: Any, header: Any) -> ZooModel:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name[:100]!r} cannot be the name of a model")
    if not isinstance(figures, dict) or not isinstance(header, dict):
        raise TypeError(f"{name}: figures and header must be tables")
    return ZooModel(name, figures, {str(key): str(value) for key, value in header.items()})


def _header(data: bytes) -> dict[str, str]:
    return header_text(data[8 : 8 + header_size(data[:8], len(data))])
