"""Clocks are set back, and notes in folders of others tell any time: nobody waits for ever."""

from __future__ import annotations

import json
import os
import time

import pytest
from oracles.rehearsal import chain

from palrnn.cli import status as command
from palrnn.engine import locks
from palrnn.engine.locks import FolderInUseError, folder_lock
from palrnn.sweeps import Store, sweep_status
from palrnn.sweeps.status import computation_rows

HOUR = 3600.0


def lock_note(**changes):
    """The note of a lock that a running process holds on this machine."""
    parent = os.getppid()
    note = {"pid": parent, "start": locks._start_of(parent), "host": locks.platform.node()}
    return json.dumps(note | {"command": "c", "what": "w", "since": time.time()} | changes)


def left(folder, **changes):
    """A store whose last run left this sign of life."""
    store = Store(folder)
    with store.session():
        store.beat(chain(2), workers=2, engine="local")
    said = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(said | changes))
    return store


def words(store):
    return "\n".join(str(part) for part in command._parts({"scale": "a"} | sweep_status(store, chain(2))))


def test_status_after_the_clock_went_back(tmp_path):
    assert "last sign of life was 0 s ago" in words(left(tmp_path, heartbeat=time.time() + 5 * HOUR))


@pytest.mark.parametrize("hours", [-5, 5])
def test_a_run_elsewhere_is_alive_only_by_a_sign_of_life_of_about_now(tmp_path, hours):
    store = left(tmp_path)
    (tmp_path / ".lock").write_text(lock_note(host="elsewhere"))
    assert store.alive()
    said = store.run()
    (tmp_path / "run.json").write_text(json.dumps(said | {"heartbeat": said["heartbeat"] + hours * HOUR}))
    assert not store.alive()


def test_a_sign_of_life_is_given_though_the_clock_went_back(tmp_path, monkeypatch):
    store = left(tmp_path)
    assert not store.due(2.0)
    now = time.time()
    monkeypatch.setattr("palrnn.sweeps.store.time.time", lambda: now - HOUR)
    assert store.due(2.0)


def test_no_run_took_less_than_no_time(tmp_path):
    store = left(tmp_path, started=time.time() + HOUR)
    assert [row["seconds"] for row in computation_rows(store, {})] == [0.0]


@pytest.mark.parametrize("since", [-1e18, 1e18, 1e300, float("nan"), float("inf")])
def test_the_holder_of_a_lock_is_named_whatever_the_time(tmp_path, since):
    (tmp_path / ".lock").write_text(lock_note(since=since))
    with (
        pytest.raises(FolderInUseError, match=f"process {os.getppid()} .* no clock"),
        folder_lock(tmp_path, "x"),
    ):
        pass


def test_a_lock_is_stale_by_its_process_and_not_by_its_age(tmp_path):
    (tmp_path / ".lock").write_text(lock_note(since=time.time() + 1000 * HOUR, start="long ago"))
    with folder_lock(tmp_path, "testing"):
        pass


@pytest.mark.parametrize(
    "changes",
    [
        {"heartbeat": "now"},
        {"heartbeat": 1e400},
        {"started": None},
        {"workers": "many"},
        {"running": [1]},
        {"running": [{"kind": 3}]},
        {"host": 5},
    ],
)
def test_a_sign_of_life_that_makes_no_sense_is_none(tmp_path, changes):
    store = left(tmp_path, **changes)
    assert store.run() == {}
    assert "running" not in words(store)
    with store.session():  # and what comes after it is as usual
        store.beat([], workers=1, engine="local")
    assert [row["what"] for row in computation_rows(store, {})] == ["wall time, local, 1 worker"]
