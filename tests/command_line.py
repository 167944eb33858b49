"""The command line, called in this process."""

from __future__ import annotations

from typing import Any

import pytest

from palrnn.cli import main as entry


def run(*words: Any) -> int:
    """Run `palrnn WORDS` and return its exit code."""
    with pytest.raises(SystemExit) as left:
        entry.main([str(word) for word in words])
    return int(left.value.code or 0)


def call(capsys: pytest.CaptureFixture[str], *words: Any) -> tuple[int, str, str]:
    """Run `palrnn WORDS` and return its exit code and what it printed, to both streams."""
    code = run(*words)
    return code, *capsys.readouterr()
