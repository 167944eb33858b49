"""The Typer application, and what all commands share: how they speak and how they fail."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from palrnn.cli.terminal import Tabular, print_table, print_text
from palrnn.engine.plain import plain
from palrnn.engine.progress import Progress, lines, quiet

app = typer.Typer(
    name="palrnn",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Learn a small switching surrogate of a chaotic system; measure the geometry of what trained it.",
)


def _version(asked: bool) -> None:
    if asked:
        from palrnn import __version__

        print(f"palrnn {__version__}")
        raise typer.Exit


JsonFlag = Annotated[
    bool, typer.Option("--json", help="Print the result as JSON, and nothing else, on standard output.")
]
#: Not a Path, which takes an empty name for the current folder.
OutputFolder = Annotated[
    str, typer.Option("-o", "--output", metavar="FOLDER", help="The folder to write to; made if missing.")
]
QuietFlag = Annotated[bool, typer.Option("-q", "--quiet", help="Print errors only.")]


def option(words: str, panel: str) -> Any:
    """Return an option with this help; its default is None, or that of Python, which the words tell."""
    return typer.Option(help=words, rich_help_panel=panel, show_default=False)


def wrote(folder: str) -> str:
    """Return the words for a folder that was written, with one slash however it was given."""
    return f"wrote {folder.rstrip('/')}/"


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_version, is_eager=True)
    ] = False,
    # taken off the command line in main(), so that it works in any place; here for the help
    debug: Annotated[bool, typer.Option("--debug", help="On an error, show the traceback.")] = False,
) -> None:
    pass


@dataclass(frozen=True)
class Voice:
    """How a command speaks: words for people, or JSON for scripts, or hardly at all."""

    json: bool = False
    quiet: bool = False

    def say(self, words: str) -> None:
        """Print a sentence for people, on standard error, so that standard output stays clean."""
        if not (self.json or self.quiet):
            print_text(words, sys.stderr)

    def result(self, values: Mapping[str, Any], *parts: str | Tabular) -> None:
        """Print the result: ``values`` as JSON with --json, otherwise ``parts``: lines and tables."""
        if self.json:
            print(json.dumps(plain(values), indent=2, allow_nan=False))
        elif not self.quiet:
            for part in parts:
                if isinstance(part, str):
                    print_text(part, sys.stdout)
                else:
                    print_table(part, sys.stdout)

    def progress(self, what: str) -> Progress | None:
        """Return who listens to long work: a bar on a terminal, otherwise a line now and then."""
        if self.quiet or self.json:
            return quiet
        return None if sys.stderr is not None and sys.stderr.isatty() else lines(what)

    def compiling(self) -> None:
        """Say so if kernels have to be compiled, so that a first start does not look broken."""
        from palrnn.engine.kernel import on_compile

        on_compile(lambda: self.say("compiling the kernels, once (ten to thirty seconds on a first start)"))
