"""A cluster for the test that needs one, and shorter runs to judge candidates by."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from dask_cluster import Cluster, running_cluster

from palrnn.searches.work import SHORT_STEPS


@pytest.fixture(autouse=True, scope="module")
def shorter_runs() -> Iterator[None]:
    """Judge ends as early rungs are: five times as quick, and no test here asks for what comes late."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("palrnn.searches.work.LONG_STEPS", SHORT_STEPS)
        yield


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with running_cluster(tmp_path) as made:
        yield made
