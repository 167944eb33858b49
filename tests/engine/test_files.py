"""A file is whole or absent, whatever happens while it is written."""

from __future__ import annotations

import errno
import os
import stat
import threading

import numpy as np
import pytest

from palrnn.engine import files
from palrnn.engine.files import (
    append_line,
    subfolder,
    write_atomically,
    write_bytes,
    write_json,
    write_text,
)


def test_bytes_arrive_and_replace_what_was_there(tmp_path):
    path = tmp_path / "a.bin"
    write_bytes(path, b"one")
    write_bytes(str(path), b"two")
    assert path.read_bytes() == b"two"
    assert os.listdir(tmp_path) == ["a.bin"]


def test_text_is_utf8(tmp_path):
    write_text(tmp_path / "a.txt", "Rössler\n")
    assert (tmp_path / "a.txt").read_bytes() == "Rössler\n".encode()


def test_json_is_readable_and_refuses_what_json_cannot_hold(tmp_path):
    write_json(tmp_path / "a.json", {"x": [1.5, None]})
    assert (tmp_path / "a.json").read_text() == '{\n  "x": [\n    1.5,\n    null\n  ]\n}\n'
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "b.json", {"x": float("nan")})
    assert os.listdir(tmp_path) == ["a.json"]


@pytest.mark.parametrize(
    "failure", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt(), ValueError("bad")]
)
@pytest.mark.parametrize("old", [None, b"the old file"])
def test_a_failure_in_the_middle_leaves_the_old_file_and_no_litter(tmp_path, failure, old):
    path = tmp_path / "model.bin"
    if old is not None:
        path.write_bytes(old)

    def write(stream):
        stream.write(b"half of the new")
        raise failure

    with pytest.raises(type(failure)):
        write_atomically(path, write)
    assert os.listdir(tmp_path) == ([] if old is None else ["model.bin"])
    assert old is None or path.read_bytes() == old


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_failing_system_call_leaves_the_old_file_and_no_litter(tmp_path, monkeypatch, call):
    path = tmp_path / "model.bin"
    path.write_bytes(b"the old file")

    def fails(*_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(files.os, call, fails)
    with pytest.raises(OSError, match="Input/output error"):
        write_bytes(path, b"new")
    assert path.read_bytes() == b"the old file"
    assert os.listdir(tmp_path) == ["model.bin"]


def test_the_new_bytes_are_on_disk_before_they_take_the_name(tmp_path, monkeypatch):
    order = []
    for call in ("fsync", "replace"):
        real = getattr(os, call)
        monkeypatch.setattr(
            files.os, call, lambda *a, call=call, real=real: (order.append(call), real(*a))[1]
        )
    write_bytes(tmp_path / "a", b"x")
    assert order == ["fsync", "replace", "fsync"]  # the last one is the folder's


def test_a_folder_that_cannot_be_synced_is_no_failure(tmp_path, monkeypatch):
    real = os.fsync

    def only_files(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")
        real(descriptor)

    monkeypatch.setattr(files.os, "fsync", only_files)
    write_bytes(tmp_path / "a", b"x")
    assert (tmp_path / "a").read_bytes() == b"x"


def test_a_bare_file_name_means_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_bytes("a.bin", b"x")
    write_bytes("./b.bin", b"x")
    assert sorted(os.listdir()) == ["a.bin", "b.bin"]


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"a\.bin: the folder .*nowhere does not exist"):
        write_bytes(tmp_path / "nowhere" / "a.bin", b"x")


@pytest.mark.parametrize("target", ["", ".", "folder"])
def test_a_folder_is_not_replaced(tmp_path, monkeypatch, target):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(ValueError, match="exists and is not a regular file"):
        write_bytes(target, b"x")


def test_a_device_or_pipe_is_not_replaced(tmp_path):
    # as root, a rename over /dev/null would take it away from the whole machine
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="exists and is not a regular file"):
        write_bytes(tmp_path / "pipe", b"x")


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs a folder that refuses even root")
def test_a_folder_that_takes_no_files_is_an_os_error():
    with pytest.raises(OSError, match=r"/proc/self/"):
        write_bytes("/proc/self/a.bin", b"x")


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
def test_a_new_file_gets_the_permissions_of_any_new_file(tmp_path, mask, mode):
    old = os.umask(mask)
    try:
        write_bytes(tmp_path / "a", b"x")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == mode


