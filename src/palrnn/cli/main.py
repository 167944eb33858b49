"""Entry point: collects the commands and turns exceptions into one-line errors and exit codes.

Exit codes: 0 success, 1 an error that the message explains, 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import contextlib
import copy
import gc
import importlib
import os
import sys
import traceback
import warnings
from collections.abc import Iterator
from typing import Any

import typer
from typer.main import get_command_name

from palrnn.cli.app import app
from palrnn.cli.evaluate import RECOMMENDED
from palrnn.cli.terminal import print_text

# in the order of the table of contents that `palrnn --help` shows
_COMMANDS = (
    "demo",
    "train",
    "search",
    "tune",
    "evaluate",
    "bootstrap",
    "filter",
    "geometry",
    "report",
    "reproduce",
    "status",
    "zoo",
    "exchange",
)

_USAGE, _INTERRUPTED = 2, 130
#: New objects after which Python looks for garbage in cycles (700 by itself).
_OBJECTS = 1_000_000

for _name in _COMMANDS:
    importlib.import_module(f"palrnn.cli.{_name}")


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and leave with its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    if debug:
        words.remove("--debug")
    words = _with_bars(words)
    with warnings.catch_warnings(), _every_stream(), _rare_collections():
        if not debug:
            warnings.showwarning = _warn
        if {"-q", "--quiet"} & set(words):
            warnings.simplefilter("ignore")
        sys.exit(_run(words, debug))


def _with_bars(words: list[str]) -> list[str]:
    """Return the words with what ``--bars`` means where no method follows: Typer has no optional values."""
    return [
        f"{word}={RECOMMENDED}" if word == "--bars" and after.startswith("-") else word
        for word, after in zip(words, [*words[1:], "-"], strict=False)
    ]


@contextlib.contextmanager
def _every_stream() -> Iterator[None]:
    """Lead a stream that was closed before we began to nowhere: old versions of NumPy want one to import."""
    missing = [name for name in ("stdout", "stderr") if getattr(sys, name) is None]
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        for name in missing:
            setattr(sys, name, nowhere)
        try:
            yield
        finally:
            for name in missing:
                setattr(sys, name, None)


@contextlib.contextmanager
def _rare_collections() -> Iterator[None]:
    """Look for garbage rarely: imports and the compiler make many objects, and nearly all of them stay."""
    before = gc.get_threshold()
    gc.set_threshold(_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _run(words: list[str], debug: bool) -> int:
    if not words:  # versions of Typer disagree on what this means
        return _run(["--help"], debug) or _USAGE
    try:
        code = _command(words)(words, prog_name="palrnn", standalone_mode=False)
    except (typer.Abort, KeyboardInterrupt):
        code = _INTERRUPTED
    except Exception as error:
        if debug:
            traceback.print_exc()
        # usage errors; newer Typer brings its own Click, so they are told by what they can do
        if hasattr(error, "show"):
            error.show()
            return int(getattr(error, "exit_code", _USAGE))
        print_text(f"palrnn: error: {_sentence(error)}", sys.stderr)
        return 1
    if code == _INTERRUPTED:  # some versions of Typer turn Ctrl-C into this code themselves
        print_text("palrnn: interrupted", sys.stderr)
    return code if isinstance(code, int) else 0


def _command(words: list[str]) -> Any:
    """Return the command line; if it is asked for its commands only, without their options.

    There are two hundred, and Typer builds all of them before it prints the first word.
    """
    whole = typer.main.get_command
    commands = app.registered_commands
    names = {info.name or get_command_name(info.callback.__name__) for info in commands if info.callback}
    if "_PALRNN_COMPLETE" in os.environ or names & set(words):
        return whole(app)
    listed = copy.copy(app)
    listed.registered_commands = [_without_options(info) for info in commands]
    return whole(listed)


def _without_options(info: Any) -> Any:
    def listed() -> None: ...

    listed.__doc__, listed.__name__ = info.callback.__doc__, info.callback.__name__
    bare = copy.copy(info)
    bare.callback = listed
    return bare


def _sentence(error: Exception) -> str:
    """Return what an error says in one line; of an error that nobody foresaw, also its kind."""
    words = " ".join(str(error).split())
    if isinstance(error, (ValueError, OSError, ArithmeticError)) and words:
        return words
    return f"{type(error).__name__}: {words} (--debug shows where)"


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    print_text(f"palrnn: warning: {' '.join(str(message).split())}", sys.stderr)


if __name__ == "__main__":
    main()
