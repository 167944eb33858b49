"""Which engine does the work: this process, processes of this machine, or a cluster."""

from __future__ import annotations

from palrnn.engine.checks import as_int
from palrnn.engine.processors import available_processors
from palrnn.sweeps.cluster import ClusterEngine
from palrnn.sweeps.local import LocalEngine
from palrnn.sweeps.runner import Engine
from palrnn.sweeps.serial import SerialEngine


def engine_for(workers: int | None, scheduler: str | None) -> Engine:
    """Return an engine of ``workers`` processes (None: one per core), or a Dask cluster at ``scheduler``."""
    if scheduler is not None:
        if workers is not None:
            raise ValueError("workers are of this machine, scheduler is a cluster: give one of them")
        return ClusterEngine(scheduler)
    count = available_processors() if workers is None else as_int(workers, "workers", least=1, most=10_000)
    return SerialEngine() if count == 1 else LocalEngine(count)
