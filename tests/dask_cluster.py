"""A real Dask scheduler with two real workers over loopback TCP."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

ENVIRONMENT = os.environ | {
    "PYTHONPATH": ":".join(sys.path),
    "DASK_DISTRIBUTED__LOGGING__DISTRIBUTED": "critical",
    # a result that a killed worker took with it is asked for this long before it is computed again
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "10s",
    # instead of three: a task is handed back when it has lost two workers
    "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1",
}


class Cluster(NamedTuple):
    address: str
    folder: Path
    processes: list[subprocess.Popen[bytes]]

    def add_worker(self) -> subprocess.Popen[bytes]:
        options = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(self.folder)]
        process = spawn("worker", self.address, *options)
        self.processes.append(process)
        return process


def spawn(*arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "distributed.cli.dask_" + arguments[0], *arguments[1:]]
    return subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def wait_for(condition, seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


@contextmanager
def running_cluster(folder: Path, workers: int = 2) -> Iterator[Cluster]:
    """A scheduler and some workers, which end with the test."""
    file = folder / "scheduler.json"
    scheduler = spawn(
        "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file)
    )
    processes = [scheduler]
    try:
        wait_for(file.is_file)
        wait_for(lambda: file.read_text().endswith("}"))
        made = Cluster(json.loads(file.read_text())["address"], folder, processes)
        for _ in range(workers):
            made.add_worker()
        yield made
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()
