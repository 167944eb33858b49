"""Runs on the local pool: failures stay single, dead workers are replaced, kill -9 loses little."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from oracles.rehearsal import FAIL, MURDER, SUM, chain

from palrnn.engine.progress import quiet
from palrnn.experiments import LocalEngine, Store, Tally, Task, run


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


def coordinator(folder: Path, count: int, seconds: float, diary: Path) -> subprocess.Popen[bytes]:
    code = (
        "from oracles.rehearsal import chain\nfrom palrnn.experiments import *\n"
        "from palrnn.engine.progress import quiet\n"
        f"tasks = chain({count}, seconds={seconds}, diary={str(diary)!r})\n"
        f"run(tasks, Store({str(folder)!r}), LocalEngine(2), progress=quiet)"
    )
    return subprocess.Popen([sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": ":".join(sys.path)})


def wait_for(condition, seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_stopped_run_continues_and_gives_the_files_of_an_uninterrupted_one(tmp_path, how) -> None:
    tasks = chain(12, seconds=0.1, diary=str(tmp_path / "diary"))
    folder = tmp_path / "stopped"
    process = coordinator(folder, 12, 0.1, tmp_path / "diary")
    wait_for(lambda: len(result_files(folder)) >= 4)
    process.send_signal(how)
    process.wait(timeout=20)
    kept = len(result_files(folder))
    assert 4 <= kept < 13
    assert not Store(folder).alive()
    # the workers ended with their coordinator: after a moment, no task is begun any more
    time.sleep(0.5)
    begun = (tmp_path / "diary").read_text()
    time.sleep(0.5)
    assert (tmp_path / "diary").read_text() == begun
    # what was under way at most: one task per worker
    assert len(begun.splitlines()) <= kept + 2
    tally = do(tasks, folder)
    assert (tally.before, tally.done) == (kept, 13 - kept)
    do(tasks, tmp_path / "whole")
    assert result_files(folder) == result_files(tmp_path / "whole")


def test_a_killed_run_leaves_no_half_written_result(tmp_path) -> None:
    folder = tmp_path / "run"
    process = coordinator(folder, 400, 0.0, tmp_path / "diary")
    wait_for(lambda: len(result_files(folder)) >= 20)
    os.kill(process.pid, signal.SIGKILL)
    process.wait(timeout=20)
    store = Store(folder)
    tasks = chain(400, seconds=0.0, diary=str(tmp_path / "diary"))
    done = [task for task in tasks if store.has(task)]
    assert [store.result(task)["total"] for task in done] == [task.settings["number"] for task in done]
