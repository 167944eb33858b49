"""The lowest versions that are promised are the lowest versions that are tested."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def floors():
    """Return what pyproject.toml asks for at least, for running and testing: name -> version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    own = [name for extra in ("parquet", "hdf5", "cluster", "test") for name in extras[extra]]
    wanted = [*project["dependencies"], *own]
    found = [re.match(r"([\w-]+)>=([\d.]+)", line) for line in wanted if not line.startswith("palrnn[")]
    return {match[1]: match[2] for match in found}


def pins():
    lines = (ROOT / "constraints-lowest.txt").read_text().splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def numbers(version):
    """1.0 and 1.0.0 are the same version."""
    parts = [int(part) for part in version.split(".")]
    while parts and parts[-1] == 0:
        parts.pop()
    return parts


def test_every_floor_is_tested_as_it_stands():
    pinned = pins()
    assert {name: numbers(pinned[name]) for name in floors()} == {
        name: numbers(version) for name, version in floors().items()
    }
