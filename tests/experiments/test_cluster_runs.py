"""Runs on a real Dask scheduler with two real workers over loopback TCP, one of which gets killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from oracles.rehearsal import FAIL, MURDER, SUM, chain

from palrnn.engine.progress import quiet
from palrnn.experiments import ClusterEngine, LocalEngine, Store, Task, preset_in, run, study_tasks

ENVIRONMENT = os.environ | {
    "PYTHONPATH": ":".join(sys.path),
    "DASK_DISTRIBUTED__LOGGING__DISTRIBUTED": "critical",
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


def wait_for(condition, seconds: float = 40.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


@pytest.fixture
def cluster(tmp_path) -> Iterator[Cluster]:
    file = tmp_path / "scheduler.json"
    scheduler = spawn(
        "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file)
    )
    processes = [scheduler]
    try:
        wait_for(file.is_file)
        wait_for(lambda: file.read_text().endswith("}"))
        made = Cluster(json.loads(file.read_text())["address"], tmp_path, processes)
        made.add_worker(), made.add_worker()
        yield made
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()


def result_files(folder: Path) -> dict[str, bytes]:
    files = [path for path in sorted(folder.glob("tasks/*/[!.]*")) if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_a_sweep_completes_though_a_worker_is_killed_and_equals_the_local_one(tmp_path, cluster) -> None:
    tasks = chain(24, seconds=0.15)
    folder = tmp_path / "cluster"
    engine = ClusterEngine(cluster.address)
    assert engine.name == "dask"
    wait_for(lambda: engine.workers == 2)
    victim = cluster.processes[1]
    killer = threading.Thread(
        target=lambda: (wait_for(lambda: len(result_files(folder)) >= 6), victim.kill())
    )
    killer.start()
    tally = run(tasks, Store(folder), engine, progress=quiet)
    killer.join()
    assert victim.wait(timeout=10) == -signal.SIGKILL
    assert (tally.complete, tally.done) == (True, 25)
    run(tasks, Store(tmp_path / "local"), LocalEngine(2), progress=quiet)
    assert result_files(folder) == result_files(tmp_path / "local")


def test_failures_and_deadly_tasks_stay_single_and_a_killed_coordinator_is_continued(
    tmp_path, cluster
) -> None:
    bad = Task(FAIL, {"cure": str(tmp_path / "cure")})
    folder = tmp_path / "cluster"
    code = (
        "from oracles.rehearsal import chain\nfrom palrnn.experiments import *\n"
        "from palrnn.engine.progress import quiet\n"
        f"engine = ClusterEngine({cluster.address!r})\n"
        f"run(chain(20, seconds=0.2), Store({str(folder)!r}), engine, progress=quiet)"
    )
    coordinator = subprocess.Popen([sys.executable, "-c", code], env=ENVIRONMENT)
    wait_for(lambda: len(result_files(folder)) >= 4)
    coordinator.kill()
    coordinator.wait()
    kept = len(result_files(folder))
    assert 4 <= kept < 21
    # it takes down its worker each time, until the scheduler gives it up; new workers keep coming
    deadly = Task(MURDER, {"tally": str(tmp_path / "deadly"), "spare": 99})
    stop = threading.Event()

    def replace_the_dead() -> None:
        while not stop.wait(0.2):
            if sum(process.poll() is None for process in cluster.processes[1:]) < 2:
                cluster.add_worker()

    helper = threading.Thread(target=replace_the_dead)
    helper.start()
    try:
        tasks = [bad, deadly, *chain(20, seconds=0.2)]
        tally = run(tasks, Store(folder), ClusterEngine(cluster.address), progress=quiet)
    finally:
        stop.set()
        helper.join()
    assert (tally.before, tally.done, tally.failed) == (kept, 21 - kept, (bad, deadly))
    assert "ZeroDivisionError" in (Store(folder).failure(bad) or "")
    assert "KilledWorker" in (Store(folder).failure(deadly) or "")
    assert Store(folder).result(tasks[-1]) == {"total": 1000 + sum(range(20))}


def test_no_scheduler_is_a_sentence_not_a_traceback() -> None:
    with pytest.raises(ValueError, match="no Dask scheduler answers at tcp"):
        ClusterEngine("tcp://127.0.0.1:9", timeout=0.5)


def test_a_lost_scheduler_ends_the_run_with_a_sentence_and_keeps_what_is_done(tmp_path, cluster) -> None:
    folder = tmp_path / "cluster"
    tasks = [Task(SUM, {"number": k, "seconds": 0.1}) for k in range(30)]
    killer = threading.Thread(
        target=lambda: (wait_for(lambda: len(result_files(folder)) >= 3), cluster.processes[0].kill())
    )
    killer.start()
    with pytest.raises(OSError, match="run the same command again to go on"):
        run(tasks, Store(folder), ClusterEngine(cluster.address), progress=quiet)
    killer.join()
    assert len(result_files(folder)) >= 3


@pytest.mark.parametrize("asked", [lambda engine: engine.workers, lambda engine: engine.running()])
def test_whichever_call_meets_the_lost_scheduler_says_so(cluster, asked) -> None:
    engine = ClusterEngine(cluster.address, timeout=3.0)
    cluster.processes[0].kill()
    cluster.processes[0].wait()
    with pytest.raises(OSError, match=r"lost the Dask scheduler at tcp.*run the same command again to go on"):
        asked(engine)
    engine.close()


@pytest.mark.slow
def test_the_studies_themselves_give_the_same_bytes_on_the_cluster(tmp_path, cluster, smoke) -> None:
    preset = preset_in(tmp_path / "cluster", "smoke")
    tasks = study_tasks(preset, ["toy", "gap", "evidence"])
    run(tasks, Store(tmp_path / "cluster"), ClusterEngine(cluster.address), progress=quiet)
    found, local = result_files(tmp_path / "cluster"), result_files(smoke)
    assert len(found) == len(tasks)
    assert found == {name: local[name] for name in found}
