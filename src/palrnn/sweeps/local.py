"""The local engine: a pool of worker processes on this machine.

Each worker is one spawned process behind one pipe, so that a worker that dies (killed, out of memory)
implicates exactly the task it was doing; it is replaced and the sweep goes on. A worker ends by itself when
the coordinator does, even if that was killed.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from multiprocessing.connection import Connection, wait
from typing import Any

from palrnn.engine.checks import as_int
from palrnn.engine.processors import available_processors
from palrnn.sweeps.task import Job, Outcome, execute

_CONTEXT = multiprocessing.get_context("spawn")


class LocalEngine:
    """Run jobs in ``workers`` processes on this machine (default: one per core)."""

    name = "local"

    def __init__(self, workers: int | None = None) -> None:
        count = available_processors() if workers is None else as_int(workers, "workers", least=1)
        self._workers: list[_Worker] = [_Worker() for _ in range(count)]

    @property
    def workers(self) -> int:
        """The number of processes."""
        return len(self._workers)

    @property
    def slots(self) -> int:
        """One job per process."""
        return len(self._workers)

    def submit(self, job: Job) -> None:
        """Give a job to an idle worker."""
        next(worker for worker in self._workers if worker.job is None).start(job)

    def next(self, timeout: float) -> list[tuple[str, Outcome | None]]:
        """Return the jobs that ended, within ``timeout`` seconds; None stands for a worker that died."""
        busy = {worker.pipe: worker for worker in self._workers if worker.job is not None}
        return [busy[pipe].finish() for pipe in wait(list(busy), timeout) if pipe in busy]

    def running(self) -> list[str]:
        """The hashes of the jobs under way."""
        return [worker.job for worker in self._workers if worker.job is not None]

    def close(self) -> None:
        """Stop all workers at once."""
        for worker in self._workers:
            worker.stop()


class _Worker:
    def __init__(self) -> None:
        self.job: str | None = None
        self.process: Any = None
        self.pipe: Connection

    def start(self, job: Job) -> None:
        for last_try in (False, True):
            if self.process is None:
                self.pipe, theirs = _CONTEXT.Pipe()
                self.process = _CONTEXT.Process(target=_serve, args=(theirs,), daemon=True)
                self.process.start()
                theirs.close()
            try:
                self.pipe.send(job)
                break
            except OSError:  # it died while idle
                self.stop()
                if last_try:
                    raise
        self.job = job.hash

    def finish(self) -> tuple[str, Outcome | None]:
        assert self.job is not None
        hash, self.job = self.job, None
        try:
            return hash, self.pipe.recv()
        except (EOFError, OSError):
            self.stop()
            return hash, None

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.process.close()
            self.pipe.close()
            self.process = None


def _serve(pipe: Connection) -> None:
    # Ctrl-C reaches the whole terminal group; only the coordinator decides what it means
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            job = pipe.recv()
        except (EOFError, OSError):
            return
        pipe.send(execute(job))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
