"""Runs on a real Dask scheduler with two real workers over loopback TCP, one of which gets killed."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from dask_cluster import ENVIRONMENT, running_cluster, wait_for
from oracles.rehearsal import FAIL, MURDER, chain

from palrnn.engine.progress import quiet
from palrnn.sweeps import ClusterEngine, LocalEngine, Store, Task, run


def result_files(folder: Path) -> dict[str, bytes]:
    files = [path for path in sorted(folder.glob("tasks/*/[!.]*")) if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_a_sweep_completes_though_a_worker_is_killed_and_equals_the_local_one(tmp_path, cluster) -> None:
    folder, diary, gate = tmp_path / "cluster", tmp_path / "diary", tmp_path / "gate"
    tasks = chain(24, seconds=0.05, diary=str(diary), free=10, gate=str(gate))
    engine = ClusterEngine(cluster.address)
    assert engine.name == "dask"
    wait_for(lambda: engine.workers == 2)
    victim, done_before = cluster.processes[1], []

    def kill_at_work() -> None:
        try:
            # each of the two workers waits at the gate with a task of its own
            wait_for(lambda: diary.is_file() and len(diary.read_text().splitlines()) >= 12)
            wait_for(lambda: len(result_files(folder)) == 10)
            victim.kill()
            victim.wait()
            done_before.append(len(result_files(folder)))
        finally:
            gate.touch()

    killer = threading.Thread(target=kill_at_work)
    killer.start()
    tally = run(tasks, Store(folder), engine, progress=quiet)
    killer.join()
    assert victim.returncode == -signal.SIGKILL
    assert done_before == [10]
    assert (tally.complete, tally.done) == (True, 25)
    # the task that it was doing began once more
    assert len(diary.read_text().splitlines()) >= 26
    run(tasks, Store(tmp_path / "local"), LocalEngine(2), progress=quiet)
    assert result_files(folder) == result_files(tmp_path / "local")


@pytest.mark.slow
@pytest.mark.timeout(600)  # many workers have to start
def test_failures_and_deadly_tasks_stay_single_and_a_killed_coordinator_is_continued(
    tmp_path, cluster
) -> None:
    bad = Task(FAIL, {"cure": str(tmp_path / "cure")})
    folder, gate = tmp_path / "cluster", tmp_path / "gate"
    settings = {"seconds": 0.2, "free": 8, "gate": str(gate)}
    code = (
        "from oracles.rehearsal import chain\nfrom palrnn.sweeps import *\n"
        "from palrnn.engine.progress import quiet\n"
        f"engine = ClusterEngine({cluster.address!r})\n"
        f"run(chain(20, **{settings!r}), Store({str(folder)!r}), engine, progress=quiet)"
    )
    coordinator = subprocess.Popen([sys.executable, "-c", code], env=ENVIRONMENT)
    try:
        wait_for(lambda: len(result_files(folder)) >= 4)
    finally:
        coordinator.kill()
        coordinator.wait()
    kept = len(result_files(folder))
    assert 4 <= kept <= 8
    gate.touch()
    # it takes down its worker each time, until it is given up; new workers keep coming, so that what only
    # waited behind it gets done elsewhere
    deadly = Task(MURDER, {"tally": str(tmp_path / "deadly"), "spare": 99})
    stop = threading.Event()

    def replace_the_dead() -> None:
        while not stop.wait(0.2):
            if sum(process.poll() is None for process in cluster.processes[1:]) < 2:
                cluster.add_worker()

    engine = ClusterEngine(cluster.address)
    wait_for(lambda: engine.workers == 2)
    helper = threading.Thread(target=replace_the_dead)
    helper.start()
    try:
        tasks = [bad, deadly, *chain(20, **settings)]
        tally = run(tasks, Store(folder), engine, progress=quiet)
    finally:
        stop.set()
        helper.join()
    assert (tally.before, tally.done, tally.failed) == (kept, 21 - kept, (bad, deadly))
    assert "ZeroDivisionError" in (Store(folder).failure(bad) or "")
    assert "its worker died 3 times" in (Store(folder).failure(deadly) or "")
    # two workers to each life
    assert (tmp_path / "deadly").read_text() == 3 * "xx"
    assert Store(folder).result(tasks[-1]) == {"total": 1000 + sum(range(20))}


def test_no_scheduler_is_a_sentence_not_a_traceback() -> None:
    with pytest.raises(ValueError, match="no Dask scheduler answers at tcp"):
        ClusterEngine("tcp://127.0.0.1:9", timeout=0.5)


def test_a_lost_scheduler_ends_the_run_with_a_sentence_and_keeps_what_is_done(tmp_path) -> None:
    with running_cluster(tmp_path, workers=1) as cluster:
        _lose_the_scheduler(tmp_path / "run", cluster)


def _lose_the_scheduler(folder, cluster) -> None:
    # nothing opens the gate, so the run is not over when the scheduler goes
    tasks = chain(30, free=6, gate=str(folder.parent / "gate"))

    def kill_scheduler() -> None:
        try:
            wait_for(lambda: len(result_files(folder)) >= 3)
        finally:
            cluster.processes[0].kill()

    killer = threading.Thread(target=kill_scheduler)
    killer.start()
    with pytest.raises(OSError, match="run the same command again to go on"):
        run(tasks, Store(folder), ClusterEngine(cluster.address), progress=quiet)
    killer.join()
    assert 3 <= len(result_files(folder)) <= 6


def test_whichever_call_meets_the_lost_scheduler_says_so(tmp_path) -> None:
    with running_cluster(tmp_path, workers=0) as cluster:
        engines = [ClusterEngine(cluster.address) for _ in range(2)]
        cluster.processes[0].kill()
        cluster.processes[0].wait()
    for engine, asked in zip(engines, (lambda e: e.workers, lambda e: e.running()), strict=True):
        # who is connected needs no 20 seconds to learn that a loopback address refuses
        engine._client.rpc.timeout = 1.0
        with pytest.raises(OSError, match=r"lost the Dask scheduler at tcp.*run the same command again"):
            asked(engine)
        engine.close()
