"""Tasks are named by their content; the store holds whole results and survives cut-off writers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading

import pytest
from oracles.rehearsal import FAIL, SUM, chain

from palrnn.engine.files import append_line
from palrnn.sweeps import Job, Kind, Outcome, Store, Task, closure, execute
from palrnn.sweeps.archive import restore_times, write_archive
from palrnn.sweeps.status import computation_rows, seconds_left
from palrnn.sweeps.store import line_bytes, read_lines
from palrnn.sweeps.task import machine


def job_of(task: Task, inputs: dict[str, bytes] | None = None, **changes: str) -> Job:
    return Job(task.hash, task.kind.function, task.kind.suffix, task.identity, inputs or {}, **changes)


def test_the_hash_depends_on_kind_version_settings_and_needs_only() -> None:
    task = Task(SUM, {"number": 1, "other": 0.25})
    assert Task(SUM, {"other": 0.25, "number": 1}, cost=9.0, label="words").hash == task.hash
    different = [
        Task(SUM, {"number": 2, "other": 0.25}),
        Task(FAIL, {"number": 1, "other": 0.25}),
        Task(Kind("sum", SUM.function, version=2), task.settings),
        Task(SUM, task.settings, {"leaf": Task(SUM, {"number": 0})}),
        Task(SUM, task.settings, {"leaf": Task(SUM, {"number": 1})}),
    ]
    assert len({task.hash, *(other.hash for other in different)}) == 6


def test_the_hash_is_the_same_in_another_process_with_another_hash_seed() -> None:
    task = chain(3)[-1]
    code = "from oracles.rehearsal import chain; print(chain(3)[-1].hash)"
    env = {"PYTHONPATH": ":".join(sys.path), "PYTHONHASHSEED": "77", "PATH": ""}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == task.hash


def test_settings_that_json_cannot_hold_are_refused() -> None:
    with pytest.raises(ValueError, match="Out of range"):
        _ = Task(SUM, {"number": float("nan")}).hash


def test_a_result_holds_what_determines_it_and_no_time_or_place() -> None:
    task = Task(SUM, {"number": 3})
    first, second = execute(job_of(task)), execute(job_of(task))
    assert first.data == second.data
    assert first.data is not None
    assert json.loads(first.data) == task.identity | {"result": {"total": 3}}


def test_a_worker_with_another_version_refuses() -> None:
    outcome = execute(job_of(Task(SUM, {"number": 3}), palrnn="0.0.1"))
    assert outcome.data is None
    assert "the run was started with 0.0.1" in (outcome.error or "")


def test_closure_puts_needs_first_and_each_task_once() -> None:
    tasks = chain(4)
    ordered = closure([tasks[-1], tasks[2], *tasks])
    assert len(ordered) == 5
    assert ordered[-1] == tasks[-1]


def test_a_cut_off_line_is_skipped_and_the_next_one_starts_afresh(tmp_path) -> None:
    path = tmp_path / "lines.jsonl"
    append_line(path, line_bytes({"a": 1}))
    with path.open("ab") as stream:
        stream.write(b'{"a": 2, "b"')
    append_line(path, line_bytes({"a": 3}))
    assert read_lines(path) == [{"a": 1}, {"a": 3}]


def test_time_left_follows_cost_within_a_kind(tmp_path) -> None:
    store = Store(tmp_path)
    short, long = Task(SUM, {"number": 1}, cost=1.0), Task(SUM, {"number": 2}, cost=10.0)
    assert seconds_left(store, [short, long]) is None
    store.keep(short, Outcome(b"{}", seconds=2.0))
    assert seconds_left(store, [short, long], workers=4) == pytest.approx(10 * 2.0 / 4)
    store.keep(long, Outcome(b"{}", seconds=25.0))
    assert seconds_left(store, [short, long]) == 0.0


def test_every_run_counts_once_however_it_ended(tmp_path) -> None:
    store = Store(tmp_path)
    with store.session():
        store.beat([], workers=2, engine="local")
    assert [run["workers"] for run in store.sessions()] == [2]
    for _ in range(2):  # two that ended before their first sign of life
        with Store(tmp_path).session():
            pass
    assert [run["workers"] for run in Store(tmp_path).sessions()] == [2]
    with store.session():
        store.beat([], workers=3, engine="local")
    assert [run["workers"] for run in Store(tmp_path).sessions()] == [2, 3]


def test_the_wall_time_of_each_purpose_is_told_with_its_machine(tmp_path) -> None:
    store = Store(tmp_path)
    for purpose, seconds in (("paper", 100.0), ("readings", 20.0), ("paper", 7.0)):
        with store.session():
            store._started -= seconds
            store.beat([], workers=2, engine="local", purpose=purpose)
    # and a run from before purposes and machines were kept
    old = {"pid": 1, "host": "a", "engine": "local", "workers": 2, "started": 0.0, "heartbeat": 5.0}
    append_line(tmp_path / "sessions.jsonl", line_bytes(old | {"running": []}))
    rows = {(row["part"], row["machine"]): row for row in computation_rows(store, {})}
    assert {row["what"] for row in rows.values()} == {"wall time, local, 2 workers"}
    assert rows["paper", machine()]["count"] == 2
    # starts and signs of life are kept to a tenth of a second
    assert rows["paper", machine()]["seconds"] == pytest.approx(107.0, abs=1.0)
    assert rows["readings", machine()]["seconds"] == pytest.approx(20.0, abs=0.5)
    assert rows["", ""]["seconds"] == 5.0


def test_the_machine_says_how_wide_its_registers_are(monkeypatch) -> None:
    for wide, end in ((True, " cores, AVX-512"), (False, " cores")):
        machine.cache_clear()
        monkeypatch.setattr("palrnn.sweeps.task.has_wide_registers", lambda wide=wide: wide)
        assert machine().endswith(end)
    machine.cache_clear()


def test_a_run_that_its_archive_brings_back_counts_once(tmp_path) -> None:
    store = Store(tmp_path)
    with store.session():
        store.beat([], workers=2, engine="local", purpose="paper")
    write_archive(store, [])
    # nothing was appended yet: the archive knows the run, and so does its sign of life
    restore_times(store)
    assert len(Store(tmp_path).sessions()) == 1
    with Store(tmp_path).session():
        pass
    assert len(Store(tmp_path).sessions()) == 1


def test_asking_for_the_status_does_not_turn_a_run_away(tmp_path) -> None:
    for _ in range(20):
        done = threading.Event()

        def ask(done: threading.Event = done) -> None:
            while not done.is_set():
                Store(tmp_path).alive()

        asking = threading.Thread(target=ask)
        asking.start()
        with Store(tmp_path).session():
            pass
        done.set()
        asking.join()


def test_two_runs_cannot_share_a_folder(tmp_path) -> None:
    store = Store(tmp_path)
    assert not store.alive()
    with store.session():
        store.beat([], workers=1, engine="local")
        assert Store(tmp_path).alive()
        code = "from oracles.rehearsal import chain\nfrom palrnn.sweeps import *\n"
        code += f"run(chain(2), Store({str(tmp_path)!r}), LocalEngine(1))"
        env = {"PYTHONPATH": ":".join(sys.path), "PATH": ""}
        other = subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False
        )
        assert f"FolderInUseError: {tmp_path}: is being written by process {os.getpid()}" in other.stderr
    assert not Store(tmp_path).alive()


@pytest.mark.parametrize("name", ["timings.jsonl", "sessions.jsonl", "tasks", ".lock"])
def test_a_link_in_a_folder_from_somebody_else_is_not_written_through(tmp_path, name: str) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "run"
    outside.mkdir()
    (outside / "precious").write_text("precious")
    with Store(folder).session():
        Store(folder).beat([], workers=1, engine="local")
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(outside if name == "tasks" else outside / "precious")
    with pytest.raises(ValueError, match="is a link"), Store(folder).session():
        Store(folder).keep(Task(SUM, {"number": 1}), Outcome(b"{}"))
    assert [path.name for path in outside.iterdir()] == ["precious"]
    assert (outside / "precious").read_text() == "precious"


def test_a_folder_of_other_things_is_left_alone(tmp_path) -> None:
    (tmp_path / "run.json").write_text("somebody's")
    with pytest.raises(ValueError, match="holds files that are not of a sweep"), Store(tmp_path).session():
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]
