"""Files that are either whole or absent: temporary file, fsync, rename, fsync of the folder."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any


def write_atomically(path: str | os.PathLike[str], write: Callable[[IO[bytes]], None]) -> None:
    """Call ``write`` on a temporary file beside ``path`` and rename it into place once it is on disk.

    A file that is replaced keeps its permissions; a link stays a link, and the file it points to is replaced.
    """
    target = Path(path)
    if target.is_symlink():
        target = target.resolve()
    if not target.parent.is_dir():
        raise ValueError(f"{target}: the folder {target.parent} does not exist")
    if target.exists() and not target.is_file():
        raise ValueError(f"{target}: exists and is not a regular file")
    temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(6)}.tmp")
    # opened with the permissions that any new file gets here; tempfile would make it private
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        if target.exists():
            shutil.copymode(target, temporary)
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
