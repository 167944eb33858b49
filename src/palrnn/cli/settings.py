"""Settings from a TOML file for any command, and the effective ones back into a file.

A command that takes ``context: typer.Context`` and ``config: ConfigFile`` reads its options and arguments
from the file where the command line does not give them, and can write what it used with `write_settings`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tomli_w
import typer

from palrnn.engine.config import read_toml
from palrnn.engine.files import write_text

_NOT_SETTINGS = frozenset({"config", "output", "figures", "json", "quiet"})


def _defaults_from(context: typer.Context, file: Path | None) -> Path | None:
    if file is not None:
        table = read_toml(file)
        known = {str(parameter.name) for parameter in context.command.params} - _NOT_SETTINGS
        unknown = sorted(set(table) - known)
        if unknown:
            raise ValueError(f"{file}: {unknown[0]} is not a known setting")
        context.default_map = table
    return file


ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        callback=_defaults_from,
        is_eager=True,
        help="Settings as TOML; what the command line gives wins over them.",
    ),
]


def write_settings(context: typer.Context, path: Path) -> None:
    """Write the effective settings of this call; running from that file gives the same results."""
    given = sorted((name, value) for name, value in context.params.items() if name not in _NOT_SETTINGS)
    settings = {
        name: str(value) if isinstance(value, Path) else value for name, value in given if value is not None
    }
    write_text(path, tomli_w.dumps(settings))
