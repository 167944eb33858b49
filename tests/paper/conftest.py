"""One uninterrupted smoke-scale run of everything, shared by the tests that look at it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from dask_cluster import Cluster, running_cluster

PALRNN = [sys.executable, "-m", "palrnn.cli.main"]


@pytest.fixture(scope="session")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of `palrnn reproduce all --scale smoke`, from nothing to figures."""
    folder = tmp_path_factory.mktemp("smoke") / "run"
    words = ["reproduce", "all", "--scale", "smoke", "-o", str(folder), "--workers", "2", "-q"]
    done = subprocess.run([*PALRNN, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def start() -> Callable[..., subprocess.Popen[bytes]]:
    """Start a `palrnn` command in the background."""

    def started(*words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([*PALRNN, *words, "-q"], env=os.environ.copy())

    return started


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with running_cluster(tmp_path) as made:
        yield made
