"""Settings from a TOML file for any command, and the effective ones back into a file.

A command that takes ``context: typer.Context`` and ``config: ConfigFile`` reads its options and arguments
from the file where the command line does not give them, and can write what it used with `write_settings`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from palrnn.engine.config import Config

_NOT_SETTINGS = frozenset({"config", "output", "figures", "json", "quiet"})


def _defaults_from(context: typer.Context, file: Path | None) -> Path | None:
    if file is not None:
        from palrnn.engine.config import read_toml

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


def options_of(context: typer.Context, kind: type[Config]) -> dict[str, Any]:
    """Return the options of this call that are settings of ``kind``, without those nobody gave."""
    return {name: v for name, v in context.params.items() if name in kind.model_fields and v is not None}


def write_settings(context: typer.Context, path: Path, *parts: Config) -> None:
    """Write the settings of this call, with the defaults of ``parts``; that file gives the same results."""
    import tomli_w

    from palrnn.engine.files import write_text
    from palrnn.engine.plain import plain

    used = {name: value for part in parts for name, value in part.model_dump(mode="json").items()}
    used |= {name: value for name, value in context.params.items() if value is not None}
    known = {str(parameter.name) for parameter in context.command.params} - _NOT_SETTINGS
    kept = {name: plain(used[name]) for name in sorted(used) if name in known and used[name] is not None}
    write_text(path, tomli_w.dumps(kept))
