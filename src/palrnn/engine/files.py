"""Files that are either whole or absent: temporary file, fsync, rename, fsync of the folder.

A folder may come from somebody else. Nothing is written through a link that lies in it: a link in the place
of a file is replaced, one in the place of a file that grows or of a folder is refused.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any


def write_atomically(path: str | os.PathLike[str], write: Callable[[IO[bytes]], None]) -> None:
    """Call ``write`` on a temporary file beside ``path`` and rename it into place once it is on disk.

    A file that is replaced keeps its permissions. A link is replaced, too, and what it pointed to stays.
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise ValueError(f"{target}: the folder {target.parent} does not exist")
    # also through a link: as root, a rename over /dev/stdout would take it away from the whole machine
    if target.exists() and not target.is_file():
        raise ValueError(f"{target}: exists and is not a regular file")
    mode = None if target.is_symlink() or not target.exists() else stat.S_IMODE(target.stat().st_mode)
    temporary = target.with_name(f".{target.name[:40]}.{secrets.token_hex(6)}.tmp")
    # opened with the permissions that any new file gets here; tempfile would make it private
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        if mode is not None:
            os.chmod(temporary, mode)
        os.replace(temporary, target)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename is None:  # a full disk does not say which file
            raise OSError(error.errno, error.strerror, str(target)) from error
        raise
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    # the file is in place; some network file systems cannot sync a folder, which is no reason to fail
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    """Write ``data`` to ``path`` atomically."""

    def write(stream: IO[bytes]) -> None:
        stream.write(data)

    write_atomically(path, write)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write ``text`` to ``path`` atomically, as UTF-8."""
    write_bytes(path, text.encode())


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    """Write ``value`` as readable JSON, atomically; NaN and infinity are refused."""
    write_text(path, json.dumps(value, indent=2, allow_nan=False) + "\n")


def append_line(path: str | os.PathLike[str], line: bytes) -> None:
    """Add ``line`` to a file, on a line of its own even if the last writer was cut off.

    A link, or anything else that is not a regular file, is refused: what it points to may be anybody's.
    """
    target = Path(path)
    with os.fdopen(open_own(target, os.O_RDWR | os.O_APPEND | os.O_CREAT), "rb+") as stream:
        torn = stream.seek(0, os.SEEK_END) > 0
        if torn:
            stream.seek(-1, os.SEEK_END)
            torn = stream.read(1) != b"\n"
        stream.write((b"\n" if torn else b"") + line.rstrip(b"\n") + b"\n")


def open_own(path: Path, flags: int) -> int:
    """Return a descriptor of a regular file that has no other name; refuse links of both kinds, and pipes."""
    # not every system has these; O_NONBLOCK keeps a pipe from waiting for its reader
    flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
    if path.is_symlink():
        raise ValueError(f"{path}: is a link; remove it")
    descriptor = os.open(path, flags, 0o666)
    about = os.fstat(descriptor)
    if not stat.S_ISREG(about.st_mode) or about.st_nlink > 1:
        os.close(descriptor)
        raise ValueError(f"{path}: is not a file of its own (a pipe, or a hard link); remove it")
    return descriptor


def subfolder(folder: str | os.PathLike[str], name: str) -> Path:
    """Return the folder ``name`` in ``folder``, made if missing; a link in its place is refused."""
    inner = Path(folder) / name
    if inner.is_symlink():
        raise ValueError(f"{inner}: is a link to another folder; remove it")
    inner.mkdir(parents=True, exist_ok=True)
    return inner
