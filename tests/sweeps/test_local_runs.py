"""Runs on the local pool: failures stay single, dead workers are replaced, kill -9 loses little."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from oracles.rehearsal import FAIL, MURDER, SUM, chain

from palrnn.engine.progress import quiet
from palrnn.sweeps import LocalEngine, Store, Tally, Task, run


def do(tasks: list[Task], folder: Path, workers: int = 2, **options: bool) -> Tally:
    return run(tasks, Store(folder), LocalEngine(workers), progress=quiet, **options)


def result_files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.glob("tasks/*/[!.]*"))
        if path.is_file()
    }


def test_results_do_not_depend_on_the_number_of_workers_and_are_not_redone(tmp_path) -> None:
    tasks = chain(5)
    assert do(tasks, tmp_path / "one", workers=1).done == 6
    assert do(tasks, tmp_path / "three", workers=3).done == 6
    assert result_files(tmp_path / "one") == result_files(tmp_path / "three")
    assert Store(tmp_path / "one").result(tasks[-1]) == {"total": 1000 + 0 + 1 + 2 + 3 + 4}
    again = do(tasks, tmp_path / "one")
    assert (again.before, again.done, again.complete) == (6, 0, True)


def test_a_failure_is_recorded_blocks_only_what_needs_it_and_can_be_retried(tmp_path) -> None:
    cure = tmp_path / "cure"
    bad = Task(FAIL, {"cure": str(cure)})
    after = Task(SUM, {"number": 5}, {"bad": bad})
    tasks = [bad, after, *chain(3)]
    tally = do(tasks, tmp_path)
    assert (tally.failed, tally.blocked, tally.done) == ((bad,), (after,), 4)
    assert "ZeroDivisionError: nothing to divide" in (Store(tmp_path).failure(bad) or "")
    cure.touch()
    still = do(tasks, tmp_path)
    assert (still.failed, still.done) == ((bad,), 0)
    cured = do(tasks, tmp_path, retry_failed=True)
    assert (cured.complete, cured.done) == (True, 2)
    assert Store(tmp_path).failure(bad) is None
    assert Store(tmp_path).result(after) == {"total": 6}


def test_a_worker_that_dies_is_replaced_and_its_task_gets_three_lives(tmp_path) -> None:
    unlucky = Task(MURDER, {"tally": str(tmp_path / "unlucky"), "spare": 2})
    deadly = Task(MURDER, {"tally": str(tmp_path / "deadly"), "spare": 99})
    tally = do([unlucky, deadly, *chain(6, seconds=0.05)], tmp_path)
    assert tally.failed == (deadly,)
    assert tally.done == 8
    assert Store(tmp_path).result(unlucky) == {"total": 2}
    assert (tmp_path / "deadly").read_text() == "xxx"
    assert "its worker died 3 times" in (Store(tmp_path).failure(deadly) or "")


def coordinator(folder: Path, count: int, **settings: Any) -> subprocess.Popen[bytes]:
    code = (
        "import signal\nfrom oracles.rehearsal import chain\nfrom palrnn.sweeps import *\n"
        "from palrnn.engine.progress import quiet\n"
        # what a shell starts in the background ignores it
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"run(chain({count}, **{settings!r}), Store({str(folder)!r}), LocalEngine(2), progress=quiet)"
    )
    environment = os.environ | {"PYTHONPATH": ":".join(sys.path)}
    return subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE)


def wait_for(condition, seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def stop(process: subprocess.Popen[bytes], how: signal.Signals) -> None:
    """Stop a coordinator and wait for its workers too: they share its output, which ends with the last."""
    process.send_signal(how)
    process.communicate(timeout=120)


@pytest.mark.parametrize("how", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_a_stopped_run_continues_and_gives_the_files_of_an_uninterrupted_one(tmp_path, how) -> None:
    folder, diary, gate = tmp_path / "stopped", tmp_path / "diary", tmp_path / "gate"
    settings = {"seconds": 0.1, "diary": str(diary), "free": 5, "gate": str(gate)}
    process = coordinator(folder, 12, **settings)
    try:
        # the first that waits at the gate has begun: at most one of the five before it is still under way
        wait_for(lambda: diary.is_file() and "5" in diary.read_text().splitlines())
        # nothing opens the gate, so the workers end with their coordinator or not in time
        stop(process, how)
    finally:
        process.kill()
    kept = len(result_files(folder))
    assert 4 <= kept <= 5
    assert not Store(folder).alive()
    # what was under way at most: one task per worker
    assert len(diary.read_text().splitlines()) <= kept + 2
    gate.touch()
    tasks = chain(12, **settings)
    tally = do(tasks, folder)
    assert (tally.before, tally.done) == (kept, 13 - kept)
    do(tasks, tmp_path / "whole")
    assert result_files(folder) == result_files(tmp_path / "whole")


def test_a_killed_run_leaves_no_half_written_result(tmp_path) -> None:
    folder = tmp_path / "run"
    settings = {"free": 398, "gate": str(tmp_path / "gate")}
    process = coordinator(folder, 400, **settings)
    try:
        wait_for(lambda: len(result_files(folder)) >= 20)
        stop(process, signal.SIGKILL)
    finally:
        process.kill()
    store = Store(folder)
    done = [task for task in chain(400, **settings) if store.has(task)]
    assert 20 <= len(done) <= 398
    assert [store.result(task)["total"] for task in done] == [task.settings["number"] for task in done]
