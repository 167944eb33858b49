"""One writer per folder.

The lock is the file ``.lock`` in the folder, held through the operating system (``flock``), which lets go of
it however the writer ends. The file says who holds it: process, its start, host, command, and since when.
Where the file system knows no locks, that note decides alone: that of a process that has ended is stale.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import platform
import shlex
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import wintypes
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from palrnn.engine.checks import as_path
from palrnn.engine.files import open_own
from palrnn.engine.text import printable

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

LOCK = ".lock"
# two writers who come at once on a file system without locks: whose note is there after this time
_SETTLE = 0.05
# a killed process lets go of its files a little after it is dead
_DYING = 1.0
# a note may come from somebody else
_MOST_WORDS = 200
# of the Windows API
_QUERY_LIMITED_INFORMATION, _ACCESS_DENIED, _STILL_ACTIVE = 0x1000, 5, 259
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL}

#: Folders that this process holds: by device and inode, who (process and thread) and how many times over.
_held: dict[tuple[int, int], tuple[tuple[int, int], int]] = {}
_guard = threading.Lock()


class FolderInUseError(ValueError):
    """Another process, or another thread of this one, writes to the folder."""


@dataclass(frozen=True)
class Holder:
    """Who holds a lock: process, its ``start`` (None where the system does not tell), host, and why."""

    pid: int
    start: str | None
    host: str
    command: str
    what: str
    since: float

    def __str__(self) -> str:
        try:
            clock = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.since))
        except (ValueError, OverflowError, OSError):  # a note may come from somebody else, and say anything
            clock = "a time that no clock shows"
        return f"process {self.pid} on {self.host} ({self.command}; {self.what}, since {clock})"

    @property
    def is_here(self) -> bool:
        """Whether it is a process of this machine."""
        return self.host == platform.node()

    @property
    def has_ended(self) -> bool:
        """Whether it is known to have ended."""
        return self.is_here and not self.runs

    @property
    def runs(self) -> bool:
        """Whether this very process, not a later one of the same number, runs on this machine."""
        if not self.is_here or self.pid <= 0:
            return False
        if _tells_starts():
            return self.start == _start_of(self.pid) is not None
        return _is_number_in_use(self.pid)


@contextmanager
def folder_lock(folder: str | os.PathLike[str], what: str) -> Iterator[None]:
    """Hold ``folder`` (made if missing) as its only writer; ``what`` tells others what is being done.

    A thread that holds a folder may take it again. `FolderInUseError` names the process that holds it.
    """
    path = as_path(folder, "folder")
    path.mkdir(parents=True, exist_ok=True)
    about = path.stat()
    key, me = (about.st_dev, about.st_ino), (os.getpid(), threading.get_ident())
    with _guard:
        holder, times = _held.get(key, (me, 0))
    again = times > 0 and holder == me
    descriptor = None if again else _taken(path, what)
    with _guard:
        _held[key] = me, times + 1 if again else 1
    try:
        yield
    finally:
        with _guard:
            if again:
                _held[key] = me, times
            else:
                del _held[key]
        if descriptor is not None:
            _release(path / LOCK, descriptor)


def lock_holder(folder: str | os.PathLike[str]) -> Holder | None:
    """Return who writes to ``folder`` now, or None; a process on another machine is believed to run."""
    holder = _note(as_path(folder, "folder") / LOCK)
    return holder if holder is not None and (holder.runs or not holder.is_here) else None


def _taken(folder: Path, what: str) -> int:
    """Return the descriptor of the lock file, which is ours now."""
    file, patience = folder / LOCK, time.monotonic() + _DYING
    while True:
        descriptor = open_own(file, os.O_RDWR | os.O_CREAT)
        try:
            locked = _flocked(descriptor)
            before = _note(file)
            removed = locked and not _is_same(file, descriptor)
            dying = locked is False and (before is None or before.has_ended) and time.monotonic() < patience
            if removed or dying:
                time.sleep(0.01 if dying else 0.0)
                os.close(descriptor)
                continue
            in_use = before is not None and _is_believed(before, locked=locked is True)
            if locked is False or in_use:
                raise _refusal(folder, before)
            mine = _myself(what)
            os.ftruncate(descriptor, 0)
            os.write(descriptor, json.dumps(asdict(mine)).encode())
            if locked is None:
                time.sleep(_SETTLE)
                if _note(file) != mine:
                    raise _refusal(folder, _note(file))
            return descriptor
        except BaseException:
            os.close(descriptor)
            raise


def _is_believed(note: Holder, *, locked: bool) -> bool:
    """Whether a note says that somebody else writes, where the lock is ours or there are no locks."""
    if locked:  # where starts are not told, a later process may have the number of one that was killed
        return _tells_starts() and note.runs
    # without locks, nobody can tell whether a process on another machine still runs
    return note.runs or not note.is_here


def _refusal(folder: Path, holder: Holder | None) -> FolderInUseError:
    who = str(holder) if holder is not None else "another process"
    if holder is not None and holder.has_ended:
        who = f"a process that outlived {who}"
    return FolderInUseError(f"{folder}: is being written by {who}; wait for it, or choose another folder")


def _release(file: Path, descriptor: int) -> None:
    with contextlib.suppress(OSError):  # the folder may have gone away meanwhile
        os.ftruncate(descriptor, 0)
        # removed while still held: whoever has opened the old file sees that it is gone
        if _is_same(file, descriptor):
            file.unlink()
    os.close(descriptor)


def _flocked(descriptor: int) -> bool | None:
    """Whether the lock is ours; None where there are no locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _NO_LOCKS:
            return None
        if error.errno in (errno.EAGAIN, errno.EACCES):
            return False
        raise
    return True


