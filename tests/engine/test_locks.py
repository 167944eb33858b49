"""One writer per folder, and a refusal that says who the other is."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from palrnn.engine import locks
from palrnn.engine.locks import FolderInUseError, folder_lock, lock_holder

_HOLDING = """
import sys, time
from palrnn.engine.locks import folder_lock
with folder_lock(sys.argv[1], "holding"):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def other(tmp_path):
    """Another process that holds the folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLDING, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_a_folder_is_made_held_and_left_without_a_trace(tmp_path):
    folder = tmp_path / "a" / "b"
    with folder_lock(folder, "testing"):
        assert os.listdir(folder) == [".lock"]
        assert lock_holder(folder).pid == os.getpid()
    assert os.listdir(folder) == []
    assert lock_holder(folder) is None


def test_the_refusal_names_process_command_and_time(tmp_path, other):
    pattern = rf"{re.escape(str(tmp_path))}.*process {other.pid} on .*-c.*; holding, since \d{{4}}-\d\d-\d\d"
    with pytest.raises(FolderInUseError, match=pattern), folder_lock(tmp_path, "testing"):
        pass
    assert lock_holder(tmp_path).what == "holding"


def test_a_killed_writer_lets_go_even_while_nobody_has_buried_it(tmp_path, other):
    os.kill(other.pid, 9)
    deadline = time.monotonic() + 20
    while lock_holder(tmp_path) is not None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert other.returncode is None  # not waited for: its process still has an entry
    with folder_lock(tmp_path, "testing"):
        assert lock_holder(tmp_path).pid == os.getpid()


def test_the_same_thread_may_take_a_folder_again_and_another_may_not(tmp_path):
    refused = []

    def other_thread():
        try:
            with folder_lock(tmp_path, "second"):
                pass
        except FolderInUseError as error:
            refused.append(str(error))

    with folder_lock(tmp_path, "first"):
        with folder_lock(tmp_path, "inner"):
            pass
        assert lock_holder(tmp_path) is not None
        thread = threading.Thread(target=other_thread)
        thread.start()
        thread.join()
    assert len(refused) == 1
    assert f"process {os.getpid()} " in refused[0]
    assert lock_holder(tmp_path) is None


def test_an_error_inside_lets_go(tmp_path):
    with pytest.raises(KeyError), folder_lock(tmp_path, "failing"):
        raise KeyError
    with folder_lock(tmp_path, "testing"):
        pass


def test_a_folder_that_goes_away_meanwhile_is_no_error(tmp_path):
    folder = tmp_path / "gone"
    with folder_lock(folder, "testing"):
        (folder / ".lock").unlink()
        folder.rmdir()


@pytest.mark.parametrize("link", ["symbolic", "hard"])
def test_nothing_is_written_through_a_link(tmp_path, link):
    victim, folder = tmp_path / "victim", tmp_path / "folder"
    victim.write_text("precious")
    folder.mkdir()
    (folder / ".lock").symlink_to(victim) if link == "symbolic" else os.link(victim, folder / ".lock")
    with (
        pytest.raises(ValueError, match=r"\.lock: is (a link|not a file of its own)"),
        folder_lock(folder, "x"),
    ):
        pass
    assert victim.read_text() == "precious"


@pytest.mark.parametrize("note", [b"", b"\xff", b"[]", b'{"pid": 1}', b"{" * 100_000, b'{"pid": "x"}'])
def test_a_note_that_makes_no_sense_is_taken_over(tmp_path, note):
    (tmp_path / ".lock").write_bytes(note)
    assert lock_holder(tmp_path) is None
    with folder_lock(tmp_path, "testing"):
        pass


def _note(**changes):
    note = {"pid": os.getppid(), "start": locks._start_of(os.getppid()), "host": locks.platform.node()}
    return json.dumps(note | {"command": "c\x1b[2J", "what": "w", "since": 0.0} | changes)


@pytest.mark.parametrize(
    ("changes", "refused"),
    [
        ({}, True),  # runs
        ({"start": "long ago"}, False),  # another process has its number now
        ({"pid": 2**22 + 5}, False),  # no such process
        ({"host": "elsewhere"}, True),  # may well run
    ],
)
def test_without_locks_the_note_decides(tmp_path, monkeypatch, changes, refused):
    class Without:
        LOCK_EX = LOCK_NB = 0

        @staticmethod
        def flock(descriptor, how):
            raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(locks, "fcntl", Without)
    (tmp_path / ".lock").write_text(_note(**changes))
    if refused:
        with (
            pytest.raises(FolderInUseError, match=r"\(c\\x1b\[2J; w, since"),
            folder_lock(tmp_path, "testing"),
        ):
            pass
        return
    with folder_lock(tmp_path, "testing"):
        assert lock_holder(tmp_path).pid == os.getpid()
    assert os.listdir(tmp_path) == []


def test_a_note_from_another_machine_does_not_outweigh_a_free_lock(tmp_path):
    (tmp_path / ".lock").write_text(_note(host="elsewhere"))
    with folder_lock(tmp_path, "testing"):
        assert lock_holder(tmp_path).pid == os.getpid()


def test_of_many_writers_at_once_one_gets_in(tmp_path):
    inside, most, entered, start = [], [], [], threading.Barrier(8)

    def writer():
        start.wait()
        for _ in range(40):
            try:
                with folder_lock(tmp_path, "racing"):
                    inside.append(1)
                    most.append(len(inside))
                    entered.append(1)
                    inside.pop()
            except FolderInUseError:
                pass

    threads = [threading.Thread(target=writer) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert entered
    assert set(most) == {1}


def test_where_starts_are_not_told_a_free_lock_outweighs_a_number_that_is_in_use_again(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "_start_of", lambda pid: None)
    monkeypatch.setattr(locks, "_tells_starts", lambda: False)
    (tmp_path / ".lock").write_text(_note(start=None))  # the number of a process that runs: our parent
    with folder_lock(tmp_path, "testing"):
        assert lock_holder(tmp_path).pid == os.getpid()


@pytest.mark.parametrize(
    ("handle", "error", "code", "alive"),
    [
        (7, 0, 259, True),
        (7, 0, 1, False),  # ended, and somebody still holds a handle of it
        (None, 87, 0, False),  # no such process
        (None, 5, 0, True),  # somebody else's: access denied
    ],
)
def test_windows_is_asked_for_the_process_and_nobody_is_interrupted(monkeypatch, handle, error, code, alive):
    closed = []

    def exit_code(_, place):
        place._obj.value = code
        return 1

    kernel = SimpleNamespace(
        OpenProcess=lambda *_: handle,
        GetExitCodeProcess=exit_code,
        CloseHandle=lambda each: closed.append(each),
    )
    monkeypatch.setattr(locks.ctypes, "WinDLL", lambda *_, **__: kernel, raising=False)
    monkeypatch.setattr(locks.ctypes, "get_last_error", lambda: error, raising=False)
    monkeypatch.setattr(locks.os, "kill", lambda *_: pytest.fail("a signal was sent"))
    monkeypatch.setattr(locks, "_tells_starts", lambda: False)
    monkeypatch.setattr(locks.sys, "platform", "win32")
    who = locks.Holder(4321, None, locks.platform.node(), "c", "w", 0.0)
    assert who.runs is alive
    assert closed == ([] if handle is None else [handle])
