"""Validated settings: frozen, no unknown keys, to and from TOML, errors that name the setting."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Annotated, Any, Self, get_args, get_origin

import tomli_w
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from palrnn.engine.checks import MOST, first_line
from palrnn.engine.files import write_text
from palrnn.engine.text import printable, quoted

Whole = Annotated[int, Field(ge=0, le=MOST)]
Count = Annotated[int, Field(ge=1, le=MOST)]
Seed = Annotated[int, Field(ge=0)]
Level = Annotated[float, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]


#: Our own files of settings have 5 kB; reading TOML takes up to a hundred times the memory of its text.
_MOST_BYTES = 500_000


class Config(BaseModel):
    """Base of every settings class. Values are checked on construction and cannot be changed after."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, validate_default=True)

    def __init__(self, **values: Any) -> None:
        for name, setting in type(self).model_fields.items():
            kinds = _kinds(setting.annotation)
            if isinstance(values.get(name), bool) and {int, float} & kinds and bool not in kinds:
                raise ValueError(f"{name}: input should be a number, got {values[name]}")
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise ValueError("; ".join(_sentence(problem) for problem in error.errors())) from None

    def changed(self, **values: Any) -> Self:
        """Return a copy with some settings changed, checked again; it still tells which were never given."""
        return type(self)(**({name: getattr(self, name) for name in self.model_fields_set} | values))

    @classmethod
    def from_toml(cls, path: str | os.PathLike[str]) -> Self:
        """Read settings from a TOML file; unknown keys are an error."""
        file = Path(path)
        try:
            return cls(**read_toml(file))
        except ValueError as error:
            message = str(error)
            named = message.startswith(printable(file))
            raise ValueError(message if named else f"{printable(file)}: {message}") from None

    def to_toml(self, path: str | os.PathLike[str]) -> None:
        """Write the settings as TOML, atomically; a setting that is None is left out."""
        write_text(path, tomli_w.dumps(self.for_toml()))

    def for_toml(self) -> dict[str, Any]:
        """Return the settings as TOML can hold them, without those that are None and have no word for it."""
        found: dict[str, Any] = _without_none(self.model_dump(mode="json"))
        return found


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_none(part) for name, part in value.items() if part is not None}
    return [_without_none(part) for part in value] if isinstance(value, list) else value


def read_toml(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the table in a TOML file, or say in one line why it cannot be read."""
    file = Path(path)
    try:
        if file.stat().st_size > _MOST_BYTES:
            raise ValueError(f"{file.stat().st_size} bytes, more than settings take")
        # some editors put a byte order mark in front
        return tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise ValueError(f"{printable(file)}: no such file") from None
    except (ValueError, RecursionError) as error:  # among them, an integer of more than 4300 digits
        raise ValueError(f"{printable(file)}: not valid TOML: {first_line(error)}") from None


def _kinds(annotation: Any) -> set[Any]:
    """The types that a setting may have: those of a union, each without its bounds."""
    kinds = get_args(annotation) or (annotation,)
    return {get_args(kind)[0] if get_origin(kind) is Annotated else kind for kind in kinds}


def _sentence(problem: Any) -> str:
    name = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        return f"{name} is not a known setting"
    if problem["type"] == "missing":
        return f"{name} is required"
    message = problem["msg"]
    if problem["type"] == "value_error":  # our own words
        message = message.removeprefix("Value error, ")
    else:
        message = message[0].lower() + message[1:]
    # the input of a whole table is no news, and its own message names the setting inside
    got = "" if isinstance(problem["input"], dict) else f", got {quoted(problem['input'])}"
    return f"{name}: {message}{got}" if name else f"{message}{got}"