def _is_same(file: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(file, follow_symlinks=False), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _note(file: Path) -> Holder | None:
    """Return what a lock file says, or None if it says nothing that makes sense."""
    try:
        descriptor = open_own(file, os.O_RDONLY)
        with os.fdopen(descriptor, "rb") as stream:
            said = json.loads(stream.read(100_000))
        words = {name: printable(said[name], _MOST_WORDS) for name in ("host", "command", "what")}
        start = None if said["start"] is None else str(said["start"])
        return Holder(pid=int(said["pid"]), start=start, since=float(said["since"]), **words)
    except (OSError, ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None


def _myself(what: str) -> Holder:
    words = [os.path.basename(sys.argv[0]) or "python", *sys.argv[1:]] if sys.argv else ["python"]
    start, command = _start_of(os.getpid()), shlex.join(words)
    return Holder(os.getpid(), start, platform.node(), printable(command, _MOST_WORDS), what, time.time())


def _start_of(pid: int) -> str | None:
    """Return when a running process started, in words that no other of this number shares, or None."""
    try:
        # after the name in brackets, which may hold anything: the state, and 19 fields on the start
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return None if fields[0] in (b"Z", b"X") else f"{_boot()} {int(fields[19])}"
    except (OSError, ValueError, IndexError):
        return None


def _is_number_in_use(pid: int) -> bool:
    """Whether there is a process of this number, perhaps a later one."""
    if sys.platform == "win32":
        return _is_known_to_windows(pid)
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it is somebody else's
        pass
    return True


def _is_known_to_windows(pid: int) -> bool:
    """Whether Windows runs a process of this number; not tried there, but against a double of its functions.

    `os.kill` is no question there: signal 0 is CTRL_C_EVENT, which interrupts whoever gets it.
    """
    kernel: Any = ctypes.WinDLL("kernel32", use_last_error=True)  # type: ignore[attr-defined]
    kernel.OpenProcess.restype = wintypes.HANDLE
    kernel.OpenProcess.argtypes = (wintypes.DWORD, wintypes.BOOL, wintypes.DWORD)
    kernel.GetExitCodeProcess.argtypes = (wintypes.HANDLE, wintypes.LPDWORD)
    kernel.CloseHandle.argtypes = (wintypes.HANDLE,)
    handle = kernel.OpenProcess(_QUERY_LIMITED_INFORMATION, False, pid)
    if not handle:
        error: int = ctypes.get_last_error()  # type: ignore[attr-defined]
        return error == _ACCESS_DENIED  # it is somebody else's
    try:
        code = wintypes.DWORD()
        known = kernel.GetExitCodeProcess(handle, ctypes.byref(code))
        # a process that has ended stays as long as somebody has a handle of it
        return not known or code.value == _STILL_ACTIVE
    finally:
        kernel.CloseHandle(handle)


@cache
def _tells_starts() -> bool:
    return _start_of(os.getpid()) is not None


@cache
def _boot() -> str:
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return ""