def test_a_replaced_file_keeps_its_permissions(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"x")
    path.chmod(0o640)
    write_bytes(path, b"y")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.parametrize("there", [True, False])
def test_a_link_is_replaced_and_what_it_pointed_to_stays(tmp_path, there):
    if there:
        (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real")
    write_bytes(tmp_path / "link", b"new")
    assert not (tmp_path / "link").is_symlink()
    assert (tmp_path / "link").read_bytes() == b"new"
    assert (tmp_path / "real").read_bytes() == b"old" if there else not (tmp_path / "real").exists()


def test_a_link_to_a_device_or_folder_is_refused(tmp_path):
    for name, target in (("null", "/dev/null"), ("folder", tmp_path)):
        (tmp_path / name).symlink_to(target)
        with pytest.raises(ValueError, match="exists and is not a regular file"):
            write_bytes(tmp_path / name, b"x")


def test_lines_are_appended_each_on_its_own_even_after_a_torn_one(tmp_path):
    file = tmp_path / "lines"
    append_line(file, b"one")
    append_line(file, b"two\n")
    assert file.read_bytes() == b"one\ntwo\n"
    file.write_bytes(b"one\nto")
    append_line(file, b"three")
    assert file.read_bytes() == b"one\nto\nthree\n"


@pytest.mark.parametrize("kind", ["link", "link to nowhere", "hard link", "pipe", "folder"])
def test_nothing_is_appended_through_a_link_or_into_a_pipe(tmp_path, kind):
    victim, file = tmp_path / "victim", tmp_path / "lines"
    victim.write_bytes(b"precious")
    {
        "link": lambda: file.symlink_to(victim),
        "link to nowhere": lambda: file.symlink_to(tmp_path / "nowhere"),
        "hard link": lambda: os.link(victim, file),
        "pipe": lambda: os.mkfifo(file),
        "folder": file.mkdir,
    }[kind]()
    with pytest.raises((ValueError, IsADirectoryError), match="lines"):
        append_line(file, b"x")
    assert victim.read_bytes() == b"precious"
    assert not (tmp_path / "nowhere").exists()


def test_a_folder_inside_is_made_but_not_through_a_link(tmp_path):
    assert subfolder(tmp_path / "run", "findings") == tmp_path / "run" / "findings"
    subfolder(tmp_path / "run", "findings")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "run" / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match="link: is a link to another folder"):
        subfolder(tmp_path / "run", "link")


def test_a_name_of_wide_letters_can_be_written(tmp_path):
    # 60 letters of 4 bytes each: what is put around the name must not make it longer than 255 bytes
    write_bytes(tmp_path / ("\U0001f600" * 60), b"x")
    assert len(os.listdir(tmp_path)) == 1


def test_a_name_as_long_as_the_file_system_allows_can_be_written(tmp_path):
    path = tmp_path / ("n" * 255)
    write_bytes(path, b"x")
    assert path.read_bytes() == b"x"


def test_a_reader_never_sees_a_half_written_file(tmp_path):
    path = tmp_path / "a"
    size = 200_000
    write_bytes(path, bytes(size))
    done = threading.Event()
    seen = []

    def read():
        while not done.is_set():
            seen.append(set(np.frombuffer(path.read_bytes(), np.uint8).reshape(2, -1).max(axis=1).tolist()))

    reader = threading.Thread(target=read)
    reader.start()
    for value in range(1, 40):
        write_bytes(path, bytes([value]) * size)
    done.set()
    reader.join()
    assert seen
    assert all(len(values) == 1 for values in seen)
