"""The serial engine: one job after the other in this very process, which needs no others to start."""

from __future__ import annotations

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
