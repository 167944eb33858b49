"""Entry point: collects the commands and turns exceptions into one-line errors and exit codes.

Exit codes: 0 success, 1 an error that the message explains, 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import importlib
import sys
import traceback

import typer

from palrnn.cli.app import app

# in the order of the table of contents that `palrnn --help` shows
_COMMANDS = ("demo", "train", "tune", "evaluate", "report", "reproduce", "status", "import_torch")

for _name in _COMMANDS:
    importlib.import_module(f"palrnn.cli.{_name}")


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and leave with its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    if debug:
        words.remove("--debug")
    sys.exit(_run(words, debug))


def _run(words: list[str], debug: bool) -> int:
    try:
        code = typer.main.get_command(app)(words, prog_name="palrnn", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except (typer.Abort, KeyboardInterrupt):
        print("palrnn: interrupted", file=sys.stderr)
        return 130
    except (ValueError, OSError, ArithmeticError, MemoryError) as error:
        if debug:
            traceback.print_exc()
        print(f"palrnn: error: {error}", file=sys.stderr)
        return 1
    except Exception as error:
        # usage errors; newer Typer brings its own Click, so they are told by what they can do
        if not hasattr(error, "show"):
            raise
        error.show()
        return 2


if __name__ == "__main__":
    main()
