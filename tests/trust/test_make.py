"""`make` installs once: in a path with spaces, later without a network, anew in a foreign environment."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# in place of Python: notes what it was called with
FAKE = '#!/bin/sh\necho "$@" >> "$(dirname "$0")/calls"\n'

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")


@pytest.fixture
def tree(tmp_path):
    folder = tmp_path / "a path with spaces"
    (folder / ".venv" / "bin").mkdir(parents=True)
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        (folder / name).write_bytes((ROOT / name).read_bytes())  # which may be read-only
        os.utime(folder / name, (1e9, 1e9))
    python = folder / ".venv" / "bin" / "python"
    python.write_text(FAKE)
    python.chmod(0o755)
    os.utime(python, (1e9, 1e9))
    return folder


def installs(folder, target=".venv/.test"):
    """Make the target; return the words of pip's installations."""
    calls = folder / ".venv" / "bin" / "calls"
    calls.unlink(missing_ok=True)
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    subprocess.run(["make", target], cwd=folder, env=clean, check=True, capture_output=True)
    lines = calls.read_text().splitlines() if calls.exists() else []
    return [line for line in lines if "pip install" in line]


def test_the_second_time_nothing_is_installed(tree):
    (words,) = installs(tree)
    assert words.endswith("-c constraints.txt -e .[test]")
    assert installs(tree) == []


def test_a_new_date_needs_no_network_and_new_content_installs_again(tree):
    installs(tree)
    os.utime(tree / "pyproject.toml")
    assert installs(tree) == []
    with (tree / "pyproject.toml").open("a") as file:
        file.write("# one more line\n")
    later = time.time() + 1  # clocks of file systems tick in milliseconds: the stamp may have the same date
    os.utime(tree / "pyproject.toml", (later, later))
    assert len(installs(tree)) == 1


def test_more_extras_do_not_install_the_others_again(tree):
    installs(tree)
    (words,) = installs(tree, ".venv/.bench")
    assert words.endswith("-e .[bench]")
    assert installs(tree) == []


def test_an_environment_from_elsewhere_is_installed_into(tree):
    installs(tree)
    moved = tree.with_name("moved")
    tree.rename(moved)
    assert len(installs(moved)) == 1
    assert installs(moved) == []
