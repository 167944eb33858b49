"""One uninterrupted smoke-scale run of everything, shared by the tests that look at it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from dask_cluster import Cluster, running_cluster

from palrnn.forcing import TrainConfig, train
from palrnn.model import checkpoint_bytes
from palrnn.paper.presets import load_preset
from palrnn.paper.series import training_series

PALRNN = [sys.executable, "-m", "palrnn.cli.main"]


@pytest.fixture(scope="session")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of `palrnn reproduce all --scale smoke`, from nothing to figures.

    It is read only, and made once for all processes that share the work of the tests: whoever comes second
    waits.
    """
    place = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        place = place.parent  # what the workers have in common
    folder, finished = place / "smoke" / "run", place / "smoke" / "finished"
    try:
        folder.parent.mkdir()
    except FileExistsError:
        end = time.monotonic() + 280
        while not finished.exists() and time.monotonic() < end:
            time.sleep(0.1)
        assert finished.exists(), "the run that another process makes has not come to its end"
    else:
        words = ["reproduce", "all", "--scale", "smoke", "-o", str(folder), "--workers", "2", "-q"]
        done = subprocess.run([*PALRNN, *words], capture_output=True, text=True, check=False)
        finished.write_text(done.stderr if done.returncode else "")
    assert not finished.read_text(), finished.read_text()
    return folder


@pytest.fixture(scope="session")
def trained() -> dict[str, bytes]:
    """A small model of the smoke scale's series, as tasks are given it."""
    series = training_series(load_preset("smoke").data, 0.1, 0.1)
    config = TrainConfig.paper(latent_dim=6, gated=2, updates=100, batch_size=4, sequence_length=30, tau=8)
    made = train(series.train, config, progress=None).model
    start = {"x1": series.test[0]}
    return {"model": checkpoint_bytes(made, standardizer=series.standardizer, dt=0.01, arrays=start)}


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
