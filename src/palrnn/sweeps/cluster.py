"""The cluster engine: the same jobs on the workers of an existing Dask cluster.

The coordinator holds the store; workers only need palrnn of the same version. A job whose worker is lost is
given to another one by the Dask scheduler. A job that loses too many comes back as one whose worker died, and
the runner decides: Dask also counts the jobs that only waited on a lost worker.
"""

from __future__ import annotations

import asyncio
import queue
import traceback
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from typing import Any

from palrnn.sweeps.task import Job, Outcome, execute

#: Enough waiting jobs for an adaptive cluster to see that it should grow.
_LEAST_SLOTS = 32


class ClusterEngine:
    """Run jobs on the Dask cluster whose scheduler listens at ``address`` (``tcp://host:port``)."""

    name = "dask"

    def __init__(self, address: str, *, timeout: float = 20.0) -> None:
        try:
            from distributed import Client, KilledWorker
        except ImportError:
            raise ValueError("a cluster needs Dask: pip install 'palrnn[cluster]'") from None
        try:
            self._client = Client(address, timeout=timeout, set_as_default=False)
        except (OSError, TimeoutError) as error:
            raise ValueError(f"no Dask scheduler answers at {address} ({error})") from None
        self._address = address
        self._killed = KilledWorker
        self._futures: dict[str, Any] = {}
        self._ended: queue.SimpleQueue[str] = queue.SimpleQueue()

    @property
    def workers(self) -> int:
        """The threads of all workers that are connected now."""
        with self._reaching_scheduler():
            return sum(self._client.nthreads().values())

    @property
    def slots(self) -> int:
        """Twice the threads, so that no worker idles while the coordinator writes; at least a few."""
        return max(_LEAST_SLOTS, 2 * self.workers)

    def submit(self, job: Job) -> None:
        """Hand a job to the scheduler."""
        # pure=False gives each submission its own key: nothing comes from the memory of an earlier run
        with self._reaching_scheduler():
            future = self._client.submit(execute, job, pure=False)
        self._futures[job.hash] = future
        future.add_done_callback(lambda _, hash=job.hash: self._ended.put(hash))

    def next(self, timeout: float) -> list[tuple[str, Outcome | None]]:
        """Return a job that ended, within ``timeout`` seconds; None stands for too many workers that died."""
        try:
            hash = self._ended.get(timeout=timeout)
        except queue.Empty:
            if self._client.status not in ("running", "connecting"):
                raise self._lost() from None
            return []
        future = self._futures.pop(hash)
        try:
            return [(hash, future.result())]
        except (OSError, CancelledError, asyncio.CancelledError) as error:
            # what a job raises arrives as an outcome, never here
            raise self._lost(error) from None
        except self._killed:
            return [(hash, None)]
        except Exception:  # the result could not travel
            return [(hash, Outcome(None, traceback.format_exc()))]

    def running(self) -> list[str]:
        """The hashes of the jobs that are on a worker."""
        with self._reaching_scheduler():
            keys = {key for on_worker in self._client.processing().values() for key in on_worker}
        return [hash for hash, future in self._futures.items() if future.key in keys]

    def close(self) -> None:
        """Cancel what is under way and leave; the cluster stays."""
        with suppress(Exception):  # the scheduler may be gone, which cancels as well
            self._client.cancel(list(self._futures.values()))
        self._client.close(timeout=5)

    @contextmanager
    def _reaching_scheduler(self) -> Iterator[None]:
        """A call to the scheduler fails in many ways (reset, timed out, closed), and all mean the same."""
        try:
            yield
        except Exception as error:
            raise self._lost(error) from None

    def _lost(self, error: BaseException | None = None) -> OSError:
        reason = f" ({error})" if error and str(error) else ""
        return OSError(
            f"lost the Dask scheduler at {self._address}; run the same command again to go on{reason}"
        )
