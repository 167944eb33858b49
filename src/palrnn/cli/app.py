"""The Typer application, and what all commands share: how they speak and how they fail."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from palrnn.engine.progress import Progress, lines, quiet

app = typer.Typer(
    name="palrnn",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Learn a small switching surrogate of a chaotic system; measure the geometry of what trained it.",
)

JsonFlag = Annotated[
    bool, typer.Option("--json", help="Print the result as JSON, and nothing else, on standard output.")
]
QuietFlag = Annotated[bool, typer.Option("-q", "--quiet", help="Print errors only.")]


@dataclass(frozen=True)
class Voice:
    """How a command speaks: words for people, or JSON for scripts, or hardly at all."""

    json: bool = False
    quiet: bool = False

    def say(self, words: str) -> None:
        """Print a sentence for people, on standard error, so that standard output stays clean."""
        if not (self.json or self.quiet):
            print(words, file=sys.stderr, flush=True)

    def result(self, values: Mapping[str, Any], words: str) -> None:
        """Print the result: ``values`` as JSON with --json, otherwise ``words``."""
        if self.json:
            print(json.dumps(values, indent=2, allow_nan=False))
        elif not self.quiet:
            print(words)

    def progress(self, what: str) -> Progress | None:
        """Return who listens to long work: a bar on a terminal, otherwise a line now and then."""
        if self.quiet or self.json:
            return quiet
        return None if sys.stderr.isatty() else lines(what)

    def compiling(self) -> None:
        """Say so if kernels have to be compiled, so that a first start does not look broken."""
        from palrnn.engine.kernel import on_compile

        on_compile(lambda: self.say("compiling the kernels, once (a minute or so on a first start)"))
