"""What all tests share."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

# what JAX compiles here runs a few times: optimising it takes longer than it saves
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")

# Tests start about a hundred processes. Where Python is told to write no bytecode, each would read all
# sources anew, for half a second: they share bytecode in a place of its own.
if sys.dont_write_bytecode and "PYTHONPYCACHEPREFIX" not in os.environ:
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = tempfile.mkdtemp(prefix="palrnn-bytecode-")
    atexit.register(shutil.rmtree, os.environ["PYTHONPYCACHEPREFIX"], ignore_errors=True)

# the first example of a test may compile a kernel, and a busy machine is no failure; the same examples every
# time
settings.register_profile("palrnn", deadline=None, derandomize=True, database=None)
settings.load_profile("palrnn")

# Of two workers one gets the first half of the tests and the other the second. The rooms of the first half
# compile all kernels; the second half begins with what needs few of them, so that nothing is compiled twice.
# A browser is nothing to begin when the other worker is done.
_ORDER = ("test_page_in_chromium.py", "forcing", "invariants", "inference", "geometry", "tuning")
_ORDER += ("contracts", "model", "data", "engine", "sweeps")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    depth = len(Path(__file__).parent.parts)

    def place(item: pytest.Item) -> int:
        names = item.path.parts[depth:]
        return next((k for k, name in enumerate(_ORDER) if name in names), len(_ORDER))

    items.sort(key=place)
