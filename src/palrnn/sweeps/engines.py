"""Which engine does the work: this process, processes of this machine, or a cluster."""

from __future__ import annotations

from palrnn.engine.checks import as_int
from palrnn.engine.processors import available_processors
from palrnn.sweeps.cluster import ClusterEngine
from palrnn.sweeps.local import LocalEngine
from palrnn.sweeps.runner import Engine
from palrnn.sweeps.task import Job, Outcome, execute


class SerialEngine:
    """Run jobs here; a job runs when its outcome is asked for."""

    name = "serial"
    workers = 1
    slots = 1

    def __init__(self) -> None:
        self._job: Job | None = None

    def submit(self, job: Job) -> None:
        """Take a job."""
        self._job = job

    def next(self, timeout: float) -> list[tuple[str, Outcome | None]]:
        """Do the job, however long that takes."""
        job, self._job = self._job, None
        return [] if job is None else [(job.hash, execute(job, interruptible=True))]

    def running(self) -> list[str]:
        """The hash of the job that will be done next."""
        return [] if self._job is None else [self._job.hash]

    def close(self) -> None:
        """Forget the job."""
        self._job = None


def engine_for(workers: int | None, scheduler: str | None) -> Engine:
    """Return an engine of ``workers`` processes (None: one per core), or a Dask cluster at ``scheduler``."""
    if scheduler is not None:
        if workers is not None:
            raise ValueError("workers are of this machine, scheduler is a cluster: give one of them")
        return ClusterEngine(scheduler)
    count = available_processors() if workers is None else as_int(workers, "workers", least=1, most=10_000)
    return SerialEngine() if count == 1 else LocalEngine(count)
